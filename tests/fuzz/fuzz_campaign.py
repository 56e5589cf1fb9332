"""Many programs in worker processes: a crash is a finding, and the next seed goes on."""

from __future__ import annotations

import faulthandler
import hashlib
import multiprocessing
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import fuzz_generate
import numpy as np
from fuzz_compare import mismatch
from fuzz_draw import Fault
from fuzz_minimise import confine, in_child, minimise, probe
from fuzz_program import Built, Program, Recorded, all_finite
from fuzz_run import Finding, Judge, Plan, mode

import phintys
import phintys.tensor as pt

Result = tuple[int, dict[str, int], list[Finding]]
#: seconds without an answer after which a worker is stopped: Numba may take a minute of a processor
#: that others use too
PATIENCE = 1200.0
#: seeds that a worker takes before it is replaced: what frameworks remember does not pile up
STINT = 2000


@dataclass
class Campaign:
    """Which seeds are run, and how."""

    first: int
    count: int
    workers: int
    shares: dict[str, float]
    widths: list[int]
    corpus: Path | None = None
    minimise: bool = True
    #: stop at the first finding
    stop: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[int, Finding]] = field(default_factory=list)
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    def plan(self, seed: int) -> Plan:
        """What is done with the program of a seed."""
        return Plan.drawn(random.Random(~seed), self.shares, self.widths)

    def run(self) -> None:
        """All seeds; findings are printed, minimised and kept."""
        results = self.results()
        for seed, counts, findings in results:
            self.counts.update(counts)
            self.counts["graphs"] += 1
            for finding in findings:
                self.findings.append((seed, finding))
                self.report(seed, finding)
            if self.stop and findings:
                break
        results.close()

    def results(self) -> Generator[Result]:
        """(seed, runs by backend, findings) as they come."""
        share = -(-self.count // self.workers)
        ends = [self.first + min(self.count, share * (k + 1)) for k in range(self.workers)]
        starts = [self.first + min(self.count, share * k) for k in range(self.workers)]
        active = [Worker(self, a, b) for a, b in zip(starts, ends) if a < b]
        try:
            yield from self._received(active)
        finally:
            for worker in active:
                worker.kill()

    def _received(self, active: list[Worker]) -> Generator[Result]:
        while active:
            ready = wait([w.reader for w in active], timeout=5)
            for worker in list(active):
                if worker.reader in ready:
                    result = worker.receive()
                elif time.monotonic() - worker.heard > PATIENCE:
                    result = worker.stop()
                else:
                    continue
                if result is not None:
                    yield result
                if worker.next >= worker.end:
                    active.remove(worker)

    def limit(self, finding: Finding) -> int:
        """How many findings of one signature are minimised."""
        return 4 if finding.signature[1] in ("value", "other shapes") else 1

    def report(self, seed: int, finding: Finding) -> None:
        """Print a finding, minimised unless there were several like it."""
        self.seen[finding.signature] += 1
        print(f"seed {seed}: {finding}", flush=True)
        if (
            finding.backend == "fuzzer"
            or not self.minimise
            or self.seen[finding.signature] > self.limit(finding)
        ):
            return
        plan = self.plan(seed)
        small = minimise(program_of(seed), finding.signature, plan)
        found = [f for f in probe(small, plan) if f.signature == finding.signature]
        print(small.text(), flush=True)
        if self.corpus is not None:
            keep(self.corpus, small, f"Seed {seed}.  {found[0] if found else finding}")


def keep(corpus: Path, program: Program, symptom: str) -> None:
    """Write a program as a file that can be run and replayed."""
    digest = hashlib.sha256(program.text().encode()).hexdigest()[:8]
    words = re.findall(r"[a-z0-9]+", symptom.split(".  ")[1].lower())
    text = f'"""{symptom}"""'.replace("\\", "/") + "\n\n" + HEAD + program.text()
    corpus.mkdir(parents=True, exist_ok=True)
    (corpus / f"{'_'.join(words[:4])}_{digest}.py").write_text(text, encoding="utf-8")


HEAD = """# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

"""


def replay_files(paths: list[Path], backends: list[str], widths: list[int]) -> dict[Path, str]:
    """What is wrong with programs in files, by file; each runs in a process of its own."""
    warm_up()
    found = {}
    for path in paths:
        problems = []
        for width in widths:
            chosen = backends if width == widths[0] else [b for b in backends if b == "llvm"]
            problems += in_child(lambda p=path, c=chosen, w=width: examine_file(p, c, w), 300)
        found[path] = "; ".join(map(str, problems))
    return found


def warm_up() -> None:
    """Compile a function: rules are read and LLVM is set up once, not in each forked process."""
    x = pt.dvector("x")
    y = (pt.exp(x) * x).sum()
    phintys.function([x], [y, phintys.grad(y, x)], mode=mode("llvm", ()))([1.0, 2.0])


def examine_file(path: Path, backends: list[str], width: int) -> list[Finding]:
    """What is wrong with a program in a file."""
    recorded = Recorded(path)
    try:
        values = recorded.truth()
    except Exception as exc:
        if not recorded.fails:
            return [Finding("reference", f"{type(exc).__name__}: {exc}")]
        values = None
    if values is not None and "expected" in recorded.names:
        for value, expected in zip(values, recorded.names["expected"], strict=True):
            problem = mismatch(value, np.asarray(expected))
            if problem:
                return [Finding("reference", problem)]
    also = recorded.names.get("backends", [])
    return Judge(recorded, values, Plan([*backends, *also], width, 3)).run()


def program_of(seed: int) -> Program:
    """The program that is drawn from a seed, or that drawing it found something in."""
    try:
        return fuzz_generate.generate(seed)[0]
    except Fault as fault:
        return fault.program


class Worker:
    """A process that works through seeds; it is started again after a crash."""

    def __init__(self, campaign: Campaign, start: int, end: int) -> None:
        self.campaign, self.next, self.end = campaign, start, end
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.reader, writer = context.Pipe(duplex=False)
        stop = min(self.end, self.next + STINT)
        self.process = context.Process(
            target=_work, args=(self.campaign, self.next, stop, writer), daemon=True
        )
        self.process.start()
        writer.close()
        self.heard = time.monotonic()

    def receive(self) -> Any:
        """A result; that of a crash if the process has ended; None if it starts again."""
        self.heard = time.monotonic()
        try:
            result = self.reader.recv()
        except (EOFError, OSError):
            self.process.join()
            return self._lost(f"crash {self.process.exitcode}: of the process")
        self.next = result[0] + 1
        return result

    def stop(self) -> Any:
        """End a process that does not answer."""
        self.kill()
        return self._lost(f"hangs: more than {PATIENCE:.0f} s")

    def kill(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()

    def _lost(self, message: str) -> Any:
        self.reader.close()
        finished = self.process.exitcode == 0
        seed = self.next
        if not finished:
            self.next += 1
        if self.next < self.end:
            self._start()
        return None if finished else (seed, {}, [Finding("process", message)])


def _work(campaign: Campaign, start: int, stop: int, writer: Connection) -> None:
    """Run seeds and send what was found."""
    faulthandler.disable()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    confine()
    for seed in range(start, stop):
        try:
            counts, findings = one(seed, campaign.plan(seed))
        except Exception as exc:
            counts, findings = {}, [Finding("fuzzer", f"{type(exc).__name__}: {exc}")]
        writer.send((seed, counts, findings))
    writer.close()


def one(seed: int, plan: Plan) -> tuple[dict[str, int], list[Finding]]:
    """What is wrong with the program of a seed."""
    try:
        program, g = fuzz_generate.generate(seed)
    except Fault as fault:
        return {}, [Finding(f"reference, {fault.where}", fault.message)]
    if not program.outputs:
        return {}, []
    values = None if program.fails else fuzz_generate.truth(g, program)
    built = Built(program)
    built.finite = all_finite(g.known.values())
    judge = Judge(built, values, plan)
    findings = judge.run()
    return dict(judge.counts), findings
