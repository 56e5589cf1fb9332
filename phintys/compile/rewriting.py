"""Rewrites of the graphs inside ops, for programs that choose the ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import HasMultipleInnerGraph, Op
from phintys.graph.origin import inherit
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.graph import get_active_mode


def rewrite_inner_graph(
    fgraph: FunctionGraph, match: Callable[[Op], bool], rewrite: Callable[..., Any]
) -> None:
    """Change the graphs inside ops of ``fgraph`` in place, and exchange the ops.

    Parameters
    ----------
    fgraph
        the graph whose nodes get new ops; it is changed
    match
        whether to change the graphs inside an op
    rewrite
        is called as ``rewrite(linker, op, node, inner, mode=mode)`` with a copy ``inner`` of the
        inner graph, which it changes.  ``mode`` is that of `get_active_mode`, ``linker`` its
        linker.  Nodes of equal ops and types of inputs share one call.

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dscalars("x", "y")
    >>> op = phintys.OpFromGraph([x], [pt.exp(x)])
    >>> fgraph = FunctionGraph([y], [op(y)], clone=False)
    >>> def to_sine(linker, op, node, inner, *, mode):
    ...     inner.replace(inner.outputs[0], pt.sin(inner.inputs[0]))
    >>> rewrite_inner_graph(fgraph, lambda op: isinstance(op, phintys.OpFromGraph), to_sine)
    >>> fgraph.outputs[0].eval({y: 0.0})
    array(0.)
    """
    mode = get_active_mode(fgraph)
    new: dict[Any, Any] = {}
    for node in fgraph.toposort():
        op = node.op
        if not isinstance(op, HasMultipleInnerGraph) or not match(node.op):
            continue
        key = (op, *(v.type for v in node.inputs))
        if key not in new:
            graphs = op.thawed_inner_graphs()
            for inner in graphs.values():
                rewrite(mode.linker, op, node, inner, mode=mode)
            new[key] = op.clone_with_inner_graphs(graphs)
        with inherit(node.origin):
            made = new[key].make_node(*node.inputs)
        fgraph.replace_all(list(zip(node.outputs, made.outputs)), reason="rewrite_inner_graph")


def inline_ofg_node(node: Apply) -> list[Variable]:
    """The outputs of a node of an `OpFromGraph` as an ordinary graph on its inputs.

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dscalars("x", "y")
    >>> inline_ofg_node(phintys.OpFromGraph([x], [pt.exp(x)])(y).owner)[0].owner
    Exp(y)
    """
    op: Any = node.op
    return op.inline_node(node)
