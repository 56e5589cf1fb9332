"""Exponentials, logarithms and erf of `vecmath`."""

from __future__ import annotations

from phintys.backends.llvm.vecmath.body import Body, Operand
from phintys.backends.llvm.vecmath.coefficients import COEFFICIENTS, PARTS

INF, NAN = float("inf"), float("nan")
LOG2_E = 1.4426950408889634
HALF_SQRT = 0.7071067811865476
LOG10_2 = 0.30102999566398120


def reduce_by_ln2(b: Body, x: str, shift: float) -> tuple[str, str]:
    """(t, r) with x = n ln(2) + r, |r| <= ln(2)/2, and n + shift in the low bits of t."""
    t, n, r = part_reduced_by_ln2(b, x, shift)
    return t, b.fma(n, -PARTS["ln2", b.format.dtype][1], r)


def part_reduced_by_ln2(b: Body, x: str, shift: float) -> tuple[str, str, str]:
    """(t, n, r) with x = n h + r, h the first part of ln(2), and n + shift in the low bits of t.

    Adding 1.5 * 2**fraction rounds to an integer and leaves it in the low bits of the fraction.
    """
    magic = 1.5 * b.format.integers_from + shift
    t = b.fma(x, LOG2_E, magic)
    n = b.sub(t, magic)
    return t, n, b.fma(n, -PARTS["ln2", b.format.dtype][0], x)


def power_of_two(b: Body, low_bits: str) -> str:
    """2**n, from an integer whose low bits hold n + bias."""
    return b.from_bits(b.integer("shl", low_bits, b.format.fraction))


def scale(b: Body, p: str, t: str) -> str:
    """p * 2**n from n + 2 bias in the low bits of t.

    Multiplies by two factors near 2**(n/2), so that on overflow and gradual underflow only the last
    multiplication rounds.
    """
    whole = b.bits(t)
    half = b.integer("lshr", whole, 1)
    rest = b.integer("sub", whole, half)
    return b.mul(b.mul(p, power_of_two(b, half)), power_of_two(b, rest))


def exp_series(b: Body, r: str) -> str:
    """e**r - 1 for |r| <= ln(2)/2."""
    return b.fma(b.mul(r, r), _exp_bend(b, r), r)


def exp_rest(b: Body, r: str, rest: str) -> str:
    """e**(r + rest) - 1 - r for |r| <= ln(2)/2, ``rest`` being below the last bit of r."""
    return b.fma(b.mul(r, r), _exp_bend(b, r), rest)


def _exp_bend(b: Body, r: str) -> str:
    """(e**r - 1 - r) / r**2."""
    return b.polynomial(r, COEFFICIENTS["exp", b.format.dtype])


def exp(b: Body, x: str) -> str:
    low, high = (-750.0, 710.0) if b.format.bits == 64 else (-110.0, 90.0)
    clamped = b.at_least(b.at_most(x, high), low)
    t, r = reduce_by_ln2(b, clamped, 2 * b.format.bias)
    return scale(b, b.add(exp_series(b, r), 1.0), t)


def _exp_inside(b: Body, x: str) -> str:
    """e**x, if neither x nor the result is subnormal or overflows."""
    t, r = reduce_by_ln2(b, x, b.format.bias)
    return b.mul(b.add(exp_series(b, r), 1.0), power_of_two(b, b.bits(t)))


def exp2(b: Body, x: str) -> str:
    low, high = (-1080.0, 1030.0) if b.format.bits == 64 else (-155.0, 130.0)
    clamped = b.at_least(b.at_most(x, high), low)
    magic = 1.5 * b.format.integers_from + 2 * b.format.bias
    t = b.add(clamped, magic)
    r = b.sub(clamped, b.sub(t, magic))
    p = b.fma(r, b.polynomial(r, COEFFICIENTS["exp2", b.format.dtype]), 1.0)
    return scale(b, p, t)


def expm1(b: Body, x: str) -> str:
    """(2**n r + (2**n - 1)) + 2**n r**2 q(r), where the first sum is exact if it cancels.

    All terms are halved until the end, since 2**1024 is not representable in float64.
    """
    low, high = (-50.0, 710.0) if b.format.bits == 64 else (-25.0, 89.0)
    clamped = b.at_least(b.at_most(x, high), low)
    t, r = reduce_by_ln2(b, clamped, b.format.bias - 1)
    half = power_of_two(b, b.bits(t))
    bend = b.mul(b.mul(r, r), _exp_bend(b, r))
    y = b.fma(half, bend, b.fma(half, r, b.sub(half, 0.5)))
    return keep_tiny(b, x, b.mul(y, 2.0))


