"""Functions on the origins of nodes, their source locations in the user's program.

The engine and the walkers give the nodes that a rewrite makes the origin of the node they replace.
The functions here are for rewrites ported from PyTensor, in which each rewrite copies it itself.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

from phintys.config import config
from phintys.graph.features import Feature
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.origin import trace_of
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rewriter import GraphRewriter


def copy_stack_trace(from_var: Any, to_var: Any) -> Any:
    """Copy the origin of ``from_var`` to ``to_var``, and return ``to_var``.

    Both are a variable or a list of variables; the first known origin in ``from_var`` is copied.
    """
    origin = next((o for o in map(origin_of, _as_list(from_var)) if o is not None), None)
    if origin is not None:
        for v in _as_list(to_var):
            holder = v if v.owner is None else v.owner
            holder.origin = origin
            v.tag.trace = trace_of(origin)
    return to_var


def origin_of(variable: Variable) -> Any:
    """The origin of the node that computes a variable, or of a variable without an owner."""
    return variable.origin if variable.owner is None else variable.owner.origin


def _as_list(variables: Any) -> list[Variable]:
    return [variables] if isinstance(variables, Variable) else list(variables)


def check_stack_trace(
    f_or_fgraph: Any, ops_to_check: Any = "last", bug_print: str = "raise"
) -> bool:
    """Whether the origins of the selected nodes are all known.

    Parameters
    ----------
    f_or_fgraph
        a FunctionGraph, or a compiled function
    ops_to_check
        ``"last"`` (nodes that compute outputs), ``"all"``, an op or op class or several, or a
        predicate on ops
    bug_print
        what to do if no node is selected: ``"raise"`` ValueError, ``"warn"`` or ``"ignore"``
    """
    fgraph: FunctionGraph = (
        f_or_fgraph if isinstance(f_or_fgraph, FunctionGraph) else f_or_fgraph.maker.fgraph
    )
    nodes = _nodes_to_check(fgraph, ops_to_check)
    if not nodes and fgraph.apply_nodes:
        message = f"No node of the graph has one of the ops to check: {ops_to_check!r}."
        if bug_print == "raise":
            raise ValueError(message)
        if bug_print == "warn":
            warnings.warn(message, stacklevel=2)
    return all(node.origin is not None for node in nodes)


def _nodes_to_check(fgraph: FunctionGraph, wanted: Any) -> list[Apply]:
    order = fgraph.toposort()
    if isinstance(wanted, str):
        if wanted not in ("last", "all"):
            raise ValueError(f"ops_to_check is {wanted!r}; the strings are 'last' and 'all'.")
        last = {v.owner for v in fgraph.outputs}
        return [n for n in order if wanted == "all" or n in last]
    if isinstance(wanted, Op | type | tuple | list):
        several: Iterable[Any] = wanted if isinstance(wanted, tuple | list) else [wanted]
        return [n for n in order if any(_is_op(n.op, w) for w in several)]
    return [n for n in order if wanted(n.op)]


def _is_op(op: Op, wanted: Any) -> bool:
    return isinstance(op, wanted) if isinstance(wanted, type) else op == wanted


class CheckStackTraceFeature(Feature):
    """A feature that reports new nodes without a known origin.

    ``config.check_stack_trace`` says how: ``log`` prints, ``warn`` warns; else AssertionError.
    """

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        if node.origin is not None:
            return
        message = f"{node}, which {reason} added to the graph, has no known origin."
        if config.check_stack_trace == "warn":
            warnings.warn(message, stacklevel=2)
        elif config.check_stack_trace == "log":
            sys.stderr.write(message + "\n")
        else:
            raise AssertionError(message)


class CheckStackTraceRewriter(GraphRewriter):
    """A graph rewriter that only attaches a `CheckStackTraceFeature`."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        attached = fgraph._features  # pyright: ignore[reportPrivateUsage]
        if not any(isinstance(f, CheckStackTraceFeature) for f in attached):
            fgraph.attach_feature(CheckStackTraceFeature())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Do nothing: the feature checks the rewriters that run later."""
