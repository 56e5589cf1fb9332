"""Differences of functions at two arguments, without cancellation where these are close together.

The formulas are written in operators: for arrays of NumPy and JAX, and for the values of a builder
of native instructions (`Term`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: psi(w) is log(w) - 1 / (2 w) minus the sum of c w**-2n, n = 1, 2, ... (DLMF 5.11.2)
_PSI_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
#: gammaln(w) is (w - 1/2) log(w) - w, a number, and the sum of c w**(1 - 2n) (DLMF 5.11.1)
_GAMMALN_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
#: the recurrence of psi is used this often, then the series
_STEPS = 10
#: ``divergence`` is for arguments whose difference is at most this share of their sum
NEAR = 0.1
_NEAR_TERMS = 9


def _falls(x: Any, h: Any) -> tuple[Any, Any, Any]:
    """``1/x``, ``1/(x + h)``, and by how much the second is less."""
    moved = x + h
    return 1 / x, 1 / moved, h / moved / x


def _power_falls(first: Any, second: Any) -> list[Any]:
    """``(first**n - second**n) / (first - second)`` for n = 1, 2, ..., as many as are needed."""
    found, power = [1.0], 1.0
    for _ in range(2 * len(_PSI_SERIES)):
        power = power * first
        found.append(second * found[-1] + power)
    return found


def gammaln(log: Any, log1p: Any, x: Any, h: Any) -> Any:
    """gammaln(x + h) - gammaln(x) for positive x, with ``-x / 2 <= h <= x``."""
    growth: Any = 0.0
    for k in range(_STEPS):
        ratio = h / (x + float(k))
        growth = growth + ratio + growth * ratio
    start = x + float(_STEPS)
    first, second, fall = _falls(start, h)
    powers = _power_falls(first, second)
    series: Any = 0.0
    for n, c in enumerate(_GAMMALN_SERIES):
        series = series + powers[2 * n] * c
    rise = (start - 0.5) * log1p(h * first) - h + h * log(start + h)
    return rise - fall * series - log1p(growth)


def psi(log1p: Callable[[Any], Any], x: Any, h: Any) -> Any:
    """psi(x + h) - psi(x) for positive x and x + h: all terms have the sign of h."""
    total: Any = 0.0
    for k in range(_STEPS):
        total = total + _falls(x + float(k), h)[2]
    first, second, fall = _falls(x + float(_STEPS), h)
    powers = _power_falls(first, second)
    series: Any = 0.5
    for n, c in enumerate(_PSI_SERIES, 1):
        series = series + powers[2 * n - 1] * c
    return total + log1p(h * first) + fall * series


def tri_gamma(x: Any, h: Any) -> Any:
    """tri_gamma(x + h) - tri_gamma(x) for positive x and x + h."""
    total: Any = 0.0
    for k in range(_STEPS):
        first, second, fall = _falls(x + float(k), h)
        total = total + fall * (first + second)
    first, second, fall = _falls(x + float(_STEPS), h)
    powers = _power_falls(first, second)
    series = 0.5 * powers[1] + 1.0
    for n, c in enumerate(_PSI_SERIES, 1):
        series = series + powers[2 * n] * (2 * n * c)
    return -(total + fall * series)


def divergence(x: Any, y: Any) -> Any:
    """x log(x / y) - x + y for positive x and y with ``|x - y| <= NEAR (x + y)``.

    With v = (x - y) / (x + y) the logarithm is 2 atanh(v), a series in v.
    """
    v = (x - y) / (x + y)
    square = v * v
    series: Any = 1 / (2 * _NEAR_TERMS + 1)
    for n in range(_NEAR_TERMS - 1, 0, -1):
        series = series * square + 1 / (2 * n + 1)
    return (x - y) * v + 2.0 * x * v * square * series