def keep_tiny(b: Body, x: str, y: str) -> str:
    """x itself where the function rounds to x, including signed zeros and subnormals; else y."""
    tiny = b.compare("olt", b.abs(x), 2.0 ** -(b.format.fraction + 2))
    return b.select(tiny, x, y)


def sigmoid(b: Body, x: str) -> str:
    """v/(1 + e) as v - v e/(1 + e), e = exp(-|x|), v = 1 for x >= 0 and e below."""
    e = exp(b, b.neg(b.abs(x)))
    v = b.select(b.compare("olt", x, 0.0), e, 1.0)
    return b.fma(b.neg(v), b.div(e, b.add(e, 1.0)), v)


def softplus(b: Body, x: str) -> str:
    """max(x, 0) + log1p(exp(-|x|))."""
    e = exp(b, b.neg(b.abs(x)))
    half_square, rest = log_series(b, e, "log1p_unit")
    return b.add(b.at_least(x, 0.0), b.sub(e, b.sub(half_square, rest)))


def log1mexp(b: Body, x: str) -> str:
    """log(v) of v = 1 - e**x in two parts.

    With x = n log(2) + r it is -(e**r - 1) if n is 0, else 1 minus the parts of e**r times 2**n.
    """
    clamped = b.at_least(x, -750.0 if b.format.bits == 64 else -110.0)
    t, n, r = part_reduced_by_ln2(b, clamped, 2 * b.format.bias)
    r = b.fma(n, -PARTS["ln2", b.format.dtype][1], r)
    s, lost = b.ordered_sum(r, b.mul(b.mul(r, r), _exp_bend(b, r)))
    head, tail = b.ordered_sum(1.0, s)
    total, rest = b.ordered_sum(1.0, b.neg(scale(b, head, t)))
    rest = b.sub(rest, scale(b, b.add(tail, lost), t))
    near = b.compare("oeq", n, 0.0)
    v, rest = b.select(near, b.neg(s), total), b.select(near, b.neg(lost), rest)
    k, f = split_exponent(b, v, subnormals=True)
    y = b.copysign(join_exponent(b, k, f, b.div(rest, v)), -1.0)
    return b.select(b.compare("olt", x, 0.0), y, b.select(b.compare("oeq", x, 0.0), -INF, NAN))


def tanh(b: Body, x: str) -> str:
    """1 - 2/(e**2a + 1) with the sign of x; below 0.55, where that cancels, an odd polynomial."""
    a = b.abs(x)
    z = b.mul(a, a)
    near = b.fma(b.mul(a, z), b.polynomial(z, COEFFICIENTS["tanh", b.format.dtype]), a)
    e = _exp_inside(b, b.mul(b.at_most(a, 20.0), 2.0))
    far = b.sub(1.0, b.div(2.0, b.add(e, 1.0)))
    return b.copysign(b.select(b.compare("olt", a, 0.55), near, far), x)


def erf(b: Body, x: str) -> str:
    """x + x*E(x*x) below 1; above, 1 - exp(-P(a - 1)), where erfc is small and so its error too."""
    a = b.abs(x)
    z = b.mul(a, a)
    near = b.fma(x, b.polynomial(z, COEFFICIENTS["erf", b.format.dtype]), x)
    t = b.sub(b.at_most(a, 6.0 if b.format.bits == 64 else 4.0), 1.0)
    exponent = b.polynomial(t, COEFFICIENTS["erf_far", b.format.dtype])
    far = b.copysign(b.sub(1.0, _exp_inside(b, b.neg(exponent))), x)
    return b.select(b.compare("olt", a, 1.0), near, far)


def erfc(b: Body, x: str) -> str:
    if b.format.bits == 64:
        return _erfc(b, x)
    wide = b.widened()
    return b.truncate_from(wide, _erfc(wide, b.extend_to(wide, x)))


