"""Which test modules concern the files that changed, the nearest first.

Files are given by their paths from the root of the repository.
"""

from __future__ import annotations

import re
import sys
from functools import cached_property
from pathlib import Path, PurePosixPath

sys.path.append(str(Path(__file__).parents[1] / "planted"))

from planted_map import ELSEWHERE, MAP, read_map, stale
from run_git import check_repository, git

#: an import of a helper of the tests: ``rows`` or ``tests.scalar.rows``
IMPORT = re.compile(r"^\s*(?:from|import)\s+(?:tests\.(?:\w+\.)*)?(\w+)", re.MULTILINE)


# ------------------------------------------------------------------------- what changed


def changed_files(root: Path) -> list[str]:
    """The files that differ from `base_commit`, untracked ones included; none without git.

    SystemExit if git cannot read the repository.
    """
    check_repository(root)
    differ = git(root, "diff", "-z", "--name-only", "--no-renames", "--relative", base_commit(root))
    untracked = git(root, "ls-files", "-z", "--others", "--exclude-standard")
    return sorted({*differ.split("\0"), *untracked.split("\0")} - {""})


def base_commit(root: Path) -> str:
    """The newest commit that is also on main.

    If that is the present one, and nothing is uncommitted, the one before it.
    """
    head = git(root, "rev-parse", "HEAD")
    shared = [git(root, "merge-base", "HEAD", main) for main in ("main", "origin/main")]
    newest = git(root, "merge-base", "--independent", *filter(None, shared)).splitlines()
    base = newest[0] if newest else head
    is_clean = not git(root, "status", "--porcelain")
    return "HEAD~1" if base == head and is_clean else base


# ------------------------------------------------------------------------- what is near


def known_runs(root: Path) -> dict[str, set[str]]:
    """Which files each test module runs, by the map; prints what is wrong with the map."""
    path = root / MAP
    if not path.exists():
        print(f"quick: there is no {MAP}: make map")
        return {}
    if wrong := stale(path, root):
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        print(f"quick: {MAP} is out of date ({wrong[0]}{more}): make map")
    return read_map(path)


class Suite:
    """The test modules of a checkout, and by the map ``runs``, which files each of them runs."""

    def __init__(self, root: Path, runs: dict[str, set[str]]) -> None:
        self.root = root
        self.runs = {module: files for module, files in runs.items() if (root / module).exists()}
        self.modules = self.paths("tests/**/test_*.py") - self.paths(ELSEWHERE)
        self.folders = {parent(module) for module in self.modules}

    def paths(self, pattern: str) -> set[str]:
        found = (path for path in self.root.glob(pattern) if path.is_file())
        return {path.relative_to(self.root).as_posix() for path in found}

    def nearest(self, changed: list[str]) -> list[str]:
        """The modules that concern these files: by distance, then those that run few files."""
        distance: dict[str, int] = {}
        for file in changed:
            for module, far in self.distances(file).items():
                distance[module] = min(far, distance.get(module, far))
        return sorted(distance, key=lambda m: (distance[m], len(self.runs.get(m, ())), m))

    def distances(self, file: str) -> dict[str, int]:
        """Test modules: 0 for the file itself, 1 for its namesake, 2 for those beside it.

        3 for others that run it.
        """
        running = {module for module, files in self.runs.items() if file in files}
        near = dict.fromkeys(running, 3) | dict.fromkeys(self.beside(file, running), 2)
        near |= {module: 1 for module in near if stem(module) == f"test_{stem(file)}"}
        return near | ({file: 0} if self.has_tests(file) else {})

    def beside(self, file: str, running: set[str]) -> set[str]:
        """The test modules that import the file, or those of its folder that may run it."""
        if importers := self.importers(file):
            return importers
        if stem(file).startswith("test_"):
            return set()
        folder = self.folder_of_tests(file)
        found = {module for module in self.modules if parent(module) == folder}
        unknown = found - set(self.runs)
        return (found & running | unknown) if found & running else found

    def folder_of_tests(self, file: str) -> str:
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
        return file in self.modules or (
            is_source and path.exists() and ">>> " in path.read_text(encoding="utf-8")
        )

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
        return {p: set(IMPORT.findall((self.root / p).read_text(encoding="utf-8"))) for p in paths}


def parent(path: str) -> str:
    return str(PurePosixPath(path).parent)


def stem(path: str) -> str:
    return PurePosixPath(path).stem
