"""Rewrite graphs without compiling them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Variable
from phintys.rewriting.database import RewriteDatabaseQuery, optdb
from phintys.rewriting.rewriter import GraphRewriter

Graph = Variable | Sequence[Variable] | FunctionGraph


def rewrite_graph(
    graph: Any,
    include: Sequence[str] = ("canonicalize",),
    custom_rewrite: GraphRewriter | None = None,
    clone: bool = True,
    **kwargs: Any,
) -> Any:
    """Apply phases of rewriting to a variable, a list of variables, or a FunctionGraph.

    Parameters
    ----------
    graph
        what to rewrite
    include
        tags of the rewrites to apply
    custom_rewrite
        a graph rewriter to run afterwards
    clone
        work on a copy.  Without it, the nodes of ``graph`` themselves are changed.
    **kwargs
        further arguments of `RewriteDatabaseQuery`: ``exclude``, ``require``, ...

    Returns the result in the form of ``graph``: a variable, a list, or a FunctionGraph.
    """
    fgraph = graph if isinstance(graph, FunctionGraph) else _as_fgraph(graph, clone)
    if fgraph is graph and clone:
        fgraph = fgraph.clone()
    optdb.query(RewriteDatabaseQuery(include=include, **kwargs)).rewrite(fgraph)
    if custom_rewrite is not None:
        custom_rewrite.rewrite(fgraph)
    if isinstance(graph, FunctionGraph):
        return fgraph
    return fgraph.outputs[0] if isinstance(graph, Variable) else list(fgraph.outputs)


def _as_fgraph(graph: Any, clone: bool) -> FunctionGraph:
    outputs = [graph] if isinstance(graph, Variable) else list(graph)
    return FunctionGraph(outputs=outputs, clone=clone, copy_inputs=False)


def rewrite_subgraph(
    outputs: Sequence[Variable],
    frontier: Iterable[Variable],
    include: Sequence[str] = ("canonicalize",),
    **kwargs: Any,
) -> list[Variable]:
    """Rewrite what lies between ``frontier`` and ``outputs``, and nothing above the frontier.

    The variables of the frontier act as inputs while this runs.  The nodes below it are changed in
    place; ``outputs`` must not belong to a FunctionGraph.
    """
    owners = {v: v.owner for v in frontier if v.owner is not None}
    try:
        for v in owners:
            v.owner = None
        return list(rewrite_graph(list(outputs), include=include, clone=False, **kwargs))
    finally:
        for v, owner in owners.items():
            v.owner = owner


def get_active_mode(fgraph: FunctionGraph) -> Any:
    """The mode a graph is being compiled for; None outside compilation."""
    return getattr(fgraph, "active_mode", None)
