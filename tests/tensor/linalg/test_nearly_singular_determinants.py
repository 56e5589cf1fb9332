"""Gradients of determinants of matrices that rounding alone makes regular."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt


def cofactors(a: np.ndarray) -> np.ndarray:
    found = np.empty_like(a)
    for i, j in np.ndindex(*a.shape):
        found[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
    return found


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "C"])
def test_the_gradient_is_the_matrix_of_cofactors(mode: str) -> None:
    """The inverse and the determinant have the errors of the same factors, which cancel."""
    x = pt.dmatrix()
    f = phintys.function([x], phintys.grad(pt.linalg.det(x), x), mode=mode)
    rng = np.random.default_rng(0)
    for n in range(40):
        size, rank = 3 + n % 2, 2 + n % 2
        value = rng.integers(-3, 4, (size, rank)) @ rng.integers(-3, 4, (rank, size)) / 3
        error = 1e-9 * np.abs(value).max() ** (size - 1)
        np.testing.assert_allclose(f(value), cofactors(value), rtol=1e-9, atol=error)
