"""Rewriting graphs without compiling them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Variable, late_bound
from phintys.rewriting.database import RewriteDatabaseQuery, optdb
from phintys.rewriting.rewriter import GraphRewriter

Graph = Variable | Sequence[Variable] | FunctionGraph


def rewrite_graph(
    graph: Any,
    include: Sequence[str] = ("canonicalize",),
    custom_rewrite: GraphRewriter | None = None,
    clone: bool = False,
    **kwargs: Any,
) -> Any:
    """Apply rewrites of `optdb`, such as whole phases of compilation, to a graph.

    Parameters
    ----------
    graph
        a variable, a list of variables, or a FunctionGraph; the result has the same form.  A
        FunctionGraph is changed in place, and returned, unless ``clone`` is true
    include
        names or tags of the rewrites to apply
    custom_rewrite
        a graph rewriter to run afterwards
    clone
        whether to work on a copy; otherwise (the default) the nodes of ``graph`` are changed
    **kwargs
        further arguments of `RewriteDatabaseQuery`: ``exclude``, ``require``, ...

    Raises
    ------
    RewriteError
        if a rewrite fails

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> y = phintys.rewrite_graph(pt.log(1 + pt.exp(x)), include=["canonicalize", "stabilize"])
    >>> y.owner
    Softplus(x)
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
    """Rewrite the nodes between ``frontier`` and ``outputs`` in place; return the new outputs.

    The variables ``frontier`` are treated as inputs, so the nodes that compute them do not change.
    ``outputs`` must not belong to a FunctionGraph.  Other arguments as in `rewrite_graph`.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> y = pt.exp(pt.log(x))
    >>> (z,) = rewrite_subgraph([y * 1], [y])
    >>> z is y, y.owner
    (True, Exp(Log.0))
    """
    owners = {v: v.owner for v in frontier if v.owner is not None}
    try:
        for v in owners:
            v.owner = None
        return list(rewrite_graph(list(outputs), include=include, clone=False, **kwargs))
    finally:
        for v, owner in owners.items():
            v.owner = owner


@contextmanager
def active_mode(fgraph: FunctionGraph, mode: Any) -> Generator[None]:
    """A context in which a graph is being compiled for ``mode``; see `get_active_mode`."""
    graph: Any = fgraph
    graph.active_mode = mode
    try:
        yield
    finally:
        del graph.active_mode


def get_active_mode(fgraph: FunctionGraph) -> Any:
    """The mode for which a graph is being compiled; outside of compilation the default mode."""
    active = getattr(fgraph, "active_mode", None)
    return late_bound["get_mode"](None) if active is None else active
