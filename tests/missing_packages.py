"""A pytest plugin: cases that need a package, or a C compiler, are skipped where it is missing.

The marker ``needs`` names packages; the parameters NUMBA and JAX are modes that need one, and C is
the mode that needs a compiler.
"""

from __future__ import annotations

from importlib.util import find_spec
from shutil import which

import pytest
from slow_backends import backend_of, parameters_of

from phintys.backends.c.compiler import COMPILERS

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
    if backend_of(parameters_of(item)) == "C" and not any(map(which, COMPILERS)):
        pytest.skip("there is no C compiler")
