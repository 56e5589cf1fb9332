"""The benchmark runs, and notices wrong answers.  Nothing here depends on times."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiers import rest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import figures  # noqa: E402
import fresh  # noqa: E402
import peers  # noqa: E402
import run  # noqa: E402
from libraries import NUMPY, Graphs, Namespace, Numba, Unsupported, library  # noqa: E402
from workloads import SIZES, WORKLOADS, answer, outputs, slope  # noqa: E402

#: NumPy's functions where they take complex numbers
COMPLEX = Namespace(NUMPY, softplus=lambda x: np.log1p(np.exp(x)))
WITH_GRADIENT = [key for key, w in WORKLOADS.items() if w.gradient]


@pytest.mark.parametrize("key", WITH_GRADIENT)
def test_gradients_by_hand(key):
    w = WORKLOADS[key]
    arrays = {k: a.astype("f8") if a.dtype == "f4" else a for k, a in w.arrays("small").items()}
    assert w.by_hand is not None
    value, *slopes = w.by_hand(**arrays)
    np.testing.assert_allclose(value, w.formula(NUMPY, **arrays), rtol=1e-12)
    rng = np.random.default_rng(5)
    for name, g in zip(w.gradient, slopes, strict=True):
        along = {name: rng.normal(size=arrays[name].shape)}
        by_step = slope(w, arrays, along, COMPLEX)
        np.testing.assert_allclose(np.sum(g * along[name]), by_step, rtol=1e-9)


@pytest.mark.parametrize("key", WORKLOADS)
def test_data_and_answers(key):
    w = WORKLOADS[key]
    arrays, again = w.arrays("small"), w.arrays("small")
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
    assert set(w.held) <= set(arrays) and set(w.gradient) <= set(arrays)
    found, new = answer(w, arrays, NUMPY)
    assert all(np.isfinite(a).all() for a in [*found, *new.values()])
    if w.unit:
        assert f"{w.family}: {w.unit}" in WORKLOADS
    dtypes = {a.dtype for a in w.arrays("small").values() if a.dtype.kind == "f"}
    assert len(dtypes) == 1


@pytest.mark.parametrize("key", WORKLOADS)
def test_operands_stay_as_they_are(key):
    w = WORKLOADS[key]
    arrays = w.arrays("small")
    answer(w, arrays, NUMPY)
    assert all(np.array_equal(a, arrays[name]) for name, a in w.arrays("small").items())


@pytest.mark.needs("numba")
def test_loops_have_workloads():
    from loops import LOOPS

    assert set(LOOPS) <= {w.name for w in WORKLOADS.values()}
    with pytest.raises(Unsupported):
        Numba().build(WORKLOADS["calls: add, trusted"], {})


@pytest.mark.parametrize("name", fresh.GROWING)
def test_growing_graphs_have_as_many_nodes_as_they_say(name):
    import phintys
    from phintys.graph.traversal import applys_between

    w = fresh.growing(name, 200)
    lib = Graphs("phintys")
    x = lib.variable("x", w.arrays("small")["x"])
    (value,) = outputs(w.formula(lib.namespace, x))
    assert 150 <= len(list(applys_between([x], [value]))) <= 500
    g = phintys.function([x], [value, phintys.grad(value, x)], mode="FAST_COMPILE")
    arrays = w.arrays("small")
    got = g(arrays["x"])
    assert fresh.is_right(w, arrays, got)
    assert not fresh.is_right(w, arrays, [got[0], got[1] * 1.001])
    assert not fresh.is_right(w, arrays, [got[0] + 1e-3, got[1]])


@rest
@pytest.mark.skipif(sys.platform == "win32", reason="waits for a pipe")
def test_quick_form(tmp_path):
    """All libraries found; what CI runs."""
    file = tmp_path / "records.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--quick", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "0 wrong or failed" in done.stdout
    records = json.loads(file.read_text())
    timed = {r["workload"] for r in records["throughput"] if "phintys" in r["times"]}
    assert timed == set(WORKLOADS)
    assert all(t > 0 for r in records["throughput"] for t in r["times"].values())
    assert records["import"]["phintys"] > 0
    assert {"numpy", "phintys"} <= {p for r in records["throughput"] for p in r["times"]}


class WrongWorker(peers.Worker):
    """Replies of a library whose answers are off by a thousandth."""

    def start(self):
        return {"ready": self.peer.name}

    def open(self, workload, limit):
        return {"seconds": 0.1}

    def ask(self, do, limit, **request):
        return {"error": 1e-3, "tolerance": 1e-9} if do == "load" else {"seconds": 1e-6}


def test_a_wrong_answer_fails_the_run(monkeypatch, capsys):
    monkeypatch.setattr(run, "Worker", WrongWorker)
    given = ["--quick", "--part", "throughput", "--peer", "numpy", "--only", "softmax"]
    assert run.main(given) == 1
    shown = capsys.readouterr().out
    assert "phintys is wrong: rows: softmax, small, error 0.001" in shown
    assert "numpy is wrong" in shown


def test_a_failure_of_a_peer_does_not(monkeypatch, capsys):
    class Failing(WrongWorker):
        def ask(self, do, limit, **request):
            good = {"error": 0.0, "tolerance": 0.0, "seconds": 1e-6}
            return good if self.peer.name == "phintys" else {"failed": "no"}

    monkeypatch.setattr(run, "Worker", Failing)
    given = ["--quick", "--part", "throughput", "--peer", "numpy", "--only", "softmax"]
    assert run.main(given) == 0
    assert "1 us" in capsys.readouterr().out


def test_worker_finds_a_wrong_answer(monkeypatch):
    from worker import Worker

    worker = Worker("numpy")
    key = "rows: softmax"
    worker.open(key)
    assert worker.load("small")["error"] == 0
    right = worker.program.call
    for wrong in (
        lambda x: right(x) * 1.01,
        lambda x: right(x)[1:],
        lambda x: right(x) * np.nan,
        lambda x: [right(x), right(x)],
    ):
        worker.program.call = wrong
        worker.program.bind = lambda arrays: arrays
        assert worker.load("small")["error"] > 1e-3


@pytest.mark.skipif(sys.platform == "win32", reason="waits for a pipe")
def test_a_slow_library_is_stopped_and_starts_again():
    worker = peers.Worker(peers.Peer("numpy"), allowance=1.0)
    try:
        assert worker.start() == {"ready": "numpy"}
        assert "slow" in worker.ask("open", 0.0, workload="rows: softmax")
        assert worker.process is None
        assert "seconds" in worker.ask("open", 60, workload="rows: softmax")
        assert worker.ask("load", 60, size="small")["error"] == 0
        assert worker.ask("time", 60, seconds=0.001)["seconds"] > 0
        worker.allowance = 0.0
        assert "slow" in worker.open("rows: softmax", 60)
        assert "failed" in worker.ask("load", 60, size="enormous")
    finally:
        worker.stop()


def test_fresh_processes_have_an_allowance(tmp_path):
    peer, key = peers.Peer("numpy"), "rows: softmax"
    asker = fresh.Asker(limit=0.001, allowance=0.002)
    assert asker.ask(peer, str(tmp_path), key) == {"slow": "more than 0 s"}
    assert asker.ask(peer, str(tmp_path), key) == {"slow": fresh.OVER}
    asker = fresh.Asker(limit=60.0, allowance=60.0)
    assert asker.ask(peer, str(tmp_path), key)["right"]
    assert "missing" in asker.ask(peers.Peer("no_such_library"), str(tmp_path), key)
    assert "failed" in asker.ask(peer, str(tmp_path), "no such workload")


def test_growth_goes_on_until_one_takes_too_long():
    class Asked:
        def ask(self, peer, directory, name, n):
            return {"build": 1.0} if int(n) < 300 or name == "b" else {"slow": "yes"}

    lengths = (100, 300, 1000)
    found = list(fresh.growth(Asked(), [peers.Peer("phintys")], "ab", lengths))
    assert [(r["expression"], r["nodes"]) for r in found] == [
        ("a", 100), ("b", 100), ("a", 300), ("b", 300), ("b", 1000),
    ]  # fmt: skip


def test_a_library_that_is_not_there():
    worker = peers.Worker(peers.Peer("no_such_library"), 1.0)
    assert "no_such_library" in worker.start()["missing"]
    worker.stop()
    with pytest.raises(ImportError):
        library("no_such_library")


def test_peers_are_named():
    assert peers.parse("jax@/there/python") == [peers.Peer("jax", "/there/python")]
    assert [p.name for p in peers.parse("pytensor")] == ["pytensor:NUMBA", "pytensor:CVM"]
    assert peers.parse("phintys:C")[0].label == "phintys:C"
    assert peers.Peer("phintys", threads=2).label == "phintys, 2 threads"
    assert peers.Peer("phintys", threads=2).environment()["OMP_NUM_THREADS"] == "2"
    assert {"phintys", "numpy"} <= {p.name for p in peers.installed()}


THROUGHPUT = [
    {"workload": key, "size": size, "times": {"phintys": 2e-6, "jax": 1e-6, "numpy": 3e-5}}
    for key in ("layouts: contiguous", "layouts: transposed")
    for size in SIZES
]
FIRST = [
    {
        "workload": "w",
        "peer": peer,
        "cold": {"import": 0.1, "build": t, "call": 0.5, "stages": {"code": t / 2}},
        "warm": {"slow": "more than 1 s"} if peer == "jax" else {"build": t, "call": 0.0}
        | {"import": 0.1, "stages": {"code": 0.0}},
    }
    for peer, t in (("phintys", 0.5), ("jax", 1.5))
]  # fmt: skip
GROWTH = [
    {"expression": "chain", "nodes": n, "peer": "phintys", "build": 1e-3 * n, "call": 0.0}
    for n in (100, 300)
] + [{"expression": "chain", "nodes": 100, "peer": "jax", "slow": "more than 1 s"}]


def test_tables():
    shown = figures.throughput(THROUGHPUT)
    assert re.search(r"transposed *\| small *\| *2 us \| 0\.50 \| *15 \| *0\.50 \|", shown)
    assert "1.00 |   1.00 |  1.00" in figures.variants(THROUGHPUT)
    firsts = figures.firsts(FIRST)
    assert re.search(r"w *\| jax *\| *2 s \| *2\.00 \| *slow", firsts)
    assert re.search(
        r"w *\| new *\| *100\.0 \| *250\.0 \| *250\.0 \| *500\.0", figures.stages(FIRST)
    )
    assert re.search(r"chain *\| phintys *\| 100 ms \| 300 ms \| *2\.00", figures.growth(GROWTH))
    both = [{"workload": "w", "size": "large", "times": {"phintys": 2.0, "phintys, 2": 1.0}}]
    assert "2.00" in figures.threads(both)
    assert "6.00" in figures.imports({"phintys": 50.0, "jax": 300.0})


def test_units():
    shown = [figures.seconds(t) for t in (1.5e-8, 9.99e-7, 2.5e-6, 0.25, 12.0)]
    assert shown == ["15 ns", "999 ns", "2.5 us", "250 ms", "12 s"]
    assert figures.doubling([(100, 1.0), (200, 2.5)]) == "2.50"
    assert figures.doubling([(100, 1.0)]) == ""


@rest
@pytest.mark.needs("matplotlib")
@pytest.mark.filterwarnings("ignore")
def test_pictures_are_the_same_for_the_same_records(tmp_path):
    parts = {"throughput": THROUGHPUT, "first": FIRST, "growth": GROWTH}
    for part, records in parts.items():
        files = [tmp_path / f"{part}{k}.svg" for k in range(2)]
        for file in files:
            run.DRAWN[part](records, file)
        assert files[0].read_bytes() == files[1].read_bytes()
        assert b"jax" in files[0].read_bytes()


def test_what_the_documentation_shows_is_there():
    page = (ROOT / "docs" / "performance.md").read_text()
    tables = re.findall(r"```{include} \.\./benchmarks/results/(\w+)\.md", page)
    pictures = re.findall(r"\(_static/bench-(\w+)\.svg\)", page)
    assert {"throughput", "first", "stages", "growth"} <= set(tables)
    assert set(pictures) == set(run.DRAWN)
    assert all((run.RESULTS / f"{name}.md").exists() for name in tables)
    assert all((run.PICTURES / f"bench-{name}.svg").exists() for name in pictures)
