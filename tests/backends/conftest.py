"""What tests of several backends share."""

from __future__ import annotations

import pytest

PACKAGES = {"JAX": "jax", "NUMBA": "numba"}


@pytest.fixture(params=["FAST_RUN", "FAST_COMPILE", "C", "NUMBA", "JAX"])
def mode(request, monkeypatch):
    package = PACKAGES.get(request.param)
    if package is not None:
        pytest.importorskip(package)
    if request.param == "NUMBA":  # less time in LLVM: it is correctness that is tested
        config = pytest.importorskip("numba").core.config
        monkeypatch.setattr(config, "OPT", config._OptLevel(0))
    return request.param
