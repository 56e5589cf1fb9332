"""erfcx, erfinv, erfcinv, ndtr, log_ndtr and ndtri of `vecmath`.

Formulas: NIST Digital Library of Mathematical Functions (DLMF), chapter 7.  ``(1 + 2x) erfcx(x)``
is a polynomial in ``(x - 3)/(x + 3)`` (M. M. Shepherd and J. G. Laframboise, "Chebyshev
approximation of (1 + 2x) exp(x**2) erfc(x)", 1981).  The inverses are polynomials in the squared
argument in the middle, and of ``sqrt(-log(p))`` in the tails.  Squares in exponents are computed in
two parts.
"""

from __future__ import annotations

from collections.abc import Callable

from phintys.backends.llvm.vecmath import coefficients
from phintys.backends.llvm.vecmath.body import Body, Operand
from phintys.backends.llvm.vecmath.exp_log import (
    INF,
    NAN,
    exp_rest,
    join_exponent,
    log_in_parts,
    part_reduced_by_ln2,
    scale,
    split_exponent,
)
from phintys.backends.llvm.vecmath.special_coefficients import COEFFICIENTS, PARTS

_HALF_ROOT = 0.7071067811865476  # sqrt(1/2)
_LOST_HALF_ROOT = -4.833646656726457e-17  # what it lacks
_NEAR = 0.67  # bound of |x| for ndtr(x) = 1/2 + ...: ndtr(-0.67) > 1/4


# ------------------------------------------------------------------------------ erfcx, ndtr


def _scaled(b: Body, a: str, kind: str, lost_of_a: Operand = 0.0) -> tuple[str, str]:
    """erfcx(a)/2 for a >= 0.47 as p/(1/2 + a)/4 and what it lacks by rounding p and the quotient.

    It is computed at a rounded to the bits of a + 3, so that all differences are exact.  What that
    lacks, and ``lost_of_a``, change the logarithm by -1/(1/2 + a), or 0.9 of it, times as much.
    """
    first, second = (part / 4 for part in PARTS["erfcx"])
    below = b.add(a, 3.0)
    lost_of_a = b.fma(b.sub(a, b.sub(below, 3.0)), 0.9, lost_of_a)
    u = b.div(b.sub(below, 6.0), below)
    quarter = [c / 4 for c in COEFFICIENTS["erfcx", kind]]
    bend = b.mul(u, b.polynomial(u, quarter))
    p = b.add(bend, first)
    under = b.sub(below, 2.5)
    inverse = b.div(1.0, under)
    main = b.mul(p, inverse)
    lost = b.add(b.add(b.sub(first, p), bend), second)
    lost = b.fma(b.neg(main), lost_of_a, lost)
    return main, b.mul(b.add(b.fma(b.neg(main), under, p), lost), inverse)


def _exp_square(b: Body, a: str, factor: float) -> tuple[str, str, str]:
    """(t, r, e): exp(factor * a**2) is (1 + r + e) 2**n, t has n for `scale`.

    ``factor`` is +-1 or +-1/2.
    """
    head = b.head(a, 27)
    square = b.mul(b.mul(head, factor), head)
    t, n, r = part_reduced_by_ln2(b, square, 2 * b.format.bias)
    tail = b.mul(b.mul(b.sub(a, head), b.add(a, head)), factor)
    r, rest = b.two_sum(r, b.fma(n, -coefficients.PARTS["ln2", "float64"][1], tail))
    return t, r, exp_rest(b, r, rest)


def _scaled_normal(b: Body, a: str, kind: str) -> tuple[str, str]:
    """erfcx(a/sqrt(2))/2 for a >= 0.67 in two parts."""
    half = b.mul(a, _HALF_ROOT)
    lost = b.fma(a, _LOST_HALF_ROOT, b.fma(a, _HALF_ROOT, b.neg(half)))
    return _scaled(b, half, kind, lost)


