"""Print the Pythons that tests run on: a line "3.13 PATH" for each minor version, newest first.

    python tools/pythons.py [pymc]

These are the versions that have a file in ``constraints/``; for ``pymc`` those of the environment
with PyMC, and if there is none, the program says so and ends with status 1. Looked at are
``python3`` and ``python3.X`` on PATH, then what pyenv has installed. Left out is what does not
start, is not CPython, cannot make environments, or is older than 3.11.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[1] / "constraints"
OLDEST = (3, 11)
#: How many minor versions after the oldest one are looked for on PATH
LATER = 10
_CODE = """
import ensurepip, sys, venv
assert sys.implementation.name == "cpython"
print("%d.%d" % sys.version_info[:2])
"""


def main(arguments: list[str]) -> None:
    prefix = "".join(f"{name}-" for name in arguments) + "python"
    files = CONSTRAINTS.glob(f"{prefix}3.*.txt")
    versions = sorted((file.stem.removeprefix(prefix) for file in files), key=_numbers)
    found = {version: path for version, path in pythons().items() if version in versions}
    if arguments and not found:
        sys.exit(f"PyMC needs Python {' or '.join(reversed(versions))}: none of them is here.")
    for version, path in found.items():
        print(version, path)


def pythons() -> dict[str, str]:
    """Minor version -> path of an interpreter; newest first, the first one found of each."""
    found: dict[str, str] = {}
    for path in _candidates():
        version = _version(path)
        if version and _numbers(version) >= OLDEST:
            found.setdefault(version, path)
    return dict(sorted(found.items(), key=lambda item: _numbers(item[0]), reverse=True))


def _candidates() -> list[str]:
    """Paths of interpreters: those on PATH, then those of pyenv, newest first."""
    major, minor = OLDEST
    names = ["python3", *(f"python{major}.{minor + later}" for later in range(LATER))]
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    versions = sorted(root.glob("versions/3.*"), key=lambda p: _numbers(p.name), reverse=True)
    installed = [str(version / "bin" / "python") for version in versions]
    return [*filter(None, map(shutil.which, names)), *installed]


def _version(path: str) -> str:
    """The minor version of an interpreter; nothing if it is left out."""
    try:
        done = subprocess.run([path, "-c", _CODE], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparisons."""
    return tuple(map(int, re.findall(r"\d+", version)))


if __name__ == "__main__":
    main(sys.argv[1:])
