"""Only the cotangents that somebody asked for are built; they are those built with the others."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.graph import Apply, Op, ancestors, equal_computations
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import Elemwise, elementwise

SEVERAL = [name for name, op in TABLE.items() if op.nin > 1 or op.nin < 0]
OPTIONS = {"disconnected_inputs": "ignore", "null_gradients": "return"}


def functions_in(v):
    ops = [w.owner.op for w in ancestors([v]) if w.owner is not None]
    return {op.scalar_op.name for op in ops if isinstance(op, Elemwise)}


@pytest.mark.parametrize("name", SEVERAL)
def test_one_cotangent_is_the_same_as_among_all(name):
    op = TABLE[name]
    xs = [pt.dmatrix(f"x{i}") for i in range(max(op.nin, 3 if op.nin < 0 else 0))]
    try:
        out = elementwise(name)(*xs)
    except TypeError:
        xs = [pt.lmatrix(f"i{i}") for i in range(len(xs))]
        out = elementwise(name)(*xs)
    outputs = out if isinstance(out, list) else [out]
    cost = pt.add(*(pt.sum(pt.real(o).astype("float64")) for o in outputs))
    together = phintys.grad(cost, xs, **OPTIONS)
    for x, g in zip(xs, together):
        alone = phintys.grad(cost, x, **OPTIONS)
        assert alone.type == g.type
        assert alone.owner is None or equal_computations([alone], [g])


def test_what_constants_would_get_is_not_built():
    x = pt.dvector("x")
    assert not functions_in(phintys.grad((x**3).sum(), x)) & {"log", "ge"}
    g = phintys.grad((2.5 * x).sum(), x)
    assert functions_in(g) <= {"mul", "second"}


def test_constants_have_gradients_when_asked_for():
    c, x = pt.constant(3.0, dtype="float64"), pt.dscalar("x")
    gx, gc = phintys.grad(x**c, [x, c])
    values = phintys.function([x], [gx, gc])(2.0)
    np.testing.assert_allclose(values, [12.0, 8 * np.log(2.0)])


class Twice(Op):
    """An op of a user, who knows nothing of what is wanted."""

    __props__ = ()
    asked: list[int] = []

    def make_node(self, x, y):
        return Apply(self, [x, y], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = 2 * inputs[0] * inputs[1]

    def pullback(self, inputs, outputs, cotangents):
        self.asked.append(len(inputs))
        (x, y), (g,) = inputs, cotangents
        return [2 * g * y, 2 * g * x]


def test_pullbacks_of_users_are_called_as_ever():
    x, y = pt.dscalars("x", "y")
    g = phintys.grad(Twice()(x, y), y)
    assert Twice.asked == [2]
    assert g.eval({x: 5.0, y: 3.0}) == 10.0


class Tripled(Elemwise):
    """An elementwise op whose author changed its derivative."""

    def pullback(self, inputs, outputs, cotangents):
        return [3 * g for g in super().pullback(inputs, outputs, cotangents)]


def test_subclasses_of_elemwise_keep_their_own_pullback():
    x, y = pt.dscalars("x", "y")
    g = phintys.grad(Tripled(TABLE["mul"])(x, y), x)
    assert g.eval({x: 1.0, y: 2.0}) == 6.0


@pytest.mark.parametrize("name", sorted(TABLE))
def test_what_need_not_be_asked_is_connected(name):
    """And an op with a pattern of its own is asked."""
    op = elementwise(name)
    inputs = [pt.dscalar() for _ in range(max(op.scalar_op.nin, 1))]
    node = Apply(op, inputs, [pt.dscalar()])
    if op.is_fully_connected:
        assert op.connection_pattern(node) == [[True]] * len(inputs)

    class Own(Elemwise):
        def connection_pattern(self, node):
            return [[False]] * len(node.inputs)

    assert not Own(op.scalar_op).is_fully_connected
