"""A model whose posterior is known: the mean of normal numbers."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

Y = np.array([1.1, 0.3, 2.0, 1.4, 0.9, 1.6])
#: of the mean of normal numbers with deviation 1, and prior deviation 2
PRECISION = len(Y) + 0.25
MEAN, DEVIATION = Y.sum() / PRECISION, PRECISION**-0.5
#: for `pymc.sample`
QUIET = {"progressbar": False, "random_seed": 3, "compute_convergence_checks": False}


def mean_of_normals() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        pm.Normal("y", mu, 1.0, observed=Y)
    return model


def check(draws: np.ndarray, tolerance: float = 0.15) -> None:
    """Draws of the mean have the moments of its posterior."""
    assert draws.mean() == pytest.approx(MEAN, abs=tolerance)
    assert draws.std() == pytest.approx(DEVIATION, abs=tolerance)
