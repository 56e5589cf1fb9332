"""Elementwise nodes that mode NUMBA joins."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.graph.fgraph import FunctionGraph
from phintys.tensor.elemwise import Elemwise

numba = pytest.importorskip("numba")
fusion = pytest.importorskip("phintys.backends.numba.fusion")


def counts(inputs, *outputs):
    """The numbers of elementwise nodes of a graph before and after; its other nodes stay."""
    before = FunctionGraph(inputs, outputs, clone=True)
    after = fusion.fused(before)
    after.check_integrity()
    assert [v.type for v in after.outputs] == [v.type for v in before.outputs]
    given = [np.arange(1.0, 1 + 2**v.ndim).reshape((2,) * v.ndim) for v in before.inputs]
    for a, b in zip(numba_values(after, given), numba_values(before, given)):
        np.testing.assert_array_equal(a, b)
    nodes = [
        [isinstance(node.op, Elemwise) for node in graph.toposort()] for graph in (before, after)
    ]
    assert nodes[0].count(False) == nodes[1].count(False)
    return tuple(n.count(True) for n in nodes)


def numba_values(fgraph, given):
    """The values of a graph, by the reference."""
    f = phintys.function(fgraph.inputs, fgraph.outputs, mode=phintys.Mode("py", None))
    return f(*given)


x, y, m = pt.dvector("x"), pt.dvector("y"), pt.dmatrix("m")


def test_chains_are_one_node():
    assert counts([x, y], pt.exp(x * y) + 1, pt.exp(x * y) - x) == (6, 1)


def test_what_cannot_be_joined_separates():
    e = pt.exp(x)
    assert counts([x], e * e.sum() + e) == (3, 2)  # no cycle through the sum
    assert counts([x, m], pt.exp(x) * m + 1) == (3, 2)  # exp is computed once for all rows
    assert counts([x, y], pt.exp(x), pt.exp(y)) == (2, 2)
    assert counts([m], (pt.exp(m) + m.T).T * m) == (3, 2)


def test_a_cast_and_a_comparison_are_joined():
    assert counts([x, y], pt.switch(x > y, x, 0).astype("float32")) == (3, 1)


def test_groups_are_bounded(monkeypatch):
    monkeypatch.setattr(fusion, "LONGEST", 4)
    out = x
    for _ in range(10):
        out = pt.exp(out)
    assert counts([x], out) == (10, 3)


def test_values_and_errors():
    a, b = pt.dvectors("a", "b")
    total = (pt.exp(a) * b).sum()
    f = phintys.function([a, b], [a * b + 1, total * a - b], mode="NUMBA")
    first, last = f([0.0, 1.0], [2.0, 3.0])
    np.testing.assert_allclose(first, [1, 4])
    np.testing.assert_allclose(last, [-2, 2 + 3 * np.e - 3])
    with pytest.raises(phintys.errors.ShapeError, match="b"):
        f([0.0, 1.0], [2.0, 3.0, 4.0])


def test_a_registered_function_is_called():
    from phintys.backends.numba import numba_funcify
    from phintys.scalar.op import ScalarOp
    from phintys.tensor.elemwise import elementwise

    class Shifted(ScalarOp):
        nin = 1

        def output_dtypes(self, *dtypes):
            return [*dtypes]

        def compute(self, x):
            return x - 1

    @numba_funcify.register(Shifted)
    def _(op, node=None, **kwargs):
        return lambda x: x + 1

    out = pt.exp(Elemwise(Shifted())(pt.exp(x)))
    assert elementwise("exp") == out.owner.op
    assert phintys.function([x], out, mode="NUMBA")([0.0]) == pytest.approx(np.exp(2))
