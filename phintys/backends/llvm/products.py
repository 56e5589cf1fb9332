"""Products with few columns, small ones above all, which BLAS is slow at.

A library gets its speed by copying the matrices to where the processor wants them; where each of
their elements is used only some times, that costs more than it gains, and so does asking which
routine to take.  Here the target is computed by blocks of some rows and one or two registers,
which stay in registers while the loop over the terms runs (the innermost block of K. Goto and R.
van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, and little around it).
"""

from __future__ import annotations

import ctypes
import itertools
from functools import partial
from typing import Any

from phintys.backends.llvm.deferred import Deferred
from phintys.backends.llvm.instructions import KernelWriter, Type, select
from phintys.backends.llvm.jit import Library, compile_ir
from phintys.backends.llvm.loops import counted_loop
from phintys.backends.llvm.strided import tile
from phintys.backends.llvm.target import vector_bits
from phintys.backends.llvm.transposed import columns
from phintys.backends.once import once

#: The target may have so many columns.
LARGEST = 32

#: The first calls are left to BLAS: generating the functions takes longer than all else in a small
#: program, and what is called only now and then should answer at once.
_PATIENCE = 200

#: Terms that are added up in one turn: that part of the second factor fits the nearest cache.
_TERMS = 128

#: Rows of a block: what two registers for each of them, and three more, leave of 16 registers.
_ROWS = 4


@once
def deferred(dtype: str) -> dict[str, Deferred]:
    """``product`` and ``dots`` for a dtype; until they are worth generating they do nothing, 0."""
    calls = itertools.count()

    def left_to_blas(*_: Any) -> int | None:
        return 0 if next(calls) < _PATIENCE else None

    number = ctypes.c_float if dtype == "float32" else ctypes.c_double
    size, pointer = ctypes.c_int64, ctypes.c_void_p
    strided, matrix = [pointer, size], [pointer, size, size]
    arguments = {
        "product": [size, size, size, number, *strided, *matrix, *matrix, number],
        "dots": [size, size, number, pointer, *strided, pointer, number],
    }

    def routine(name: str) -> Deferred:
        signature = ctypes.CFUNCTYPE(ctypes.c_int, *arguments[name])
        return Deferred(signature, lambda: library(dtype).address(name), left_to_blas)

    return {name: routine(name) for name in arguments}


@once
def library(dtype: str) -> Library:
    """The library with ``product``: ``c[m, n] = alpha * a @ b + beta * c``, and ``dots``: the same
    where b and c are vectors.  They return 1.

    Strides are in elements.  Those of ``a`` and ``b`` of a product are any.  Rows of ``c``, and all
    rows and vectors of ``dots``, are contiguous.
    """

    def text() -> str:
        product, dots = _Product(dtype), _Dots(dtype)
        functions = [product.text(), dots.text()]
        declares = sorted(product.w.declares | dots.w.declares)
        return "\n".join([*declares, tile(product.one.bytes), *functions])

    return compile_ir(text, name=f"products.{dtype}")


