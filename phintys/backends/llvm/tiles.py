"""Loops over operands that lie in memory the other way round, tile by tile.

Where one operand is contiguous along the last loop and another along the one before, each turn of
the last loop reads a cache line of the other for one element.  Its range is cut into pieces, so
narrow that these lines are still in the nearest cache when the next turn wants their next element.
"""

from __future__ import annotations

from phintys.dims import ONE, Dim, dim_min
from phintys.lowering.program import Kernel, Operand

WIDTH = 64
_LARGE = 2**17  # elements: smaller arrays stay in a near cache anyway


def by_tiles(kernel: Kernel) -> list[Kernel]:
    """Kernels that together do what one does: in whole tiles, then what is left."""
    if not _is_crosswise(kernel):
        return [kernel]
    *outer, rows, length = kernel.dims
    count = length // WIDTH * dim_min(rows * length // _LARGE, ONE)
    tiled = tuple(
        o._replace(strides=(*o.strides[:-2], o.strides[-1] * WIDTH, *o.strides[-2:]))
        for o in kernel.operands
    )
    left = tuple(
        o._replace(offset=o.offset + count * WIDTH * o.strides[-1]) for o in kernel.operands
    )
    return [
        _copy_of(kernel, (*outer, count, rows, Dim.const(WIDTH)), tiled),
        _copy_of(kernel, (*outer, rows, length - count * WIDTH), left),
    ]


def _copy_of(kernel: Kernel, dims: tuple[Dim, ...], operands: tuple[Operand, ...]) -> Kernel:
    return Kernel(dims, len(dims), operands, kernel.body, kernel.step)


def _is_crosswise(kernel: Kernel) -> bool:
    """Whether operands differ in which of the last two loops they are contiguous along."""
    if len(kernel.dims) < 2 or kernel.split < len(kernel.dims):
        return False
    length = kernel.dims[-1].value
    if length is not None and length < 2 * WIDTH:
        return False
    # what depends on the number of a loop, or on the order of writes, stays as it is
    if any(i.op == "index" for i in kernel.body) or any(o.extra for o in kernel.operands):
        return False
    along = [o.strides[-1].value == 1 for o in kernel.operands]
    across = [
        o.strides[-2].value == 1 and o.strides[-1].value not in (0, 1) for o in kernel.operands
    ]
    return any(along) and any(across)
