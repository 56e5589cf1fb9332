"""A pytest plugin: what PyMC's tests need that is not shipped, and which of them must fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

LIST = Path(__file__).with_name("shipped_failures.txt")


def expected_failures() -> Iterator[tuple[str, str]]:
    """(test, reason): the tests of the list; a line above them states the reason."""
    reason = ""
    for line in LIST.read_text().splitlines():
        if line.startswith("# "):
            reason = line.removeprefix("# ")
        elif line:
            yield line, reason


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    found = {item.nodeid: item for item in items}
    listed = dict(expected_failures())
    if not (config.option.keyword or listed.keys() <= found.keys()):
        raise pytest.UsageError(f"not among the tests: {sorted(listed.keys() - found.keys())}")
    for test in listed.keys() & found.keys():
        found[test].add_marker(pytest.mark.xfail(strict=True, reason=listed[test]))


@pytest.fixture
def seeded_test() -> None:
    np.random.seed(20160911)


@pytest.fixture
def strict_float32() -> None:
    """Nothing: the tests run with floatX=float64."""
