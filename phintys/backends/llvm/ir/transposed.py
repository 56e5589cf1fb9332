"""Squares of elements, transposed in registers.

Reading a column element by element costs a load for each, and where the row stride is a power of
two all of them map to the same few lines of the L1 cache.  A square with as many rows as a register
has elements is loaded row by row and transposed by shuffles: first blocks of 16 bytes and more are
exchanged, then elements inside blocks of 16 bytes, since shuffles inside 16 bytes are fast.
"""

from __future__ import annotations

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.loops import counted_loop
from phintys.backends.llvm.ir.types import KernelWriter
from phintys.backends.llvm.machine.target import SHUFFLED, Target


def side(target: Target, size: int) -> int:
    """The number of rows and columns of a square of elements of ``size`` bytes."""
    return target.lanes(size, most=costs.MOST_SINGLE_LANES)


def copy_squares(
    w: KernelWriter, cell: str, size: int, source: tuple[str, str], target: tuple[str, str], n: str
) -> None:
    """Emit the transposed copy of all whole squares in ``n`` rows of `side` elements.

    ``source`` and ``target`` are an address and the row stride in bytes.  The rows written
    are the columns of the source.
    """
    (old, step), (new, row), width = source, target, side(w.target, size)
    vector = f"<{width} x {cell}>"
    steps, rows = ([w(f"mul i64 {by}, {k}") for k in range(width)] for by in (step, row))

    def square(first: str, _: list[str]) -> list[str]:
        near = w.at(old, w(f"mul i64 {first}, {size}"))
        far = w.at(new, w(f"mul i64 {first}, {row}"))
        loaded = [w(f"load {vector}, ptr {w.at(near, by)}, align {size}") for by in steps]
        for x, by in zip(columns(w, cell, size, loaded), rows, strict=True):
            w.line(f"store {vector} {x}, ptr {w.at(far, by)}, align {size}")
        return []

    counted_loop(w, ("0", n, width), [], [], square)


def columns(w: KernelWriter, cell: str, size: int, rows: list[str]) -> list[str]:
    """Emit the transposition of a square; registers with its columns, from those with its rows."""
    rows, width = list(rows), len(rows)
    half = min(width, SHUFFLED // size)
    vector = f"<{width} x {cell}>"

    def shuffled(a: str, b: str, lanes: list[int]) -> str:
        mask = f"<{width} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"
        return w(f"shufflevector {vector} {a}, {vector} {b}, {mask}")

    def zipped(a: str, b: str, first: int) -> str:
        starts = [at + first for at in range(0, width, half)]
        firsts = [start + k for start in starts for k in range(half // 2)]
        return shuffled(a, b, [lane for k in firsts for lane in (k, width + k)])

    # exchange the two off-diagonal sub-squares of `block` rows and lanes, for halving sizes
    block = width // 2
    while block >= half:
        low = [lane for lane in range(width) if not lane // block % 2]
        for k in low:
            a, b = rows[k], rows[k + block]
            for at, first in ((k, 0), (k + block, block)):
                lanes = [
                    lane + first + source
                    for start in range(0, width, 2 * block)
                    for source in (0, width)
                    for lane in range(start, start + block)
                ]
                rows[at] = shuffled(a, b, lanes)
        block //= 2
    result = []
    for at in range(0, width, half):
        part = rows[at : at + half]
        for _ in range(half.bit_length() - 1):
            pairs = list(zip(part[: half // 2], part[half // 2 :], strict=True))
            part = [zipped(a, b, first) for a, b in pairs for first in (0, half // 2)]
        result += part
    return result
