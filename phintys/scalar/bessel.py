"""Table: Bessel functions.

Derivatives in the argument: DLMF (NIST Digital Library of Mathematical Functions) 10.6 and 10.29.
Derivatives in the order are not available.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from phintys.scalar import rules
from phintys.scalar.dtypes import is_complex, real_of, upcast
from phintys.scalar.native import Term
from phintys.scalar.op import Leading, Undefined, binary, call, lit, polynomial, special

_ORDER = Undefined("no derivative of a Bessel function in its order is available")
_ROOT_2PI = math.sqrt(2 * math.pi)
_POSITIVE = (0.1, 30)

#: Beyond both, SciPy computes yv of an integer order by a recurrence of as many steps as the order.
LONG_ORDER, LONG_ARGUMENT = 1e4, 1e10


def _fixed(name: str, doc: str, d: Any, domain: Any = (-20, 20), **facts: Any) -> Any:
    """Define a function whose order is part of its name."""
    return special(
        name.upper().replace("E", "e"),
        name,
        doc,
        d=d,
        native=call(name),
        domain=domain,
        **facts,
    )


def _order_rule(v: str, x: str) -> rules.Signature:
    """The dtype rule of functions of a real order and a real or complex argument."""
    rules.no_complex((v,))
    if is_complex(x):
        dtype = upcast(v, x)
        return (real_of(dtype), dtype), dtype
    return rules.inexact_real(v, x)


def _general(
    name: str,
    doc: str,
    d: Any,
    domain: Any = (0.2, 20),
    rule: rules.DtypeRule = _order_rule,
    **others: Any,
) -> Any:
    """Define a function of order and argument."""
    fields = {"native": call(name)} | others
    return special(
        name.capitalize(),
        name,
        doc + " of order x at y.",
        binary,
        rule=rule,
        d=lambda m, v, x, y: (_ORDER, d(m, v, x, y)),
        domain=((0.2, 5), domain),
        **fields,
    )


# ------------------------------------------------------------------------ ordinary J and Y

jv = _general(
    "jv",
    "Bessel function of the first kind",
    lambda m, v, x, y: 0.5 * (m.jv(v - 1, x) - m.jv(v + 1, x)),
)
j0 = _fixed(
    "j0", "Bessel function of the first kind of order 0.", lambda m, x, y: -m.j1(x), even=True
)
j1 = _fixed(
    "j1",
    "Bessel function of the first kind of order 1.",
    lambda m, x, y: 0.5 * (m.j0(x) - m.jv(2, x)),
    odd=True,
    zero_at_zero=True,
)


def _yv(n: Any, v: Any, x: Any) -> Any:
    """`phintys.scalar.numeric.yv` in native instructions."""
    dtype = n.dtype(x)
    if is_complex(dtype):
        return NotImplemented
    v, x = n.cast(v, "float64"), n.cast(x, "float64")

    def num(value: float) -> Any:
        return n.const(value, x)

    order, one = n.abs(v), num(1)
    far = n.and_(n.gt(order, num(LONG_ORDER)), n.gt(x, num(LONG_ARGUMENT)))
    far = n.and_(far, n.and_(n.eq(v, n.floor(v)), n.lt(order, n.mul(x, num(0.5)))))
    near = n.call("yv", n.select(far, one, v), x)
    t = n.select(far, n.div(order, x), num(0))
    rest = n.sqrt(n.sub(one, n.mul(t, t)))
    bent = n.sub(n.asin(t), n.div(t, n.add(one, rest)))
    phase = n.sub(n.mul(order, bent), num(np.pi / 4))
    s, c, sp, cp = n.sin(x), n.cos(x), n.sin(phase), n.cos(phase)
    sin = n.add(n.mul(s, cp), n.mul(c, sp))
    cos = n.sub(n.mul(c, cp), n.mul(s, sp))
    half = n.mul(order, num(0.5))
    odd = n.ne(half, n.floor(half))
    fourth = n.mul(order, num(0.25))
    quarters = n.mul(n.sub(fourth, n.floor(fourth)), num(4))
    turned = n.select(odd, n.neg(cos), sin)
    flipped = n.ne(n.ge(quarters, num(2)), n.and_(odd, n.lt(v, num(0))))
    turned = n.select(flipped, n.neg(turned), turned)
    size = n.sqrt(n.div(num(2 / np.pi), n.mul(x, rest)))
    return n.cast(n.select(far, n.mul(size, turned), near), dtype)


yv = _general(
    "yv",
    "Bessel function of the second kind",
    lambda m, v, x, y: 0.5 * (m.yv(v - 1, x) - m.yv(v + 1, x)),
    function="phintys.scalar.numeric.yv",
    native=_yv,
)
y0 = _fixed(
    "y0", "Bessel function of the second kind of order 0.", lambda m, x, y: -m.y1(x), _POSITIVE
)
y1 = _fixed(
    "y1",
    "Bessel function of the second kind of order 1.",
    lambda m, x, y: 0.5 * (m.y0(x) - m.yv(2, x)),
    _POSITIVE,
)

# ------------------------------------------------------------------------ modified I and K

iv = _general(
    "iv",
    "Modified Bessel function of the first kind",
    lambda m, v, x, y: 0.5 * (m.iv(v - 1, x) + m.iv(v + 1, x)),
    logs={"y": lambda m, v, x: (m.abs(x), m.ive(v, x))},
)


#: an order of i0e, i1e -> the coefficients of the series of the derivative
_SCALED_SLOPES = {
    v: [
        -(k + 0.5)
        * math.prod((2 * j - 1) ** 2 - 4 * v * v for j in range(1, k + 1))
        / (math.factorial(k) * 8**k * _ROOT_2PI)
        for k in range(11)
    ]
    for v in (0, 1)
}


def _scaled_slope(m: Any, order: int, x: Any, near: Any) -> Any:
    """The derivative of i0e or i1e: ``near``, and where its terms cancel, a series.

    It is the derivative of the asymptotic series (DLMF 10.40.1): powers of 1/x over x**1.5.
    """
    bound = lit(x, 50 if x.type.dtype == "float64" else 8)
    far = m.gt(m.abs(x), bound)
    size = m.switch(far, m.abs(x), bound)
    series = polynomial(1 / size, _SCALED_SLOPES[order]) / (size * m.sqrt(size))
    return m.switch(far, series if order else m.sign(x) * series, near)


#: the number of terms of the series of the derivatives of ive and kve
_TERMS = 8


def _far_slope(m: Any, v: Any, x: Any, sign: int, near: Any) -> Any:
    """The derivative of ``sqrt(x) ** -1`` times the sum of ``a[k] (sign / x)**k``, or ``near``.

    The series (DLMF 10.40.1 and 10.40.2) is that of ive (sign -1) and kve (sign 1), up to a factor.
    It takes the place of ``near``, a function without arguments, where the terms of that cancel.
    Both are computed in float64, as ive and kve are.
    """
    bound = 500 + 10 * m.sqr(v)
    far = m.gt(x, bound)
    size = m.switch(far, x, bound)
    square, ratio = 4 * m.sqr(v), sign * 0.125 / size
    term, total = 1.0, 0.5
    for k in range(1, _TERMS):
        term = (square - (2 * k - 1) ** 2) * ratio * (term / k)
        total = total + (k + 0.5) * term
    return m.switch(far, -total / (size * m.sqrt(size)), near)


def _ive_slope(m: Any, v: Any, x: Any, y: Any) -> Any:
    v, x, dtype = m.cast(v, "float64"), m.cast(x, "float64"), y.type.dtype
    near = 0.5 * (m.ive(v - 1, x) + m.ive(v + 1, x)) - m.sign(x) * m.ive(v, x)
    return m.cast(_far_slope(m, v, x, -1, near * _ROOT_2PI) / _ROOT_2PI, dtype)


def _kve_slope(m: Any, v: Any, x: Any, y: Any) -> Any:
    dtype = y.type.dtype
    if is_complex(dtype):
        return y * (1 - v / x) - m.kve(v - 1, x)
    v, x = m.cast(v, "float64"), m.cast(x, "float64")
    near = m.kve(v, x) * (1 - v / x) - m.kve(v - 1, x)
    scale = math.sqrt(math.pi / 2)
    return m.cast(_far_slope(m, v, x, 1, near / scale) * scale, dtype)


#: above, SciPy's ive and kve are NaN
LARGEST_SCALED = 1e9


def scaled_far(exp: Any, sqrt: Any, asinh: Any, v: Any, x: Any, kind: int) -> Any:
    """ive (kind 1) or kve (kind 2) of ``v >= 0`` and ``x > LARGEST_SCALED``: DLMF 10.41.3, 10.41.4.

    With ``t = v / x`` and ``r = sqrt(1 + t**2)`` the exponent is minus or plus
    ``v asinh(t) - v t / (1 + r)``.
    """
    t = v / x
    r = sqrt(t * t + 1.0)
    exponent = v * asinh(t) - v * t / (r + 1.0)
    w = t / r
    first = (3.0 + w * w * -5.0) / (x * r * 24.0)
    if kind == 1:
        return exp(-exponent) * (first + 1.0) / sqrt(x * r * (2 * math.pi))
    return exp(exponent) * (1.0 + -first) * sqrt(math.pi / 2 / (x * r))


def _scaled_form(n: Any, v: Any, x: Any, kind: int) -> Any:
    """`phintys.scalar.numeric.ive` (kind 1) or ``kve`` (kind 2) in native instructions."""
    dtype = n.dtype(x)
    if is_complex(dtype):
        return NotImplemented
    v, x = n.cast(v, "float64"), n.cast(x, "float64")
    zero, one, largest = (n.const(c, x) for c in (0, 1, LARGEST_SCALED))
    size = n.abs(x) if kind == 1 else x
    far = n.gt(size, largest)

    def function(name: str) -> Any:
        return lambda t: Term(n, getattr(n, name)(t.value))

    exp, sqrt, asinh = (function(name) for name in ("exp", "sqrt", "asinh"))
    order, at = Term(n, n.select(far, n.abs(v), zero)), Term(n, n.select(far, size, largest))
    series = scaled_far(exp, sqrt, asinh, order, at, kind).value
    if kind == 1:
        half = n.mul(v, n.const(0.5, x))
        odd = n.select(n.eq(v, n.floor(v)), n.neg(one), n.const(np.nan, x))
        sign = n.select(n.eq(half, n.floor(half)), one, odd)
        series = n.select(n.lt(x, zero), n.mul(sign, series), series)
    near = n.call("ive" if kind == 1 else "kve", v, n.select(far, one, x))
    return n.cast(n.select(far, series, near), dtype)


ive = _general(
    "ive",
    "exp(-|y|) times the modified Bessel function of the first kind",
    _ive_slope,
    rule=rules.inexact_real,
    function="phintys.scalar.numeric.ive",
    native=lambda n, v, x: _scaled_form(n, v, x, 1),
)
i0 = _fixed(
    "i0",
    "Modified Bessel function of the first kind of order 0.",
    lambda m, x, y: m.i1(x),
    logs={"y": lambda m, x: m.log_i0(x)},
    even=True,
    range=(1, np.inf),
)
i1 = _fixed(
    "i1",
    "Modified Bessel function of the first kind of order 1.",
    lambda m, x, y: 0.5 * (m.i0(x) + m.iv(2, x)),
    logs={"y": lambda m, x: (m.abs(x), m.i1e(x))},
    odd=True,
    increasing=True,
    zero_at_zero=True,
)
i0e = _fixed(
    "i0e",
    "exp(-|x|) i0(x).",
    lambda m, x, y: _scaled_slope(m, 0, x, m.i1e(x) - m.sign(x) * y),
    even=True,
    range=(0, 1),
)
i1e = _fixed(
    "i1e",
    "exp(-|x|) i1(x).",
    lambda m, x, y: _scaled_slope(m, 1, x, 0.5 * (m.i0e(x) + m.ive(2, x)) - m.sign(x) * y),
    odd=True,
    zero_at_zero=True,
)


def _quotient_series() -> list[float]:
    """The coefficients of i1(x) / i0(x) in powers of 1/x: the quotient of the asymptotic series.

    The series are those of DLMF 10.40.1.
    """
    above, below = (
        [
            Fraction(math.prod((2 * j - 1) ** 2 - 4 * v * v for j in range(1, k + 1)))
            / (math.factorial(k) * 8**k)
            for k in range(_QUOTIENT_TERMS)
        ]
        for v in (1, 0)
    )
    found: list[Fraction] = []
    for k in range(_QUOTIENT_TERMS):
        found.append(above[k] - sum(found[j] * below[k - j] for j in range(k)))
    return [float(c) for c in found]


#: the number of terms of the series of i1(x) / i0(x)
_QUOTIENT_TERMS = 11
_QUOTIENT = _quotient_series()


def _log_i0_slope(m: Any, x: Any, y: Any) -> Any:
    """i1(x) / i0(x); for large x, where terms of its derivative cancel, a series."""
    bound = lit(x, 50 if x.type.dtype == "float64" else 8)
    far = m.gt(m.abs(x), bound)
    size = m.switch(far, m.abs(x), bound)
    near = m.switch(far, 0, x)
    series = m.sign(x) * polynomial(1 / size, _QUOTIENT)
    return m.switch(far, series, m.i1e(near) / m.i0e(near))


def i0_less_one(x: Any) -> Any:
    """``i0(x) - 1`` for x of size 1 at most: its power series (DLMF 10.25.2)."""
    w = x * x * 0.25
    total: Any = w * (1 / 100) + 1.0
    for k in range(9, 1, -1):
        total = total * (w * (1 / (k * k))) + 1.0
    return w * total


def _log_i0_form(n: Any, x: Any) -> Any:
    size, one = n.abs(x), n.const(1, x)
    near = n.log1p(i0_less_one(Term(n, n.min(size, one))).value)
    far = n.add(size, n.log(n.call("i0e", x)))
    return n.select(n.lt(size, one), near, far)


log_i0 = special(
    "LogI0",
    "log_i0",
    "log(i0(x)), without overflow.",
    d=_log_i0_slope,
    domain=(-20, 20),
    function="phintys.scalar.numeric.log_i0",
    native=_log_i0_form,
    leading=Leading(1, 1, lambda m, x: m.log(m.i0e(x)), lowest=1),
    even=True,
    zero_at_zero=True,
    range=(0, np.inf),
)
kv = _general(
    "kv",
    "Modified Bessel function of the second kind",
    lambda m, v, x, y: -0.5 * (m.kv(v - 1, x) + m.kv(v + 1, x)),
    logs={"y": lambda m, v, x: (-x, m.kve(v, x))},
)
kve = _general(
    "kve",
    "exp(y) times the modified Bessel function of the second kind",
    _kve_slope,
    function="phintys.scalar.numeric.kve",
    native=lambda n, v, x: _scaled_form(n, v, x, 2),
)
_DECAY = {"decreasing": True, "range": (0, np.inf)}
k0 = _fixed(
    "k0",
    "Modified Bessel function of the second kind of order 0.",
    lambda m, x, y: -m.k1(x),
    _POSITIVE,
    logs={"y": lambda m, x: (-x, m.kve(0, x))},
    **_DECAY,
)
k1 = _fixed(
    "k1",
    "Modified Bessel function of the second kind of order 1.",
    lambda m, x, y: -0.5 * (m.k0(x) + m.kv(2, x)),
    _POSITIVE,
    logs={"y": lambda m, x: (-x, m.kve(1, x))},
    **_DECAY,
)
