"""Operands at computed positions that stay where they are during the innermost loop.

Rows taken by number (``x[index]`` of a matrix, and its gradient) lie contiguously in memory: once
the index is known, a row is like any other operand, and whole vectors of it are moved at once.
"""

from __future__ import annotations

from typing import NamedTuple

from phintys.dims import Dim
from phintys.lowering.program import Kernel
from phintys.lowering.schedule import instruction_depths


class Row(NamedTuple):
    """Where a row begins: positions of its indices in the body, and what they are multiplied by."""

    indices: tuple[int, ...]
    strides: tuple[Dim, ...]


def rows_of(kernel: Kernel) -> dict[int, Row]:
    """The operands, by number, that move contiguously in the innermost loop, from an index on."""
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
    """The kernel where those operands begin at their rows."""
    if not rows:
        return kernel
    operands = tuple(
        o._replace(extra=()) if n in rows else o for n, o in enumerate(kernel.operands)
    )
    body = tuple(
        inst._replace(args=inst.args[: inst.op != "load"]) if inst.operand in rows else inst
        for inst in kernel.body
    )
    return Kernel(kernel.dims, kernel.split, operands, body, kernel.step)
