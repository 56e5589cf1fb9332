"""Compiled code of a test run goes to a cache of its own."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True, scope="session")
def cache_directory(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHINTYS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


#: Modules of a backend import the framework: without it there is nothing to collect.  Those of
#: `phintys.compat.names` take the places of other packages, and programs of the corpus import one.
collect_ignore_glob = [
    "phintys/compat/names/*",
    "tests/corpus/programs/*",
    *(f"phintys/backends/{name}/*" for name in ("jax", "numba") if find_spec(name) is None),
]
