"""A pytest plugin: cases that need a package are skipped where it is not installed.

The marker ``needs`` names packages, and the parameters NUMBA and JAX are modes that need one.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from slow_backends import parameters_of

#: mode -> the package that it needs
PACKAGES = {"JAX": "jax", "NUMBA": "numba"}


def packages_of(item: pytest.Item) -> list[str]:
    values = [v for v in parameters_of(item).values() if isinstance(v, str)]
    marked = [name for mark in item.iter_markers("needs") for name in mark.args]
    return [*marked, *(PACKAGES[v] for v in values if v in PACKAGES)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    for package in packages_of(item):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
