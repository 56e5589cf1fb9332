"""Derivatives where rules have cases: at zeros, ties and repeated indices, in masked branches."""

from __future__ import annotations

import numpy as np
import pytest
from derivative_checks import check, point_of
from rows import ROWS, arity
from tensor_checks import evaluate, symbols

import phintys.tensor as pt
from phintys import grad
from phintys.scalar.op import TABLE
from phintys.tensor.reduce import ProdWithoutZeros

ZEROS = np.array([[0.0, 2, 3], [0, 0, 3], [0, 0, 0], [1, 2, 3]])
NOUGHT, MIXED = np.zeros(3), np.array([0.0, 0, 2])
TWICE = np.array([2, 0, 2, -1])

#: name -> (expression, values): smooth functions, at points where formulas may divide by zero
SMOOTH = {
    "prod": (lambda x: pt.prod(x, axis=1), [ZEROS]),
    "prod of all": (lambda x: pt.prod(x), [ZEROS[:2, :2]]),
    "prod, complex": (lambda x: pt.prod(x, axis=0), [ZEROS * (1 + 2j)]),
    "cumprod": (lambda x: pt.cumprod(x, axis=1), [ZEROS]),
    "cumprod down": (lambda x: pt.cumprod(x, axis=0), [ZEROS]),
    "cumprod of all": (lambda x: pt.cumprod(x), [ZEROS]),
    "cumprod, complex": (lambda x: pt.cumprod(x, axis=1), [ZEROS * (1 - 1j)]),
    "mul": (lambda x, y: x * y * x, [NOUGHT, MIXED]),
    "square": (lambda x: (x**2).sum() ** 2, [MIXED]),
    "constant powers": (lambda x: [x**k for k in range(4)], [MIXED]),
    "powers": (lambda x: x ** pt.constant([0.0, 1, 2, 3]), [np.zeros(4)]),
    "integer powers": (lambda x: x ** pt.constant([0, 1, 2, 3]), [np.zeros(4)]),
    "complex powers": (lambda x: x**3, [MIXED * 1j]),
    "xlogy": (lambda x, y: pt.xlogy(x, y), [NOUGHT, MIXED + 1]),
    "xlog1py": (lambda x, y: pt.xlog1py(x, y), [NOUGHT, MIXED]),
    "sinc": (lambda x: pt.sinc(x), [np.array([0, 1e-8, 1e-3, 0.159, 0.16, 1])]),
    "spence": (lambda x: pt.spence(x), [np.array([1, 1 + 1e-6, 0.94, 0.96, 1.04, 1.06])]),
    "arctan2": (lambda x, y: pt.arctan2(x, y), [NOUGHT, MIXED + 1]),
    "hypot": (lambda x, y: pt.hypot(x, y), [NOUGHT, MIXED + 1]),
    "logaddexp": (lambda x, y: pt.logaddexp(x, y), [NOUGHT, NOUGHT]),
    "logsumexp of equal": (lambda x: pt.logsumexp(x, axis=1), [ZEROS * 0]),
    "softmax of equal": (lambda x: pt.softmax(x, axis=1), [ZEROS * 0]),
    "variance of equal": (lambda x: pt.var(x, axis=0), [ZEROS * 0]),
    "Bessel functions": (lambda x: [pt.jv(k, x) for k in range(3)] + [pt.iv(1, x)], [NOUGHT]),
    "set, repeated": (lambda x, y: pt.set_subtensor(x[TWICE], y), [ZEROS, ZEROS + 1]),
    "increment, repeated": (lambda x, y: pt.inc_subtensor(x[TWICE], y), [ZEROS, ZEROS + 1]),
    "set, one value for all": (lambda x, y: pt.set_subtensor(x[TWICE], y), [ZEROS, MIXED]),
    "read, repeated": (lambda x: x[TWICE, [1, 1, 1, 1]] ** 2, [ZEROS + 1]),
    "set, mask": (lambda x, y: pt.set_subtensor(x[ZEROS > 1], y), [ZEROS, np.array(1.0)]),
    "set of nothing": (lambda x, y: pt.set_subtensor(x[4:], y), [ZEROS, ZEROS[:0]]),
    "unwritten": (lambda y: pt.set_subtensor(pt.zeros((4, 3))[1:3], y), [ZEROS[:2]]),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions(name):
    assert check(point_of(*SMOOTH[name])) == []


INF = np.inf


def _norm_or_zero(s):
    return pt.where(s > 0, pt.sqrt(s), 0)


#: name -> (expression, values, gradient): what holds where there is no derivative, or no finite one
CONVENTIONS = {
    "max: all that are equal": (lambda x: pt.max(x), [1, 2, 2], [0, 1, 1]),
    "min: all that are equal": (lambda x: pt.min(x), [1, 1, 2], [1, 1, 0]),
    "maximum: the first": (lambda x: pt.maximum(x, x * 0 + 2).sum(), [1, 2, 3], [0, 1, 1]),
    "minimum: the first": (lambda x: pt.minimum(x, x * 0 + 2).sum(), [1, 2, 3], [1, 1, 0]),
    "clip: at both bounds": (lambda x: pt.clip(x, 1, 2).sum(), [0, 1, 2, 3], [0, 1, 1, 0]),
    "abs": (lambda x: pt.abs(x).sum(), [-1, 0, 1], [-1, 0, 1]),
    "sqrt": (lambda x: pt.sqrt(x).sum(), [0, 4], [INF, 0.25]),
    "cbrt": (lambda x: pt.cbrt(x).sum(), [0, 1], [INF, 1 / 3]),
    "log": (lambda x: pt.log(x).sum(), [0, 2], [INF, 0.5]),
    "entr": (lambda x: pt.entr(x).sum(), [0, 1], [INF, -1]),
    "xlogy of 0 and 0": (lambda x: pt.xlogy(pt.zeros_like(x), x).sum(), [0, 1], [0, 0]),
    "hypot of 0 and 0": (lambda x: pt.hypot(x, x * 2).sum(), [0], [0]),
    "power in its exponent": (lambda x: (pt.zeros_like(x) ** x).sum(), [0, 1, 2], [0, 0, 0]),
    "power of itself": (lambda x: (x**x).sum(), [0, 1], [-INF, 1]),
    "sort: in stable order": (
        lambda x: (pt.sort(x, stable=True) * np.arange(3)).sum(), [2, 1, 1], [2, 0, 1],
    ),
    "distinct: the first": (lambda x: pt.unique(x).sum(), [2, 1, 2], [1, 1, 0]),
    "rounding": (lambda x: (pt.floor(x) + pt.round(x) + pt.sign(x)).sum(), [0, 0.5], [0, 0]),
    "log of the positive": (lambda x: pt.where(x > 0, pt.log(x), 0).sum(), [-1, 0, 2], [0, 0, 0.5]),
    "1 / x where it exists": (lambda x: pt.where(x > 0, 1 / x, 0).sum(), [-1, 0, 2], [0, 0, -0.25]),
    "norm where it is not 0": (lambda x: _norm_or_zero(pt.sum(x**2)), [0, 0], [0, 0]),
    "product without zeros": (
        lambda x: ProdWithoutZeros()(x), [0, 2, 3], [0, 3, 2],
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
@pytest.mark.parametrize("name", CONVENTIONS)
def test_conventions(name, mode):
    build, values, expected = CONVENTIONS[name]
    x = pt.dvector("x")
    found = evaluate(grad(build(x), x), [x], [np.array(values, "float64")], mode)
    np.testing.assert_array_equal(found, np.array(expected, "float64"))


def test_the_magnitude_of_a_complex_zero():
    z = pt.zvector("z")
    for out in (pt.abs(z), pt.real(pt.sign(z))):
        assert evaluate(grad(out.sum(), z), [z], [np.zeros(2, "complex128")]).tolist() == [0, 0]


@pytest.mark.parametrize("reduce", [pt.sum, pt.prod, pt.max])
def test_gradients_in_integers_are_no_integers(reduce):
    n = pt.lvector("n")
    out = reduce(n, dtype="float64") if reduce is not pt.max else reduce(n).astype("float64")
    expected = {pt.sum: [0.5, 0.5], pt.prod: [1.5, 1.0], pt.max: [0.0, 0.0]}
    assert evaluate(grad(0.5 * out, n), [n], [np.array([2, 3])]).tolist() == expected[reduce]


UNARY = [n for n in ROWS if TABLE[n].d is not None and arity(TABLE[n]) == 1 and hasattr(pt, n)]
ANYWHERE = np.array([-800, -2, -1, 0, 1, 2, 800, np.inf, np.nan])


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
@pytest.mark.parametrize("start", range(0, len(UNARY), 20))
def test_a_masked_branch_has_no_derivative(start, mode):
    """``where(no, f(x), 0)``, where f or its derivatives are inf or NaN."""
    x, chosen = symbols([ANYWHERE, ANYWHERE > 0])
    graphs = {}
    for name in UNARY[start : start + 20]:
        f = getattr(pt, name)
        first = grad(pt.where(chosen, f(x), 0).sum(), x)
        graphs[name] = first
        graphs[f"{name}, second"] = grad(first.sum(), x, disconnected_inputs="ignore")
        graphs[f"{name}, squared"] = grad(pt.sqr(pt.where(chosen, f(x), 0)).sum(), x)
        graphs[f"{name} in exp"] = grad(pt.where(chosen, pt.exp(f(x * x)), 0).sum(), x)
    found = evaluate(list(graphs.values()), [x, chosen], [ANYWHERE, np.zeros(9, bool)], mode)
    assert [name for name, g in zip(graphs, found) if not np.array_equal(g, np.zeros(9))] == []
