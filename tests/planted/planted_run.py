"""Runs the tests that reach a fault, in a copy of the tree that has it, until one fails."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

from planted_faults import Fault, Gone, planted

HERE = Path(__file__).parent
#: which tests are run, in this order -> arguments of pytest
STAGES = {"make test": ["-m", "not rest"], "the rest": ["-m", "rest"]}
#: seconds without a new test after which a process hangs
PATIENCE = 300.0


def modules_that_reach(fault: Fault, record: dict[str, Any]) -> list[str]:
    """The test modules that run a line of the fault, those that run the fewest files first.

    For lines that only run at import: those that run anything in that file.
    """
    name = fault.module_in(record["sources"])
    source = record["sources"][name]
    tests = {t: set(files[name]) for t, files in record["tests"].items() if name in files}
    for wanted in (fault.changed_lines(source), {*fault.lines_in(source)}):
        found = [t for t, lines in tests.items() if lines & wanted]
        if found:
            break
    else:
        found = list(tests)
    return sorted(found, key=lambda t: (len(record["tests"][t]), t))


def files_of(tree: Path) -> list[str]:
    """The files of a checkout, but for those that git ignores."""
    command = ["git", "-C", tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if (tree / name).is_file()]


def batches(modules: list[str]) -> Iterator[list[str]]:
    """A few modules, then more and more: a process collects all its tests before it runs one."""
    start, size = 0, 1
    while start < len(modules):
        yield modules[start : start + size]
        start, size = start + size, 2 * size


@dataclass(frozen=True)
class Outcome:
    """What one process of pytest found."""

    #: ``failed``, ``crash``, ``hang``, ``collection``, ``import``; empty: nothing
    how: str = ""
    test: str = ""


@dataclass(frozen=True)
class Result:
    """What is kept of one fault."""

    run: str
    fault: str
    #: the stage whose tests found it; empty: none did
    found: str
    how: str
    test: str
    seconds: float
    #: whether the time was over before all tests had run
    unfinished: bool = False


class Copy:
    """A copy of a tree in a folder of its own, in which tests run."""

    def __init__(self, tree: Path, files: list[str], folder: Path) -> None:
        self.root = folder / "tree"
        self.watched = folder / "watched"
        for name in files:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, self.root / name)
        path = os.pathsep.join([str(self.root), str(HERE)])
        self.environment = {
            **os.environ,
            "PYTHONPATH": path,
            "PHINTYS_CACHE_DIR": str(folder / "cache"),
            "WATCH_OUT": str(self.watched),
        }
        for name in ("PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS"):
            self.environment.pop(name, None)

    def pytest(self, arguments: list[str], until: float) -> Outcome | None:
        """What the tests find; None if the time is over first."""
        self.watched.write_text("")
        shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)
        command = [sys.executable, "-m", "pytest", "-x", "-p", "watch_plugin"]
        quiet = ["-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", "--tb=no"]
        process = subprocess.Popen(
            [*command, *quiet, *arguments],
            cwd=self.root, env=self.environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with contextlib.suppress(OSError):  # where memory runs out, it is this process's
            Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000")
        try:
            return self._outcome(process, until)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()

    def _outcome(self, process: subprocess.Popen, until: float) -> Outcome | None:
        size, heard = 0, time.monotonic()
        while process.poll() is None:
            now = time.monotonic()
            if self.watched.stat().st_size != size:
                size, heard = self.watched.stat().st_size, now
            if now - heard > PATIENCE:
                return Outcome("hang", self._last()[1])
            if now > until:
                return None
            time.sleep(0.1)
        event, test = self._last()
        if process.returncode in (0, 5):
            return Outcome()
        if process.returncode == -signal.SIGKILL:  # the system had no memory
            return None
        if event == "start":
            return Outcome("crash", test)
        return Outcome(event or "import", test)

    def _last(self) -> tuple[str, str]:
        """The failure that was written, else the last event."""
        lines = self.watched.read_text(encoding="utf-8").splitlines()
        failures = [line for line in lines if not line.startswith("start")]
        event, _, test = (failures or lines or [""])[-1].partition(" ")
        return event, test


@dataclass
class Campaign:
    """A run over several faults; results go to a file, and what is in it is not run again."""

    name: str
    tree: Path
    record: dict[str, Any]
    results: Path
    stages: list[str]
    budget: float
    #: tests that fail without a fault too
    known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.lock = Lock()
        for row in read_rows(self.results):
            if row.get("known") and row["run"] == self.name:
                self.known.add(row["known"])

    def run(self, faults: list[Fault], workers: int) -> None:
        done = {r.fault for r in read_results(self.results) if r.run == self.name}
        left = [f for f in faults if f.key not in done]
        print(f"{self.name}: {len(left)} of {len(faults)} faults are left", flush=True)
        copies: SimpleQueue[Copy] = SimpleQueue()
        files = files_of(self.tree)
        with tempfile.TemporaryDirectory(prefix="planted-") as folder:
            for k in range(workers):
                copies.put(Copy(self.tree, files, Path(folder) / str(k)))
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(lambda fault: self._one(fault, copies), left))

    def _one(self, fault: Fault, copies: SimpleQueue[Copy]) -> None:
        copy = copies.get()
        try:
            result = self.examine(fault, copy)
        except Gone as gone:
            print(f"{gone}: draw again", flush=True)
        else:
            self._keep(asdict(result))
            print(described(fault, result), flush=True)
        finally:
            copies.put(copy)

    def _keep(self, row: dict[str, Any]) -> None:
        with self.lock, self.results.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def examine(self, fault: Fault, copy: Copy) -> Result:
        """Run the tests that reach it, stage after stage, until one fails or the time is over."""
        start = time.monotonic()
        present = [t for t in modules_that_reach(fault, self.record) if (copy.root / t).exists()]
        for stage, batch in ((s, b) for s in self.stages for b in batches(present)):
            outcome = self._batch(fault, copy, stage, batch, start + self.budget)
            seconds = round(time.monotonic() - start, 1)
            if outcome is None:
                return Result(self.name, fault.key, "", "", "", seconds, True)
            if outcome.how:
                return Result(self.name, fault.key, stage, outcome.how, outcome.test, seconds)
        return Result(self.name, fault.key, "", "", "", round(time.monotonic() - start, 1))

    def _batch(
        self, fault: Fault, copy: Copy, stage: str, batch: list[str], until: float
    ) -> Outcome | None:
        """What these tests find, but for tests that fail without the fault too."""
        while True:
            left_out = [f"--deselect={test}" for test in sorted(self.known)]
            modules = [t for t in batch if t not in self.known]
            if not modules:
                return Outcome()
            with planted(copy.root, fault):
                outcome = copy.pytest([*left_out, *STAGES[stage], *modules], until)
            if outcome is None or not outcome.how:
                return outcome
            why = "fails without a fault"
            if not self._fails_anyway(copy, outcome, modules):
                if self._fails_again(fault, copy, outcome.test):
                    return outcome
                why = "does not fail each time"
            if not outcome.test:
                raise RuntimeError(f"Tests of {self.tree} do not start without a fault: {modules}")
            self.known.add(outcome.test)
            self._keep({"run": self.name, "known": outcome.test})
            print(f"{outcome.test} {why}: left out", flush=True)

    def _fails_anyway(self, copy: Copy, outcome: Outcome, modules: list[str]) -> bool:
        """Whether the test fails without the fault too, or no test starts."""
        chosen = [outcome.test] if outcome.test else ["--collect-only", *modules]
        if outcome.how == "collection":
            chosen = ["--collect-only", outcome.test]
        again = copy.pytest(chosen, time.monotonic() + PATIENCE)
        return again is None or bool(again.how)

    def _fails_again(self, fault: Fault, copy: Copy, test: str) -> bool:
        """Whether a test fails with the fault a second time; True if none is known."""
        if not test:
            return True
        with planted(copy.root, fault):
            again = copy.pytest([test], time.monotonic() + PATIENCE)
        return again is None or bool(again.how)


def read_rows(path: Path) -> list[dict[str, Any]]:
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if path.exists()
        else []
    )


def read_results(path: Path) -> list[Result]:
    return [Result(**row) for row in read_rows(path) if "fault" in row]


def described(fault: Fault, result: Result) -> str:
    """One line: what it is, and what found it."""
    what = f"{fault.name:16} {fault.kind:11} {fault.module}: {fault.function}"
    if result.found:
        how = "" if result.how == "failed" else f" ({result.how})"
        return f"{what}\n    {result.found}, {result.seconds:.0f} s: {result.test or '-'}{how}"
    limit = f"not found within {result.seconds:.0f} s" if result.unfinished else "nothing"
    return f"{what}\n    {limit}"


def table(faults: list[Fault], results: list[Result]) -> str:
    """Each fault and what found it in each run, the faults that no test finds, and sums."""
    runs = list(dict.fromkeys(r.run for r in results))
    found = {(r.run, r.fault): r for r in results}
    lines = [
        "| fault | kind | function | " + " | ".join(runs) + " |",
        "|---" * (3 + len(runs)) + "|",
    ]
    for fault in faults:
        cells = [_cell(found.get((run, fault.key))) for run in runs]
        where = f"{fault.module}: {fault.function}"
        lines.append(" | ".join([f"| {fault.name}", fault.kind, where, *cells]) + " |")
    for run in runs:
        own = [found[run, f.key] for f in faults if (run, f.key) in found]
        sums = ", ".join(f"{sum(r.found == s for r in own)} by {s}" for s in STAGES)
        missed = sum(not r.found for r in own)
        lines.append(f"\n{run}: of {len(own)} faults {sums}, {missed} by nothing")
    return "\n".join(lines)


def _cell(result: Result | None) -> str:
    if result is None:
        return "not run"
    if not result.found:
        return "not found in time" if result.unfinished else "nothing"
    how = "" if result.how == "failed" else f" ({result.how})"
    rest = "" if result.found == "make test" else f"{result.found}: "
    return f"{rest}{result.test}{how}"
