"""sinh, cosh, asinh, acosh and atanh of `vecmath`."""

from __future__ import annotations

from phintys.backends.llvm.vecmath import exp_log
from phintys.backends.llvm.vecmath.body import Body
from phintys.backends.llvm.vecmath.coefficients import COEFFICIENTS, PARTS

INF, NAN = float("inf"), float("nan")
#: above it every result overflows, while a quarter of e**x does not yet
_OVERFLOW = {"float64": 710.8, "float32": 89.7}
#: above it 2**-n is negligible against 2**n
_LARGE_POWER = 2.0**60


def _addition_terms(b: Body, x: str) -> tuple[str, str, str, str, str]:
    """(r, s, c, d, e) for |x| = n ln(2) + r, from which sinh and cosh follow without division.

    s = sinh(r) - r, c = cosh(r) - 1; d and e are half of sinh and cosh of n ln(2), halved since
    2**1024 is not representable in float64.
    """
    clamped = b.at_most(b.abs(x), _OVERFLOW[b.format.dtype])
    t, r = exp_log.reduce_by_ln2(b, clamped, b.format.bias - 2)
    power = exp_log.power_of_two(b, b.bits(t))
    bounded = b.bits(b.at_most(power, _LARGE_POWER))
    inverse = b.from_bits(b.integer("sub", 2 * b.format.pattern(0.25), bounded))
    z = b.mul(r, r)
    s = b.mul(b.mul(r, z), b.polynomial(z, COEFFICIENTS["sinh", b.format.dtype]))
    c = b.mul(z, b.polynomial(z, COEFFICIENTS["cosh", b.format.dtype]))
    return r, s, c, b.sub(power, inverse), b.add(power, inverse)


def sinh(b: Body, x: str) -> str:
    """d cosh(r) + e sinh(r), with the largest terms added last."""
    r, s, c, d, e = _addition_terms(b, x)
    small = b.fma(e, s, b.mul(d, c))
    y = b.mul(b.add(d, b.fma(e, r, small)), 2.0)
    return exp_log.keep_tiny(b, x, b.copysign(y, x))


def cosh(b: Body, x: str) -> str:
    """e cosh(r) + d sinh(r), with the largest terms added last."""
    r, s, c, d, e = _addition_terms(b, x)
    small = b.fma(d, s, b.mul(e, c))
    return b.mul(b.add(e, b.fma(d, r, small)), 2.0)


def _log_of_sum(b: Body, a: str, w: str, lost: str, inverse: str) -> str:
    """log(1 + w + lost), from ``inverse`` = 1/(1 + w); log(2a) for ``a`` above `_square_limit`."""
    bound = _square_limit(b)
    u = b.add(w, 1.0)
    lost = b.add(b.sub(w, b.sub(u, 1.0)), lost)
    huge = b.compare("ogt", a, bound)
    k, f = exp_log.split_exponent(b, b.select(huge, a, u), subnormals=False)
    k = b.add(k, b.select(huge, 1.0, 0.0))
    return exp_log.join_exponent(b, k, f, b.mul(lost, inverse))


def _square_limit(b: Body) -> float:
    """The x above which 1 is negligible against x*x."""
    return 2.0 ** (b.format.fraction // 2 + 2)


def asinh(b: Body, x: str) -> str:
    """log(1 + w), w = a + a*a/(1 + sqrt(a*a + 1)); sqrt(a*a + 1) - a is 1/(1 + w)."""
    a = b.abs(x)
    bounded = b.at_most(a, _square_limit(b))
    square = b.mul(bounded, bounded)
    root = b.intrinsic("sqrt", b.add(square, 1.0))
    q = b.div(square, b.add(root, 1.0))
    w = b.add(bounded, q)
    lost = b.add(b.sub(bounded, w), q)
    y = _log_of_sum(b, a, w, lost, b.sub(root, bounded))
    return b.copysign(b.select(b.compare("olt", a, INF), y, a), x)


def acosh(b: Body, x: str) -> str:
    """log(1 + w), w = t + sqrt(t*t + 2t), t = x - 1; x - sqrt(x*x - 1) is 1/(1 + w)."""
    bounded = b.at_most(x, _square_limit(b))
    t = b.sub(bounded, 1.0)
    root = b.intrinsic("sqrt", b.fma(t, t, b.mul(t, 2.0)))
    w = b.add(root, t)
    lost = b.add(b.sub(root, w), t)
    y = _log_of_sum(b, x, w, lost, b.sub(bounded, root))
    return b.select(b.compare("olt", x, 1.0), NAN, b.select(b.compare("olt", x, INF), y, x))


def atanh(b: Body, x: str) -> str:
    """k ln(2)/2 + atanh(s), s = (m - 1)/(m + 1), (1 + a)/(1 - a) = 2**k m.

    With p = 2**k, s = (2a - (p - 1)(1 - a)) / (2 + (p - 1)(1 - a)): a itself where k is 0.  The
    bits of a number, taken as an integer, give its logarithm to 0.09.  k increases at a = 1/4,
    0.55, ..., later than by rounding, since a negative s cancels: -0.112 < s < 0.273.
    """
    fmt = b.format
    a = b.abs(x)
    rest = b.sub(1.0, a)
    rounded = b.sub(b.sub(1.0, rest), a)
    one, quarter = fmt.pattern(1.0), 1 << (fmt.fraction - 2)
    quotient = b.integer("sub", b.bits(b.add(a, 1.0)), b.bits(rest))
    exponent = b.integer("lshr", b.integer("add", quotient, quarter), fmt.fraction)
    k = b.integer("or", exponent, fmt.pattern(fmt.integers_from))
    k = b.sub(b.from_bits(k), fmt.integers_from)
    power = b.from_bits(b.integer("add", b.integer("shl", exponent, fmt.fraction), one))
    factor = b.sub(1.0, power)
    top = b.fma(factor, rounded, b.fma(factor, rest, b.mul(a, 2.0)))
    s = b.div(top, b.fma(b.neg(factor), rest, 2.0))
    z = b.mul(s, s)
    series = b.polynomial(z, COEFFICIENTS["atanh", fmt.dtype])
    high, low = (0.5 * part for part in PARTS["ln2", fmt.dtype])
    y = b.fma(k, high, b.add(s, b.fma(b.mul(s, z), series, b.mul(k, low))))
    outside = b.select(b.compare("oeq", a, 1.0), INF, NAN)
    return b.copysign(b.select(b.compare("olt", a, 1.0), y, outside), x)
