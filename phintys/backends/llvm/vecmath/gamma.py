"""gamma, gammaln, psi, trigamma and betaln of `vecmath`.

Formulas: NIST Digital Library of Mathematical Functions (DLMF) 5.5 (recurrences and reflections),
5.11 (Stirling's series) and 5.15.  Arguments below 3 are moved by a recurrence into an interval on
which a polynomial was fitted; from 3 on, the asymptotic series is used.  Negative arguments take a
slow path, a function of the argument and of the result for its magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from phintys.backends.llvm.vecmath import exp_log
from phintys.backends.llvm.vecmath.body import Body
from phintys.backends.llvm.vecmath.coefficients import PARTS as COMMON_PARTS
from phintys.backends.llvm.vecmath.exp_log import (
    INF,
    NAN,
    join_exponent_in_parts,
    log_series,
    split_exponent,
)
from phintys.backends.llvm.vecmath.gamma_coefficients import COEFFICIENTS, PARTS
from phintys.backends.llvm.vecmath.pow import exp2_in_parts, log2_in_parts

FAR = 3.0
TRIGAMMA_FAR = 2.0
TURN = 1.40625  # from here on, gamma and gammaln are expanded at 2, before it at 1
#: the arguments below which a function takes its slow path
LIMITS = {"gamma": -0.5, "gammaln": -0.625, "psi": 0.0, "trigamma": 0.0}
LEAST = 2.0**-500  # of arguments whose inverse squares are corrected
#: Two numbers below it are multiplied by the factor, lest pq/(p + q) be subnormal.
TINY, TINY_FACTOR = 2.0**-960, 2.0**128
PI = 3.141592653589793
HALF_LOG_2PI = 0.9189385332046727


# ------------------------------------------------------------------------------- gammaln


def gammaln(b: Body, x: str, kind: str) -> tuple[str, str]:
    """The logarithm of gamma(|x|) for x >= 3 and x < -0.625, of |gamma(x)| between."""
    u = b.select(b.compare("olt", x, LIMITS["gammaln"]), b.neg(x), x)
    far, low = b.compare("oge", u, FAR), b.compare("ole", u, TURN)
    t, product = _stepped(b, u)
    k, f = split_exponent(b, b.select(far, u, b.abs(product)), subnormals=True)
    half_square, rest = log_series(b, f)
    at_1 = b.both(low, b.compare("oeq", k, 0.0))  # where f is t
    t = b.select(far, 0.0, t)
    slope, lost = _slope_of_gammaln(b, t, at_1, kind)
    signed = b.select(low, b.neg(t), t)
    high, ln2_low = COMMON_PARTS["ln2", "float64"]
    small = b.fma(k, ln2_low, b.sub(rest, b.select(at_1, 0.0, half_square)))
    small = b.fma(signed, slope, b.fma(signed, lost, small))
    main = b.sub(b.mul(k, high), b.select(far, 1.0, 0.0))
    main, error = b.ordered_sum(main, b.select(at_1, 0.0, f))
    small = b.add(error, small)
    logarithm = b.add(main, small)
    inverse = b.div(1.0, u)
    series = b.polynomial(b.mul(inverse, inverse), COEFFICIENTS["gammaln_far", kind])
    series = b.fma(inverse, series, PARTS["stirling"][0])
    series = b.fma(logarithm, -0.5, series)
    stirling = b.fma(u, logarithm, series)
    product = b.mul(u, logarithm)
    lost = b.fma(u, logarithm, b.neg(product))
    lost = b.fma(u, b.add(b.sub(main, logarithm), small), lost)
    lost = b.add(lost, b.sub(series, b.sub(stirling, product)))
    found = b.select(low, b.sub(0.0, logarithm), logarithm)
    found = b.select(b.compare("oeq", u, 0.0), INF, b.select(far, stirling, found))
    return b.select(b.compare("olt", u, INF), found, u), b.select(far, lost, 0.0)


def _slope_of_gammaln(b: Body, t: str, at_1: str, kind: str) -> tuple[str, str]:
    """gammaln(2 + t)/t in two parts; where ``at_1``, minus 1 and plus t/2."""
    (slope, lost), (euler, rest) = PARTS["slope_at_2"], PARTS["euler"]
    first, second, *others = COEFFICIENTS["gammaln", kind]
    first = b.select(at_1, first + 0.5, first)
    bend = b.mul(t, first)
    small = b.fma(t, first, b.neg(bend))
    total, error = b.ordered_sum(b.select(at_1, -euler, slope), bend)
    small = b.add(b.add(small, error), b.select(at_1, -rest, lost))
    return total, b.fma(t, b.fma(t, b.polynomial(t, others), second), small)


def _stepped(b: Body, u: str, steps: int = 1) -> tuple[str, str]:
    """(t, p): gamma(u) is gamma(2 + t) p above `TURN`, and gamma(2 + t) / p below.

    u is at most 2.40625 + ``steps``.
    """
    t, product = b.sub(u, 2.0), b.const(1.0)
    for step in range(1, steps + 1):
        above = b.compare("ogt", u, TURN + step)
        factor = b.sub(u, float(step))
        product = b.select(above, factor if step == 1 else b.mul(product, factor), product)
        t = b.select(above, b.sub(u, step + 2.0), t)
    low, least = b.compare("ole", u, TURN), b.compare("olt", u, 0.125)
    t, product = b.select(low, b.sub(u, 1.0), t), b.select(low, u, product)
    return b.select(least, u, t), b.select(least, b.fma(u, u, u), product)


def _nearest(b: Body, a: str) -> tuple[str, str]:
    """The integer nearest to a >= 0 and the rest; at most 2**52, where the rest is 0."""
    bounded = b.at_most(a, b.format.integers_from)
    n = b.sub(b.add(bounded, b.format.integers_from), b.format.integers_from)
    return n, b.sub(bounded, n)


def _gammaln_below(b: Body, x: str, y: str, low_of_y: str, kind: str) -> str:
    """log(pi / (a |sin(pi a)|)) - y for a = -x (DLMF 5.5.3); inf at the poles."""
    a = b.neg(x)
    _, r = _nearest(b, a)
    sine, lost = _sine(b, b.abs(r), kind)
    size = b.mul(a, sine)
    lost = b.div(b.fma(a, lost, b.fma(a, sine, b.neg(size))), size)
    k, f = split_exponent(b, size, subnormals=False)
    high, low = COMMON_PARTS["ln2", "float64"]
    half_square, rest = log_series(b, f)
    small = b.sub(PARTS["log_pi"][1], b.add(b.fma(k, low, lost), b.sub(rest, half_square)))
    small = b.sub(small, low_of_y)
    found, first = b.two_sum(PARTS["log_pi"][0], b.mul(k, -high))
    found, second = b.two_sum(found, b.neg(y))
    found, third = b.two_sum(found, b.neg(f))
    found = b.add(found, b.add(small, b.add(b.add(first, second), third)))
    found = b.select(b.compare("oeq", r, 0.0), INF, found)
    return b.select(b.compare("oeq", a, INF), -INF, found)


def _sine(b: Body, r: str, kind: str) -> tuple[str, str]:
    """sin(pi r) for |r| <= 1/2 in two parts."""
    z = b.mul(r, r)
    (pi, lost), (cube, lost_of_cube) = PARTS["pi"], PARTS["pi_cube_sixth"]
    bend = b.mul(z, -cube)
    lost = b.add(b.fma(z, -cube, b.neg(bend)), lost)
    lost = b.fma(b.fma(r, r, b.neg(z)), -cube, lost)
    total, error = b.ordered_sum(pi, bend)
    rest = b.fma(z, b.polynomial(z, COEFFICIENTS["sinpi", kind]), -lost_of_cube)
    factor, lost = b.ordered_sum(total, b.fma(z, rest, b.add(error, lost)))
    sine = b.mul(r, factor)
    return sine, b.fma(r, lost, b.fma(r, factor, b.neg(sine)))


# ----------------------------------------------------------------------------------- psi


def psi(b: Body, x: str, kind: str) -> tuple[str, str]:
    """psi(|x|), but psi(1 + |x|) for -1 < x < 0; -inf at 0, inf at -0."""
    u = b.abs(x)
    far, low, above = b.compare("oge", u, FAR), b.compare("olt", u, 1.0), b.compare("ogt", u, 2.1)
    moved = b.sub(u, 1.0)
    size = b.select(low, b.select(b.compare("olt", x, 0.0), 0.0, -1.0), b.select(above, 1.0, 0.0))
    step, lost_step = _quotient(b, size, b.select(above, moved, u))
    root, lost = PARTS["psi_root"]
    d = b.sub(b.sub(b.select(above, moved, u), b.select(low, root - 1, root)), lost)
    slope, rest = PARTS["psi_slope"]
    bend = b.mul(d, b.fma(d, b.polynomial(d, COEFFICIENTS["psi", kind]), rest))
    near = b.add(step, b.fma(d, slope, b.add(bend, lost_step)))
    near = b.select(b.compare("olt", u, 2.0**-60), step, near)
    inverse = b.div(1.0, u)
    z = b.mul(inverse, inverse)
    series = b.fma(z, b.polynomial(z, COEFFICIENTS["psi_far", kind]), b.mul(inverse, 0.5))
    k, f = split_exponent(b, u, subnormals=False)
    large, lost = join_exponent_in_parts(b, k, f, b.neg(series))
    found = b.select(far, large, near)
    found = b.select(b.compare("oeq", u, 0.0), b.copysign(INF, b.neg(x)), found)
    return b.select(b.compare("olt", u, INF), found, u), b.select(far, lost, 0.0)


def _quotient(b: Body, above: str, below: str) -> tuple[str, str]:
    """above / below for an ``above`` of -1, 0 or 1 and a positive ``below``, and its error."""
    quotient = b.div(above, below)
    return quotient, b.mul(b.abs(quotient), b.fma(b.neg(quotient), below, above))


def _psi_below(b: Body, x: str, y: str, low_of_y: str, kind: str) -> str:
    """psi(1 + a) + pi cot(pi a) for a = -x (DLMF 5.5.4); NaN at the poles."""
    a = b.neg(x)
    _, r = _nearest(b, a)
    pole = b.div(1.0, r)
    lost = b.mul(pole, b.fma(b.neg(pole), r, 1.0))
    cotangent = b.from_first(b.mul(r, r), COEFFICIENTS["cotpi", kind])
    inverse = b.select(b.compare("olt", a, 1.0), 0.0, b.div(1.0, a))
    found, first = b.two_sum(pole, y)
    product = b.mul(r, cotangent)
    lost = b.add(lost, b.fma(r, cotangent, b.neg(product)))
    found, second = b.two_sum(found, product)
    found = b.add(found, b.add(b.add(first, second), b.add(b.add(inverse, low_of_y), lost)))
    found = b.select(b.compare("olt", a, 2.0**-60), pole, found)
    return b.select(b.compare("oeq", r, 0.0), NAN, found)


# ------------------------------------------------------------------------------ trigamma


def trigamma(b: Body, x: str, kind: str) -> tuple[str, str]:
    """The derivative of psi at |x|, but at 1 + |x| for -2 < x < 0.

    Below 2 by two steps of the recurrence (DLMF 5.15.5).
    """
    u = b.abs(x)
    near = b.compare("olt", u, TRIGAMMA_FAR)
    moved = b.select(near, b.add(u, 2.0), u)
    inverse = b.div(1.0, moved)
    square = b.mul(inverse, inverse)
    series = b.polynomial(square, COEFFICIENTS["trigamma_far", kind])
    bend = b.mul(square, b.fma(inverse, series, 0.5))
    second = b.select(near, b.div(1.0, b.sub(moved, 1.0)), 0.0)
    # What ``moved`` lacks, times the derivative: -1.6/(u + 1)**2 within a fifth from 1/2 on.
    lost = b.select(near, b.sub(u, b.sub(moved, 2.0)), 0.0)
    bend = b.fma(lost, b.mul(b.mul(second, -1.6), second), bend)
    first, lost = _quotient(b, b.const(1.0), u)
    lost = b.select(b.compare("olt", u, LEAST), 0.0, b.mul(b.mul(lost, 2.0), first))
    rest = b.add(inverse, b.fma(second, second, bend))
    every = b.fma(first, first, b.add(inverse, b.fma(second, second, b.add(bend, lost))))
    return b.select(b.both(near, b.compare("oge", x, 0.0)), every, rest), b.const(0.0)


def _trigamma_below(b: Body, x: str, y: str, _low: str, kind: str) -> str:
    """(pi / sin(pi a))**2 - trigamma(1 + a) for a = -x (DLMF 5.15.6); inf at the poles."""
    a = b.neg(x)
    _, r = _nearest(b, a)
    sine, lost = _sine(b, r, kind)
    high, low = PARTS["pi"]
    ratio, inverse = b.div(high, sine), b.div(1.0, a)
    lost = b.sub(b.sub(b.fma(b.neg(ratio), sine, high), b.mul(ratio, lost)), -low)
    lost = b.mul(b.mul(lost, 2 / PI), b.mul(ratio, ratio))
    lost = b.select(b.compare("olt", b.abs(r), LEAST), 0.0, lost)
    rest = b.sub(b.select(b.compare("olt", a, TRIGAMMA_FAR), 0.0, b.mul(inverse, inverse)), y)
    found = b.fma(ratio, ratio, b.add(lost, rest))
    return b.select(b.compare("oeq", a, INF), INF, found)


# --------------------------------------------------------------------------------- gamma


def gamma(b: Body, x: str, kind: str) -> tuple[str, str]:
    """gamma(|x|) for x >= 3 and x < -1/2, gamma(x) between."""
    u = b.select(b.compare("olt", x, LIMITS["gamma"]), b.neg(x), x)
    near, lost = _gamma_near(b, u, kind)
    far = b.compare("oge", u, FAR)
    large, lost_of_large = _gamma_far(b, b.at_most(b.select(far, u, FAR), 180.0), kind)
    infinite = b.compare("oeq", u, 0.0)
    found = b.select(infinite, b.copysign(INF, u), b.select(far, large, near))
    return b.select(b.compare("olt", u, INF), found, u), b.select(far, lost_of_large, lost)


def _gamma_near(b: Body, u: str, kind: str) -> tuple[str, str]:
    """gamma(u) for -1/2 <= u < 3, and what it lacks by rounding if u > 1/2.

    Below `TURN` the errors of the product and of the quotient are added.
    """
    t, product = _stepped(b, u)
    lost_of_product = b.fma(u, u, b.sub(u, product))
    lost_of_product = b.select(b.compare("olt", u, 0.125), lost_of_product, 0.0)
    first, *others = COEFFICIENTS["gamma", kind]
    others = b.polynomial(t, others)
    value = b.fma(t, others, first)
    lost = b.fma(t, others, b.sub(first, value))
    low = b.compare("ole", u, TURN)
    quotient, times = b.div(value, product), b.mul(value, product)
    rest = b.fma(b.neg(quotient), lost_of_product, b.fma(b.neg(quotient), product, value))
    rest = b.add(rest, lost)
    corrected = b.fma(quotient, rest, quotient)
    bounded = b.compare("olt", b.abs(quotient), 2.0**900)
    lost = b.fma(lost, product, b.fma(value, product, b.neg(times)))
    found = b.select(low, b.select(bounded, corrected, quotient), times)
    return found, b.select(low, b.fma(quotient, rest, b.sub(quotient, corrected)), lost)


def _gamma_far(b: Body, u: str, kind: str) -> tuple[str, str]:
    """2**((u - 1/2)(log2(u) - log2(e)) + ...) by Stirling's formula, the exponent in two parts."""
    head, tail = log2_in_parts(b, u)
    high, low = COMMON_PARTS["log2_e", "float64"]
    difference = b.sub(head, high)
    factor = b.head(difference, 32)
    rest = b.add(b.sub(difference, factor), b.sub(tail, low))
    y = b.sub(u, 0.5)
    y_head = b.head(y, 32)
    high, low = PARTS["stirling_log2"]  # high has few bits, so that its sum below is exact
    small = b.fma(_stirling_rest(b, u, kind), exp_log.LOG2_E, low)
    small = b.fma(b.sub(y, y_head), factor, b.fma(y, rest, small))
    return exp2_in_parts(b, b.add(b.mul(y_head, factor), high), small)


