"""Rewriting of the graphs inside ops: by the phases of the pipeline that rewrites the outer graph.

Ops are handled through the methods of `HasMultipleInnerGraph`; this module names none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Self

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.inner import expand, has_inner_graphs, nested_ops
from phintys.graph.op import HasMultipleInnerGraph
from phintys.graph.origin import inherit
from phintys.graph.variable import Variable
from phintys.rewriting.rewriter import GraphRewriter, Rewriter


class InlineInnerGraphs(GraphRewriter):
    """A graph rewriter that replaces nodes by the graphs inside their ops, where that is possible.

    Compiled backends need it: they have no calls of ops made of graphs.
    """

    def apply(self, fgraph: FunctionGraph) -> bool:
        return has_inner_graphs(fgraph) and expand(fgraph)


class InnerGraphRewriter(GraphRewriter):
    """A graph rewriter that rewrites the graphs inside ops by ``phases``, and exchanges the ops.

    Nodes of ops with `is_inline` are replaced by their graphs, before that.  A pipeline may contain
    several such rewriters; `within` gives each the phases that follow it.  The graph of an op that
    is expanded in one of them, `InlineInnerGraphs`, is rewritten by those before it.
    """

    def __init__(self, phases: Sequence[Rewriter] = ()) -> None:
        self.phases = list(phases)

    def within(self, pipeline: Sequence[Rewriter]) -> Self:
        """A copy whose phases are those of ``pipeline`` up to the next rewriter of its kind."""
        following = pipeline[pipeline.index(self) + 1 :]
        copy = type(self)([*takewhile(lambda r: not isinstance(r, InnerGraphRewriter), following)])
        copy.name = self.name
        return copy

    def phases_for(self, op: HasMultipleInnerGraph) -> list[Rewriter]:
        """The phases that rewrite the graphs inside an op."""
        kinds = [isinstance(phase, InlineInnerGraphs) for phase in self.phases]
        return self.phases[: kinds.index(True)] if op.is_expandable and any(kinds) else self.phases

    def apply(self, fgraph: FunctionGraph) -> bool:
        """Rewrite the inner graphs, deepest first; return whether the graph changed.

        An exception of a phase gets a note that names the op.
        """
        if not has_inner_graphs(fgraph):
            return False
        changed = expand(fgraph, _is_inline)
        new: dict[Any, Any] = {}
        for op in nested_ops(node.op for node in fgraph.toposort()):
            if op.is_inline:
                continue
            graphs = op.thawed_inner_graphs()
            if not graphs:
                continue
            for name, graph in graphs.items():
                try:
                    self._rewrite(graph, self.phases_for(op), new)
                except Exception as exc:
                    exc.add_note(f"while rewriting the graph {name} inside {op}".replace("  ", " "))
                    raise
            found = op.clone_with_inner_graphs(graphs)
            if found != op:
                new[op] = found
        changed = _exchange(fgraph, new) or changed
        return simplify(fgraph) or changed

    def _rewrite(
        self, graph: FunctionGraph, phases: Sequence[Rewriter], new: Mapping[Any, Any]
    ) -> None:
        """Rewrite one inner graph; ``new`` maps the ops that may occur in it to rewritten ones."""
        expand(graph, _is_inline)
        _exchange(graph, new)
        for phase in phases:
            phase.rewrite(graph)  # type: ignore[attr-defined]
        simplify(graph)

    def parts(self) -> Sequence[Rewriter]:
        return self.phases


class InnerGraphSimplifier(GraphRewriter):
    """A graph rewriter that removes unused inputs and outputs of the graphs inside ops."""

    def apply(self, fgraph: FunctionGraph) -> bool:
        return simplify(fgraph)


def simplify(fgraph: FunctionGraph) -> bool:
    """Remove what is not used from ops with inner graphs; return whether the graph changed.

    Outputs that are inputs or constants of the inner graph take no part in it.
    """
    changed = False
    for node in reversed(fgraph.toposort()) if has_inner_graphs(fgraph) else ():
        if not isinstance(node.op, HasMultipleInnerGraph) or node not in fgraph.apply_nodes:
            continue  # or a user that is simplified has dropped it
        used = [bool(fgraph.clients[v]) for v in node.outputs]
        with inherit(node.origin):
            found = node.op.simplify_node(node, used)
        if found is not None:
            pairs = zip(node.outputs, found, strict=True)
            changed = _replace(fgraph, [(old, v) for old, v in pairs if v is not None]) or changed
    return changed


def _exchange(fgraph: FunctionGraph, new: Mapping[Any, Any]) -> bool:
    """Exchange the ops that are keys of ``new``; return whether there were any."""
    changed = False
    for node in fgraph.toposort():
        if isinstance(node.op, HasMultipleInnerGraph) and node.op in new:
            with inherit(node.origin):
                made = new[node.op].make_node(*node.inputs)
            changed = _replace(fgraph, zip(node.outputs, made.outputs, strict=True)) or changed
    return changed


def _replace(fgraph: FunctionGraph, pairs: Iterable[tuple[Variable, Variable]]) -> bool:
    chosen = list(pairs)
    fgraph.replace_all(chosen, reason="inner graphs")
    return bool(chosen)


def _is_inline(op: Any) -> bool:
    return bool(op.is_inline)
