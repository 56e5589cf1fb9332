"""The lists of tests that are for the rest, and for full runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from child_environment import plain_environment
from dear import LISTS, named_tests
from slow_backends import named_cases
from tiers import rest

ROOT = Path(__file__).parents[1]


def listed_cases() -> set[str]:
    """The cases that lists name, but for those that depend on the processor."""
    named = {line.removeprefix("not ") for line in named_cases()}
    named = named.union(*(named_tests(mark) for mark in LISTS))
    return {test for test in named if "[" in test and "bits" not in test}


@rest
def test_every_case_is_there() -> None:
    modules = sorted({test.partition("::")[0] for test in listed_cases()})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:randomly"]
    environment = plain_environment() | {"PHINTYS_TESTS": "full"}
    done = subprocess.run(
        [*command, *modules], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    there = set(done.stdout.splitlines())
    assert len(there) > len(listed_cases()), done.stdout[-1000:]
    assert not listed_cases() - there


@pytest.mark.parametrize("mark", LISTS)
def test_every_name_is_that_of_a_test(mark: str) -> None:
    missing = []
    for test in sorted(named_tests(mark)):
        path, _, function = test.partition("[")[0].partition("::")
        file = ROOT / path
        if not file.is_file() or f"def {function}(" not in file.read_text(encoding="utf-8"):
            missing.append(test)
    assert not missing
