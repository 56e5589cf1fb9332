"""Table: error functions and the normal distribution.

Formulas: NIST Digital Library of Mathematical Functions, chapter 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from phintys.scalar import rules
from phintys.scalar.op import Leading, binary, call, lit, polynomial, special

_ROOT_PI, _ROOT_2PI = math.sqrt(math.pi), math.sqrt(2 * math.pi)
_ROOT_2, _LOG2 = math.sqrt(2), math.log(2)
_POSITIVE, _UNIT = (0, np.inf), (0, 1)


def _half_of_erfc(m: Any, x: Any) -> tuple[Any, int]:
    """The logarithm of erfc(x) / 2, which is a probability, and the factor 2."""
    return m.log_ndtr(x * lit(x, -_ROOT_2)), 2


#: 1, 1 3, 1 3 5, ...: the coefficients of the asymptotic series of erfcx and dawsn
_ODD_PRODUCTS = [float(math.prod(range(1, 2 * k, 2))) for k in range(1, 15)]


def _beside_series(m: Any, x: Any, size: Any, sign: int, near: Callable[[Any], Any]) -> Any:
    """A derivative that is ``near(x)``, but far from 0, where its terms cancel, a series.

    The series is the sum of ``1 3 ... (2k - 1) (sign / (2 x**2))**k`` over k >= 1 (DLMF 7.12.1),
    for ``size`` above a bound, from which all digits of the dtype follow.
    """
    bound = lit(x, 10 if x.type.dtype == "float64" else 5)
    far = m.gt(size, bound)
    w = lit(x, 0.5 * sign) / m.sqr(m.switch(far, x, bound))
    return m.switch(far, w * polynomial(w, _ODD_PRODUCTS), near(m.switch(far, 0, x)))


# ----------------------------------------------------------------------- error functions

erf = special(
    "Erf",
    "erf",
    "Error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.",
    rule=rules.inexact,
    d=lambda m, x, y: m.exp(-m.sqr(x)) * lit(x, 2 / _ROOT_PI),
    logs={
        "1 + y": lambda m, x: _half_of_erfc(m, -x),
        "1 - y": lambda m, x: _half_of_erfc(m, x),
        "log(1 + y)": lambda m, x: m.log_erfc(-x),
        "log(1 - y)": lambda m, x: m.log_erfc(x),
    },
    distribution=("ndtr", _ROOT_2, -1, 2),
    native="erf",
    inverse="erfinv",
    odd=True,
    increasing=True,
    zero_at_zero=True,
    range=(-1, 1),
)
erfc = special(
    "Erfc",
    "erfc",
    "1 - erf(x), exact for large x.",
    d=lambda m, x, y: m.exp(-m.sqr(x)) * lit(x, -2 / _ROOT_PI),
    logs={"y": lambda m, x: _half_of_erfc(m, x), "log(y)": lambda m, x: m.log_erfc(x)},
    distribution=("ndtr", -_ROOT_2, 0, 2),
    native="erfc",
    inverse="erfcinv",
    decreasing=True,
    range=(0, 2),
)


def _erfcx_slope(m: Any, x: Any, y: Any) -> Any:
    """2x erfcx(x) - 2/sqrt(pi)."""
    scale = lit(x, 2 / _ROOT_PI)
    return _beside_series(m, x, x, -1, lambda x: x * y * lit(x, _ROOT_PI) - 1) * scale


erfcx = special(
    "Erfcx",
    "erfcx",
    "exp(x**2) erfc(x), finite where erfc underflows.",
    d=_erfcx_slope,
    native=call("erfcx"),
    decreasing=True,
    range=_POSITIVE,
)
erfinv = special(
    "Erfinv",
    "erfinv",
    "Inverse of erf; NaN outside [-1, 1].",
    d=lambda m, x, y: m.exp(m.sqr(y)) * lit(x, _ROOT_PI / 2),
    native=call("erfinv"),
    domain=(-1, 1),
    inverse="erf",
    odd=True,
    increasing=True,
    zero_at_zero=True,
)
erfcinv = special(
    "Erfcinv",
    "erfcinv",
    "Inverse of erfc; NaN outside [0, 2].",
    d=lambda m, x, y: m.exp(m.sqr(y)) * lit(x, -_ROOT_PI / 2),
    native=call("erfcinv"),
    domain=(0, 2),
    inverse="erfc",
    decreasing=True,
)


def _dawsn_slope(m: Any, x: Any, y: Any) -> Any:
    """1 - 2x dawsn(x)."""
    return -_beside_series(m, x, m.abs(x), 1, lambda x: 2 * x * y - 1)


dawsn = special(
    "Dawsn",
    "dawsn",
    "Dawson's integral, exp(-x**2) times the integral of exp(t**2) from 0 to x.",
    native=call("dawsn"),
    d=_dawsn_slope,
    odd=True,
    zero_at_zero=True,
)

# ------------------------------------------------------------------- normal distribution

ndtr = special(
    "Ndtr",
    "ndtr",
    "Distribution function of the standard normal.",
    d=lambda m, x, y: m.exp(-0.5 * m.sqr(x)) / lit(x, _ROOT_2PI),
    logs={"y": lambda m, x: m.log_ndtr(x), "1 - y": lambda m, x: m.log_ndtr(-x)},
    distribution=("ndtr", 1, 0, 1),
    native=call("ndtr"),
    inverse="ndtri",
    increasing=True,
    range=_UNIT,
)
#: above, ndtr is 1 in all dtypes
_ALL_BELOW = 8.5


def _log_ndtr_slope(m: Any, x: Any, y: Any) -> Any:
    """The density divided by ndtr(x); erfcx, which would overflow above, is ndtr's scaled tail."""
    above = m.gt(x, lit(x, _ALL_BELOW))
    scaled = m.erfcx(m.switch(above, 0, -x * lit(x, math.sqrt(0.5))))
    density = m.exp(-0.5 * m.sqr(x)) / lit(x, _ROOT_2PI)
    return m.switch(above, density, lit(x, math.sqrt(2 / math.pi)) / scaled)


