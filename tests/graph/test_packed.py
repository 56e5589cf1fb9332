"""`PackedGraph`: a graph in flat lists is made again as it was."""

from __future__ import annotations

import pickle

import numpy as np
from toy_graphs import cell, f, g, h, halve

import phintys
import phintys.tensor as pt
from phintys.graph.destroy import DestroyHandler, Supervisor
from phintys.graph.equality import equal_computations
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import locate
from phintys.graph.packed import PackedGraph
from phintys.graph.variable import Apply


class Marked(Apply):
    """A node of a class of its own."""


def described(fgraph: FunctionGraph) -> list[object]:
    """What a copy of a graph has in common with it, besides its structure."""
    nodes = [(n.op, n.number, n.origin, str(n._tag)) for n in fgraph.toposort()]
    results = [v for n in fgraph.toposort() for v in n.outputs]
    variables = [(type(v), v.type, v.name, v.origin, v.index, str(v._tag)) for v in results]
    return [nodes, variables, fgraph.update_mapping, [type(x) for x in fgraph._features]]


def check(fgraph: FunctionGraph) -> FunctionGraph:
    """The graph packed and unpacked; AssertionError if it differs."""
    packed = PackedGraph(fgraph)
    again = packed.unpack()
    again.check_integrity()
    loaded = pickle.loads(pickle.dumps(packed)).unpack()
    loaded.check_integrity()
    pairs = zip(fgraph.toposort(), loaded.toposort(), strict=True)
    assert all(str(locate(a.origin)) == str(b.origin) and b.number == 0 for a, b in pairs)
    assert equal_computations(loaded.outputs, fgraph.outputs, loaded.inputs, fgraph.inputs)
    assert again.inputs == fgraph.inputs
    assert not {*fgraph.apply_nodes} & {*again.apply_nodes}
    assert equal_computations(again.outputs, fgraph.outputs)
    assert described(again) == described(fgraph)
    return again


def test_names_tags_constants_and_results_of_several():
    x, y = cell("x"), cell("y")
    a = f(x, 3, name="a")
    outputs = [*halve(g(a, y)), h(a), x, a]
    a.tag.note, a.owner.tag.note = "of the result", "of the node"
    fgraph = FunctionGraph([x, y], outputs, update_mapping={len(outputs) - 1: 0})
    again = check(fgraph)
    named = next(v for v in again.variables if v.name == "a")
    assert (named.tag.note, named.owner.tag.note) == ("of the result", "of the node")


def test_outputs_that_no_node_computes():
    x = cell("x")
    constant = f(x, 3).owner.inputs[1]
    again = check(FunctionGraph([x], [constant, x, constant], clone=False))
    assert again.outputs == [constant, x, constant]


def test_features_are_those_of_a_clone():
    x = cell("x")
    fgraph = FunctionGraph([x], [f(x, 3)])
    fgraph.attach_feature(DestroyHandler())
    fgraph.attach_feature(Supervisor([0]))
    again = check(fgraph)
    supervisor = next(s for s in again._features if isinstance(s, Supervisor))
    assert supervisor.fgraph is again and supervisor.protected == again.inputs


def test_subclasses_of_apply():
    x = cell("x")
    node = Marked(f, [x, x], [x.type()])
    again = check(FunctionGraph([x], node.outputs, clone=False))
    assert isinstance(again.outputs[0].owner, Marked)


def test_a_graph_after_rewriting():
    x, w = pt.dmatrix("x"), phintys.shared(np.ones((3, 3)), "w")
    y = pt.softmax(pt.tanh(x @ w), axis=0)[1:].sum(0)
    out = phintys.function([x], [y, *phintys.grad(y.sum(), [x, w])], updates={w: w * 2})
    fgraph = out.maker.graph
    again = check(fgraph)
    assert again.inputs[1] is w and again.update_mapping == {3: 1}
