"""`Branch` and `Loop` steps as C: the steps of inner Programs, in a block.

Slots of an inner Program are set to memory of the outer one.  An iteration writes its outputs to
blocks of their own, and copies them to states and rows when it has ended.  A state that the body
updates has one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from phintys.backends.c.steps import Steps
from phintys.dims import product
from phintys.lowering.in_place import runs_in_place
from phintys.lowering.program import Branch, Loop, Program, Rows, Slot, Step
from phintys.lowering.spec import step_writes


def emit_branch(outer: Steps, step: Branch, programs: Sequence[Steps]) -> None:
    """Emit the run of one of two Programs, which write into the outputs."""
    lines = outer.file.lines
    for slot in step.outputs:
        outer.allocate(slot)
    lines.append(f"if (*(uint8_t *){outer.pointer(step.condition)}) {{")
    for inner, end in zip(programs, ("} else {", "}"), strict=True):
        _forget(inner, _blocks_of(inner.program))
        for slot, given in zip(inner.program.inputs, step.inputs, strict=True):
            _bind(inner, slot, outer, given, outer.pointer(given))
        for slot, target in zip(inner.program.outputs, step.outputs, strict=True):
            if slot.kind == "output" and target.kind != "python":
                lines.append(f"{inner.pointer(slot)} = {outer.pointer(target)};")
                inner.bound(slot)
        inner.emit()
        for slot, target in zip(inner.program.outputs, step.outputs, strict=True):
            if target.kind == "python":
                outer.call_python(outer.file.action("adopt", outer, target, inner.number(slot)))
                continue
            _match(outer, inner, slot, target, len(target.shape), step)
            if slot.kind != "output":
                _take(outer, target, inner, slot)
        lines.append(end)
    for slot in step.outputs:
        outer.item(slot)


def emit_loop(outer: Steps, step: Loop, programs: Sequence[Steps]) -> None:
    """Emit a loop over a Program."""
    lines, (inner,) = outer.file.lines, programs
    turn = f"turn{inner.slots}"
    for slot in step_writes(step):
        outer.allocate(slot)
    lines.append("{")
    _forget(inner, _blocks_of(inner.program))
    given = iter(inner.program.inputs)
    states = [next(given) for _ in step.state]
    rows = [(next(given), window, offset) for window in step.windows for offset in window.reads]
    for slot, (initial, final) in zip(states, step.state):
        _bind(inner, slot, outer, initial, outer.pointer(final))
        _take(outer, final, outer, initial)
    updated = [k for k in range(len(states)) if _is_updated(step.body, *_state(step.body, k))]
    for number in updated:
        new = inner.program.outputs[number]
        lines.append(f"{inner.pointer(new)} = {inner.pointer(states[number])};")
        inner.bound(new)
    for slot, window, _ in rows:
        _lengths(inner, slot, outer, window.operand.slot, 1)
    for slot, constant in zip(given, step.constants, strict=True):
        _bind(inner, slot, outer, constant, outer.pointer(constant))
    _blocks(inner)
    length = outer.integer(step.length)
    lines += [f"int64_t {turn} = 0, ended = 0;", f"while ({turn} < {length} && !ended) {{"]
    _forget(inner, _varying(inner.program))
    for slot, window, offset in rows:
        lines.append(f"{inner.pointer(slot)} = {_row(outer, window, turn, offset)};")
    inner.emit()
    _write(outer, step, inner, states, updated, turn)
    cost = 16 * (1 + len(inner.program.steps))
    lines += [f"{turn}++;", f"if (signals(&work, {cost})) {{ failed = RAISED; goto done; }}", "}"]
    for slot, (_, final) in zip(states, step.state):
        if final.kind == "object":
            _take(outer, final, inner, slot)
    if step.count is not None:
        lines.append(f"*(int64_t *){outer.pointer(step.count)} = {turn};")
    lines.append("}")
    for slot in step_writes(step):
        outer.item(slot)


def _state(body: Program, number: int) -> tuple[Slot, Slot]:
    return body.inputs[number], body.outputs[number]


def _is_updated(body: Program, old: Slot, new: Slot) -> bool:
    """Whether a body updates a state in its memory."""
    array = old.dtype is not None and new.kind == "output"
    return array and runs_in_place(body, old, new, _is_updated)


def _write(
    outer: Steps,
    step: Loop,
    inner: Steps,
    states: list[Slot],
    updated: Sequence[int],
    turn: str,
) -> None:
    """Emit the copies of the outputs of an iteration to rows, and to states not updated."""
    outputs = inner.program.outputs
    for window in step.windows:
        for offset, number in window.writes:
            slot = outputs[number]
            _match(outer, inner, slot, window.operand.slot, slot.ndim, step)
            row = _row(outer, window, turn, offset)
            inner.copy(row, inner.pointer(slot), inner.size(slot))
    for number, (new, slot, (_, final)) in enumerate(zip(outputs, states, step.state)):
        _match(outer, inner, new, final, new.ndim, step)
        if number not in updated:
            _take(inner, slot, inner, new)
    if step.until is not None:
        flag = inner.pointer(outputs[step.until])
        inner.file.lines.append(f"ended = *(uint8_t *){flag};")


def _forget(inner: Steps, blocks: Iterable[int]) -> None:
    """Emit the release of blocks of memory of an inner Program, whose sizes may have changed."""
    for number in blocks:
        cell = f"storage[{inner.storages + number}]"
        inner.file.lines.append(f"free({cell}); {cell} = NULL;")


def _blocks_of(program: Program) -> range:
    """The numbers of all blocks: storages, and outputs of an iteration."""
    return range(len(program.storages) + len(program.outputs))


def _varying(program: Program) -> list[int]:
    """The storages, and blocks of outputs, whose sizes may differ between iterations."""
    known = {("len", slot.number) for slot in program.inputs}
    sizes = [*program.storages, *(product(slot.shape) for slot in program.outputs)]
    keys = [{symbol.args[0][:2] for symbol in size.symbols()} for size in sizes]
    return [number for number, found in enumerate(keys) if not found <= known]


def _blocks(inner: Steps) -> None:
    """Emit the allocation of the outputs of an iteration, unless it computes their lengths."""
    varying = _varying(inner.program)
    for number, slot in enumerate(inner.program.outputs, len(inner.program.storages)):
        if slot.kind == "output":
            inner.blocks[slot.number] = number
            if number not in varying:
                inner.allocate(slot)


def _row(outer: Steps, window: Rows, turn: str, offset: int) -> str:
    """The address of the row of a window in an iteration."""
    operand, size = window.operand, np.dtype(str(window.operand.slot.dtype)).itemsize
    number = f"(({turn} + {offset}) % {outer.integer(window.length)})"
    place = f"{outer.integer(operand.offset)} + {number} * {outer.integer(operand.strides[0])}"
    return f"(char *){outer.pointer(operand.slot)} + {size} * ({place})"


def _bind(inner: Steps, slot: Slot, outer: Steps, given: Slot, address: str) -> None:
    """Set an input of an inner Program to an object, or to memory with the lengths of a slot."""
    if slot.dtype is None:
        _take(inner, slot, outer, given)
        return
    inner.file.lines.append(f"{inner.pointer(slot)} = {address};")
    _lengths(inner, slot, outer, given, 0)


def _lengths(inner: Steps, slot: Slot, outer: Steps, given: Slot, first: int) -> None:
    """Set the lengths of an input to those of a slot, from an axis on."""
    for axis, length in enumerate(given.shape[first:]):
        place = inner.file.lengths[inner.number(slot), axis]
        inner.file.lines.append(f"n[{place}] = {outer.integer(length)};")


def _match(outer: Steps, inner: Steps, slot: Slot, target: Slot, rank: int, step: Step) -> None:
    """Emit a check that an output has the last lengths of what it is written to."""
    wanted = target.shape[len(target.shape) - rank :]
    for found, length in zip(slot.shape, wanted, strict=True):
        outer.fail_unless(f"{inner.integer(found)} == {outer.integer(length)}", step)


def _take(steps: Steps, target: Slot, others: Steps, source: Slot) -> None:
    """Emit the copy of a slot of one Program into one of another: memory, or an object."""
    if target.dtype is None:
        number = steps.file.action("take", steps.number(target), others.number(source))
        steps.call_python(number)
    else:
        steps.copy(steps.pointer(target), others.pointer(source), others.size(source))
