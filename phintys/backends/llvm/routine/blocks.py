"""Cache blocking across steps: several steps over the rows of a matrix, block by block.

A product with a matrix that no cache holds takes as long as reading the matrix from memory.
Where several products read the same matrix, they and the steps between them are executed for a
block of rows that stays in the cache, then for the next::

    eta = X @ b                          for each block of rows:
    r = f(eta), s = sum(h(eta))             eta[rows] = X[rows] @ b
    g = X.T @ r                             r[rows] = f(eta[rows]), s += sum(h(eta[rows]))
                                            g += X[rows].T @ r[rows]

So X is read from memory once.  In the same way, random numbers are drawn for a block of rows, which
kernels read while it is in the cache; if nothing else reads them, the next block is drawn into the
same memory.  The numbers are drawn in the same order.

This changes the order of a Program's steps, so it is applied only to steps that share memory that
none of them writes, or that each accesses row by row.  A small matrix is a single block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from phintys.backends.llvm import costs
from phintys.backends.llvm.routine.slices import Slice, Uses, memory_of, merged, slice_of
from phintys.dims import ONE, ZERO, Dim, dim_max, product
from phintys.lowering.program import Call, Check, Draw, Slot, Step
from phintys.lowering.spec import step_dims, step_reads, step_writes


class Blocks(NamedTuple):
    """Steps that are executed for blocks of ``rows``.

    ``size`` is the number of bytes of their matrices and of what is drawn, ``columns`` that of the
    columns of the results of products.
    """

    rows: Dim
    slices: list[Slice]
    size: Dim
    columns: Dim

    def slots(self) -> list[Slot]:
        """The slots that the steps use."""
        return [slot for slice_ in self.slices for slot in slice_.slots()]

    def has_products(self) -> bool:
        return any(slice_.product is not None for slice_ in self.slices)

    def passing(self, uses: Mapping[Slot, int]) -> set[Slot]:
        """What is drawn for these steps alone, in memory of its own.

        ``uses`` are the numbers of steps of the Program that use each slot.
        """
        own = Counter(slot for slice_ in self.slices for slot in {*slice_.slots()})
        memory = Counter(map(memory_of, own))
        drawn = [s.drawn for s in self.slices if s.drawn is not None and s.drawn.kind == "temp"]
        return {s for s in drawn if own[s] == uses[s] and memory[memory_of(s)] == 1}


def in_blocks(steps: Sequence[Step], draws: bool = True) -> Iterator[Step | Blocks]:
    """The steps in an equivalent order, some of them in blocks; those of draws if ``draws``."""
    for start in range(0, len(steps), costs.ROW_BLOCK_STEPS):
        yield from _arranged(list(steps[start : start + costs.ROW_BLOCK_STEPS]), draws)


def may_be_reordered(steps: Sequence[Step]) -> bool:
    """Whether products among the steps might be executed in blocks, so that the order changes."""
    return bool(_matrices(steps))


def _arranged(steps: list[Step], draws: bool) -> list[Step | Blocks]:
    for matrix, rows in [*_matrices(steps), *(_drawn(steps) if draws else ())]:
        choice = _Choice(steps, rows)
        if choice.reads_again(matrix):
            return [*choice.before, choice.blocks(rows), *_arranged(choice.after, draws)]
    return list(steps)


def _drawn(steps: Sequence[Step]) -> list[tuple[Slot, Dim]]:
    """Slots that are drawn and read by the steps, with the numbers of their rows."""
    targets = {s.operands[0].slot: s.dims[0] for s in steps if isinstance(s, Draw) and s.dims}
    read = {slot for step in steps if not isinstance(step, Draw) for slot in step_reads(step)}
    return [(slot, rows) for slot, rows in targets.items() if slot in read]


def _matrices(steps: Sequence[Step]) -> list[tuple[Slot, Dim]]:
    """Row-major matrices that several products read, with the numbers of their rows.

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
    """The choice of the steps executed in blocks of rows, and of those before and after them."""

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
            elif isinstance(step, Check):  # later steps may rely on it
                self.after += steps[number:]
                break
            else:
                later.add(touched)
                self.after.append(step)

    def join(self, slice_: Slice | None) -> bool:
        """Add a step if its shared memory permits blocks; whether it was added."""
        uses = merged([*self.uses.items(), *slice_.uses.items()]) if slice_ else None
        if slice_ is None or uses is None:
            return False
        self.uses = uses
        self.slices.append(slice_)
        if slice_.product is not None:
            matrix = slice_.product.operands[1].slot
            self.products.setdefault(matrix, []).append(slice_.product)
        return True

    def reads_again(self, matrix: Slot) -> bool:
        """Whether steps in blocks read a matrix after others have read or drawn it."""
        if len(self.products.get(matrix, ())) > 1:
            return True
        users = [slice_ for slice_ in self.slices if matrix in slice_.slots()]
        return len(users) > 1 and any(slice_.drawn is matrix for slice_ in users)

    def blocks(self, rows: Dim) -> Blocks:
        """The steps that are executed in blocks."""
        size, columns = ZERO, ONE
        for call, *others in self.products.values():
            size += call.sizes[0] * call.sizes[-1] * np.dtype(call.dtype).itemsize
            for gemm in (c for c in (call, *others) if c.name == "gemm"):
                columns = dim_max(columns, gemm.sizes[1])
        for slot in (slice_.drawn for slice_ in self.slices if slice_.drawn is not None):
            size += product(slot.shape) * np.dtype(slot.dtype).itemsize
        return Blocks(rows, self.slices, size, columns)


class _Touched:
    """The memory that steps read and write, and the symbols that they use and define."""

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
        """Whether the two sets of steps are independent, so that their order does not matter."""
        mixed = self.read & other.written or self.written & other.read
        return not mixed and not self.written & other.written
