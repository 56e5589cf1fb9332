"""Inputs of inner Programs that are updated in their memory: states of loops.

A Program that writes a part of an input copies it first, into an output.  Here what reads the input
after the copy reads the copy instead, which is equal as long as nothing has been written to it.  A
kernel that reads other elements than it writes becomes two, with the new elements in memory of
their own.  Then nothing reads the input after the copy, so both can be one array
(`in_place.runs_in_place`), and the copy does nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

from phintys.dims import ONE, ZERO, Dim, product
from phintys.lowering.in_place import can_overwrite, passed_on
from phintys.lowering.program import (
    Branch,
    Copy,
    Inst,
    Kernel,
    Loop,
    Operand,
    Program,
    Python,
    Slot,
    Step,
    rename_slots,
)
from phintys.lowering.schedule import schedule
from phintys.lowering.spec import step_dims, step_reads, step_writes


class Placed(NamedTuple):
    """A step, and the node that it was made from."""

    step: Step
    origin: Any


def update_inputs(program: Program) -> set[Slot]:
    """Let a Program update inputs in their memory, where that is possible.  Changes the Program.

    The result holds the outputs that are in the memory of an input.
    """
    found: set[Slot] = set()
    pairs = list(_pairs(program))
    if not pairs:
        return found
    numbers = itertools.count(1 + max(slot.number for slot in program.slots))
    steps = [Placed(*pair) for pair in zip(program.steps, program.origins, strict=True)]
    steps = list(_divided(steps, dict(pairs), numbers))
    for old, new in pairs:
        updating = _updating(steps, old, new)
        if updating is not None:
            steps = updating
            found.add(new)
    if found:
        _arrange(program, steps)
    return found


def _pairs(program: Program) -> Iterator[tuple[Slot, Slot]]:
    """Inputs, and the outputs that are copies of them at first."""
    begun: set[Slot] = set()
    for step in program.steps:
        if isinstance(step, Copy):
            pairs: Iterable[tuple[Slot, Slot]] = [(step.source, step.target)]
        else:
            pairs = _passed(step)
        for old, new in pairs:
            fresh = new not in begun and program.outputs.count(new) == 1
            if fresh and old.kind == "input" and new.kind == "output" and _starts(step, old, new):
                yield old, new
        begun.update(step_writes(step))


def _passed(step: Step) -> Iterable[tuple[Slot, Slot]]:
    """Inputs and outputs of a step that contains Programs."""
    if isinstance(step, Loop):
        return step.state
    return itertools.product(step.inputs, step.outputs) if isinstance(step, Branch) else ()


def _starts(step: Step, old: Slot, new: Slot) -> bool:
    """Whether a step copies an input, or a loop or a branch goes on with it."""
    if isinstance(step, Copy):
        return True
    inner = passed_on(step, old, new)
    return bool(inner) and all(_has_pair(*slots) for slots in inner)


def _has_pair(program: Program, old: Slot, new: Slot) -> bool:
    return (old, new) in _pairs(program)


def _arrange(program: Program, steps: Sequence[Placed]) -> None:
    """Replace the steps of a Program."""
    program.steps, program.origins = [s.step for s in steps], [s.origin for s in steps]
    known = set(program.slots)
    for number, step in enumerate(program.steps):
        step.step = number
        added = [slot for slot in step_writes(step) if slot not in known]
        program.slots += added
        known.update(added)


def _updating(steps: Sequence[Placed], old: Slot, new: Slot) -> list[Placed] | None:
    """The steps, of which none reads an input after it is copied, or updated; None if some must."""
    first = next(s.step for s in steps if new in step_writes(s.step))
    early, late = _apart(steps, first)
    found, written = early, not isinstance(first, Copy)
    for step, origin in late:
        if step is first:
            found.append(Placed(step, origin))
            continue
        if old in step_reads(step):
            if written or new in step_writes(step):
                return None
            step = _read_instead(step, old, new)
        found.append(Placed(step, origin))
        written = written or new in step_writes(step)
    return found


def _apart(steps: Sequence[Placed], first: Step) -> tuple[list[Placed], list[Placed]]:
    """The steps that can run before a step, and the others.  Calls of Python keep their order."""
    early: list[Placed] = []
    late: list[Placed] = []
    read: set[int] = set()  # by late steps
    written: set[int] = set()
    for placed in steps:
        step = placed.step
        reads = {s.number for s in step_reads(step)} | _numbers_in(step_dims(step))
        writes = {s.number for s in step_writes(step)}
        calls = isinstance(step, Python) and any(isinstance(p.step, Python) for p in late)
        waits = not reads.isdisjoint(written) or not writes.isdisjoint(read | written)
        if step is first or calls or waits:
            read |= reads
            written |= writes
            late.append(placed)
        else:
            early.append(placed)
    return early, late


def _numbers_in(dims: Iterable[Dim]) -> set[int]:
    """Numbers of the slots whose lengths or integers are symbols of Dims."""
    return {symbol.args[0][1] for d in dims for symbol in d.symbols()}


def _read_instead(step: Step, old: Slot, new: Slot) -> Step:
    """A step that reads ``new`` in the place of ``old``."""
    other = copy(step)
    rename_slots(other, {old: new})
    return other


# ------------------------------------------------------------------------ two kernels


def _divided(
    steps: Iterable[Placed], pairs: Mapping[Slot, Slot], numbers: Iterator[int]
) -> Iterator[Placed]:
    """The steps; a kernel that reads inputs, and writes outputs of ``pairs``, is two if it must."""
    for step, origin in steps:
        parts: Sequence[Step] = [step]
        if isinstance(step, Kernel):
            parts = _parts(step, pairs, numbers)
        yield from (Placed(part, origin) for part in parts)


def _parts(kernel: Kernel, pairs: Mapping[Slot, Slot], numbers: Iterator[int]) -> Sequence[Kernel]:
    """A kernel that computes what another one then writes, or the kernel."""
    given, targets = set(kernel.reads()), set(kernel.writes())
    written = {new for new in pairs.values() if new in targets}
    read = {old for old in pairs if old in given}
    if not written or not read:
        return [kernel]
    if len(read) == len(written) == 1:
        (old,), (new,) = read, written
        if pairs[old] is new and can_overwrite(kernel, old, new):
            return [_merged(kernel, old, new)]
    if any(_is_most(kernel, new) for new in written):
        return [kernel]
    return _Divided(kernel, read, written, numbers).kernels() or [kernel]


def _is_most(kernel: Kernel, slot: Slot) -> bool:
    """Whether a kernel writes most of a slot, so that a copy of the rest costs less."""
    part, whole = product(kernel.dims[: kernel.split]), product(slot.shape)
    if part.value is not None and whole.value is not None:
        return 2 * part.value >= whole.value
    symbols = part.symbols()
    return symbols <= whole.symbols() and _degree(part) >= _degree(whole)


def _degree(size: Dim) -> int:
    """The number of lengths that are not known, nor bounded by a number, in a product."""
    factors = size.args if size.op == "mul" else (size,)
    return sum(f.value is None and not _is_bounded(f) for f in factors)


def _is_bounded(length: Dim) -> bool:
    return length.op == "min" and any(d.value is not None for d in length.args)


def _merged(kernel: Kernel, old: Slot, new: Slot) -> Kernel:
    """A kernel that reads the elements that it overwrites, which are at one operand then."""
    source = next(n for n, o in enumerate(kernel.operands) if o.slot is old)
    target = next(n for n, o in enumerate(kernel.operands) if o.slot is new)
    body = [
        inst._replace(param=target) if inst.op == "load" and inst.param == source else inst
        for inst in kernel.body
    ]
    return _with_body(kernel, body)


def _with_body(kernel: Kernel, body: Sequence[Inst]) -> Kernel:
    """The kernel with another body, and the operands that it uses."""
    used = sorted({inst.operand for inst in body} - {-1})
    place = {number: k for k, number in enumerate(used)}
    operands = tuple([kernel.operands[number] for number in used])
    moved = tuple([_at_operand(inst, place) for inst in body])
    return Kernel(kernel.dims, kernel.split, operands, moved, ragged=kernel.ragged)


def _at_operand(inst: Inst, place: Mapping[int, int]) -> Inst:
    """An instruction whose operand has another number."""
    if inst.op == "accumulate":
        return inst._replace(param=(place[inst.operand], inst.param[1]))
    return inst._replace(param=place[inst.operand]) if inst.operand >= 0 else inst


class _Divided:
    """A kernel divided in two, of which only the first one reads the inputs.

    The second one does what depends on ``written`` outputs, or writes to them.  The first one
    stores what that needs of the inputs in memory of its own, a number for each point of the outer
    loops, and does the rest.
    """

    def __init__(
        self, kernel: Kernel, read: set[Slot], written: set[Slot], numbers: Iterator[int]
    ) -> None:
        self.kernel, self.numbers, self.written = kernel, numbers, written
        self.depending = self._depending(read)  # on inputs, or on reductions
        self.late = self._depending(written)  # on outputs
        effects = [p for p, i in enumerate(kernel.body) if i.op in ("store", "accumulate")]
        self.effects = [p for p in effects if p in self.late or self._slot(p) in written]
        self.others = [p for p in range(len(kernel.body)) if p not in self.late | {*self.effects}]
        self.dims = kernel.dims[: kernel.split]
        self.operands = list(kernel.operands)
        self.memory: dict[int, int] = {}  # position of a value -> the operand that holds it

    def kernels(self) -> list[Kernel] | None:
        """The two kernels; None if the second one would need an inner loop, or a ragged one."""
        body = self.kernel.body
        again = self._computed_again()
        stores = any(body[p].op in ("store", "accumulate") for p in self.others)
        if not all(map(self._is_outside, [*self.effects, *again])) or not (self.memory or stores):
            return None
        first = replace(self.kernel, operands=tuple(self.operands))
        place = {p: k for k, p in enumerate(self.others)}
        kept = [Inst("store", body[a].dtype, (place[a],), n) for a, n in self.memory.items()]
        first = _with_body(first, [*(_moved(body[p], place) for p in self.others), *kept])
        outer = [o._replace(strides=o.strides[: self.kernel.split]) for o in self.operands]
        second = Kernel(self.dims, len(self.dims), tuple(outer), ())
        return [first, _with_body(second, self._writing(again))]

    def _slot(self, place: int) -> Slot | None:
        number = self.kernel.body[place].operand
        return self.kernel.operands[number].slot if number >= 0 else None

    def _depending(self, slots: set[Slot]) -> set[int]:
        """The instructions that depend on loads of slots."""
        found: set[int] = set()
        for p, inst in enumerate(self.kernel.body):
            loads = inst.op == "load" and self._slot(p) in slots
            if loads or not found.isdisjoint(inst.args):
                found.add(p)
        return found

    def _is_outside(self, place: int) -> bool:
        """Whether an instruction is in outer loops alone, none of them ragged."""
        if self.kernel.body[place].op == "reduce":
            return False
        if not self.kernel.is_reducing:
            return self.kernel.ragged is None
        plan = schedule(self.kernel)
        return not any(place in level for phase in plan.phases for level in phase.levels[1:])

    def _computed_again(self) -> list[int]:
        """What the second kernel computes before its effects; gives memory to what it loads."""
        found: set[int] = set()
        todo = [a for p in self.effects for a in self.kernel.body[p].args]
        while todo:
            p = todo.pop()
            if p in found or p in self.memory:
                continue
            inputs = p in self.depending or self.kernel.body[p].op == "reduce"
            if inputs and p not in self.late:
                self._keep(p)
                continue
            found.add(p)
            todo += self.kernel.body[p].args
        return sorted(found)

    def _keep(self, place: int) -> None:
        """Give a value memory."""
        slot = Slot(next(self.numbers), "temp", self.kernel.body[place].dtype, self.dims)
        inner = [ZERO] * (len(self.kernel.dims) - len(self.dims))
        self.memory[place] = len(self.operands)
        self.operands.append(Operand(slot, (*_contiguous(self.dims), *inner), ZERO))

    def _writing(self, again: Iterable[int]) -> list[Inst]:
        """The body of the second kernel."""
        place: dict[int, int] = {}
        found: list[Inst] = []
        for p, number in self.memory.items():
            place[p] = len(found)
            found.append(Inst("load", self.kernel.body[p].dtype, (), number))
        for p in sorted([*again, *self.effects]):  # loads before what is stored then
            place[p] = len(found)
            found.append(_moved(self.kernel.body[p], place))
        return found


def _moved(inst: Inst, place: Mapping[int, int]) -> Inst:
    """An instruction whose arguments are elsewhere."""
    return inst._replace(args=tuple([place[a] for a in inst.args]))


def _contiguous(dims: Sequence[Dim]) -> list[Dim]:
    """The strides of an array in C order."""
    strides = [ONE] if dims else []
    for d in reversed(dims[1:]):
        strides.append(strides[-1] * d)
    return strides[::-1]
