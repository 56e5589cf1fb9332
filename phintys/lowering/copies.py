"""Shrinks copies to the elements that are not overwritten afterwards.

An update copies its array, then a kernel writes a region of the copy.  If the region is given by
slices, only the elements before, between and after its rows have to be copied.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from phintys.dims import ONE, ZERO, Dim, dim_max, dim_min, product
from phintys.lowering.program import Copy, Inst, Kernel, Operand, Program, Slot, Step
from phintys.lowering.spec import step_reads, step_writes
from phintys.lowering.values import Shape


def shrink_copies(program: Program, whole: Collection[Slot] = ()) -> None:
    """Replace each copy whose target is then largely overwritten by copies of the rest.

    Copies into slots that are in ``whole`` stay.
    """
    if not any(isinstance(step, Copy) for step in program.steps):
        return
    steps: list[Step] = []
    origins = []
    for number, (step, origin) in enumerate(zip(program.steps, program.origins, strict=True)):
        new: Sequence[Step] = [step]
        if isinstance(step, Copy) and step.target not in whole:
            region = _overwritten(program.steps, number, step.target)
            if region is not None:
                new = _copies_around(step, *region)
        steps += new
        origins += [origin] * len(new)
    for number, step in enumerate(steps):
        step.step = number
    program.steps, program.origins = steps, origins


def _overwritten(steps: list[Step], number: int, target: Slot) -> tuple[Kernel, Operand] | None:
    """The kernel that writes a region of ``target`` before any other access, and its operand."""
    for step in steps[number + 1 :]:
        if target not in step_reads(step) and target not in step_writes(step):
            continue
        return _region(step, target) if isinstance(step, Kernel) else None
    return None


def _region(kernel: Kernel, target: Slot) -> tuple[Kernel, Operand] | None:
    """The kernel and its operand, if it stores a region of contiguous rows and reads none of it."""
    touching = [n for n, o in enumerate(kernel.operands) if o.slot is target]
    if len(touching) != 1:
        return None
    operand = kernel.operands[touching[0]]
    uses = [i for i in kernel.body if i.operand == touching[0]]
    stored = len(uses) == 1 and uses[0].op == "store" and len(uses[0].args) == 1
    if not stored or operand.extra or kernel.ragged or not _is_worthwhile(kernel, target):
        return None
    # the strides must be a subsequence of the array's own, so that rows do not overlap
    own = [ONE]
    for d in reversed(target.shape[1:]):
        own.append(own[-1] * d)
    own_strides = iter(reversed(own))
    nested = all(any(s is t for t in own_strides) for s in operand.strides)
    unit = bool(operand.strides) and operand.strides[-1] is ONE
    return (kernel, operand) if nested and unit else None


def _is_worthwhile(kernel: Kernel, target: Slot) -> bool:
    """Whether the loops write at least half of an array; true if both sizes are symbolic."""
    part, whole = product(kernel.dims).value, product(target.shape).value
    if whole is None or part is None:
        return part is None
    return 2 * part >= whole


def _copies_around(copy: Copy, kernel: Kernel, region: Operand) -> list[Kernel]:
    """Copies of the elements before a region, after it, and between its rows at each loop level."""
    strides, dims = region.strides, kernel.dims
    sizes = [ONE]  # extent in memory of the loops inside each loop; 0 if they are empty
    for d in reversed(range(len(dims))):
        sizes.append(dim_max(sizes[-1] + strides[d] * (dims[d] - 1), ZERO))
    total, extent = product(copy.target.shape), sizes.pop()
    start = dim_min(region.offset, total - extent)  # the offset of an empty region is arbitrary
    parts: list[tuple[Shape, Shape, Dim]]
    parts = [((start,), (ONE,), ZERO), ((total - extent - start,), (ONE,), start + extent)]
    for d, size in zip(reversed(range(len(dims))), sizes):
        gap = strides[d] - size
        parts.append(((*dims[:d], dims[d] - 1, gap), (*strides[: d + 1], ONE), start + size))
    return [_copy_part(copy, *part) for part in parts if all(d.value != 0 for d in part[0])]


def _copy_part(copy: Copy, dims: tuple[Dim, ...], strides: tuple[Dim, ...], offset: Dim) -> Kernel:
    """A kernel that copies elements at equal offsets in both; negative lengths count as 0."""
    lengths = tuple(dim_max(d, ZERO) for d in dims)
    operands = tuple(Operand(slot, strides, offset) for slot in (copy.source, copy.target))
    dtype = str(copy.source.dtype)
    body = (Inst("load", dtype, (), 0), Inst("store", dtype, (0,), 1))
    return Kernel(lengths, len(lengths), operands, body)
