"""Print the Pythons that tests run on: a line "3.13 PATH" for each minor version, newest first.

    python tools/pythons.py [pymc]

These are the versions that have a file in ``constraints/``; for ``pymc`` those of the environment
with PyMC. If there is none, the program says so and ends with status 3. Looked at are ``python3``
and ``python3.X`` on PATH, then what pyenv has installed. Left out is what does not start, is not
CPython, has no lock of the interpreter, cannot make environments, or is older than 3.11; and of
what pyenv has installed, releases that are not final.
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
#: the exit status if there is none
NONE = 3
#: How many minor versions after the oldest one are looked for on PATH
LATER = 10
#: folders of pyenv
FINAL = re.compile(r"\d+\.\d+\.\d+")
_CODE = """
import ensurepip, sys, sysconfig, venv
assert sys.implementation.name == "cpython"
assert not sysconfig.get_config_var("Py_GIL_DISABLED")
print("%d.%d" % sys.version_info[:2])
"""


def main(arguments: list[str]) -> None:
    prefix = "".join(f"{name}-" for name in arguments) + "python"
    files = CONSTRAINTS.glob(f"{prefix}3.*.txt")
    versions = sorted((file.stem.removeprefix(prefix) for file in files), key=_numbers)
    here = pythons()
    found = {version: path for version, path in here.items() if version in versions}
    if not found:
        what = "PyMC needs" if arguments else "The tests need"
        wanted, others = " or ".join(reversed(versions)), ", ".join(here) or "none"
        print(f"{what} Python {wanted}; found: {others}.", file=sys.stderr)
        sys.exit(NONE)
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
    installed = [str(v / "bin" / "python") for v in versions if FINAL.fullmatch(v.name)]
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
