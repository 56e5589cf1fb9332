"""Which exact versions the files of constraints have."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import constraints


@pytest.fixture
def pip(tmp_path, monkeypatch):
    """Answers instead of pip, in a repository of its own; the lines that it was asked with."""
    asked = []

    def answer(python, command, *arguments):
        asked.append([command, *arguments])
        if command == "index":
            return "numpy (3.0)\nAvailable versions: 3.0, 2.10.1, 2.1, 1.26.10, 1.26.4, 1.9\n"
        given = [name for name in arguments if "==" in name]
        pairs = [name.split("==") for name in given] or [("Rich", "13.2")]
        found = [{"metadata": {"name": name, "version": version}} for name, version in pairs]
        return json.dumps({"install": found})

    monkeypatch.setattr(constraints, "_pip", answer)
    monkeypatch.setattr(constraints, "pythons", lambda: {"3.13": "/bin/python3.13"})
    monkeypatch.setattr(constraints, "REPOSITORY", tmp_path)
    monkeypatch.setattr(constraints, "FOLDER", tmp_path / "constraints")
    return asked


@pytest.mark.parametrize(
    "requirement, version",
    [
        ("numpy>=1.26", "1.26.4"),
        ("numpy>=1.26,<3", "1.26.4"),
        ("numpy >=2,!=2.1", "2.10.1"),
        ("numpy>1.26.4", "1.26.10"),
        ("numpy", "1.9"),
    ],
)
def test_the_oldest_version_that_is_allowed(pip, requirement, version):
    assert constraints._oldest(([], []), requirement) == f"numpy=={version}"


def test_without_wheels_it_ends(pip):
    with pytest.raises(SystemExit, match="no wheels of numpy<1"):
        constraints._oldest(([], []), "numpy<1")


PROJECT = """
[build-system]
requires = ["setuptools>=77"]
[project]
dependencies = ["numpy>=1.26,<3"]
classifiers = ["Programming Language :: Python :: 3.13", "Typing :: Typed"]
[project.optional-dependencies]
test = ["pytest>=8"]
rich = ["rich>=13"]
[dependency-groups]
pymc = ["pymc==6.4.*", "pytensor==3"]
"""


def test_files_are_written_for_each_python(pip, tmp_path):
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    constraints.main([])
    head = "# Written by `make constraints`.\n"
    files = {path.name: path.read_text() for path in constraints.FOLDER.iterdir()}
    assert files == {
        "python3.13.txt": f"{head}rich==13.2\n",
        "oldest3.13.txt": f"{head}numpy==1.26.4\n",
        "pymc-python3.13.txt": f"{head}pymc==6.4.*\n",
    }
    newest, _, oldest, pymc = pip
    needed = ["numpy>=1.26,<3", "setuptools>=77", "pip", "pytest>=8"]
    assert newest[-5:] == [*needed, "rich>=13"]
    assert oldest[-5:] == [*needed, "numpy==1.26.4"]
    assert pymc[-6:] == [*needed, "pymc==6.4.*", "pytensor==3"]


def test_a_python_that_is_not_here_is_described_to_pip(pip):
    assert constraints._options("3.13") == (["--python", "/bin/python3.13"], [])
    assert constraints._options("3.14") == (
        ["--python", "/bin/python3.13"],
        ["--python-version", "3.14"],
    )
