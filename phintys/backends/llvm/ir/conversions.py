"""Conversions between dtypes, as `phintys.scalar.conversion` defines them.

Processors that know float16 convert it in one instruction.  For others its conversion is written in
integer instructions, because LLVM would call functions that are not there.
"""

from __future__ import annotations

from phintys.backends.llvm.ir.types import KernelWriter, Type, select
from phintys.scalar.native import VIA


def cast(w: KernelWriter, t: Type, source: str, x: str) -> str:
    """Emit the conversion of ``x`` from dtype ``source`` to ``t``."""
    s = t.of(source)
    if s == t or (s.kind in "iu" and t.kind in "iu" and s.bits == t.bits):
        return x
    if source == "float16":
        wide = _from_half(w, t.width, x)
        return wide if t.dtype == "float32" else cast(w, t, "float32", wide)
    if t.dtype == "float16":
        single = _rounded_to_odd if source == "float64" else _single
        return _to_half(w, t.width, single(w, s, x))
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


# ------------------------------------------------------------------------------ float16


def _single(w: KernelWriter, s: Type, x: str) -> str:
    return cast(w, s.of("float32"), s.dtype, x)


def _from_half(w: KernelWriter, width: int, x: str) -> str:
    """Emit the conversion of float16 to float32, which is exact."""
    half, bits, real = (Type(d, width) for d in ("float16", "int32", "float32"))
    if w.target.has_half:
        x = w(f"bitcast {half.text} {x} to {half.vector('half')}")
        return w(f"fpext {half.vector('half')} {x} to {real.text}")
    x = w(f"zext {half.text} {x} to {bits.text}")
    magnitude = _binary(w, "and", bits, x, 0x7FFF)
    sign = _binary(w, "shl", bits, _binary(w, "and", bits, x, 0x8000), 16)
    number = _binary(w, "add", bits, _binary(w, "shl", bits, magnitude, 13), 112 << 23)
    special = w(f"icmp uge {bits.text} {magnitude}, {bits.literal(0x7C00)}")
    number = select(w, bits, special, _binary(w, "add", bits, number, 112 << 23), number)
    # a subnormal number is the difference of two normal ones
    above = _as(w, bits, real, _binary(w, "add", bits, number, 1 << 23))
    small = _as(w, real, bits, w(f"fsub {real.text} {above}, {real.literal(2.0**-14)}"))
    subnormal = w(f"icmp ult {bits.text} {magnitude}, {bits.literal(0x400)}")
    number = select(w, bits, subnormal, small, number)
    return _as(w, bits, real, w(f"or {bits.text} {number}, {sign}"))


def _to_half(w: KernelWriter, width: int, x: str) -> str:
    """Emit the conversion of float32 to float16: to the nearest, ties to even."""
    half, bits, real = (Type(d, width) for d in ("float16", "int32", "float32"))
    if w.target.has_half:
        x = w(f"fptrunc {real.text} {x} to {half.vector('half')}")
        return w(f"bitcast {half.vector('half')} {x} to {half.text}")
    x = _as(w, real, bits, x)
    sign = _binary(w, "and", bits, _binary(w, "lshr", bits, x, 16), 0x8000)
    magnitude = _binary(w, "and", bits, x, 0x7FFFFFFF)
    cut = _binary(w, "lshr", bits, magnitude, 13)
    odd = _binary(w, "add", bits, _binary(w, "and", bits, cut, 1), 0xFFF - (112 << 23))
    number = _binary(w, "lshr", bits, w(f"add {bits.text} {magnitude}, {odd}"), 13)
    # the bits of a subnormal result are the last ones of a sum
    total = w(f"fadd {real.text} {_as(w, bits, real, magnitude)}, {real.literal(0.5)}")
    small = _binary(w, "sub", bits, _as(w, real, bits, total), 126 << 23)
    subnormal = w(f"icmp ult {bits.text} {magnitude}, {bits.literal(113 << 23)}")
    number = select(w, bits, subnormal, small, number)
    large = w(f"icmp uge {bits.text} {magnitude}, {bits.literal(143 << 23)}")
    number = select(w, bits, large, bits.literal(0x7C00), number)
    payload = _binary(w, "or", bits, _binary(w, "and", bits, cut, 0x3FF), 0x7E00)
    nan = w(f"icmp ugt {bits.text} {magnitude}, {bits.literal(0x7F800000)}")
    number = w(f"or {bits.text} {select(w, bits, nan, payload, number)}, {sign}")
    return w(f"trunc {bits.text} {number} to {half.text}")


def _rounded_to_odd(w: KernelWriter, double: Type, x: str) -> str:
    """Emit the conversion of float64 to float32 that sets the last bit if it is inexact.

    Rounding the result again, to float16, gives the float16 nearest to ``x``.
    """
    bits, real = double.of("int32"), double.of("float32")
    near = w(f"fptrunc {double.text} {x} to {real.text}")
    back = w(f"fpext {real.text} {near} to {double.text}")
    inexact = w(f"fcmp one {double.text} {back}, {x}")
    sizes = [w.intrinsic("fabs", double, v) for v in (back, x)]
    above = w(f"fcmp ogt {double.text} {sizes[0]}, {sizes[1]}")
    number = _as(w, real, bits, near)
    step = w(f"sext {bits.of('bool').text} {above} to {bits.text}")
    odd = _binary(w, "or", bits, w(f"add {bits.text} {number}, {step}"), 1)
    return _as(w, bits, real, select(w, bits, inexact, odd, number))


def _binary(w: KernelWriter, op: str, t: Type, x: str, y: int) -> str:
    return w(f"{op} {t.text} {x}, {t.literal(y)}")


def _as(w: KernelWriter, source: Type, target: Type, x: str) -> str:
    """Emit a reinterpretation of the bits."""
    return w(f"bitcast {source.text} {x} to {target.text}")