def erfcx(b: Body, x: str, kind: str) -> str:
    """exp(x**2) (1 - erf(x)) near 0; below, 2 exp(x**2) - erfcx(-x)."""
    a = b.abs(x)
    main, low = _scaled(b, a, kind)
    t, r, rest = _exp_square(b, b.at_most(a, 27.5), 1.0)
    e = b.add(r, rest)
    close = b.compare("olt", a, 0.75)
    table = coefficients.COEFFICIENTS["erf", "float64"]
    bend = b.polynomial(b.mul(x, x), table)
    first, error = b.ordered_sum(1.0, b.neg(x))
    rest = b.fma(b.neg(x), bend, first)
    lost = b.add(b.fma(b.neg(x), bend, b.sub(first, rest)), error)
    factor, lost = b.select(close, rest, 2.0), b.select(close, lost, 0.0)
    power = scale(b, b.add(factor, b.fma(factor, e, b.fma(lost, e, lost))), t)
    ahead = b.mul(b.add(main, low), 2.0)
    found = b.select(b.compare("olt", x, 0.0), b.sub(power, ahead), ahead)
    found = b.select(close, power, found)
    found = b.select(b.compare("oeq", x, INF), 0.0, found)
    return b.select(b.compare("oeq", x, -INF), INF, found)


def _upper_tail(b: Body, a: str, main: str, low: str) -> tuple[str, str]:
    """exp(-a**2/2) erfcx(a/sqrt(2))/2 and its rounding error from the parts of half of erfcx."""
    t, r, rest = _exp_square(b, b.at_most(a, 39.0), -0.5)
    small = b.fma(main, rest, b.fma(low, r, low))
    tail, lost = b.ordered_sum(main, b.fma(main, r, small))
    return scale(b, tail, t), scale(b, lost, t)


def _from_half(b: Body, x: str) -> str:
    """ndtr(x) - 1/2 for small x: erf(x/sqrt(2))/2."""
    half = b.mul(x, _HALF_ROOT / 2)
    square = b.mul(b.mul(x, x), 0.5)
    return b.fma(half, b.polynomial(square, coefficients.COEFFICIENTS["erf", "float64"]), half)


def ndtr(b: Body, x: str, kind: str) -> str:
    """1/2 + erf(x/sqrt(2))/2 near 0; a tail, or 1 minus it."""
    a = b.abs(x)
    tail, _ = _upper_tail(b, a, *_scaled_normal(b, b.at_most(a, 39.0), kind))
    far = b.select(b.compare("ogt", x, 0.0), b.sub(1.0, tail), tail)
    near = b.add(_from_half(b, x), 0.5)
    return b.select(b.compare("olt", a, _NEAR), near, far)


def log_ndtr(b: Body, x: str, kind: str) -> str:
    """log(v + w) with w the rounding error of v.

    v is ndtr(x) near 0, 1 minus the tail above, erfcx(-x/sqrt(2))/2 below, where -x**2/2 is added.
    """
    a = b.at_most(b.abs(x), 1e300)
    near, lower = b.compare("olt", a, _NEAR), b.compare("ole", x, -_NEAR)
    main, low = _scaled_normal(b, a, kind)
    first = b.select(near, 0.5, 1.0)
    tail, rest = _upper_tail(b, a, main, low)
    second = b.select(near, _from_half(b, x), b.neg(tail))
    total, lost = b.ordered_sum(first, second)
    lost = b.sub(lost, b.select(near, 0.0, rest))
    v = b.select(lower, main, total)
    k, f = split_exponent(b, v, subnormals=True)
    found = join_exponent(b, k, f, b.div(b.select(lower, low, lost), v))
    found = b.select(lower, b.fma(b.mul(x, -0.5), x, found), found)
    return b.select(b.compare("oeq", x, -INF), -INF, found)


# -------------------------------------------------------------------------------- inverses


def _middle(b: Body, y: str, name: str, constant: str, kind: str, lost: str | None = None) -> str:
    """y (c + z P(z)), z = y**2, with c in two parts, plus a tiny ``lost``."""
    z = b.mul(y, y)
    first, second = PARTS[constant]
    bend = b.fma(z, b.polynomial(z, COEFFICIENTS[name, kind]), second)
    return b.fma(y, first, b.fma(y, bend, lost) if lost else b.mul(y, bend))


