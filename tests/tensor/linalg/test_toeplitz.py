"""Toeplitz matrices and bounds of eigenvalues against SciPy and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from phintys.sandbox.linalg import spectral_radius_bound
from tensor_checks import check, check_batched, check_derivatives

import phintys.tensor as pt


@pytest.mark.parametrize("shapes", [((4,), (3,)), ((1,), (5,)), ((3,), (0,)), ((0,), (2,))])
def test_toeplitz(shapes):
    rng = np.random.default_rng(0)
    c, r = (rng.normal(size=s) for s in shapes)
    check(pt.linalg.toeplitz, scipy.linalg.toeplitz, [c, r])
    if len(c) and len(r):
        check_derivatives(pt.linalg.toeplitz, [c, r])
        check_derivatives(pt.linalg.toeplitz, [c, r], "FAST_COMPILE")


def test_dtypes_and_batches_of_toeplitz():
    rng = np.random.default_rng(0)
    c = rng.normal(size=4) + 1j * rng.normal(size=4)
    check(pt.linalg.toeplitz, scipy.linalg.toeplitz, [c])
    check(pt.linalg.toeplitz, scipy.linalg.toeplitz, [np.arange(3, dtype="int8"), c])
    check(pt.linalg.toeplitz, scipy.linalg.toeplitz, [np.float32([1, np.nan, np.inf])])
    columns, rows = rng.normal(size=(2, 4, 3)), rng.normal(size=(4, 2))
    expected = [[scipy.linalg.toeplitz(a, b) for a, b in zip(batch, rows)] for batch in columns]
    check(pt.linalg.toeplitz, lambda c, r: np.array(expected), [columns, rows])
    check_batched(pt.linalg.toeplitz, [columns[0, 0], rows[0]])
    with pytest.raises(ValueError, match="takes vectors, not scalars"):
        pt.linalg.toeplitz(1.0)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_spectral_radius_bound(k):
    x = np.random.default_rng(0).normal(size=(3, 5, 5))
    x = x + x.swapaxes(1, 2)
    radius = np.abs(np.linalg.eigvalsh(x)).max(-1)
    bound = spectral_radius_bound(x, k).eval()
    assert (bound >= radius * (1 - 1e-12)).all() and (
        bound <= radius * 5 ** (2.0**-k) * (1 + 1e-12)
    ).all()
    expected = np.trace(np.linalg.matrix_power(x, 2**k), axis1=-2, axis2=-1) ** (2.0**-k)
    check(lambda x: spectral_radius_bound(x, k), lambda x: expected, [x])
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        check_derivatives(lambda x: spectral_radius_bound(x, k), [x[0]], mode)


def test_wrong_arguments():
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="log2_exponent is positive"):
            spectral_radius_bound(np.eye(2), wrong)
    with pytest.raises(TypeError):
        spectral_radius_bound(np.eye(2), 1.5)
    with pytest.raises(ValueError, match="at least two axes"):
        spectral_radius_bound(pt.dvector(), 2)
