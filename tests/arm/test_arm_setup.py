"""What the setup of the arm64 tests says where something is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SETUP = Path(__file__).with_name("setup.py")


def test_what_is_missing_is_named(tmp_path):
    done = subprocess.run(
        [sys.executable, SETUP, tmp_path / "arm"],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == (
        "setup of the arm64 tests: the emulator needs apt-get, which is not here\n"
    )


def test_what_a_program_says_is_passed_on(tmp_path):
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\necho no network >&2\nexit 100\n")
    apt.chmod(0o755)
    done = subprocess.run(
        [sys.executable, SETUP, tmp_path / "arm"],
        env={"PATH": str(tmp_path)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and "could not be had" in done.stderr
    assert "no network" in done.stderr
