"""A node of a `Scan` taken apart, to be changed and put together again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phintys.graph.origin import inherit
from phintys.graph.replace import graph_replace
from phintys.graph.traversal import io_toposort
from phintys.graph.variable import Apply, Variable
from phintys.loop.parts import Part, apply_parts, parts_of

#: replacements for outputs of nodes
Replacements = dict[Variable, Variable]


@dataclass
class Whole:
    """A loop as a list of parts, which may be changed."""

    node: Apply
    steps: Any
    parts: list[Part]
    condition: Any

    def of_kind(self, *kinds: str) -> list[Part]:
        """The parts of some kinds, in order."""
        return [p for p in self.parts if p.kind in kinds]

    def expressions(self) -> list[Any]:
        """All inner outputs, the condition included."""
        found = [v for p in self.parts for v in p.outputs]
        return found if self.condition is None else [*found, self.condition]

    def replace(self, changes: Mapping[Any, Any]) -> None:
        """Replace variables in the inner graph."""
        found = iter(graph_replace(self.expressions(), dict(changes), strict=False))
        for p in self.parts:
            p.outputs = [next(found) for _ in p.outputs]
        if self.condition is not None:
            self.condition = next(found)

    def applied(self) -> list[Any]:
        """The results of the loop: one for each part, or None."""
        with inherit(self.node.origin):
            return apply_parts(self.node.op, self.steps, self.parts, self.condition)

    def replacements(self) -> Replacements:
        """The results of the changed loop for the outputs of the node that it still has."""
        return self.outputs_for(self.applied())

    def outputs_for(self, results: Sequence[Any]) -> Replacements:
        """Results, one for each part or None, for the outputs of the node."""
        return {
            self.node.outputs[p.result]: new
            for p, new in zip(self.parts, results, strict=True)
            if p.result is not None and new is not None
        }


def taken_apart(node: Apply) -> Whole:
    """The loop of a node, with a new copy of its inner graph."""
    op: Any = node.op
    inner = op.thawed()
    parts = parts_of(op, node.inputs, inner.inputs, inner.outputs)
    condition = inner.outputs[-1] if op.info.as_while else None
    return Whole(node, node.inputs[0], parts, condition)


def nodes_of(loop: Whole) -> list[Any]:
    """The nodes of a step in topological order."""
    return list(io_toposort([v for p in loop.parts for v in p.inputs], loop.expressions()))


def depending(nodes: Iterable[Any], start: Iterable[Any]) -> set[Any]:
    """``start``, and what the sorted nodes compute from it."""
    found = set(start)
    for node in nodes:
        if not found.isdisjoint(node.inputs):
            found.update(node.outputs)
    return found
