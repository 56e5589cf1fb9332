"""The lists of tests that are for the rest, and for full runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from dear import LISTS, named_tests

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("mark", LISTS)
def test_every_name_is_that_of_a_test(mark: str) -> None:
    missing = []
    for test in sorted(named_tests(mark)):
        path, _, function = test.partition("[")[0].partition("::")
        file = ROOT / path
        if not file.is_file() or f"def {function}(" not in file.read_text():
            missing.append(test)
    assert not missing
