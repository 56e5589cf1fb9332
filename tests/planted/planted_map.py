"""``tests/reach.json``: which files of the package each test module runs in its tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: its path from the root of a repository
MAP = "tests/reach.json"
#: test modules that run in an environment of their own, which the map leaves out
ELSEWHERE = "tests/pymc/test_*.py"


def read_map(path: Path = ROOT / MAP) -> dict[str, set[str]]:
    """test module -> files of the package"""
    stored = json.loads(path.read_text(encoding="utf-8"))
    files: list[str] = stored["files"]
    masks = {test: int(mask, 16) for test, mask in stored["tests"].items()}
    return {t: {f for k, f in enumerate(files) if m >> k & 1} for t, m in masks.items()}


def write_map(record: dict[str, Any], path: Path = ROOT / MAP) -> None:
    """Store what a record of `reach_plugin` says; bit k of a mask stands for file k."""
    files = sorted(record["sources"])
    masks = {
        test: f"{sum(1 << files.index(f) for f in reached):x}"
        for test, reached in sorted(record["tests"].items())
    }
    path.write_text(json.dumps({"files": files, "tests": masks}, indent=0) + "\n")


def stale(path: Path = ROOT / MAP, root: Path = ROOT) -> list[str]:
    """What the map misses and what is gone, as lines of text; empty if it is complete.

    A module of the package, and a file of tests, counts; files of doctests alone do not.
    """
    stored = json.loads(path.read_text(encoding="utf-8"))
    known = {*stored["files"], *(t for t in stored["tests"] if t.startswith("tests/"))}
    paths = {*root.glob("phintys/**/*.py"), *root.glob("tests/**/test_*.py")}
    present = {p.relative_to(root).as_posix() for p in paths - set(root.glob(ELSEWHERE))}
    missing = [f"missing: {name}" for name in sorted(present - known)]
    return [*missing, *(f"gone: {name}" for name in sorted(known - present))]
