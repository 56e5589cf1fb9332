"""``python -m tests.robustness.injection``: the table of injected failures.

Each place of `injection_points` fails in turn, at its first call, its second, and so on until it is
called no more, while each program of `injection_programs` is made and called.  Each trial is in a
process of its own.  It must end in the right result or in a clear error; the next call, and a new
function from the same cache, must give the right result; and nothing may be left behind.

There are three kinds of trial:

    call    the function has been made and called before
    make    it is made and called, and nothing is in the cache
    load    it is made and called, and its code is in the cache
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from _testcapi import remove_mem_hooks

import injection_points as points
import numpy as np
from injection_points import CALL, CLEAR, LOAD, MAKE, Countdown, Point
from injection_programs import PROGRAMS, Program
from lost_code import hold_code, print_without_locals

from phintys.backends.llvm import costs
from phintys.backends.llvm.routine import parts
from phintys.compile import native
from phintys.locks import making

#: Also an error that the program ends in by itself.
RIGHT = "the right result"
#: After so many allocations in a row that are not missed, none is made any more.
_QUIET = 10
#: Where there are more calls than that, one of so many fails.
_FEW, _STEP = 40, 37
#: Where there are thousands of calls, one of so many fails.
_RARE = 370
#: After so many mistakes of one place and program the next one is looked at.
_ENOUGH = 5
#: A trial takes no longer, in seconds.
_PATIENCE = 100
#: A call is repeated so often to see whether it leaves memory behind.
_REPEATS = 40
#: What is remembered grows at first: objects are lost if there are more after each of some rounds.
_ROUNDS = 12


class Wrong(AssertionError):
    """What must not happen."""


# ------------------------------------------------------------------------------------ one trial


class Trial:
    """A program in a mode, and one failure in it."""

    def __init__(self, when: str, program: Program, mode: str) -> None:
        self.when, self.program, self.mode = when, program, mode
        self.function: Any = None
        self.state = program.state()
        #: results and new state, as bits
        self.expected: Any = None

    # ----- what is done
    def make(self) -> None:
        self.function = self.program.make(self.mode)

    def call(self) -> Any:
        return self.function(*self.program.arguments, **self.program.names)

    def task(self) -> Any:
        if self.when != CALL:
            self.make()
        return self.call()

    def prepare(self) -> None:
        """Make and call it without a failure, and keep what comes out."""
        self.make()
        self.expected = self.observed()
        again = self.observed()
        if self.expected != again:
            raise Wrong("two calls differ without a failure")

    def observed(self) -> Any:
        """The bits of a call without a failure; the state is as before, then and now."""
        self.program.set_state(self.state)
        try:
            results = bits(self.call())
        except Exception as error:
            if self.program.error is None or not isinstance(error, self.program.error):
                raise Wrong(f"a later call raises {error!r}") from error
            results = type(error).__name__
        after = bits(self.program.state())
        self.program.set_state(self.state)
        return results, after

    # ----- with a failure
    def run(self, point: Point, first: int) -> tuple[int, str]:
        """How often the place was called before anything failed, and what the trial ended in.

        -1 calls: a call failed.  `Wrong` if the end is wrong.
        """
        countdown = points.countdown_of(point)
        countdown.disarm()
        if self.when != CALL:
            points.forget_the_machine()
        blocks, files = points.blocks_in_use(), open_files()
        with point.fault(countdown) as start:
            countdown.arm(first)
            outcome, error, results = self.attempt(start or nothing)
            countdown.disarm()
        fired = countdown.fired or start is not None
        calls = -1 if fired else countdown.words[0]
        if error is None and bits(results) != self.expected[0]:
            raise Wrong("a wrong result")
        self.check_end(point, outcome, error)
        error = None
        self.check_state(blocks, files)
        self.check_next()
        # Numba loses references where an exception passes through what it has compiled
        if self.when == CALL and fired and self.mode in points.BOTH:
            self.check_leaks(point, first)
        return calls, outcome

    def attempt(self, start: Callable[[], None]) -> tuple[str, BaseException | None, Any]:
        """What the task ended in: a name, an exception, results."""
        try:
            start()
            try:
                results = self.task()
            finally:
                remove_mem_hooks()
        except BaseException as error:
            name = type(error).__name__
            return RIGHT if name == self.expected[0] else name, error, None
        return RIGHT, None, results

    def check_end(self, point: Point, outcome: str, error: BaseException | None) -> None:
        state = bits(self.program.state())
        before = bits(self.state)
        expected = before if error is not None else self.expected[1]
        if state != expected:
            raise Wrong(f"{outcome}, and shared variables have changed")
        allowed = (*CLEAR, *point.errors, *([self.program.error] if self.program.error else []))
        if error is not None and not isinstance(error, allowed):
            raise Wrong(f"an unclear error: {error!r}") from error

    def check_state(self, blocks: int, files: int) -> None:
        if not gc.isenabled():
            raise Wrong("garbage collection is switched off")
        if not is_free(making):
            raise Wrong("the lock is held")
        if points.blocks_in_use() != blocks:
            raise Wrong(f"{points.blocks_in_use() - blocks} blocks of memory are lost")
        if open_files() > files:
            raise Wrong("a file is left open")
        left = [p.name for p in cache_files() if p.name.startswith("phintys-")]
        if left:
            raise Wrong(f"temporary files are left: {left}")

    def check_next(self) -> None:
        """The function that there is, and new ones from memory and from the cache, are right."""
        if self.function is not None and self.observed() != self.expected:
            raise Wrong("the next call is wrong")
        if self.when == CALL:
            return
        for forget in (False, True):
            if forget:
                native._recent.clear()
            self.make()
            if self.observed() != self.expected:
                raise Wrong("the next function is wrong")

    def check_leaks(self, point: Point, first: int) -> None:
        """The same failure many times takes no memory."""
        if point.fault is points.no_memory or point.name == points.EACH:
            return
        countdown = points.countdown_of(point)
        with point.fault(countdown):
            rounds = (self.lost(countdown, first) for _ in range(_ROUNDS))
            if all(lost >= 0.9 for lost in rounds):
                raise Wrong("objects are lost in each call that fails")

    def lost(self, countdown: Countdown, first: int) -> float:
        """How many more objects there are for each of some calls."""
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(_REPEATS):
            countdown.arm(first)
            with contextlib.suppress(BaseException):
                self.task()
            countdown.disarm()
            self.program.set_state(self.state)
        gc.collect()
        return (sys.getallocatedblocks() - before) / _REPEATS


def nothing() -> None:
    pass


def bits(results: Any) -> Any:
    """Results as something to compare."""
    if not isinstance(results, list):
        results = [results]
    return [_bits(r) for r in results]


def _bits(result: Any) -> Any:
    if isinstance(result, np.random.Generator):
        return str(result.bit_generator.state)
    return (str(np.asarray(result).dtype), np.shape(result), np.asarray(result).tobytes())


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def is_free(lock: Any) -> bool:
    """Whether another thread can take a lock."""
    found = []

    def take() -> None:
        found.append(lock.acquire(blocking=False))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return found[0]


def cache_files() -> list[Path]:
    folder = os.environ["PHINTYS_CACHE_DIR"]
    return list(Path(folder).iterdir()) if os.path.isdir(folder) else []


# ------------------------------------------------------------------------------- many trials


class Finding(NamedTuple):
    """What a trial ended in; ``calls`` of the place if none of them failed, or else -1."""

    calls: int
    outcome: str
    wrong: str = ""

    @property
    def fired(self) -> bool:
        return self.calls < 0


def in_child(task: Callable[[], tuple[int, str]]) -> Finding:
    """Run a task in a process of its own."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if not process:
        os.close(reading)
        signal.alarm(_PATIENCE)
        os.write(writing, json.dumps(guarded(task)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        told = file.read()
    _, status = os.waitpid(process, 0)
    if told:
        return Finding(*json.loads(told))
    ended = os.waitstatus_to_exitcode(status)
    return Finding(-1, "a crash", "no end" if ended == -signal.SIGALRM else f"a crash, {ended}")


def is_worthwhile(when: str, mode: str, program: str) -> bool:
    """Whether something else is reached than in trials with other programs."""
    if mode not in points.BOTH:  # there nothing fails but an op's perform
        return program == "users_op"
    return when == CALL or program in ("product", "users_op", "layouts")


def guarded(task: Callable[[], tuple[int, str]]) -> Finding:
    try:
        return Finding(*task())
    except BaseException as error:
        cause = f" <- {error.__cause__!r}" if error.__cause__ else ""
        return Finding(-1, "wrong", f"{error!r}{cause}"[:400])


class Campaign:
    """All trials of some kinds, in some modes."""

    def __init__(self, folder: Path, every: int, wanted: str) -> None:
        self.folder, self.every, self.wanted = folder, every, wanted
        self.rows: dict[tuple[str, str, str], Counter[str]] = {}
        self.wrong: list[str] = []
        self.number = 0

    def run(self, when: str, mode: str, programs: Iterable[str]) -> None:
        """The trials of one kind in one mode; the process must not have made functions before."""
        chosen = [p for p in points.POINTS if when in p.when and mode in p.modes]
        chosen = [p for p in chosen if self.wanted in f"{p.kind} {p.name} {p.failure}"]
        for name in programs:
            if not is_worthwhile(when, mode, name):
                continue
            program = PROGRAMS[name]()
            trial = Trial(when, program, mode)
            if when == CALL:
                self.use_cache(self.folder / "cache")
                trial.prepare()
            else:
                trial.expected, _modules = self.rehearse(trial)
            hold_code()
            print_without_locals()
            for point in chosen:
                self.run_point(trial, point, name)

    def rehearse(self, trial: Trial) -> Any:
        """What a call gives, found in a child process that fills a cache; modules are imported."""
        import pickle

        kept = self.folder / f"cache-{trial.mode}"
        self.use_cache(kept)
        path = self.folder / "rehearsed"

        def task() -> tuple[int, str]:
            trial.prepare()
            path.write_bytes(pickle.dumps((trial.expected, sorted(sys.modules))))
            return 0, ""

        finding = in_child(task)
        if finding.wrong:
            raise Wrong(finding.wrong)
        expected, modules = pickle.loads(path.read_bytes())
        for module in modules:
            with contextlib.suppress(Exception):
                __import__(module)
        return expected, modules

    def run_point(self, trial: Trial, point: Point, program: str) -> None:
        row = self.rows.setdefault((point.kind, point.name, point.failure), Counter())
        quiet, before, start = 0, len(self.wrong), self.number
        for n in self.numbers(trial, point):
            self.number += 1
            if self.number % self.every:
                continue
            finding = self.one(trial, point, n)
            if finding.wrong:
                what = f"{trial.mode} {trial.when} {program}: {point.name} {point.failure} #{n}"
                self.wrong.append(f"{what}: {finding.wrong}")
                print("WRONG", self.wrong[-1], file=sys.stderr, flush=True)
            if finding.fired and not (finding.outcome == RIGHT and point.fault is points.no_memory):
                row[finding.outcome] += 1
                quiet = 0
            quiet += finding.outcome == RIGHT
            if len(self.wrong) - before > _ENOUGH:
                return
            if not finding.fired:
                self.number = start + bisect_right(self.numbers(trial, point), finding.calls)
                return
            if point.fault is points.no_memory and quiet > _QUIET:
                return

    def one(self, trial: Trial, point: Point, n: int) -> Finding:
        if trial.when != CALL:
            fresh = self.folder / "fresh"
            shutil.rmtree(fresh, ignore_errors=True)
            if trial.when == LOAD:
                shutil.copytree(self.folder / f"cache-{trial.mode}", fresh)
                for path in fresh.iterdir():  # used long ago: their times are changed
                    os.utime(path, (1e9, 1e9))
            self.use_cache(fresh)
        if trial.mode == "JAX":  # its threads do not survive a fork
            return guarded(lambda: trial.run(point, n))
        return in_child(lambda: trial.run(point, n))

    def numbers(self, trial: Trial, point: Point) -> Sequence[int]:
        """Which calls fail, one in each trial, in increasing order."""
        if point.name == points.EACH or point.fault is points.no_memory:
            return range(1, 10**6, 1 if trial.when == CALL else _RARE)
        return [*range(1, _FEW), *range(_FEW, 10**6, _STEP)]

    def use_cache(self, folder: Path) -> None:
        os.environ["PHINTYS_CACHE_DIR"] = str(folder)


# -------------------------------------------------------------------------------- the table


def table(rows: dict[tuple[str, str, str], Counter[str]], missing: str) -> str:
    """What failures ended in, and how often; ``missing`` stands where there were none."""
    merged: dict[tuple[Any, ...], tuple[list[str], Counter[str]]] = {}
    for (kind, name, failure), outcomes in rows.items():
        failures, total = merged.setdefault((kind, name, *sorted(outcomes)), ([], Counter()))
        failures.append(failure)
        total.update(outcomes)
    lines = ["| kind | place | failure | ends in |", "| --- | --- | --- | --- |"]
    for (kind, name, *_), (failures, total) in merged.items():
        found = ", ".join(f"{what} ({n})" for what, n in sorted(total.items()))
        lines.append(f"| {kind} | {name} | {', '.join(failures)} | {found or missing} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Inject failures, and print what they end in.")
    parser.add_argument("--when", nargs="*", default=[LOAD, MAKE, CALL])
    parser.add_argument(
        "--mode", nargs="*", default=["FAST_RUN", "C", "FAST_COMPILE", "NUMBA", "JAX"]
    )
    parser.add_argument("--program", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--point", default="", help="only places whose row contains this text")
    parser.add_argument("--every", type=int, default=1, help="one trial of so many")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    costs.THREAD_PICOSECONDS = 1  # whatever there is to do is enough for several threads
    parts._is_stream = lambda inst: False
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PHINTYS_CACHE_DIR"] = str(Path(folder) / "cache")
        points.install_native()
        points.install_c(folder)
        campaign = Campaign(Path(folder), options.every, options.point)
        for when in options.when:
            for mode in options.mode:
                campaign.run(when, mode, options.program)
    print(table(campaign.rows, "not reached" if options.every == 1 else "not in this sample"))
    trials = sum(sum(row.values()) for row in campaign.rows.values())
    print(f"\n{trials} failures injected, {len(campaign.wrong)} of them wrong.")
    took = os.times()
    print(
        f"{time.process_time() - start + took.children_user + took.children_system:.0f} s",
        file=sys.stderr,
    )
    return bool(campaign.wrong)


if __name__ == "__main__":
    sys.exit(main())
