"""Plugin of pytest: the report of a failed test ends with the command that runs it alone."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Generator
from typing import Any

import pytest

#: the interpreter of this run
PYTHON = sys.executable.removeprefix(f"{os.getcwd()}{os.sep}")
#: settings of the whole run, which a test that runs alone needs too
SETTINGS = {n: os.environ[n] for n in ("PHINTYS_TESTS", "PHINTYS_FLAGS") if n in os.environ}


def command(nodeid: str) -> str:
    """The command, for a shell in the root of the repository."""
    settings = [f"{name}={shlex.quote(value)}" for name, value in SETTINGS.items()]
    return " ".join([*settings, shlex.join([PYTHON, "-m", "pytest", nodeid])])


def add_command(report: pytest.TestReport) -> None:
    report.sections.append(("command", f"run alone: {command(report.nodeid)}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    report = yield
    if report.failed:
        add_command(report)
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: Any) -> None:
    """A test that ended its process has no other report; the hook is pytest-xdist's."""
    add_command(report)
