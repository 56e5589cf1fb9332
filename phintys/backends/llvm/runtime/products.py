"""Products with few columns, mainly small ones, for which BLAS is slow.

BLAS packs the matrices; where each of their elements is used only a few times, that costs more than
it gains, and so does the selection of a routine.  Here the result is computed by blocks of some
rows and one or two vectors, whose accumulators stay in registers in the loop over the terms (the
micro-kernel of K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication",
2008, with little around it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.loops import counted_loop
from phintys.backends.llvm.ir.types import KernelWriter, Type
from phintys.backends.llvm.machine.target import Target
from phintys.backends.llvm.runtime.strided import tile


def library_text(name: str, dtype: str, target: Target) -> str:
    """The text of the library with ``product``, ``short``, ``narrow`` or ``dots``.

    ``product`` computes ``c[m, n] = alpha * a @ b + beta * c`` for each item of a batch, as do
    ``short`` for columns of less than two vectors and ``narrow`` for less than one, whose code is
    small.  ``dots`` computes the same for one item where b and c are vectors.  Strides are in
    elements; those from item to item are the last ones of an operand.  Those of ``a`` and ``b`` of
    a product are arbitrary.  Rows of ``c``, and all rows and vectors of ``dots``, are contiguous.
    The order of operations for an element depends only on the numbers of terms and columns.
    """
    writer = _WRITERS[name](dtype, target)
    function = writer.text()
    return "\n".join([*sorted(writer.w.declares), writer.helpers(), function])


def _has_many_registers(target: Target) -> bool:
    """Whether 16 sums, which larger blocks have, leave registers for the factors."""
    return target.registers >= 32


class _Writer(ABC):
    """Base class of the emitters of functions for one dtype."""

    def __init__(self, dtype: str, target: Target) -> None:
        self.one = Type(dtype)
        self.vector = Type(dtype, target.lanes(self.one.bytes))
        self.w = KernelWriter(target)

    @abstractmethod
    def text(self) -> str:
        """The text of the function."""

    def helpers(self) -> str:
        """The text of the functions that it calls."""
        return ""

    def factors(self, alpha: str, beta: str) -> None:
        """Emit broadcasts of the factors of `put`."""
        w, t = self.w, self.vector
        self.alpha, self.beta = w.splat(t, alpha), w.splat(t, beta)
        self.fresh = w(f"fcmp oeq {t.scalar} {beta}, {self.one.literal(0)}")

    def lanes_below(self, count: str) -> str:
        """Emit the mask of the first ``count`` lanes."""
        w, width = self.w, self.vector.width
        lanes = ", ".join(f"i64 {lane}" for lane in range(width))
        counts = w.splat(Type("int64", width), count)
        below = w(f"icmp slt <{width} x i64> <{lanes}>, {counts}")
        # frozen, or LLVM would sink the comparison into each iteration of a loop
        return w(f"freeze <{width} x i1> {below}")

    def at(self, base: str, index: str, stride: str = "1") -> str:
        """Emit the address of an element."""
        offset = index if stride == "1" else self.w(f"mul i64 {index}, {stride}")
        return self.w(f"getelementptr {self.one.text}, ptr {base}, i64 {offset}")

    def load(self, place: str, mask: str) -> str:
        """Emit the load of a vector; a masked load if there is a mask."""
        w, t = self.w, self.vector
        if not mask:
            return w(f"load {t.text}, ptr {place}, align {t.bytes}")
        arguments = [("ptr", place), ("i32", str(t.bytes)), (t.of("bool").text, mask)]
        arguments.append((t.text, t.literal(0)))
        return w.extern(f"llvm.masked.load.{t.suffix}.p0", t.text, arguments)

    def put(self, places: list[str], new: list[str], mask: str) -> None:
        """Emit stores of ``alpha * new + beta * old``; the old value is not read if beta is 0.

        Places may be equal if the new values for them are.
        """
        w, t = self.w, self.vector
        new = [w(f"fmul {t.text} {self.alpha}, {x}") for x in new]
        onto, after, before = w.name("onto"), w.name("after"), w.block
        w.branch(self.fresh, after, onto)
        w.label(onto)
        olds = [self.load(place, mask) for place in places]
        sums = [w.intrinsic("fmuladd", t, self.beta, old, x) for old, x in zip(olds, new)]
        w.line(f"br label %{after}")
        w.label(after)
        kept = [
            w(f"phi {t.text} [{x}, %{before}], [{both}, %{onto}]") for x, both in zip(new, sums)
        ]
        for place, x in zip(places, kept, strict=True):
            self.store(place, x, mask)

    def store(self, place: str, x: str, mask: str) -> None:
        """Emit the store of a vector; a masked store if there is a mask."""
        w, t = self.w, self.vector
        if not mask:
            w.line(f"store {t.text} {x}, ptr {place}, align {t.bytes}")
            return
        types = f"{t.text} {x}, ptr {place}, i32 {t.bytes}, {t.of('bool').text} {mask}"
        name = f"@llvm.masked.store.{t.suffix}.p0"
        w.declares.add(f"declare void {name}({t.text}, ptr, i32, {t.of('bool').text})")
        w.line(f"call void {name}({types})")


class _Product(_Writer):
    """Emits ``product``."""

    name = "product"

    def vectors(self) -> tuple[int, ...]:
        """The numbers of vectors of columns for which there is a loop, descending."""
        return (4, 2, 1) if _has_many_registers(self.w.target) else (2, 1)

    def text(self) -> str:
        w, cell, width = self.w, self.one.text, self.vector.width
        self.scratch = w.stack(f"[{costs.PRODUCT_TERMS * costs.PRODUCT_COLUMNS} x {cell}]", 64)
        self.ends = {count: w(f"and i64 %n, {-count * width}") for count in self.vectors()}
        self.eights, self.last = w("and i64 %m, -8"), w("sub i64 %m, 1")
        self.rest = self.lanes_below(w(f"sub i64 %n, {self.ends.get(1, '0')}"))
        counted_loop(w, ("0", "%count", 1), [], [], self._item)
        w.line("ret void")
        matrices = ", ".join(f"ptr %{x}, i64 %{x}s, i64 %{x}u, i64 %{x}t" for x in "ab")
        sizes = f"i64 %count, i64 %m, i64 %n, i64 %k, {cell} %alpha, ptr %c, i64 %cs, i64 %ct"
        return w.text(f"void @{self.name}({sizes}, {matrices}, {cell} %beta)")

    def _item(self, item: str, _: list[str]) -> list[str]:
        """Emit the product of an item of the batch."""
        self.item = {x: self.at(f"%{x}", item, f"%{x}t") for x in "abc"}
        # c is set even if there are no terms
        some = self.w.intrinsic("smax", Type("int64"), "%k", "1")
        counted_loop(self.w, ("0", some, costs.PRODUCT_TERMS), [], [], self._terms)
        return []

    def helpers(self) -> str:
        return tile(self.w.target, self.one.bytes)

    def _terms(self, start: str, _: list[str]) -> list[str]:
        """Emit the sum of some terms; the first ones are added to beta times the target."""
        w, t = self.w, self.vector
        left = w(f"sub i64 %k, {start}")
        self.count = w.intrinsic("smin", Type("int64"), left, str(costs.PRODUCT_TERMS))
        first = w(f"icmp eq i64 {start}, 0")
        beta = w(f"select i1 {first}, {t.scalar} %beta, {t.scalar} {self.one.literal(1)}")
        self.factors("%alpha", beta)
        self.a = self.at(self.item["a"], start, "%au")
        self.b, self.bs = self._rows(self.at(self.item["b"], start, "%bs"))
        start = "0"
        for vectors, stop in self.ends.items():
            self._columns(start, stop, vectors)
            start = stop
        self._columns(start, "%n", 1, self.rest)
        return []

    def _rows(self, b: str) -> tuple[str, str]:
        """Emit address and stride of the rows of the second factor, packed if not contiguous."""
        w = self.w
        copy, multiply, before = w.name("copy"), w.name("multiply"), w.block
        w.branch(w("icmp eq i64 %bu, 1"), multiply, copy)
        w.label(copy)
        self._pack(b)
        after = w.block
        w.line(f"br label %{multiply}")
        w.label(multiply)
        base = w(f"phi ptr [{b}, %{before}], [{self.scratch}, %{after}]")
        return base, w(f"phi i64 [%bs, %{before}], [%n, %{after}]")

    def _pack(self, b: str) -> None:
        """Emit the copy of rows of the second factor into the scratch memory."""
        w, size = self.w, self.one.bytes
        distances = [w(f"mul i64 {stride}, {size}") for stride in ("%n", "%bs", "%bu")]
        numbers = ", ".join(f"i64 {x}" for x in (self.count, "%n", *distances))
        w.line(f"call void @tile{size}(ptr {self.scratch}, ptr {b}, {numbers})")

    def _columns(self, start: str, stop: str, vectors: int, mask: str = "") -> None:
        """Emit the loop over some columns, a number of vectors at once."""
        w = self.w
        tall = _has_many_registers(w.target) and vectors < 4 and not mask

        def block(j: str, _: list[str]) -> list[str]:
            if tall:
                self._panels("0", self.eights, (8, vectors), j, mask)
            first = self.eights if tall else "0"
            self._panels(first, "%m", (costs.PRODUCT_ROWS, vectors), j, mask)
            return []

        counted_loop(w, (start, stop, vectors * self.vector.width), [], [], block)

    def _panels(self, start: str, stop: str, size: tuple[int, int], j: str, mask: str) -> None:
        """Emit the loop over some rows, by blocks of (rows, vectors) from column ``j`` on.

        Rows beyond the last one are replaced by the last one, which is then computed several times.
        """
        w = self.w

        def panel(i: str, _: list[str]) -> list[str]:
            rows = [w(f"add i64 {i}, {k}") for k in range(size[0])]
            if stop == "%m":
                rows = [w.intrinsic("smin", Type("int64"), row, self.last) for row in rows]
            self._block(rows, j, size[1], mask)
            return []

        counted_loop(w, (start, stop, size[0]), [], [], panel)

    def _block(self, rows: list[str], j: str, vectors: int, mask: str) -> None:
        """Emit a block of the target: some vectors of each row, from column ``j`` on."""
        w, t, b = self.w, self.vector, self.at(self.b, j)
        lefts = [self.at(self.a, row, "%as") for row in rows]
        targets = [self.at(self.at(self.item["c"], row, "%cs"), j) for row in rows]
        starts = [str(k * t.width) for k in range(vectors)]

        def term(term: str, sums: list[str]) -> list[str]:
            right = self.at(b, term, self.bs)
            factors = [self.load(self.at(right, start), mask) for start in starts]
            offset = w(f"mul i64 {term}, %au")
            new, old = [], iter(sums)
            for left in lefts:
                x = w.splat(t, w(f"load {t.scalar}, ptr {self.at(left, offset)}"))
                new += [w.intrinsic("fmuladd", t, x, factor, next(old)) for factor in factors]
            return new

        zeros = [t.literal(0)] * (len(rows) * vectors)
        sums = counted_loop(w, ("0", self.count, 1), [t] * len(zeros), zeros, term)
        places = [self.at(target, start) for target in targets for start in starts]
        self.put(places, sums, mask)


class _Short(_Product):
    """Emits ``short``."""

    name = "short"

    def vectors(self) -> tuple[int, ...]:
        return (1,)


class _Narrow(_Product):
    """Emits ``narrow``."""

    name = "narrow"

    def vectors(self) -> tuple[int, ...]:
        return ()

    def helpers(self) -> str:
        return ""

    def _columns(self, start: str, stop: str, vectors: int, mask: str = "") -> None:
        self._panels("0", "%m", (costs.PRODUCT_ROWS, vectors), start, mask)

    def _pack(self, b: str) -> None:
        w = self.w

        def row(term: str, _: list[str]) -> list[str]:
            source = self.at(b, term, "%bs")
            target = self.at(self.scratch, term, "%n")
            counted_loop(w, ("0", "%n", 1), [], [], lambda j, _: self._move(source, target, j))
            return []

        counted_loop(w, ("0", self.count, 1), [], [], row)

    def _move(self, source: str, target: str, column: str) -> list[str]:
        """Emit the copy of an element of a row."""
        w, cell = self.w, self.one.text
        x = w(f"load {cell}, ptr {self.at(source, column, '%bu')}")
        w.line(f"store {cell} {x}, ptr {self.at(target, column)}")
        return []


class _Dots(_Writer):
    """Emits ``dots``: as many rows at once as a register has lanes.

    A horizontal reduction of all sums then yields a vector with the sum of one row in each lane.
    """

    def text(self) -> str:
        w, cell, width = self.w, self.one.text, self.vector.width
        self.factors("%alpha", "%beta")
        self.whole = w(f"and i64 %k, {-width}")
        self.mask = self.lanes_below(w(f"sub i64 %k, {self.whole}"))
        # a single row may have any stride
        self.row = w.intrinsic("smax", Type("int64"), "%as", "0")
        self.distances = [w(f"mul i64 {self.row}, {lane}") for lane in range(width)]
        self.last = w(f"mul i64 {self.row}, {w('sub i64 %m, 1')}")
        counted_loop(w, ("0", "%m", width), [], [], self._rows)
        w.line("ret void")
        sizes = f"i64 %m, i64 %k, {cell} %alpha, ptr %c, ptr %a, i64 %as, ptr %b"
        return w.text(f"void @dots({sizes}, {cell} %beta)")

    def _rows(self, i: str, _: list[str]) -> list[str]:
        """Emit the dot products of rows from ``i`` on; the last row replaces those beyond it."""
        w, t = self.w, self.vector
        first = w(f"mul i64 {i}, {self.row}")
        rows = [w(f"add i64 {first}, {distance}") for distance in self.distances]
        starts = [self.at("%a", w.intrinsic("smin", Type("int64"), row, self.last)) for row in rows]

        def add(mask: str, at: str, sums: list[str]) -> list[str]:
            y = self.load(self.at("%b", at), mask)
            xs = [self.load(self.at(start, at), mask) for start in starts]
            return [w.intrinsic("fmuladd", t, x, y, s) for x, s in zip(xs, sums, strict=True)]

        types, zeros = [t] * t.width, [t.literal(0)] * t.width
        sums = counted_loop(w, ("0", self.whole, t.width), types, zeros, partial(add, ""))
        sums = counted_loop(w, (self.whole, "%k", t.width), types, sums, partial(add, self.mask))
        self.put([self.at("%c", i)], [self._folded(sums)], self.lanes_below(w(f"sub i64 %m, {i}")))
        return []

    def _folded(self, sums: list[str]) -> str:
        """Emit the horizontal sums of several registers, as the lanes of one.

        Each pass adds pairs of registers.  ``size`` lanes, of as many rows, form a unit, of which a
        register has several; adjacent units are added.
        """
        w, t, size = self.w, self.vector, 1
        while len(sums) > 1:
            pairs = zip(sums[::2], sums[1::2], strict=True)
            sums = [
                w(f"fadd {t.text} {self._units(*pair, size, 0)}, {self._units(*pair, size, 1)}")
                for pair in pairs
            ]
            size *= 2
        return sums[0]

    def _units(self, a: str, b: str, size: int, first: int) -> str:
        """Emit a shuffle that interleaves every other unit of two registers."""
        w, t = self.w, self.vector
        lanes = [
            source + unit * size + lane
            for unit in range(first, t.width // size, 2)
            for source in (0, t.width)
            for lane in range(size)
        ]
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return w(f"shufflevector {t.text} {a}, {t.text} {b}, <{t.width} x i32> <{mask}>")


_WRITERS: dict[str, type[_Writer]] = {
    "product": _Product,
    "short": _Short,
    "narrow": _Narrow,
    "dots": _Dots,
}
