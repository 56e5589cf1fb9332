"""Functions of NumPy arrays that NumPy and SciPy do not have, for rows of the tables.

Arguments are arrays, which are broadcast; `ScalarOp.compute` has cast them by the row's dtype rule.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phintys.scalar import increments
from phintys.scalar.bessel import (
    LARGEST_SCALED,
    LONG_ARGUMENT,
    LONG_ORDER,
    i0_less_one,
    scaled_far,
)
from phintys.scalar.broadcasting import broadcast_shapes, broadcast_to


def second(x: Any, y: Any) -> Any:
    """``y`` broadcast against ``x``."""
    return broadcast_to(np.asarray(y), broadcast_shapes(np.shape(x), np.shape(y)))


def multiply_nonzero(x: Any, y: Any) -> Any:
    """The product of two numbers, in which factors that are 0 are left out."""
    return np.where(x == 0, y, np.where(y == 0, x, x * y))


def round_half_away_from_zero(x: Any) -> Any:
    """The nearest integer, ties away from 0.

    Computed from the integer part, because ``floor(x + 0.5)`` rounds 0.49999999999999994 up.
    """
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole).astype(x.dtype)


def expm1(x: Any) -> Any:
    """``exp(x) - 1``; ``numpy.expm1`` is NaN for complex numbers with an infinite real part."""
    found = np.expm1(x)
    if np.asarray(x).dtype.kind != "c":
        return found
    return np.where(np.isfinite(x), found, np.exp(x) - 1)


def exp_diff(x: Any, y: Any) -> Any:
    """exp(x - y); 1 where x equals y, also where both are inf or both are -inf."""
    with np.errstate(all="ignore"):
        return np.where(np.equal(x, y), 1, np.exp(np.subtract(x, y)))


def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``; for real numbers with an exponential that cannot overflow."""
    if np.asarray(x).dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, np.ones_like(small)) / (1 + small)


def tanh_half(x: Any) -> Any:
    """``tanh(x / 2)``."""
    return np.tanh(x / 2)


def logistic_density(x: Any) -> Any:
    """``exp(-x) / (1 + exp(-x))**2``, with an exponential that cannot overflow."""
    small = np.exp(-np.abs(x))
    return small / (1 + small) ** 2


def log_erfc(x: Any) -> Any:
    """The logarithm of ``erfc(x)``; it is 0 at 0."""
    from scipy import special

    near = np.log1p(-special.erf(x))
    return np.where(np.less(x, 1), near, special.log_ndtr(-math.sqrt(2) * x) + math.log(2))


def log_i0(x: Any) -> Any:
    """The logarithm of ``i0(x)``; it is 0 at 0."""
    from scipy import special

    size = np.abs(x)
    near = np.log1p(i0_less_one(np.minimum(size, 1)))
    return np.where(np.less(size, 1), near, size + np.log(special.i0e(x)))


def log_cosh(x: Any) -> Any:
    """The logarithm of ``cosh(x)``; it is 0 at 0."""
    size = np.abs(x)
    near = np.log1p(2 * np.square(np.sinh(np.minimum(size, 1) / 2)))
    return np.where(np.less(size, 1), near, size + np.log1p(np.exp(-2 * size)) - math.log(2))


def log_softplus(x: Any) -> Any:
    """``log(log1p(exp(x)))``; that is ``x`` far below 0."""
    with np.errstate(all="ignore"):
        return np.where(np.less(x, -40), x, np.log(np.logaddexp(0, x)))


