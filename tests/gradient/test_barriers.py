"""Identities that change how a gradient passes, and derivatives that are not defined."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from tensor_checks import evaluate

import phintys
import phintys.tensor as pt
from phintys import grad, pushforward
from phintys.errors import DisconnectedInputError, NullTypeGradError
from phintys.gradient import (
    GradClip,
    GradScale,
    consider_constant,
    disconnected_grad,
    grad_clip,
    grad_not_implemented,
    grad_scale,
    grad_undefined,
    undefined_grad,
    zero_grad,
)
from phintys.gradient.barriers import ViewOp
from phintys.graph.type import DisconnectedType, NullType, disconnected_type
from phintys.graph.vectorize import vectorize_graph
from phintys.rewriting import rewrite_graph

x, t, v = pt.dscalar("x"), pt.dscalar("t"), pt.dvector("v")
BARRIERS = {
    "disconnected": disconnected_grad,
    "zero": zero_grad,
    "constant": consider_constant,
    "undefined": undefined_grad,
    "clip": lambda x: grad_clip(x, -1, 1),
    "scale": lambda x: grad_scale(x, 2.5),
}


@pytest.mark.parametrize("name", BARRIERS)
@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_values_pass_and_nothing_is_left_after_rewriting(name, mode):
    out = BARRIERS[name](v) * 2
    assert out.type == v.type
    f = phintys.function([v], out, mode=mode)
    np.testing.assert_array_equal(f([1.0, 2.0]), [2.0, 4.0])
    rewritten = rewrite_graph(out, clone=True)
    assert not any(
        isinstance(u.owner.op, ViewOp) for u in [rewritten, *rewritten.owner.inputs] if u.owner
    )
    batched = vectorize_graph(out, {v: pt.dmatrix("m")})
    assert batched.type.ndim == 2
    assert pickle.loads(pickle.dumps(out)).owner.op == out.owner.op


@pytest.mark.parametrize(("name", "expected"), [("zero", 0.0), ("constant", 0.0), ("scale", 15.0)])
def test_linear_barriers_in_both_modes(name, expected):
    cost = BARRIERS[name](x) ** 2
    assert evaluate(grad(cost, x), [x], [3.0]) == expected
    for by_op in (True, False):
        p = pushforward(cost, x, pt.constant(1.0), use_op_pushforward=by_op)
        assert evaluate(p, [x], [3.0]) == expected


def test_clipping():
    for at, expected in ((3.0, 1.0), (0.25, 0.5), (-3.0, -1.0)):
        assert grad(grad_clip(x, -1, 1) ** 2, x).eval({x: at}) == expected
    assert pushforward(grad_clip(x, -1, 1) ** 2, x, pt.constant(1.0)).eval({x: 3.0}) == 6.0
    with pytest.raises(ValueError, match="2 is above 1"):
        grad_clip(x, 2, 1)


def test_parameters_are_part_of_equality():
    assert GradClip(-1, 1) == GradClip(-1, 1) != GradClip(-2, 2)
    assert GradScale(1.0) == GradScale(1.0) != GradScale(2.0)
    assert len({GradClip(-1, 1), GradClip(-2, 2), GradScale(1.0), GradScale(2.0)}) == 4
    # merging before differentiation keeps them apart
    merged = rewrite_graph(grad_scale(x, 2.0) + grad_scale(x, 3.0), include=("merge",))
    assert grad(merged, x).eval({x: 1.0}) == 5.0


def test_float32_stays_float32():
    f = pt.fscalar("f")
    for barrier in (lambda x: grad_scale(x, 2.5), lambda x: grad_clip(x, -2.5, 1.1)):
        assert grad(barrier(f) ** 2, f).type.dtype == "float32"


def test_disconnection_in_both_modes():
    cost = disconnected_grad(x) ** 2
    with pytest.raises(DisconnectedInputError, match="does not depend on x"):
        grad(cost, x)
    with pytest.raises(DisconnectedInputError, match="does not depend on x"):
        pushforward(cost, x, t)
    assert pushforward(cost + x, x, t).eval({x: 1.0, t: 3.0}) == 3.0
    assert pushforward(cost, x, t, disconnected_outputs="ignore").eval({x: 1.0}) == 0.0
    assert pushforward(cost, x, t, "ignore", "none") is None
    assert isinstance(pushforward(cost, x, t, "ignore", "disconnected").type, DisconnectedType)


def test_undefined_in_both_modes():
    cost = undefined_grad(x) ** 2
    with pytest.raises(
        NullTypeGradError, match="UndefinedGrad is not differentiable in its input 0"
    ):
        grad(cost, x)
    for by_op in (True, False):
        with pytest.raises(NullTypeGradError, match=r"tangent of .* is not defined: UndefinedGrad"):
            pushforward(cost, x, t, use_op_pushforward=by_op)


def test_types_of_what_is_not_there():
    op = GradScale(2.0)
    for make, verb in (
        (grad_undefined, "is not differentiable"),
        (grad_not_implemented, "not know"),
    ):
        g = make(op, 1, x, "It is a test.")
        assert isinstance(g.type, NullType)
        assert "GradScale" in g.type.why_null and "input 1" in g.type.why_null
        assert verb in g.type.why_null and g.type.why_null.endswith("It is a test.")
    assert disconnected_type == DisconnectedType()
    assert NullType("a") == NullType("a") != NullType("b")
    assert disconnected_type().type == disconnected_type
