"""The list of tests that are for the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from dear import named_tests

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", [pytest.param(sorted(named_tests()), id="all")])
def test_every_name_is_that_of_a_test(name: list[str]) -> None:
    missing = []
    for test in name:
        path, _, function = test.partition("[")[0].partition("::")
        file = ROOT / path
        if not file.is_file() or f"def {function}(" not in file.read_text():
            missing.append(test)
    assert not missing
