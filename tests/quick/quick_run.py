"""``quick_run.py RECORD DEADLINE MODULE...``: runs test modules in this order, until a deadline.

Pytest would collect all modules before it runs the first test.  Here each module is collected when
the tests of those before it have run.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import pytest

OPTIONS = ["-m", "not rest", "-p", "no:cacheprovider", "-o", "console_output_style=classic"]
# modules of a backend whose framework is missing
OPTIONS += ["--doctest-ignore-import-errors"]


class Run:
    """Plugin of pytest: no test starts after the deadline.

    Each line of the record is a list: "collected", the module and the number of its tests; or
    "began" and the test.  So it is complete even if a test ends the process.
    """

    def __init__(self, deadline: float, record: TextIO, clock: Callable[[], float]) -> None:
        self.deadline, self.record, self.clock = deadline, record, clock
        self.modules: list[str] = []

    def pytest_configure(self, config: pytest.Config) -> None:
        self.modules, config.args = config.args, []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = self.items(session)
        item = next(items, None)
        while item is not None and self.clock() < self.deadline:
            following = next(items, None)
            self.note("began", item.nodeid)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following
        return True

    def items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        for module in self.modules:
            tests = session.perform_collect([module])
            self.note("collected", module, len(tests))
            yield from tests

    def note(self, *entry: str | int) -> None:
        print(json.dumps(entry), file=self.record, flush=True)


def run(
    modules: list[str], deadline: float, path: Path, clock: Callable[[], float] = time.time
) -> int:
    """The exit status of pytest."""
    with path.open("w") as record:
        return pytest.main([*OPTIONS, *modules], plugins=[Run(deadline, record, clock)])


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[3:], float(sys.argv[2]), Path(sys.argv[1])))