def _gamma_below(b: Body, x: str, y: str, low_of_y: str, kind: str) -> str:
    """-pi / (a sin(pi a) y) for a = -x (DLMF 5.5.3); NaN at the poles."""
    a = b.neg(x)
    n, r = _nearest(b, a)
    odd = b.compare("one", _nearest(b, b.mul(n, 0.5))[1], 0.0)
    sine, lost = _sine(b, r, kind)
    size = b.mul(a, sine)
    lost = b.fma(a, lost, b.fma(a, sine, b.neg(size)))
    under = b.mul(size, y)
    lost = b.fma(lost, y, b.fma(size, y, b.neg(under)))
    lost = b.fma(size, low_of_y, lost)
    high, low = PARTS["pi"]
    found = b.div(high, under)
    lost = b.sub(b.fma(b.neg(found), under, high), b.fma(found, lost, -low))
    lost = b.mul(b.mul(lost, 1 / PI), found)
    found = b.add(found, b.select(b.compare("olt", b.abs(under), INF), lost, 0.0))
    found = b.select(odd, found, b.neg(found))
    return b.select(b.compare("oeq", r, 0.0), NAN, found)


# -------------------------------------------------------------------------------- betaln


def betaln(b: Body, x: str, y: str, kind: str) -> str:
    """The logarithm of the beta function of positive numbers p <= q.

    With h = p/q and the rest D of Stirling's series (DLMF 5.11.3) it is, for q >= 3,
    ``gammaln(p) + D(q) - D(p + q) - (p + q - 1/2) log1p(h) - p (log(q) - 1)``.  For p >= 3,
    Stirling's formula for gammaln(p) is inserted, so that large terms do not cancel.  For q < 3,
    the logarithms of the three gamma functions share one logarithm, too.  If one number is 1, it
    is minus the other's logarithm.  Tiny numbers, where it is log(1/p + 1/q), are scaled.
    """
    swapped = b.compare("ogt", x, y)
    p, q = b.select(swapped, y, x), b.select(swapped, x, y)
    tiny = b.compare("olt", q, TINY)
    factor = b.select(tiny, TINY_FACTOR, 1.0)
    p, q = b.mul(p, factor), b.mul(q, factor)
    both, near = b.compare("oge", p, FAR), b.compare("olt", q, FAR)
    ratio, (total, excess) = b.div(p, q), b.ordered_sum(q, p)
    bend, inverse = _beta_near(b, p, q, total, near, kind)
    bend = b.fma(b.neg(excess), b.select(near, _rough_psi(b, total), 0.0), bend)
    one = b.compare("oeq", b.mul(b.sub(p, 1.0), b.sub(q, 1.0)), 0.0)
    argument = b.select(one, b.mul(p, q), b.select(both, ratio, q))
    first, lost = exp_log.log_in_parts(b, argument)
    other, rest = exp_log.log_in_parts(b, b.select(both, p, inverse))
    middle, lost_of_middle = exp_log.log1p_in_parts(b, ratio)
    factor = b.sub(0.5, total)
    bend = b.sub(bend, rest)
    start = b.fma(other, -0.5, b.add(_stirling_rest(b, p, kind), HALF_LOG_2PI))
    of_ratio = b.fma(b.neg(ratio), q, p)  # q times its error, which cancels if both are large
    small = b.select(both, b.fma(p, lost, start), b.sub(b.fma(b.neg(p), lost, bend), of_ratio))
    differences = b.sub(_stirling_rest(b, q, kind), _stirling_rest(b, total, kind))
    small = b.add(small, b.fma(b.neg(excess), middle, differences))
    small = b.fma(factor, lost_of_middle, small)
    small, lost = b.two_sum(small, b.select(both, 0.0, b.neg(other)))
    large = b.fma(p, b.select(both, first, b.sub(1.0, first)), small)
    found = b.select(near, b.sub(bend, other), b.add(large, b.fma(factor, middle, lost)))
    found = b.select(one, b.sub(0.0, first), found)
    found = b.add(found, b.select(tiny, math.log(TINY_FACTOR), 0.0))
    far = b.select(b.compare("olt", p, INF), -INF, NAN)
    return b.select(b.compare("oeq", q, INF), far, found)