def cosm1(x: Any) -> Any:
    """``cos(x) - 1`` as ``-2 sin(x / 2)**2``; SciPy's loses digits next to multiples of 2 pi."""
    half = np.sin(x / 2)
    return -2 * half * half


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``; for real numbers as ``max(x, 0) + log1p(exp(-|x|))``."""
    if np.asarray(x).dtype.kind == "c":
        return np.log1p(np.exp(x))
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def log1mexp(x: Any) -> Any:
    """``log(1 - exp(x))`` for x < 0, by that of two forms which does not cancel.

    Source: M. Mächler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """
    return np.where(x < -np.log(2), np.log1p(-np.exp(x)), np.log(-np.expm1(x))).astype(x.dtype)


def complex_from_parts(x: Any, y: Any) -> Any:
    """``x + iy``, a complex array.  Not computed as ``x + 1j * y``: NaN for infinite y."""
    shape = broadcast_shapes(np.shape(x), np.shape(y))
    out = np.empty(shape, np.result_type(x, np.complex64))
    out.real, out.imag = x, y
    return out


def complex_from_polar(r: Any, angle: Any) -> Any:
    """``r exp(i angle)``."""
    return complex_from_parts(r * np.cos(angle), r * np.sin(angle))


def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function, the sum of (q + k)**-x over k >= 0.

    It is SciPy's, except in three cases.  For q far below 0, where SciPy sums a term for each unit
    of -q, a reflection is used: the sum over all integers k has period 1 in q, and is
    ``zeta(x, q) + (-1)**x zeta(x, 1 - q)``.  For x above 1e15, where SciPy's may be NaN, it is the
    first term.  For x = NaN, where SciPy's is infinite at the poles, it is NaN.
    """
    from scipy import special

    below = (q < -64) & (q != np.floor(q)) & (x == np.floor(x)) & (x > 1)
    near = np.where(np.isnan(x), x, special.zeta(x, np.where(below, 1, q)))
    far = (x > 1e15) & (q > 0) & np.isnan(near)
    if np.any(far):  # all terms but the first underflow
        near = np.where(far, np.power(q, -x, where=far, out=np.ones_like(near)), near)
    if not np.any(below):
        return near
    q = np.where(below, q, -0.5)
    up, down = q - np.floor(q), np.ceil(q) - q  # computing one from the other would round
    between = special.zeta(x, down) - special.zeta(np.minimum(x, 200), 1 - q)
    reflected = special.zeta(x, up) + np.where(x % 2 == 0, between, -between)
    return np.where(below, reflected, near).astype(near.dtype)


def tri_gamma(x: Any) -> Any:
    """The second derivative of gammaln."""
    return zeta(np.ones_like(x) * 2, x)


def gammaln_increment(x: Any, h: Any) -> Any:
    """gammaln(x + h) - gammaln(x)."""
    from scipy import special

    x, h = (np.asarray(v, "float64") for v in (x, h))
    near, x_, h_ = _positive_step(x, np.where((h <= x) & (h >= -0.5 * x), h, np.nan))
    apart = special.gammaln(x + h) - special.gammaln(x)
    return np.where(near, increments.gammaln(np.log, np.log1p, x_, h_), apart)


def psi_increment(x: Any, h: Any) -> Any:
    """psi(x + h) - psi(x)."""
    from scipy import special

    near, x_, h_ = _positive_step(x, h)
    apart = special.psi(x + h) - special.psi(x)
    return np.where(near, increments.psi(np.log1p, x_, h_), apart)


def tri_gamma_increment(x: Any, h: Any) -> Any:
    """tri_gamma(x + h) - tri_gamma(x)."""
    near, x_, h_ = _positive_step(x, h)
    return np.where(near, increments.tri_gamma(x_, h_), tri_gamma(x + h) - tri_gamma(x))


def _positive_step(x: Any, h: Any) -> tuple[Any, Any, Any]:
    """Where x and x + h are positive and finite, and numbers that are x and h there."""
    inside = (x > 0) & (x + h > 0) & (x + h < np.inf)
    return inside, np.where(inside, x, np.ones_like(x)), np.where(inside, h, np.ones_like(h))


def kl_div(x: Any, y: Any) -> Any:
    """x log(x / y) - x + y; SciPy's loses digits where x and y are close together."""
    from scipy import special

    near = np.abs(x - y) < increments.NEAR * (x + y)
    x_, y_ = (np.where(near, v, np.ones_like(v)) for v in (x, y))
    return np.where(near, increments.divergence(x_, y_), special.kl_div(x, y))


