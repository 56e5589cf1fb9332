"""Division of vectors by one number.

A division takes several times as long as a product.  Where the divisor ``y`` stays the same all
through a loop, ``x / y`` is ``x * high + x * low`` for two numbers made before it, whose sum is
``1 / y`` to twice the precision [1].  With the product added in one rounding (``fma``) the result
is the nearest number but where ``x / y`` lies within some ``2**-52`` (``2**-23`` in single
precision) of a step from the middle of two numbers: there it may be the other one of them.

Zeros, infinities and NaN come out as those of a division do.  For this ``high`` is less than
``1 / y`` and ``low`` more than 0 in size, so that infinity times either has the same sign; and
``x`` is multiplied by a power of two where ``1 / y`` would overflow or lose bits.

[1] N. Brisebarre, J.-M. Muller, S. K. Raina, "Accelerating correctly rounded floating-point
division when the divisor is known in advance", IEEE Transactions on Computers 53 (2004).
"""

from __future__ import annotations

from typing import NamedTuple

from phintys.backends.llvm.ir.instructions import KernelWriter, Type, select

#: dtype -> the exponent from which on divisors are scaled, and by how much
_EXPONENTS = {"float64": (960, 100), "float32": (96, 30)}
DTYPES = frozenset(_EXPONENTS)


class Divisor(NamedTuple):
    """``x / y == (x * scale) * high + (x * scale) * low``."""

    scale: str
    high: str
    low: str

    def splat(self, w: KernelWriter, t: Type) -> Divisor:
        """The same in each lane."""
        return Divisor(*(w.splat(t, x) for x in self))

    def divide(self, w: KernelWriter, t: Type, x: str) -> str:
        """``x / y``."""
        x = w(f"fmul {t.text} {x}, {self.scale}")
        low = w(f"fmul {t.text} {x}, {self.low}")
        return w.intrinsic("fma", t, x, self.high, low)


def prepare(w: KernelWriter, t: Type, y: str) -> Divisor:
    """What to divide by instead of ``y``."""
    limit, shift = _EXPONENTS[t.dtype]
    size = w.intrinsic("fabs", t, y)
    small = w(f"fcmp olt {t.text} {size}, {t.literal(2.0**-limit)}")
    large = w(f"fcmp ogt {t.text} {size}, {t.literal(2.0**limit)}")
    # nearly always false: the processor goes on before it knows
    rare, usual, after = w.name("rare"), w.block, w.name("scaled")
    w.branch(w(f"or i1 {small}, {large}"), rare, after)
    w.label(rare)
    factor = select(w, t, small, t.literal(2.0**shift), t.literal(2.0**-shift))
    scaled = w(f"fmul {t.text} {y}, {factor}")
    w.line(f"br label %{after}")
    w.label(after)
    scale = w(f"phi {t.text} [{t.literal(1.0)}, %{usual}], [{factor}, %{rare}]")
    y = w(f"phi {t.text} [{y}, %{usual}], [{scaled}, %{rare}]")
    inverse = w(f"fdiv {t.text} {t.literal(1.0)}, {y}")
    bits = Type(f"int{t.bits}")
    less = w(f"sub {bits.text} {w(f'bitcast {t.text} {inverse} to {bits.text}')}, 1")
    high = w(f"bitcast {bits.text} {less} to {t.text}")
    error = w.intrinsic("fma", t, w(f"fneg {t.text} {high}"), y, t.literal(1.0))
    return _regular(w, t, inverse, Divisor(scale, high, w(f"fmul {t.text} {error}, {high}")))


def _regular(w: KernelWriter, t: Type, inverse: str, divisor: Divisor) -> Divisor:
    """The divisor, but ``inverse`` alone where that is 0, infinity or NaN."""
    size = w.intrinsic("fabs", t, inverse)
    positive = w(f"fcmp ogt {t.text} {size}, {t.literal(0)}")
    finite = w(f"fcmp olt {t.text} {size}, {t.literal(float('inf'))}")
    good = w(f"and i1 {positive}, {finite}")
    high, low = (select(w, t, good, x, inverse) for x in divisor[1:])
    return Divisor(divisor.scale, high, low)
