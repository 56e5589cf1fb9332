"""What is known of the rows that a loop keeps of its states and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phintys.graph.variable import Constant, Variable
from phintys.loop.parts import BUFFERS, Part
from phintys.loop.whole import Whole
from phintys.tensor.creation import Alloc, AllocEmpty
from phintys.tensor.index_list import literal
from phintys.tensor.index_ops import IncSubtensor
from phintys.tensor.rules.match import scalar_op_name
from phintys.tensor.shape import specify_shape


def keeps_all_rows(p: Part, steps: Any) -> bool:
    """Whether the result of a state or output surely has a row for each step."""
    rows = p.outer if p.kind == "nit_sot" else rows_of_buffer(p.outer)
    known, count = literal(rows), literal(steps)
    if p.kind != "nit_sot" and known is None:
        known = p.outer.type.shape[0]
    if known is not None and count is not None:
        return known >= count + p.lag
    if p.kind == "nit_sot":
        return rows is steps
    return rows is not None and _is_sum(rows, steps, p.lag)


def has_first_rows(p: Part) -> bool:
    """Whether the rows that a buffer begins with surely have been written: no check is lost.

    Rules read them from what was written, instead of from the buffer.
    """
    node = p.outer.owner
    if p.kind == "nit_sot" or node is None or not isinstance(node.op, IncSubtensor):
        return True
    return node.inputs[1].type.shape[0] is not None


def rows_of_buffer(buffer: Variable) -> Variable | None:
    """The number of rows of a buffer as a variable, if it is an allocation, perhaps written to."""
    while buffer.owner is not None and isinstance(buffer.owner.op, IncSubtensor):
        buffer = buffer.owner.inputs[0]
    node = buffer.owner
    if node is None or not isinstance(node.op, Alloc | AllocEmpty):
        return None
    lengths = node.inputs[1:] if isinstance(node.op, Alloc) else node.inputs
    return lengths[0] if len(lengths) == buffer.type.ndim else None


def _is_sum(rows: Variable, steps: Any, lag: int) -> bool:
    """Whether ``rows`` is the expression ``steps + lag``."""
    node = rows.owner
    if node is None or scalar_op_name(node) != "add":
        return False
    others = [v for v in node.inputs if v is not steps]
    return len(node.inputs) == 2 and [literal(v) for v in others] == [lag]


def traces(loop: Whole, results: Mapping[Any, Any]) -> dict[Any, Any]:
    """For inner variables their values at all steps: rows of sequences, states and outputs.

    ``results`` are the outer outputs by those of the node.  States count if all their rows are
    kept.
    """
    found = {}
    for p in loop.parts:
        if p.kind == "seq":
            found[p.inputs[0]] = rows_of_steps(p.outer, loop.steps)
        elif p.result is None or p.kind not in KEPT or not keeps_all_rows(p, loop.steps):
            continue
        elif p.kind == "nit_sot":
            if p.outputs[0].owner is not None:
                found[p.outputs[0]] = results[loop.node.outputs[p.result]]
        else:
            rows = results[loop.node.outputs[p.result]]
            ends = {k: k - p.lag or None for k in (*p.reads, *p.writes)}
            pairs = [*zip(p.reads, p.inputs), *zip(p.writes, p.outputs)]
            found.update((v, rows[k : ends[k]]) for k, v in pairs)
    return {v: rows for v, rows in found.items() if not isinstance(v, Constant)}


def rows_of_steps(sequence: Any, steps: Any) -> Any:
    """The rows of a sequence that the steps get; ShapeError when computed, if there are fewer."""
    return specify_shape(sequence[:steps], (steps, *[None] * (sequence.type.ndim - 1)))


#: kinds of parts whose result may have a row for each step
KEPT = (BUFFERS - {"mit_mot"}) | {"nit_sot"}
