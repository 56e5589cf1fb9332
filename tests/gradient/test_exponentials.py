"""Derivatives of probabilities that are stated by their logarithms."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.tensor.raise_op import Assert

X = pt.dscalar("x")
#: name -> (a function that is 0 at 0, its derivative there)
AT_ZERO = {
    "linear": (lambda x: pt.log(2 * x + 0), 2.0),
    "log": (lambda x: pt.log(pt.erf(x)), 2 / np.sqrt(np.pi)),
    "log1p": (lambda x: pt.log1p(-pt.erfc(x)), 2 / np.sqrt(np.pi)),
    "log1mexp": (lambda x: pt.log1mexp(-3 * x), 3.0),
    "branch": (lambda x: pt.switch(x < 0, -np.inf, pt.log1p(x - 1)), 1.0),
    "branch of integers": (lambda x: pt.switch(x < 0, -1, pt.log(x + pt.sin(x))), 2.0),
    "branches": (lambda x: pt.switch(x < 0, x, pt.switch(x > 1, 0.0, pt.log(pt.tan(x)))), 1.0),
    "moved": (lambda x: pt.log(pt.atleast_1d(x))[None], 1.0),
    "check": (lambda x: Assert("negative")(pt.log1p(pt.expm1(x) - 1), x >= 0), 1.0),
}


@pytest.mark.parametrize("name", AT_ZERO)
def test_at_a_zero_the_derivative_is_that_of_the_number(name):
    logarithm, expected = AT_ZERO[name]
    probability = pt.exp(logarithm(X)).sum()
    slope = phintys.grad(probability, X)
    for outputs in ([slope], [probability, slope], [slope, phintys.grad(slope, X)]):
        found = phintys.function([X], outputs)(0.0)
        np.testing.assert_allclose(found[outputs.index(slope)], expected, rtol=1e-12)


def test_a_product_in_range_of_factors_out_of_range():
    """The logarithm of such a product is in range, and stays."""
    y = pt.exp(pt.log(pt.exp(X) * pt.exp(-X)))
    assert phintys.function([X], phintys.grad(y, X))(800.0) == 0


def test_what_the_condition_depends_on_stays():
    y = pt.exp(pt.switch(X, X, pt.log(X + 1)))
    slope = phintys.function([X], phintys.grad(y, X))
    np.testing.assert_allclose([slope(0.0), slope(2.0)], [1, np.exp(2)])


def test_with_respect_to_the_logarithm():
    """A variable that is differentiated in is not looked through."""
    y = pt.log(X)
    slope = phintys.function([X], phintys.grad(pt.exp(y), y))
    assert slope(3.0) == pytest.approx(3.0)


@pytest.mark.parametrize("x", [-1.0, np.nan])
def test_below_zero_the_derivative_is_nan_as_the_value(x):
    y = pt.exp(pt.log(X))
    assert np.isnan(phintys.function([X], [y, phintys.grad(y, X)])(x)).tolist() == [True, x < 0]