class _Writer:
    """What functions for one dtype have in common."""

    def __init__(self, dtype: str) -> None:
        self.one = Type(dtype)
        self.vector = Type(dtype, vector_bits() // self.one.bits)
        self.w = KernelWriter()

    def factors(self, alpha: str, beta: str) -> None:
        """Say what `put` multiplies by."""
        w, t = self.w, self.vector
        self.alpha, self.beta = w.splat(t, alpha), w.splat(t, beta)
        self.fresh = w(f"fcmp oeq {t.text} {self.beta}, {t.literal(0)}")

    def lanes_below(self, count: str) -> str:
        """Which lanes of a register the last columns fill, ``count`` of them."""
        w, width = self.w, self.vector.width
        lanes = ", ".join(f"i64 {lane}" for lane in range(width))
        counts = w.splat(Type("int64", width), count)
        return w(f"icmp slt <{width} x i64> <{lanes}>, {counts}")

    def at(self, base: str, index: str, stride: str = "1") -> str:
        """The address of an element."""
        offset = index if stride == "1" else self.w(f"mul i64 {index}, {stride}")
        return self.w(f"getelementptr {self.one.text}, ptr {base}, i64 {offset}")

    def load(self, place: str, mask: str) -> str:
        """The register at an address; with a mask, of these lanes only."""
        w, t = self.w, self.vector
        if not mask:
            return w(f"load {t.text}, ptr {place}, align {t.bytes}")
        arguments = [("ptr", place), ("i32", str(t.bytes)), (t.of("bool").text, mask)]
        arguments.append((t.text, t.literal(0)))
        return w.extern(f"llvm.masked.load.{t.suffix}.p0", t.text, arguments)

    def put(self, place: str, new: str, mask: str) -> None:
        """Store what is new and ``beta`` times what is there, which may be NaN if beta is 0."""
        w, t = self.w, self.vector
        old = select(w, t, self.fresh, t.literal(0), self.load(place, mask))
        x = w.intrinsic("fmuladd", t, self.beta, old, w(f"fmul {t.text} {self.alpha}, {new}"))
        if not mask:
            w.line(f"store {t.text} {x}, ptr {place}, align {t.bytes}")
            return
        types = f"{t.text} {x}, ptr {place}, i32 {t.bytes}, {t.of('bool').text} {mask}"
        name = f"@llvm.masked.store.{t.suffix}.p0"
        w.declares.add(f"declare void {name}({t.text}, ptr, i32, {t.of('bool').text})")
        w.line(f"call void {name}({types})")


class _Product(_Writer):
    """Writes ``product``."""

    def text(self) -> str:
        w, cell, width = self.w, self.one.text, self.vector.width
        self.scratch = w.stack(f"[{_TERMS * LARGEST} x {cell}]", 64)
        self.wide, self.whole = (w(f"and i64 %n, {-x}") for x in (2 * width, width))
        self.mask = self.lanes_below(w(f"sub i64 %n, {self.whole}"))
        self.high = w(f"and i64 %m, {-_ROWS}")
        some = w.intrinsic("smax", Type("int64"), "%k", "1")  # without terms c is still to be set
        counted_loop(w, ("0", some, _TERMS), [], [], self._terms)
        w.line("ret i32 1")
        matrices = ", ".join(f"ptr %{x}, i64 %{x}s, i64 %{x}u" for x in "ab")
        sizes = f"i64 %m, i64 %n, i64 %k, {cell} %alpha, ptr %c, i64 %cs"
        return w.text(f"i32 @product({sizes}, {matrices}, {cell} %beta)")

    def _terms(self, start: str, _: list[str]) -> list[str]:
        """Add some terms up; the first of them are added to beta times the target."""
        w, t = self.w, self.vector
        left = w(f"sub i64 %k, {start}")
        self.count = w.intrinsic("smin", Type("int64"), left, str(_TERMS))
        first = w(f"icmp eq i64 {start}, 0")
        beta = w(f"select i1 {first}, {t.scalar} %beta, {t.scalar} {self.one.literal(1)}")
        self.factors("%alpha", beta)
        self.a = self.at("%a", start, "%au")
        self.b, self.bs = self._rows(self.at("%b", start, "%bs"))
        counted_loop(w, ("0", self.high, _ROWS), [], [], partial(self._panel, _ROWS))
        counted_loop(w, (self.high, "%m", 1), [], [], partial(self._panel, 1))
        return []

    def _rows(self, b: str) -> tuple[str, str]:
        """Address and distance of the rows of the second factor, copied if they have gaps."""
        w, size = self.w, self.one.bytes
        copy, multiply, before = w.name("copy"), w.name("multiply"), w.block
        w.branch(w("icmp eq i64 %bu, 1"), multiply, copy)
        w.label(copy)
        distances = [w(f"mul i64 {stride}, {size}") for stride in ("%n", "%bs", "%bu")]
        numbers = ", ".join(f"i64 {x}" for x in (self.count, "%n", *distances))
        w.line(f"call void @tile{size}(ptr {self.scratch}, ptr {b}, {numbers})")
        w.line(f"br label %{multiply}")
        w.label(multiply)
        base = w(f"phi ptr [{b}, %{before}], [{self.scratch}, %{copy}]")
        return base, w(f"phi i64 [%bs, %{before}], [%n, %{copy}]")

    def _panel(self, rows: int, i: str, _: list[str]) -> list[str]:
        """The blocks beside each other from row ``i`` on."""
        a, c = self.at(self.a, i, "%as"), self.at("%c", i, "%cs")
        parts = ("0", self.wide, 2), (self.wide, self.whole, 1), (self.whole, "%n", 0)
        for start, stop, registers in parts:

            def block(j: str, _: list[str], registers: int = registers) -> list[str]:
                self._block(rows, registers, a, self.at(self.b, j), self.at(c, j))
                return []

            step = max(registers, 1) * self.vector.width
            counted_loop(self.w, (start, stop, step), [], [], block)
        return []

    def _block(self, rows: int, registers: int, a: str, b: str, c: str) -> None:
        """A block of the target; without registers it is what `mask` leaves of one."""
        w, t, mask = self.w, self.vector, "" if registers else self.mask
        count = max(registers, 1)
        distances = [w(f"mul i64 %as, {i}") for i in range(rows)]

        def term(term: str, sums: list[str]) -> list[str]:
            row = self.at(b, term, self.bs)
            factors = [self.load(self.at(row, str(v * t.width)), mask) for v in range(count)]
            left, new = self.at(a, term, "%au"), []
            for i in range(rows):
                x = w(f"load {t.scalar}, ptr {self.at(left, distances[i])}")
                x = w.splat(t, x)
                for v, y in enumerate(factors):
                    new.append(w.intrinsic("fmuladd", t, x, y, sums[i * count + v]))
            return new

        zeros = [t.literal(0)] * (rows * count)
        sums = counted_loop(w, ("0", self.count, 1), [t] * len(zeros), zeros, term)
        for number, x in enumerate(sums):
            i, v = divmod(number, count)
            place = self.at(self.at(c, str(i), "%cs"), str(v * t.width))
            self.put(place, x, mask)


class _Dots(_Writer):
    """Writes ``dots``: as many rows at once as a register has lanes, whose sums are then turned
    so that each lane has the parts of one row."""

    def text(self) -> str:
        w, cell, width = self.w, self.one.text, self.vector.width
        self.factors("%alpha", "%beta")
        self.whole = w(f"and i64 %k, {-width}")
        self.mask = self.lanes_below(w(f"sub i64 %k, {self.whole}"))
        high = w(f"and i64 %m, {-width}")
        rest = w(f"sub i64 %m, {high}")
        counted_loop(w, ("0", high, width), [], [], partial(self._rows, str(width), ""))
        mask = self.lanes_below(rest)
        counted_loop(w, (high, "%m", width), [], [], partial(self._rows, rest, mask))
        w.line("ret i32 1")
        sizes = f"i64 %m, i64 %k, {cell} %alpha, ptr %c, ptr %a, i64 %as, ptr %b"
        return w.text(f"i32 @dots({sizes}, {cell} %beta)")

    def _rows(self, count: str, mask: str, i: str, _: list[str]) -> list[str]:
        """The dot products of some rows from ``i`` on; the last one stands in for those missing."""
        w, t = self.w, self.vector
        a, last = self.at("%a", i, "%as"), w(f"sub i64 {count}, 1")
        lanes = [str(lane) for lane in range(t.width)]
        if mask:
            lanes = [w.intrinsic("smin", Type("int64"), lane, last) for lane in lanes]
        starts = [self.at(a, lane, "%as") for lane in lanes]

        def add(sums: list[str], at: str, mask: str) -> list[str]:
            y = self.load(self.at("%b", at), mask)
            xs = [self.load(self.at(start, at), mask) for start in starts]
            return [w.intrinsic("fmuladd", t, x, y, s) for x, s in zip(xs, sums, strict=True)]

        def term(at: str, sums: list[str]) -> list[str]:
            return add(sums, at, "")

        def left(at: str, sums: list[str]) -> list[str]:
            return add(sums, at, self.mask)

        types, zeros = [t] * t.width, [t.literal(0)] * t.width
        sums = counted_loop(w, ("0", self.whole, t.width), types, zeros, term)
        sums = counted_loop(w, (self.whole, "%k", t.width), types, sums, left)
        parts = columns(w, t.scalar, self.one.bytes, sums)
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [w(f"fadd {t.text} {x}, {y}") for x, y in pairs]
        self.put(self.at("%c", i), parts[0], mask)
        return []
