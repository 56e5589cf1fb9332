"""Cases that need a package are skipped where it is not installed."""

from __future__ import annotations

import importlib.metadata
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import missing_packages
import pytest


@pytest.mark.needs("numpy", "no_such_package")
def test_what_needs_a_missing_package_is_skipped():
    raise AssertionError("this package is not there")


@pytest.mark.parametrize("package", ["jax", "numba"])
def test_cases_of_modes_whose_package_is_missing_are_skipped(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # the import fails
    missing_packages.pytest_runtest_setup(case(other=1, mode="FAST_RUN"))
    with pytest.raises(pytest.skip.Exception, match=f"{package} is not installed"):
        missing_packages.pytest_runtest_setup(case(other=1, mode=package.upper()))


def test_cases_of_mode_c_are_skipped_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    missing_packages.pytest_runtest_setup(case(order="C"))  # of memory
    with pytest.raises(pytest.skip.Exception, match="no C compiler"):
        missing_packages.pytest_runtest_setup(case(mode="C"))


def case(**parameters):
    return SimpleNamespace(
        callspec=SimpleNamespace(params=parameters), iter_markers=lambda name: []
    )


@pytest.mark.parametrize("found", [(), ("pymc",)])
def test_where_pymc_is_missing_its_tests_change_no_path(found, monkeypatch):
    tests = Path(__file__).parent
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: found)
    monkeypatch.setattr(sys, "path", [str(tests / "backends"), *sys.path])
    scope = runpy.run_path(str(tests / "pymc" / "conftest.py"))
    assert ("collect_ignore_glob" in scope) is (not found)
    assert (str(tests / "backends") in sys.path) is (not found)
