"""A pytest plugin: tests that ``dear.txt`` names are for the rest, as if marked `rest`.

They take a second or more, and others that run in ``make test`` reach the same code.  A line names
a test, or one case of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

NAMED = Path(__file__).parent / "dear.txt"


def named_tests() -> frozenset[str]:
    lines = NAMED.read_text().splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    named = named_tests()
    for item in items:
        if item.nodeid in named or item.nodeid.partition("[")[0] in named:
            item.add_marker(pytest.mark.rest)
