"""Merging of equal nodes and constants (common subexpression elimination) as a pass of its own.

Every run of the engine merges too; this pass is for pipelines that select it by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.graph.clients import OrderedSet
from phintys.graph.features import Feature
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.rewriter import GraphRewriter


class MergeFeature(Feature):
    """A feature that records whether the graph has changed since it was last merged.

    ``scheduled`` are the nodes that were added or changed since then.
    """

    def __init__(self) -> None:
        self.scheduled: OrderedSet[Apply] = OrderedSet()
        self.clean = False

    def on_attach(self, fgraph: FunctionGraph) -> None:
        self.scheduled = OrderedSet(fgraph.toposort())

    def clone(self) -> MergeFeature:
        return type(self)()

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        self.clean = False
        self.scheduled.add(node)

    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        self.scheduled.discard(node)

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        self.clean = False
        self.scheduled.add(node)


class MergeOptimizer(GraphRewriter):
    """A graph rewriter that merges nodes with equal ops and the same inputs, and equal constants.

    In-place nodes, and nodes whose results are overwritten, are not merged.
    """

    name = "merge"

    def __init__(self) -> None:
        self._rules = RuleSet((), name="merge")

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        if not _features(fgraph):
            fgraph.attach_feature(MergeFeature())

    def apply(self, fgraph: FunctionGraph) -> bool:
        """Merge; return whether the graph changed."""
        features = _features(fgraph)
        if features and all(f.clean for f in features):
            return False
        changed = self._rules.apply(fgraph)
        for feature in features:
            feature.clean = True
            feature.scheduled.clear()
        return changed


def _features(fgraph: FunctionGraph) -> list[MergeFeature]:
    attached = fgraph._features  # pyright: ignore[reportPrivateUsage]
    return [f for f in attached if isinstance(f, MergeFeature)]


def pre_constant_merge(fgraph: FunctionGraph, variables: Sequence[Any]) -> list[Any]:
    """Replace constants in expressions outside of ``fgraph`` by equal ones of it, in place.

    Returns ``variables``, with constants among them replaced.  Other objects than variables are
    returned unchanged.
    """
    seen: dict[Any, Constant] = {}
    for v in fgraph.variables:
        if isinstance(v, Constant):
            seen.setdefault(v.merge_signature(), v)

    def merged(v: Any) -> Any:
        return seen.setdefault(v.merge_signature(), v) if isinstance(v, Constant) else v

    visited: set[Apply] = set()
    stack = [v.owner for v in variables if isinstance(v, Variable) and v.owner is not None]
    while stack:
        node = stack.pop()
        if node in visited or node in fgraph.apply_nodes:
            continue
        visited.add(node)
        node.inputs[:] = [merged(v) for v in node.inputs]
        stack.extend(v.owner for v in node.inputs if v.owner is not None)
    return [merged(v) for v in variables]
