"""``quick_run.py RECORD DEADLINE MODULE...``: runs test modules in this order, until a deadline.

Pytest would collect all modules before it runs the first test.  Here each module has a session of
its own, which starts when that of the module before has ended.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import TextIO

import pytest

#: the folder of plugins; tests/conftest.py, which names them, is not read for examples
PLUGINS = Path(__file__).parents[1]
OPTIONS = ["-m", "not rest", "-p", "no:cacheprovider", "-o", "console_output_style=classic"]
# modules of a backend whose framework is missing
OPTIONS += ["--doctest-ignore-import-errors"]
#: all tests passed, or all were skipped or deselected
PASSED = {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


class Run:
    """Plugin of pytest: no test starts after the deadline.

    Each line of the record is a list: "collected", the module and the number of its tests; or
    "began" and the test.  So it is complete even if a test ends the process.
    """

    def __init__(
        self, module: str, deadline: float, record: TextIO, clock: Callable[[], float]
    ) -> None:
        self.module, self.deadline, self.record, self.clock = module, deadline, record, clock
        self.is_late = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.note("collected", self.module, len(session.items))
        for item, following in zip_longest(session.items, session.items[1:]):
            self.is_late = self.clock() >= self.deadline
            if self.is_late:
                break
            self.note("began", item.nodeid)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return True

    def note(self, *entry: str | int) -> None:
        print(json.dumps(entry), file=self.record, flush=True)


def run(
    modules: list[str], deadline: float, path: Path, clock: Callable[[], float] = time.time
) -> int:
    """The exit status of pytest: that of a module whose tests did not all pass."""
    statuses = [pytest.ExitCode.OK]
    with path.open("w") as record:
        for module in modules:
            if clock() >= deadline:
                break
            session = Run(module, deadline, record, clock)
            statuses.append(pytest.main([*OPTIONS, module], plugins=[session]))
            if session.is_late:
                break
    failed = [status for status in statuses if status not in PASSED]
    return int(max(failed, default=pytest.ExitCode.OK))


if __name__ == "__main__":
    sys.path.append(str(PLUGINS))
    OPTIONS += ["-p", "own_settings", "-p", "run_alone", "-p", "our_warnings"]
    raise SystemExit(run(sys.argv[3:], float(sys.argv[2]), Path(sys.argv[1])))
