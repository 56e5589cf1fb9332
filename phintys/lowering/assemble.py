"""Emits the steps of all clusters and calls, and orders them: values become a Program."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phintys.dims import Dim
from phintys.lowering.builder import Builder
from phintys.lowering.fuse import Fusion
from phintys.lowering.kernels import Layouts, write_cluster
from phintys.lowering.program import Copy, Program, Python, Slot, Step
from phintys.lowering.spec import step_dims, step_reads, step_writes
from phintys.lowering.values import Value
from phintys.scalar.native import NATIVE_DTYPES


@dataclass(slots=True)
class Group:
    """Steps that stay together: the initialisation of a target, then the step that updates it.

    ``key`` breaks ties in the order of steps; ``waits_for`` holds the numbers of earlier groups.
    """

    steps: list[Step]
    key: int
    origin: Any
    waits_for: set[int] = field(default_factory=set)


def assemble(
    builder: Builder,
    outputs: Sequence[Value],
    updates: Sequence[int] = (),
    n_arguments: int | None = None,
) -> Program:
    """The Program that computes ``outputs``: fused, without a memory plan.

    ``updates`` holds, for each of the last outputs, the number of the input that it becomes the
    new value of.
    """
    outputs = [_storable(builder, v) for v in outputs]
    fusion = Fusion(builder, outputs)
    layouts = Layouts(fusion)
    groups = _check_groups(builder)  # first: their positions are the numbers of the checks
    groups += [
        Group(nest.steps, nest.value.id, nest.value.origin, set(nest.checks))
        for cluster in fusion.clusters
        if cluster.roots
        for nest in write_cluster(layouts, cluster)
    ]
    groups += [
        Group(v.call_steps(layouts), v.id, v.origin, set(fusion.prerequisites.of(v).checks))
        for v in fusion.calls
    ]
    slots, copies = _output_slots(layouts, outputs)
    groups += [Group([c], len(builder.values), None) for c in copies]
    ordered = _in_order(groups)
    steps = [step for group in ordered for step in group.steps]
    for number, step in enumerate(steps):
        step.step = number
    if n_arguments is None:
        n_arguments = len(builder.inputs) - len(updates)
    program = Program(list(builder.inputs), n_arguments, slots, list(updates), steps, builder.slots)
    program.origins = [group.origin for group in ordered for _ in group.steps]
    _drop_unused_slots(program)
    return program


def _storable(builder: Builder, value: Value) -> Value:
    """An output as a value that has a slot: views, and arrays of other dtypes, are copied."""
    value = builder.kept(value)
    if value.dtype is not None and value.dtype not in NATIVE_DTYPES and not _is_fresh(value):
        lengths = [d.value for d in builder.shape(value)]
        return builder.python(_copied, [value], [(value.dtype, lengths)], "copy")[0]
    return value


def _is_fresh(value: Value) -> bool:
    slot = value.own_slot()
    return slot is not None and slot.kind in ("python", "temp")


def _copied(array: Any) -> tuple[Any]:
    return (np.array(array),)


def _output_slots(layouts: Layouts, outputs: Sequence[Value]) -> tuple[list[Slot], list[Step]]:
    """The slots of the outputs, and copies for values that the caller cannot own.

    Those are arguments, constants, reshaped values, outputs that occur twice, and slots whose
    integer is a Dim.
    """
    builder = layouts.builder
    pinned = {slot.number for slot in builder.pinned.values()}
    taken: set[int] = set()
    slots: list[Slot] = []
    copies: list[Step] = []
    for value in outputs:
        slot = layouts.slot(value)
        free = slot.number not in taken | pinned and value.owner is value
        if slot.kind == "object" or (slot.kind == "python" and free):
            slots.append(slot)
        elif slot.kind == "temp" and free:
            slot.kind = "output"
            slots.append(slot)
        else:
            copy = layouts.scratch(str(slot.dtype), layouts.fusion.shape(value))
            copy.kind = "output"
            slots.append(copy)
            copies.append(Copy(slot, copy))
        taken.add(slot.number)
    return slots, copies


# ------------------------------------------------------------------------- order


def _check_groups(builder: Builder) -> list[Group]:
    """One group per check of the builder."""
    return [Group([check], -1, origin) for check, origin in builder.checks]


def _in_order(groups: list[Group]) -> list[Group]:
    """The groups in a topological order; ties: checks first, then in order of construction."""
    writer: dict[int, int] = {}
    for number, group in enumerate(groups):
        for step in group.steps:
            for slot in step_writes(step):
                writer[slot.number] = number
    sources = _DimSources(writer)
    for number, group in enumerate(groups):
        for step in group.steps:
            group.waits_for.update(writer[s.number] for s in step_reads(step) if s.number in writer)
            for dims in (step_dims(step), *(s.shape for s in step_writes(step) if _owned(s))):
                for dim in dims:
                    group.waits_for |= sources.of(dim)
        group.waits_for.discard(number)
    return _topological(groups)


def _owned(slot: Slot) -> bool:
    return slot.kind in ("temp", "output")


class _DimSources:
    """The numbers of the groups that define the symbols of a Dim."""

    def __init__(self, writer: dict[int, int]):
        self.writer = writer
        self.known: dict[Dim, frozenset[int]] = {}

    def of(self, dim: Dim) -> frozenset[int]:
        found = self.known.get(dim)
        if found is None:
            numbers = (symbol.args[0][1] for symbol in dim.symbols())
            found = frozenset(self.writer[n] for n in numbers if n in self.writer)
            self.known[dim] = found
        return found


def _topological(groups: list[Group]) -> list[Group]:
    """The groups ordered by ``waits_for``, then by ``key``."""
    waiting = [len(g.waits_for) for g in groups]
    successors: list[list[int]] = [[] for _ in groups]
    for number, group in enumerate(groups):
        for earlier in group.waits_for:
            successors[earlier].append(number)
    ready = _Ready(groups)
    for number, count in enumerate(waiting):
        if not count:
            ready.add(number)
    result: list[Group] = []
    while ready:
        number = ready.take()
        result.append(groups[number])
        for later in successors[number]:
            waiting[later] -= 1
            if not waiting[later]:
                ready.add(later)
    if len(result) != len(groups):
        raise RuntimeError("the steps of a Program have a dependency cycle")
    return result


class _Ready:
    """The numbers of the groups that can be next, taken in the order of their keys.

    `Python` steps, whose functions may have side effects, keep their order where that is possible:
    one waits for those before it as long as there is something else to take.
    """

    def __init__(self, groups: list[Group]) -> None:
        self.groups = groups
        self.heap: list[tuple[int, int]] = []
        self.held: list[tuple[int, int]] = []  # Python steps that wait for others
        places = ((g.key, n) for n, g in enumerate(groups) if isinstance(g.steps[-1], Python))
        self.calls = sorted(places, reverse=True)  # the Python steps not taken yet, next one last
        self.late = set(self.calls)

    def __bool__(self) -> bool:
        return bool(self.heap or self.held)

    def add(self, number: int) -> None:
        heapq.heappush(self.heap, (self.groups[number].key, number))

    def take(self) -> int:
        """The next group; it is removed."""
        while self.heap:
            place = heapq.heappop(self.heap)
            if place not in self.late or place == self.calls[-1]:
                self._taken(place)
                return place[1]
            heapq.heappush(self.held, place)
        place = heapq.heappop(self.held)
        self._taken(place)
        return place[1]

    def _taken(self, place: tuple[int, int]) -> None:
        """Note that a step is taken; one that waited for it is ready."""
        if place not in self.late:
            return
        self.late.remove(place)
        while self.calls and self.calls[-1] not in self.late:
            self.calls.pop()
        if self.calls and self.held and self.held[0] == self.calls[-1]:
            heapq.heappush(self.heap, heapq.heappop(self.held))


def _drop_unused_slots(program: Program) -> None:
    """Remove the slots that no step reads or writes, except inputs and outputs."""
    used = {s.number for s in (*program.inputs, *program.outputs)}
    for step in program.steps:
        used.update(s.number for s in (*step_reads(step), *step_writes(step)))
    program.slots = [s for s in program.slots if s.number in used]
