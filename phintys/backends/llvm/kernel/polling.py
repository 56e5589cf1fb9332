"""The number of points of a kernel between two polls for signals.

Such a piece of a loop is a *block*, see ``runtime/interrupts.py``.
"""

from __future__ import annotations

from collections.abc import Iterable

from phintys.backends.llvm import costs
from phintys.lowering.costs import EXPENSIVE, nanoseconds
from phintys.lowering.program import Inst, Kernel


def points(body: Iterable[Inst]) -> int:
    """The number of points in a block of a kernel: a power of two."""
    price = sum(map(nanoseconds, body))
    return 1 << max(costs.POLL_POINTS, costs.POLL_NANOSECONDS // max(price, 1)).bit_length() - 1


def is_cheap(body: Iterable[Inst], most: int = EXPENSIVE) -> bool:
    """Whether a point of a kernel takes less than ``most`` nanoseconds; by default, than exp."""
    return sum(map(nanoseconds, body)) < most


def is_one_block(kernel: Kernel) -> bool:
    """Whether a kernel needs no blocks, which make its code larger.

    That is the case if a point is cheap and some operand has an element for each point: a kernel
    that takes seconds would access gigabytes.
    """
    operands = (o for o in kernel.operands if not o.extra)
    dense = any(all(stride.value != 0 for stride in o.strides) for o in operands)
    return dense and is_cheap(kernel.body, costs.DENSE_NANOSECONDS)
