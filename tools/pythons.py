"""Print the Pythons that tests can run on: a line "3.13 PATH" for each minor version, newest first.

Looked at are ``python3`` and ``python3.X`` on PATH, then what pyenv has installed. One that does
not start, that cannot make environments, or is older than 3.11 is left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST = (3, 11)
#: How many minor versions after the oldest one are looked for on PATH
LATER = 10
_CODE = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"


def pythons() -> dict[str, str]:
    """Minor version -> path of an interpreter; newest first, the first one found of each."""
    found: dict[str, str] = {}
    for path in _candidates():
        version = _version(path)
        if version and numbers(version) >= OLDEST:
            found.setdefault(version, path)
    return dict(sorted(found.items(), key=lambda item: numbers(item[0]), reverse=True))


def _candidates() -> list[str]:
    major, minor = OLDEST
    names = ["python3", *(f"python{major}.{minor + later}" for later in range(LATER))]
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = sorted(root.glob("versions/*/bin/python"), reverse=True)
    return [*filter(None, map(shutil.which, names)), *map(str, installed)]


def _version(path: str) -> str:
    """The minor version of an interpreter; nothing if it does not start, or lacks venv."""
    try:
        done = subprocess.run([path, "-c", _CODE], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparisons."""
    return tuple(map(int, re.findall(r"\d+", version)))


if __name__ == "__main__":
    for version, path in pythons().items():
        print(version, path)
