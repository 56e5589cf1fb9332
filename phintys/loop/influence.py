"""Which parts of a loop influence which others, over any number of steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from phintys.loop.parts import Part, parts_of
from phintys.tensor.type import TensorType

#: for each part of a loop the parts that it influences within a step
Links = list[list[int]]


def positions(op: Any) -> list[Part]:
    """The parts of a loop, with positions in place of variables."""
    info = op.info
    return parts_of(
        op, range(info.n_outer_inputs), range(info.n_inner_inputs), range(info.n_inner_outputs)
    )


def links(parts: Sequence[Part], pattern: Sequence[Sequence[bool]]) -> Links:
    """The links between parts with positions; ``pattern`` is that of the inner graph."""
    return [
        [k for k, q in enumerate(parts) if any(pattern[i][o] for i in p.inputs for o in q.outputs)]
        for p in parts
    ]


def is_continuous(v: Any) -> bool:
    """Whether derivatives with respect to a variable may be other than zero."""
    return isinstance(v.type, TensorType) and not v.type.is_discrete


def reached(edges: Links, start: Iterable[int]) -> set[int]:
    """The parts of ``start``, and those that they influence in any number of steps."""
    found = set(start)
    todo = list(found)
    while todo:
        for k in edges[todo.pop()]:
            if k not in found:
                found.add(k)
                todo.append(k)
    return found


def backwards(edges: Links) -> Links:
    """The links in the other direction."""
    found: Links = [[] for _ in edges]
    for k, others in enumerate(edges):
        for q in others:
            found[q].append(k)
    return found


def connection_pattern(op: Any) -> list[list[bool]]:
    """``[outer input][outer output]``: whether a derivative passes through the loop."""
    parts = positions(op)
    edges = links(parts, op.pattern)
    found = [[False] * op.info.n_outer_outputs for _ in range(op.info.n_outer_inputs)]
    for k, p in enumerate(parts):
        if p.kind != "nit_sot":  # its outer input is a length
            for q in reached(edges, [k]):
                result = parts[q].result
                if result is not None:
                    found[p.outer][result] = True
    return found
