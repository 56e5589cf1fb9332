"""A plugin of pytest that records which lines of `phintys/` each test module runs.

``PYTHONPATH=tests/planted pytest -p reach_plugin`` writes ``.reach/record.json.gz``, or the file
that the environment variable ``REACH_OUT`` names.  The plugin needs nothing else of this
repository, so it also records other checkouts.  With pytest-xdist each worker writes a part; the
main process merges them.  Python 3.12 or newer.

The record::

    tests     test module -> file -> lines that run in its tests
    import    file -> lines that run while modules are imported
    branches  file -> [line, qualified name, number of the branch in its line, 1 if it jumps]
    sources   file -> text

Branches are those of all test modules together; the rare side of a branch that a test module runs
thousands of times may be missing.  What runs in other processes is not recorded.
"""

from __future__ import annotations

import dis
import gzip
import importlib.util
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

PACKAGE = "phintys"
IMPORT = "import"
#: a worker writes what it has after so many seconds, so that a crash does not lose all
PERIOD = 300.0
#: a branch that goes the same way so often in a row is not watched for the rest of a test module
REPEATED = 300

Lines = dict[str, set[int]]
Branch = tuple[int, str, int, int]


def package_folder() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise pytest.UsageError(f"There is no package {PACKAGE} to record.")
    return Path(spec.origin).parent


class Recorder:
    """The lines and branches that ran, since it was started, by test module."""

    def __init__(self, folder: Path) -> None:
        self.files = {str(p): p.relative_to(folder.parent).as_posix() for p in folder.rglob("*.py")}
        self.reached: dict[str, Lines] = defaultdict(self._no_lines)
        self.current = self.reached[IMPORT]
        self.module = IMPORT
        self.importing = 0
        # branches: key -> the destinations that were seen; key -> code object, and offset in it
        self.destinations: dict[int, tuple[int, ...]] = {}
        self.places: dict[int, tuple[CodeType, int]] = {}
        self.repeated: dict[int, int] = {}

    def _no_lines(self) -> Lines:
        return {name: set() for name in self.files}

    # ----- events
    def start(self) -> None:
        m, events = sys.monitoring, sys.monitoring.events
        tool = next(k for k in (4, 3, m.COVERAGE_ID) if m.get_tool(k) is None)
        m.use_tool_id(tool, "reach")
        m.register_callback(tool, events.LINE, self.on_line)
        if hasattr(events, "BRANCH_LEFT"):  # Python 3.14: each side is disabled for itself
            sides = events.BRANCH_LEFT | events.BRANCH_RIGHT
            m.register_callback(tool, events.BRANCH_LEFT, self.on_side)
            m.register_callback(tool, events.BRANCH_RIGHT, self.on_side)
        else:
            sides = events.BRANCH
            m.register_callback(tool, events.BRANCH, self.on_branch)
        m.set_events(tool, events.LINE | sides)
        self._watch_imports()

    def on_line(self, code: CodeType, line: int) -> Any:
        lines = self.current.get(code.co_filename)
        if lines is not None:
            lines.add(line)
        return sys.monitoring.DISABLE

    def on_branch(self, code: CodeType, offset: int, destination: int) -> Any:
        # An address within the code object, whose bytecode is part of it: no other branch has it.
        # The hash of a code object would read all its bytecode.
        key = id(code) + offset
        seen = self.destinations.get(key)
        if seen is None:
            if code.co_filename not in self.files:
                return sys.monitoring.DISABLE
            self.destinations[key] = (destination,)
            self.places[key] = (code, offset)
            return None
        if len(seen) == 2:
            return sys.monitoring.DISABLE
        if destination not in seen:
            self.destinations[key] = (*seen, destination)
            return sys.monitoring.DISABLE
        self.repeated[key] = count = self.repeated.get(key, 0) + 1
        return sys.monitoring.DISABLE if count >= REPEATED else None

    def on_side(self, code: CodeType, offset: int, destination: int) -> Any:
        self.on_branch(code, offset, destination)
        return sys.monitoring.DISABLE

    # ----- whose lines they are
    def enter(self, module: str) -> None:
        """Lines that run from now on belong to this test module."""
        if module != self.module:
            self.module = module
            self._turn_to(module)

    def _turn_to(self, owner: str) -> None:
        self.current = self.reached[owner]
        self.repeated.clear()
        sys.monitoring.restart_events()

    @contextmanager
    def import_of_a_module(self) -> Iterator[None]:
        self.importing += 1
        if self.importing == 1 and self.module != IMPORT:
            self._turn_to(IMPORT)
        try:
            yield
        finally:
            self.importing -= 1
            if self.importing == 0 and self.module != IMPORT:
                self._turn_to(self.module)

    def _watch_imports(self) -> None:
        """What runs while a module of the package is imported within a test is kept apart."""
        execute = SourceFileLoader.exec_module

        def exec_module(loader: SourceFileLoader, module: Any) -> None:
            if loader.path not in self.files:
                return execute(loader, module)
            with self.import_of_a_module():
                return execute(loader, module)

        SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign]

    # ----- result
    def record(self) -> dict[str, Any]:
        def named(lines: Lines) -> dict[str, list[int]]:
            return {self.files[f]: sorted(v) for f, v in sorted(lines.items()) if v}

        tests = {t: named(lines) for t, lines in sorted(self.reached.items())}
        return {
            "import": tests.pop(IMPORT),
            "tests": tests,
            "branches": {f: sorted(b) for f, b in sorted(self._branches().items())},
        }

    def _branches(self) -> dict[str, set[Branch]]:
        described: dict[int, dict[int, tuple[int, int, int]]] = {}
        found: dict[str, set[Branch]] = defaultdict(set)
        for key, (code, offset) in list(self.places.items()):
            if id(code) not in described:
                described[id(code)] = described_branches(code)
            line, order, length = described[id(code)][offset]
            for destination in self.destinations[key]:
                jumps = not 0 < destination - offset <= length
                branch = (line, code.co_qualname, order, int(jumps))
                found[self.files[code.co_filename]].add(branch)
        return found


