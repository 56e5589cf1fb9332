"""Loop tiling for kernels with transposed operands.

Where one operand is contiguous along the last loop and another along some other loop, each
iteration of the last loop reads a cache line of the other for one element.  The two loops are tiled
by `costs.TILE_HEIGHT` and one of `costs.TILE_WIDTHS` points: transposed operands are first
transposed, a tile at a time, into memory that stays in the L1 cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.types import Type
from phintys.dims import ONE, Dim, dim_min, product
from phintys.lowering.costs import EXPENSIVE, cost
from phintys.lowering.program import Kernel, Operand


def by_tiles(kernel: Kernel) -> list[Kernel]:
    """Kernels that together replace one: over whole tiles, then over the remaining two sides."""
    if not _may_be_tiled(kernel):
        return [kernel]
    rows_of = Counter(d for n in _across(kernel) if (d := _contiguous(kernel.operands[n])) >= 0)
    if not rows_of or not any(o.strides[-1].value == 1 for o in kernel.operands):
        return [kernel]
    rows = rows_of.most_common(1)[0][0]
    large = dim_min(product(kernel.dims) // costs.TILED_POINTS, ONE)
    large = large * dim_min(kernel.dims[rows] // costs.TILE_HEIGHT, ONE)
    if rows == len(kernel.dims) - 2:
        large = large * _overflows(kernel)
    elif any(i.op == "accumulate" for i in kernel.body):  # the order of sums would change
        return [kernel]
    return [kernel] if large.value == 0 else _in_tiles(_with_rows(kernel, rows), large)


def is_tiled(kernel: Kernel) -> bool:
    """Whether the last two loops are those of a tile, whose points may be visited in any order."""
    lengths = [d.value for d in kernel.dims[-2:]]
    tiled = lengths[:1] == [costs.TILE_HEIGHT] and lengths[-1] in costs.TILE_WIDTHS
    return tiled and _is_map(kernel)


def crosswise(kernel: Kernel) -> list[int]:
    """Numbers of operands that are only loaded and contiguous along the last loop but one."""
    return [n for n in _across(kernel) if kernel.operands[n].strides[-2].value == 1]


def turned(kernel: Kernel, number: int) -> Kernel:
    """The kernel with the tile of an operand in separate memory, in row-major order."""
    operands = list(kernel.operands)
    strides = (*operands[number].strides[:-2], kernel.dims[-1], ONE)
    operands[number] = operands[number]._replace(strides=strides)
    return Kernel(kernel.dims, kernel.split, tuple(operands), kernel.body, kernel.step)


def has_pairs(kernel: Kernel) -> bool:
    """Whether complex numbers are in memory, which only innermost loops take in vectors."""
    return any(Type(str(o.slot.dtype)).kind == "c" for o in kernel.operands)


def _overflows(kernel: Kernel) -> Dim:
    """1 if the cache lines that one row reads and the next one needs again are evicted from L1.

    They are too many, or their stride maps them to few sets of the cache.
    """
    result = kernel.dims[-1] // costs.TILE_LINES
    for n in crosswise(kernel):
        operand = kernel.operands[n]
        apart = costs.CONFLICT_BYTES // Type(str(operand.slot.dtype)).bytes
        result = result + ONE - dim_min(operand.strides[-1] % apart, ONE)
    return dim_min(result, ONE)


def _in_tiles(kernel: Kernel, large: Dim) -> list[Kernel]:
    """The kernel, tiled if ``large`` is 1; the rows below whole tiles are not tiled."""
    *outer, rows, length = kernel.dims
    above = rows // costs.TILE_HEIGHT * costs.TILE_HEIGHT * large
    below = tuple(o._replace(offset=o.offset + above * o.strides[-2]) for o in kernel.operands)
    return [
        *_tiles(_copy_of(kernel, (*outer, above, length), kernel.operands), costs.TILE_WIDTHS),
        _copy_of(kernel, (*outer, rows - above, length), below),
    ]


def _tiles(kernel: Kernel, widths: Sequence[int]) -> list[Kernel]:
    """The kernel tiled along its last two loops; the columns on the right get narrower tiles."""
    if not widths:
        return [kernel]
    *outer, rows, length = kernel.dims
    width, *narrower = widths
    down, across = rows // costs.TILE_HEIGHT, length // width
    operands = kernel.operands
    tile = (Dim.const(costs.TILE_HEIGHT), Dim.const(width))
    tiled = tuple(o._replace(strides=_tiled(o.strides, width)) for o in operands)
    right = tuple(o._replace(offset=o.offset + across * width * o.strides[-1]) for o in operands)
    rest = _copy_of(kernel, (*outer, rows, length - across * width), right)
    return [_copy_of(kernel, (*outer, down, across, *tile), tiled), *_tiles(rest, narrower)]


def _tiled(strides: tuple[Dim, ...], width: int) -> tuple[Dim, ...]:
    row, element = strides[-2:]
    return (*strides[:-2], row * costs.TILE_HEIGHT, element * width, row, element)


def _copy_of(kernel: Kernel, dims: tuple[Dim, ...], operands: tuple[Operand, ...]) -> Kernel:
    return Kernel(dims, len(dims), operands, kernel.body, kernel.step)


def _with_rows(kernel: Kernel, d: int) -> Kernel:
    """The kernel with loop ``d`` as the last but one."""
    last = len(kernel.dims) - 1
    order = [*(k for k in range(last) if k != d), d, last]
    operands = tuple(
        o._replace(strides=tuple(o.strides[k] for k in order)) for o in kernel.operands
    )
    return _copy_of(kernel, tuple(kernel.dims[k] for k in order), operands)


def _across(kernel: Kernel) -> list[int]:
    """Numbers of operands that are only loaded, and not contiguous along the last loop."""
    written = {i.operand for i in kernel.body if i.op in ("store", "accumulate")}
    return [
        n
        for n, o in enumerate(kernel.operands)
        if n not in written and not o.extra and o.strides[-1].value not in (0, 1)
    ]


def _contiguous(operand: Operand) -> int:
    """The loop along which an operand is contiguous, or -1."""
    return next((d for d, stride in enumerate(operand.strides) if stride.value == 1), -1)


def _is_map(kernel: Kernel) -> bool:
    """Whether points may be visited tile by tile."""
    if len(kernel.dims) < 2 or kernel.split < len(kernel.dims) or kernel.ragged is not None:
        return False
    if has_pairs(kernel):
        return False
    # not if a value depends on a loop counter or the result on the order of writes
    counted = any(i.op == "index" for i in kernel.body)
    return not counted and not any(o.extra for o in kernel.operands)


def _may_be_tiled(kernel: Kernel) -> bool:
    length = kernel.dims[-1].value if kernel.dims else 0
    if not _is_map(kernel) or (length is not None and length < 2 * costs.TILE_WIDTHS[-1]):
        return False
    # with much work per element, latency of the cache lines is hidden without tiles
    return not any(cost(i) >= EXPENSIVE for i in kernel.body)