def polygamma(order: Any, x: Any) -> Any:
    """The derivative of psi of integer order ``order``, as a multiple of `zeta` (DLMF 25.11.12)."""
    from scipy import special

    raised = np.asarray(order, np.float64) + 1
    size = special.gamma(raised) * zeta(raised, np.asarray(x, np.float64))
    signed = np.where(raised % 2 == 0, size, -size)
    return np.where(raised == 1, special.psi(x), signed).astype(x.dtype)


def yv(v: Any, x: Any) -> Any:
    """The Bessel function of the second kind of order ``v``.

    It is SciPy's, except for large integer orders and large x, where SciPy's would take very long.
    There it is the asymptotic form (DLMF 10.19.6) with ``n = |v|``, ``t = n / x``, and the phase
    ``x - n pi/2 - pi/4 + n asin(t) - n t / (1 + sqrt(1 - t**2))``, in which the multiple of pi/2 is
    applied exactly.
    """
    from scipy import special

    if np.asarray(x).dtype.kind == "c":
        return special.yv(v, x)
    n = np.abs(v)
    far = (n > LONG_ORDER) & (v == np.floor(v)) & (x > LONG_ARGUMENT) & (n < x / 2)
    near = special.yv(np.where(far, 1, v), x)
    if not np.any(far):
        return near
    n, z = (np.where(far, a, 1).astype(np.float64) for a in (n, x))
    t = np.where(far, n / z, 0)
    rest = np.sqrt(1 - t * t)
    phase = n * np.arcsin(t) - n * t / (1 + rest) - np.pi / 4
    sin = np.sin(z) * np.cos(phase) + np.cos(z) * np.sin(phase)
    cos = np.cos(z) * np.cos(phase) - np.sin(z) * np.sin(phase)
    turned = np.select([n % 4 == 0, n % 4 == 1, n % 4 == 2], [sin, -cos, -sin], cos)
    turned = np.where((v < 0) & (n % 2 == 1), -turned, turned)
    return np.where(far, np.sqrt(2 / np.pi / z / rest) * turned, near).astype(near.dtype)


def ive(v: Any, x: Any) -> Any:
    """``exp(-|x|) iv(v, x)``; SciPy's is NaN for large x, where a series takes its place."""
    from scipy import special

    near, far, series = _scaled_bessel(special.ive, v, np.abs(x), x, 1)
    sign = np.where(v % 2 == 0, 1, np.where(v % 2 == 1, -1, np.nan))
    return np.where(far, np.where(np.less(x, 0), sign * series, series), near).astype(near.dtype)


def kve(v: Any, x: Any) -> Any:
    """``exp(x) kv(v, x)``; SciPy's is NaN for large x, where a series takes its place."""
    from scipy import special

    if np.asarray(x).dtype.kind == "c":
        return special.kve(v, x)
    near, far, series = _scaled_bessel(special.kve, v, x, x, 2)
    return np.where(far, series, near).astype(near.dtype)


def _scaled_bessel(function: Any, v: Any, size: Any, x: Any, kind: int) -> tuple[Any, Any, Any]:
    """SciPy's function, where it is NaN, and the series for there."""
    far = size > LARGEST_SCALED
    order = np.where(far, np.abs(v), 0).astype(np.float64)
    z = np.where(far, size, LARGEST_SCALED).astype(np.float64)
    near = function(v, np.where(far, 1, x).astype(np.asarray(x).dtype))
    return near, far, scaled_far(np.exp, np.sqrt, np.arcsinh, order, z, kind)


def gammal(k: Any, x: Any) -> Any:
    """The lower incomplete gamma function, not regularised."""
    from scipy import special

    return special.gammainc(k, x) * special.gamma(k)


def gammau(k: Any, x: Any) -> Any:
    """The upper incomplete gamma function, not regularised."""
    from scipy import special

    return special.gammaincc(k, x) * special.gamma(k)


def chi2sf(x: Any, k: Any) -> Any:
    """The probability that a chi-squared variable with ``k`` degrees of freedom exceeds ``x``."""
    from scipy.special import gammaincc

    return gammaincc(k / 2, x / 2)