def _rough_psi(b: Body, x: str) -> str:
    """psi(x) for 0 < x < 6, with an error of at most 0.12 above 2 and 0.6 + 0.05/x below."""
    return b.sub(b.fma(x, 0.24, 0.55), b.rough_inverse(x))


def _beta_near(b: Body, p: str, q: str, total: str, near: str, kind: str) -> tuple[str, str]:
    """(y, v): y - log(v) is the logarithm of gamma(p), over gamma(total)/gamma(q) if ``near``.

    ``total`` is p + q; p is below 3.
    """
    bends, above, below = [], [], []
    for u, steps in ((p, 1), (q, 1), (total, 4)):
        t, product = _stepped(b, u, steps)
        slope, rest = PARTS["slope_at_2"]
        bends.append(b.mul(t, b.fma(t, b.leading(t, COEFFICIENTS["gammaln", kind]), rest)))
        bends[-1] = b.fma(t, slope, bends[-1])
        low = b.compare("ole", u, TURN)
        above.append(b.select(low, 1.0, product))
        below.append(b.select(low, product, 1.0))
    y = b.add(bends[0], b.select(near, b.sub(bends[1], bends[2]), 0.0))
    upper, lower = b.mul(below[0], above[2]), b.mul(b.mul(above[0], above[1]), below[2])
    inverse = b.div(upper, lower)
    lost = b.add(b.fma(b.neg(inverse), lower, upper), b.fma(below[0], above[2], b.neg(upper)))
    y = b.fma(b.neg(lost), b.select(near, b.rough_inverse(upper), 0.0), y)
    inverse = b.mul(inverse, below[1])
    return y, b.select(near, inverse, b.div(below[0], above[0]))