#: The derivatives of ndtri in (1/8, 1/4) within 25 % and of erfinv in (1/2, 5/8) within 10 %, where
#: the difference of the argument and 1/2 or 1 is rounded.
_NDTRI_SLOPE, _ERFCINV_SLOPE = 3.9, 1.2
#: The derivatives of r F((r - 3.5)/(r + 3.5)) with respect to r, and of F times r/(r + 3.5),
#: correct within 20 % where they matter, to correct errors of r and of the quotient.
_SLOPES = {"ndtri_far": (1.6, 0.55), "erfcinv_far": (1.03, 0.2)}


def _tail(b: Body, p: str, name: str, kind: str) -> str:
    """The inverse at a small p: r F(t), r = sqrt(-log(p)), t = (r - 3.5)/(r + 3.5)."""
    r, lost = _root_of_log(b, p)
    above, first_lost = b.ordered_sum(-3.5, r)
    below, second_lost = b.ordered_sum(3.5, r)
    t = b.div(above, below)
    rest = b.add(b.fma(b.neg(t), below, above), b.fma(b.neg(t), second_lost, first_lost))
    slope, other = _SLOPES[name]
    first, second, *others = COEFFICIENTS[name, kind]
    bend = b.fma(t, b.from_first(t, others), second)
    return b.fma(r, first, b.fma(r, bend, b.fma(lost, slope, b.mul(rest, other))))


def _root_of_log(b: Body, p: str) -> tuple[str, str]:
    """sqrt(-log(p)) in two parts."""
    negative, lost = log_in_parts(b, p)
    total = b.neg(negative)
    r = b.intrinsic("sqrt", total)
    return r, b.div(b.sub(b.fma(b.neg(r), r, total), lost), b.add(r, r))


def _bounded(b: Body, p: str, x: str, size: str) -> str:
    """size, with the sign of x; infinite where p is 0, NaN where it is negative or NaN."""
    size = b.select(b.compare("oeq", p, 0.0), INF, size)
    return b.copysign(b.select(b.compare("oge", p, 0.0), size, NAN), x)


def ndtri(b: Body, p: str, kind: str) -> str:
    y = b.sub(p, 0.5)
    lost = b.mul(b.sub(p, b.add(y, 0.5)), _NDTRI_SLOPE)
    above = b.compare("ogt", y, 0.0)
    q = b.select(above, b.sub(1.0, p), p)
    far = _bounded(b, q, y, _tail(b, q, "ndtri_far", kind))
    near = _middle(b, y, "ndtri_mid", "root_2pi", kind, lost)
    return b.select(b.compare("olt", b.abs(y), 0.375), near, far)


def erfinv(b: Body, x: str, kind: str) -> str:
    a = b.abs(x)
    q = b.sub(1.0, a)
    far = _bounded(b, q, x, _tail(b, q, "erfcinv_far", kind))
    near = _middle(b, x, "erfinv_mid", "half_root_pi", kind)
    return b.select(b.compare("olt", a, 0.75), near, far)


def erfcinv(b: Body, p: str, kind: str) -> str:
    x = b.sub(1.0, p)
    lost = b.mul(b.sub(b.sub(1.0, x), p), _ERFCINV_SLOPE)
    q = b.select(b.compare("ogt", p, 1.0), b.sub(2.0, p), p)
    far = _bounded(b, q, x, _tail(b, q, "erfcinv_far", kind))
    near = _middle(b, x, "erfinv_mid", "half_root_pi", kind, lost)
    inside = b.compare("oge", p, 0.375)
    near = b.select(inside, near, far)
    return b.select(b.compare("olt", p, 1.75), near, far)


#: name -> function of (body, argument, kind of coefficients), in float64
FUNCTIONS: dict[str, Callable[[Body, str, str], str]] = {
    "erfcx": erfcx,
    "ndtr": ndtr,
    "log_ndtr": log_ndtr,
    "ndtri": ndtri,
    "erfinv": erfinv,
    "erfcinv": erfcinv,
}
