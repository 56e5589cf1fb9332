"""Loops over operands that lie in memory the other way round, tile by tile.

Where one operand is contiguous along the last loop and another along the one before, each turn of
the last loop reads a cache line of the other for one element.  In tiles of `HEIGHT` by `WIDTH`
points these lines are used up while they are in the nearest cache, even where the distance of rows
is a power of two, so that few lines of a column fit into it.
"""

from __future__ import annotations

from phintys.dims import ONE, Dim, dim_min
from phintys.lowering.costs import EXPENSIVE, cost
from phintys.lowering.program import Kernel, Operand

HEIGHT = WIDTH = 16
_LARGE = 2**17  # elements: smaller arrays stay in a near cache anyway


def by_tiles(kernel: Kernel) -> list[Kernel]:
    """Kernels that together do what one does: in whole tiles, then what is left on two sides."""
    if not _is_crosswise(kernel):
        return [kernel]
    *outer, rows, length = kernel.dims
    large = dim_min(rows * length // _LARGE, ONE)
    down, across = rows // HEIGHT * large, length // WIDTH * large
    operands = kernel.operands
    tiled = tuple(o._replace(strides=_tiled(o.strides)) for o in operands)
    right = tuple(o._replace(offset=o.offset + across * WIDTH * o.strides[-1]) for o in operands)
    below = tuple(o._replace(offset=o.offset + down * HEIGHT * o.strides[-2]) for o in operands)
    tile = (Dim.const(HEIGHT), Dim.const(WIDTH))
    return [
        _copy_of(kernel, (*outer, down, across, *tile), tiled),
        _copy_of(kernel, (*outer, down * HEIGHT, length - across * WIDTH), right),
        _copy_of(kernel, (*outer, rows - down * HEIGHT, length), below),
    ]


def _tiled(strides: tuple[Dim, ...]) -> tuple[Dim, ...]:
    row, element = strides[-2:]
    return (*strides[:-2], row * HEIGHT, element * WIDTH, row, element)


def _copy_of(kernel: Kernel, dims: tuple[Dim, ...], operands: tuple[Operand, ...]) -> Kernel:
    return Kernel(dims, len(dims), operands, kernel.body, kernel.step)


def _is_crosswise(kernel: Kernel) -> bool:
    """Whether operands differ in which of the last two loops they are contiguous along."""
    if len(kernel.dims) < 2 or kernel.split < len(kernel.dims):
        return False
    length = kernel.dims[-1].value
    if length is not None and length < 2 * WIDTH:
        return False
    # behind much work for each element the lines come in time as they are
    if any(cost(i) >= EXPENSIVE for i in kernel.body):
        return False
    # what depends on the number of a loop, or on the order of writes, stays as it is
    if any(i.op == "index" for i in kernel.body) or any(o.extra for o in kernel.operands):
        return False
    along = [o.strides[-1].value == 1 for o in kernel.operands]
    across = [
        o.strides[-2].value == 1 and o.strides[-1].value not in (0, 1) for o in kernel.operands
    ]
    return any(along) and any(across)
