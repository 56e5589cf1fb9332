"""`Branch` and `Loop` steps: the steps of inner Programs, inlined.

An inner Program has its own slots.  Its inputs are bound to values of the outer one, its outputs of
kind ``output`` to memory of the outer one, so results need no copy.  Memory and references that an
inner Program allocates are released at the end of each run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.backends.llvm import costs
from phintys.backends.llvm.routine.body import Body, Place
from phintys.dims import Dim, product
from phintys.lowering.program import Branch, Loop, Operand, Program, Slot, Step

# ---------------------------------------------------------------------------- Branch


def emit_branch(body: Body, step: Branch) -> None:
    """Emit the run of one of two Programs."""
    out = body.out
    value = out.load("i8", body.addresses[step.condition.number])
    condition = out.value(f"icmp ne i8 {value}, 0")
    inputs = [_whole(body, slot) for slot in step.inputs]
    outputs = [_result(body, slot) for slot in step.outputs]
    yes, no, end = out.name("then"), out.name("else"), out.name("end")
    out.branch(condition, yes, no)
    for label, program in ((yes, step.then), (no, step.orelse)):
        out.label(label)
        _run(body, program, inputs, outputs, step.step)
        out.line(f"br label %{end}")
    out.label(end)
    for slot, place in zip(step.outputs, outputs):
        if place.owned is not None:
            body.adopt(slot, place.owned)


def _whole(body: Body, slot: Slot) -> Place:
    """The location of a whole slot of the outer Program."""
    lengths = tuple(body.lengths(d) for d in slot.shape)
    number = slot.number
    return Place(body.addresses.get(number), lengths, body.objects.get(number))


def _result(body: Body, slot: Slot) -> Place:
    """The location for an output: memory, or an index in ``%owned`` for an object from Python."""
    if slot.kind in ("python", "object"):
        return Place(owned=body.frame.reserve())
    return _whole(body, slot)


def _run(
    body: Body,
    program: Program,
    inputs: Sequence[Place],
    outputs: Sequence[Place | None],
    step: int,
) -> Body:
    """Emit the steps of an inner Program, and the release of all that it allocates."""
    frame = body.frame
    owned, works = frame.owned, frame.works
    inner = body.inner(program, step)
    for slot, place in zip(program.inputs, inputs, strict=True):
        inner.bind(slot, place)
    targets = [(s, p) for s, p in zip(program.outputs, outputs, strict=True) if p is not None]
    inner.targets = {s.number: p for s, p in targets if s.kind == "output" and p.address}
    inner.constants()
    inner.run()
    for slot, place in targets:
        if place.owned is not None:
            inner.pass_on(slot, place.owned)
        elif slot.number not in inner.targets:
            inner.match(slot, place.lengths)
            _copy(inner, slot, inner.addresses[slot.number], place.address or "")
    frame.clean(owned, works)
    return inner


def _copy(body: Body, slot: Slot, source: str, target: str) -> None:
    """Emit a copy of the memory of a slot."""
    if source != target:
        size = body.lengths(product(slot.shape) * np.dtype(slot.dtype).itemsize)
        body.out.line(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 0)"
        )


# ------------------------------------------------------------------------------ Loop


def emit_loop(body: Body, step: Loop) -> None:
    """Emit a loop over a Program; its state is in the memory of the final slots."""
    out = body.out
    length = body.lengths(step.length)
    states = [_State(body, initial, final) for initial, final in step.state]
    constants = [_whole(body, slot) for slot in step.constants]
    slices = [_Moving(body, operand) for operand in step.slices]
    stacked = {number: _Moving(body, operand) for number, operand in step.stacked}
    stop = out.stack("i8")
    counter, test, end = out.stack("i64"), out.name("test"), out.name("end")
    out.store("i64", "0", counter)
    out.line(f"br label %{test}")
    out.label(test)
    turn = out.load("i64", counter)
    out.require(out.value(f"icmp slt i64 {turn}, {length}"), end)
    inputs = [s.present() for s in states] + [s.at(turn) for s in slices] + constants
    outputs: list[Place | None] = [s.next for s in states]
    outputs += [None] * (len(step.body.outputs) - len(states))
    rows = {number: moving.at(turn) for number, moving in stacked.items()}
    for number, place in rows.items():
        outputs[number] = outputs[number] or place
    if step.until is not None:
        outputs[step.until] = outputs[step.until] or Place(stop)
    _run(body, step.body, inputs, outputs, step.step)
    for number, place in rows.items():
        if number < len(states):
            states[number].copy_to(place)
    flag = _address(outputs, step.until)
    ended = out.load("i8", flag) if flag else "0"
    for state in states:
        state.advance()
    following = out.value(f"add i64 {turn}, 1")
    out.store("i64", following, counter)
    out.require(out.value(f"icmp eq i8 {ended}, 0"), end)
    rest = out.value(f"and i64 {following}, {_turns(step.body) - 1}")
    out.require(out.value(f"icmp eq i64 {rest}, 0"), test)
    body.ask()
    out.line(f"br label %{test}")
    out.label(end)
    for state in states:
        state.finish()


def _turns(program: Program) -> int:
    """The number of iterations of a loop over a Program between two polls: a power of two."""
    steps = sum(map(_steps, program.steps))
    return 1 << max(0, (costs.POLL_STEPS // max(1, steps)).bit_length() - 1)


def _steps(step: Step) -> int:
    """The number of steps that a step counts as, for polls.

    A Loop counts as many as it may run without a poll of its own.
    """
    if isinstance(step, Loop):
        return costs.POLL_STEPS
    if isinstance(step, Branch):  # recursion as deep as the nesting of Programs
        return sum(map(_steps, (*step.then.steps, *step.orelse.steps)))
    return 1


def _address(outputs: list[Place | None], number: int | None) -> str | None:
    place = None if number is None else outputs[number]
    return place.address if place else None


class _State:
    """One state of a loop: its location, and that of the next state.

    An array is in the memory of the final slot; the next one is written to scratch memory and
    copied at the end of the iteration, because the old one may be read until then.
    """

    def __init__(self, body: Body, initial: Slot, final: Slot) -> None:
        self.body, self.final = body, final
        if final.kind == "object":
            self.owned = body.frame.reserve()
            body.out.line(f"call void @Py_IncRef(ptr {body.objects[initial.number]})")
            body.out.store("ptr", body.objects[initial.number], "%owned", 8 * self.owned)
            self.next = Place(owned=body.frame.reserve())
            return
        self.memory = _whole(body, final)
        self.size: Dim = product(final.shape) * np.dtype(final.dtype).itemsize
        body.lengths(self.size)
        _copy(body, final, body.addresses[initial.number], body.addresses[final.number])
        (scratch,) = body.workspace([self.size])
        self.next = Place(scratch, self.memory.lengths)

    def present(self) -> Place:
        if self.final.kind != "object":
            # without the object: Python must not keep a reference to memory that is overwritten
            return Place(self.memory.address, self.memory.lengths)
        return Place(object=self.body.out.load("ptr", "%owned", 8 * self.owned))

    def copy_to(self, place: Place) -> None:
        """Emit the copy of the new state to a row of an output."""
        _copy(self.body, self.final, self.next.address or "", place.address or "")

    def advance(self) -> None:
        """Emit the replacement of the current state by the new one."""
        if self.final.kind != "object":
            _copy(self.body, self.final, self.next.address or "", self.memory.address or "")
            return
        self.body.frame.release(self.owned)
        self.body.frame.move(self.next.owned or 0, self.owned)

    def finish(self) -> None:
        if self.final.kind == "object":
            self.body.adopt(self.final, self.owned)


class _Moving:
    """An operand whose first stride is that from one iteration of a loop to the next."""

    def __init__(self, body: Body, operand: Operand) -> None:
        self.body = body
        slot = operand.slot
        rest = slot.shape[1:]
        if operand.strides[1:] != tuple(product(rest[axis + 1 :]) for axis in range(len(rest))):
            raise ValueError(f"a Loop takes contiguous parts of slot {slot.number} ({slot.name})")
        size = np.dtype(slot.dtype).itemsize
        self.lengths = tuple(body.lengths(d) for d in rest)
        self.start = body.out.at(body.addresses[slot.number], body.lengths(operand.offset * size))
        self.stride = body.lengths(operand.strides[0] * size)

    def at(self, turn: str) -> Place:
        out = self.body.out
        return Place(out.at(self.start, out.value(f"mul i64 {turn}, {self.stride}")), self.lengths)
