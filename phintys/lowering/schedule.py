"""Where each instruction of a kernel runs: at which loop depth, and in which inner loop.

Generators follow the answer, so that two of them cannot disagree about it::

    outer[0]                             before any loop
    for i0 in dims[0]:
        outer[1]
        for i1 in dims[1]:               ... down to the split
            outer[2]
            for each phase:
                levels[0]                once per outer point
                for i2 in dims[2]:       (these loops only if the phase has_loop)
                    levels[1]
                    ...
                        levels[-1], then combine every value of ``reduces``

A kernel without a ``reduce`` has no phases: all its instructions are in ``outer``.

Rules
    The *depth* of an instruction is the number of loops it sits in: one more than the last
    dimension it varies with, through its arguments, its operand's strides, or its loop counter.
    A ``wrap`` runs, and may fail, whether or not anything uses its result.  A ``store`` sits as
    deep as its value, indices or target vary.  An ``accumulate`` is not idempotent, so it sits
    either in all outer loops (nothing about it varies with an inner dim) or in all loops; so does a
    ``store`` at computed positions, which must not happen where a loop has no turns.  A ``reduce``
    combines once per inner point even where its argument does not vary.

    What uses the result of a ``reduce`` belongs to a later phase than that ``reduce``.  A
    ``load`` of a slot which an earlier instruction of the body stores does too: rows are kept in
    scratch slots that way.  What varies with inner dims and is needed in several phases appears
    in each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from phintys.lowering.program import Inst, Kernel, Operand

_EFFECTS = ("store", "accumulate", "wrap")


@dataclass(slots=True)
class Phase:
    """One pass over the inner dims of a kernel; see the module docstring."""

    levels: list[list[int]]
    reduces: list[int] = field(default_factory=list)

    @property
    def has_loop(self) -> bool:
        """Whether the inner loops do anything."""
        return bool(self.reduces) or any(self.levels[1:])


@dataclass(slots=True)
class Schedule:
    """The positions of a kernel's instructions in order of execution."""

    outer: list[list[int]]
    phases: list[Phase]


def schedule(kernel: Kernel) -> Schedule:
    """Work out the loop structure of a kernel.  Instructions without effect are left out.

    Cost: linear in the number of instructions times the number of phases.
    """
    depths = instruction_depths(kernel)
    body, split = kernel.body, kernel.split
    phase_of = _phases(kernel)
    outer: list[list[int]] = [[] for _ in range(split + 1)]
    phases: list[Phase] = []
    if kernel.is_reducing:
        count = 1 + max(phase_of)
        phases = [Phase([[] for _ in range(len(kernel.dims) - split + 1)]) for _ in range(count)]
    for position in sorted(_needed(body, _effects(body))):
        inst, depth, phase = body[position], depths[position], phase_of[position]
        if inst.op == "reduce":
            phases[phase].reduces.append(position)
        elif depth <= split and phase == 0:
            outer[depth].append(position)
        elif depth <= split:
            phases[phase].levels[0].append(position)
    for number, phase_ in enumerate(phases):
        roots = [p for p in _effects(body) if phase_of[p] == number and depths[p] > split]
        roots += [body[p].args[0] for p in phase_.reduces]
        for position in sorted(_needed(body, roots, depths, split)):
            phase_.levels[depths[position] - split].append(position)
    return Schedule(outer, phases)


def instruction_depths(kernel: Kernel) -> list[int]:
    """For each instruction the number of loops it runs in (a ``reduce``: its result's)."""
    depths: list[int] = []
    for inst in kernel.body:
        depth = max((depths[a] for a in inst.args), default=0)
        if inst.op == "index":
            depth = inst.param + 1
        elif inst.op in ("load", "store"):
            depth = max(depth, operand_depth(kernel.operands[inst.param]))
        elif inst.op == "reduce":
            depth = kernel.split
        elif inst.op == "accumulate":
            depth = max(depth, operand_depth(kernel.operands[inst.param[0]]))
        if inst.op == "accumulate" or (inst.op == "store" and len(inst.args) > 1):
            depth = kernel.split if depth <= kernel.split else len(kernel.dims)
        depths.append(depth)
    return depths


def operand_depth(operand: Operand) -> int:
    """One more than the last loop dimension along which the operand moves."""
    moving = [d for d, stride in enumerate(operand.strides) if stride.value != 0]
    return moving[-1] + 1 if moving else 0


def _phases(kernel: Kernel) -> list[int]:
    """For each instruction the first phase in which it can run."""
    phases: list[int] = []
    stored: dict[int, int] = {}  # slot number -> phase in which the body stored it
    for inst in kernel.body:
        phase = 0
        for a in inst.args:
            phase = max(phase, phases[a] + (kernel.body[a].op == "reduce"))
        if inst.op == "load":
            number = kernel.operands[inst.param].slot.number
            if number in stored:
                phase = max(phase, stored[number] + 1)
        elif inst.op == "store":
            stored[kernel.operands[inst.param].slot.number] = phase
        phases.append(phase)
    return phases


def _effects(body: Iterable[Inst]) -> list[int]:
    return [p for p, inst in enumerate(body) if inst.op in _EFFECTS]


def _needed(
    body: tuple[Inst, ...],
    roots: Iterable[int],
    depths: list[int] | None = None,
    split: int = -1,
) -> set[int]:
    """What the roots use, roots included; with depths, only instructions inside ``split``."""
    needed: set[int] = set()
    stack = list(roots)
    while stack:
        position = stack.pop()
        if position in needed or (depths is not None and depths[position] <= split):
            continue
        needed.add(position)
        stack.extend(body[position].args)
    return needed
