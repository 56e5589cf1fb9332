"""Lets loops access rows in the reverse order, instead of arrays with reversed rows.

The gradient of a loop is a loop that runs backwards.  Windows that it writes are arrays of their
own, so rows would be copied, in reverse order, into such an array before the loop, and out of it
afterwards::

    A = S[::-1]; loop: A                loop: S[::-1]
    loop: A; B = A[::-1]                loop: B[::-1]
"""

from __future__ import annotations

from phintys.dims import ONE, product
from phintys.lowering.program import Kernel, Loop, Program, Slot
from phintys.lowering.spec import step_reads, step_writes


def access_reversed(program: Program) -> None:
    """Remove kernels that only reverse the rows of an array for a loop.  Changes the Program."""
    steps = program.steps
    if not any(isinstance(step, Loop) for step in steps):
        return
    users: dict[Slot, list[int]] = {}
    for number, step in enumerate(steps):
        for slot in {*step_reads(step), *step_writes(step)}:
            users.setdefault(slot, []).append(number)
    removed: set[int] = set()
    for number, step in enumerate(steps):
        pair = _reversed_rows(step) if isinstance(step, Kernel) else None
        if pair is None:
            continue
        source, target = pair
        if _is_temp_of(target, users, 2) and users[target][0] == number == users[source][-1]:
            dropped, kept, place = target, source, -1
        elif _is_temp_of(source, users, 2) and users[source][1] == number == users[target][0]:
            dropped, kept, place = source, target, 0
        else:
            continue
        loop = next(n for n in users[dropped] if n != number)
        if _is_writable(kept) and _turn(steps[loop], dropped, kept):
            users[kept][place] = loop
            users[dropped] = []
            removed.add(number)
    if removed:
        _drop(program, removed, {slot for slot, found in users.items() if not found})


def _is_temp_of(slot: Slot, users: dict[Slot, list[int]], count: int) -> bool:
    """Whether a slot is a temp that so many steps access."""
    return slot.kind == "temp" and len(users[slot]) == count


def _is_writable(slot: Slot) -> bool:
    return slot.kind in ("temp", "output")


def _reversed_rows(kernel: Kernel) -> tuple[Slot, Slot] | None:
    """The source and the target of a kernel that only copies all rows in reverse order."""
    if [i.op for i in kernel.body] != ["load", "store"] or len(kernel.operands) != 2:
        return None
    source, target = kernel.operands
    same = source.slot.shape == target.slot.shape and source.slot.dtype == target.slot.dtype
    if not same or not target.slot.shape or source.extra or target.extra:
        return None
    strides = [ONE]
    for d in reversed(kernel.dims[1:]):
        strides.append(d * strides[-1])
    first, *rest = reversed(strides)
    count, row = source.slot.shape[0], product(source.slot.shape[1:])
    found = (source.strides, source.offset, target.strides, target.offset.value)
    wanted = ((-first, *rest), (count - 1) * row, (first, *rest), 0)
    whole = kernel.dims[:1] == (count,) and first is row and kernel.split == len(kernel.dims)
    return (source.slot, target.slot) if whole and found == wanted else None


def _turn(loop: object, old: Slot, new: Slot) -> bool:
    """Let the window of a loop in a slot be in another one, with reversed rows; whether it is so.

    It is not if the step is no loop, or accesses the slot otherwise.
    """
    if not isinstance(loop, Loop):
        return False
    others = {slot for pair in loop.state for slot in pair} | {*loop.constants, loop.count}
    numbers = [k for k, w in enumerate(loop.windows) if w.operand.slot is old]
    if len(numbers) != 1 or old in others:
        return False
    window = loop.windows[numbers[0]]
    stride, *rest = window.operand.strides
    last = (old.shape[0] - 1) * product(old.shape[1:])
    offset = last - window.operand.offset
    operand = window.operand._replace(slot=new, strides=(-stride, *rest), offset=offset)
    windows = list(loop.windows)
    windows[numbers[0]] = window._replace(operand=operand)
    loop.windows = tuple(windows)
    return True


def _drop(program: Program, removed: set[int], unused: set[Slot]) -> None:
    """Remove steps and slots of a Program."""
    kept = [n for n in range(len(program.steps)) if n not in removed]
    program.origins = [program.origins[n] for n in kept]
    program.steps = [program.steps[n] for n in kept]
    for number, step in enumerate(program.steps):
        step.step = number
    program.slots = [slot for slot in program.slots if slot not in unused]
