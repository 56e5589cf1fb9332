"""`Loop` steps: an inner Program, inlined into a loop.

What does not change from one iteration to the next is emitted before the loop: constants, lengths,
memory.  Rows of windows are read and written where they are.  Numbers (states and rows of rank 0)
are in cells on the stack, which LLVM keeps in registers, and a row that is read after it has been
read or written at the next offset is not loaded again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from phintys.backends.llvm import costs
from phintys.backends.llvm.routine.blocks import may_be_reordered
from phintys.backends.llvm.routine.body import NATIVE, Body, Place, work_of
from phintys.backends.llvm.routine.control import copy, prepare, run, whole
from phintys.dims import Dim, product
from phintys.lowering.costs import nanoseconds
from phintys.lowering.in_place import runs_in_place
from phintys.lowering.memory import byte_size
from phintys.lowering.program import Branch, Check, Copy, Kernel, Loop, Program, Rows, Slot, Step


def emit_loop(body: Body, step: Loop) -> None:
    """Emit a loop over a Program."""
    body.frame.has_loops = True
    loop, out = _Turns(body, step), body.out
    suspended = _suspend(body, loop.inner, step, loop.length)
    first, turns, end = out.name("first"), out.name("turns"), out.name("end")
    out.store("i64", "0", loop.counter)
    out.branch(out.value(f"icmp sgt i64 {loop.length}, 0"), first, end)
    out.label(first)
    for window in loop.windows:
        window.start()
    out.line(f"br label %{turns}")
    out.label(turns)
    turn = out.load("i64", loop.counter)
    ended = loop.iteration(turn)
    loop.repeat(turn, ended, turns, end)
    out.label(end)
    if suspended:
        body.frame.suspended = False
        body.frame.resume()
    loop.finish()


class _Turns:
    """The iterations of a loop.  To make one emits what is computed once, before the loop."""

    def __init__(self, body: Body, step: Loop) -> None:
        self.body, self.step, self.out = body, step, body.out
        self.length = body.lengths(step.length)
        self.states = [_state(body, step, number) for number in range(len(step.state))]
        self.windows = [_window(body, step, window) for window in step.windows]
        self.constants = [_constant(body, slot) for slot in step.constants]
        reads = [w.lengths for w in self.windows for _ in w.rows.reads]
        states, constants = ([p.lengths for p in parts] for parts in (self.states, self.constants))
        self.inner = prepare(body, step, 0, [*states, *reads, *constants])
        self.inner.reserve()
        self.unused = _unused(self.inner, step)
        self.stop, self.counter = body.out.stack("i8"), body.out.stack("i64")

    def iteration(self, turn: str) -> str:
        """Emit one iteration; an i8, 0 if another one may follow."""
        until, frame = self.step.until, self.body.frame
        for window in self.windows:
            window.begin(turn)
        rows = [w.read(offset) for w in self.windows for offset in w.rows.reads]
        outputs = _Outputs(self.inner, self.states, self.windows, self.unused)
        if until is not None:
            outputs.put(until, Place(self.stop))
        frame.loops += 1
        states = [s.present() for s in self.states]
        run(self.inner, [*states, *rows, *self.constants], outputs.places)
        frame.loops -= 1
        outputs.finish()
        ended = "0" if until is None else self.out.load("i8", self.stop)
        for part in (*self.windows, *self.states):
            part.advance()
        return ended

    def repeat(self, turn: str, ended: str, turns: str, end: str) -> None:
        """Emit the branch to the next iteration at label ``turns``, or to ``end``; at times a poll.

        ``turn`` is the number of this iteration; none follows if ``ended`` is not 0.
        """
        out = self.out
        following = out.value(f"add i64 {turn}, 1")
        out.store("i64", following, self.counter)
        out.require(out.value(f"icmp eq i8 {ended}, 0"), end)
        out.require(out.value(f"icmp slt i64 {following}, {self.length}"), end)
        rest = out.value(f"and i64 {following}, {_turns(self.step.body) - 1}")
        out.require(out.value(f"icmp eq i64 {rest}, 0"), turns)
        self.body.ask()
        out.line(f"br label %{turns}")

    def finish(self) -> None:
        """Emit what follows the loop."""
        for state in self.states:
            state.finish()
        count = self.step.count
        if count is not None:
            turns = self.out.load("i64", self.counter)
            self.out.store("i64", turns, self.body.addresses[count.number])


def _turns(program: Program) -> int:
    """The number of iterations of a loop over a Program between two polls: a power of two."""
    price = sum(map(_nanoseconds, program.steps))
    return 1 << max(0, (costs.POLL_NANOSECONDS // max(1, price)).bit_length() - 1)


def _nanoseconds(step: Step) -> int:
    """The time that a step counts for, for polls.

    A kernel or copy of known lengths counts for an upper estimate, a Loop for all that it may run
    without a poll of its own, any other step for the same share of it.
    """
    if isinstance(step, Loop):
        return costs.POLL_NANOSECONDS
    if isinstance(step, Branch):  # recursion as deep as the nesting of Programs
        return sum(map(_nanoseconds, (*step.then.steps, *step.orelse.steps)))
    if isinstance(step, Kernel) and not step.ragged and step.points.value is not None:
        return step.points.value * max(1, sum(map(nanoseconds, step.body)))
    if isinstance(step, Copy) and (points := product(step.source.shape).value) is not None:
        return points
    return 1 if isinstance(step, Check) else costs.POLL_NANOSECONDS // costs.POLL_STEPS


# ------------------------------------------------------------------------------ the GIL


def _suspend(body: Body, inner: Body, step: Loop, length: str) -> bool:
    """Emit the release of the GIL around a long loop that needs no Python; whether that is done."""
    if body.frame.suspended or not _is_native(step.body):
        return False
    works = [work_of(s) for s in step.body.steps]
    known = [inner.lengths(w) for w in works if all(map(inner.is_known, w.symbols()))]
    total = str(costs.LONG_WORK * (len(works) - len(known)) + 1)
    for work in known:
        total = body.out.value(f"add i64 {total}, {work}")
    body.frame.suspend(body.out.value(f"mul i64 {total}, {length}"))
    body.frame.suspended = True
    return True


def _is_native(program: Program) -> bool:
    """Whether a Program runs without Python, in memory that is allocated before."""
    slots = [*program.slots, *program.inputs]
    if any(slot.kind in ("object", "python") for slot in slots):
        return False
    known = {("len", slot.number) for slot in program.inputs}
    sizes = [*program.storages, *(byte_size(slot) for slot in program.outputs)]
    keys = {symbol.args[0][:2] for size in sizes for symbol in size.symbols()}
    if not keys <= known:
        return False
    for step in program.steps:
        if isinstance(step, Loop):  # recursion as deep as the nesting of Programs
            if not _is_native(step.body):
                return False
        elif not isinstance(step, (*NATIVE, Check)):
            return False
    return True


# ------------------------------------------------------------------------------ outputs


def _unused(inner: Body, step: Loop) -> dict[int, Place]:
    """Memory for the outputs of the body that nothing takes."""
    taken = {number for window in step.windows for _, number in window.writes}
    taken.update(range(len(step.state)))
    rest = [k for k in range(len(step.body.outputs)) if k not in taken and k != step.until]
    places: dict[int, Place] = {}
    for number in rest:
        slot = step.body.outputs[number]
        size = byte_size(slot) if slot.kind == "output" else None
        if size is not None and inner.is_known(size):
            (memory,) = inner.workspace([size])
            places[number] = Place(memory, tuple(inner.lengths(d) for d in slot.shape))
    return places


class _Outputs:
    """The locations of the outputs of an iteration, and copies to further ones."""

    def __init__(
        self,
        inner: Body,
        states: Sequence[_State],
        windows: list[_Numbers | _Arrays],
        unused: dict[int, Place],
    ) -> None:
        self.inner = inner
        self.places: list[Place | None] = [None] * len(inner.program.outputs)
        self.copies: list[tuple[int, Place]] = []
        for number, state in enumerate(states):
            self.put(number, state.next())
        for window in windows:
            for offset, number in window.rows.writes:
                self.put(number, window.write(offset))
        for number, place in unused.items():
            self.put(number, place)

    def put(self, number: int, place: Place) -> None:
        """Set a location of an output, or a further one."""
        if self.places[number] is None:
            self.places[number] = place
        else:
            self.copies.append((number, place))

    def finish(self) -> None:
        """Emit the copies."""
        for number, place in self.copies:
            first, slot = self.places[number], self.inner.program.outputs[number]
            copy(self.inner, slot, (first and first.address) or "", place.address or "")


# ------------------------------------------------------------------------------- states


class _State(Protocol):
    """A state of a loop, in the text that is being emitted."""

    @property
    def lengths(self) -> tuple[str, ...]: ...
    def present(self) -> Place:
        """The location of the current state."""
        ...

    def next(self) -> Place:
        """The location for the next state."""
        ...

    def advance(self) -> None:
        """Emit the replacement of the current state by the next one."""

    def finish(self) -> None:
        """Emit what follows the loop."""


def _state(body: Body, step: Loop, number: int) -> _State:
    initial, final = step.state[number]
    if final.kind == "object":
        return _Object(body, initial, final)
    if not final.ndim:
        return _Number(body, initial, final)
    if _is_updated(step.body, step.body.inputs[number], step.body.outputs[number]):
        return _Updated(body, initial, final)
    return _Array(body, initial, final)


def _is_updated(body: Program, old: Slot, new: Slot) -> bool:
    """Whether a body may write an output into the memory of an input.

    Steps in blocks of rows read the input again after the first block has written the output.
    """
    return not may_be_reordered(body.steps) and runs_in_place(body, old, new, _is_updated)


class _Number:
    """A state of rank 0: two cells on the stack."""

    lengths = ()

    def __init__(self, body: Body, initial: Slot, final: Slot) -> None:
        self.body, self.final = body, final
        self.cell, self.new = _cell(body, final), _cell(body, final)
        copy(body, final, body.addresses[initial.number], self.cell)

    def present(self) -> Place:
        return Place(self.cell)

    def next(self) -> Place:
        return Place(self.new)

    def advance(self) -> None:
        copy(self.body, self.final, self.new, self.cell)

    def finish(self) -> None:
        copy(self.body, self.final, self.cell, self.body.addresses[self.final.number])


class _Updated:
    """A state that is an array, and that the body updates in its memory."""

    def __init__(self, body: Body, initial: Slot, final: Slot) -> None:
        copy(body, final, body.addresses[initial.number], body.addresses[final.number])
        lengths = tuple(body.lengths(d) for d in final.shape)
        self.place = Place(body.addresses[final.number], lengths)

    @property
    def lengths(self) -> tuple[str, ...]:
        return self.place.lengths

    def present(self) -> Place:
        return self.place

    def next(self) -> Place:
        return self.place

    def advance(self) -> None:
        pass

    def finish(self) -> None:
        pass


class _Array:
    """A state that is an array: the new one is written to one of two blocks of memory in turn."""

    def __init__(self, body: Body, initial: Slot, final: Slot) -> None:
        self.body, self.final = body, final
        self.lengths = tuple(body.lengths(d) for d in final.shape)
        (self.scratch,) = body.workspace([byte_size(final)])
        self.result = body.addresses[final.number]
        self.now, self.free = body.out.stack("ptr"), body.out.stack("ptr")
        body.out.store("ptr", body.addresses[initial.number], self.now)
        body.out.store("ptr", self.result, self.free)
        body.lengths(byte_size(final))  # here, for the copy after the loop

    def present(self) -> Place:
        # without the object: Python must not keep a reference to memory that is overwritten
        return Place(self.body.out.load("ptr", self.now), self.lengths)

    def next(self) -> Place:
        return Place(self.body.out.load("ptr", self.free), self.lengths)

    def advance(self) -> None:
        out = self.body.out
        written = out.load("ptr", self.free)
        out.store("ptr", written, self.now)
        swapped = out.value(f"icmp eq ptr {written}, {self.result}")
        free = out.value(f"select i1 {swapped}, ptr {self.scratch}, ptr {self.result}")
        out.store("ptr", free, self.free)

    def finish(self) -> None:
        out, move, done = self.body.out, self.body.out.name("move"), self.body.out.name("done")
        last = out.load("ptr", self.now)
        out.branch(out.value(f"icmp eq ptr {last}, {self.result}"), done, move)
        out.label(move)
        copy(self.body, self.final, last, self.result)
        out.line(f"br label %{done}")
        out.label(done)


class _Object:
    """A state that is a Python object: two references."""

    lengths = ()

    def __init__(self, body: Body, initial: Slot, final: Slot) -> None:
        self.body, self.final = body, final
        self.owned, self.new = body.frame.reserve(), body.frame.reserve()
        body.out.line(f"call void @Py_IncRef(ptr {body.objects[initial.number]})")
        body.out.store("ptr", body.objects[initial.number], "%owned", 8 * self.owned)

    def present(self) -> Place:
        return Place(object=self.body.out.load("ptr", "%owned", 8 * self.owned))

    def next(self) -> Place:
        return Place(owned=self.new)

    def advance(self) -> None:
        self.body.frame.release(self.owned)
        self.body.frame.move(self.new, self.owned)

    def finish(self) -> None:
        self.body.adopt(self.final, self.owned)


def _constant(body: Body, slot: Slot) -> Place:
    """The location of a constant: numbers are copied to the stack."""
    if slot.kind == "object" or slot.ndim or np.dtype(slot.dtype).hasobject:
        return whole(body, slot)
    cell = _cell(body, slot)
    copy(body, slot, body.addresses[slot.number], cell)
    return Place(cell)


def _cell(body: Body, slot: Slot) -> str:
    """Emit memory on the stack for a number of the dtype of a slot."""
    return body.out.stack(f"[{np.dtype(slot.dtype).itemsize} x i8]", 16)


# ------------------------------------------------------------------------------ windows


def _window(body: Body, step: Loop, rows: Rows) -> _Numbers | _Arrays:
    if rows.operand.slot.ndim == 1:
        return _Numbers(body, step, rows)
    return _Arrays(body, step, rows)


class _Positions:
    """The addresses of the rows of a window in the current iteration."""

    def __init__(self, body: Body, step: Loop, rows: Rows) -> None:
        self.body, self.rows = body, rows
        slot, strides, offset, _ = rows.operand
        size = np.dtype(slot.dtype).itemsize
        self.lengths = tuple(body.lengths(d) for d in slot.shape[1:])
        self.base = body.out.at(body.addresses[slot.number], body.lengths(offset * size))
        stride = strides[0] * size
        self.stride = body.lengths(stride)
        self.offsets = sorted({*rows.reads, *(offset for offset, _ in rows.writes)})
        spare = rows.length - step.length - self.offsets[-1]
        self.at: dict[int, str] = {}  # offset -> cell with the distance in bytes
        self.here: dict[int, str] = {}  # offset -> address in this iteration
        if spare.value is None or spare.value < 0:
            self.end = body.lengths(rows.length * stride)
            for number in self.offsets:
                self.at[number] = body.out.stack("i64")
                position = body.lengths(Dim.const(number) % rows.length * stride)
                body.out.store("i64", position, self.at[number])

    def locate(self, turn: str) -> None:
        """Emit the addresses of the rows in an iteration."""
        out = self.body.out
        for offset in self.offsets:
            if self.at:
                distance = out.load("i64", self.at[offset])
            else:
                number = out.value(f"add i64 {turn}, {offset}") if offset else turn
                distance = out.value(f"mul i64 {number}, {self.stride}")
            self.here[offset] = out.value(f"getelementptr i8, ptr {self.base}, i64 {distance}")

    def move(self) -> None:
        """Emit the step to the next rows."""
        out = self.body.out
        for cell in self.at.values():
            new = out.value(f"add i64 {out.load('i64', cell)}, {self.stride}")
            wrapped = out.value(f"icmp eq i64 {new}, {self.end}")
            out.store("i64", out.value(f"select i1 {wrapped}, i64 0, i64 {new}"), cell)


class _Numbers(_Positions):
    """Rows of rank 0: each is in a cell on the stack while an iteration runs."""

    def __init__(self, body: Body, step: Loop, rows: Rows) -> None:
        super().__init__(body, step, rows)
        slot = rows.operand.slot
        self.size = np.dtype(slot.dtype).itemsize
        self.given = {offset: _cell(body, slot) for offset in rows.reads}
        self.made = {offset: _cell(body, slot) for offset, _ in rows.writes}
        #: offset -> cell in which the row is at the end of the iteration before
        self.known = {
            offset: self.made.get(offset + 1, self.given.get(offset + 1, ""))
            for offset in sorted(self.given)
            if offset + 1 in self.offsets
        }

    def start(self) -> None:
        self.locate("0")
        for offset in self.known:
            self.copy(self.here[offset], self.given[offset])

    def begin(self, turn: str) -> None:
        self.locate(turn)
        for offset, cell in self.given.items():
            if offset not in self.known:
                self.copy(self.here[offset], cell)

    def read(self, offset: int) -> Place:
        return Place(self.given[offset])

    def write(self, offset: int) -> Place:
        return Place(self.made[offset])

    def advance(self) -> None:
        for offset, cell in self.made.items():
            self.copy(cell, self.here[offset])
        for offset, cell in self.known.items():
            self.copy(cell, self.given[offset])
        self.move()

    def copy(self, source: str, target: str) -> None:
        self.body.out.line(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {self.size}, i1 0)"
        )


class _Arrays(_Positions):
    """Rows that are arrays: the body reads and writes them in their memory.

    A row that is also read is written to scratch memory, and copied when the iteration ends, unless
    the body writes each element after it has read it.
    """

    def __init__(self, body: Body, step: Loop, rows: Rows) -> None:
        super().__init__(body, step, rows)
        self.size = body.lengths(self._bytes())
        self.scratch: dict[int, str] = {}  # offset -> memory
        self.shared: dict[int, str] = {}  # offset -> whether the row is also read, an i1
        first = len(step.state)
        for window in step.windows:
            if window is rows:
                break
            first += len(window.reads)
        for offset, number in rows.writes:
            output = step.body.outputs[number]
            given = zip(rows.reads, step.body.inputs[first:])
            apart = [o - offset for o, slot in given if not _is_updated(step.body, slot, output)]
            self._separate(offset, apart)

    def _bytes(self) -> Dim:
        slot = self.rows.operand.slot
        return product(slot.shape[1:]) * np.dtype(slot.dtype).itemsize

    def _separate(self, offset: int, apart: list[int]) -> None:
        """Emit scratch memory if rows at some distances from the one that is written may be it."""
        out, length = self.body.out, self.rows.length
        tests: list[str] = []
        for distance in apart:
            left = Dim.const(abs(distance)) % length
            if left.value is None or left.value == 0:
                tests.append(out.value(f"icmp eq i64 {self.body.lengths(left)}, 0"))
        if not tests:
            return
        shared = tests[0]
        for test in tests[1:]:
            shared = out.value(f"or i1 {shared}, {test}")
        self.shared[offset] = shared
        (self.scratch[offset],) = self.body.workspace([self._bytes()])

    def start(self) -> None:
        pass

    def begin(self, turn: str) -> None:
        self.locate(turn)

    def read(self, offset: int) -> Place:
        return Place(self.here[offset], self.lengths)

    def write(self, offset: int) -> Place:
        address = self.here[offset]
        if offset in self.shared:
            pair = f"ptr {self.scratch[offset]}, ptr {address}"
            address = self.body.out.value(f"select i1 {self.shared[offset]}, {pair}")
        return Place(address, self.lengths)

    def advance(self) -> None:
        out = self.body.out
        for offset, shared in self.shared.items():
            size = out.value(f"select i1 {shared}, i64 {self.size}, i64 0")
            pair = f"ptr {self.here[offset]}, ptr {self.scratch[offset]}"
            out.line(f"call void @llvm.memcpy.p0.p0.i64({pair}, i64 {size}, i1 0)")
        self.move()
