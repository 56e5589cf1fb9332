"""Table: trigonometric and hyperbolic functions, angles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phintys.scalar import rules
from phintys.scalar.op import Inverse, Leading, binary, lit, polynomial, unary

_LOG2 = math.log(2)

_HALF_PI = math.pi / 2


# ------------------------------------------------------------------------- trigonometric

sin = unary(
    "Sin",
    "sin",
    "Sine of an angle in radians.",
    d=lambda m, x, y: m.cos(x),
    native="sin",
    odd=True,
    zero_at_zero=True,
    range=(-1, 1),
)
cos = unary(
    "Cos",
    "cos",
    "Cosine of an angle in radians.",
    d=lambda m, x, y: -m.sin(x),
    leading=Leading(1, 0, lambda m, x: m.cosm1(x)),
    native="cos",
    even=True,
    range=(-1, 1),
)


def _minus_two_sines(n: Any, x: Any) -> Any:
    half = n.sin(n.mul(n.const(0.5, x), x))
    return n.mul(n.const(-2, x), n.mul(half, half))


cosm1 = unary(
    "Cosm1",
    "cosm1",
    "cos(x) - 1, without cancellation next to multiples of 2 pi.",
    function="phintys.scalar.numeric.cosm1",
    rule=rules.inexact_real,
    d=lambda m, x, y: -m.sin(x),
    native=_minus_two_sines,
    even=True,
    zero_at_zero=True,
    range=(-2, 0),
)
tan = unary(
    "Tan",
    "tan",
    "Tangent of an angle in radians.",
    d=lambda m, x, y: 1 + m.sqr(y),
    native="tan",
    domain=(-1.5, 1.5),
    odd=True,
    increasing=True,
    zero_at_zero=True,
)
arcsin = unary(
    "ArcSin",
    "arcsin",
    "The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1].",
    d=lambda m, x, y: Inverse(m.sqrt(1 - m.sqr(x))),
    native="asin",
    domain=(-1, 1),
    inverse="sin",
    odd=True,
    increasing=True,
    zero_at_zero=True,
    range=(-_HALF_PI, _HALF_PI),
)
arccos = unary(
    "ArcCos",
    "arccos",
    "The angle in [0, pi] whose cosine is x; NaN outside [-1, 1].",
    d=lambda m, x, y: -1 / m.sqrt(1 - m.sqr(x)),
    native="acos",
    domain=(-1, 1),
    inverse="cos",
    decreasing=True,
    range=(0, math.pi),
)
arctan = unary(
    "ArcTan",
    "arctan",
    "The angle in (-pi/2, pi/2) whose tangent is x.",
    d=lambda m, x, y: Inverse(1 + m.sqr(x)),
    native="atan",
    inverse="tan",
    odd=True,
    increasing=True,
    zero_at_zero=True,
    range=(-_HALF_PI, _HALF_PI),
)


def _arctan2_partials(m: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    size = m.hypot(x, y)  # the sum of the squares may over- or underflow
    return y / size / size, -x / size / size


arctan2 = binary(
    "ArcTan2",
    "arctan2",
    "The angle in [-pi, pi] of the point with ordinate x and abscissa y.",
    rule=rules.inexact_real,
    d=_arctan2_partials,
    native="atan2",
    domain=((-5, 5), (0.2, 5)),
    range=(-math.pi, math.pi),
)

# ---------------------------------------------------------------------------- hyperbolic

sinh = unary(
    "Sinh",
    "sinh",
    "Hyperbolic sine.",
    d=lambda m, x, y: m.cosh(x),
    logs={"y": lambda m, x: (m.abs(x), -0.5 * m.sign(x) * m.expm1(-2 * m.abs(x)))},
    native="sinh",
    inverse="arcsinh",
    odd=True,
    increasing=True,
    zero_at_zero=True,
)
cosh = unary(
    "Cosh",
    "cosh",
    "Hyperbolic cosine.",
    d=lambda m, x, y: m.sinh(x),
    logs={"y": lambda m, x: m.log_cosh(x)},
    native="cosh",
    even=True,
    range=(1, np.inf),
)


def _log_cosh_form(n: Any, x: Any) -> Any:
    size, half = n.abs(x), n.sinh(n.mul(x, n.const(0.5, x)))
    near = n.log1p(n.mul(n.const(2, x), n.mul(half, half)))
    tail = n.log1p(n.exp(n.mul(n.const(-2, x), size)))
    far = n.add(n.sub(size, n.const(_LOG2, x)), tail)
    return n.select(n.lt(size, n.const(1, x)), near, far)


log_cosh = unary(
    "LogCosh",
    "log_cosh",
    "log(cosh(x)), without overflow.",
    function="phintys.scalar.numeric.log_cosh",
    rule=rules.inexact_real,
    d=lambda m, x, y: m.tanh_half(2 * x),
    native=_log_cosh_form,
    even=True,
    zero_at_zero=True,
    range=(0, np.inf),
)


def _log_of_one_minus_tanh(m: Any, x: Any) -> Any:
    """log(2 sigmoid(-2 x)), exact around 0, where the result is 0."""
    twice = 2 * x
    near = -m.log1p(m.expm1(m.minimum(twice, 2)) * lit(x, 0.5))
    return m.switch(m.lt(x, 1), near, lit(x, _LOG2) - m.softplus(twice))


tanh = unary(
    "Tanh",
    "tanh",
    "Hyperbolic tangent.",
    d=lambda m, x, y: 1 - m.sqr(y),
    distribution=("sigmoid", 2, -1, 2),
    native="tanh",
    logs={
        "1 + y": lambda m, x: (-m.softplus(-2 * x), 2),
        "1 - y": lambda m, x: (-m.softplus(2 * x), 2),
        "log(1 + y)": lambda m, x: _log_of_one_minus_tanh(m, -x),
        "log(1 - y)": lambda m, x: _log_of_one_minus_tanh(m, x),
    },
    odd=True,
    increasing=True,
    zero_at_zero=True,
    range=(-1, 1),
)
arcsinh = unary(
    "ArcSinh",
    "arcsinh",
    "Inverse of the hyperbolic sine.",
    d=lambda m, x, y: Inverse(m.sqrt(m.sqr(x) + 1)),
    native="asinh",
    inverse="sinh",
    odd=True,
    increasing=True,
    zero_at_zero=True,
)
arccosh = unary(
    "ArcCosh",
    "arccosh",
    "Inverse of the hyperbolic cosine; NaN below 1.",
    d=lambda m, x, y: Inverse(m.sqrt(x - 1) * m.sqrt(x + 1)),
    native="acosh",
    domain=(1, np.inf),
    inverse="cosh",
    increasing=True,
    range=(0, np.inf),
)
arctanh = unary(
    "ArcTanh",
    "arctanh",
    "Inverse of the hyperbolic tangent; NaN outside [-1, 1].",
    d=lambda m, x, y: Inverse(1 - m.sqr(x)),
    native="atanh",
    domain=(-1, 1),
    inverse="tanh",
    odd=True,
    increasing=True,
    zero_at_zero=True,
)

# -------------------------------------------------------------------------------- angles

_LINEAR = {"odd": True, "increasing": True, "zero_at_zero": True}
deg2rad = unary(
    "Deg2Rad",
    "deg2rad",
    "Degrees to radians.",
    rule=rules.inexact_real,
    d=lambda m, x, y: lit(y, math.pi / 180),
    native=lambda n, x: n.mul(x, n.const(math.pi / 180, x)),
    inverse="rad2deg",
    **_LINEAR,
)
rad2deg = unary(
    "Rad2Deg",
    "rad2deg",
    "Radians to degrees.",
    rule=rules.inexact_real,
    d=lambda m, x, y: lit(y, 180 / math.pi),
    native=lambda n, x: n.mul(x, n.const(180 / math.pi, x)),
    inverse="deg2rad",
    **_LINEAR,
)


def _sinc(n: Any, x: Any) -> Any:
    angle = n.mul(x, n.const(math.pi, x))
    return n.select(n.eq(x, n.const(0, x)), n.const(1, x), n.div(n.sin(angle), angle))


#: the Taylor coefficients of the derivative of sin(u) / u, divided by u, in u**2
_SINC_SERIES = [(-1) ** k * 2 * k / math.factorial(2 * k + 1) for k in range(1, 10)]


def _sinc_slope(m: Any, x: Any, y: Any) -> Any:
    """(cos(u) - sin(u) / u) / u for u = pi x, by a series near 0, where the terms cancel.

    Sine and cosine are those of an angle from which multiples of 2 pi are taken before x is
    multiplied by pi, because that rounds.
    """
    u = x * lit(x, math.pi)
    near = m.lt(m.abs(u), lit(x, 0.5))
    close, far = m.switch(near, u, 0), m.switch(near, 1, u)
    angle = (x - 2 * m.round_half_to_even(0.5 * x)) * lit(x, math.pi)
    series = close * polynomial(m.sqr(close), _SINC_SERIES)
    slope = m.switch(near, series, (m.cos(angle) - m.sin(angle) / far) / far)
    return slope * lit(x, math.pi)


sinc = unary(
    "Sinc",
    "sinc",
    "sin(pi x) / (pi x); 1 at 0.",
    rule=rules.inexact_real,
    d=_sinc_slope,
    native=_sinc,
    domain=(0.1, 5),
    even=True,
)
