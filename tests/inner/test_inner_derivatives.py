"""Derivatives of OpFromGraph: those of its graph, and overrides."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import check_batched, check_derivatives, evaluate, symbols

import phintys
import phintys.tensor as pt
from phintys import OpFromGraph, grad, pushforward
from phintys.errors import DisconnectedInputError, MethodNotDefined, NullTypeGradError
from phintys.gradient import disconnected_grad, undefined_grad
from phintys.graph.op import io_connection_pattern
from phintys.graph.type import NullType, disconnected_type
from phintys.graph.vectorize import vectorize_graph

x, y = pt.dvectors("x", "y")
V, W = np.array([0.5, 1.0, 2.0]), np.array([1.5, -1.0, 0.3])
M = np.array([[0.1, 0.5, 2.0], [1.0, 0.2, 0.7]])

#: functions of tensors, with several nodes each
FUNCTIONS = {
    "product": (lambda a, b: pt.exp(a) * b + a, [V, W]),
    "matrix": (lambda a, b: pt.dot(a, pt.tanh(b)).sum() * a, [M, V]),
    "rows": (lambda a: pt.softmax(a, axis=1) * a[:, ::-1], [M]),
    "unused": (lambda a, b: a**2 + b.shape[0], [V, W]),
    "itself": (lambda a: a, [V]),
}


def in_op(build, **options):
    def wrapped(*args):
        fresh = [a.type() for a in args]
        return OpFromGraph(fresh, [build(*fresh)], **options)(*args)

    return wrapped


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"unused"}))
def test_both_modes_agree_with_finite_differences(name, inline):
    build, values = FUNCTIONS[name]
    check_derivatives(in_op(build, inline=inline), values)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"unused"}))
def test_second_derivatives_are_those_of_the_plain_graph(name):
    build, values = FUNCTIONS[name]
    inputs = symbols(values)

    def second(f):
        first = grad((f(*inputs) ** 2).sum(), inputs)
        tangents = [pt.as_tensor(v + 1) for v in values]
        again = grad(sum((g**2).sum() for g in first), inputs)
        return [*again, pushforward(first[0], inputs, tangents)]

    for found, expected in zip(
        evaluate(second(in_op(build)), inputs, values), evaluate(second(build), inputs, values)
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_batches(name):
    build, values = FUNCTIONS[name]
    check_batched(in_op(build), values)


def test_connection_is_that_of_the_graph():
    n = pt.lscalar("n")
    outputs = [x * 2 + n, disconnected_grad(x) * y, pt.zeros(n), y + x.shape[0]]
    op = OpFromGraph([x, y, n], outputs)
    node = op(x, y, n)[0].owner
    expected = [[True, False, False, False], [False, True, False, True], [True, *[False] * 3]]
    assert op.connection_pattern(node) == expected
    assert io_connection_pattern([x, y, n], outputs) == expected
    with pytest.raises(DisconnectedInputError):
        grad(op(x, y, n)[3].sum(), x)
    with pytest.raises(DisconnectedInputError):
        pushforward(op(x, y, n)[2], x, x)


def test_discrete_inputs_and_outputs():
    k = pt.lvector("k")
    op = OpFromGraph([x, k], [x * k, pt.cast(x, "int64") + k])
    first, second = op(x, k)
    gx, gk = grad(first.sum(), [x, k])
    a, b = evaluate([gx, gk], [x, k], [V, [1, 2, 3]])
    np.testing.assert_array_equal(a, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(b, V)  # as in the plain graph
    zeros = evaluate(grad(second.sum(), x), [x, k], [V, [1, 2, 3]])
    np.testing.assert_array_equal(zeros, np.zeros(3))


def test_undefined_derivatives():
    out = OpFromGraph([x, y], [undefined_grad(x) * y])(x, y)
    with pytest.raises(NullTypeGradError, match="not defined"):
        grad(out.sum(), x)
    np.testing.assert_array_equal(evaluate(grad(out.sum(), y), [x, y], [V, W]), V)


def test_unused_outputs_have_no_cotangents():
    op = OpFromGraph([x], [pt.exp(x), undefined_grad(x)])
    found = evaluate(grad(op(x)[0].sum(), x), [x], [V])
    np.testing.assert_allclose(found, np.exp(V))


def test_repeated_outputs_add_up():
    op = OpFromGraph([x], [x * 3, x, x])
    a, b, c = op(x)
    np.testing.assert_array_equal(evaluate(grad((a + b + 2 * c).sum(), x), [x], [V]), [6.0] * 3)


# ----------------------------------------------------------------------------- overrides


def double(inputs, outputs, cotangents):
    return [2 * cotangents[0] * inputs[1], 3 * cotangents[0] * outputs[0]]


g = pt.dvector("g")
AS_OP = OpFromGraph([x, y, pt.dvector("out"), g], [2 * g * y, 3 * g * x * y])
OVERRIDES = {
    "function": ({"pullback": double}, [2 * W, 3 * V * W]),
    "older name": ({"lop_overrides": double}, [2 * W, 3 * V * W]),
    "op": ({"pullback": AS_OP}, [2 * W, 3 * V * W]),
    "list": ({"pullback": [None, lambda i, o, c: 5 * c[0]]}, [W, [5.0] * 3]),
    "tuple of an op": (
        {"pullback": (OpFromGraph([x, y, pt.dvector("o"), g], [g * 4]), None)},
        [[4.0] * 3, V],
    ),
    "without outputs": (
        {"grad_overrides": lambda i, c: [c[0] * 6, c[0] * 7]},
        [[6.0] * 3, [7.0] * 3],
    ),
    "list without outputs": ({"grad_overrides": [None, lambda i, c: c[0] * 7]}, [W, [7.0] * 3]),
    "disconnected": ({"pullback": [disconnected_type(), None]}, [[0.0] * 3, V]),
    "None in a result": ({"pullback": lambda i, o, c: [None, c[0]]}, [[0.0] * 3, [1.0] * 3]),
}


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("name", sorted(OVERRIDES))
def test_overrides_of_the_pullback(name, inline):
    options, expected = OVERRIDES[name]
    out = OpFromGraph([x, y], [x * y], inline=inline, **options)(x, y)
    found = evaluate(grad(out.sum(), [x, y], disconnected_inputs="ignore"), [x, y], [V, W])
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b)


def test_an_override_may_say_that_there_is_no_derivative():
    out = OpFromGraph([x, y], [x * y], pullback=[NullType("because")(), None])(x, y)
    with pytest.raises(NullTypeGradError, match="because"):
        grad(out.sum(), x)


def test_missing_cotangents_are_zeros_for_overrides():
    def rule(inputs, outputs, cotangents):
        return [cotangents[0] + 10 * cotangents[1]]

    op = OpFromGraph([x], [x * 2, x * 3], pullback=rule)
    np.testing.assert_array_equal(evaluate(grad(op(x)[0].sum(), x), [x], [V]), [1.0] * 3)


@pytest.mark.parametrize(
    "override, expected",
    [
        (lambda inputs, tangents: [tangents[0] * 5 + inputs[1]], 5 * V + W),
        (OpFromGraph([x, y, g, pt.dvector("t")], [g * 5 + y]), 5 * V + W),
        ([lambda inputs, tangents: tangents[0]], V),
        ([None], V * W),
    ],
)
def test_overrides_of_the_pushforward(override, expected):
    for name in ("pushforward", "rop_overrides"):
        out = OpFromGraph([x, y], [x * y], **{name: override})(x, y)
        found = pushforward(out, x, pt.as_tensor(V))
        np.testing.assert_allclose(evaluate(found, [x, y], [V, W]), expected)
    two_pullbacks = pushforward(out, x, pt.as_tensor(V), use_op_pushforward=False)
    np.testing.assert_allclose(evaluate(two_pullbacks, [x, y], [V, W]), V * W)


def test_forward_mode_follows_an_override_of_the_pullback():
    out = OpFromGraph([x, y], [x * y], pullback=double)(x, y)
    with pytest.raises(MethodNotDefined):
        out.owner.op.pushforward([x, y], [out], [x, y])
    found = pushforward(out, x, pt.as_tensor(V))
    np.testing.assert_allclose(evaluate(found, [x, y], [V, W]), 2 * W * V)


def test_second_derivatives_through_an_override():
    op = OpFromGraph([x], [x**2], pullback=lambda i, o, c: [i[0] ** 3 * c[0]])
    first = grad(op(x).sum(), x)
    np.testing.assert_allclose(evaluate(grad(first.sum(), x), [x], [V]), 3 * V**2)


def test_overrides_inside_of_other_graphs():
    op = OpFromGraph([x], [x**2], pullback=lambda i, o, c: [7 * c[0]])
    outer = OpFromGraph([x, y], [op(x * y) + x])
    for out in (outer(x, y), op(x * y) + x):
        found = evaluate(grad(out.sum(), [x, y]), [x, y], [V, W])
        np.testing.assert_allclose(found[0], 7 * W + 1)
        np.testing.assert_allclose(found[1], 7 * V)


def test_a_given_connection_pattern():
    op = OpFromGraph(
        [x, y],
        [x * y],
        connection_pattern=[[True], [False]],
        pullback=[lambda i, o, c: c[0], disconnected_type()],
    )
    np.testing.assert_array_equal(evaluate(grad(op(x, y).sum(), x), [x, y], [V, W]), [1.0] * 3)
    with pytest.raises(DisconnectedInputError):
        grad(op(x, y).sum(), y)


@pytest.mark.parametrize("which", ["both", "first", "second"])
def test_overrides_of_batches(which):
    s = pt.dscalar("s")
    op = OpFromGraph(
        [x, s],
        [x * s + 1],
        pullback=lambda i, o, c: [c[0] * i[1] * 2, (c[0] * o[0]).sum()],
        pushforward=lambda i, t: [t[0] * 3 + t[1] * i[0]],
    )
    xs, ss = pt.dmatrix("xs"), pt.dvector("ss")
    replace = {x: xs, s: ss}
    if which != "both":
        del replace[s if which == "first" else x]
    values = {x: V, s: np.array(2.0), xs: M, ss: np.array([3.0, 4.0])}
    inputs = [replace.get(v, v) for v in (x, s)]
    out = vectorize_graph(op(x, s), replace)
    found = evaluate(grad((out**2).sum(), inputs), inputs, [values[v] for v in inputs])
    full_x, full_s = (np.broadcast_to(values[v], shape) for v, shape in
                      zip([inputs[0], inputs[1]], [(2, 3), (2,)]))  # fmt: skip
    o = full_x * full_s[:, None] + 1
    gx, gs = 2 * o * full_s[:, None] * 2, (2 * o * o).sum(axis=1)
    np.testing.assert_allclose(found[0], gx if x in replace else gx.sum(axis=0))
    np.testing.assert_allclose(found[1], gs if s in replace else gs.sum())
    tangents = [pt.ones_like(v) for v in inputs]
    pushed = evaluate(pushforward(out, inputs, tangents), inputs, [values[v] for v in inputs])
    np.testing.assert_allclose(pushed, 3 + full_x)


def test_overrides_of_batches_in_which_an_output_is_the_same_for_all_items():
    s = pt.dscalar("s")
    op = OpFromGraph([x, s], [x * s, 2 * s], pullback=lambda i, o, c: [c[0], 5 * c[1]])
    xs = pt.dmatrix("xs")
    first, second = op(x, s)
    first, second = vectorize_graph([first, second], {x: xs})
    found = evaluate([second, grad((second * [1.0, 10.0]).sum(), s)], [xs, s], [M, 3.0])
    np.testing.assert_allclose(found[0], [6.0, 6.0])
    np.testing.assert_allclose(found[1], 55.0)


def test_batched_overrides_are_compared_by_value():
    op = OpFromGraph([x], [x * 2], pullback=double)
    xs = pt.dmatrix("xs")
    one, other = (vectorize_graph(op(x), {x: xs}).owner.op for _ in range(2))
    assert isinstance(one, OpFromGraph) and one == other


@pytest.mark.parametrize(
    "override", [lambda i, o, c: [c[0]], OpFromGraph([x, y, pt.dvector("o"), g], [g])]
)
def test_overrides_with_too_few_results(override):
    out = OpFromGraph([x, y], [x * y], pullback=override, name="mine")(x, y)
    with pytest.raises(ValueError, match=r"mine.*pullback must return 2 derivatives, not 1"):
        grad(out.sum(), x)


def test_a_pushforward_does_not_know_captured_variables():
    s = phintys.shared(np.array(2.0), "s")
    out = OpFromGraph([x], [x * s], pushforward=lambda i, t: [100 * t[0]])(x)
    found = pushforward(out, [x, s], [pt.as_tensor(V), pt.as_tensor(1.0)])
    np.testing.assert_allclose(evaluate(found, [x], [W]), 2 * V + W)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_jacobians_and_hessians(mode):
    build, values = FUNCTIONS["product"]
    inputs = symbols(values)

    def both(f):
        out = f(*inputs)
        return [*phintys.jacobian(out, inputs), phintys.hessian((out**2).sum(), inputs[0])]

    plain = evaluate(both(build), inputs, values, mode)
    for found, expected in zip(evaluate(both(in_op(build)), inputs, values, mode), plain):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_jacobians_through_an_override():
    op = OpFromGraph([x], [x**2], pullback=lambda i, o, c: [i[0] ** 3 * c[0]])
    found = evaluate(phintys.jacobian(op(x), x), [x], [V])
    np.testing.assert_allclose(found, np.diag(V**3))
