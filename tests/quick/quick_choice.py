"""Which test modules concern the files that changed, the nearest first.

Files are given by their paths from the root of the repository.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

#: which files of the package each test module runs
MAP = "tests/reach.json"
#: an import of a helper of the tests: ``rows`` or ``tests.scalar.rows``
IMPORT = re.compile(r"^\s*(?:from|import)\s+(?:tests\.(?:\w+\.)*)?(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Reach:
    """The map: all files of the package, and those that each test module runs."""

    files: frozenset[str]
    tests: dict[str, frozenset[str]]


def read_reach(path: Path) -> Reach:
    """The stored map; an empty one if there is none."""
    stored = json.loads(path.read_text()) if path.exists() else {"files": [], "tests": {}}
    files = stored["files"]
    tests = {name: members(files, int(bits, 16)) for name, bits in stored["tests"].items()}
    return Reach(frozenset(files), tests)


def members(files: list[str], bits: int) -> frozenset[str]:
    return frozenset(file for k, file in enumerate(files) if bits >> k & 1)


# ------------------------------------------------------------------------- what changed


def changed_files(root: Path) -> list[str]:
    """The files that differ from `base_commit`, untracked ones included; none without git."""
    differ = git(root, "diff", "-z", "--name-only", "--no-renames", "--relative", base_commit(root))
    untracked = git(root, "ls-files", "-z", "--others", "--exclude-standard")
    return sorted({*differ.split("\0"), *untracked.split("\0")} - {""})


def base_commit(root: Path) -> str:
    """The newest commit that is also on main.

    If that is the present one, and nothing is uncommitted, the one before it.
    """
    head = git(root, "rev-parse", "HEAD")
    shared = [git(root, "merge-base", "HEAD", main) for main in ("main", "origin/main")]
    base = next(filter(None, shared), head)
    is_clean = not git(root, "status", "--porcelain")
    return "HEAD~1" if base == head and is_clean else base


def git(root: Path, *arguments: str) -> str:
    """What a command of git prints; empty if it fails."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


# ------------------------------------------------------------------------- what is near


class Suite:
    """The test modules of a checkout, and what they run by the map."""

    def __init__(self, root: Path, reach: Reach) -> None:
        self.root, self.reach = root, reach
        self.modules = self.paths("tests/**/test_*.py")
        self.folders = {parent(module) for module in self.modules}

    def paths(self, pattern: str) -> set[str]:
        return {path.relative_to(self.root).as_posix() for path in self.root.glob(pattern)}

    def nearest(self, changed: list[str]) -> list[str]:
        """The modules that concern these files: by distance, then those that run few files."""
        distance: dict[str, int] = {}
        for file in changed:
            for module, far in self.distances(file).items():
                distance[module] = min(far, distance.get(module, far))
        runs = self.reach.tests
        return sorted(distance, key=lambda m: (distance[m], len(runs.get(m, ())), m))

    def distances(self, file: str) -> dict[str, int]:
        """Test modules: 0 for the file itself, 1 for those beside it, 2 for others that run it."""
        running = {m for m, files in self.reach.tests.items() if file in files} & self.modules
        near = dict.fromkeys(running, 2) | dict.fromkeys(self.beside(file, running), 1)
        return near | ({file: 0} if self.has_tests(file) else {})

    def beside(self, file: str, running: set[str]) -> set[str]:
        """The test modules that import the file, or those of its folder that may run it."""
        if importers := self.importers(file):
            return importers
        if file in self.modules:
            return set()
        folder = self.folder_of(file)
        found = {module for module in self.modules if parent(module) == folder}
        unknown = found - set(self.reach.tests)
        return (found & running | unknown) if found & running else found

    def folder_of(self, file: str) -> str:
        """The folder of tests that mirrors the file's, or the nearest one above; "" for none."""
        first, *inner = PurePosixPath(file).parts
        if not inner:
            return "tests/docs" if file.endswith(".md") else ""
        inside = inner[:-1] if first in ("phintys", "tests") else [first, *inner[:-1]]
        if not inside:
            return "tests"
        above = ("/".join(["tests", *inside[:n]]) for n in range(len(inside), 0, -1))
        return next((folder for folder in above if folder in self.folders), "")

    def has_tests(self, file: str) -> bool:
        """Whether pytest finds tests in the file: a test module, or a module with examples."""
        is_source = file.startswith("phintys/") and file.endswith(".py")
        path = self.root / file
        return file in self.modules or (is_source and path.exists() and ">>> " in path.read_text())

    def importers(self, file: str) -> set[str]:
        """The test modules that import a module of ``tests/``, directly or through others."""
        found: set[str] = set()
        names = {stem(file)} if file.startswith("tests/") and file.endswith(".py") else set()
        while names:
            users = {path for path, imports in self.imports.items() if imports & names} - found
            found |= users
            names = {stem(path) for path in users}
        return (found & self.modules) - {file}

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Modules of ``tests/``: what each imports."""
        paths = self.paths("tests/**/*.py")
        return {p: set(IMPORT.findall((self.root / p).read_text())) for p in paths}

    # --------------------------------------------------------------------- the map

    def stale(self) -> str:
        """What the map lacks and what of it is gone, in words; empty if it is up to date."""
        present = self.modules | self.paths("phintys/**/*.py")
        known = self.reach.files | set(self.reach.tests)
        parts = [
            f"{len(names)} {what} ({min(names)}{', ...' if len(names) > 1 else ''})"
            for what, names in (("missing", present - known), ("gone", known - present))
            if names
        ]
        return ", ".join(parts)


def parent(path: str) -> str:
    return str(PurePosixPath(path).parent)


def stem(path: str) -> str:
    return PurePosixPath(path).stem
