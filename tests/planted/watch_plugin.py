"""A plugin of pytest that writes to the file ``WATCH_OUT`` which test starts, and which fails.

The last line of a process that crashed or hangs names the test in which it did.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def _write(event: str, name: str) -> None:
    with Path(os.environ["WATCH_OUT"]).open("a") as file:
        file.write(f"{event} {name}\n")


def pytest_configure(config: pytest.Config) -> None:
    """Checkouts without this marker can be asked for it too."""
    config.addinivalue_line("markers", "rest: not part of `make test`")


def pytest_runtest_logstart(nodeid: str) -> None:
    _write("start", nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _write("failed", report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _write("collection", report.nodeid)
