"""Writing LLVM IR as text: names, blocks, and symbolic lengths as 64-bit integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phintys.dims import ZERO, Dim, exact_operands


class Writer:
    """Collects the lines of one function.

    ``head`` holds the lines for the start of the entry block: ``alloca``.  ``block`` is the label
    of the basic block being written, for phi nodes.
    """

    def __init__(self) -> None:
        self.head: list[str] = []
        self.lines: list[str] = []
        self.block = "entry"
        self._count = 0

    def name(self, stem: str) -> str:
        """A fresh name, without the leading ``%``."""
        self._count += 1
        return f"{stem}.{self._count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def value(self, text: str, stem: str = "v") -> str:
        """Write ``%name = text`` and return ``%name``."""
        name = "%" + self.name(stem)
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self, name: str) -> None:
        """Start a block."""
        self.lines.append(f"{name}:")
        self.block = name

    def stack(self, what: str, align: int = 8) -> str:
        """Emit an ``alloca`` of the type ``what``, such as ``i64`` or ``[4 x ptr]``."""
        name = "%" + self.name("m")
        self.head.append(f"  {name} = alloca {what}, align {align}")
        return name

    def load(self, kind: str, base: str, offset: int = 0) -> str:
        """Emit a load from a constant number of bytes after ``base``."""
        return self.value(f"load {kind}, ptr {self.at(base, offset)}")

    def at(self, base: str, offset: int | str) -> str:
        """The address ``offset`` bytes after ``base``."""
        if offset in (0, "0"):
            return base
        return self.value(f"getelementptr i8, ptr {base}, i64 {offset}", "a")

    def store(self, kind: str, value: str, base: str, offset: int = 0) -> None:
        self.line(f"store {kind} {value}, ptr {self.at(base, offset)}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def new_block(self) -> None:
        """Branch to a new basic block and start it."""
        after = self.name("on")
        self.line(f"br label %{after}")
        self.label(after)

    def require(self, condition: str, otherwise: str) -> None:
        """Branch to a new basic block, and start it, if ``condition``, else to ``otherwise``."""
        after = self.name("ok")
        self.branch(condition, after, otherwise)
        self.label(after)

    def text(self, signature: str) -> str:
        """The text of the whole function."""
        return "\n".join([f"define {signature} {{", "entry:", *self.head, *self.lines, "}\n"])


class Lengths:
    """Values of `Dim`s as IR, each computed once.

    ``symbol`` emits the code that computes the value of a symbol, from its key.
    """

    def __init__(self, out: Writer, symbol: Callable[[tuple[str, int, int]], str]) -> None:
        self._out = out
        self._symbol = symbol
        self._values: dict[Dim, str] = {}
        self._sizes: dict[Dim, str] = {}
        self._overflows: list[str] = []

    def within(self, definitions: dict[Dim, str]) -> Lengths:
        """Lengths for code that does not dominate later code; some symbols have new values.

        Values computed there are not reused here.
        """
        inner = Lengths(self._out, self._symbol)
        inner._values = {**self._values, **definitions}
        inner._sizes = dict(self._sizes)
        return inner

    def define(self, dim: Dim, value: str) -> None:
        """Set the value of a symbol."""
        self._values[dim] = value

    def known(self, dim: Dim) -> bool:
        """Whether the value has been computed already."""
        return dim in self._values

    def __call__(self, dim: Dim) -> str:
        """The value of a Dim: a literal or an SSA name.  Arithmetic wraps around."""
        return self._evaluate(dim, self._values, lambda d: d.args, self._wrapping)

    def size(self, dim: Dim, wrong: str) -> str:
        """Emit a number of bytes; branches to ``wrong`` if it is negative or overflows."""
        out = self._out
        result, zero, overflow = self.exact(dim, ZERO)
        bad = out.value(f"icmp slt i64 {result}, {zero}")
        if overflow:
            bad = out.value(f"or i1 {bad}, {overflow}")
        out.require(out.value(f"xor i1 {bad}, true"), wrong)
        return result

    def exact(self, left: Dim, right: Dim) -> tuple[str, str, str]:
        """Emit the values of two Dims, and an i1: whether one overflows; empty if neither can."""
        values = [
            self._evaluate(d, self._sizes, lambda d: exact_operands(d)[0], self._checked)
            for d in (left, right)
        ]
        overflow = ""
        for flag in self._overflows:
            overflow = self._out.value(f"or i1 {overflow}, {flag}") if overflow else flag
        self._overflows.clear()
        return values[0], values[1], overflow

    def _evaluate(
        self,
        dim: Dim,
        values: dict[Dim, str],
        operands: Callable[[Dim], Sequence[Dim]],
        combine: Callable[[Dim, list[str]], str],
    ) -> str:
        stack = [dim]
        while stack:
            d = stack[-1]
            if d in values:
                stack.pop()
                continue
            leaf = d.op in ("const", "symbol")
            needed = () if leaf else operands(d)
            waiting = [a for a in needed if a not in values]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            values[d] = self._leaf(d) if leaf else combine(d, [values[a] for a in needed])
        return values[dim]

    def _leaf(self, d: Dim) -> str:
        if d.op == "const":
            return str(d.value)
        if d not in self._values:
            self._values[d] = self._symbol(d.args[0])
        return self._values[d]

    def _wrapping(self, d: Dim, args: list[str]) -> str:
        result = args[0]
        for a in args[1:]:
            result = _BINARY[d.op](self._out, result, a)
        return result

    def _checked(self, d: Dim, args: list[str]) -> str:
        if d.op not in ("add", "mul"):
            return self._wrapping(d, args)
        out, result = self._out, args[0]
        added = len(args) - exact_operands(d)[1]
        for k, a in enumerate(args[1:], 1):
            op = d.op if k < added else "sub"
            pair = out.value(
                f"call {{i64, i1}} @llvm.s{op}.with.overflow.i64(i64 {result}, i64 {a})"
            )
            result = out.value(f"extractvalue {{i64, i1}} {pair}, 0")
            self._overflows.append(out.value(f"extractvalue {{i64, i1}} {pair}, 1"))
        return result


def _plain(op: str) -> Callable[[Writer, str, str], str]:
    return lambda out, a, b: out.value(f"{op} i64 {a}, {b}", "d")


def _intrinsic(op: str) -> Callable[[Writer, str, str], str]:
    return lambda out, a, b: out.value(f"call i64 @llvm.{op}.i64(i64 {a}, i64 {b})", "d")


def _floor(out: Writer, a: str, b: str) -> tuple[str, str]:
    """Emit floor division: quotient and remainder; 0 and a where b is 0."""
    zero = out.value(f"icmp eq i64 {b}, 0")
    minus = out.value(f"icmp eq i64 {b}, -1")  # the least integer / -1 traps
    special = out.value(f"or i1 {zero}, {minus}")
    safe = out.value(f"select i1 {special}, i64 1, i64 {b}")
    quotient = out.value(f"sdiv i64 {a}, {safe}")
    product = out.value(f"mul i64 {quotient}, {safe}")
    remainder = out.value(f"sub i64 {a}, {product}")
    inexact = out.value(f"icmp ne i64 {remainder}, 0")
    signs = out.value(f"xor i64 {remainder}, {safe}")
    opposite = out.value(f"icmp slt i64 {signs}, 0")
    down = out.value(f"and i1 {inexact}, {opposite}")
    step = out.value(f"sext i1 {down} to i64")
    quotient = out.value(f"add i64 {quotient}, {step}")
    shift = out.value(f"select i1 {down}, i64 {safe}, i64 0")
    remainder = out.value(f"add i64 {remainder}, {shift}")
    negated = out.value(f"sub i64 0, {a}")
    quotient = out.value(f"select i1 {minus}, i64 {negated}, i64 {quotient}")
    quotient = out.value(f"select i1 {zero}, i64 0, i64 {quotient}", "d")
    return quotient, out.value(f"select i1 {zero}, i64 0, i64 {remainder}", "d")


_BINARY: dict[str, Callable[[Writer, str, str], str]] = {
    "add": _plain("add"),
    "mul": _plain("mul"),
    "max": _intrinsic("smax"),
    "min": _intrinsic("smin"),
    "floordiv": lambda out, a, b: _floor(out, a, b)[0],
    "mod": lambda out, a, b: _floor(out, a, b)[1],
}
