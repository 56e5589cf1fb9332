"""A test without an assertion is an error, and a test draws the same numbers in any order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from child_environment import plain_environment

HERE = Path(__file__).parent
SOURCE = """
import pytest

def helper(x):
    assert x

def test_nothing():
    x = 1

def test_unreached():
    if not __file__:
        assert False

def test_assert():
    assert True

def test_through_a_helper():
    helper(1)

def test_raises():
    with pytest.raises(ZeroDivisionError):
        1 / 0

def test_skipped():
    pytest.skip("why")
"""
DRAWS = """
import numpy as np

rng = np.random.default_rng(1)
expected = np.random.default_rng(1).normal()

def test_one():
    assert rng.normal() == expected

def test_two():
    assert rng.normal() == expected
"""
#: runs pytest twice in one process
TWICE = "import pytest, sys; [pytest.main(sys.argv[1:]) for _ in range(2)]"


@pytest.fixture
def outcomes(tmp_path):
    """Runs pytest with plugins on a module in a folder of tests; name -> how each test ended."""

    def run(source: str, *plugins: str, program: str = "-mpytest") -> dict[str, str]:
        folder = tmp_path / "tests"
        folder.mkdir()
        for name in plugins:
            (folder / f"{name}.py").write_text((HERE / f"{name}.py").read_text())
        (folder / "test_case.py").write_text(source)
        (tmp_path / "pytest.ini").touch()
        environment = plain_environment() | {"PYTHONPATH": str(folder)}
        options = [f"-p{name}" for name in plugins]
        command = [sys.executable, *program.split("\0"), "-v", *options, "tests"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        found = re.findall(r"::test_(\w+) (\w+)", done.stdout)
        assert found, done.stdout + done.stderr
        return dict(found)

    return run


@pytest.mark.skipif(sys.version_info < (3, 12), reason="older Pythons have no sys.monitoring")
@pytest.mark.parametrize("program", ["-mpytest", f"-c\0{TWICE}"], ids=["once", "twice"])
def test_tests_without_an_assertion_fail(outcomes, program):
    found = outcomes(SOURCE, "assertions", program=program)
    failed = {name for name, how in found.items() if how == "FAILED"}
    assert failed == {"nothing", "unreached"}
    assert found["skipped"] == "SKIPPED" and len(found) == 6


def test_each_test_draws_the_same_numbers(outcomes):
    assert outcomes(DRAWS, "same_draws") == {"one": "PASSED", "two": "PASSED"}