def _stirling_rest(b: Body, x: str, kind: str) -> str:
    """What gammaln(x) is above the first terms of its asymptotic series, for x >= 3."""
    inverse = b.div(1.0, x)
    series = b.polynomial(b.mul(inverse, inverse), COEFFICIENTS["gammaln_far", kind])
    return b.mul(inverse, series)


#: name -> function of (body, argument, kind of coefficients), in float64: the result, and what it
#: lacks by rounding where the function for negative arguments needs that
FUNCTIONS: dict[str, Callable[[Body, str, str], tuple[str, str]]] = {
    "gamma": gamma,
    "gammaln": gammaln,
    "psi": psi,
    "trigamma": trigamma,
}
#: name -> function of (body, argument, result for its magnitude in two parts, kind) for negative
#: arguments
_BELOW: dict[str, Callable[[Body, str, str, str, str], str]] = {
    "gamma": _gamma_below,
    "gammaln": _gammaln_below,
    "psi": _psi_below,
    "trigamma": _trigamma_below,
}


def slow_path(b: Body, name: str, kind: str) -> list[str]:
    """The body of a function of (a, b, c) in float64: b, but in lanes far below 0 the reflection.

    c is what b lacks by rounding.
    """
    below = b.compare("olt", "%a", LIMITS[name])
    found = b.select(below, _BELOW[name](b, "%a", "%b", "%c", kind), "%b")
    return [*b.lines, f"  ret {b.type} {found}"]
