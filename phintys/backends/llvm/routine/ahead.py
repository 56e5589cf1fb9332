"""Reading ahead: the kernels of a strip bring into the cache what those of the next one need.

The first kernel of a strip reads an array that no cache holds, the last one writes one.  Both would
wait for memory, which the kernels between them, whose windows are in the cache, do not use.  So
while the kernels of a strip compute, they ask for the cache lines of the next one, few at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from phintys.dims import ONE
from phintys.lowering.program import Kernel, Slot
from phintys.lowering.strips import Strips, starts_of


class Reader(NamedTuple):
    """A kernel's part in reading ahead: of which stream, from how many bytes after the strip on."""

    stream: int
    first: int


def streams_of(strips: Strips, near: set[int]) -> tuple[list[Slot], int, dict[int, Reader]]:
    """What is read ahead, the bytes for each element that a kernel computes, and the readers.

    Readers are found by the numbers of their kernels.  The slots ``near`` are in windows.  All long
    loops are readers, so that kernels with equal bodies have the same code; where there are more
    than needed, some read the same again.
    """
    long = [k for k, kernel in enumerate(strips.kernels) if _is_long(kernel)]
    used = dict.fromkeys(slot for k in long for slot in _contiguous(strips.kernels[k]))
    streams = [slot for slot in used if slot.number not in near]
    if not streams or len(long) < len(streams):
        return [], 0, {}
    each = len(long) // len(streams)
    rate = max([-(-itemsize(slot) // each) for slot in streams])
    found: dict[int, Reader] = {}
    for number, k in enumerate(long):
        stream = min(number // each, len(streams) - 1)
        parts = -(-itemsize(streams[stream]) // rate)
        part = min(number - each * stream, parts - 1)
        found[k] = Reader(stream, part * rate * strips.step)
    return streams, rate, found


def itemsize(slot: Slot) -> int:
    return np.dtype(str(slot.dtype)).itemsize


def _is_long(kernel: Kernel) -> bool:
    """Whether a kernel is a loop over one element in each iteration, of most elements."""
    return len(kernel.dims) == 1 and any([o.strides == (ONE,) for o in starts_of(kernel)])


def _contiguous(kernel: Kernel) -> Iterator[Slot]:
    for operand in kernel.operands:
        if operand.strides == (ONE,) and not operand.extra:
            yield operand.slot
