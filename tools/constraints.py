"""Write the constraints files: exact versions of all that the targets of the Makefile install.

``constraints/python3.XX.txt`` has the newest releases for that Python, ``oldest3.XX.txt`` the
oldest NumPy and SciPy that this package allows and that have wheels, and what the tests need,
``pymc-python3.XX.txt`` what the environment with PyMC has. pip resolves them, from wheels alone. A
Python that is not here is described to pip; then markers of requirements are those of the newest
Python that is here.

    python tools/constraints.py [3.11 3.12 ...]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version
from pythons import pythons

REPOSITORY = Path(__file__).parents[1]
FOLDER = REPOSITORY / "constraints"
#: The version of the running pip and that of the build backend are exact, too
TOOLS = ["pip"]
#: Of these the oldest releases are tested
OLDEST = ("numpy", "scipy")
#: The Pythons that PyMC is for
PYMC = ("3.12", "3.13", "3.14")
#: In the environment with PyMC, this package takes its place
REPLACED = ("pytensor",)


def main(versions: list[str]) -> None:
    everything = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    project = everything["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *everything["build-system"]["requires"], *TOOLS]
    FOLDER.mkdir(exist_ok=True)
    for version in versions or _declared(project["classifiers"]):
        python = _options(version)
        _write(f"python{version}", python, [*needed, *(r for e in extras.values() for r in e)])
        oldest = [_oldest(python, r) for r in needed if Requirement(r).name in OLDEST]
        _write(f"oldest{version}", python, [*needed, *extras["test"], *oldest])
        if version in PYMC:
            group = everything["dependency-groups"]["pymc"]
            _write(f"pymc-python{version}", python, [*needed, *extras["test"], *group])


def _declared(classifiers: list[str]) -> list[str]:
    """The minor versions of Python that the package says it is for."""
    return [c.rpartition(" ")[2] for c in classifiers if re.search(r":: Python :: 3\.\d", c)]


def _options(version: str) -> tuple[list[str], list[str]]:
    """Options of pip that choose a Python: before the name of the command, and after it."""
    here = pythons()
    if version in here:
        return ["--python", here[version]], []
    return ["--python", next(iter(here.values()))], ["--python-version", version]


def _write(name: str, python: tuple[list[str], list[str]], requirements: list[str]) -> None:
    """Write the exact versions that pip would install for ``requirements``."""
    options = "--quiet --dry-run --ignore-installed --only-binary=:all: --report -".split()
    report = json.loads(_pip(python, "install", *options, *requirements))
    found = [item["metadata"] for item in report["install"]]
    versions = {m["name"].lower(): m["version"] for m in found}
    lines = sorted(f"{n}=={v}\n" for n, v in versions.items() if n not in REPLACED)
    head = "# Written by `make constraints`.\n"
    (FOLDER / f"{name}.txt").write_text(head + "".join(lines))
    print(f"constraints/{name}.txt: {len(lines)} packages")


def _oldest(python: tuple[list[str], list[str]], requirement: str) -> str:
    """The least version that a requirement allows, as an exact requirement."""
    wanted = Requirement(requirement)
    text = _pip(python, "index", "versions", "--only-binary=:all:", wanted.name)
    listed = re.search(r"Available versions: (.*)", text)
    versions = listed[1].split(", ") if listed else []
    allowed = list(wanted.specifier.filter(versions))
    if not allowed:
        sys.exit(f"constraints: there are no wheels of {requirement}")
    return f"{wanted.name}=={min(allowed, key=Version)}"


def _pip(python: tuple[list[str], list[str]], command: str, *arguments: str) -> str:
    before, after = python
    line = [sys.executable, "-m", "pip", *before, command, *after, *arguments]
    done = subprocess.run(line, cwd=REPOSITORY, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"constraints: pip found no versions ({' '.join(line)}):\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1:])
