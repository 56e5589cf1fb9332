"""Gathers and scatter-adds of rows: the index is invariant in the innermost loop.

Rows selected by an index (``x[index]`` of a matrix, and its gradient) are contiguous in memory:
once the index is known, a row is like any other operand, and is accessed by vectors.
"""

from __future__ import annotations

from typing import NamedTuple

from phintys.dims import Dim
from phintys.lowering.program import Kernel
from phintys.lowering.schedule import instruction_depths


class Row(NamedTuple):
    """The start of a row: positions of its indices in the body, and the strides of the indices."""

    indices: tuple[int, ...]
    strides: tuple[Dim, ...]


def rows_of(kernel: Kernel) -> dict[int, Row]:
    """Operand number -> `Row`, for indexed operands that are contiguous in the innermost loop."""
    found: dict[int, Row] = {}
    extras = [(n, o) for n, o in enumerate(kernel.operands) if o.extra and o.strides]
    indexed = {n for n, o in extras if o.strides[-1].value == 1}
    depths = instruction_depths(kernel) if indexed else []
    for inst in kernel.body:
        number = inst.operand
        if number not in indexed:
            continue
        row = Row(inst.args[inst.op != "load" :], kernel.operands[number].extra)
        moves = any(depths[a] == len(kernel.dims) for a in row.indices)
        if moves or found.setdefault(number, row) != row:
            indexed.discard(number)
    return {number: row for number, row in found.items() if number in indexed}


def without_indices(kernel: Kernel, rows: dict[int, Row]) -> Kernel:
    """The kernel without the indices of these operands: their base is the start of the row."""
    if not rows:
        return kernel
    operands = tuple(
        o._replace(extra=()) if n in rows else o for n, o in enumerate(kernel.operands)
    )
    body = tuple(
        inst._replace(args=inst.args[: inst.op != "load"]) if inst.operand in rows else inst
        for inst in kernel.body
    )
    return Kernel(kernel.dims, kernel.split, operands, body, kernel.step, kernel.ragged)
