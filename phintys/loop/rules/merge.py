"""Loops that make the same steps become one loop."""

from __future__ import annotations

from typing import Any

from phintys.conditional.regions import places_of
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Variable
from phintys.loop.op import Scan
from phintys.loop.parts import apply_parts
from phintys.loop.rules.rewriter import loops
from phintys.loop.whole import Replacements, taken_apart
from phintys.rewriting.merge import MergeOptimizer
from phintys.rewriting.rewriter import GraphRewriter


class MergeLoops(GraphRewriter):
    """Merges loops with the same number of steps, none of which depends on another.

    While loops stay, since each has its own condition.
    """

    name = "scan_merge"

    def apply(self, fgraph: FunctionGraph) -> bool:
        if sum(not node.op.info.as_while for node in loops(fgraph)) < 2:  # type: ignore[attr-defined]
            return False
        MergeOptimizer().rewrite(fgraph)  # numbers of steps that are equal are one variable
        groups = groups_of(fgraph)
        for group in groups:
            fgraph.replace_all(list(merged(group).items()), reason=self.name)
        return bool(groups)


def groups_of(fgraph: FunctionGraph) -> list[list[Apply]]:
    """Groups of two or more loops that can become one.

    Every group is a set of loops at one depth: the number of loops that lie one after the other
    before it.  Loops of one depth do not depend on each other.  They are computed in one branch, or
    always.
    """
    depth: dict[Variable, int] = {}
    groups: dict[Any, list[Apply]] = {}
    order = fgraph.toposort()
    places = places_of(fgraph.outputs, order)
    for node in order:
        level = max([depth.get(v, 0) for v in node.inputs], default=0)
        if isinstance(node.op, Scan):
            level += 1
            if not node.op.info.as_while:
                key = (level, node.inputs[0], node.op.truncate_gradient, places.get(node))
                groups.setdefault(key, []).append(node)
        depth.update(dict.fromkeys(node.outputs, level))
    return [nodes for nodes in groups.values() if len(nodes) > 1]


def merged(nodes: list[Apply]) -> Replacements:
    """The results of one loop for the outputs of several."""
    wholes = [taken_apart(node) for node in nodes]
    parts = [p for loop in wholes for p in loop.parts]
    first = wholes[0]
    names = dict.fromkeys(str(node.op.name or "scan_fn") for node in nodes)  # type: ignore[attr-defined]
    found = apply_parts(first.node.op, first.steps, parts, name="&".join(names))
    results = iter(found)
    return {
        loop.node.outputs[p.result]: new
        for loop in wholes
        for p, new in zip(loop.parts, results)
        if p.result is not None and new is not None
    }