log_ndtr = special(
    "LogNdtr",
    "log_ndtr",
    "Logarithm of ndtr(x), exact far below 0.",
    d=_log_ndtr_slope,
    leading=Leading(
        -0.5,
        2,
        lambda m, x: m.log(m.erfcx(x * lit(x, -math.sqrt(0.5)))) - lit(x, _LOG2),
        highest=-1,
    ),
    native=call("log_ndtr"),
    inverse="ndtri_exp",
    increasing=True,
    range=(-np.inf, 0),
)


def _log_erfc_form(n: Any, x: Any) -> Any:
    near = n.log1p(n.neg(n.erf(x)))  # exact around 0, where the result is 0
    tail = n.call("log_ndtr", n.mul(x, n.const(-_ROOT_2, x)))
    return n.select(n.lt(x, n.const(1, x)), near, n.add(tail, n.const(_LOG2, x)))


log_erfc = special(
    "LogErfc",
    "log_erfc",
    "Logarithm of erfc(x), also where erfc underflows.",
    function="phintys.scalar.numeric.log_erfc",
    d=lambda m, x, y: _log_ndtr_slope(m, x * lit(x, -_ROOT_2), None) * lit(x, -_ROOT_2),
    leading=Leading(-1, 2, lambda m, x: m.log(m.erfcx(x)), lowest=1),
    native=_log_erfc_form,
    decreasing=True,
)
ndtri = special(
    "Ndtri",
    "ndtri",
    "Inverse of ndtr; NaN outside [0, 1].",
    d=lambda m, x, y: m.exp(0.5 * m.sqr(y)) * lit(x, _ROOT_2PI),
    native=call("ndtri"),
    domain=_UNIT,
    inverse="ndtr",
    increasing=True,
)
ndtri_exp = special(
    "NdtriExp",
    "ndtri_exp",
    "Inverse of log_ndtr: ndtri(exp(x)).",
    d=lambda m, x, y: m.erfcx(y * lit(x, -math.sqrt(0.5))) * lit(x, math.sqrt(math.pi / 2)),
    native=call("ndtri_exp"),
    domain=(-np.inf, 0),
    inverse="log_ndtr",
    increasing=True,
)


def _owens_partials(m: Any, h: Any, a: Any, y: Any) -> tuple[Any, Any]:
    in_h = m.exp(-0.5 * m.sqr(h)) * m.erf(a * h * lit(y, math.sqrt(0.5)))
    spread = 1 + m.sqr(a)
    in_a = m.exp(-0.5 * m.sqr(h) * spread) / (spread * lit(y, 2 * math.pi))
    return in_h * lit(y, -0.5 / _ROOT_2PI), in_a


owens_t = special(
    "Owens_t",
    "owens_t",
    "Owen's T: probability of X > x and 0 < Y < y X for independent standard normals.",
    binary,
    d=_owens_partials,
    native=call("owens_t"),
    domain=((-3, 3), (-3, 3)),
)
