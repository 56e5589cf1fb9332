"""Functions that programs register with `_vectorize_node` batch their ops."""

from __future__ import annotations

import numpy as np
import pytest

import phintys.tensor as pt
from phintys.graph.op import Op
from phintys.graph.replace import _vectorize_node, _vectorize_not_needed, vectorize_graph
from phintys.graph.variable import Apply


class Sorted(Op):
    """The elements of a vector in order, and how many there are."""

    __props__ = ()

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type(), pt.lscalar()])

    def perform(self, node, inputs, output_storage):
        (x,) = inputs
        assert x.ndim == 1, "it is called for single items"
        output_storage[0][0], output_storage[1][0] = np.sort(x), np.array(len(x))


class SortedByList(Sorted):
    pass


class SortedByNode(Sorted):
    pass


@_vectorize_node.register(SortedByList)
def sorted_by_list(op, node, x):
    return [pt.sort(x, -1), pt.full(x.shape[:-1], x.shape[-1], dtype="int64")]


@_vectorize_node.register(SortedByNode)
def sorted_by_node(op, node, x):
    return Apply(Rows(), [x], [x.type(), pt.lvector()])


class Rows(Op):
    __props__ = ()

    def perform(self, node, inputs, output_storage):
        (x,) = inputs
        output_storage[0][0] = np.sort(x, -1)
        output_storage[1][0] = np.full(x.shape[:-1], x.shape[-1])


@pytest.mark.parametrize("op", [SortedByList(), SortedByNode(), Sorted()])
def test_registered_functions(op):
    """Without a function for its class, an op is applied item by item."""
    x, xs = pt.dvector("x"), pt.dmatrix("xs")
    value = np.random.default_rng(0).normal(size=(3, 4))
    batched = vectorize_graph(op(x), {x: xs})
    assert not any(v.owner.op == op for v in batched)
    found = [v.eval({xs: value}) for v in batched]
    np.testing.assert_array_equal(found[0], np.sort(value, -1))
    np.testing.assert_array_equal(found[1], [4, 4, 4])


class Doubled(Op):
    """Twice a tensor of any rank."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = 2 * inputs[0]


def test_an_op_that_needs_no_batching():
    _vectorize_node.register(Doubled, _vectorize_not_needed)
    x, xs = pt.dvector("x"), pt.dmatrix("xs")
    batched = vectorize_graph(Doubled()(x), {x: xs})
    assert isinstance(batched.owner.op, Doubled) and batched.owner.inputs == [xs]
    assert batched.eval({xs: [[1.0, 2.0]]}).tolist() == [[2.0, 4.0]]