def described_branches(code: CodeType) -> dict[int, tuple[int, int, int]]:
    """For each offset: its line, how many branches that line has before it, length with caches."""
    found: dict[int, tuple[int, int, int]] = {}
    seen: Counter[int] = Counter()
    steps = [(i.offset, i.opname, i.positions) for i in dis.get_instructions(code)]
    ends = [offset for offset, _, _ in steps[1:]] + [len(code.co_code)]
    for (offset, name, positions), end in zip(steps, ends):
        line = (positions and positions.lineno) or code.co_firstlineno
        found[offset] = (line, seen[line], end - offset)
        seen[line] += "JUMP_IF" in name or "FOR_ITER" in name or name == "SEND"
    return found


def merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One record of those of several processes."""
    tests: dict[str, dict[str, set]] = defaultdict(lambda: defaultdict(set))
    apart: dict[str, dict[str, set]] = defaultdict(lambda: defaultdict(set))
    for part in parts:
        for module, files in part["tests"].items():
            for name, lines in files.items():
                tests[module][name].update(lines)
        for kind in ("import", "branches"):
            for name, found in part[kind].items():
                apart[kind][name].update(tuple(b) if kind == "branches" else b for b in found)

    def in_order(files: dict[str, set]) -> dict[str, list]:
        return {name: sorted(found) for name, found in sorted(files.items())}

    return {
        "import": in_order(apart["import"]),
        "tests": {module: in_order(files) for module, files in sorted(tests.items())},
        "branches": in_order(apart["branches"]),
    }


def write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".new")
    unfinished.write_bytes(gzip.compress(json.dumps(record).encode(), 4))
    unfinished.replace(path)


def read(path: Path) -> dict[str, Any]:
    return json.loads(gzip.decompress(path.read_bytes()))


class Plugin:
    """Tells the recorder where tests begin, and writes what it has."""

    def __init__(self, recorder: Recorder, config: pytest.Config) -> None:
        self.recorder = recorder
        self.out = config.rootpath / os.environ.get("REACH_OUT", ".reach/record.json.gz")
        worker = getattr(config, "workerinput", {}).get("workerid", "main")
        self.parts = self.out.parent / f"{self.out.name}.parts"
        self.part = self.parts / f"{worker}.json.gz"
        self.is_main = worker == "main"
        self.root = package_folder().parent
        self.written = time.monotonic()
        if self.is_main:
            for old in self.parts.glob("*.json.gz"):
                old.unlink()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.recorder.enter(item.nodeid.partition("::")[0])
        if time.monotonic() - self.written > PERIOD:
            self.write_part()
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self.write_part()

    def pytest_unconfigure(self) -> None:
        """The workers have ended: all parts are there."""
        if self.is_main:
            record = merged([read(part) for part in sorted(self.parts.glob("*.json.gz"))])
            files = sorted({*self.recorder.files.values()})
            record["sources"] = {f: (self.root / f).read_text(encoding="utf-8") for f in files}
            write(self.out, record)

    def write_part(self) -> None:
        write(self.part, self.recorder.record())
        self.written = time.monotonic()


_started: list[Recorder] = []


def pytest_addoption() -> None:
    """Start: this hook is called when the plugin is loaded, before any conftest is."""
    if not hasattr(sys, "monitoring"):
        raise pytest.UsageError("reach_plugin needs Python 3.12 or newer.")
    _started.append(Recorder(package_folder()))
    _started[0].start()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Plugin(_started[0], config), "reach")
