"""The example of a hierarchical model: its draws are those of NumPy by hand, on every backend."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import phintys
import phintys.tensor as pt

EXAMPLE = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "prior_predictive.py"))


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "C"])
def test_a_model_of_20_variables(mode):
    rng = pt.random.shared_rng(np.random.default_rng(1))
    with phintys.config.change_flags(mode=mode):
        f = EXAMPLE["compiled"](phintys, rng, 5)
    expected = np.random.default_rng(1)
    for _ in range(2):
        found, wanted = f(), EXAMPLE["by_hand"](expected, 5)
        assert len(found) == 20
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12)
            assert x.shape == y.shape
