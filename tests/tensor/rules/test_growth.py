"""Rewriting does work in proportion to the size of the graph, at any depth."""

from __future__ import annotations

import pytest

import phintys
import phintys.tensor as pt
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.traversal import io_toposort
from phintys.rewriting import rewrite_graph
from phintys.rewriting.engine import RuleSet
from phintys.tensor.rules import axes


def sum_of_terms(n):
    """A sum of different scalar terms, and its gradient."""
    xs = [pt.dscalar() for _ in range(n)]
    total = sum(pt.log(1 + pt.exp(x * (i + 1.5))) * pt.sqr(x - i) for i, x in enumerate(xs))
    return [total, *phintys.grad(total, xs)]


def reads(n):
    """Reads of single elements, and the gradient of what is made of them."""
    v = pt.dvector()
    total = sum(pt.exp(v[i]) * (i + 0.5) for i in range(n))
    return [total, phintys.grad(total, v)]


def deep(n):
    """A chain of elementwise functions."""
    x = pt.dvector()
    for i in range(n):
        x = pt.tanh(x) if i % 3 == 0 else x * 1.01 if i % 3 == 1 else pt.exp(-x)
    return [x]


def transposes(n):
    """Functions of transposes of functions."""
    x, b = pt.dmatrix(), pt.dvector()
    for _ in range(n):
        x = pt.exp(x.T) + b
    return [x]


def joined_scalars(n):
    """A vector of scalars, each of which is made a vector."""
    return [pt.concatenate([pt.dscalar()[None] for _ in range(n)])]


GRAPHS = {
    "sum of terms": (sum_of_terms, 10),
    "reads": (reads, 25),
    "deep": (deep, 60),
    "transposes": (transposes, 15),
    "joined scalars": (joined_scalars, 50),
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_work_is_linear(kind, lines_run):
    make, n = GRAPHS[kind]
    rewrite_graph(make(n), include=("fast_run",))  # builds the rules
    small, large = make(n), make(8 * n)
    work = [lines_run(rewrite_graph, g, include=("fast_run",)) for g in (small, large)]
    assert work[1] < 10 * work[0]


def test_a_move_that_two_inputs_prevent_looks_at_two_inputs(monkeypatch):
    """And makes no new node for the others."""
    asked = []
    monkeypatch.setattr(axes, "has_new_axes", lambda v, dropped: asked.append(v))
    x = pt.exp(pt.add(*(pt.row() for _ in range(20))))
    fgraph = FunctionGraph(outputs=[x.dimshuffle(1)])
    assert not RuleSet([axes.lift_squeeze]).apply(fgraph)
    assert len(asked) == 2


PUSHES = {
    "read": lambda y: y[1],
    "length": lambda y: y.shape[0],
    "new axis": lambda y: y.dimshuffle(0, "x"),
    "reshape": lambda y: y.reshape((2, 3)),
    "sum": lambda y: y.sum(),
    "transposed sum": lambda y: (y.dimshuffle("x", 0) + 1).T.sum(axis=1)[0],
}


@pytest.mark.parametrize("name", PUSHES)
def test_what_moves_to_the_inputs_goes_any_depth(name):
    """Deeper than Python's stack, and than replacements may be inside each other."""
    (y,) = deep(3000)
    (new,) = rewrite_graph([PUSHES[name](y)], include=("fast_run",))
    assert len(list(io_toposort([], [new]))) < 4600
