"""A pytest plugin: a test that runs through without an assertion is an error.

Lines that hold an assertion are found in the source of each file of ``tests/`` and of
`phintys.testing`, and counted when they run, by `sys.monitoring` (Python 3.12 and newer; older ones
check nothing).  An assertion is an ``assert``, a call of ``raises``, ``warns``, ``assert_...`` and
the like, or a program that must not fail: ``exec(...)``, ``run(..., check=True)``.  The summary
says how many such lines ran.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType

import pytest

HERE = Path(__file__).parent
FOLDERS = (str(HERE), str(HERE.parent / "phintys" / "testing"))
#: functions that raise if something is wrong, beside those whose names begin with ``assert_``
ASSERTING = {"raises", "warns", "verify_grad", "exec"}


def _is_assertion(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Assert)
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name == "run":
        return any(k.arg == "check" and ast.unparse(k.value) == "True" for k in node.keywords)
    return name in ASSERTING or name.startswith("assert_")


@cache
def assertion_lines(path: str) -> frozenset[int]:
    """The lines of a source file that belong to an assertion."""
    nodes = [
        n for n in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))) if _is_assertion(n)
    ]
    return frozenset(line for n in nodes for line in range(n.lineno, n.end_lineno + 1))


class Counter:
    """How many lines with assertions have run since it was started."""

    def __init__(self) -> None:
        self.count = 0

    def start(self) -> None:
        self.count = 0
        monitoring = sys.monitoring
        self.tool = next(k for k in (3, 4) if monitoring.get_tool(k) is None)
        monitoring.use_tool_id(self.tool, "assertions of the tests")
        monitoring.register_callback(self.tool, monitoring.events.PY_START, self._enter)
        monitoring.register_callback(self.tool, monitoring.events.LINE, self._line)
        monitoring.set_events(self.tool, monitoring.events.PY_START)
        monitoring.restart_events()  # functions that an earlier session has entered count again

    def stop(self) -> None:
        sys.monitoring.set_events(self.tool, sys.monitoring.events.NO_EVENTS)
        sys.monitoring.free_tool_id(self.tool)

    def _enter(self, code: CodeType, offset: int) -> object:
        """Watch the lines of a function in these folders; each function is entered here once."""
        if code.co_filename.startswith(FOLDERS):
            sys.monitoring.set_local_events(self.tool, code, sys.monitoring.events.LINE)
        return sys.monitoring.DISABLE

    def _line(self, code: CodeType, line: int) -> object:
        if line not in assertion_lines(code.co_filename):
            return sys.monitoring.DISABLE
        self.count += 1
        return None


counter = Counter()


def pytest_configure(config: pytest.Config) -> None:
    if sys.version_info >= (3, 12):
        counter.start()


def pytest_unconfigure() -> None:
    if sys.version_info >= (3, 12):
        counter.stop()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    before = counter.count
    result = yield
    if counter.count == before and sys.version_info >= (3, 12):
        pytest.fail("The test ran through without an assertion: it cannot fail.", pytrace=False)
    return result


#: key of the number of assertions in what a worker of pytest-xdist hands over
KEY = "assertions"


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    counter.count += getattr(node, "workeroutput", {}).get(KEY, 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[KEY] = counter.count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if counter.count:
        terminalreporter.write_line(f"{counter.count:,} lines of assertions ran")
