"""Cases that need a package are skipped where it is not installed."""

from __future__ import annotations

import sys
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


def case(**parameters):
    return SimpleNamespace(
        callspec=SimpleNamespace(params=parameters), iter_markers=lambda name: []
    )
