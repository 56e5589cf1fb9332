"""Softmax and its relatives: values, extremes, one kernel, derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from tensor_checks import MODES, assert_like, check, check_batched, check_derivatives, evaluate
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax
from phintys.tensor.xlogx import xlogx, xlogy0

RNG = np.random.default_rng(0)
FUNCTIONS = {
    "softmax": (pt.special.softmax, scipy.special.softmax),
    "log_softmax": (pt.special.log_softmax, scipy.special.log_softmax),
    "logsumexp": (pt.logsumexp, scipy.special.logsumexp),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "dtype", few(["float64", "float32", "int32", "float16"], "float64", "float16")
)
@pytest.mark.parametrize("axis", few([None, 0, 1, -1, (0, 2)], None, 1))
def test_values(name, dtype, axis):
    build, reference = FUNCTIONS[name]
    x = (RNG.normal(size=(2, 3, 4)) * 5).astype(dtype)
    out = "float64" if dtype == "int32" else dtype
    check(
        lambda x: build(x, axis=axis), lambda x: reference(x.astype("float64"), axis=axis), [x], out
    )


@pytest.mark.parametrize("mode", MODES)
def test_large_and_infinite_elements(mode):
    inf, nan = np.inf, np.nan
    value = np.array(
        [[1000.0, 1001.0], [-1000.0, -1001.0], [-inf, 0.0], [-inf, -inf], [inf, 0.0], [nan, 0.0]]
    )
    x = pt.dmatrix("x")
    with np.errstate(all="ignore"):
        expected = scipy.special.softmax(value[:4], axis=1)
        logs = scipy.special.log_softmax(value[:3], axis=1)
    assert_like(evaluate(pt.special.softmax(x, 1), [x], [value[:4]], mode), expected)
    assert_like(evaluate(pt.special.log_softmax(x, 1), [x], [value[:3]], mode), logs)
    sums = [1001 + np.log1p(np.exp(-1)), -1000 + np.log1p(np.exp(-1)), 0, -inf, inf, nan]
    assert_like(evaluate(pt.logsumexp(x, 1), [x], [value], mode), sums)
    assert np.isnan(evaluate(pt.special.softmax(x, 1), [x], [value[4:]], mode)).all(axis=1)[1]


@pytest.mark.parametrize("mode", MODES)
def test_empty(mode):
    x = pt.dmatrix("x")
    for shape in ((0, 3), (3, 0)):
        value = np.zeros(shape)
        assert evaluate(pt.special.softmax(x, 1), [x], [value], mode).shape == shape
        assert evaluate(pt.special.log_softmax(x, 1), [x], [value], mode).shape == shape
        expected = np.full(shape[0], -np.inf)
        assert_like(evaluate(pt.logsumexp(x, 1), [x], [value], mode), expected)


def test_defaults_and_structure():
    x = pt.dmatrix("x")
    assert pt.special.softmax(x).owner.op == Softmax(axis=(0, 1))
    assert pt.special.log_softmax(x, -1).owner.op == LogSoftmax(axis=(1,))
    assert pt.logsumexp(x).owner.op == LogSumExp(axis=(0, 1))
    assert pt.logsumexp(x, 0, keepdims=True).type.shape == (1, None)
    assert str(Softmax(axis=1)) == "Softmax{axis=(1,)}"
    assert evaluate(pt.special.softmax(pt.constant(3.0))) == 1
    with pytest.raises(ValueError, match="out of bounds"):
        pt.special.softmax(x, axis=2)
    with pytest.raises(TypeError, match="complex"):
        pt.special.softmax(pt.zmatrix())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_and_batches(name):
    build, _ = FUNCTIONS[name]
    x = RNG.normal(size=(3, 4))
    for axis in (None, 0, 1):
        check_derivatives(lambda x, a=axis: build(x, axis=a), [x])
        check_batched(lambda x, a=axis: build(x, axis=a), [x])


def test_one_hot():
    for dtype in ("int8", "int64", "uint8"):
        y = np.array([[0, 2], [1, 1]], dtype)
        check(lambda y: pt.one_hot(y, 3), lambda y: np.eye(3)[y], [y])
        check(
            lambda y: pt.to_one_hot(y, 3, "int8"), lambda y: np.eye(3, dtype="int8")[y.ravel()], [y]
        )
    assert_like(evaluate(pt.one_hot([-1, 3], 3)), np.zeros((2, 3)))
    with pytest.raises(TypeError, match="integers"):
        pt.one_hot(pt.dvector(), 3)


def test_kn():
    n, x = np.array([0, 1, 3, 2]), np.array([0.5, 1.5, 30.0, np.nan])
    check(pt.kn, scipy.special.kn, [n, x])
    check(lambda x: pt.kn(2, x), lambda x: scipy.special.kv(np.float32(2), x), [x.astype("f4")])
    check_derivatives(lambda x: pt.kn(2, x), [x[:2]])


@pytest.mark.parametrize("name", ["gammainc", "gammaincinv", "gammainccinv", "betainc",
                                  "betaincinv", "hyp2f1", "chi2sf"])  # fmt: skip
def test_second_derivatives_in_parameters(name):
    """Against differences of the first derivatives; in all arguments together."""
    count = {"betainc": 3, "betaincinv": 3, "hyp2f1": 4}.get(name, 2)
    at = pt.dvector("at")
    (slope,) = pt.grad(getattr(pt, name)(*(at[i] for i in range(count))), [at])
    hessian = pt.stack([pt.grad(slope[i], at) for i in range(count)])
    f = phintys.function([at], [slope, hessian], mode="FAST_COMPILE")
    point = np.array([1.7, 2.3, 0.4, 0.3]) if count > 2 else np.array([2.2, 0.6])
    point, step = point[:count], 1e-5
    shifts = step * np.eye(count)
    expected = [(f(point + d)[0] - f(point - d)[0]) / (2 * step) for d in shifts]
    np.testing.assert_allclose(f(point)[1], expected, rtol=1e-7, atol=1e-9)


def test_xlogx():
    x = np.array([0.0, 0.5, 2.0, -1.0, np.nan])
    check(xlogx, lambda x: scipy.special.xlogy(x, x), [x])
    check(xlogy0, scipy.special.xlogy, [x, np.array([0.0, -1.0, 3.0, 2.0, 1.0])])
    check_derivatives(xlogx, [x[1:3]])


def test_compositions():
    x = np.array([0.5, 1.5, 3.0])
    y = np.array([0.25, 0.5, 2.0])
    for build, reference in [
        (pt.special.poch, scipy.special.poch),
        (pt.special.beta, scipy.special.beta),
        (pt.special.betaln, scipy.special.betaln),
        (pt.special.xlogy, scipy.special.xlogy),
        (pt.special.xlog1py, scipy.special.xlog1py),
        (pt.special.logaddexp, np.logaddexp),
    ]:
        check(build, reference, [x, y])
    check(pt.special.factorial, scipy.special.factorial, [x])
    check(pt.special.logit, scipy.special.logit, [np.array([0.1, 0.5, 0.9])])


def test_second_derivative_of_log_ndtr_where_erfcx_overflows():
    x = pt.dvector("x")
    slope = phintys.grad(pt.log_ndtr(x).sum(), x)
    found = phintys.function([x], [slope, phintys.grad(slope.sum(), x)])([12.0, 40.0, 1e3])
    density = np.exp(-72.0) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(found, [[density, 0, 0], [-12 * density, 0, 0]], rtol=1e-14)


def test_logarithm_of_i0_where_it_overflows():
    x = pt.dvector("x")
    y = 2.5 - pt.log(pt.i0(x))
    value, slope = phintys.function([x], [y, phintys.grad(y.sum(), x)])([1.0, 1e4])
    scaled = scipy.special.i0e([1.0, 1e4])
    np.testing.assert_allclose(value, 2.5 - np.log(scaled) - [1.0, 1e4], rtol=1e-14)
    np.testing.assert_allclose(slope, -scipy.special.i1e([1.0, 1e4]) / scaled, rtol=1e-14)
