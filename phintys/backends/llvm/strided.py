"""Arguments in another memory layout: copies that are faster than NumPy's.

The copy is a library of its own, generated when functions have been called with some arrays that
are not contiguous, or with a large one: loops over elements of each size, and ``strided.ll``, which
leads them through arrays of any rank.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from pathlib import Path
from string import Template
from typing import Any

from phintys.backends.llvm.deferred import Deferred
from phintys.backends.llvm.instructions import KernelWriter
from phintys.backends.llvm.jit import Library, compile_ir
from phintys.backends.llvm.loops import counted_loop
from phintys.backends.llvm.transposed import copy_squares, side
from phintys.backends.once import once

#: Generating the library takes as long as NumPy's copies of so many arrays of so many elements:
#: until then it is not worth it.
_PATIENCE, _FEW = 64, 1024

#: Bytes of an element -> its type, which is only moved, and how many are moved at once
_CELLS = {1: ("i8", 8), 2: ("i16", 8), 4: ("float", 8), 8: ("double", 4)}

#: The size of a tile, and the least number of elements that are worth tiles.
_HEIGHT, _WIDTH = 16, 64
_LARGE = 2**12

_ARGUMENTS = "ptr %to, ptr %from, i64 %rows, i64 %length, i64 %to.row, i64 %from.row, i64 %step"

_SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    *([ctypes.c_void_p] * 2),
    ctypes.c_int64,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_void_p,
    ctypes.c_int64,
)


@once
def symbols() -> dict[str, int]:
    """What ``runtime.ll`` refers to: where the address of the copying function is kept."""
    return {"phintys_strided": _deferred().cell}


@once
def _deferred() -> Deferred:
    calls = itertools.count()

    def left_to_numpy(*args: Any) -> int | None:
        _, _, rank, dims, *_ = args
        return 0 if math.prod(dims[:rank]) < _FEW and next(calls) < _PATIENCE else None

    return Deferred(_SIGNATURE, lambda: library().address("strided"), left_to_numpy)


@once
def library() -> Library:
    """The library with ``strided``."""

    def text() -> str:
        file = Template((Path(__file__).parent / "strided.ll").read_text())
        numbers = {"height": _HEIGHT, "width": _WIDTH, "large": _LARGE}
        return "\n".join([file.substitute(numbers), *map(tile, _CELLS)])

    return compile_ir(text, name="strided")


def _elements(size: int) -> str:
    """The text of ``elements<size>``, which copies two axes."""
    (cell, width), w = _CELLS[size], KernelWriter()
    vector = f"<{width} x {cell}>"
    steps = [w(f"mul i64 %step, {k}") for k in range(width)]
    whole = w(f"and i64 %length, {-width}")

    def row(i: str, _: list[str]) -> list[str]:
        near, far = (w.at(f"%{x}", w(f"mul i64 {i}, %{x}.row")) for x in ("from", "to"))

        def places(j: str) -> tuple[str, str]:
            return w.at(near, w(f"mul i64 {j}, %step")), w.at(far, w(f"mul i64 {j}, {size}"))

        def several(j: str, _: list[str]) -> list[str]:
            (source, target), x = places(j), "poison"
            for k, step in enumerate(steps):
                one = w(f"load {cell}, ptr {w.at(source, step)}")
                x = w(f"insertelement {vector} {x}, {cell} {one}, i64 {k}")
            w.line(f"store {vector} {x}, ptr {target}, align {size}")
            return []

        def single(j: str, _: list[str]) -> list[str]:
            source, target = places(j)
            w.line(f"store {cell} {w(f'load {cell}, ptr {source}')}, ptr {target}")
            return []

        counted_loop(w, ("0", whole, width), [], [], several)
        counted_loop(w, (whole, "%length", 1), [], [], single)
        return []

    counted_loop(w, ("0", "%rows", 1), [], [], row)
    w.line("ret void")
    return w.text(f"internal void @elements{size}({_ARGUMENTS}) noinline")


def tile(size: int) -> str:
    """The text of ``tile<size>``, which copies two axes: by squares if the rows are next to each
    other in memory, with single elements below and on the right of whole squares."""
    w, width = KernelWriter(), side(size)
    crosswise, otherwise = w.name("crosswise"), w.name("otherwise")
    w.branch(w(f"icmp eq i64 %from.row, {size}"), crosswise, otherwise)
    w.label(crosswise)
    high, wide = w(f"and i64 %rows, {-width}"), w(f"and i64 %length, {-width}")

    def turn(column: str, _: list[str]) -> list[str]:
        near = w.at("%from", w(f"mul i64 {column}, %step"))
        far = w.at("%to", w(f"mul i64 {column}, {size}"))
        copy_squares(w, _CELLS[size][0], size, (near, "%step"), (far, "%to.row"), high)
        return []

    def elements(down: str, across: str, rows: str, length: str) -> None:
        to = w.at(w.at("%to", w(f"mul i64 {down}, %to.row")), w(f"mul i64 {across}, {size}"))
        near = w.at(w.at("%from", w(f"mul i64 {down}, %from.row")), w(f"mul i64 {across}, %step"))
        sizes = f"i64 {rows}, i64 {length}, i64 %to.row, i64 %from.row, i64 %step"
        w.line(f"call void @elements{size}(ptr {to}, ptr {near}, {sizes})")

    counted_loop(w, ("0", wide, width), [], [], turn)
    elements("0", wide, high, w(f"sub i64 %length, {wide}"))
    elements(high, "0", w(f"sub i64 %rows, {high}"), "%length")
    w.line("ret void")
    w.label(otherwise)
    elements("0", "0", "%rows", "%length")
    w.line("ret void")
    return _elements(size) + w.text(f"internal void @tile{size}({_ARGUMENTS}) noinline")
