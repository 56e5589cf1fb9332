"""A pytest plugin: warnings at lines of tests, their helpers, benchmarks and examples are errors.

So are those at lines of the package, by a filter in pyproject.toml. Those at lines of other
packages are not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDERS = ("tests", "benchmarks", "examples")


def names_of_modules() -> list[str]:
    """The names under which modules of tests are imported: they are in no package."""
    files = [file for name in FOLDERS for file in Path(__file__).parents[1].glob(f"{name}/**/*.py")]
    return sorted({file.stem for file in files})


def pytest_configure(config: pytest.Config) -> None:
    """Add a filter that is weaker than those of pyproject.toml, which make exceptions."""
    names = "|".join(names_of_modules())
    config.getini("filterwarnings").insert(0, rf"error:::(tests\.|({names})\Z)")
