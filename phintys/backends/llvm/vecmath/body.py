"""An emitter of straight-line vector code for `vecmath`.

A `Body` appends LLVM instructions, one per method call, and returns the name of each result.
All floating-point values have the type of the body (``<4 x double>``; the plain ``double`` at
width 1); a number among the operands becomes a splat constant.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple


class Format(NamedTuple):
    """A binary floating-point format: LLVM's name, bits, bits of the fraction, exponent bias."""

    dtype: str
    ir: str
    suffix: str
    bits: int
    fraction: int
    bias: int

    @property
    def least_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def integers_from(self) -> float:
        """The least power of two from which on all values are integers."""
        return 2.0**self.fraction

    def pattern(self, value: float) -> int:
        """The bits of ``value`` as an unsigned integer."""
        codes = "<d" if self.bits == 64 else "<f"
        return int.from_bytes(struct.pack(codes, value), "little")


FORMATS = {
    "float64": Format("float64", "double", "f64", 64, 52, 1023),
    "float32": Format("float32", "float", "f32", 32, 23, 127),
}

Operand = str | float


class Body:
    """The instructions of one function, in one floating-point type.

    Booleans and integers have the body's width.  ``lines`` and ``declares`` (the ``declare``
    lines of called functions) are shared by the bodies that `widened` makes.
    """

    def __init__(
        self, dtype: str, width: int, lines: list[str], declares: set[str], name: str = "v"
    ) -> None:
        self.format = FORMATS[dtype]
        self.width = width
        self.lines = lines
        self.declares = declares
        self.name = name
        self.type = self.vector(self.format.ir)
        self.int_type = self.vector(f"i{self.format.bits}")
        self.bool_type = self.vector("i1")

    def vector(self, element: str) -> str:
        return element if self.width == 1 else f"<{self.width} x {element}>"

    def emit(self, text: str) -> str:
        result = f"%{self.name}{len(self.lines)}"
        self.lines.append(f"  {result} = {text}")
        return result

    def const(self, value: Operand) -> str:
        if isinstance(value, str):
            return value
        if self.format.bits == 32:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        literal = f"{self.format.ir} 0x{FORMATS['float64'].pattern(value):016X}"
        return literal.split()[1] if self.width == 1 else f"splat ({literal})"

    def int_const(self, value: str | int) -> str:
        if isinstance(value, str):
            return value
        return str(value) if self.width == 1 else f"splat (i{self.format.bits} {value})"

    def _binary(self, op: str, a: Operand, b: Operand) -> str:
        return self.emit(f"{op} {self.type} {self.const(a)}, {self.const(b)}")

    def add(self, a: Operand, b: Operand) -> str:
        return self._binary("fadd", a, b)

    def sub(self, a: Operand, b: Operand) -> str:
        return self._binary("fsub", a, b)

    def mul(self, a: Operand, b: Operand) -> str:
        return self._binary("fmul", a, b)

    def div(self, a: Operand, b: Operand) -> str:
        return self._binary("fdiv", a, b)

    def two_sum(self, a: Operand, b: Operand) -> tuple[str, str]:
        """Emit a + b and its rounding error."""
        total = self.add(a, b)
        of_b = self.sub(total, a)
        return total, self.add(self.sub(a, self.sub(total, of_b)), self.sub(b, of_b))

    def ordered_sum(self, a: Operand, b: Operand) -> tuple[str, str]:
        """Emit a + b and its rounding error, where |a| >= |b| or a = 0."""
        total = self.add(a, b)
        return total, self.add(self.sub(a, total), b)

    def neg(self, a: str) -> str:
        return self.emit(f"fneg {self.type} {a}")

    def intrinsic(self, name: str, *args: Operand) -> str:
        suffix = self.format.suffix if self.width == 1 else f"v{self.width}{self.format.suffix}"
        types = ", ".join([self.type] * len(args))
        values = ", ".join(f"{self.type} {self.const(a)}" for a in args)
        self.declares.add(f"declare {self.type} @llvm.{name}.{suffix}({types})")
        return self.emit(f"call {self.type} @llvm.{name}.{suffix}({values})")

    def fma(self, a: Operand, b: Operand, c: Operand) -> str:
        """Emit a*b + c, fused only where the processor has an instruction for it."""
        return self.intrinsic("fmuladd", a, b, c)

    def abs(self, a: str) -> str:
        return self.intrinsic("fabs", a)

    def copysign(self, a: Operand, sign: Operand) -> str:
        return self.intrinsic("copysign", a, sign)

    def compare(self, predicate: str, a: Operand, b: Operand) -> str:
        return self.emit(f"fcmp {predicate} {self.type} {self.const(a)}, {self.const(b)}")

    def select(self, condition: str, a: Operand, b: Operand) -> str:
        return self.emit(
            f"select {self.bool_type} {condition}, "
            f"{self.type} {self.const(a)}, {self.type} {self.const(b)}"
        )

    def both(self, a: str, b: str) -> str:
        return self.emit(f"and {self.bool_type} {a}, {b}")

    def at_most(self, x: str, bound: float) -> str:
        """Emit min(x, bound); NaN stays NaN."""
        return self.select(self.compare("olt", bound, x), bound, x)

    def at_least(self, x: str, bound: float) -> str:
        """Emit max(x, bound); NaN stays NaN."""
        return self.select(self.compare("ogt", bound, x), bound, x)

    def bits(self, a: str) -> str:
        return self.emit(f"bitcast {self.type} {a} to {self.int_type}")

    def from_bits(self, a: str) -> str:
        return self.emit(f"bitcast {self.int_type} {a} to {self.type}")

    def integer(self, op: str, a: str | int, b: str | int) -> str:
        return self.emit(f"{op} {self.int_type} {self.int_const(a)}, {self.int_const(b)}")

    def int_test(self, a: str, mask: int) -> str:
        """Emit the test whether a & mask is not zero."""
        masked = self.integer("and", a, mask)
        return self.emit(f"icmp ne {self.int_type} {masked}, {self.int_const(0)}")

    def head(self, a: str, dropped: int) -> str:
        """Emit ``a`` with its ``dropped`` lowest bits cleared."""
        mask = (1 << self.format.bits) - (1 << dropped)
        return self.from_bits(self.integer("and", self.bits(a), mask))

    def rough_inverse(self, a: str) -> str:
        """Emit 1/a within 6 %, for a normal positive number; a large number for a subnormal one.

        Bits that are subtracted negate the exponent.
        """
        assert self.format.bits == 64
        return self.from_bits(self.integer("sub", 0x7FDE623822FC16E6, self.bits(a)))

    def polynomial(self, x: str, coefficients: Sequence[Operand]) -> str:
        """Emit c0 + c1*x + ... by Estrin's scheme."""
        terms: list[Operand] = list(coefficients)
        power = x
        while True:
            pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
            terms = [self.fma(p[1], power, p[0]) if len(p) == 2 else p[0] for p in pairs]
            if len(terms) == 1:
                return self.const(terms[0])
            power = self.mul(power, power)

    def from_first(self, x: str, coefficients: Sequence[Operand], count: int = 1) -> str:
        """Emit c0 + x*(c1 + c2*x + ...): only the last operation rounds at c0's size.

        `polynomial` rounds there once per level.  ``count`` is the number of terms treated so.
        """
        value = self.polynomial(x, coefficients[count:])
        for term in reversed(coefficients[:count]):
            value = self.fma(x, value, term)
        return value

    def leading(self, x: str, coefficients: Sequence[Operand]) -> str:
        """Emit c0 + (c1 + x*(c2 + c3*x + ...)): only the last addition rounds at c0's size.

        The constant term has two parts, c0 of few bits and c1.
        """
        first, second, *others = coefficients
        return self.add(first, self.fma(x, self.from_first(x, others, 2), second))

    def widened(self) -> Body:
        """A float64 body that appends to the same function."""
        return Body("float64", self.width, self.lines, self.declares, self.name)

    def extend_to(self, wide: Body, a: str) -> str:
        return self.emit(f"fpext {self.type} {a} to {wide.type}")

    def truncate_from(self, wide: Body, a: str) -> str:
        return self.emit(f"fptrunc {wide.type} {a} to {self.type}")

    def any(self, condition: str) -> str:
        """Emit the test whether a boolean is true in any lane, an ``i1``."""
        if self.width == 1:
            return condition
        packed = self.emit(f"bitcast {self.bool_type} {condition} to i{self.width}")
        return self.emit(f"icmp ne i{self.width} {packed}, 0")

    def guard(self, wide: Body, rare: str, y: str, slow: str, *args: str) -> list[str]:
        """Emit ``ret`` of y, or of the function ``slow`` of ``args`` if ``rare``, an ``i1``.

        These and the results have the type of ``wide``, which is this body or `widened`.
        """
        values = ", ".join(f"{wide.type} {a}" for a in args)

        def returned(value: str, name: str) -> list[str]:
            if wide is self:
                return [f"  ret {self.type} {value}"]
            truncated = f"  %{name} = fptrunc {wide.type} {value} to {self.type}"
            return [truncated, f"  ret {self.type} %{name}"]

        return [
            f"  br i1 {rare}, label %far, label %near",
            "near:",
            *returned(y, "narrow"),
            "far:",
            f"  %patched = tail call {wide.type} @{slow}({values})",
            *returned("%patched", "rare"),
        ]