def _erfc(b: Body, x: str) -> str:
    """(1 - x) - x*E(x*x) below a = |x| = 3/4; above, y = exp(-a*a) erfcx(a), or 2 - y if x < 0."""
    a = b.at_most(b.abs(x), 27.3)
    square = b.polynomial(b.mul(a, a), COEFFICIENTS["erf", "float64"])
    near = b.fma(b.neg(x), square, b.sub(1.0, x))
    far = _erfc_far(b, a)
    far = b.select(b.compare("olt", x, 0.0), b.sub(2.0, far), far)
    return b.select(b.compare("olt", a, 0.75), near, far)


def _erfc_far(b: Body, a: str) -> str:
    """exp(-a*a) erfcx(a).

    The exponent is large, so it is computed in two parts, the square of the head of ``a`` and the
    rest; erfcx(a) has two parts as well.
    """
    head = b.head(a, 27)
    t, r = reduce_by_ln2(b, b.neg(b.mul(head, head)), 2 * b.format.bias)
    r = b.fma(b.sub(head, a), b.add(head, a), r)
    main, low = _erfcx(b, a)
    return scale(b, b.add(main, b.fma(main, exp_series(b, r), low)), t)


def _erfcx(b: Body, a: str) -> tuple[str, str]:
    """p/(1 + 2a), p a polynomial in (a - 3)/(a + 3), and the rounding error of p and quotient."""
    first, second = PARTS["seven_erfcx_3", "float64"]
    u = b.div(b.sub(a, 3.0), b.add(a, 3.0))
    bend = b.mul(u, b.polynomial(u, COEFFICIENTS["erfc", "float64"]))
    p = b.add(bend, first)
    twice = b.mul(a, 2.0)
    under = b.add(twice, 1.0)
    inverse = b.div(1.0, under)
    main = b.mul(p, inverse)
    lost = b.add(b.add(b.sub(first, p), bend), second)
    lost = b.fma(b.neg(main), b.sub(1.0, b.sub(under, twice)), lost)
    return main, b.mul(b.add(b.fma(b.neg(main), under, p), lost), inverse)


def split_exponent(b: Body, x: str, subnormals: bool) -> tuple[str, str]:
    """(k, f) as floats with x = 2**k (1 + f) and 1 + f in [sqrt(1/2), sqrt(2))."""
    fmt = b.format
    bias = b.const(fmt.integers_from + fmt.bias)
    if subnormals:
        small = b.compare("olt", x, fmt.least_normal)
        lift = fmt.fraction + 2
        bias = b.select(small, fmt.integers_from + fmt.bias + lift, bias)
        x = b.select(small, b.mul(x, 2.0**lift), x)
    origin = fmt.pattern(HALF_SQRT)
    offset = b.integer("add", b.bits(x), fmt.pattern(1.0) - origin)
    exponent = b.integer("lshr", offset, fmt.fraction)
    k = b.from_bits(b.integer("or", exponent, fmt.pattern(fmt.integers_from)))
    fraction = b.integer("and", offset, (1 << fmt.fraction) - 1)
    m = b.from_bits(b.integer("add", fraction, origin))
    return b.sub(k, bias), b.sub(m, 1.0)


def log_series(b: Body, f: str, table: str = "log") -> tuple[str, str]:
    """(h, t) with log(1 + f) = f - (h - t), h = f*f/2."""
    s = b.div(f, b.add(f, 2.0))
    z = b.mul(s, s)
    half_square = b.mul(b.mul(f, 0.5), f)
    tail = b.polynomial(z, COEFFICIENTS[table, b.format.dtype])
    return half_square, b.mul(s, b.fma(z, tail, half_square))


def _log_domain(b: Body, x: str, pole: float, y: str) -> str:
    """y, but x where x is inf or NaN, -inf at the pole, NaN below it."""
    y = b.select(b.compare("olt", x, INF), y, x)
    outside = b.select(b.compare("oeq", x, pole), -INF, NAN)
    return b.select(b.compare("ole", x, pole), outside, y)


def join_exponent(b: Body, k: str, f: str, correction: str | None = None) -> str:
    """k log(2) + log(1 + f) plus a small correction."""
    high, low = PARTS["ln2", b.format.dtype]
    half_square, rest = log_series(b, f)
    small = b.mul(k, low) if correction is None else b.fma(k, low, correction)
    return b.fma(k, high, b.sub(f, b.sub(half_square, b.add(rest, small))))


