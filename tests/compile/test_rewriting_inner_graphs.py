"""`rewrite_inner_graph`: programs change the graphs inside ops that they choose."""

from __future__ import annotations

import numpy as np

import phintys
import phintys.tensor as pt
from phintys.compile.rewriting import inline_ofg_node, rewrite_inner_graph
from phintys.graph.fgraph import FunctionGraph
from phintys.rewriting.graph import active_mode


def test_nodes_of_equal_ops_and_types_share_a_call():
    x, y, inner = pt.dvector("x"), pt.dvector("y", shape=(3,)), pt.dvector("inner")
    square, exp = (phintys.OpFromGraph([inner], [f(inner)]) for f in (pt.sqr, pt.exp))
    fgraph = FunctionGraph([x, y], [square(x), square(x + 1), square(y), exp(x)], clone=False)
    mode, calls = phintys.get_mode("FAST_COMPILE"), []

    def cubes(linker, op, node, graph, *, mode):
        calls.append((linker, op, node.inputs[0].type.shape, mode))
        graph.replace(graph.outputs[0], graph.inputs[0] ** 3)

    with active_mode(fgraph, mode):
        rewrite_inner_graph(fgraph, lambda op: op == square, cubes)
    assert calls == [(mode.linker, square, shape, mode) for shape in ((3,), (None,))]
    fgraph.check_integrity()
    found = phintys.function(fgraph.inputs, fgraph.outputs)([2.0], [1.0, 2.0, 3.0])
    for value, expected in zip(found, ([8], [27], [1, 8, 27], [np.exp(2)])):
        np.testing.assert_allclose(value, expected)
    assert square(x).owner.op.fgraph.outputs[0].owner.op == pt.sqr  # the op itself stays


def test_the_step_of_a_loop():
    x = pt.dvector("x")
    zero = pt.constant(0.0, dtype="float64")
    sums = phintys.scan(lambda a, s: a + s, x, zero, return_updates=False)
    fgraph = FunctionGraph([x], [sums], clone=False)

    def products(linker, op, node, graph, *, mode):
        graph.replace(graph.outputs[0], graph.inputs[0] - graph.inputs[1])

    rewrite_inner_graph(fgraph, lambda op: isinstance(op, phintys.scan.op.Scan), products)
    found = phintys.function([x], fgraph.outputs[0])([1.0, 2.0])
    np.testing.assert_allclose(found, [1.0, 1.0])


def test_inlining_a_node():
    x, y = pt.dscalars("x", "y")
    node = phintys.OpFromGraph([x], [pt.exp(x), x + 1])(y)[0].owner
    assert [v.owner.inputs[0] for v in inline_ofg_node(node)] == [y, y]
