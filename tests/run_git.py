"""What git says of a checkout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(root: Path, *arguments: str) -> str:
    """What a command of git prints; empty if it fails, or git is not installed."""
    command = ["git", *arguments]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return os.fsdecode(done.stdout).strip()  # names of files are bytes in any encoding
