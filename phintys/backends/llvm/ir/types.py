"""Types of values in IR, literals, and the writer of a function.

A value of dtype T and width W is ``<W x T>``, or plain ``T`` at width 1; bool is ``i1`` in
registers and ``i8`` (0 or 1) in memory.  float16 is ``i16``: only its bits are moved and converted.
Complex numbers are pairs of parts, ``<2W x T>``: each lane has two elements of the vector.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from phintys.backends.llvm import vecmath
from phintys.backends.llvm.ir.writer import Writer
from phintys.backends.llvm.machine.target import Target, current
from phintys.routines.language import PART
from phintys.scalar.native import half_bits

SCALARS = {
    "bool": "i1", "float16": "i16", "float32": "float", "float64": "double",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
    "complex64": "<2 x float>", "complex128": "<2 x double>",
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
        if self.dtype[0] == "c":
            return f"<{2 * self.width} x {self.part.scalar}>"
        return self.vector(self.scalar)

    @property
    def memory(self) -> str:
        """The type of these lanes in memory."""
        return self.text if self.kind == "c" else self.vector(self.cell)

    @property
    def cell(self) -> str:
        """The type of one lane in memory."""
        return "i8" if self.dtype == "bool" else self.scalar

    @property
    def kind(self) -> str:
        """The kind of the dtype: one of ``b i u f c``, or ``h`` for float16."""
        return "h" if self.dtype == "float16" else self.dtype[0]

    @property
    def bits(self) -> int:
        """The number of bits of one lane in a register."""
        return _BITS[self.dtype]

    @property
    def bytes(self) -> int:
        """The number of bytes of one lane in memory."""
        return max(self.bits // 8, 1)

    @property
    def part(self) -> Type:
        """The type of the real parts of complex lanes; of other lanes, this type."""
        return Type(PART.get(self.dtype, self.dtype), self.width)

    @property
    def align(self) -> int:
        """The alignment of lanes in memory, in bytes."""
        return self.bytes // 2 if self.kind == "c" else self.bytes

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

    def vector(self, scalar: str) -> str:
        """The type of as many lanes of an LLVM type."""
        return scalar if self.width == 1 else f"<{self.width} x {scalar}>"


def scalar_literal(dtype: str, value: float) -> str:
    """The IR literal of a number; floats as the bits of a double, which is exact."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype == "float16":
        value = half_bits(value)
    elif dtype.startswith("float"):
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
        if t.kind == "c":
            return self.shuffled(Type(t.dtype), x, [0, 1] * t.width)
        first = self(f"insertelement {t.text} poison, {t.scalar} {x}, i64 0")
        return self(
            f"shufflevector {t.text} {first}, {t.text} poison, <{t.width} x i32> zeroinitializer"
        )

    def shuffled(self, t: Type, x: str, lanes: Sequence[int | str], y: str = "poison") -> str:
        """Emit the vector of these elements of ``x`` and, counted on, of ``y``."""
        order = ", ".join([f"i32 {lane}" for lane in lanes])
        return self(f"shufflevector {t.text} {x}, {t.text} {y}, <{len(lanes)} x i32> <{order}>")

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


def select(w: KernelWriter, t: Type, condition: str, x: str, y: str) -> str:
    flags = t.of("bool")
    if t.kind == "c" and t.width > 1:
        condition = w.shuffled(flags, condition, [k // 2 for k in range(2 * t.width)])
        flags = flags._replace(width=2 * t.width)
    return w(f"select {flags.text} {condition}, {t.text} {x}, {t.text} {y}")
