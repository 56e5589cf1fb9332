"""The report of a failed test ends with a command, which runs this test and no other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from child_environment import plain_environment
from tiers import rest

SOURCE = """
import os
import pytest

@pytest.mark.parametrize("text", ["a'b \\"c\\" $HOME x::y [é]", "other"])
def test_odd(text):
    assert text == "other", "wrong"

@pytest.fixture
def broken():
    assert False, "wrong"

def test_setup(broken):
    pass

def test_crash():
    if os.environ.get("PYTEST_XDIST_WORKER"):
        os._exit(1)
    assert False, "wrong"
"""


@pytest.fixture
def failing(tmp_path):
    """Runs pytest on a module of failing tests; its output."""
    (tmp_path / "test_odd.py").write_text(SOURCE)
    (tmp_path / "pytest.ini").touch()
    environment = plain_environment()
    paths = [str(Path(__file__).parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"

    def run(command: str, **settings: str) -> str:
        whole = {**environment, "PATH": path, "PYTEST_ADDOPTS": "-p run_alone", **settings}
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=whole, capture_output=True, text=True
        )
        return done.stdout

    return run


def commands(output: str) -> list[str]:
    return re.findall("^run alone: (.*)$", output, re.MULTILINE)


@rest
def test_each_failed_test_can_be_run_alone(failing):
    found = commands(failing("python -m pytest"))
    assert commands(failing("python -m pytest -p xdist -n 1")) == found
    names = [re.search(r"::(\w+)", command)[1] for command in found]
    assert names == ["test_setup", "test_odd", "test_crash"]
    for command in found:
        output = failing(command)
        assert ("1 failed" in output or "1 error" in output) and "passed" not in output


def test_settings_of_the_run_are_repeated(failing):
    settings = {"PHINTYS_TESTS": "full", "PHINTYS_FLAGS": "mode=C, floatX=float32"}
    assert commands(failing("python -m pytest -k setup", **settings)) == [
        "PHINTYS_TESTS=full PHINTYS_FLAGS='mode=C, floatX=float32' "
        f"{sys.executable} -m pytest test_odd.py::test_setup"
    ]
