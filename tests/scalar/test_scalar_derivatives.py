"""Derivatives of every row: first and second order against mpmath, forward against reverse."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from rows import CASTS, REFERENCE, ROWS, arity, points

from phintys.graph.type import NullType
from phintys.scalar import Composite, complex128, float32, float64, scalars
from phintys.scalar.op import TABLE, Undefined, functions

DIFFERENTIABLE = [n for n in REFERENCE if TABLE[n].d is not None]
#: the reference itself is a numerical derivative or an integral: one order is enough
FIRST_ORDER_ONLY = {
    "gammainc_der", "betainc_der_a", "betainc_der_b", "hyp2f1_der_a", "hyp2f1_der_c", "owens_t",
    "gammainc_der2", "betainc_der_aa", "betainc_der_ab", "betainc_der_bb", "hyp2f1_der_aa",
    "hyp2f1_der_ab", "hyp2f1_der_ac", "hyp2f1_der_cc", "gammaincinv", "gammainccinv", "betaincinv",
}  # fmt: skip


def variables(name: str, values: list[np.ndarray]) -> list[Any]:
    return [getattr(scalars, v.dtype.name)(f"x{i}") for i, v in enumerate(values)]


def evaluate(inputs: list[Any], output: Any, values: list[np.ndarray]) -> np.ndarray:
    return np.asarray(Composite(inputs, [output]).compute(*values))


def gradient(inputs: list[Any], output: Any) -> list[Any]:
    """Reverse mode through the graph: derivatives, or the reasons why there are none."""
    node = Composite(inputs, [output]).make_node(*inputs)
    one = functions.second(output, 1.0)
    return node.op.cotangents(functions, inputs, node.outputs, [one])


def exact(name: str, orders: list[int], row: tuple[float, ...]) -> float:
    """A partial derivative of the reference."""
    with mp.workdps(40):
        arguments = tuple(map(mp.mpf, row))
        wrt = [i for i, order in enumerate(orders) if order]
        f = REFERENCE[name]

        def section(*moving: Any) -> Any:
            full = list(arguments)
            for i, x in zip(wrt, moving):
                full[i] = x
            return f(*full)

        at = tuple(arguments[i] for i in wrt)
        order = tuple(orders[i] for i in wrt)
        if len(wrt) == 1:
            return float(mp.diff(section, at[0], order[0], h=mp.mpf(10) ** -10))
        return float(mp.diff(section, at, order, h=mp.mpf(10) ** -10))


def assert_partial(name: str, orders: list[int], found: np.ndarray, values: Any) -> None:
    expected = [exact(name, orders, row) for row in zip(*values)]
    np.testing.assert_allclose(
        np.broadcast_to(found, np.shape(expected)), expected, rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_first_derivative(name: str) -> None:
    values = points(name, 3)
    xs = variables(name, values)
    y = TABLE[name](*xs)
    tested = 0
    for i, g in enumerate(gradient(xs, y)):
        if isinstance(g, Undefined) or values[i].dtype.kind != "f":
            continue
        tested += 1
        found = np.zeros(1) if g is None else evaluate(xs, g, values)
        assert_partial(name, [int(k == i) for k in range(len(xs))], found, values)
    assert tested


def has_gradient(name: str) -> bool:
    """Whether a row has a derivative that is not 0 everywhere."""
    xs = variables(name, points(name, 1))
    return any(
        g is not None and not isinstance(g, Undefined) for g in gradient(xs, TABLE[name](*xs))
    )


OF_SECOND_ORDER = [n for n in DIFFERENTIABLE if n not in FIRST_ORDER_ONLY and has_gradient(n)]


@pytest.mark.parametrize("name", OF_SECOND_ORDER)
def test_second_derivative(name: str) -> None:
    values = points(name, 2)
    xs = variables(name, values)
    y = TABLE[name](*xs)
    for i, g in enumerate(gradient(xs, y)):
        if g is None or isinstance(g, Undefined) or values[i].dtype.kind != "f":
            continue
        for k, h in enumerate(gradient(xs, g)):
            if isinstance(h, Undefined) or values[k].dtype.kind != "f":
                continue
            found = np.zeros(1) if h is None else evaluate(xs, h, values)
            orders = [int(j == i) + int(j == k) for j in range(len(xs))]
            assert_partial(name, orders, found, values)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_forward_mode_agrees_with_reverse(name: str) -> None:
    op = TABLE[name]
    values = points(name, 3)
    xs = variables(name, values)
    y = op(*xs)
    for i, g in enumerate(gradient(xs, y)):
        if isinstance(g, Undefined) or values[i].dtype.kind != "f":
            continue
        given = [functions.second(x, 1.0) if k == i else None for k, x in enumerate(xs)]
        t = op.tangents(functions, xs, [y], given)
        forward = np.zeros(1) if t is None else evaluate(xs, t, values)
        reverse = np.zeros(1) if g is None else evaluate(xs, g, values)
        np.testing.assert_allclose(*np.broadcast_arrays(forward, reverse), rtol=1e-12, atol=1e-300)


SILENT = [n for n in ROWS if TABLE[n].d is None and not TABLE[n].not_differentiable]


@pytest.mark.parametrize("name", SILENT)
def test_a_row_without_derivative_and_reason_is_discrete(name: str) -> None:
    op = TABLE[name]
    assert op.compute(*[np.ones(1, "int8")] * arity(op)).dtype.kind in "biu"


def dtypes_of_gradient(name: str) -> set[str]:
    """Of the derivatives of a row in float32, where its points have floats, else int8."""
    values = points(name, 1)
    xs = [scalars.float32() if v.dtype.kind == "f" else scalars.int8() for v in values]
    found = gradient(xs, TABLE[name](*xs))
    return {g.type.dtype for g in found if g is not None and not isinstance(g, Undefined)}


def test_derivatives_of_float32_are_not_widened() -> None:
    """A literal that float32 cannot hold would widen the kernel of the gradient."""
    dtypes = {name: dtypes_of_gradient(name) for name in DIFFERENTIABLE}
    assert any(dtypes.values())
    wide = {n: found - {"float32", "int8", "bool"} for n, found in dtypes.items()}
    assert {n: found for n, found in wide.items() if found} == {}


@pytest.mark.parametrize("name", CASTS)
def test_derivative_of_cast(name: str) -> None:
    x = float32("x")
    y = TABLE[name](x)
    g = y.type("g")
    (found,) = y.owner.op.pullback([x], [y], [g])
    assert found.type.dtype == "float32"
    value = evaluate([x, g], found, [np.float32([1.0]), np.ones(1, y.type.dtype)])
    assert value == (0 if y.type.dtype[0] in "biu" else 1)


# --------------------------------------------------------------- rows of the table of semantics


def value_of(g: Any, *pairs: tuple[Any, float]) -> float:
    inputs = [x for x, _ in pairs]
    return float(evaluate(inputs, g, [np.float64(v) for _, v in pairs]))


def pull(y: Any, inputs: list[Any], cotangent: Any) -> list[Any]:
    return y.owner.op.cotangents(functions, inputs, [y], [cotangent])


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_ties_go_to_the_first(name: str) -> None:
    x, y, g = float64("x"), float64("y"), float64("g")
    first, second = pull(TABLE[name](x, y), [x, y], g)
    at = ((x, 2.0), (y, 2.0), (g, 3.0))
    assert (value_of(first, *at), value_of(second, *at)) == (3.0, 0.0)


def test_abs_at_zero() -> None:
    x, g = float64("x"), float64("g")
    (found,) = pull(TABLE["abs"](x), [x], g)
    assert value_of(found, (x, 0.0), (g, 5.0)) == 0.0


@pytest.mark.parametrize("at", [-1.0, 1.0])
def test_clip_passes_at_both_bounds(at: float) -> None:
    x, g = float64("x"), float64("g")
    y = TABLE["clip"](x, np.float64(-1), np.float64(1))
    found = pull(y, list(y.owner.inputs), g)
    assert value_of(found[0], (x, at), (g, 5.0)) == 5.0


def test_switch_does_not_let_nan_through() -> None:
    c, x, y, g = float64("c"), float64("x"), float64("y"), float64("g")
    out = TABLE["switch"](c, x, y)
    _, in_x, in_y = pull(out, [c, x, y], g)
    at = ((c, 0.0), (x, 1.0), (y, 1.0), (g, np.nan))
    assert value_of(in_x, *at) == 0.0
    assert np.isnan(value_of(in_y, *at))


def test_power_at_zero() -> None:
    x, y, g = float64("x"), float64("y"), float64("g")
    in_x, in_y = pull(TABLE["pow"](x, y), [x, y], g)
    for base, exponent, expected in ((0.0, 0.0, 0.0), (0.0, 1.0, 1.0), (0.0, 2.0, 0.0)):
        at = ((x, base), (y, exponent), (g, 1.0))
        assert value_of(in_x, *at) == expected
        assert value_of(in_y, *at) == 0.0


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "ive", "kv", "kve", "zeta"])
def test_undefined_derivatives_are_named(name: str) -> None:
    v, x, g = float64("v"), float64("x"), float64("g")
    y = TABLE[name](v, x)
    in_v, in_x = y.owner.op.pullback([v, x], [y], [g])
    assert isinstance(in_v.type, NullType)
    assert in_x.type == float64
    (tangent,) = y.owner.op.pushforward([v, x], [y], [g, g])
    assert tangent.type.why_null == in_v.type.why_null


def test_integers_get_floatx_derivatives() -> None:
    from phintys.scalar import int64

    n, g = int64("n"), float64("g")
    y = TABLE["exp"](n)
    (found,) = y.owner.op.pullback([n], [y], [g])
    assert found.type == float64


HOLOMORPHIC = ["exp", "sqr", "sin", "reciprocal", "neg", "log1p", "tanh", "expm1", "sigmoid"]
REAL_VALUED = ["abs", "real", "imag", "angle"]


@pytest.mark.parametrize("name", HOLOMORPHIC + REAL_VALUED + ["conj"])
def test_complex_cotangents(name: str) -> None:
    """The cotangent is ``d loss / d Re + i d loss / d Im`` of the loss ``Re(conj(g) y)``."""
    op = TABLE[name]
    z = complex128("z")
    y = op(z)
    g = y.type("g")
    (found,) = pull(y, [z], g)
    at = np.array([0.3 - 0.8j])
    weight = np.array([0.7 + 0.2j if y.type.dtype == "complex128" else 0.7], y.type.dtype)
    value = evaluate([z, g], found, [at, weight])

    def loss(point: Any) -> Any:
        return (np.conj(weight) * op.compute(point)).real

    step = 1e-6
    in_re, in_im = ((loss(at + h) - loss(at - h)) / (2 * step) for h in (step, step * 1j))
    np.testing.assert_allclose(value, in_re + 1j * in_im, rtol=1e-7)


@pytest.mark.parametrize("name", HOLOMORPHIC + REAL_VALUED + ["conj"])
def test_complex_tangents(name: str) -> None:
    op = TABLE[name]
    z, dz = complex128("z"), complex128("dz")
    y = op(z)
    t = op.tangents(functions, [z], [y], [dz])
    at, direction = np.array([0.3 - 0.8j]), np.array([0.7 + 0.2j])
    step = 1e-6 * direction
    expected = (op.compute(at + step) - op.compute(at - step)) / 2e-6
    np.testing.assert_allclose(evaluate([z, dz], t, [at, direction]), expected, rtol=1e-7)
