"""Runs test modules in two processes until a deadline, and says what is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from run_alone import command

PROGRAM = Path(__file__).with_name("quick_run.py")
#: seconds after the deadline in which a test that runs then may end
GRACE = 15
PASSED = {0, 5}  # 5: all tests of these modules were skipped or deselected


@dataclass(frozen=True)
class Record:
    """What a process has recorded: numbers of tests by module, and the tests that began."""

    collected: dict[str, int]
    began: list[str]


def read_record(path: Path) -> Record:
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    collected = {
        name: count for kind, name, *rest in entries if kind == "collected" for count in rest
    }
    return Record(collected, [name for kind, name, *_ in entries if kind == "began"])


def run_all(root: Path, modules: list[str], start: float, deadline: float) -> int:
    """Runs every second module in one process, the others in another; 0 if all tests pass."""
    count = min(2, os.cpu_count() or 1, len(modules))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / str(k) for k in range(count)]
        processes = [
            started(root, path, modules[k::count], deadline, hidden=k > 0)
            for k, path in enumerate(paths)
        ]
        statuses = [ended_by(process, deadline + GRACE) for process in processes]
        records = [read_record(path) for path in paths]
        for path in paths[1:]:
            print(path.with_suffix(".output").read_text(encoding="utf-8"), end="")
    for status, record in zip(statuses, records, strict=True):
        if status not in {*PASSED, 1}:
            print(ended(status, record))
    print(summary(modules, records, time.time() - start))
    return int(not PASSED.issuperset(statuses))


def ended_by(process: subprocess.Popen[bytes], limit: float) -> int:
    """The status of a process; it is killed at the time ``limit``."""
    try:
        return process.wait(max(0.0, limit - time.time()))
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def started(
    root: Path, path: Path, modules: list[str], deadline: float, hidden: bool
) -> subprocess.Popen[bytes]:
    """A process whose record is written to ``path``; a hidden one prints to a file beside it."""
    path.touch()
    arguments = [sys.executable, PROGRAM, path, str(deadline), *modules]
    with path.with_suffix(".output").open("w") as output:
        stream = output if hidden else None
        return subprocess.Popen(arguments, cwd=root, stdout=stream, stderr=stream)


def ended(status: int, record: Record) -> str:
    """What is said of a process that did not come to the end of its tests."""
    last = f"; its last test alone: {command(record.began[-1])}" if record.began else ""
    return f"quick: a process ended with status {status}{last}"


def summary(modules: list[str], records: list[Record], seconds: float) -> str:
    """How many tests ran, and what was left."""
    collected = {name: count for record in records for name, count in record.collected.items()}
    ran = Counter(name.partition("::")[0] for record in records for name in record.began)
    left = [name for name in modules if name not in ran and collected.get(name) != 0]
    tests = sum(collected[name] - count for name, count in ran.items())
    done = f"{counted(ran.total(), 'test')} of {counted(len(ran), 'module')}"
    text = f"quick: ran {done} in {seconds:.0f} s"
    if not left and not tests:
        return f"{text}; nothing is left"
    parts = [f"{counted(len(left), 'module')} near the changed files"] if left else []
    parts += [f"{counted(tests, 'test')} of a module that it began"] if tests else []
    return f"{text}; left {' and '.join(parts)}: make test"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