def join_exponent_in_parts(b: Body, k: str, f: str, correction: str) -> tuple[str, str]:
    """The result of `join_exponent` and what it lacks; k log(2) is 0 or larger than the rest."""
    high, low = PARTS["ln2", b.format.dtype]
    half_square, rest = log_series(b, f)
    small = b.sub(f, b.sub(half_square, b.add(rest, b.fma(k, low, correction))))
    main = b.fma(k, high, small)
    return main, b.sub(small, b.fma(b.neg(k), high, main))


def log_in_parts(b: Body, x: str) -> tuple[str, str]:
    """The logarithm of a positive number and what it lacks."""
    return _sum_in_parts(b, *split_exponent(b, x, subnormals=True))


def log1p_in_parts(b: Body, x: str) -> tuple[str, str]:
    """log(1 + x) and what it lacks, for 0 <= x <= 1."""
    u, lost = b.ordered_sum(1.0, x)
    k, f = split_exponent(b, u, subnormals=False)
    plain = b.compare("oeq", k, 0.0)
    return _sum_in_parts(b, k, b.select(plain, x, f), b.select(plain, 0.0, b.div(lost, u)))


def _sum_in_parts(b: Body, k: str, f: str, correction: Operand = 0.0) -> tuple[str, str]:
    """k log(2) + log(1 + f) + correction, and what it lacks."""
    high, low = PARTS["ln2", b.format.dtype]
    half_square, rest = log_series(b, f)
    main, error = b.ordered_sum(b.mul(k, high), f)
    small = b.fma(k, low, b.sub(rest, half_square))
    if isinstance(correction, str):
        small = b.add(small, correction)
    return b.ordered_sum(main, b.add(error, small))


def log(b: Body, x: str) -> str:
    k, f = split_exponent(b, x, subnormals=True)
    return _log_domain(b, x, 0.0, join_exponent(b, k, f))


def log1p(b: Body, x: str) -> str:
    """log(u) + (1 + x - u)/u, u = 1 + x rounded; where the exponent of u is 0, f is x itself."""
    u = b.add(x, 1.0)
    k, f = split_exponent(b, u, subnormals=False)
    lost = b.div(b.sub(x, b.sub(u, 1.0)), u)
    plain = b.compare("oeq", k, 0.0)
    y = join_exponent(b, k, b.select(plain, x, f), b.select(plain, 0.0, lost))
    return _log_domain(b, x, -1.0, keep_tiny(b, x, y))


def log2(b: Body, x: str) -> str:
    if b.format.bits == 32:
        return _narrow_log(b, x, 1.0)
    high, low = PARTS["log2_e", "float64"]
    k, f = split_exponent(b, x, subnormals=True)
    return _log_domain(b, x, 0.0, _other_base(b, f, k, b.const(0.0), high, low))


def log10(b: Body, x: str) -> str:
    if b.format.bits == 32:
        return _narrow_log(b, x, LOG10_2)
    high, low = PARTS["log10_e", "float64"]
    k, f = split_exponent(b, x, subnormals=True)
    k_high, k_low = (b.mul(k, part) for part in PARTS["log10_2", "float64"])
    return _log_domain(b, x, 0.0, _other_base(b, f, k_high, k_low, high, low))


def _other_base(b: Body, f: str, k_high: str, k_low: str, high: float, low: float) -> str:
    """k_high + k_low + (high + low) log(1 + f), the logarithm in two parts with exact products."""
    half_square, rest = log_series(b, f)
    head = b.head(b.sub(f, half_square), 32)
    tail = b.add(b.sub(b.sub(f, head), half_square), rest)
    main = b.mul(head, high)
    small = b.fma(b.add(tail, head), low, b.fma(tail, high, k_low))
    total = b.add(k_high, main)
    return b.add(b.add(small, b.add(b.sub(k_high, total), main)), total)


def narrow_log2(b: Body, x: str) -> str:
    """log2 of a positive normal float64, accurate enough for float32."""
    k, f = split_exponent(b, x, subnormals=False)
    s = b.div(f, b.add(f, 2.0))
    return b.fma(s, b.polynomial(b.mul(s, s), COEFFICIENTS["log2", "narrow"]), k)


def _narrow_log(b: Body, x: str, factor: float) -> str:
    wide = b.widened()
    y = narrow_log2(wide, b.extend_to(wide, x))
    return _log_domain(b, x, 0.0, b.truncate_from(wide, wide.mul(y, factor)))
