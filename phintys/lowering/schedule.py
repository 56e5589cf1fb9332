"""The schedule of a kernel: the loop depth of each instruction, and the inner loop it is in.

All generators emit this structure::

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
                        levels[-1], then accumulate every ``reduce`` of ``reduces``

A *phase* is one pass over the inner loops.  A kernel without a ``reduce`` has none: all its
instructions are in ``outer``.

The last loop of a ``ragged`` kernel runs from its start to its stop, which are checked just before
it, in ``outer``, once for all phases.

Rules
    The *depth* of an instruction is the number of loops it is in: one more than the last dimension
    that it varies with, through its arguments, its operand's strides, or its loop counter.
    A ``wrap`` runs, and may fail, even if its result is unused; so do the bounds of a ragged loop.
    The depth of a ``store`` is the
    maximum of those of its value, indices and target.  An ``accumulate`` is not idempotent, so it
    is either in all outer loops (if nothing about it varies with an inner dim) or in all loops; so
    is a ``store`` at computed positions, which must not run if a loop has no iterations.  A
    ``reduce`` accumulates once per inner point even if its argument is invariant.

    An instruction that uses the result of a ``reduce`` is in a later phase than the ``reduce``.  A
    ``load`` of a slot that the body stores (a scratch buffer) is in a later phase than the store.
    An instruction that varies with inner dims and is needed in several phases is in each of them.
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
    """The schedule of a kernel, without its dead instructions.

    Takes time proportional to the number of instructions times the number of phases.
    """
    depths = instruction_depths(kernel)
    body, split = kernel.body, kernel.split
    phase_of = _phases(kernel)
    outer: list[list[int]] = [[] for _ in range(split + 1)]
    phases: list[Phase] = []
    if kernel.is_reducing:
        count = 1 + max(phase_of)
        phases = [Phase([[] for _ in range(len(kernel.dims) - split + 1)]) for _ in range(count)]
    for position in sorted(_needed(body, [*_effects(body), *(kernel.ragged or ())])):
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
    """The number of loops that each instruction runs in; of a ``reduce``, that of its result."""
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


def bounds_vary_outside(kernel: Kernel) -> bool:
    """Whether the bounds of a ragged loop are known before the loop, its sums and its stores."""
    bounds = kernel.ragged or ()
    depths, phases = instruction_depths(kernel), _phases(kernel)
    early = all(depths[p] < len(kernel.dims) and phases[p] == 0 for p in bounds)
    return early and not any(kernel.body[p].op == "reduce" for p in bounds)


def operand_depth(operand: Operand) -> int:
    """One more than the last loop dimension with a nonzero stride; 0 if all strides are 0."""
    moving = [d for d, stride in enumerate(operand.strides) if stride.value != 0]
    return moving[-1] + 1 if moving else 0


def _phases(kernel: Kernel) -> list[int]:
    """The first phase in which each instruction can run."""
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
    """The positions of the instructions that write memory or can fail."""
    return [p for p, inst in enumerate(body) if inst.op in _EFFECTS]


def _needed(
    body: tuple[Inst, ...],
    roots: Iterable[int],
    depths: list[int] | None = None,
    split: int = -1,
) -> set[int]:
    """The roots and what they use; with ``depths``, only instructions deeper than ``split``."""
    needed: set[int] = set()
    stack = list(roots)
    while stack:
        position = stack.pop()
        if position in needed or (depths is not None and depths[position] <= split):
            continue
        needed.add(position)
        stack.extend(body[position].args)
    return needed
