"""Windows: memory for the elements that kernels access in one strip, not for a whole array.

A temp that only the kernels of a range use is never whole in memory, if it is large.  Its window
holds the elements of the current strip; those that the next strip accesses, too, are moved to its
start when a strip ends.  So a long chain of kernels needs little memory, which stays in the cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from phintys.dims import Dim, dim_max, dim_min
from phintys.lowering.program import Slot
from phintys.lowering.strips import Strips, starts_of

#: Elements: a multiple of this many fills whole cache lines.
_UNIT = 64

#: Bytes: the sizes of windows are odd multiples of this.  A load waits for an earlier store to the
#: same place modulo twice as much; the same elements of two windows are as far as possible apart.
_HALF_PAGE = 2048

#: Windows of a range of kernels, at most: each takes some instructions.
_MOST = 8


class Window(NamedTuple):
    """The window of a storage, whose slots are ``slots``, in elements of ``itemsize`` bytes.

    Time ``t`` accesses elements ``t - behind`` to ``t + ahead``.  The first ``pad`` bytes of the
    memory are not used, so that the longest loops write vectors that cross no cache lines.
    """

    storage: int
    slots: list[Slot]
    itemsize: int
    behind: Dim
    ahead: Dim
    pad: int
    strips: Strips

    @property
    def kept(self) -> Dim:
        """The number of elements that two strips share."""
        return self.behind + self.ahead

    @property
    def bytes(self) -> Dim:
        """The size of the window."""
        return (self.kept + self.strips.step) * self.itemsize

    def size(self, whole: Dim) -> Dim:
        """The size of the memory: of the window, or of an array for which there is one strip."""
        least = Dim.const(self.strips.single * self.itemsize)
        size = dim_min(whole, dim_max(self.bytes, least)) + self.pad
        pages = (size + (_HALF_PAGE - 1)) // (2 * _HALF_PAGE)
        return pages * (2 * _HALF_PAGE) + _HALF_PAGE


def windows_of(strips: Strips, uses: Mapping[Slot, int]) -> list[Window]:
    """The windows of the storages that kernels in strips use alone.

    ``uses`` are the numbers of steps of the Program that use each slot.
    """
    own = Counter(s for kernel in strips.kernels for s in {o.slot for o in kernel.operands})
    by_storage: dict[int, list[Slot]] = {}
    for slot in uses:
        if slot.storage is not None:
            by_storage.setdefault(slot.storage, []).append(slot)
    found = [
        _window(storage, slots, strips)
        for storage, slots in by_storage.items()
        if storage in strips.spans and all(own[slot] == uses[slot] for slot in slots)
    ]
    return found[:_MOST]


def _window(storage: int, slots: list[Slot], strips: Strips) -> Window:
    behind, ahead = strips.spans[storage]
    behind = (behind + (_UNIT - 1)) // _UNIT * _UNIT
    itemsize = np.dtype(slots[0].dtype).itemsize
    pad = -_first(storage, strips) % _UNIT * itemsize
    return Window(storage, slots, itemsize, behind, ahead, pad, strips)


def _first(storage: int, strips: Strips) -> int:
    """The element with which the first loop that writes a storage begins; 0 if it is not known."""
    operands = [o for kernel in strips.kernels for o in starts_of(kernel)]
    written = [o.offset.value for o in operands if o.slot.storage == storage]
    return (written[0] or 0) if written else 0
