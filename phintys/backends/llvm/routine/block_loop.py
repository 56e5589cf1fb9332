"""The loop over blocks of rows, see `blocks`."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.types import Type, scalar_literal
from phintys.backends.llvm.routine.blocks import Blocks
from phintys.backends.llvm.routine.body import Body
from phintys.backends.llvm.routine.parts import LENGTH
from phintys.backends.llvm.routine.slices import Cell
from phintys.dims import ONE, Dim
from phintys.lowering.program import Operand, Slot


def emit(body: Body, step: Blocks) -> None:
    """Emit the loop over blocks; it has at least one iteration, whose block may be empty."""
    out = body.out
    cells = [cell for slice_ in step.slices for cell in slice_.cells]
    for cell in cells:
        kind = Type(cell.slot.dtype or "").cell
        body.addresses[cell.slot.number] = out.stack(kind)
        _set(body, cell, cell.first)
    rows = body.lengths(step.rows)
    size = _block_rows(body, step, rows)
    place, loop, end = out.stack("i64"), out.name("block"), out.name("end")
    out.store("i64", "0", place)
    out.line(f"br label %{loop}")
    out.label(loop)
    start = out.load("i64", place)
    left = out.value(f"sub i64 {rows}, {start}")
    length = out.value(f"call i64 @llvm.smin.i64(i64 {left}, i64 {size})")
    _place_views(body, step, start)
    with body.within({LENGTH: length}):
        for slice_ in step.slices:
            body.step(slice_.step)
    for cell in cells:
        if cell.then is not None:
            _set(body, cell, cell.then)
    next_ = out.value(f"add i64 {start}, {size}")
    out.store("i64", next_, place)
    out.require(out.value(f"icmp slt i64 {next_}, {rows}"), end)
    body.ask()
    out.line(f"br label %{loop}")
    out.label(end)


def _place_views(body: Body, step: Blocks, start: str) -> None:
    """Emit the addresses where the rows of a block begin, and set those of its views."""
    out, known, passing = body.out, dict[tuple[Slot, Dim], str](), step.passing(body.used)
    for view in (view for slice_ in step.slices for view in slice_.views):
        if view.base in passing:
            known[view[1:]] = body.addresses[view.base.number]
        if view[1:] not in known:
            row = body.lengths(view.step * np.dtype(view.base.dtype).itemsize)
            offset = out.value(f"mul i64 {start}, {row}")
            known[view[1:]] = out.at(body.addresses[view.base.number], offset)
        body.addresses[view.slot.number] = known[view[1:]]


def _set(body: Body, cell: Cell, value: Any) -> None:
    """Emit the store of a number, or of the content of a 0-d slot, in a cell."""
    kind, dtype = Type(cell.slot.dtype or "").cell, cell.slot.dtype or ""
    if isinstance(value, Operand):
        offset = body.lengths(value.offset * np.dtype(dtype).itemsize)
        text = body.out.load(kind, body.out.at(body.addresses[value.slot.number], offset))
    else:
        text = str(int(value)) if dtype == "bool" else scalar_literal(dtype, value)
    body.out.store(kind, text, body.addresses[cell.slot.number])


def _block_rows(body: Body, step: Blocks, rows: str) -> str:
    """Emit the number of rows in a block, from the bytes of all rows."""
    out, size, columns = body.out, body.lengths(step.size), body.lengths(step.columns)
    before, blocks, go = out.block, out.name("large"), out.name("go")
    out.branch(out.value(f"icmp sgt i64 {size}, {costs.ROW_BLOCK_SMALL}"), blocks, go)
    out.label(blocks)
    width = out.value(f"udiv i64 {size}, {rows}")
    fitting = out.value(f"udiv i64 {costs.ROW_BLOCK_BYTES}, {width}")
    whole = out.value(f"and i64 {fitting}, {-costs.ROW_BLOCK_MULTIPLE}")
    several = out.value(f"icmp ne i64 {whole}, 0")
    if step.has_products():
        threads = out.value("call i64 @phintys_blas_threads()")
        alone = out.value(f"icmp sle i64 {threads}, {costs.ROW_BLOCK_THREADS}")
        several = out.value(f"and i1 {several}, {alone}")
    if step.columns is not ONE:
        few = out.value(f"icmp sle i64 {columns}, {costs.ROW_BLOCK_COLUMNS}")
        several = out.value(f"and i1 {several}, {few}")
    some = out.value(f"select i1 {several}, i64 {whole}, i64 {rows}")
    out.line(f"br label %{go}")
    out.label(go)
    found = out.value(f"phi i64 [{rows}, %{before}], [{some}, %{blocks}]")
    return out.value(f"call i64 @llvm.smax.i64(i64 {found}, i64 1)")
