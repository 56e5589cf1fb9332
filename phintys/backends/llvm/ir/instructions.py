"""The scalar instructions of ``scalar/native.py`` as LLVM IR, for any dtype and vector width.

`INSTRUCTIONS` has one row per instruction: a function that writes IR into a `KernelWriter` and
gives the name of the result.

Special functions become calls of functions that ``vecmath`` defines.
"""

from __future__ import annotations

from collections.abc import Callable

from phintys.backends.llvm import vecmath
from phintys.backends.llvm.ir.conversions import cast
from phintys.backends.llvm.ir.types import KernelWriter, Type, select
from phintys.scalar.native import COMPUTED_IN


def emit(w: KernelWriter, op: str, t: Type, args: tuple[str, ...], source: str) -> str:
    """Write one instruction with result type ``t`` on arguments of dtype ``source``."""
    if op == "cast":
        return cast(w, t, source, args[0])
    if op in vecmath.SUPPORTED:
        return w.special(op, t, args)
    return INSTRUCTIONS[op](w, t.of(source) if op in _OF_SOURCE else t, *args)


def combine(w: KernelWriter, op: str, t: Type, x: str, y: str) -> str:
    """Write one binary instruction on numbers of any dtype (see `COMPUTED_IN`)."""
    if t.dtype not in COMPUTED_IN:
        return INSTRUCTIONS[op](w, t, x, y)
    wide = t.of(COMPUTED_IN[t.dtype])
    result = INSTRUCTIONS[op](w, wide, cast(w, wide, t.dtype, x), cast(w, wide, t.dtype, y))
    return cast(w, t, wide.dtype, result)


# ------------------------------------------------------------------------ row builders

Row = Callable[..., str]


def _op(*, f: str = "", i: str = "", u: str = "", b: str = "") -> Row:
    """The row of a binary operator, from the opcode for each kind of dtype."""
    opcodes = {"f": f, "c": f, "i": i, "u": u or i, "b": b or i}
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


# --------------------------------------------------------------------- complex numbers


def _complex(w: KernelWriter, t: Type, re: str, im: str) -> str:
    part, lanes = t.part, range(t.width)
    if t.width > 1:
        return w.shuffled(part, re, [k + half * t.width for k in lanes for half in (0, 1)], im)
    first = w(f"insertelement {t.text} poison, {part.text} {re}, i64 0")
    return w(f"insertelement {t.text} {first}, {part.text} {im}, i64 1")


def _part(number: int) -> Row:
    """The row of ``real`` (0) or ``imag`` (1), which is called with the complex type."""

    def row(w: KernelWriter, t: Type, x: str) -> str:
        if t.width == 1:
            return w(f"extractelement {t.text} {x}, i64 {number}")
        return w.shuffled(t, x, range(number, 2 * t.width, 2))

    return row


# ------------------------------------------------------------------------------ the table

#: instructions whose row is called with the type of the arguments
_OF_SOURCE = frozenset("eq ne lt le gt ge isnan isinf real imag".split())

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
    "complex": _complex,
    "real": _part(0),
    "imag": _part(1),
}
