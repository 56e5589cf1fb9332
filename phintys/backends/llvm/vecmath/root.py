"""cbrt and hypot of `vecmath`."""

from __future__ import annotations

from phintys.backends.llvm.vecmath import exp_log
from phintys.backends.llvm.vecmath.body import Body
from phintys.backends.llvm.vecmath.coefficients import COEFFICIENTS

INF = float("inf")
#: cbrt(1 + e) = 1 + e/3 - e**2/9 + ...
_BINOMIAL = (1 / 3, -1 / 9, 5 / 81, -10 / 243)
_CBRT_2 = 1.2599210498948732
_DROPPED = 36  # low bits cut from a first cube root: 17 remain, so that its cube is exact
#: Squares of magnitudes between 1/_MODERATE and _MODERATE, and the smallest part of them that
#: affects the result, are normal numbers; others are scaled by _FACTOR or 1/_FACTOR.
_MODERATE, _FACTOR = 2.0**500, 2.0**600


def cbrt(b: Body, x: str) -> str:
    a = b.abs(x)
    if b.format.bits == 64:
        y = _cube_root(b, a, subnormals=True)
    else:
        wide = b.widened()
        y = b.truncate_from(wide, _cube_root(wide, b.extend_to(wide, a), subnormals=False))
    y = b.select(b.compare("olt", a, INF), y, a)
    return b.copysign(b.select(b.compare("ogt", a, 0.0), y, a), x)


def _cube_root(b: Body, a: str, subnormals: bool) -> str:
    """2**n cbrt(2**j m) for j in -1, 0, 1, from the root of m by a short polynomial.

    The cube of its head y is exact, so the relative difference e of that to 2**j m is accurate.
    """
    k, f = exp_log.split_exponent(b, a, subnormals)
    magic = 1.5 * b.format.integers_from + b.format.bias
    t = b.fma(k, 1 / 3, magic)
    j = b.fma(b.sub(t, magic), -3.0, k)
    less, more = b.compare("olt", j, 0.0), b.compare("ogt", j, 0.0)
    power = b.select(less, 0.5, b.select(more, 2.0, 1.0))
    root = b.select(less, 1 / _CBRT_2, b.select(more, _CBRT_2, 1.0))
    y = b.head(b.mul(b.polynomial(f, COEFFICIENTS["cbrt", "float64"]), root), _DROPPED)
    cube = b.mul(b.mul(y, y), y)
    e = b.div(b.sub(b.mul(b.add(f, 1.0), power), cube), cube)
    y = b.fma(b.mul(y, e), b.polynomial(e, _BINOMIAL), y)
    return b.mul(y, exp_log.power_of_two(b, b.bits(t)))


def hypot(b: Body, x: str, y: str) -> str:
    """sqrt(x*x + y*y); infinite if either is, even if the other is NaN."""
    first, second = b.abs(x), b.abs(y)
    if b.format.bits == 64:
        root = _scaled_hypotenuse(b, first, second)
    else:
        wide = b.widened()
        one, other = b.extend_to(wide, first), b.extend_to(wide, second)
        root = b.truncate_from(wide, _hypotenuse(wide, one, other))
    root = b.select(b.compare("oeq", first, INF), INF, root)
    return b.select(b.compare("oeq", second, INF), INF, root)


def _hypotenuse(b: Body, x: str, y: str) -> str:
    return b.intrinsic("sqrt", b.fma(x, x, b.mul(y, y)))


def _scaled_hypotenuse(b: Body, x: str, y: str) -> str:
    """sqrt(x*x + y*y) for any magnitudes: large and small ones are scaled by a power of two."""
    greater = b.select(b.compare("ogt", x, y), x, y)
    great = b.compare("ogt", greater, _MODERATE)
    small = b.compare("olt", greater, 1 / _MODERATE)
    factor = b.select(great, 1 / _FACTOR, b.select(small, _FACTOR, 1.0))
    inverse = b.select(great, _FACTOR, b.select(small, 1 / _FACTOR, 1.0))
    return b.mul(_hypotenuse(b, b.mul(x, factor), b.mul(y, factor)), inverse)
