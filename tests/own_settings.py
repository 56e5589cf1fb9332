"""Importing it makes the tests, and the processes that they start, read no settings file.

So they do not depend on the user's.  Settings in PHINTYS_FLAGS apply, and are shown.
"""

from __future__ import annotations

import os

os.environ["PHINTYSRC"] = ""


def pytest_report_header() -> list[str]:
    flags = os.environ.get("PHINTYS_FLAGS")
    return [f"PHINTYS_FLAGS: {flags}"] if flags else []
