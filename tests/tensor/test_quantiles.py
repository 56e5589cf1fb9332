"""Quantiles, covariance, trapezoids and windows against NumPy; derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import check, check_all, check_batched, check_derivatives
from tiers import few

import phintys
import phintys.tensor as pt

RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4, 5))


@pytest.mark.parametrize("axis", few([None, 0, -1, (0, 2), ()], None, (0, 2)))
@pytest.mark.parametrize("dtype", few(["float64", "float32", "int8", "bool"], "float64", "bool"))
def test_median_is_numpys(axis, dtype):
    x = (3 * X).astype(dtype)
    result = "float32" if dtype == "float32" else "float64"
    numbers = x.astype("int8") if dtype == "bool" else x
    check(lambda x: pt.median(x, axis), lambda _: np.median(numbers, axis).astype(result), [x])
    found = pt.median(x, axis, keepdims=True).eval()
    np.testing.assert_array_equal(found, np.median(numbers, axis, keepdims=True))


def test_median_of_special_numbers():
    nan, inf = np.nan, np.inf
    for row in (
        [1, nan, 2],
        [1, nan],
        [inf, inf],
        [-inf, inf],
        [1e308, 1.5e308],
        [-0.0],
        [inf, 1],
        [5e-324] * 2,
    ):
        with np.errstate(all="ignore"):
            expected = np.median(row) if row[0] != 1e308 else 1.25e308
        np.testing.assert_equal(pt.median(np.array(row)).eval(), expected)
    f = phintys.function([v := pt.dvector()], pt.median(v))
    with pytest.raises(IndexError):
        f([])
    with pytest.raises(TypeError, match="complex"):
        pt.median(pt.zvector())


def test_derivatives_and_batches_of_the_median():
    for n in (4, 5):
        check_derivatives(lambda x: pt.median(x, axis=1), [RNG.normal(size=(3, n))])
        check_batched(pt.median, [RNG.normal(size=n)])
    for equal in ([1.0, 1.0], [0.0, 1.0, 2.0, 1.0]):  # the sum of the two in the middle is smooth
        check_derivatives(pt.median, [equal])
        check_derivatives(lambda x: pt.quantile(x, 0.5), [equal])


METHODS = ["linear", "lower", "higher", "midpoint", "nearest"]


@pytest.mark.parametrize("method", few(METHODS, "linear", "midpoint"))
@pytest.mark.parametrize("axis", few([None, 1, (0, 2)], (0, 2)))
def test_quantile_is_numpys(axis, method):
    numbers = 0.3, np.array([[0.0, 0.25], [0.5, 1.0]]), np.array([0.1, 0.35, 0.9], "float32")
    check_all(
        (
            f"numbers {np.asarray(q).tolist()}, keepdims {keepdims}",
            lambda x, q, k=keepdims: pt.quantile(x, q, axis, method, k),
            lambda x, q, k=keepdims: np.quantile(
                x, q.astype("float64"), axis, method=method, keepdims=k
            ),
            [X, q],
        )
        for q in numbers
        for keepdims in (False, True)
    )


def test_percentile_and_special_numbers():
    check(lambda x: pt.percentile(x, [10, 75]), lambda x: np.percentile(x, [10, 75]), [X])
    check(lambda x: pt.quantile(x, 0.4), lambda x: np.quantile(x, 0.4), [np.array([1.0, np.nan])])
    assert pt.quantile([np.inf, np.inf, 1.0], 0.9).eval() == np.inf
    fraction = pt.dscalar("q")
    for q in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="between 0 and 1"):
            pt.quantile([1.0, 2.0], q)
        with pytest.raises(ValueError, match="between 0 and 1"):
            pt.percentile([1.0, 2.0], [50.0, 100 * q])
        with pytest.raises(IndexError):
            pt.quantile([1.0, 2.0], fraction).eval({fraction: q})
    with pytest.raises(ValueError, match="no method"):
        pt.quantile([1.0], 0.5, method="best")
    check_derivatives(lambda x: pt.quantile(x, [0.2, 0.7], axis=1), [RNG.normal(size=(3, 6))])


W, A = np.array([1, 3, 0, 2, 1]), np.array([0.5, 1.0, 2.0, 0.25, 1.0])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"bias": True},
        {"ddof": 2},
        {"fweights": W},
        {"aweights": A},
        {"fweights": W, "aweights": A},
        {"aweights": A, "ddof": 0},
    ],
    ids=str,
)
def test_cov_is_numpys(arguments):
    for x in (X[0], X[0].astype("float32"), (9 * X[0]).astype("int8"), X[0] + 1j * X[1], X[0, 0]):
        rtol = 1e-5 if x.dtype == "float32" else 1e-10
        expected = np.cov(x, **arguments)
        found = pt.cov(x, **arguments).eval()
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=rtol)
        if x.ndim == 2:
            other = pt.cov(x.T, rowvar=False, **arguments).eval()
            np.testing.assert_allclose(other, expected, rtol=rtol)
        np.testing.assert_allclose(
            pt.cov(x, X[2], **arguments).eval(), np.cov(x, X[2], **arguments), rtol=rtol
        )


def test_derivatives_and_wrong_arguments_of_cov():
    check_derivatives(lambda x: pt.cov(x), [X[0]])
    check_derivatives(lambda x: pt.cov(x, aweights=A), [X[0]])
    with pytest.raises(ValueError, match="vectors and matrices"):
        pt.cov(X)
    with pytest.raises(TypeError, match="an integer vector"):
        pt.cov(X[0], fweights=A)
    with pytest.raises(TypeError, match="is an integer"):
        pt.cov(X[0], ddof=0.5)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_trapezoid_is_numpys(axis):
    integrate = getattr(np, "trapezoid", None) or np.trapz
    points = np.sort(RNG.normal(size=X.shape[axis]))
    for x, dx in ((None, 1.0), (None, 0.5), (points, 1.0), (np.sort(X[::-1], axis), 1.0)):
        check(
            lambda y, x=x, dx=dx: pt.trapezoid(y, x, dx, axis),
            lambda y, x=x, dx=dx: integrate(y, x, dx, axis),
            [X],
        )
    check_derivatives(lambda y, x: pt.trapezoid(y, x), [X[0, 0], np.arange(5.0) ** 2])
    steps = np.cumsum(np.abs(X[0]), axis=-1)  # of lower rank than X
    if axis == -1:
        check(lambda y, x: pt.trapezoid(y, x), lambda y, x: integrate(y, x), [X, steps])
    bools = np.array([False, True, True])
    assert pt.trapezoid([1.0, 2.0, 4.0], bools).eval() == 1.5
    assert pt.trapezoid(np.array([1, 2])).eval() == 1.5


def test_bartlett_is_numpys():
    f = phintys.function([n := pt.lscalar()], pt.bartlett(n))
    for k in (0, 1, 2, 3, 8, -2):
        np.testing.assert_allclose(f(k), np.bartlett(k), rtol=1e-15)
        assert f(k).dtype == "float64"
    for wrong in (4.5, [1]):
        with pytest.raises(TypeError, match="an integer"):
            pt.bartlett(wrong)
