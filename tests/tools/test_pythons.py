"""Which Pythons are found for tests to run on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import pythons

#: an interpreter that says that it is another one
FAKE = """#!/bin/sh
exec '{python}' -c "
import sys
sys.version_info, sys.implementation.name = {version}, '{implementation}'
exec(sys.argv[1])
" "$2"
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Makes interpreters on PATH and in pyenv, where there are no others."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))

    def make(name, *version, implementation="cpython"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            FAKE.format(python=sys.executable, version=version, implementation=implementation)
        )
        path.chmod(0o755)
        return str(path)

    return make


def pyenv(version):
    return f"pyenv/versions/{version}/bin/python"


def test_the_newest_python_of_each_minor_version_is_found(install):
    install(pyenv("3.12.9"), 3, 12, 9)
    newest = install(pyenv("3.12.10"), 3, 12, 10)
    assert pythons.pythons() == {"3.12": newest}
    first = install("bin/python3.9", 3, 9, 1), install("bin/python3", 3, 14, 0)
    on_path = install("bin/python3.12", 3, 12, 3)
    install(pyenv("3.14.2"), 3, 14, 2)
    assert list(pythons.pythons().items()) == [("3.14", first[1]), ("3.12", on_path)]


def test_what_tests_cannot_run_on_is_left_out(install):
    install("bin/python3", 3, 13, 1, implementation="pypy")
    install(pyenv("3.11-pypy"), 3, 11, 1, implementation="pypy")
    install(pyenv("3.10.2"), 3, 10, 2)
    install(pyenv("3.14.0rc2"), 3, 14, 0)
    install(pyenv("3.13.1t"), 3, 13, 1)
    Path(install("bin/python3.12", 3, 12, 0)).write_text("#!/bin/sh\nexit 1\n")
    Path(install("bin/python3.14", 3, 14, 0)).write_text("#!/no/such/program\n")
    assert pythons.pythons() == {}


def test_versions_with_constraints_are_printed(install, tmp_path, monkeypatch, capsys):
    paths = [install(f"bin/python3.{minor}", 3, minor, 1) for minor in (11, 12, 13)]
    for name in ("python3.12", "python3.11", "oldest3.13"):
        (tmp_path / f"{name}.txt").touch()
    monkeypatch.setattr(pythons, "CONSTRAINTS", tmp_path)
    pythons.main([])
    assert capsys.readouterr().out == f"3.12 {paths[1]}\n3.11 {paths[0]}\n"


def test_those_of_an_environment_with_constraints_of_its_own(
    install, tmp_path, monkeypatch, capsys
):
    old, new = (install(f"bin/python3.{minor}", 3, minor, 1) for minor in (11, 12))
    for name in ("python3.11", "pymc-python3.12", "pymc-python3.9", "pymc-python3.13"):
        (tmp_path / f"{name}.txt").touch()
    monkeypatch.setattr(pythons, "CONSTRAINTS", tmp_path)
    pythons.main(["pymc"])
    assert capsys.readouterr().out == f"3.12 {new}\n"
    Path(new).unlink()
    with pytest.raises(SystemExit) as error:
        pythons.main(["pymc"])
    assert error.value.code == 3
    said = capsys.readouterr()
    assert said.err == "PyMC needs Python 3.13 or 3.12 or 3.9; found: 3.11.\n"
    assert said.out == "" and Path(old).exists()
