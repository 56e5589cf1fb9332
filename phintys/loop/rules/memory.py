"""Loops keep only the rows of results that are used, and make only the steps for these."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from phintys.dims import Dim
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Variable
from phintys.loop.parts import Part
from phintys.loop.rules.buffers import KEPT
from phintys.loop.rules.reads import (
    AnyRead,
    LastState,
    Read,
    ResultLengths,
    Uncut,
    rows_at_end,
    rows_at_start,
)
from phintys.loop.whole import Replacements, Whole, taken_apart
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import Alloc, AllocEmpty
from phintys.tensor.elemwise import functions
from phintys.tensor.index_list import literal
from phintys.tensor.index_ops import IncSubtensor, Subtensor
from phintys.tensor.rules.reading import index_of


def save_memory(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Shorten the buffers of which only rows at known distances from the end are used."""
    loop = taken_apart(node)
    lengths = ResultLengths(loop)
    reads: dict[Variable, Sequence[AnyRead]] = {}
    for p in loop.parts:
        if p.result is None or p.kind not in KEPT:
            continue
        out = node.outputs[p.result]
        found = rows_at_end(fgraph, out, lengths.length(p), lengths.numbers)
        if found is None:
            continue
        rows, again = found[0], list[AnyRead](found[1])
        if rows == 2 and p.kind == "sit_sot" and p.lag == 1:
            rows, again = _reads_of_last_state(again, loop.steps) or (rows, again)
        count = max(rows, p.lag, 1)
        if _pays(count, lengths.kept(p)) and _shorten(p, count):
            reads[out] = again
    return _read_again(loop, reads) if reads else None


def _reads_of_last_state(
    reads: Sequence[AnyRead], steps: Variable
) -> tuple[int, list[AnyRead]] | None:
    """The number of rows, 1, and the reads, if each is that of the last state after a step.

    Such a read is ``out[1:][-1]``.  It then fails if there are no steps, not because the row is
    missing.
    """
    cuts = {r.node.outputs[0] for r in reads if _is_cut(r.node)}
    if any(r.node.outputs[0] not in cuts and not _is_last(r.node, cuts) for r in reads):
        return None
    if any(_is_cut(r.node) and r.node.inputs[0] in cuts for r in reads):
        return None
    return 1, [
        Uncut(r.node) if r.node.outputs[0] in cuts else LastState(r.node, steps) for r in reads
    ]


def _is_cut(node: Apply) -> bool:
    """Whether a node leaves out the first row alone."""
    first, *others = index_of(node)
    full = all(e == slice(None) for e in others)
    if not full or not isinstance(first, slice):
        return False
    return first.stop is None and first.step is None and literal(first.start) == 1


def _is_last(node: Apply, cuts: Collection[Variable]) -> bool:
    """Whether a node reads the last row of a result without its first row."""
    first = index_of(node)[0]
    return node.inputs[0] in cuts and not isinstance(first, slice) and literal(first) == -1


def _pays(count: int, kept: Dim | None) -> bool:
    """Whether to keep ``count`` rows.  If there were more steps, the rows are copied in the end."""
    return kept is None or kept.value is None or count == 1 or 2 * count <= kept.value


def make_fewer_steps(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Leave out the steps after the last row that is used, if all rows used count from the start.

    Errors in these steps, and of sequences that are too short for them, are dropped.
    """
    loop = taken_apart(node)
    lengths = ResultLengths(loop)
    results = [(p, node.outputs[p.result]) for p in loop.parts if p.result is not None]
    steps = 0
    for p, out in results:
        if not fgraph.clients[out]:
            continue
        if p.kind not in KEPT or lengths.kept(p) is not lengths.most(p):
            return None
        rows = rows_at_start(fgraph, out, lengths.most(p).value)
        if rows is None:
            return None
        steps = max(steps, rows - p.lag, 1)
    known = lengths.steps.value
    if steps == 0 or (known is not None and known <= steps):
        return None
    for p, _ in results:
        if p.kind in KEPT:
            _shorten(p, steps + p.lag)
    count = as_tensor_variable(np.int64(steps))
    loop.steps = count if known is not None else functions.minimum(loop.steps, count)
    kept = [out for p, out in results if p.kind in KEPT]
    return _read_again(loop, {out: [Read(c) for c, _ in fgraph.clients[out]] for out in kept})


def _read_again(loop: Whole, reads: Mapping[Variable, Sequence[AnyRead]]) -> Replacements:
    """The changed loop, and the reads of its results that have fewer rows now."""
    found = loop.replacements()
    for out, nodes in reads.items():
        parts = {out: found.pop(out)}
        for r in nodes:
            parts[r.node.outputs[0]] = r.of(parts[r.node.inputs[0]])
        inner = {out, *(r.node.inputs[0] for r in nodes)}
        found.update((v, new) for v, new in parts.items() if v not in inner)
    return found


def read_from_end(client: Apply, v: Variable) -> int | None:
    """``j`` if a node computes ``v[-j]`` or ``v[-j, ...]`` without a slice, else None."""
    if type(client.op) is not Subtensor or client.inputs[0] is not v:
        return None
    first = index_of(client)[0]
    k = None if isinstance(first, slice) else literal(first)
    return -k if k is not None and k < 0 else None


# --------------------------------------------------------------------------- shortening


def _shorten(p: Part, count: int) -> bool:
    """Give a part ``count`` rows; return whether it surely had more."""
    if p.kind == "nit_sot":
        known = literal(p.outer)
        if known is not None and known <= count:
            return False
        p.outer = as_tensor_variable(np.int64(count))
        return True
    known = p.outer.type.shape[0]
    if known is not None and known <= count:
        return False
    p.outer = first_rows(p.outer, count)
    return True


def first_rows(buffer: Any, count: int) -> Any:
    """A buffer of ``count`` rows that begins as ``buffer`` does."""
    writes: list[Apply] = []  # to these rows, the last one first
    while _writes_within(buffer.owner, count):
        writes.append(buffer.owner)
        buffer = buffer.owner.inputs[0]
    found = _first_rows_of_memory(buffer, count)
    for node in reversed(writes):
        found = node.op.make_node(found, *node.inputs[1:]).outputs[0]
    return found


def _first_rows_of_memory(buffer: Any, count: int) -> Any:
    node: Any = buffer.owner
    op = getattr(node, "op", None)
    if isinstance(op, AllocEmpty):
        return op.make_node(count, *node.inputs[1:]).outputs[0]
    if isinstance(op, Alloc) and _is_constant_along_rows(node):
        return op.make_node(node.inputs[0], count, *node.inputs[2:]).outputs[0]
    return buffer[:count]


def _is_constant_along_rows(node: Apply) -> bool:
    value, out = node.inputs[0], node.outputs[0]
    return value.type.ndim < out.type.ndim or value.type.broadcastable[0]


def _writes_within(node: Any, count: int) -> bool:
    """Whether a node writes a slice of rows that is known to end before ``count``."""
    if node is None or not isinstance(node.op, IncSubtensor):
        return False
    index = index_of(node, 2)[0]
    if not isinstance(index, slice) or index.start is not None or index.step is not None:
        return False
    k = literal(index.stop)
    return k is not None and 0 <= k <= count
