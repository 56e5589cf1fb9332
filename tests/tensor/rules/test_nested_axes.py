"""DimShuffles inside each other move to the inputs, and values stay."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode
from phintys.graph.traversal import applys_between
from phintys.tensor.elemwise import DimShuffle

M, v, t = pt.dmatrix("M"), pt.dvector("v"), pt.dtensor3("t")


def rotated(n):
    y = t
    for i in range(n):
        y = pt.sin(y.dimshuffle(1, 2, 0) + (t if i % 3 == 0 else 1))
    return y


def shared():
    y = pt.exp(pt.sin(M.T).T)  # has two uses, so it is computed once
    return pt.cos(y.T).T * y


CASES = {  # name -> expression, the number of elementwise functions
    "row": (pt.exp(pt.exp(M.T) + v).T * v.dimshuffle("x", 0), 4),
    "new axes": (pt.exp(pt.cos(v.dimshuffle("x", 0)).dimshuffle(1, 0)).dimshuffle(0, "x", 1), 2),
    "dropped axes": (pt.exp(pt.exp(pt.cos(M[:1].T).dimshuffle(0)).dimshuffle("x", 0)), 3),
    "rotated": (rotated(7), 14),
    "same input twice": (pt.exp((M.T * M).T + M).T, 3),
    "shared": (shared(), 4),
}


@pytest.mark.parametrize("name", CASES)
def test_values_stay(name):
    y, count = CASES[name]
    arguments = [np.random.default_rng(0).normal(size=(3,) * k) for k in (2, 1, 3)]
    new, old = (
        phintys.function([M, v, t], y, mode=Mode("py", rewrites), on_unused_input="ignore")
        for rewrites in ("fast_run", None)
    )
    np.testing.assert_array_max_ulp(new(*arguments), old(*arguments), 4)
    nodes = new.maker.fgraph.toposort()
    assert sum(not isinstance(n.op, DimShuffle) for n in nodes) <= count + 1


def test_nothing_is_left_above_a_function():
    nodes = applys_between([t], [phintys.rewriting.rewrite_graph(rotated(7), ("nested_axes",))])
    shuffled = [n.inputs[0] for n in nodes if isinstance(n.op, DimShuffle)]
    assert all(x.owner is None or isinstance(x.owner.op, DimShuffle) for x in shuffled)
