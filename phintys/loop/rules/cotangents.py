"""Buffers of cotangents of which only the first row is given become those of states.

In the gradient of a loop of which only the last row is used, the buffer that the reverse loop adds
to, a mit-mot, holds zeros but for the first row.
"""

from __future__ import annotations

from typing import Any

from phintys.dims import dim_min
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply
from phintys.loop.op import Scan
from phintys.loop.parts import Part
from phintys.loop.rules.reads import ResultLengths, is_reverse
from phintys.loop.states import Output
from phintys.loop.whole import Replacements, Whole, nodes_of, taken_apart
from phintys.tensor.creation import alloc, zeros_like
from phintys.tensor.index_list import literal
from phintys.tensor.index_ops import IncSubtensor, Subtensor
from phintys.tensor.rules.match import scalar_op_name
from phintys.tensor.rules.reading import index_of
from phintys.tensor.shape import shape_tuple
from phintys.tensor.static import constant_value


def drop_zero_rows(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Replace buffers that are zeros but for the first row, to which each step adds a row."""
    loop = taken_apart(node)
    changed = False
    for p in loop.of_kind("mit_mot"):
        first = _first_row(p.outer) if _is_accumulated(p) else None
        if first is None:
            continue
        before, given = p.inputs[p.reads.index(0)], p.inputs[p.reads.index(1)]
        loop.replace(_without(loop, given) | {given: zeros_like(before)})
        p.kind, p.inputs, p.reads = "sit_sot", [before], (0,)
        p.outer = Output(first, [-1]).buffer(loop.steps)
        changed = True
    return loop.replacements() if changed else None


def _without(loop: Whole, zeros: Any) -> dict[Any, Any]:
    """For the sums of ``zeros``, and one number of the same type, this number."""
    sums = [n for n in nodes_of(loop) if zeros in n.inputs and scalar_op_name(n) == "add"]
    others = [[v for v in n.inputs if v is not zeros] for n in sums]
    return {
        n.outputs[0]: rest[0]
        for n, rest in zip(sums, others)
        if len(rest) == 1 and rest[0].type == n.outputs[0].type
    }


def _is_accumulated(p: Part) -> bool:
    """Whether iteration ``t`` reads rows ``t`` and ``t + 1``, and writes row ``t + 1``."""
    return sorted(p.reads) == [0, 1] and p.writes == (1,)


def _first_row(buffer: Any) -> Any:
    """The first row of ``zeros[-1].set(row)[:stop][::-1]``; None if a buffer is something else."""
    reverse = _index(buffer, Subtensor)
    if reverse is None or not is_reverse(reverse):
        return None
    rows = buffer.owner.inputs[0]
    stop = None
    cut = _index(rows, Subtensor)
    if cut is not None:
        if not isinstance(cut, slice) or cut.start is not None or cut.step is not None:
            return None
        stop, rows = cut.stop, rows.owner.inputs[0]
    last = _index(rows, IncSubtensor)
    if last is None or isinstance(last, slice) or literal(last) != -1:
        return None
    zeros, row = rows.owner.inputs[:2]
    if constant_value(zeros) != 0 or not (stop is None or _holds(zeros, stop)):
        return None
    plain = row.type.broadcastable == zeros.type.broadcastable[1:]
    return row if plain else alloc(row, *shape_tuple(zeros)[1:])


def _index(v: Any, kind: type) -> Any:
    """The index of the first axis if ``v`` reads, or writes, a part along it alone."""
    node = v.owner
    if node is None or type(node.op) is not kind:
        return None
    first, *others = index_of(node, 2 if kind is IncSubtensor else 1)
    return first if all(e == slice(None) for e in others) else None


def _holds(zeros: Any, stop: Any) -> bool:
    """Whether a slice that ends at ``stop`` has all rows of zeros like the result of a loop."""
    node = zeros.owner
    if node is None or scalar_op_name(node) != "second":
        return False
    like = node.inputs[0]
    if like.owner is None or not isinstance(like.owner.op, Scan):
        return False
    loop = taken_apart(like.owner)
    lengths = ResultLengths(loop)
    (part,) = (p for p in loop.parts if p.result == like.index)
    rows, end = lengths.length(part), lengths.numbers(stop)
    return rows is not None and dim_min(end, rows) is rows
