"""A step over some of the rows it goes through, for steps that take one block of rows at a time.

The memory that such a step uses is used row by row, each row by itself, or it is only read, or it
holds totals that grow from block to block.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Union

import numpy as np

from phintys.backends.llvm.parts import LENGTH, START, one_part
from phintys.dims import ZERO, Dim, product
from phintys.lowering.program import Call, Inst, Kernel, Operand, Slot, Step
from phintys.lowering.reductions import identity
from phintys.lowering.schedule import instruction_depths, schedule

#: a storage, or a slot that has none
Memory = Union[int, Slot]


class Use(NamedTuple):
    """How memory is used: row by row, a row of so many bytes, or in any other way (None)."""

    row: Dim | None
    written: bool


Uses = dict[Memory, Use]


class Cell(NamedTuple):
    """A 0-d slot: its value before the first block, and what it is set to after each."""

    slot: Slot
    first: Operand | Any
    then: Any = None


class Slice(NamedTuple):
    """A step over ``LENGTH`` rows from ``START`` on.

    A product reads ``matrix``, which has ``size`` bytes in all rows.
    """

    step: Step
    uses: Uses
    cells: tuple[Cell, ...] = ()
    matrix: Slot | None = None
    size: Dim = ZERO


def slice_of(step: Step, rows: Dim) -> Slice | None:
    """The step over a block of rows, None if it cannot be done so."""
    if isinstance(step, Kernel) and step.dims and step.dims[0] is rows:
        return _kernel(step, rows)
    if isinstance(step, Call) and step.name == "gemv" and not step.batch:
        return _product(step, rows)
    return None


def merged(uses: Iterable[tuple[Memory, Use]]) -> Uses | None:
    """All uses together; None if memory is written that is used otherwise than row by row."""
    result: Uses = {}
    for memory, use in uses:
        known = result.get(memory)
        if known is not None:
            use = Use(use.row if use.row is known.row else None, use.written or known.written)
            if use.written and use.row is None:
                return None
        result[memory] = use
    return result


def memory_of(slot: Slot) -> Memory:
    """What tells whether two slots can share memory."""
    return slot if slot.storage is None else slot.storage


def _use(operand: Operand, axis: int, rows: Dim, written: bool) -> tuple[Memory, Use]:
    """How an operand whose ``axis`` goes through the rows uses the memory of its slot."""
    slot, width = operand.slot, None
    if slot.shape and slot.shape[0] is rows and operand.offset is ZERO and not operand.extra:
        row = product(slot.shape[1:])
        if operand.strides[axis] is row:
            width = row * np.dtype(slot.dtype).itemsize
    return memory_of(slot), Use(width, written)


def _new_slot(step: Step, number: int, dtype: str) -> Slot:
    return Slot(-1 - 1000 * step.step - number, "temp", dtype, ())


# --------------------------------------------------------------------------------- products


def _product(step: Call, rows: Dim) -> Slice | None:
    """A matrix-vector product: a block gives its rows of the result, or is added to it."""
    m, k = step.sizes
    if m is rows:
        return _rows_of_product(step, rows)
    return _terms_of_product(step, rows) if k is rows else None


def _rows_of_product(step: Call, rows: Dim) -> Slice | None:
    y, matrix, x = step.operands
    result = _use(y, 0, rows, True)
    uses = [result, _use(matrix, 0, rows, False), _whole(x), *_factors(step.alpha, step.beta)]
    found = merged(uses)
    if found is None or result[1].row is None:
        return None
    operands = (_moved(y, 0), _moved(matrix, 0), x)
    sizes = (LENGTH, step.sizes[1])
    part = Call(step.name, step.dtype, sizes, operands, step.alpha, step.beta)
    return Slice(part, found, (), matrix.slot, _size(step))


def _terms_of_product(step: Call, rows: Dim) -> Slice | None:
    y, matrix, x = step.operands
    total = (memory_of(y.slot), Use(None, True))
    uses = [total, _use(matrix, 1, rows, False), _use(x, 0, rows, False)]
    found = merged([*uses, *_factors(step.alpha, step.beta)])
    if found is None:
        return None
    beta = _new_slot(step, 0, step.dtype)
    operands = (y, _moved(matrix, 1), _moved(x, 0))
    sizes = (step.sizes[0], LENGTH)
    factor = Operand(beta, (), ZERO)
    part = Call(step.name, step.dtype, sizes, operands, step.alpha, factor)
    return Slice(part, found, (Cell(beta, step.beta, 1.0),), matrix.slot, _size(step))


def _size(step: Call) -> Dim:
    return product(step.sizes) * np.dtype(step.dtype).itemsize


def _moved(operand: Operand, axis: int) -> Operand:
    """The operand from the first row of a block on."""
    return operand._replace(offset=operand.offset + START * operand.strides[axis])


def _whole(operand: Operand) -> tuple[Memory, Use]:
    return memory_of(operand.slot), Use(None, False)


def _factors(*factors: Operand | float) -> list[tuple[Memory, Use]]:
    return [_whole(f) for f in factors if isinstance(f, Operand)]


# ---------------------------------------------------------------------------------- kernels


def _kernel(kernel: Kernel, rows: Dim) -> Slice | None:
    """A kernel whose outermost loop is over the rows."""
    uses = []
    for inst in kernel.body:
        if inst.op == "index" and inst.param == 0:
            return None
        if inst.op in ("load", "store", "accumulate"):
            operand = kernel.operands[inst.param[0] if inst.op == "accumulate" else inst.param]
            memory, use = _use(operand, 0, rows, inst.op != "load")
            if use.written and use.row is None and operand.strides[0].value != 0:
                return None
            uses.append((memory, use))
    found = merged(uses)
    if found is None:
        return None
    if kernel.split > 0:
        return Slice(one_part(kernel, kernel.body, 0), found)
    return _reductions(kernel, found)


def _reductions(kernel: Kernel, uses: Uses) -> Slice | None:
    """Reductions over all rows: each block goes on with the results so far.

    What follows from the results is done again for each block; the last time counts.
    """
    depths = instruction_depths(kernel)
    later = [phase for phase in schedule(kernel).phases if phase.has_loop][1:]
    if later or any(i.op == "accumulate" and not d for i, d in zip(kernel.body, depths)):
        return None
    part = one_part(kernel, kernel.body, 0)
    operands, body, cells = list(part.operands), list[Inst](), list[Cell]()
    places: list[int] = []
    for inst in kernel.body:
        body.append(inst._replace(args=tuple(places[a] for a in inst.args)))
        if inst.op == "reduce":
            kind, dtype = inst.param, inst.dtype
            if kind in ("argmax", "argmin"):
                return None
            cell = Cell(_new_slot(kernel, len(cells), dtype), identity(kind, dtype))
            at, new = len(operands), len(body) - 1
            body.append(Inst("load", dtype, (), at))
            body.append(Inst(kind, dtype, (new + 1, new)))
            body.append(Inst("store", dtype, (new + 2,), at))
            operands.append(Operand(cell.slot, (ZERO,) * len(kernel.dims), ZERO))
            cells.append(cell)
            places.append(new + 2)
        else:
            places.append(len(body) - 1)
    part.operands, part.body = tuple(operands), tuple(body)
    return Slice(part, uses, tuple(cells))
