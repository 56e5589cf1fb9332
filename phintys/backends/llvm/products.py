"""Products of small matrices, which BLAS is slow to begin with.

A library gets its speed by copying the matrices to where the processor wants them; for matrices
of a few hundred elements that costs more than it gains, and so does asking which routine to take.
Here the target is computed by blocks of some rows and one or two registers, which stay in
registers while the loop over the terms runs (the innermost block of K. Goto and R. van de Geijn,
"Anatomy of high-performance matrix multiplication", 2008, without what surrounds it).
"""

from __future__ import annotations

from functools import partial

from phintys.backends.llvm.instructions import KernelWriter, Type, select
from phintys.backends.llvm.loops import counted_loop
from phintys.backends.llvm.target import vector_bits

#: No size may be larger; then the second factor fits `_SCRATCH`.
LARGEST = 32
_SCRATCH = LARGEST * LARGEST

#: Rows of a block: what two registers for each of them, and three more, leave of 16 registers.
_ROWS = 4


def text(dtype: str, symbol: str) -> str:
    """The module with a function that computes ``c[m, n] = alpha * a @ b + beta * c``.

    Strides are in elements; those of ``a`` and ``b`` are any, the rows of ``c`` are contiguous.
    """
    return _Product(dtype).text(symbol)


class _Product:
    """Writes the function for one dtype."""

    def __init__(self, dtype: str) -> None:
        self.one = Type(dtype)
        self.vector = Type(dtype, vector_bits() // self.one.bits)
        self.w = KernelWriter()

    def text(self, symbol: str) -> str:
        w, cell = self.w, self.one.text
        scratch = w.stack(f"[{_SCRATCH} x {cell}]")
        straight, copy, multiply = w.name("straight"), w.name("copy"), w.name("multiply")
        w.branch(w("icmp eq i64 %bu, 1"), straight, copy)
        w.label(straight)
        w.line(f"br label %{multiply}")
        w.label(copy)
        self._pack(scratch)
        w.line(f"br label %{multiply}")
        copied = w.block
        w.label(multiply)
        self.b = w(f"phi ptr [%b, %{straight}], [{scratch}, %{copied}]")
        self.bs = w(f"phi i64 [%bs, %{straight}], [%n, %{copied}]")
        self._multiply()
        w.line("ret void")
        matrices = ", ".join(f"ptr %{x}, i64 %{x}s, i64 %{x}u" for x in "ab")
        sizes = f"i64 %m, i64 %n, i64 %k, {cell} %alpha, ptr %c, i64 %cs"
        function = w.text(f"void @{symbol}({sizes}, {matrices}, {cell} %beta)")
        return "\n".join([*sorted(w.declares), function])

    def _pack(self, scratch: str) -> None:
        """Copy b so that its rows are contiguous."""
        w, cell = self.w, self.one.text

        def row(i: str, _: list[str]) -> list[str]:
            source, target = self._at("%b", i, "%bs"), self._at(scratch, i, "%n")

            def element(j: str, _: list[str]) -> list[str]:
                x = w(f"load {cell}, ptr {self._at(source, j, '%bu')}")
                w.line(f"store {cell} {x}, ptr {self._at(target, j)}")
                return []

            counted_loop(w, ("0", "%n", 1), [], [], element)
            return []

        counted_loop(w, ("0", "%k", 1), [], [], row)

    # ------------------------------------------------------------------------- the blocks

    def _multiply(self) -> None:
        """All blocks: first as high and wide ones as can be."""
        w, width = self.w, self.vector.width
        self.alpha, self.beta = (w.splat(self.vector, x) for x in ("%alpha", "%beta"))
        self.fresh = w(f"fcmp oeq {self.vector.text} {self.beta}, {self.vector.literal(0)}")
        self.wide, self.whole = (w(f"and i64 %n, {-x}") for x in (2 * width, width))
        self.mask = self._mask(w(f"sub i64 %n, {self.whole}"))
        high = w(f"and i64 %m, {-_ROWS}")
        counted_loop(w, ("0", high, _ROWS), [], [], partial(self._panel, _ROWS))
        counted_loop(w, (high, "%m", 1), [], [], partial(self._panel, 1))

    def _panel(self, rows: int, i: str, _: list[str]) -> list[str]:
        """The blocks beside each other from row ``i`` on."""
        a, c = self._at("%a", i, "%as"), self._at("%c", i, "%cs")
        parts = ("0", self.wide, 2), (self.wide, self.whole, 1), (self.whole, "%n", 0)
        for start, stop, registers in parts:

            def block(j: str, _: list[str], registers: int = registers) -> list[str]:
                self._block(rows, registers, a, self._at(self.b, j), self._at(c, j))
                return []

            step = max(registers, 1) * self.vector.width
            counted_loop(self.w, (start, stop, step), [], [], block)
        return []

    def _mask(self, count: str) -> str:
        """Which lanes of a register the last columns fill, ``count`` of them."""
        w, width = self.w, self.vector.width
        lanes = ", ".join(f"i64 {lane}" for lane in range(width))
        counts = w.splat(Type("int64", width), count)
        return w(f"icmp slt <{width} x i64> <{lanes}>, {counts}")

    def _block(self, rows: int, registers: int, a: str, b: str, c: str) -> None:
        """A block of the target; without registers it is what `mask` leaves of one."""
        w, t, masked = self.w, self.vector, not registers
        count = max(registers, 1)
        distances = [w(f"mul i64 %as, {i}") for i in range(rows)]

        def term(term: str, sums: list[str]) -> list[str]:
            row = self._at(b, term, self.bs)
            factors = [self._load(self._at(row, str(v * t.width)), masked) for v in range(count)]
            left, new = self._at(a, term, "%au"), []
            for i in range(rows):
                x = w(f"load {t.scalar}, ptr {self._at(left, distances[i])}")
                x = w.splat(t, x)
                for v, y in enumerate(factors):
                    new.append(w.intrinsic("fmuladd", t, x, y, sums[i * count + v]))
            return new

        zeros = [t.literal(0)] * (rows * count)
        sums = counted_loop(w, ("0", "%k", 1), [t] * len(zeros), zeros, term)
        for number, x in enumerate(sums):
            i, v = divmod(number, count)
            place = self._at(self._at(c, str(i), "%cs"), str(v * t.width))
            self._put(place, w(f"fmul {t.text} {self.alpha}, {x}"), masked)

    def _put(self, place: str, new: str, masked: bool) -> None:
        """Store what is new and ``beta`` times what is there, which may be NaN if beta is 0."""
        w, t = self.w, self.vector
        old = select(w, t, self.fresh, t.literal(0), self._load(place, masked))
        self._store(w.intrinsic("fmuladd", t, self.beta, old, new), place, masked)

    # ------------------------------------------------------------------------------ memory

    def _at(self, base: str, index: str, stride: str = "1") -> str:
        """The address of an element."""
        offset = index if stride == "1" else self.w(f"mul i64 {index}, {stride}")
        return self.w(f"getelementptr {self.one.text}, ptr {base}, i64 {offset}")

    def _load(self, place: str, masked: bool) -> str:
        w, t = self.w, self.vector
        if not masked:
            return w(f"load {t.text}, ptr {place}, align {t.bytes}")
        arguments = [("ptr", place), ("i32", str(t.bytes)), (t.of("bool").text, self.mask)]
        arguments.append((t.text, t.literal(0)))
        return w.extern(f"llvm.masked.load.{t.suffix}.p0", t.text, arguments)

    def _store(self, x: str, place: str, masked: bool) -> None:
        w, t = self.w, self.vector
        if not masked:
            w.line(f"store {t.text} {x}, ptr {place}, align {t.bytes}")
            return
        types = f"{t.text} {x}, ptr {place}, i32 {t.bytes}, {t.of('bool').text} {self.mask}"
        name = f"@llvm.masked.store.{t.suffix}.p0"
        w.declares.add(f"declare void {name}({t.text}, ptr, i32, {t.of('bool').text})")
        w.line(f"call void {name}({types})")
