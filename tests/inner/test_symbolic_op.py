"""`SymbolicOp`, `TensorSymbolicOp` and `FinalizedOpFromGraph`."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from tensor_checks import check_batched, check_derivatives

import phintys
import phintys.tensor as pt
from phintys.compile.builders import FinalizedOpFromGraph, OpFromGraph, SymbolicOp
from phintys.errors import MethodNotDefined
from phintys.tensor.symbolic import TensorSymbolicOp

x, y = pt.dvectors("x", "y")
V = np.array([0.5, 1.0, 2.0])


class Scaled(TensorSymbolicOp):
    __props__ = ("factor",)

    def __init__(self, factor, *, note="", **kwargs):
        self.factor, self.note = factor, note
        super().__init__(**kwargs)

    def build_inner_graph(self, a, b):
        return [a * self.factor + pt.exp(b), b.sum()]


class Own(TensorSymbolicOp):
    """With a derivative of its own, which is wrong."""

    inline = True

    def build_inner_graph(self, a):
        return a**2

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0] * 7]


def test_the_graph_is_built_for_the_inputs():
    op = Scaled(3, note="kept")
    a, b = op(x, [[1.0, 2.0, 3.0]])
    assert a.type.ndim == 2 and type(a.owner.op) is Scaled and a.owner.op.note == "kept"
    assert [t.ndim for t in a.owner.op.input_types] == [1, 2] and op.input_types == []
    again = op(x, [[1.0, 2.0, 3.0]])[0].owner.op
    assert a.owner.op == again != Scaled(4)(x, [[1.0, 2.0, 3.0]])[0].owner.op
    assert a.owner.op != op(x, x)[0].owner.op and op == Scaled(3) and hash(op) == hash(Scaled(3))
    assert Scaled(**a.owner.op._props_dict()) == op and Scaled.__props__[-1] == "factor"
    assert str(a.owner.op) == "Scaled{factor=3}" and Scaled(3, input_types=[x.type] * 2).fgraph
    assert a.owner.op == op.make_node(x, np.array([[1.0, 2.0, 3.0]])).op
    np.testing.assert_allclose(a.eval({x: V}), V * 3 + np.exp([[1.0, 2.0, 3.0]]))
    f = pickle.loads(pickle.dumps(phintys.function([x], b + a)))
    np.testing.assert_allclose(f(V), V * 3 + np.exp([[1.0, 2.0, 3.0]]) + 6)
    assert pickle.loads(pickle.dumps(op)) == op


def test_derivatives_and_batches():
    check_derivatives(lambda a, b: Scaled(2)(a, b)[0], [V, V])
    check_batched(lambda a, b: Scaled(2)(a, b)[0], [V, V])
    z = Own()(x)
    assert z.owner.op.is_inline and phintys.grad(z.sum(), x).eval({x: V}).tolist() == [7, 7, 7]
    outer = OpFromGraph([x], [z * 2])
    assert phintys.grad(outer(y).sum(), y).eval({y: V}).tolist() == [14, 14, 14]


def test_wrong_uses():
    class Empty(SymbolicOp):
        pass

    with pytest.raises(MethodNotDefined, match="build_inner_graph"):
        Empty()(x)
    with pytest.raises(TypeError, match="Expected a variable"):
        Empty()(1.0)
    with pytest.raises(TypeError, match="no option 'other'"):
        Own(other=1)(x)


def test_finalized():
    op = FinalizedOpFromGraph([x], [pt.log(pt.exp(x))])
    f = phintys.function([x], op(x), mode="FAST_COMPILE")
    (node,) = f.maker.fgraph.toposort()
    assert [str(n.op) for n in node.op.fgraph.toposort()] == ["Exp", "Log"]
    assert op != OpFromGraph([x], [pt.log(pt.exp(x))])
    np.testing.assert_allclose(phintys.function([x], op(x))(V), V)
