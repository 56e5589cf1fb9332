"""What a fresh process costs: importing, the first result, memory, growth with the graph.

Functions above `child` run in the process that is measured, those below in the one that asks.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from workloads import WORKLOADS, Arrays, Workload, outputs, slope

#: first results: those of the workloads that people wait for
FIRST = (
    "calls: add of 0-d arrays",
    "models: hierarchical regression",
    "models: logistic regression",
    "networks: training step",
)
LENGTHS = (100, 300, 1000, 3000)


def peak() -> float:
    """The most memory this process has had, in MB; 0 where it is not known."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024 / 1e6


def chain(m: Any, x: Any, n: int) -> Any:
    """One expression of about n nodes, each on top of the last."""
    y = x
    for k in range(n // 4):
        y = m.tanh(y * (1.0 + k / n)) + x * (k / n)
    return m.sum(y)


def terms(m: Any, x: Any, n: int) -> Any:
    """A sum of scalar terms of elements of x, about n nodes, no two terms alike."""
    functions = (m.exp, m.sin, m.tanh, m.cos)
    total = 0.0
    for k in range(n // 5):
        z = (x[k % 50] - k / n) * (0.5 + k / n)
        total = total + functions[k % 4](z)
    return total


def vectors(m: Any, x: Any, n: int) -> Any:
    """The same with terms of vectors."""
    functions = (m.exp, m.sin, m.tanh, m.cos)
    total = 0.0
    for k in range(n // 4):
        total = total + functions[k % 4](x * (0.5 + k / n)) * (k / n)
    return m.sum(total)


GROWING: dict[str, Callable[..., Any]] = {"chain": chain, "terms": terms, "vectors": vectors}


def growing(name: str, n: int) -> Workload:
    """Value and gradient of an expression of about n nodes (without those of the gradient)."""
    f = GROWING[name]
    return Workload(
        f"{name} of {n} nodes",
        "growth",
        lambda m, x: f(m, x, n),
        lambda _, rng: {"x": rng.normal(size=50) * 0.3},
        gradient=("x",),
    )


def is_right(w: Workload, arrays: Arrays, got: list[Any]) -> bool:
    """Value by NumPy, and the gradients along a random direction by a complex step."""
    from libraries import NUMPY, Namespace

    if not w.gradient or w.rate:
        with np.errstate(all="ignore"):
            return bool(np.allclose(got[0], outputs(w.formula(NUMPY, **arrays))[0], rtol=1e-4))
    m = Namespace(NUMPY, softplus=lambda x: np.log1p(np.exp(x)))
    rng = np.random.default_rng(1)
    along = {name: rng.normal(size=arrays[name].shape) for name in w.gradient}
    inner = sum(float(np.sum(g * v)) for g, v in zip(got[1:], along.values()))
    value = w.formula(NUMPY, **arrays)
    return bool(
        np.allclose(np.asarray(got[0]), value, rtol=1e-8)
        and np.allclose(inner, slope(w, arrays, along, m), rtol=1e-6)
    )


def first_result(name: str, w: Workload) -> dict[str, Any]:
    """Seconds of importing, building and the first call, and the peak of memory after each."""
    arrays = w.arrays("small")
    marks = [time.perf_counter()]
    from libraries import library

    lib = library(name)
    marks.append(time.perf_counter())
    imported = peak()
    program = lib.build(w, arrays)
    arguments = program.bind(arrays)
    marks.append(time.perf_counter())
    got = outputs(program.call(*arguments.values()))
    marks.append(time.perf_counter())
    most = peak()
    maker = getattr(program.call, "maker", None)
    return {
        "import": marks[1] - marks[0],
        "build": marks[2] - marks[1],
        "call": marks[3] - marks[2],
        "imported_mb": imported,
        "peak_mb": most,
        "right": is_right(w, arrays, [np.asarray(g) for g in got]),
        "stages": dict(getattr(maker, "times", {})),
    }


def child(name: str, what: str, n: int = 0) -> None:
    w = growing(what, n) if n else WORKLOADS[what]
    print(json.dumps(first_result(name, w)))


# ---------------------------------------------------------------- the process that asks


def caches(directory: str) -> dict[str, str]:
    """Variables that send the compiled code of each library to a directory."""
    return {
        "PHINTYS_CACHE_DIR": directory,
        "PYTENSOR_FLAGS": f"base_compiledir={directory}",
        "NUMBA_CACHE_DIR": directory,
        "JAX_COMPILATION_CACHE_DIR": directory,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


OVER = "its time is used up"


class Asker:
    """Runs `child` in fresh processes of libraries, of each for as long as its allowance lasts."""

    def __init__(self, limit: float, allowance: float) -> None:
        self.limit, self.allowance = limit, allowance
        self.spent: dict[str, float] = {}

    def ask(self, peer: Any, directory: str, *arguments: str) -> dict[str, Any]:
        """What the child prints, or why it did not; compiled code goes to the directory."""
        left = self.allowance - self.spent.get(peer.label, 0.0)
        if left <= 0:
            return {"slow": OVER}
        start = time.perf_counter()
        try:
            return self._run(peer, directory, min(left, self.limit), *arguments)
        except subprocess.TimeoutExpired:
            return {"slow": f"more than {self.limit:.0f} s" if left > self.limit else OVER}
        finally:
            took = time.perf_counter() - start
            self.spent[peer.label] = self.spent.get(peer.label, 0.0) + took

    def _run(self, peer: Any, directory: str, limit: float, *arguments: str) -> dict[str, Any]:
        command = [peer.python, __file__, peer.name, *arguments]
        env = peer.environment(**caches(directory))
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it ended"])[-1]
            return {"missing" if "ModuleNotFoundError" in last else "failed": last}
        return json.loads(done.stdout.splitlines()[-1])


def importing(peers: Iterable[Any], rounds: int) -> dict[str, float]:
    """Milliseconds that importing adds to a process that has imported NumPy, by peer."""
    code = "import time, numpy; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"
    found: dict[str, list[float]] = {}
    modules = {p.name.partition(":")[0]: p for p in peers if p.name != "numpy"}
    for _ in range(rounds):
        for module, peer in modules.items():
            done = subprocess.run(
                [peer.python, "-c", code.format(IMPORTS.get(module, module))],
                env=peer.environment(),
                capture_output=True,
                text=True,
            )
            if not done.returncode:
                found.setdefault(module, []).append(1e3 * float(done.stdout))
    return {module: min(times) for module, times in found.items()}


#: what one imports to use a library
IMPORTS = {"phintys": "phintys.tensor", "pytensor": "pytensor.tensor", "jax": "jax.numpy"}


def apart(peers: Iterable[Any]) -> list[Any]:
    """Those that make something before the first result."""
    return [p for p in peers if p.name not in ("numpy", "numba", "torch")]


#: seconds above which a process is measured only once
LONG = 2.0


def firsts(
    asker: Asker, peers: Iterable[Any], keys: Iterable[str], rounds: int
) -> Iterator[dict[str, Any]]:
    """Cold and from the disk cache: a record of the least times for each peer and workload."""
    for key in keys:
        for peer in apart(peers):
            cold, warm = [], []
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as directory:
                    cold.append(asker.ask(peer, directory, key))
                    if "build" in cold[-1]:
                        warm.append(asker.ask(peer, directory, key))
                if sum(cold[-1].get(k, LONG) for k in ("import", "build", "call")) >= LONG:
                    break
            yield {"workload": key, "peer": peer.label, "cold": least(cold), "warm": least(warm)}


def least(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The record with the least time to the first result, if there is one."""
    timed = [r for r in records if "build" in r]
    return min(timed or records, key=lambda r: r.get("build", 0.0) + r.get("call", 0.0), default={})


def growth(
    asker: Asker, peers: Iterable[Any], names: Iterable[str], lengths: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """Seconds to the first result of larger and larger graphs, until one takes too long."""
    going = [(name, peer) for name in names for peer in apart(peers)]
    for n in lengths:
        for name, peer in list(going):
            with tempfile.TemporaryDirectory() as directory:
                found = asker.ask(peer, directory, name, str(n))
            yield {"expression": name, "nodes": n, "peer": peer.label, **found}
            if "build" not in found:
                going.remove((name, peer))


if __name__ == "__main__":
    child(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
