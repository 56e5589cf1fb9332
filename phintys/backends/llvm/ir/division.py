"""Division of vectors by a loop-invariant number.

A division takes several times as long as a product.  Where the divisor ``y`` is loop-invariant,
``x / y`` is ``x * high + x * low`` for two numbers computed before the loop, whose sum is ``1 / y``
to twice the precision [1].  With a fused multiply-add (``fma``) the result is correctly rounded
except where ``x / y`` lies within some ``2**-52`` ulp (``2**-23`` in single precision) of the
midpoint between two floating-point numbers: there it may be the other neighbour.

Zeros, infinities and NaN give the same results as a division.  For this the magnitude of ``high``
is less than that of ``1 / y`` and ``low`` is not 0, so that infinity times either has the same
sign; and ``x`` is multiplied by a power of two where ``1 / y`` would overflow or lose bits.

[1] N. Brisebarre, J.-M. Muller, S. K. Raina, "Accelerating correctly rounded floating-point
division when the divisor is known in advance", IEEE Transactions on Computers 53 (2004).
"""

from __future__ import annotations

from typing import NamedTuple

from phintys.backends.llvm.ir.types import KernelWriter, Type, select

#: dtype -> the magnitude of the exponent above which divisors are scaled, the exponent of the scale
_EXPONENTS = {"float64": (960, 100), "float32": (96, 30)}
DTYPES = frozenset(_EXPONENTS)


class Divisor(NamedTuple):
    """The numbers for which ``x / y`` is ``(x * scale) * high + (x * scale) * low``."""

    scale: str
    high: str
    low: str

    def splat(self, w: KernelWriter, t: Type) -> Divisor:
        """The divisor broadcast to all lanes."""
        return Divisor(*(w.splat(t, x) for x in self))

    def divide(self, w: KernelWriter, t: Type, x: str) -> str:
        """Emit ``x / y``."""
        x = w(f"fmul {t.text} {x}, {self.scale}")
        low = w(f"fmul {t.text} {x}, {self.low}")
        return w.intrinsic("fma", t, x, self.high, low)


def prepare(w: KernelWriter, t: Type, y: str) -> Divisor:
    """Emit the computation of the `Divisor` for the scalar ``y``, before the loop."""
    limit, shift = _EXPONENTS[t.dtype]
    size = w.intrinsic("fabs", t, y)
    small = w(f"fcmp olt {t.text} {size}, {t.literal(2.0**-limit)}")
    large = w(f"fcmp ogt {t.text} {size}, {t.literal(2.0**limit)}")
    # a branch, not a select: it is nearly always predicted, so its condition costs no latency
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
    """The divisor, with ``inverse`` as both factors where it is 0, infinity or NaN."""
    size = w.intrinsic("fabs", t, inverse)
    positive = w(f"fcmp ogt {t.text} {size}, {t.literal(0)}")
    finite = w(f"fcmp olt {t.text} {size}, {t.literal(float('inf'))}")
    good = w(f"and i1 {positive}, {finite}")
    high, low = (select(w, t, good, x, inverse) for x in divisor[1:])
    return Divisor(divisor.scale, high, low)
