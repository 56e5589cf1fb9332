"""What the sweeps give to an op, and what types say of derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import grad, pullback, pushforward
from phintys.graph.op import Op
from phintys.graph.type import DisconnectedType, Type
from phintys.graph.variable import Apply

x, y, t = pt.dvector("x"), pt.dvector("y"), pt.dvector("t")


class SumAndSteps(Op):
    """(x + y, 2 x, number of positive x, shifted by k), of which the third output is discrete."""

    __props__ = ("handles_missing",)

    def __init__(self, handles_missing=True):
        self.handles_missing = handles_missing
        self.seen = []

    def make_node(self, x, y, k):
        x, y, k = pt.as_tensor(x), pt.as_tensor(y), pt.as_tensor(k)
        return Apply(self, [x, y, k], [x.type(), x.type(), pt.lvector()])

    def perform(self, node, inputs, storage):
        x, y, k = inputs
        storage[0][0], storage[1][0] = x + y, 2 * x
        storage[2][0] = (x > 0) + np.int64(k)

    def connection_pattern(self, node):
        return [[True, True, True], [True, False, False], [False, False, False]]

    def pullback(self, inputs, outputs, cotangents):
        self.seen.append([type(g.type) for g in cotangents])
        g, h, _ = (
            pt.zeros_like(x) if isinstance(g.type, DisconnectedType) else g
            for x, g in zip(outputs, cotangents)
        )
        return [g + 2 * h, g, None]

    def pushforward(self, inputs, outputs, tangents):
        self.seen.append([type(t.type) for t in tangents])
        tx, ty, _ = (
            pt.zeros_like(x) if isinstance(t.type, DisconnectedType) else t
            for x, t in zip(inputs, tangents)
        )
        return [tx + ty, 2 * tx, pt.zeros_like(outputs[2], dtype="float64")]


@pytest.mark.parametrize("handles_missing", [True, False])
def test_missing_derivatives(handles_missing):
    op = SumAndSteps(handles_missing)
    first, second, steps = op(x, y, 3)
    missing = DisconnectedType if handles_missing else type(x.type)
    g = grad(first.sum(), [x, y])
    assert op.seen.pop() == [type(x.type), missing, missing]
    assert [v.eval({x: [1.0], y: [2.0]}, on_unused_input="ignore") for v in g] == [1, 1]
    assert grad((first * second).sum(), x).eval({x: [1.0], y: [2.0]}) == [8]
    op.seen.clear()
    p = pushforward(first, y, t)
    kind = type(x.type)
    assert op.seen.pop() == [missing, kind, DisconnectedType]
    assert p.eval({t: [5.0], x: [0.0]}, on_unused_input="ignore") == [5]
    op.seen.clear()
    zero = grad(steps.sum(), x)
    assert bool(op.seen) == handles_missing  # an op that does not is not asked
    assert zero.type.dtype == "float64"
    given = {x: [1.0, 2.0], y: [2.0, 1.0]}
    assert zero.eval(given, on_unused_input="ignore").tolist() == [0, 0]
    tangent = pushforward(steps, x, t)
    given = {x: [1.0], y: [2.0], t: [2.0]}
    assert tangent.eval(given, on_unused_input="ignore").tolist() == [0]


class Shift(Op):
    """x moved by k places, linear in x."""

    __props__ = ()
    is_linear = True

    def make_node(self, x, k):
        x, k = pt.as_tensor(x), pt.as_tensor(k)
        return Apply(self, [x, k], [x.type()])

    def perform(self, node, inputs, storage):
        storage[0][0] = np.roll(inputs[0], inputs[1])

    def connection_pattern(self, node):
        return [[True], [False]]

    def pullback(self, inputs, outputs, cotangents):
        return [self(cotangents[0], -inputs[1]), None]


def test_linear_ops_need_no_pushforward():
    values, moved = np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 100.0])
    p = pushforward(Shift()(x, 1), x, t)
    assert p.eval({x: values, t: moved}, on_unused_input="ignore").tolist() == [100, 1, 10]
    back = pullback(Shift()(x, 1), x, t)
    assert back.eval({x: values, t: moved}, on_unused_input="ignore").tolist() == [10, 100, 1]
    phintys.verify_grad(lambda x: Shift()(x, 2), [values])


def test_none_for_a_connected_input_is_an_error():
    class Forgetful(Shift):
        def pullback(self, inputs, outputs, cotangents):
            return [None, None]

    with pytest.raises(TypeError, match="returned None at position 0"):
        grad(Forgetful()(x, 1).sum(), x)


def test_the_older_names_of_our_ops():
    """They return variables of DisconnectedType where `pullback` may return None."""
    z = pt.reshape(x, (2, 2))
    node = z.owner
    g = pt.dmatrix("g")
    for found in (node.op.L_op(node.inputs, node.outputs, [g]), node.op.grad(node.inputs, [g])):
        assert found[0].type.ndim == 1
        assert isinstance(found[1].type, DisconnectedType)
    (moved,) = node.op.R_op(node.inputs, [t, None])
    assert moved.eval({t: [1.0, 2.0, 3.0, 4.0]}).tolist() == [[1, 2], [3, 4]]


def test_types_of_derivatives():
    integers, floats = pt.ivector("i"), pt.fvector("f")
    assert integers.type.is_discrete and not floats.type.is_discrete
    assert integers.type.tangent_type.dtype == phintys.config.floatX
    assert floats.type.tangent_type is floats.type
    assert pt.zvector("z").type.is_complex
    assert floats.type.tangent_zeros(floats).type.dtype == "float32"
    total = x.type.tangent_sum([x, y, t])
    assert len(total.owner.inputs) == 3
    with pytest.raises(ValueError, match="ranks differ"):
        x.type.check_tangent(pt.dmatrix())
    with pytest.raises(TypeError, match="never integers"):
        x.type.check_tangent(integers)
    with pytest.raises(TypeError, match="real part"):
        x.type.cast_tangent(pt.zvector())


def test_types_that_say_nothing_of_derivatives():
    class Words(Type):
        __props__ = ()

        def filter(self, data, strict=False, allow_downcast=None):
            return str(data)

    word = Words()("w")
    assert word.type.tangent_type is word.type
    for method in (word.type.tangent_zeros, word.type.tangent_ones, word.type.tangent_basis):
        with pytest.raises(TypeError, match="known_grads"):
            method(word)
