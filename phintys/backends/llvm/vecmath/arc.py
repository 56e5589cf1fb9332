"""asin, acos, atan and atan2 of `vecmath`."""

from __future__ import annotations

from phintys.backends.llvm.vecmath.body import Body
from phintys.backends.llvm.vecmath.coefficients import COEFFICIENTS, PARTS


def _arcsine_terms(b: Body, x: str) -> tuple[str, str, str]:
    """(far, s, asin(s) - s): s = x up to 1/2; sqrt((1 - |x|)/2) if ``far``, NaN outside of [-1, 1].

    asin(|x|) = pi/2 - 2 asin(sqrt((1 - |x|)/2)).
    """
    a = b.abs(x)
    far = b.compare("ogt", a, 0.5)
    z = b.select(far, b.mul(b.sub(1.0, a), 0.5), b.mul(x, x))
    s = b.select(far, b.intrinsic("sqrt", z), x)
    return far, s, b.mul(b.mul(s, z), b.polynomial(z, COEFFICIENTS["asin", b.format.dtype]))


def asin(b: Body, x: str) -> str:
    """asin(x); for large |x| the difference pi/2 - 2s, most of the result, is kept in two parts."""
    far, s, rest = _arcsine_terms(b, x)
    high, low = PARTS["quarter_turn", b.format.dtype]
    twice = b.mul(s, 2.0)
    main = b.sub(high, twice)
    lost = b.add(b.sub(b.sub(high, main), twice), low)
    y = b.add(main, b.fma(rest, -2.0, lost))
    return b.select(far, b.copysign(y, x), b.add(s, rest))


def acos(b: Body, x: str) -> str:
    """acos(x): pi/2 - asin(x); if far, 2 asin(s), or pi - 2 asin(s) for negative x."""
    far, s, rest = _arcsine_terms(b, x)
    high, low = PARTS["quarter_turn", b.format.dtype]
    near = b.sub(high, b.sub(s, b.sub(low, rest)))
    half = b.add(s, rest)
    behind = b.sub(high, b.sub(half, low))
    y = b.mul(b.select(b.compare("olt", x, 0.0), behind, half), 2.0)
    return b.select(far, y, near)


def _arctangent(b: Body, t: str) -> str:
    """atan(t), |t| <= 1."""
    z = b.mul(t, t)
    return b.fma(b.mul(t, z), b.polynomial(z, COEFFICIENTS["atan", b.format.dtype]), t)


def atan(b: Body, x: str) -> str:
    a = b.abs(x)
    large = b.compare("ogt", a, 1.0)
    y = _arctangent(b, b.div(b.select(large, 1.0, a), b.select(large, a, 1.0)))
    high, low = PARTS["quarter_turn", b.format.dtype]
    return b.copysign(b.select(large, b.sub(high, b.sub(y, low)), y), x)


def atan2(b: Body, y: str, x: str) -> str:
    """m pi/2 + atan(t) or m pi/2 - atan(t), t the smaller magnitude over the larger, m 0, 1 or 2.

    t is 1 for two infinities, 0 for two zeros; the sign of a zero x matters.
    """
    up, along = b.abs(y), b.abs(x)
    steep = b.compare("ogt", up, along)
    small, large = b.select(steep, along, up), b.select(steep, up, along)
    large = b.select(b.compare("oeq", large, 0.0), 1.0, large)
    t = b.select(b.compare("oeq", small, large), 1.0, b.div(small, large))
    turned = b.copysign(_arctangent(b, t), x)
    turned = b.select(steep, b.neg(turned), turned)
    quarters = b.select(steep, 1.0, b.sub(1.0, b.copysign(1.0, x)))
    high, low = PARTS["quarter_turn", b.format.dtype]
    return b.copysign(b.fma(quarters, high, b.fma(quarters, low, turned)), y)
