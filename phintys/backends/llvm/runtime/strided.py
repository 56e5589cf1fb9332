"""Arguments in another memory layout: copies that are faster than NumPy's.

The copy is a separate library, compiled for the first such argument: loops over elements of each
size, and ``strided.ll``, which calls them for arrays of any rank.
"""

from __future__ import annotations

from pathlib import Path
from string import Template

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.loops import counted_loop
from phintys.backends.llvm.ir.transposed import copy_squares, side
from phintys.backends.llvm.ir.types import KernelWriter
from phintys.backends.llvm.machine.target import Target

#: Bytes of an element -> the type for its loads and stores
_CELLS = {1: "i8", 2: "i16", 4: "float", 8: "double"}

_ARGUMENTS = "ptr %to, ptr %from, i64 %rows, i64 %length, i64 %to.row, i64 %from.row, i64 %step"


def library_text(target: Target) -> str:
    """The text of the library with ``strided``."""
    file = Template((Path(__file__).parent / "strided.ll").read_text())
    numbers = {
        "height": costs.COPY_HEIGHT,
        "width": costs.COPY_WIDTH,
        "large": costs.COPY_ELEMENTS,
    }
    return "\n".join([file.substitute(numbers), *(tile(target, size) for size in _CELLS)])


def _elements(target: Target, size: int) -> str:
    """The text of ``elements<size>``, which copies two axes."""
    cell, w = _CELLS[size], KernelWriter(target)
    width = target.lanes(size, most=costs.MOST_SINGLE_LANES)
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


def tile(target: Target, size: int) -> str:
    """The text of ``tile<size>``, which copies two axes.

    If the rows are adjacent elements in memory it transposes squares in registers, and copies
    single elements below and on the right of whole squares.
    """
    w, width = KernelWriter(target), side(target, size)
    crosswise, otherwise = w.name("crosswise"), w.name("otherwise")
    w.branch(w(f"icmp eq i64 %from.row, {size}"), crosswise, otherwise)
    w.label(crosswise)
    high, wide = w(f"and i64 %rows, {-width}"), w(f"and i64 %length, {-width}")

    def turn(column: str, _: list[str]) -> list[str]:
        near = w.at("%from", w(f"mul i64 {column}, %step"))
        far = w.at("%to", w(f"mul i64 {column}, {size}"))
        copy_squares(w, _CELLS[size], size, (near, "%step"), (far, "%to.row"), high)
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
    return _elements(target, size) + w.text(f"internal void @tile{size}({_ARGUMENTS}) noinline")
