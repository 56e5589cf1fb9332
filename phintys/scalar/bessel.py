"""Table: Bessel functions.

Derivatives in the argument: DLMF (NIST Digital Library of Mathematical Functions) 10.6 and 10.29.
Derivatives in the order are not available.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.scalar import rules
from phintys.scalar.dtypes import is_complex, real_of, upcast
from phintys.scalar.op import Undefined, binary, call, special

_ORDER = Undefined("no derivative of a Bessel function in its order is available")
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
ive = _general(
    "ive",
    "exp(-|y|) times the modified Bessel function of the first kind",
    lambda m, v, x, y: 0.5 * (m.ive(v - 1, x) + m.ive(v + 1, x)) - m.sign(x) * y,
    rule=rules.inexact_real,
)
i0 = _fixed(
    "i0",
    "Modified Bessel function of the first kind of order 0.",
    lambda m, x, y: m.i1(x),
    logs={"y": lambda m, x: (m.abs(x), m.i0e(x))},
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
    lambda m, x, y: m.i1e(x) - m.sign(x) * y,
    even=True,
    range=(0, 1),
)
i1e = _fixed(
    "i1e",
    "exp(-|x|) i1(x).",
    lambda m, x, y: 0.5 * (m.i0e(x) + m.ive(2, x)) - m.sign(x) * y,
    odd=True,
    zero_at_zero=True,
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
    lambda m, v, x, y: y - 0.5 * (m.kve(v - 1, x) + m.kve(v + 1, x)),
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
