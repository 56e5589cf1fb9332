"""pow of `vecmath`: 2**(y log2|x|) with the logarithm in two parts, then C's special cases.

The algorithm is that of fdlibm's ``e_pow``: numbers are split so that the products of their heads
are exact without a fused multiply-add.  float32 is computed in float64 and needs no splitting.
"""

from __future__ import annotations

from phintys.backends.llvm.vecmath import exp_log
from phintys.backends.llvm.vecmath.body import Body
from phintys.backends.llvm.vecmath.coefficients import COEFFICIENTS, PARTS

INF, NAN = float("inf"), float("nan")
_DROPPED = 32  # low bits cut from a head: 21 remain, so that a product of heads is exact
_HUGE_EXPONENT = 2.0**65  # any larger |y| overflows, underflows or meets |x| = 1


def power(b: Body, x: str, y: str) -> str:
    if b.format.bits == 64:
        return _special_cases(b, x, y, _power(b, b.abs(x), _tamed(b, y)))
    wide = b.widened()
    x, y = b.extend_to(wide, x), b.extend_to(wide, y)
    z = _special_cases(wide, x, y, _narrow_power(wide, wide.abs(x), _tamed(wide, y)))
    return b.truncate_from(wide, z)


def _tamed(b: Body, y: str) -> str:
    return b.at_least(b.at_most(y, _HUGE_EXPONENT), -_HUGE_EXPONENT)


def _narrow_power(b: Body, x: str, y: str) -> str:
    exponent = b.mul(y, exp_log.narrow_log2(b, x))
    exponent = b.at_least(b.at_most(exponent, 300.0), -300.0)
    magic = 1.5 * b.format.integers_from + b.format.bias
    t = b.add(exponent, magic)
    r = b.sub(exponent, b.sub(t, magic))
    p = b.fma(r, b.polynomial(r, COEFFICIENTS["exp2", "narrow"]), 1.0)
    return b.mul(p, exp_log.power_of_two(b, b.bits(t)))


def _power(b: Body, x: str, y: str) -> str:
    """x**y for finite x > 0."""
    head, tail = log2_in_parts(b, x)
    y_head = b.head(y, _DROPPED)
    low = b.fma(b.sub(y, y_head), head, b.mul(y, tail))
    high = b.mul(y_head, head)
    total = b.add(low, high)
    clamped = b.at_least(b.at_most(total, 1100.0), -1100.0)
    inside = b.compare("oeq", total, clamped)
    return exp2_of_parts(b, b.select(inside, high, clamped), b.select(inside, low, 0.0))


def log2_in_parts(b: Body, x: str) -> tuple[str, str]:
    """(head, tail) of log2(x) to about 66 bits; the head has few bits.

    With s = f/(2 + f): log(1 + f) = 2/3 (3s + s**3 + s**5 (3/5 + ...)); s and the sum are split.
    """
    k, f = exp_log.split_exponent(b, x, subnormals=True)
    s, s_head, s_tail = _quotient_in_parts(b, f)
    z = b.mul(s, s)
    series = b.mul(b.mul(z, z), b.polynomial(z, COEFFICIENTS["atanh3", "float64"]))
    rest = b.fma(s_tail, b.add(s_head, s), series)
    square = b.mul(s_head, s_head)
    bracket = b.head(b.add(b.add(square, 3.0), rest), _DROPPED)
    bracket_tail = b.sub(rest, b.sub(b.sub(bracket, 3.0), square))
    main = b.mul(s_head, bracket)
    small = b.fma(s_tail, bracket, b.mul(bracket_tail, s))
    log_head = b.head(b.add(main, small), _DROPPED)
    log_tail = b.sub(small, b.sub(log_head, main))
    factor, factor_tail = PARTS["two_thirds_log2_e", "float64"]
    base_head = b.mul(log_head, factor)
    base_tail = b.fma(log_head, factor_tail, b.mul(log_tail, factor + factor_tail))
    head = b.head(b.add(b.add(base_head, base_tail), k), _DROPPED)
    return head, b.sub(base_tail, b.sub(b.sub(head, k), base_head))


