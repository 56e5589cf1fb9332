"""The scalar instructions of ``scalar/native.py`` as LLVM IR, for any dtype and vector width.

`INSTRUCTIONS` has one row per instruction: a function that writes IR into a `KernelWriter` and
gives the name of the result.  A value of dtype T and width W is
``<W x T>``, or plain ``T`` at width 1; bool is ``i1`` in registers and ``i8`` (0 or 1) in memory.

Special functions become calls of functions that ``vecmath`` defines.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from phintys.backends.llvm import vecmath
from phintys.backends.llvm.ir.writer import Writer
from phintys.backends.llvm.machine.target import Target, current
from phintys.scalar.native import VIA

SCALARS = {
    "bool": "i1", "float32": "float", "float64": "double",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
}  # fmt: skip

_BITS = {d: 1 if d == "bool" else int("".join(filter(str.isdigit, d))) for d in SCALARS}


class Type(NamedTuple):
    """The type of a value in registers: a dtype and a number of lanes."""

    dtype: str
    width: int = 1

    @property
    def scalar(self) -> str:
        return SCALARS[self.dtype]

    @property
    def text(self) -> str:
        return self._vector(self.scalar)

    @property
    def memory(self) -> str:
        """The type of these lanes in memory."""
        return self._vector(self.cell)

    @property
    def cell(self) -> str:
        """The type of one lane in memory."""
        return "i8" if self.dtype == "bool" else self.scalar

    @property
    def kind(self) -> str:
        """The kind of the dtype: one of ``b i u f``."""
        return self.dtype[0]

    @property
    def bits(self) -> int:
        """The number of bits of one lane in a register."""
        return _BITS[self.dtype]

    @property
    def bytes(self) -> int:
        """The number of bytes of one lane in memory."""
        return max(self.bits // 8, 1)

    @property
    def suffix(self) -> str:
        """The suffix for this type in the names of intrinsics: ``v4f64``, ``i32``."""
        lane = f"{'f' if self.kind == 'f' else 'i'}{self.bits}"
        return lane if self.width == 1 else f"v{self.width}{lane}"

    def of(self, dtype: str) -> Type:
        """The type with as many lanes of another dtype."""
        return Type(dtype, self.width)

    def literal(self, value: float) -> str:
        """The IR constant with ``value`` in each lane."""
        text = scalar_literal(self.dtype, value)
        return text if self.width == 1 else f"splat ({self.scalar} {text})"

    def _vector(self, scalar: str) -> str:
        return scalar if self.width == 1 else f"<{self.width} x {scalar}>"


def scalar_literal(dtype: str, value: float) -> str:
    """The IR literal of a number; floats as the bits of a double, which is exact."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype.startswith("float"):
        if dtype == "float32":
            value = _round_float32(value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    bits = _BITS[dtype]
    number = int(value) % 2**bits
    return str(number - 2**bits if number >= 2 ** (bits - 1) else number)


def _round_float32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


class KernelWriter(Writer):
    """A `Writer` of a function for one target that also collects its ``declare`` lines."""

    def __init__(self, target: Target | None = None) -> None:
        super().__init__()
        self.target = target or current()
        self.declares: set[str] = set()

    def __call__(self, text: str) -> str:
        """Write ``%fresh = text`` and return the name of the result."""
        return self.value(text)

    def splat(self, t: Type, x: str) -> str:
        """Emit the broadcast of the scalar ``x`` to the lanes of ``t``."""
        if t.width == 1:
            return x
        first = self(f"insertelement {t.text} poison, {t.scalar} {x}, i64 0")
        return self(
            f"shufflevector {t.text} {first}, {t.text} poison, <{t.width} x i32> zeroinitializer"
        )

    def intrinsic(self, name: str, t: Type, *args: str, flag: str = "") -> str:
        """Emit a call of ``llvm.<name>`` for type ``t``; ``flag`` is a last argument of type i1."""
        typed = [(t.text, a) for a in args] + ([("i1", flag)] if flag else [])
        return self.extern(f"llvm.{name}.{t.suffix}", t.text, typed)

    def special(self, name: str, t: Type, args: tuple[str, ...]) -> str:
        """Emit a call of a function that ``vecmath`` defines."""
        symbol = vecmath.symbol(name, t.dtype, t.width)
        return self.extern(symbol, t.text, [(t.text, a) for a in args])

    def extern(self, symbol: str, result: str, args: list[tuple[str, str]]) -> str:
        """Emit a call of an external function; ``args`` are (type, value) pairs."""
        self.declares.add(f"declare {result} @{symbol}({', '.join(t for t, _ in args)})")
        return self(f"call {result} @{symbol}({', '.join(f'{t} {v}' for t, v in args)})")


def emit(w: KernelWriter, op: str, t: Type, args: tuple[str, ...], source: str) -> str:
    """Write one instruction with result type ``t`` on arguments of dtype ``source``."""
    if op == "cast":
        return cast(w, t, source, args[0])
    if op in vecmath.SUPPORTED:
        return w.special(op, t, args)
    return INSTRUCTIONS[op](w, t.of(source) if op in _COMPARES else t, *args)


# ------------------------------------------------------------------------ row builders

Row = Callable[..., str]


def _op(*, f: str = "", i: str = "", u: str = "", b: str = "") -> Row:
    """The row of a binary operator, from the opcode for each kind of dtype."""
    opcodes = {"f": f, "i": i, "u": u or i, "b": b or i}
    return lambda w, t, x, y: w(f"{opcodes[t.kind]} {t.text} {x}, {y}")


def _compare(f: str, i: str, u: str = "") -> Row:
    """The row of a comparison, from the predicate for each kind of dtype."""
    texts = {"f": "fcmp " + f, "i": "icmp " + i, "u": "icmp " + (u or i), "b": "icmp " + (u or i)}
    return lambda w, t, x, y: w(f"{texts[t.kind]} {t.text} {x}, {y}")


def _intrinsic(name: str) -> Row:
    return lambda w, t, *args: w.intrinsic(name, t, *args)


def _extreme(predicate: str, integer: str, boolean: str) -> Row:
    """The row of min or max; for floats NaN if either is NaN (one instruction and a blend)."""

    def row(w: KernelWriter, t: Type, x: str, y: str) -> str:
        if t.kind == "b":
            return w(f"{boolean} {t.text} {x}, {y}")
        if t.kind != "f":
            return w.intrinsic(("s" if t.kind == "i" else "u") + integer, t, x, y)
        wins = w(f"fcmp {predicate} {t.text} {x}, {y}")
        best = select(w, t, wins, x, y)
        return select(w, t, w(f"fcmp uno {t.text} {x}, {x}"), x, best)

    return row


def select(w: KernelWriter, t: Type, condition: str, x: str, y: str) -> str:
    return w(f"select {t.of('bool').text} {condition}, {t.text} {x}, {t.text} {y}")


def _neg(w: KernelWriter, t: Type, x: str) -> str:
    return w(f"fneg {t.text} {x}" if t.kind == "f" else f"sub {t.text} {t.literal(0)}, {x}")


def _abs(w: KernelWriter, t: Type, x: str) -> str:
    if t.kind == "f":
        return w.intrinsic("fabs", t, x)
    return w.intrinsic("abs", t, x, flag="false") if t.kind == "i" else x


def _isinf(w: KernelWriter, t: Type, x: str) -> str:
    return w(f"fcmp oeq {t.text} {w.intrinsic('fabs', t, x)}, {t.literal(float('inf'))}")


def _divide(w: KernelWriter, t: Type, x: str, y: str) -> tuple[str, str, str]:
    """Emit floor division: the quotient, the remainder, and whether y is 0 (then divided by 1).

    x86 traps on ``x / 0`` and on ``least / -1``, so neither is ever executed; ``x / -1`` is
    computed as a negation, which wraps around.
    """
    by_zero = w(f"icmp eq {t.text} {y}, {t.literal(0)}")
    if t.kind == "u":
        safe = select(w, t, by_zero, t.literal(1), y)
        return w(f"udiv {t.text} {x}, {safe}"), w(f"urem {t.text} {x}, {safe}"), by_zero
    by_minus_one = w(f"icmp eq {t.text} {y}, {t.literal(-1)}")
    unsafe = w(f"or {t.of('bool').text} {by_zero}, {by_minus_one}")
    safe = select(w, t, unsafe, t.literal(1), y)
    quotient = w(f"sdiv {t.text} {x}, {safe}")
    rest = w(f"sub {t.text} {x}, {w(f'mul {t.text} {quotient}, {safe}')}")
    differ = w(f"icmp slt {t.text} {w(f'xor {t.text} {rest}, {safe}')}, {t.literal(0)}")
    inexact = w(f"icmp ne {t.text} {rest}, {t.literal(0)}")
    down = w(f"and {t.of('bool').text} {differ}, {inexact}")
    lower = w(f"sub {t.text} {quotient}, {t.literal(1)}")
    quotient = select(w, t, down, lower, quotient)
    rest = select(w, t, down, w(f"add {t.text} {rest}, {safe}"), rest)
    return select(w, t, by_minus_one, _neg(w, t, x), quotient), rest, by_zero


def _idiv(w: KernelWriter, t: Type, x: str, y: str) -> str:
    quotient, _, by_zero = _divide(w, t, x, y)
    return select(w, t, by_zero, t.literal(0), quotient)


def _imod(w: KernelWriter, t: Type, x: str, y: str) -> str:
    # where y is 0 the divisor was 1, so the remainder is 0 as required
    return _divide(w, t, x, y)[1]


def _not(w: KernelWriter, t: Type, x: str) -> str:
    return w(f"xor {t.text} {x}, {t.literal(1 if t.kind == 'b' else -1)}")


def _nextafter(w: KernelWriter, t: Type, x: str, y: str) -> str:
    """One step in the order of the bits, which for floats of one sign is that of the numbers."""
    integer, boolean = t.of(f"int{t.bits}"), t.of("bool")
    zero = t.literal(0)
    upward = w(f"fcmp olt {t.text} {x}, {y}")
    positive = w(f"fcmp ogt {t.text} {x}, {zero}")
    towards_zero = w(f"xor {boolean.text} {upward}, {positive}")
    step = select(w, integer, towards_zero, integer.literal(-1), integer.literal(1))
    bits = w(f"bitcast {t.text} {x} to {integer.text}")
    moved = w(f"add {integer.text} {bits}, {step}")
    found = w(f"bitcast {integer.text} {moved} to {t.text}")
    least = w(f"bitcast {integer.text} {integer.literal(1)} to {t.text}")
    from_zero = w.intrinsic("copysign", t, least, y)
    found = select(w, t, w(f"fcmp oeq {t.text} {x}, {zero}"), from_zero, found)
    found = select(w, t, w(f"fcmp oeq {t.text} {x}, {y}"), y, found)
    return select(w, t, w(f"fcmp uno {t.text} {x}, {y}"), w(f"fadd {t.text} {x}, {y}"), found)


def cast(w: KernelWriter, t: Type, source: str, x: str) -> str:
    """Emit the conversion of ``x`` from dtype ``source`` to ``t``."""
    s = t.of(source)
    if s == t or (s.kind in "iu" and t.kind in "iu" and s.bits == t.bits):
        return x
    if t.kind == "b":
        compare = "fcmp une" if s.kind == "f" else "icmp ne"
        return w(f"{compare} {s.text} {x}, {s.literal(0)}")
    if s.kind == "f" and t.kind in "iu":
        return _float_to_int(w, s, t, x)
    if s.kind == "f":
        opcode = "fpext" if t.bits > s.bits else "fptrunc"
    elif t.kind == "f":
        opcode = "sitofp" if s.kind == "i" else "uitofp"
    elif t.bits < s.bits:
        opcode = "trunc"
    else:
        opcode = "sext" if s.kind == "i" else "zext"
    return w(f"{opcode} {s.text} {x} to {t.text}")


def _float_to_int(w: KernelWriter, s: Type, t: Type, x: str) -> str:
    """Emit the conversion of a float to an integer that `phintys.scalar.conversion` defines."""
    if t.dtype != "uint64":
        wide = t.of(VIA[t.dtype])
        y = _float_to_signed(w, s, wide, x)
        return y if wide.bits == t.bits else w(f"trunc {wide.text} {y} to {t.text}")
    high = w(f"fcmp oge {s.text} {x}, {s.literal(2.0**63)}")
    lower = w(f"fsub {s.text} {x}, {s.literal(2.0**63)}")
    y = _float_to_signed(w, s, t.of("int64"), select(w, s, high, lower, x))
    half = select(w, t, high, t.literal(2**63), t.literal(0))
    return w(f"xor {t.text} {y}, {half}")


def _float_to_signed(w: KernelWriter, s: Type, t: Type, x: str) -> str:
    """Emit truncation; the least integer for NaN and overflow, where ``fptosi`` gives poison."""
    limit = 2 ** (t.bits - 1)
    fits = w(f"fcmp olt {s.text} {w.intrinsic('fabs', s, x)}, {s.literal(float(limit))}")
    return select(w, t, fits, w(f"fptosi {s.text} {x} to {t.text}"), t.literal(-limit))


# ------------------------------------------------------------------------------ the table

#: instructions whose result is bool: their row is called with the type of the arguments
_COMPARES = frozenset("eq ne lt le gt ge isnan isinf".split())

INSTRUCTIONS: dict[str, Row] = {
    "add": _op(f="fadd", i="add"),
    "sub": _op(f="fsub", i="sub"),
    "mul": _op(f="fmul contract", i="mul"),
    "div": _op(f="fdiv"),
    "fma": _intrinsic("fmuladd"),
    "idiv": _idiv,
    "imod": _imod,
    "fmod": _op(f="frem"),
    "neg": _neg,
    "abs": _abs,
    "min": _extreme("olt", "min", "and"),
    "max": _extreme("ogt", "max", "or"),
    "copysign": _intrinsic("copysign"),
    "nextafter": _nextafter,
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "trunc": _intrinsic("trunc"),
    "rint": _intrinsic("rint"),
    "sqrt": _intrinsic("sqrt"),
    "eq": _compare("oeq", "eq"),
    "ne": _compare("une", "ne"),
    "lt": _compare("olt", "slt", "ult"),
    "le": _compare("ole", "sle", "ule"),
    "gt": _compare("ogt", "sgt", "ugt"),
    "ge": _compare("oge", "sge", "uge"),
    "isnan": lambda w, t, x: w(f"fcmp uno {t.text} {x}, {x}"),
    "isinf": _isinf,
    "and": _op(i="and"),
    "or": _op(i="or"),
    "xor": _op(i="xor"),
    "not": _not,
    "shl": _op(i="shl"),
    "shr": _op(i="ashr", u="lshr"),
    "select": select,
}
