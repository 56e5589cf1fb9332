"""Derivatives of incomplete gamma and beta functions in compiled functions: sums over nodes."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.lowering.program import Python
from phintys.scalar.quadrature import DERIVATIVES

COUNT = 12


def shapes_and_places(name, seed=0):
    """Shapes between 1e-3 and 1e3, and places where the function changes."""
    rng = np.random.default_rng(seed)
    a, b = np.exp(rng.uniform(np.log(1e-3), np.log(1e3), size=(2, COUNT)))
    if name.startswith("gamma"):
        return a, a * np.exp(rng.uniform(-1, 1, size=COUNT)) + rng.exponential(size=COUNT)
    u = 1 / (1 + np.exp(-rng.normal(size=COUNT)))
    return a, b, np.clip(a / (a + b) + 0.1 * (u - 0.5), 1e-6, 1 - 1e-6)


def first_derivative(name, args):
    """That of the integral, by differences of many digits."""
    args = [mp.mpf(float(x)) for x in args]
    which = 1 if name == "betainc_der_b" else 0

    def value(*given):
        if name.startswith("gamma"):
            return mp.gammainc(given[0], 0, given[1], regularized=True)
        return mp.betainc(*given[:2], 0, given[2], regularized=True)

    def moved(h):
        return value(*(x * (1 + h) if i == which else x for i, x in enumerate(args)))

    with mp.workdps(60):
        h = mp.mpf(10) ** -15
        slope = (moved(-2 * h) - 8 * moved(-h) + 8 * moved(h) - moved(2 * h)) / (12 * h)
        return float(slope / args[which])


def compiled(name, dtype="float64", mode=None, ndim=1):
    args = [pt.tensor(dtype=dtype, shape=(None,) * ndim) for _ in shapes_and_places(name)]
    return phintys.function(args, getattr(pt, name)(*args), mode=mode)


@pytest.mark.parametrize("name", ["gammainc_der", "betainc_der_a", "betainc_der_b"])
def test_first_derivatives_are_accurate(name):
    args = shapes_and_places(name)
    expected = [first_derivative(name, given) for given in zip(*args)]
    np.testing.assert_allclose(compiled(name)(*args), expected, rtol=1e-10, atol=1e-40)


@pytest.mark.parametrize(
    ("a", "b", "x"), [(0.0018, 23.9, 1e-6), (407.8, 0.0056, 0.999999), (0.0036, 6.3, 1e-6)]
)
def test_shapes_of_different_sizes(a, b, x):
    """The density decays slowly on one side of x, and abruptly far away on the other one."""
    for name in ("betainc_der_a", "betainc_der_b"):
        found = compiled(name, ndim=0)(a, b, x)
        np.testing.assert_allclose(found, first_derivative(name, (a, b, x)), rtol=1e-10)


@pytest.mark.parametrize("name", few(DERIVATIVES, "gammainc_der", "betainc_der_aa"))
@pytest.mark.parametrize("mode", ["FAST_RUN", "C", "NUMBA", "JAX"])
def test_compiled_functions_agree_with_the_reference(name, mode):
    args = shapes_and_places(name, seed=1)
    expected = compiled(name, mode="FAST_COMPILE")(*args)
    rtol = 1e-7 if mode == "JAX" else 1e-10  # JAX's betaln has fewer digits
    np.testing.assert_allclose(compiled(name, mode=mode)(*args), expected, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", DERIVATIVES)
def test_compiled_functions_do_not_call_python(name):
    f = compiled(name)
    assert not any(isinstance(step, Python) for step in f.program.steps)


@pytest.mark.parametrize("name", few(DERIVATIVES, "gammainc_der", "betainc_der_a"))
def test_shapes_and_dtypes(name):
    args = [x.reshape(3, 4).astype("float32") for x in shapes_and_places(name)]
    found = compiled(name, "float32", ndim=2)(*args)
    reference = compiled(name, mode="FAST_COMPILE", ndim=2)(*(x.astype("float64") for x in args))
    assert found.dtype == "float32" and found.shape == (3, 4)
    np.testing.assert_allclose(found, reference, rtol=1e-6, atol=1e-12)
    assert compiled(name, ndim=2)(*(np.ones((0, 2)) for _ in args)).shape == (0, 2)
    assert compiled(name, ndim=0)(*(x[0, 0].astype("float64") for x in args)).shape == ()


def test_edges():
    k, x = np.array([[1, 1, 1, 0, -1, np.nan, np.inf], [0, np.inf, -1, 1, 1, 1, 1]])
    expected = [0, 0, *[np.nan] * 5]
    np.testing.assert_array_equal(compiled("gammainc_der")(k, x), expected)
    a, b = np.array([[1, 1, 1, 0, 1, np.nan], [1, 1, 1, 1, -1, 1]])
    z = np.array([0, 1, 2, 0.5, 0.5, 0.5])
    np.testing.assert_array_equal(compiled("betainc_der_a")(a, b, z), [0, 0, *[np.nan] * 4])
