"""Steps over the rows of a matrix, block after block of rows.

A product with a matrix that no cache holds takes as long as reading the matrix from memory.
Where several products read the same one, they and the steps between them are done for a block
of rows that the cache keeps, then for the next::

    eta = X @ b                          for each block of rows:
    r = f(eta), s = sum(h(eta))             eta[rows] = X[rows] @ b
    g = X.T @ r                             r[rows] = f(eta[rows]), s += sum(h(eta[rows]))
                                            g += X[rows].T @ r[rows]

So X is read from memory once.  The order of a Program's steps is right as it is; this is another
one, for steps that share memory only if none of them writes it, or if each touches it row by row.
A small matrix is a single block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from phintys.backends.llvm.instructions import Type, scalar_literal
from phintys.backends.llvm.parts import LENGTH
from phintys.backends.llvm.slices import Cell, Slice, Uses, memory_of, merged, slice_of
from phintys.dims import ONE, ZERO, Dim, dim_max
from phintys.lowering.program import Call, Check, Operand, Slot, Step
from phintys.lowering.spec import step_dims, step_reads, step_writes

if TYPE_CHECKING:
    from phintys.backends.llvm.body import Body

#: The rows of a block, those of all matrices together, have about so many bytes: the second-level
#: cache holds them.
BLOCK_BYTES = 192 << 10

#: Matrices up to this size are a single block: the nearer caches hold most of them.
SMALL_BYTES = 1 << 20

#: Blocks have a multiple of so many rows, which suits BLAS; where they would be larger then, there
#: is only one.
WHOLE = 8

#: The results of products may have so many columns.  For each block BLAS copies the second factor
#: anew, and the more columns, the less a product waits for its matrix.
COLUMNS = 64

#: So many steps are looked at together, which bounds the time it takes.
_WINDOW = 32

#: A block is too little for BLAS to share out.  So many cores read memory about as fast together
#: as one does; if BLAS has more, it takes the whole matrix.
THREADS = 4


class Blocks(NamedTuple):
    """Steps that are done for blocks of ``rows``.

    Their matrices have ``size`` bytes in all rows, the results of products so many ``columns``.
    """

    rows: Dim
    slices: list[Slice]
    size: Dim
    columns: Dim


# --------------------------------------------------------------------------- which steps


def in_blocks(steps: Sequence[Step]) -> Iterator[Step | Blocks]:
    """The steps in an order that does the same, some of them in blocks."""
    for start in range(0, len(steps), _WINDOW):
        yield from _arranged(list(steps[start : start + _WINDOW]))


def _arranged(steps: list[Step]) -> list[Step | Blocks]:
    for matrix, rows in _candidates(steps):
        choice = _Choice(steps, rows)
        if len(choice.products.get(matrix, ())) > 1:
            return [*choice.before, choice.blocks(rows), *_arranged(choice.after)]
    return list(steps)


def _candidates(steps: list[Step]) -> list[tuple[Slot, Dim]]:
    """Matrices that several products read, with the number of their rows, apart in memory.

    Blocks of columns gain little: the pieces of their rows are too short to be read fast.
    """
    uses: Counter[tuple[Slot, Dim]] = Counter()
    for step in steps:
        if isinstance(step, Call) and step.name in ("gemv", "gemm") and not step.batch:
            matrix = step.operands[1]
            axes = zip((step.sizes[0], step.sizes[-1]), matrix.strides)
            uses.update([(matrix.slot, length) for length, stride in axes if stride is not ONE])
    return [use for use, count in uses.items() if count > 1]


class _Choice:
    """Which steps are done in blocks of rows, and which of the others before and after them."""

    def __init__(self, steps: list[Step], rows: Dim) -> None:
        self.slices: list[Slice] = []
        self.before: list[Step] = []
        self.after: list[Step] = []
        self.uses: Uses = {}
        self.products: dict[Slot, list[Call]] = {}  # by matrix
        chosen, later = _Touched(), _Touched()
        for number, step in enumerate(steps):
            touched = _Touched([step])
            free = later.is_apart(touched)
            if free and self.join(slice_of(step, rows)):
                chosen.add(touched)
            elif free and chosen.is_apart(touched):
                self.before.append(step)
            elif isinstance(step, Check):  # what follows may rely on it
                self.after += steps[number:]
                break
            else:
                later.add(touched)
                self.after.append(step)

    def join(self, slice_: Slice | None) -> bool:
        """Add a step if it shares memory with the others only as blocks allow."""
        uses = merged([*self.uses.items(), *slice_.uses.items()]) if slice_ else None
        if slice_ is None or uses is None:
            return False
        self.uses = uses
        self.slices.append(slice_)
        if slice_.product is not None:
            matrix = slice_.product.operands[1].slot
            self.products.setdefault(matrix, []).append(slice_.product)
        return True

    def blocks(self, rows: Dim) -> Blocks:
        """The steps that are done in blocks."""
        size, columns = ZERO, ONE
        for call, *others in self.products.values():
            size += call.sizes[0] * call.sizes[-1] * np.dtype(call.dtype).itemsize
            for gemm in (c for c in (call, *others) if c.name == "gemm"):
                columns = dim_max(columns, gemm.sizes[1])
        return Blocks(rows, self.slices, size, columns)


class _Touched:
    """The memory that steps read and write, with the symbols that they need and define."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self.read: set[Any] = set()
        self.written: set[Any] = set()
        for step in steps:
            self.read.update(map(memory_of, step_reads(step)))
            dims = set(step_dims(step))
            self.read.update(symbol.args[0] for d in dims for symbol in d.symbols())
            for slot in step_writes(step):
                self.written |= {memory_of(slot), ("item", slot.number)}

    def add(self, other: _Touched) -> None:
        self.read |= other.read
        self.written |= other.written

    def is_apart(self, other: _Touched) -> bool:
        """Whether it makes no difference which of the two come first."""
        mixed = self.read & other.written or self.written & other.read
        return not mixed and not self.written & other.written


