"""The memory plan: copy elision, and storage that several slots share.

A `Copy` whose source is a temp that is not used again is elided: source and target become one slot.
So a dead temporary is updated in place, and an output is computed in the memory that the caller
receives.  Other copies stay, but leave out what is overwritten next (`copies`).

Then each temp gets a storage block.  A block is reused when the slot in it is dead: by later steps,
or within a kernel that writes each element of the new slot after its last read of that element of
the old one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter

import numpy as np

from phintys.dims import Dim, product
from phintys.lowering.copies import shrink_copies
from phintys.lowering.in_place import can_overwrite
from phintys.lowering.program import (
    Branch,
    Check,
    Copy,
    Draw,
    Kernel,
    Loop,
    Program,
    Python,
    Slot,
    rename_slots,
)
from phintys.lowering.reversals import access_reversed
from phintys.lowering.spec import item_slots, live_ranges, step_dims, step_reads, step_writes
from phintys.lowering.updated_inputs import update_inputs


def plan_memory(program: Program, inner: bool = False) -> Program:
    """Elide copies and give every temp a storage.  Changes the Program and returns it.

    An ``inner`` Program may get the memory of an input for an output.
    """
    _draw_in_place(program)
    _elide_copies(program)
    updated = update_inputs(program) if inner else set[Slot]()
    access_reversed(program)
    shrink_copies(program, updated)
    _StoragePlan(program).run()
    return program


def byte_size(slot: Slot) -> Dim:
    """The size of a slot in bytes."""
    return product(slot.shape) * np.dtype(slot.dtype).itemsize


# -------------------------------------------------------------------------- copies


def _elide_copies(program: Program) -> None:
    """Merge the source and the target of copies whose source is a temp that is dead afterwards."""
    first, last = live_ranges(program)
    fixed, items = _fixed_slots(program), item_slots(program)
    known = _KnownLengths(program, first)
    merged: dict[Slot, Slot] = {}
    for number in range(len(program.steps) - 1, -1, -1):
        step = program.steps[number]
        if not isinstance(step, Copy) or step.source.kind != "temp":
            continue
        source = step.source
        target = merged.get(step.target, step.target)
        if last[source.number] != number or source.number in items:
            continue
        same = source.shape == target.shape
        if same or (source.number not in fixed and known.before(first[source.number], target)):
            merged[source] = target
    if merged:
        _rename(program, merged)


def _draw_in_place(program: Program) -> None:
    """Let draws change the generators that earlier draws have made, where nothing else uses them.

    A chain of draws then makes one copy of its generator.
    """
    draws = [step for step in program.steps if isinstance(step, Draw)]
    uses = Counter(s.number for step in program.steps for s in step_reads(step))
    uses.update(s.number for s in program.outputs)
    made = {step.result.number for step in draws}
    merged: dict[Slot, Slot] = {}
    for step in reversed(draws):
        step.result = merged.get(step.result, step.result)
        if step.source.number in made and uses[step.source.number] == 1:
            merged[step.source] = step.result
            step.source = step.result
    program.slots = [s for s in program.slots if s not in merged]


class _KnownLengths:
    """Tells whether the lengths of a slot are known, and have been checked, before a step.

    A merged slot is allocated at the first use of the source, with the shape of the target.
    """

    def __init__(self, program: Program, first: dict[int, int]):
        self.defined = {s.number: -1 for s in (*program.inputs, *_constants(program))}
        self.defined = {**first, **self.defined}
        self.checked: dict[Dim, int] = {}  # symbol -> the last check of it
        for number, step in enumerate(program.steps):
            if isinstance(step, Check):
                self.checked.update((s, number) for d in step_dims(step) for s in d.symbols())

    def before(self, number: int, slot: Slot) -> bool:
        """Whether the lengths of a slot are known and checked before step ``number``."""
        symbols = {symbol for d in slot.shape for symbol in d.symbols()}
        return all(
            self.defined[s.args[0][1]] < number and self.checked.get(s, -1) < number
            for s in symbols
        )


def _constants(program: Program) -> list[Slot]:
    return [s for s in program.slots if s.kind == "constant"]


def _fixed_slots(program: Program) -> set[int]:
    """Numbers of slots whose shape Python code or an inner Program sees."""
    fixed: set[int] = set()
    for step in program.steps:
        if isinstance(step, (Python, Loop, Branch)):
            fixed.update(s.number for s in (*step_reads(step), *step_writes(step)))
    return fixed


def _rename(program: Program, merged: dict[Slot, Slot]) -> None:
    """Replace slots by those that they are merged with, and drop copies from a slot to itself."""
    steps, origins = [], []
    for step, origin in zip(program.steps, program.origins, strict=True):
        rename_slots(step, merged)
        if not isinstance(step, Copy) or step.source is not step.target:
            steps.append(step)
            origins.append(origin)
    for number, step in enumerate(steps):
        step.step = number
    program.steps, program.origins = steps, origins
    program.slots = [s for s in program.slots if s not in merged]


# ------------------------------------------------------------------------ storage


class _StoragePlan:
    """Assigns storage blocks to temps in the order of the steps, by live ranges (linear scan)."""

    def __init__(self, program: Program):
        self.program = program
        self.first, self.last = live_ranges(program)
        for number in item_slots(program):
            self.last[number] = len(program.steps)
        self.sizes: list[Dim] = []
        self.free: dict[Dim, list[int]] = {}
        self.free_constant: list[tuple[int, int]] = []  # (bytes, storage), sorted

    def run(self) -> None:
        for number, step in enumerate(self.program.steps):
            touched = {s.number: s for s in (*step_reads(step), *step_writes(step))}
            dying = [s for s in touched.values() if self.ends(s, number)]
            overwritten: set[int] = set()  # slots whose storage a slot of this step takes over
            for slot in touched.values():
                if slot.kind == "temp" and self.first[slot.number] == number:
                    earlier = [s for s in dying if self.first[s.number] < number]
                    self.allocate(slot, step, earlier, overwritten)
            for slot in dying:
                if slot.number not in overwritten and slot.storage is not None:
                    self.release(slot.storage)
        self.program.storages = self.sizes

    def ends(self, slot: Slot, number: int) -> bool:
        return slot.kind == "temp" and self.last[slot.number] == number

    def allocate(self, slot: Slot, step: object, dying: list[Slot], overwritten: set[int]) -> None:
        """Assign the storage of a slot that dies in this step, a free one, or a new one."""
        if isinstance(step, Kernel):
            for old in dying:
                if old.number not in overwritten and self.overwrites(step, old, slot):
                    overwritten.add(old.number)
                    slot.storage = old.storage
                    return
        slot.storage = self.acquire(byte_size(slot))

    def overwrites(self, kernel: Kernel, old: Slot, new: Slot) -> bool:
        """Whether a kernel may write a new slot into the memory of one that dies in it."""
        same = old is not new and old.dtype == new.dtype and byte_size(old) is byte_size(new)
        return same and old.storage is not None and can_overwrite(kernel, old, new)

    def acquire(self, size: Dim) -> int:
        """The number of a free storage of sufficient size, or of a new one."""
        if self.free.get(size):
            return self.free[size].pop()
        if size.value is not None:
            place = bisect_left(self.free_constant, (size.value, -1))
            if place < len(self.free_constant):
                return self.free_constant.pop(place)[1]
        self.sizes.append(size)
        return len(self.sizes) - 1

    def release(self, storage: int) -> None:
        size = self.sizes[storage]
        if size.value is not None:
            insort(self.free_constant, (size.value, storage))
        else:
            self.free.setdefault(size, []).append(storage)
