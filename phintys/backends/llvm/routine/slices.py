"""Steps restricted to a block of rows.

Such a step accesses memory row by row, each row independently, or only reads it, or accumulates
totals in it from block to block.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple, Union

import numpy as np

from phintys.backends.llvm.routine.parts import LENGTH
from phintys.dims import ZERO, Dim, product, quotient
from phintys.lowering.program import Call, Draw, Inst, Kernel, Operand, Slot, Step
from phintys.lowering.reductions import identity
from phintys.lowering.schedule import schedule
from phintys.lowering.spec import step_reads, step_writes

#: a storage number, or a slot without storage
Memory = Union[int, Slot]


class Use(NamedTuple):
    """The access pattern of memory: by rows of ``row`` bytes, or any other (None)."""

    row: Dim | None
    written: bool


Uses = dict[Memory, Use]


class Cell(NamedTuple):
    """A 0-d slot, its value before the first block, and the value stored in it after each."""

    slot: Slot
    first: Operand | Any
    then: Any = None


class View(NamedTuple):
    """A slot that addresses the memory of ``base`` from the first row of a block on.

    So the code of a kernel is the same as without blocks.  ``step`` is the stride of rows, in
    elements.
    """

    slot: Slot
    base: Slot
    step: Dim


class Slice(NamedTuple):
    """A step over ``LENGTH`` rows.

    ``product`` is the whole step if it is a product, ``drawn`` the whole target if it draws.
    """

    step: Step
    uses: Uses
    views: list[View]
    cells: tuple[Cell, ...] = ()
    product: Call | None = None
    drawn: Slot | None = None

    def slots(self) -> list[Slot]:
        """The slots that the step uses."""
        values = [value for cell in self.cells for value in (cell.first, cell.then)]
        found = [value.slot for value in values if isinstance(value, Operand)]
        found += [view.base for view in self.views]
        return [*step_reads(self.step), *step_writes(self.step), *found]


def slice_of(step: Step, rows: Dim) -> Slice | None:
    """The step over a block of rows, None if it cannot be restricted."""
    if isinstance(step, Kernel):
        kernel = None if step.ragged else _over_rows(step, rows)
        return _kernel(kernel, rows) if kernel else None
    if isinstance(step, Call) and step.name in ("gemv", "gemm") and not step.batch:
        return _product(step, rows)
    if isinstance(step, Draw) and step.dims and step.dims[0] is rows:
        return _draw(step, rows)
    return None


def merged(uses: Iterable[tuple[Memory, Use]]) -> Uses | None:
    """The union of all uses; None if memory is written that is not accessed by rows only."""
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
    """The key of a slot's memory: slots with equal keys can share memory."""
    return slot if slot.storage is None else slot.storage


def _use(operand: Operand, axis: int, rows: Dim, written: bool) -> tuple[Memory, Use]:
    """The use of a slot's memory by an operand whose ``axis`` is that of the rows."""
    slot, width = operand.slot, None
    if slot.shape and slot.shape[0] is rows and not operand.extra:
        row = product(slot.shape[1:])
        if operand.strides[axis] is row:
            width = row * np.dtype(slot.dtype).itemsize
    return memory_of(slot), Use(width, written)


_numbers = itertools.count(-1, -1)  # of slots that belong to no Program


class _Views:
    """The views of a step, each created once."""

    def __init__(self) -> None:
        self.all: list[View] = []

    def __call__(self, operand: Operand, axis: int) -> Operand:
        """The operand from the first row of a block on; its ``axis`` is that of the rows."""
        base, step = operand.slot, operand.strides[axis]
        if step.value == 0:
            return operand
        for view in self.all:
            if view.base is base and view.step is step:
                return operand._replace(slot=view.slot)
        slot = Slot(next(_numbers), base.kind, base.dtype, base.shape)
        self.all.append(View(slot, base, step))
        return operand._replace(slot=slot)


# --------------------------------------------------------------------------------- products


def _product(step: Call, rows: Dim) -> Slice | None:
    """A product with a block of a matrix: it yields rows of the result, or is added to it."""
    if step.sizes[0] is rows:
        return _rows_of_product(step, rows)
    return _terms_of_product(step, rows) if step.sizes[-1] is rows else None


def _rows_of_product(step: Call, rows: Dim) -> Slice | None:
    result, matrix, factor = step.operands
    target = _use(result, 0, rows, True)
    uses = [target, _use(matrix, 0, rows, False), _whole(factor), *_factors(step.alpha, step.beta)]
    found = merged(uses)
    if found is None or target[1].row is None:
        return None
    views = _Views()
    operands = (views(result, 0), views(matrix, 0), factor)
    sizes = (LENGTH, *step.sizes[1:])
    part = Call(step.name, step.dtype, sizes, operands, step.alpha, step.beta)
    return Slice(part, found, views.all, (), step)


