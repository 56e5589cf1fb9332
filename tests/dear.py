"""A pytest plugin: tests that lists name are for the rest, or for full runs.

Those in ``dear.txt`` are marked `rest`: they take a second or more, and others that run in ``make
test`` reach the same code.  Those in ``dearest.txt`` are marked `full`: the same, beside others of
the rest.  A line names a test, or one case of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

#: mark -> the list of the tests that have it
LISTS = {
    "rest": Path(__file__).with_name("dear.txt"),
    "full": Path(__file__).with_name("dearest.txt"),
}


def named_tests(mark: str) -> frozenset[str]:
    lines = LISTS[mark].read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    named = {mark: named_tests(mark) for mark in LISTS}
    for item in items:
        names = {item.nodeid, item.nodeid.partition("[")[0]}
        for mark, tests in named.items():
            if not names.isdisjoint(tests):
                item.add_marker(mark)
