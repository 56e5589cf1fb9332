"""Reductions over nothing, and their derivatives: rewriting does not change what they are."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode
from phintys.tensor import special

#: of a matrix, and a vector and a number that repeat along its first axis, or along both
EXPRESSIONS = {
    "mean": lambda a, y, s: (a + y).mean(),
    "mean by column": lambda a, y, s: (s * a + y).mean(axis=0).sum(),
    "mean by row": lambda a, y, s: (a * y).mean(axis=1).sum(),
    "var": lambda a, y, s: (a * y).var(axis=0).sum(),
    "std of shifted": lambda a, y, s: (a * y).std(axis=1, ddof=0).sum(),
    "factor": lambda a, y, s: (s * a).sum(),
    "infinite factor": lambda a, y, s: ((1 / s) * a).sum(axis=0).sum(),
    "divisor": lambda a, y, s: (a / s).sum(axis=1).sum(),
    "fill": lambda a, y, s: pt.second(a, 1 / s).sum(),
    "product": lambda a, y, s: (a * y).prod(axis=0).sum(),
    "product of fill": lambda a, y, s: pt.second(a, s).prod(axis=1).sum(),
    "greatest": lambda a, y, s: (a * y).max(axis=0, initial=-np.inf).sum(),
    "greatest of fill": lambda a, y, s: pt.second(a, s).max(axis=0, initial=-np.inf).sum(),
    "smallest of fill": lambda a, y, s: pt.second(a, s).min(initial=np.inf),
    "logsumexp": lambda a, y, s: pt.exp(pt.logsumexp(a * y, axis=0)).sum(),
    "log of sum of exp": lambda a, y, s: pt.exp(pt.log(pt.exp(a * y).sum(axis=1))).sum(),
    "softmax": lambda a, y, s: (special.softmax(a, axis=1) * y).sum(),
    "log_softmax": lambda a, y, s: (special.log_softmax(a, axis=0) * y).mean(),
    "rows divided by their sums": lambda a, y, s: (
        (pt.exp(a) / pt.exp(a).sum(axis=1, keepdims=True)) * y
    ).sum(),
    "product of matrices": lambda a, y, s: (a @ y / s).sum(),
    "norm": lambda a, y, s: ((a * y) ** 2).sum() / a.shape[0],
    "log of product": lambda a, y, s: pt.log(pt.exp(a * y).prod()),
}


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0), (2, 3)], ids=str)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_values_and_derivatives_as_without_rewriting(name, shape):
    a, y, s = pt.dmatrix("a"), pt.dvector("y"), pt.dscalar("s")
    out = EXPRESSIONS[name](a, y, s)
    grads = phintys.grad(out, [a, y, s], disconnected_inputs="ignore")
    options = {"on_unused_input": "ignore"}
    rng = np.random.default_rng(0)
    given = [rng.uniform(0.5, 2, shape), rng.uniform(0.5, 2, shape[1])]
    plain = phintys.function([a, y, s], [out, *grads], mode=Mode("py", None), **options)
    for mode in (None, Mode("py", "fast_run")):
        f = phintys.function([a, y, s], [out, *grads], mode=mode, **options)
        for number in (0.7, 0.0) if 0 in shape else (0.7,):
            for found, expected in zip(f(*given, number), plain(*given, number), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=f"s = {number}")


def test_the_gradient_of_a_mean_of_nothing_is_zero():
    a, y = pt.dmatrix("a"), pt.dvector("y")
    f = phintys.function([a, y], phintys.grad((a + y).mean(), y))
    np.testing.assert_array_equal(f(np.ones((0, 3)), np.ones(3)), [0, 0, 0])
    static = pt.tensor("t", dtype="float64", shape=(0, 3))
    f = phintys.function([static, y], phintys.grad((static + y).mean(), y))
    np.testing.assert_array_equal(f(np.ones((0, 3)), np.ones(3)), [0, 0, 0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "float32"])
@pytest.mark.parametrize("count", [0, 1, 200])
def test_reductions_of_a_fill_in_small_dtypes(dtype, count):
    """The number of elements need not fit into the dtype of the elements."""
    x, v = pt.scalar("x", dtype=dtype), pt.dvector("v")
    for reduce, acc in ((pt.sum, dtype), (pt.prod, dtype), (pt.sum, None), (pt.prod, None)):
        out = reduce(pt.alloc(x, v.shape[0]), dtype=acc, acc_dtype=acc)
        f = phintys.function([x, v], out)
        plain = phintys.function([x, v], out, mode=Mode("py", None))
        np.testing.assert_allclose(f(3, np.ones(count)), plain(3, np.ones(count)), rtol=1e-5)


@pytest.mark.parametrize("exponent", [lambda v: v, lambda v: pt.constant([-1, 1])])
def test_powers_that_are_errors_are_not_computed_for_empty_fills(exponent):
    """A power before the fill would be computed; the fill of it has no elements."""
    v = pt.lvector("v")
    filled = pt.broadcast_to(v, (0, 2))
    f = phintys.function([v], pt.pow(filled, exponent(filled)))
    assert f([3, -3]).shape == (0, 2)
