"""Subgraphs of constants are folded if their results are small, whatever is large within them."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.graph.op import Op
from phintys.graph.variable import Apply
from phintys.tensor.rules import folding

ADJACENT = np.random.default_rng(0).random((150, 150)) < 0.05


class Raised(Op):
    """A vector plus one, whose length it does not know; counts how often it is computed."""

    __props__ = ("name", "folds")

    def __init__(self, name="", folds=True):
        self.name, self.folds, self.calls = name, folds, 0

    def make_node(self, x):
        x = pt.as_tensor(x)
        return Apply(self, [x], [pt.TensorType(x.type.dtype, (None,))()])

    def perform(self, node, inputs, output_storage):
        self.calls += 1
        if self.name == "fails":
            raise RuntimeError("on purpose")
        output_storage[0][0] = inputs[0] + 1

    def do_constant_folding(self, fgraph, node):
        return self.folds


class Counted(Raised):
    """The numbers below ``n``: a large result of a small constant."""

    def make_node(self, n):
        n = pt.as_tensor(n)
        return Apply(self, [n], [pt.TensorType("float64", (int(n.data),))()])

    def perform(self, node, inputs, output_storage):
        self.calls += 1
        output_storage[0][0] = np.arange(float(inputs[0]))


LARGE = folding.MAX_SIZE + 1


def nodes_of(inputs, out, mode="FAST_RUN"):
    f = phintys.function(inputs, out, mode=mode)
    return f, f.maker.fgraph.toposort()


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_positions_in_a_large_matrix_are_constants(mode):
    """The edges of a graph of areas, from its matrix of neighbours."""
    x = pt.dvector("x")
    rows, columns = pt.eq(pt.tril(ADJACENT.astype(float)), 1).nonzero()
    f, nodes = nodes_of([x], pt.sqr(x[rows] - x[columns]).sum(), mode)
    assert {type(n.op).__name__ for n in nodes} <= {
        "AdvancedSubtensor",
        "Elemwise",
        "CAReduce",
        "Sum",
    }
    values = np.random.default_rng(1).normal(size=150)
    i, j = np.tril(ADJACENT).nonzero()
    np.testing.assert_allclose(f(values), ((values[i] - values[j]) ** 2).sum(), rtol=1e-12)


def test_small_results_of_large_ones():
    counted, x = Counted(), pt.dscalar("x")
    f, nodes = nodes_of([x], x * counted(LARGE).sum())
    assert len(nodes) == 1 and f(2.0) == LARGE * (LARGE - 1)


def test_each_node_is_computed_once():
    """Whether or not what depends on it is kept, and however many do."""
    x = pt.dscalar("x")
    counted, steps = Counted(), [Raised(str(i)) for i in range(20)]
    v, sums = counted(LARGE), []
    for step in steps:
        v = step(v)
        sums.append(v[:3])
    f, nodes = nodes_of([x], [x * total for total in sums])
    assert not any(isinstance(n.op, Raised) for n in nodes)
    assert [op.calls for op in (counted, *steps)] == [1] * 21
    np.testing.assert_array_equal(f(1.0)[-1], [20.0, 21.0, 22.0])


def test_deep_regions():
    v = Counted()(LARGE)
    op = Raised()
    for _ in range(3000):
        v = op(v)
    x = pt.dscalar("x")
    _, nodes = nodes_of([x], x + v[0])
    assert len(nodes) == 1 and op.calls == 3000


def test_large_results_are_not_computed():
    counted, x = Counted(), pt.dscalar("x")
    f, nodes = nodes_of([x], x * counted(LARGE))
    assert counted.calls == 0 and any(n.op is counted for n in nodes)
    assert f(2.0).size == LARGE


def test_large_results_of_unknown_length_are_not_kept():
    x, op = pt.dscalar("x"), Raised()
    _, nodes = nodes_of([x], x * op(Counted()(LARGE)))
    assert any(n.op is op for n in nodes)


def test_intermediate_results_may_be_too_large(monkeypatch):
    monkeypatch.setattr(folding, "MAX_INTERMEDIATE", LARGE - 1)
    counted, x = Counted(), pt.dscalar("x")
    _, nodes = nodes_of([x], x * counted(LARGE).sum())
    assert counted.calls == 0 and any(n.op is counted for n in nodes)


def test_ops_that_do_not_want_to_be_folded_stay():
    x, op = pt.dscalar("x"), Raised(folds=False)
    _, nodes = nodes_of([x], x * op(Counted()(LARGE)).sum())
    assert op.calls == 0 and any(n.op is op for n in nodes)


def test_draws_stay():
    x = pt.dscalar("x")
    draw = pt.random.normal(Counted()(LARGE), rng=pt.random.default_rng(0)).sum()
    _, nodes = nodes_of([x], x * draw)
    assert any(isinstance(n.op, pt.random.op.RandomVariable) for n in nodes)


def test_a_failing_node_raises_when_the_function_is_called():
    x, op = pt.dscalar("x"), Raised("fails")
    f, _ = nodes_of([x], [x, op(Counted()(LARGE))[0]])
    with pytest.raises(RuntimeError, match="on purpose"):
        f(1.0)


class Wrong(Counted):
    """One element less than it says."""

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.ones(int(inputs[0]) - 1, "float32")


@pytest.mark.parametrize("length", [3, LARGE])
@pytest.mark.parametrize("use", [pt.sum, lambda v: v[0], lambda v: v])
def test_a_result_that_is_not_of_its_type_raises_when_the_function_is_called(use, length):
    x = pt.dscalar("x")
    f, _ = nodes_of([x], x * use(Wrong()(length)))
    with pytest.raises(ShapeError, match=rf"perform returned .* shape \({length - 1},\)"):
        f(1.0)


def test_no_large_array_is_kept():
    x = pt.dvector("x")
    _, nodes = nodes_of([x], x * Raised()(Counted()(LARGE))[:3])
    (constant,) = [v for v in nodes[-1].inputs if v is not x]
    assert constant.data.base is None and constant.data.size == 3


def test_folding_is_left_out_on_request():
    x, counted = pt.dscalar("x"), Counted()
    mode = phintys.compile.mode.get_default_mode().excluding("constant_folding")
    nodes_of([x], x * counted(LARGE).sum(), mode)
    assert counted.calls == 0
