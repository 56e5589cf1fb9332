"""Kernels split into parts that can run in parallel.

The range of one loop is split: a loop whose iterations write different elements, or the outermost
loop of reductions over all axes, whose partial results another kernel then combines, always in the
same order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from phintys.backends.llvm import costs
from phintys.dims import ONE, ZERO, Dim
from phintys.lowering.costs import EXPENSIVE, cost
from phintys.lowering.program import Inst, Kernel, Operand, Slot
from phintys.lowering.schedule import instruction_depths, schedule
from phintys.lowering.strips import part_of

#: symbols of a part: its first point, its number of points, its number
START, LENGTH, NUMBER = (Dim.symbol(("part", k, 0)) for k in range(3))
#: the number of parts
COUNT = Dim.symbol(("part", 3, 0))


class Parts(NamedTuple):
    """The split of a kernel.

    ``kernel`` computes one part of a loop of ``length`` points; parts start at multiples of
    ``unit``.  ``private`` are scratch slots of which each part needs a copy; ``partial`` are the
    slots where part ``NUMBER`` stores the results of its reductions, which ``final`` combines.
    """

    kernel: Kernel
    length: Dim
    unit: int
    private: tuple[Slot, ...] = ()
    partial: tuple[Slot, ...] = ()
    final: Kernel | None = None


def cut(kernel: Kernel, scratch: Iterable[Slot] = (), number: int = -1) -> Parts | None:
    """The parts of a kernel, None if its points depend on each other.

    ``scratch`` are slots that only the kernel uses; new slots are numbered from ``number``
    downwards.
    """
    private = tuple(_private(kernel, list(scratch)))
    if kernel.split == 0:
        whole = kernel.is_reducing and kernel.ragged is None
        return _cut_reductions(kernel, number) if whole else None
    counted = range(len(kernel.dims) - 1) if kernel.ragged else range(len(kernel.dims))
    for d in counted[: kernel.split]:
        if _are_apart(kernel, kernel.body, d, private):
            unit = costs.PART_POINTS if d == len(kernel.dims) - 1 else 1
            return Parts(part_of(kernel, d, START, LENGTH), kernel.dims[d], unit, private)
    return None


def picoseconds(kernel: Kernel) -> int:
    """A lower estimate of the time of one point of a kernel.

    0 if it is bound by memory, so that more threads do not make it faster.
    """
    memory = costs.STREAM_PICOSECONDS * sum(map(_is_stream, kernel.body))
    computing = sum(_price(i) for i in kernel.body if not _is_stream(i))
    return memory + computing if computing > costs.COMPUTE_PER_MEMORY * memory else 0


def _is_stream(inst: Inst) -> bool:
    """Whether an instruction loads or stores without an index, in the order of memory."""
    return inst.operand >= 0 and len(inst.args) == (inst.op != "load")


def _price(inst: Inst) -> int:
    if inst.operand >= 0:
        return costs.SCATTERED_PICOSECONDS
    scalar = 1 if inst.op == "reduce" else cost(inst)
    unit = costs.EXPENSIVE_PICOSECONDS if scalar >= EXPENSIVE else costs.CHEAP_PICOSECONDS
    return unit * scalar


# --------------------------------------------------------------------------- independence


def _are_apart(kernel: Kernel, body: Iterable[Inst], d: int, private: tuple[Slot, ...]) -> bool:
    """Whether different iterations of a loop write different elements."""
    for inst in body:
        if inst.op == "index" and inst.param == d:
            return False
        if inst.op not in ("store", "accumulate"):
            continue
        operand = kernel.operands[inst.operand]
        if operand.extra or (operand.strides[d].value == 0 and operand.slot not in private):
            return False
    return True


def _private(kernel: Kernel, scratch: list[Slot]) -> list[Slot]:
    """The scratch slots that each iteration of the outer loops overwrites."""
    outer = range(kernel.split)
    moving = {o.slot for o in kernel.operands if any(o.strides[d].value != 0 for d in outer)}
    return [s for s in scratch if s not in moving]


# ----------------------------------------------------------------------------- reductions


def _cut_reductions(kernel: Kernel, number: int) -> Parts | None:
    """Parts of reductions over all loops, None unless a single pass over the loops suffices."""
    depths = instruction_depths(kernel)
    body = kernel.body
    inside = tuple(i for i, depth in zip(body, depths) if depth > 0)
    reduces = [p for p, i in enumerate(body) if i.op == "reduce"]
    later = [phase for phase in schedule(kernel).phases if phase.has_loop][1:]
    positional = any(body[p].param.startswith("arg") for p in reduces)
    if later or positional or not _are_apart(kernel, inside, 0, ()):
        return None
    partial = tuple(
        Slot(number - k, "temp", body[p].dtype, (COUNT,)) for k, p in enumerate(reduces)
    )
    whole = [Operand(s, (ZERO,) * len(kernel.dims), NUMBER) for s in partial]
    part = part_of(kernel, 0, START, LENGTH)
    part.body = tuple(_without_results(body, depths))
    part.operands = (*part.operands, *whole)
    first = len(kernel.operands)
    stores = [Inst("store", body[p].dtype, (p,), first + k) for k, p in enumerate(reduces)]
    part.body = (*part.body, *stores)
    unit = costs.PART_POINTS if len(kernel.dims) == 1 else 1
    return Parts(part, kernel.dims[0], unit, (), partial, _combination(kernel, depths, partial))


def _without_results(body: tuple[Inst, ...], depths: list[int]) -> Iterable[Inst]:
    """The body, with stores of results replaced by an instruction without effect."""
    for inst, depth in zip(body, depths):
        result = depth == 0 and inst.op in ("store", "accumulate")
        yield Inst("const", "bool", (), False) if result else inst


def _combination(kernel: Kernel, depths: list[int], partial: tuple[Slot, ...]) -> Kernel:
    """The kernel that combines partial results and computes and stores what depends on them."""
    operands = [o._replace(strides=(ZERO,)) for o in kernel.operands]
    body: list[Inst] = []
    places: dict[int, int] = {}
    slots = iter(partial)
    for position, (inst, depth) in enumerate(zip(kernel.body, depths)):
        if depth > 0:
            continue
        if inst.op == "reduce":
            body.append(Inst("load", inst.dtype, (), len(operands)))
            operands.append(Operand(next(slots), (ONE,), ZERO))
            inst = inst._replace(args=(len(body) - 1,))
        else:
            inst = inst._replace(args=tuple(places[a] for a in inst.args))
        places[position] = len(body)
        body.append(inst)
    return Kernel((COUNT,), 0, tuple(operands), tuple(body), kernel.step)
