"""Phintys beside other libraries, in one run: ``make bench``.

    python benchmarks/run.py                  # all parts, all libraries found
    python benchmarks/run.py --quick          # small sizes, under 40 s
    python benchmarks/run.py --peer jax --peer pytensor@/path/to/python --only 'rows|models'
    python benchmarks/run.py --part fresh growth

Each library has a process of its own, and they take turns, so that what else the machine does
hits all alike: read ratios, not times.  Every answer is compared with NumPy's.  The exit code is 1
if one is wrong, or if Phintys fails; nothing depends on times.  Parts:

throughput  time of a call, by workload and size (`workloads.py`)
fresh       importing, first results cold and from the disk cache, memory
growth      time to the first result as the graph grows
threads     Phintys with several threads over Phintys with one
nodes       building, differentiating, rewriting: ``per_node.py``

``--publish`` writes records, tables and pictures to where the documentation includes them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import figures
import fresh
from peers import HERE, Peer, Worker, installed, parse
from workloads import SIZES, WORKLOADS

PARTS = ("throughput", "fresh", "growth", "threads", "nodes")
RESULTS = HERE / "results"
PICTURES = HERE.parent / "docs" / "_static"
#: what threads can help, and what they must not slow down
THREADED = ("exp-log chain$|softmax|standardized|hierarchical", ("small", "medium", "large"))


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    first, _, rest = (__doc__ or "").partition("\n")
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=first, epilog=rest, formatter_class=style)
    add = parser.add_argument
    add("--peer", action="append", default=[], metavar="NAME[@PYTHON]", help="instead of all")
    add("--part", nargs="+", choices=PARTS, default=PARTS)
    add("--only", default="", metavar="REGEX", help="workloads, as 'family: name'")
    add("--size", nargs="+", choices=SIZES, default=SIZES)
    add("--rounds", type=int, default=3, help="turns of each library")
    add("--seconds", type=float, default=0.03, help="timing of one turn")
    add("--limit", type=float, default=20, help="seconds for building one program")
    add(
        "--allowance",
        type=float,
        default=75,
        help="seconds for building all programs of one library",
    )
    add("--threads", type=int, default=2, help="of the part 'threads'")
    add("--quick", action="store_true", help="small sizes, short timings, fewer parts")
    add("--publish", action="store_true", help="write results/ and the pictures of docs/")
    add("--json", type=Path, help="write the records here")
    add("--verbose", action="store_true", help="show what libraries print")
    options = parser.parse_args(given)
    if options.quick:
        options.size, options.rounds, options.seconds = ["small"], 1, 0.005
        options.part = [p for p in options.part if p in ("throughput", "fresh", "growth")]
    return options


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Run:
    """The records of a run, and the answers that were wrong."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        named = [p for text in options.peer for p in parse(text)]
        self.peers = [Peer("phintys"), *named] if named else installed()
        self.records: dict[str, Any] = {"machine": machine()}
        self.bad: list[str] = []

    def note(self, peer: str, what: str, reply: dict[str, Any]) -> None:
        """Remember a wrong answer, a failure of our own; say what else went wrong."""
        for kind in ("failed", "slow"):
            if kind in reply:
                say(f"  {peer}, {what}: {kind}: {reply[kind]}")
        if "failed" in reply and peer.startswith(figures.US):
            self.bad.append(f"{peer} failed: {what}: {reply['failed']}")
        if not reply.get("right", True) or reply.get("error", 0.0) > reply.get("tolerance", 0.0):
            detail = f", error {reply['error']:.2g}" if "error" in reply else ""
            self.bad.append(f"{peer} is wrong: {what}{detail}")

    # ------------------------------------------------------------ throughput

    def measure(self, peers: Iterable[Peer], only: str, sizes: Iterable[str]) -> figures.Records:
        """A record of times for each workload and size."""
        options = self.options
        workers = [Worker(p, options.allowance, options.verbose) for p in peers]
        records = []
        try:
            for worker in list(workers):
                if missing := worker.start().get("missing"):
                    say(f"  {worker.peer.label} is left out: {missing}")
                    workers.remove(worker)
            for key in WORKLOADS:
                if re.search(only, key):
                    records += self.workload(workers, key, sizes)
        finally:
            for worker in workers:
                worker.stop()
        return records

    def workload(self, workers: list[Worker], key: str, sizes: Iterable[str]) -> figures.Records:
        """The sizes of one workload, for those workers that have a program for it."""
        say(key)
        ready = []
        for worker in workers:
            reply = worker.open(key, self.options.limit)
            self.note(worker.peer.label, key, reply)
            if "seconds" in reply:
                ready.append(worker)
        found = []
        for size in sizes:
            if WORKLOADS[key].has(size):
                times = self.turns(ready, key, size)
                found.append({"workload": key, "size": size, "times": times})
        return found

    def turns(self, workers: list[Worker], key: str, size: str) -> dict[str, float]:
        """The least time of each worker; they take turns."""
        times: dict[str, list[float]] = {}
        for worker in list(workers):
            reply = worker.ask("load", self.options.limit, size=size)
            self.note(worker.peer.label, f"{key}, {size}", reply)
            if "error" in reply:
                times[worker.peer.label] = []
            else:
                workers.remove(worker)
        for _ in range(self.options.rounds):
            for worker in workers:
                reply = worker.ask("time", self.options.limit, seconds=self.options.seconds)
                if "seconds" in reply:
                    times[worker.peer.label].append(reply["seconds"])
        return {label: min(t) for label, t in times.items() if t}

    def throughput(self) -> None:
        found = self.measure(self.peers, self.options.only, self.options.size)
        self.records["throughput"] = found

    def threads(self) -> None:
        only, sizes = THREADED
        both = [Peer("phintys"), Peer("phintys", threads=self.options.threads)]
        self.records["threads"] = self.measure(both, only, sizes)

    # ------------------------------------------------------------ fresh processes

    def fresh(self) -> None:
        say("fresh processes")
        quick = self.options.quick
        rounds = 1 if quick else 3
        self.records["import"] = fresh.importing(self.peers, 2 if quick else 5)
        keys = fresh.FIRST[:2] if quick else fresh.FIRST
        asker = fresh.Asker(4 * self.options.limit, self.options.allowance)
        found = list(fresh.firsts(asker, self.peers, keys, rounds))
        self.records["first"] = [r for r in found if "missing" not in r["cold"]]
        for r in found:
            for state in ("cold", "warm"):
                self.note(r["peer"], f"first result of {r['workload']}, {state}", r[state])

    def growth(self) -> None:
        say("growth")
        quick = self.options.quick
        names = ("terms",) if quick else tuple(fresh.GROWING)
        lengths = (50, 100) if quick else fresh.LENGTHS
        asker = fresh.Asker(self.options.limit, 0.6 * self.options.allowance)
        found = list(fresh.growth(asker, self.peers, names, lengths))
        self.records["growth"] = [r for r in found if "missing" not in r]
        for r in found:
            self.note(r["peer"], f"{r['expression']} of {r['nodes']} nodes", r)

    def nodes(self) -> None:
        """Models beside PyTensor, then larger and larger graphs of ours."""
        say("costs of nodes")
        pytensors = [p for p in self.peers if p.name == "pytensor:CVM"]
        beside = [f"--peer=pytensor@{p.python}" for p in pytensors]
        self.records["nodes"] = "".join(
            self.per_node(*given)
            for given in (
                ["--only=logistic,radon,mlp", "--first", *beside],
                ["--only=chain,terms,gathers", "--limit=5000", "--rounds=3"],
            )
        )

    def per_node(self, *given: str) -> str:
        """What ``per_node.py`` prints."""
        command = [sys.executable, str(HERE / "per_node.py"), *given]
        env, limit = Peer("phintys").environment(), 4 * self.options.limit
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=limit)
        except subprocess.TimeoutExpired:
            say(f"  costs of nodes: more than {limit:.0f} s")
            return ""
        if done.returncode:
            self.bad.append(f"costs of nodes: {(done.stderr.splitlines() or ['?'])[-1]}")
        return done.stdout

    # ------------------------------------------------------------ results

    def tables(self) -> dict[str, str]:
        """Name -> table, of the parts that ran."""
        found = self.records
        made = {
            "throughput": figures.throughput(found.get("throughput", [])),
            "variants": figures.variants(found.get("throughput", [])),
            "import": figures.imports(found.get("import", {})),
            "first": figures.firsts(found.get("first", [])),
            "stages": figures.stages(found.get("first", [])),
            "growth": figures.growth(found.get("growth", [])),
            "threads": figures.threads(found.get("threads", [])),
            "nodes": f"```text\n{found['nodes']}```" if found.get("nodes") else "",
        }
        return {name: text for name, text in made.items() if text.count("\n") > 1}

    def publish(self) -> None:
        """Tables, records and pictures for the documentation; parts that did not run stay."""
        RESULTS.mkdir(exist_ok=True)
        for name, text in self.tables().items():
            (RESULTS / f"{name}.md").write_text(text + "\n")
        file = RESULTS / "records.json"
        before = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(before | self.records, indent=1) + "\n")
        for part, draw in DRAWN.items():
            if self.records.get(part):
                draw(self.records[part], PICTURES / f"bench-{part}.svg")


DRAWN = {
    "throughput": figures.draw_throughput,
    "first": figures.draw_firsts,
    "growth": figures.draw_growth,
}


def machine() -> dict[str, Any]:
    """Where and when a run took place."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "date": time.strftime("%Y-%m-%d"),
    }


def main(given: list[str] | None = None) -> int:
    run = Run(arguments(given))
    start = time.perf_counter()
    for part in run.options.part:
        getattr(run, part)()
        say(f"  {part}: done after {time.perf_counter() - start:.0f} s")
    for name, text in run.tables().items():
        print(f"\n{name}\n\n{text}")
    if run.options.json:
        run.options.json.write_text(json.dumps(run.records, indent=1) + "\n")
    if run.options.publish:
        run.publish()
    print(f"\n{time.perf_counter() - start:.0f} s; {len(run.bad)} wrong or failed")
    for text in run.bad:
        print(f"  {text}")
    return 1 if run.bad else 0


if __name__ == "__main__":
    sys.exit(main())