def _quotient_in_parts(b: Body, f: str) -> tuple[str, str, str]:
    """s = f/(2 + f) rounded, its head, and the exact quotient minus the head."""
    t = b.add(f, 2.0)
    inverse = b.div(1.0, t)
    s = b.mul(f, inverse)
    s_head, t_head = b.head(s, _DROPPED), b.head(t, _DROPPED)
    t_tail = b.sub(f, b.sub(t_head, 2.0))
    remainder = b.fma(b.neg(s_head), t_tail, b.fma(b.neg(s_head), t_head, f))
    return s, s_head, b.mul(remainder, inverse)


def exp2_of_parts(b: Body, high: str, low: str) -> str:
    """2**(high + low), |high + low| <= 1100."""
    t, r, tail = _exp2_terms(b, high, low)
    return exp_log.scale(b, b.add(b.add(tail, r), 1.0), t)


def exp2_in_parts(b: Body, high: str, low: str) -> tuple[str, str]:
    """The same and what it lacks."""
    t, r, tail = _exp2_terms(b, high, low)
    small, lost = b.ordered_sum(r, tail)
    main, error = b.ordered_sum(1.0, small)
    return exp_log.scale(b, main, t), exp_log.scale(b, b.add(error, lost), t)


def _exp2_terms(b: Body, high: str, low: str) -> tuple[str, str, str]:
    """(t, r, tail): 2**(high + low) is (1 + r + tail) 2**n, t has n for `exp_log.scale`."""
    magic = 1.5 * b.format.integers_from + 2 * b.format.bias
    t = b.add(b.add(high, low), magic)
    high = b.sub(high, b.sub(t, magic))
    head = b.head(b.add(high, low), _DROPPED)
    ln2_head, ln2_tail = PARTS["ln2_pow", "float64"]
    main = b.mul(head, ln2_head)
    rest = b.sub(low, b.sub(head, high))
    small = b.fma(rest, ln2_head + ln2_tail, b.mul(head, ln2_tail))
    r = b.add(main, small)
    lost = b.sub(small, b.sub(r, main))
    q = b.polynomial(r, COEFFICIENTS["exp", "float64"])
    return t, r, b.fma(b.mul(r, r), q, b.fma(lost, r, lost))


def _is_integer(b: Body, magnitude: str) -> str:
    """Whether a value >= 0 is an integer (or infinite)."""
    large = b.format.integers_from
    bounded = b.at_most(magnitude, large)
    return b.compare("oeq", b.sub(b.add(bounded, large), large), bounded)


def _special_cases(b: Body, x: str, y: str, z: str) -> str:
    """pow as C defines it, from z = |x|**y, correct for finite |x| > 0 and any y but NaN.

    Uses nested selects: logic on boolean vectors is slow where a vector takes several registers.
    """
    magnitude, exponent = b.abs(x), b.abs(y)
    growing = b.compare("ogt", y, 0.0)
    at_zero, at_infinity = b.select(growing, 0.0, INF), b.select(growing, INF, 0.0)
    z = b.select(b.compare("oeq", magnitude, INF), at_infinity, z)
    z = b.select(b.compare("oeq", magnitude, 0.0), at_zero, z)
    whole = _is_integer(b, exponent)
    even = _is_integer(b, b.mul(exponent, 0.5))
    z = b.copysign(z, b.select(even, 1.0, b.select(whole, x, 1.0)))
    fractional = b.select(b.compare("ogt", x, -INF), NAN, z)
    fractional = b.select(b.compare("olt", x, 0.0), fractional, z)
    z = b.select(whole, z, fractional)
    z = b.select(b.compare("uno", x, y), NAN, z)
    z = b.select(b.compare("oeq", x, 1.0), 1.0, z)
    return b.select(b.compare("oeq", y, 0.0), 1.0, z)
