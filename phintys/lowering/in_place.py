"""Whether steps may write into the memory of an array that they read."""

from __future__ import annotations

from collections.abc import Callable

from phintys.lowering.program import Branch, Copy, Kernel, Loop, Program, Slot, Step
from phintys.lowering.schedule import schedule
from phintys.lowering.spec import step_reads, step_writes


def can_overwrite(kernel: Kernel, old: Slot, new: Slot) -> bool:
    """Whether every load from ``old`` precedes the store to the same element of ``new``.

    The sufficient condition: one operand reads ``old``, one operand writes ``new``, and both have
    the same offset and strides, none of them 0.
    """
    reading = [n for n, o in enumerate(kernel.operands) if o.slot is old]
    writing = [n for n, o in enumerate(kernel.operands) if o.slot is new]
    if len(reading) != 1 or len(writing) != 1:
        return False
    a, b = kernel.operands[reading[0]], kernel.operands[writing[0]]
    if a.extra or b.extra or a.strides != b.strides or a.offset is not b.offset:
        return False
    if any(s.value == 0 for s in a.strides):
        return False
    effects = [i for i in kernel.body if i.op == "accumulate" and i.param[0] in reading + writing]
    loads = [p for p, i in enumerate(kernel.body) if i.op == "load" and i.param == reading[0]]
    reloads = [i for i in kernel.body if i.op == "load" and i.param == writing[0]]
    stores = [p for p, i in enumerate(kernel.body) if i.op == "store" and i.param == writing[0]]
    if effects or reloads or len(stores) != 1 or stores[0] < max(loads, default=0):
        return False
    return _in_last_pass(kernel, loads, stores[0])


def runs_in_place(
    program: Program, old: Slot, new: Slot, body: Callable[[Program, Slot, Slot], bool]
) -> bool:
    """Whether a Program may write an output into the memory of an input, which has its size.

    That is so if it reads the input for the last time in the step that first writes the output, and
    there each element before it is written.  Kernels in strips may do so in another order.
    ``body`` answers the question for the bodies of loops.
    """
    for first, stop in program.strips:
        group = program.steps[first:stop]
        if any(old in step_reads(s) for s in group) and any(new in step_writes(s) for s in group):
            return False
    written = False
    for step in program.steps:
        reads, writes = old in step_reads(step), new in step_writes(step)
        if reads and written:
            return False
        if reads and writes and not _overwrites_as_it_reads(step, old, new, body):
            return False
        written = written or writes
    return True


def _overwrites_as_it_reads(
    step: Step, old: Slot, new: Slot, body: Callable[[Program, Slot, Slot], bool]
) -> bool:
    """Whether a step reads each element of a slot before it writes that of another one."""
    if isinstance(step, Loop | Branch):
        inner = passed_on(step, old, new)
        return bool(inner) and all(body(*slots) for slots in inner)
    return isinstance(step, Copy) or (isinstance(step, Kernel) and can_overwrite(step, old, new))


def passed_on(step: Step, old: Slot, new: Slot) -> list[tuple[Program, Slot, Slot]]:
    """Inner Programs that take a slot and give another one, each with its slots for these.

    There are none if the step is no loop with them as a state, and no branch, or uses one again.
    """
    reads = [s for s in step_reads(step) if s is old]
    writes = [s for s in step_writes(step) if s is new]
    if len(reads) != 1 or len(writes) != 1:
        return []
    if isinstance(step, Loop) and (old, new) in step.state:
        number = step.state.index((old, new))
        return [(step.body, step.body.inputs[number], step.body.outputs[number])]
    if isinstance(step, Branch) and old in step.inputs:
        k, number = step.inputs.index(old), step.outputs.index(new)
        found = [(p, p.inputs[k], p.outputs[number]) for p in (step.then, step.orelse)]
        return found if all(slot.kind == "output" for _, _, slot in found) else []
    return []


def _in_last_pass(kernel: Kernel, loads: list[int], store: int) -> bool:
    """Whether no phase after the one with the store loads again."""
    if not kernel.is_reducing:
        return True
    stored = False
    for phase in schedule(kernel).phases:
        inside = {p for level in phase.levels for p in level}
        if stored and inside.intersection(loads):
            return False
        stored = stored or store in inside
    return True
