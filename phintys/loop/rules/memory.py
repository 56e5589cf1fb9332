"""Loops keep only the last rows of states and outputs, if no others are used."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Variable
from phintys.loop.parts import Part
from phintys.loop.rules.buffers import KEPT
from phintys.loop.whole import Replacements, taken_apart
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import Alloc, AllocEmpty
from phintys.tensor.index_list import literal
from phintys.tensor.index_ops import IncSubtensor, Subtensor
from phintys.tensor.rules.reading import index_of


def save_memory(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Shorten the buffers of which only rows at constant positions from the end are used.

    A buffer of ``n`` rows keeps the last ``n``.  The reads stay as they are: ``x[s:][-j]`` needs
    ``s + j`` rows, so that it still fails if there are fewer steps than ``j``.
    """
    loop = taken_apart(node)
    reads: dict[Variable, list[Apply]] = {}
    for p in loop.parts:
        if p.result is None or p.kind not in KEPT:
            continue
        out = node.outputs[p.result]
        rows = _rows_needed(fgraph, out)
        if rows is not None and _shorten(p, max(rows, p.lag, 1)):
            reads[out] = [client for client, _ in fgraph.clients[out]]
    if not reads:
        return None
    found = loop.replacements()
    for out, clients in reads.items():
        new = found.pop(out)
        for client in clients:
            found.update(_read_again(fgraph, client, new))
    return found


def _rows_needed(fgraph: FunctionGraph, out: Variable) -> int | None:
    """How many rows at the end all uses of a result together need; None if not known."""
    found = 0
    for client, _ in fgraph.clients[out]:
        index = _first_index(client, out)
        rows, start = _from_end(index), _start(index)
        if rows is None and start is not None:
            part = client.outputs[0]
            inner = [_from_end(_first_index(c, part)) for c, _ in fgraph.clients[part]]
            known = [k for k in inner if k is not None]
            rows = start + max(known) if known and len(known) == len(inner) else None
        if rows is None:
            return None
        found = max(found, rows)
    return found


def _first_index(client: Apply, v: Variable) -> Any:
    """The index along the first axis if a node reads a part of ``v``, else None."""
    return index_of(client)[0] if _is_read(client, v) else None


def read_from_end(client: Apply, v: Variable) -> int | None:
    """``j`` if a node computes ``v[-j]`` or ``v[-j, ...]`` without a slice, else None."""
    index = _first_index(client, v)
    return None if isinstance(index, slice) else _from_end(index)


def _is_read(client: Apply, v: Variable) -> bool:
    return type(client.op) is Subtensor and client.inputs[0] is v


def _from_end(index: Any) -> int | None:
    """``j`` of the indices ``-j`` and ``-j:``, else None."""
    k = literal(index.start if _is_rest(index) else index)
    return -k if k is not None and k < 0 else None


def _start(index: Any) -> int | None:
    """``s`` of the index ``s:`` if it is not negative, else None."""
    k = literal(index.start) if _is_rest(index) else None
    return k if k is not None and k >= 0 else None


def _is_rest(index: Any) -> bool:
    """Whether an index is a slice with a start only."""
    return isinstance(index, slice) and index.stop is None and index.step is None


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


def _read_again(fgraph: FunctionGraph, client: Apply, new: Any) -> Replacements:
    """A read of a result, and what is read of that, from the result with fewer rows."""
    (old,) = client.outputs
    part = client.op.make_node(new, *client.inputs[1:]).outputs[0]
    if _start(_first_index(client, client.inputs[0])) is None:
        return {old: part}
    return {
        c.outputs[0]: c.op.make_node(part, *c.inputs[1:]).outputs[0] for c, _ in fgraph.clients[old]
    }
