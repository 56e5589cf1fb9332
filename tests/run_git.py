"""What git says of a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def outside_repositories() -> dict[str, str]:
    """The environment without what git sets for its hooks, such as the repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def git(root: Path, *arguments: str) -> str:
    """What a command of git prints; empty if it fails, or git is not installed."""
    command = ["git", *arguments]
    try:
        done = subprocess.run(
            command, cwd=root, env=outside_repositories(), capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return os.fsdecode(done.stdout).strip()  # names of files are bytes in any encoding


def check_repository(root: Path) -> None:
    """SystemExit with git's message if it is installed and cannot read the repository ``root``."""
    if not (root / ".git").exists() or shutil.which("git") is None:
        return
    done = subprocess.run(
        ["git", "rev-parse", "--git-dir"],
        cwd=root, env=outside_repositories(), capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"git cannot read {root}: {done.stderr.strip()}")