# ---------------------------------------------------------------------------- the code


def emit(body: Body, step: Blocks) -> None:
    """Write the loop over blocks; there is at least one, if only an empty one."""
    out = body.out
    cells = [cell for slice_ in step.slices for cell in slice_.cells]
    for cell in cells:
        kind = Type(cell.slot.dtype or "").cell
        body.addresses[cell.slot.number] = out.stack(kind)
        _set(body, cell, cell.first)
    rows = body.lengths(step.rows)
    size = _block_rows(body, rows, body.lengths(step.size), body.lengths(step.columns))
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
    """Say where the rows of a block begin."""
    out, known = body.out, dict[tuple[Slot, Dim], str]()
    for view in (view for slice_ in step.slices for view in slice_.views):
        if view[1:] not in known:
            row = body.lengths(view.step * np.dtype(view.base.dtype).itemsize)
            offset = out.value(f"mul i64 {start}, {row}")
            known[view[1:]] = out.at(body.addresses[view.base.number], offset)
        body.addresses[view.slot.number] = known[view[1:]]


def _set(body: Body, cell: Cell, value: Any) -> None:
    """Store a number, or the content of a 0-d slot, in a cell."""
    kind, dtype = Type(cell.slot.dtype or "").cell, cell.slot.dtype or ""
    if isinstance(value, Operand):
        offset = body.lengths(value.offset * np.dtype(dtype).itemsize)
        text = body.out.load(kind, body.out.at(body.addresses[value.slot.number], offset))
    else:
        text = str(int(value)) if dtype == "bool" else scalar_literal(dtype, value)
    body.out.store(kind, text, body.addresses[cell.slot.number])


def _block_rows(body: Body, rows: str, size: str, columns: str) -> str:
    """The number of rows in a block, from the bytes of all rows."""
    out = body.out
    before, blocks, go = out.block, out.name("large"), out.name("go")
    out.branch(out.value(f"icmp sgt i64 {size}, {SMALL_BYTES}"), blocks, go)
    out.label(blocks)
    width = out.value(f"udiv i64 {size}, {rows}")
    fitting = out.value(f"udiv i64 {BLOCK_BYTES}, {width}")
    whole = out.value(f"and i64 {fitting}, {-WHOLE}")
    several = out.value(f"icmp ne i64 {whole}, 0")
    threads = out.value("call i64 @phintys_blas_threads()")
    alone = out.value(f"icmp sle i64 {threads}, {THREADS}")
    several = out.value(f"and i1 {several}, {alone}")
    if columns != "1":
        few = out.value(f"icmp sle i64 {columns}, {COLUMNS}")
        several = out.value(f"and i1 {several}, {few}")
    some = out.value(f"select i1 {several}, i64 {whole}, i64 {rows}")
    out.line(f"br label %{go}")
    out.label(go)
    found = out.value(f"phi i64 [{rows}, %{before}], [{some}, %{blocks}]")
    return out.value(f"call i64 @llvm.smax.i64(i64 {found}, i64 1)")
