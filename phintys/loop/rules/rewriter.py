"""A rewriter that changes each loop of a graph by itself."""

from __future__ import annotations

from collections.abc import Callable

from phintys.errors import ContradictionError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.inner import has_inner_graphs
from phintys.graph.variable import Apply
from phintys.loop.op import Scan
from phintys.loop.whole import Replacements
from phintys.rewriting.rewriter import GraphRewriter


class LoopRewriter(GraphRewriter):
    """Applies a function to each loop of a graph, in topological order.

    ``transform(fgraph, node)`` returns replacements for outputs of the node, or None.
    """

    def __init__(
        self, name: str, transform: Callable[[FunctionGraph, Apply], Replacements | None]
    ) -> None:
        super().__init__()
        self.name = name
        self.transform = transform

    def apply(self, fgraph: FunctionGraph) -> bool:
        changed = False
        for node in loops(fgraph):
            if node in fgraph.apply_nodes:
                try:
                    found = self.transform(fgraph, node)
                except ContradictionError:
                    continue  # the program fails if it gets here
                changed = changed or bool(found)
                fgraph.replace_all(list((found or {}).items()), reason=self.name)
        return changed


def loops(fgraph: FunctionGraph) -> list[Apply]:
    """The nodes of loops, in topological order."""
    if not has_inner_graphs(fgraph):
        return []
    return [node for node in fgraph.toposort() if isinstance(node.op, Scan)]
