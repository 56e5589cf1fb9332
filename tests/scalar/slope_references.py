"""Where the derivatives of rows are measured, and first derivatives in mpmath, for `slopes`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
from rows import REFERENCE

Interval = tuple[float, float]
#: steps of differences are so many decimal places smaller than the argument
PLACES = 40

_LINE, _POSITIVE = (-math.inf, math.inf), (0.0, math.inf)
#: from the least argument on: the function has a pole at 0, or derivatives that depend on how 0 is
#: approached
_ABOVE_0 = (1e-31, math.inf)

#: the reach of rows whose facts state an interval that is smaller: where they are defined
REACHES: dict[str, tuple[Interval, ...]] = {
    "expi": (_ABOVE_0,),
    "y0": (_ABOVE_0,),
    "y1": (_ABOVE_0,),
    "k0": (_ABOVE_0,),
    "k1": (_ABOVE_0,),
    "pow": (_ABOVE_0, _LINE),
    "xlogy": (_LINE, _POSITIVE),
    "xlog1py": (_LINE, (-1.0, math.inf)),
    "rel_entr": (_POSITIVE, _POSITIVE),
    "kl_div": (_POSITIVE, _POSITIVE),
    "polygamma": (_LINE, _POSITIVE),
    "gammaln_increment": (_ABOVE_0, _POSITIVE),
    "psi_increment": (_ABOVE_0, _POSITIVE),
    "tri_gamma_increment": (_ABOVE_0, _POSITIVE),
    "poch": (_ABOVE_0, _POSITIVE),
    "beta": (_ABOVE_0, _ABOVE_0),
    "betaln": (_ABOVE_0, _ABOVE_0),
    "zeta": (_LINE, _ABOVE_0),
    "gammainc": (_ABOVE_0, _ABOVE_0),
    "gammaincc": (_ABOVE_0, _ABOVE_0),
    "chi2sf": (_ABOVE_0, _ABOVE_0),
    "betainc": (_ABOVE_0, _ABOVE_0, (1e-31, 1 - 1e-10)),
    **{name: (_LINE, _ABOVE_0) for name in ("jv", "yv", "iv", "ive", "kv", "kve")},
}
#: row and argument -> the values that it takes, if they are not numbers of all magnitudes
VALUES: dict[tuple[str, int], list[float]] = {
    ("polygamma", 0): [0, 1, 2, 3],
    ("zeta", 0): [1.5, 2, 10, 100],
    **{(name, 0): [0.5, 2.5, 10, 100] for name in ("jv", "yv", "iv", "ive", "kv", "kve")},
}


def _density(k: Any, x: Any) -> Any:
    """Of the gamma distribution."""
    return mp.exp((k - 1) * mp.log(x) - x - mp.loggamma(k)) if x else mp.mpf(k == 1)


def _parts(k: Any, x: Any) -> tuple[Any, Any]:
    """gammainc and gammaincc: the less of them by mpmath."""
    if x < k:
        lower = mp.gammainc(k, 0, x, regularized=True)
        return lower, 1 - lower
    upper = mp.gammainc(k, x, mp.inf, regularized=True)
    return 1 - upper, upper


def _shape_slope(k: Any, x: Any) -> Any:
    """The derivative of gammainc in its shape, from that of the less of both parts."""
    which, sign = (0, 1) if x < k else (1, -1)
    return sign * mp.diff(lambda t: _parts(t, x)[which], k, h=k * mp.mpf(10) ** -PLACES)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    size = mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
    return mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) + size)


def macdonald(v: Any, x: Any) -> Any:
    """The Bessel function K, by the trapezoidal rule where mpmath's takes seconds.

    The integrand is that of DLMF 10.32.9, exp(-x cosh(t)) cosh(v t).
    """
    if not 1 <= x < 1000:
        return mp.besselk(v, x)
    nepers = mp.mp.prec * mp.log(2)
    step = min(mp.pi**2 / nepers, mp.sqrt(2 * mp.pi**2 / (x * nepers)))
    total, t = mp.exp(-x) / 2, step
    while True:
        term = mp.exp(-x * mp.cosh(t)) * mp.cosh(v * t)
        total, t = total + term, t + step
        if x * mp.sinh(t) > abs(v) and term < total * mp.eps:
            return total * step


def _neighbours(f: Callable[..., Any], first: int, second: int) -> Callable[..., Any]:
    """Half of the sum of a function of the orders below and above, with signs."""
    return lambda v, x: (first * f(v - 1, x) + second * f(v + 1, x)) / 2


def _kve_slope(v: Any, x: Any) -> Any:
    return mp.exp(x) * (macdonald(v, x) - (macdonald(v - 1, x) + macdonald(v + 1, x)) / 2)


_K = _neighbours(macdonald, -1, -1)
#: row -> for each argument the derivative, or None: it is found by differences
FIRST: dict[str, tuple[Callable[..., Any] | None, ...]] = {
    "k0": (lambda x: -macdonald(1, x),),
    "k1": (lambda x: _K(1, x),),
    "y0": (lambda x: -mp.bessely(1, x),),
    "y1": (lambda x: (mp.bessely(0, x) - mp.bessely(2, x)) / 2,),
    "jv": (None, _neighbours(mp.besselj, 1, -1)),
    "yv": (None, _neighbours(mp.bessely, 1, -1)),
    "iv": (None, _neighbours(mp.besseli, 1, 1)),
    "kv": (None, _K),
    "kve": (None, _kve_slope),
    "tri_gamma": (lambda x: mp.psi(2, x),),
    "polygamma": (None, lambda n, x: mp.psi(int(n) + 1, x)),
    "gammaln_increment": (
        lambda x, h: mp.psi(0, x + h) - mp.psi(0, x),
        lambda x, h: mp.psi(0, x + h),
    ),
    "psi_increment": (lambda x, h: mp.psi(1, x + h) - mp.psi(1, x), lambda x, h: mp.psi(1, x + h)),
    "tri_gamma_increment": (
        lambda x, h: mp.psi(2, x + h) - mp.psi(2, x),
        lambda x, h: mp.psi(2, x + h),
    ),
    "betaln": (
        lambda a, b: mp.psi(0, a) - mp.psi(0, a + b),
        lambda a, b: mp.psi(0, b) - mp.psi(0, a + b),
    ),
    "zeta": (None, lambda s, q: -s * mp.zeta(s + 1, q)),
    "gammainc": (_shape_slope, _density),
    "gammaincc": (lambda k, x: -_shape_slope(k, x), lambda k, x: -_density(k, x)),
    "chi2sf": (
        lambda x, k: -_density(k / 2, x / 2) / 2,
        lambda x, k: -_shape_slope(k / 2, x / 2) / 2,
    ),
    "betainc": (None, None, _beta_density),
    "owens_t": (
        lambda h, a: -mp.exp(-h * h / 2) * mp.erf(a * h / mp.sqrt(2)) / mp.sqrt(8 * mp.pi),
        lambda h, a: mp.exp(-h * h * (1 + a * a) / 2) / (2 * mp.pi * (1 + a * a)),
    ),
}


_OF_VALUE = "1 - y**2 is as exact as the value y, which loops keep, and the argument they do not"
_TERMS_OVERFLOW = "terms over- or underflow in float32"
#: row, dtype, and number of differentiations -> why errors are above their limit
EXCEPTIONS: dict[tuple[str, str, int], str] = {
    **{("tanh", dtype, n): _OF_VALUE for dtype in ("float64", "float32") for n in (1, 2)},
    **{(name, "float32", 2): _TERMS_OVERFLOW for name in ("pow", "arctan2", "gammainc")},
}


def derivative_of(name: str, order: tuple[int, ...]) -> tuple[Callable[..., Any], tuple[int, ...]]:
    """A function of mpmath, and the arguments in which differences are to be taken of it."""
    first = FIRST.get(name)
    known = next((i for i in order if first is not None and first[i] is not None), None)
    if first is None or known is None:
        return REFERENCE[name], order
    f = first[known]
    assert f is not None
    left = list(order)
    left.remove(known)
    return f, tuple(left)