def _terms_of_product(step: Call, rows: Dim) -> Slice | None:
    total, matrix, factor = step.operands
    target = (memory_of(total.slot), Use(None, True))
    uses = [target, _use(matrix, 1, rows, False), _use(factor, 0, rows, False)]
    found = merged([*uses, *_factors(step.alpha, step.beta)])
    if found is None:
        return None
    views = _Views()
    operands = (total, views(matrix, 1), views(factor, 0))
    beta = Slot(next(_numbers), "temp", step.dtype, ())
    sizes = (*step.sizes[:-1], LENGTH)
    part = Call(step.name, step.dtype, sizes, operands, step.alpha, Operand(beta, (), ZERO))
    return Slice(part, found, views.all, (Cell(beta, step.beta, 1.0),), step)


def _whole(operand: Operand) -> tuple[Memory, Use]:
    return memory_of(operand.slot), Use(None, False)


def _factors(*factors: Operand | float) -> list[tuple[Memory, Use]]:
    return [_whole(f) for f in factors if isinstance(f, Operand)]


# ------------------------------------------------------------------------------------- draws


def _draw(step: Draw, rows: Dim) -> Slice | None:
    """A draw of a block of rows; no other step of the blocks uses its generator."""
    target, *parameters = step.operands
    uses = [_use(target, 0, rows, True), *(_use(o, 0, rows, False) for o in parameters)]
    found = merged([*uses, (memory_of(step.result), Use(None, True))])
    if found is None or uses[0][1].row is None:
        return None
    views = _Views()
    operands = tuple([views(o, 0) for o in step.operands])
    dims = (LENGTH, *step.dims[1:])
    part = Draw(step.name, dims, operands, step.result, step.result, step.step)
    return Slice(part, found, views.all, drawn=target.slot)


# ---------------------------------------------------------------------------------- kernels


def _over_rows(kernel: Kernel, rows: Dim) -> Kernel | None:
    """The kernel with an outermost loop over the rows; a loop over all elements is split."""
    if not kernel.dims or kernel.dims[0] is rows:
        return kernel if kernel.dims else None
    width = quotient(kernel.dims[0], rows)  # no rows: the loop is empty either way
    if width * rows is not kernel.dims[0] or any(i.op == "index" for i in kernel.body):
        return None
    operands = tuple(
        o._replace(strides=(o.strides[0] * width, *o.strides)) for o in kernel.operands
    )
    dims, split = (rows, width, *kernel.dims[1:]), kernel.split + (kernel.split > 0)
    return Kernel(dims, split, operands, kernel.body, kernel.step)


def _kernel(kernel: Kernel, rows: Dim) -> Slice | None:
    """A kernel whose outermost loop is over the rows."""
    uses = []
    scratch: set[int] = set()  # operands that each row overwrites
    for inst in kernel.body:
        if inst.op == "index" and inst.param == 0:
            return None
        number = inst.operand
        if number < 0:
            continue
        operand = kernel.operands[number]
        moves = operand.strides[0].value != 0
        memory, use = _use(operand, 0, rows, inst.op != "load")
        if use.written and use.row is None and moves:
            return None
        if number not in scratch:
            uses.append((memory, use))
        if inst.op == "store" and not moves and kernel.split > 0:
            scratch.add(number)
    found = merged(uses)
    if found is None:
        return None
    views = _Views()
    operands = tuple(views(o, 0) for o in kernel.operands)
    dims = (LENGTH, *kernel.dims[1:])
    part = Kernel(dims, kernel.split, operands, kernel.body, kernel.step)
    if kernel.split > 0:
        return Slice(part, found, views.all)
    cells = _with_totals(part)
    return None if cells is None else Slice(part, found, views.all, cells)


def _with_totals(kernel: Kernel) -> tuple[Cell, ...] | None:
    """Change reductions over the rows of a block to continue from the results so far; the cells.

    Values computed from the results are computed again for each block; those of the last block
    remain.
    """
    plan = schedule(kernel)
    later = [phase for phase in plan.phases if phase.has_loop][1:]
    once = [*plan.outer[0], *(p for phase in plan.phases for p in phase.levels[0])]
    if later or any(kernel.body[p].op == "accumulate" for p in once):
        return None
    operands, body, cells = list(kernel.operands), list[Inst](), list[Cell]()
    places: list[int] = []
    for inst in kernel.body:
        if cells:
            inst = inst._replace(args=tuple([places[a] for a in inst.args]))
        body.append(inst)
        if inst.op == "reduce":
            kind, dtype = inst.param, inst.dtype
            if kind in ("argmax", "argmin"):
                return None
            cell = Cell(Slot(next(_numbers), "temp", dtype, ()), identity(kind, dtype))
            at, new = len(operands), len(body) - 1
            body.append(Inst("load", dtype, (), at))
            body.append(Inst(kind, dtype, (new + 1, new)))
            body.append(Inst("store", dtype, (new + 2,), at))
            operands.append(Operand(cell.slot, (ZERO,) * len(kernel.dims), ZERO))
            cells.append(cell)
            places.append(new + 2)
        else:
            places.append(len(body) - 1)
    kernel.operands, kernel.body = tuple(operands), tuple(body)
    return tuple(cells)
