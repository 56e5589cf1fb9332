"""Table: exponentials, logarithms, and stable combinations of them."""

from __future__ import annotations

import numpy as np

from phintys.scalar import rules
from phintys.scalar.op import binary, lit, unary

_LOG2, _LOG10 = float(np.log(2)), float(np.log(10))
_FUNCTIONS = "phintys.scalar.functions."

# -------------------------------------------------------------------------- exponentials

exp = unary(
    "Exp",
    "exp",
    "e to the power x.",
    d=lambda m, x, y: y,
    native="exp",
    inverse="log",
    increasing=True,
    range=(0, np.inf),
)
exp2 = unary(
    "Exp2",
    "exp2",
    "2 to the power x.",
    d=lambda m, x, y: y * lit(y, _LOG2),
    native="exp2",
    inverse="log2",
    increasing=True,
    range=(0, np.inf),
)
expm1 = unary(
    "Expm1",
    "expm1",
    "exp(x) - 1, exact for small x.",
    d=lambda m, x, y: y + 1,
    native="expm1",
    inverse="log1p",
    increasing=True,
    zero_at_zero=True,
    range=(-1, np.inf),
)

# ---------------------------------------------------------------------------- logarithms

log = unary(
    "Log",
    "log",
    "The natural logarithm; -inf at 0, NaN below.",
    d=lambda m, x, y: m.reciprocal(x),
    native="log",
    domain=(0, np.inf),
    inverse="exp",
    increasing=True,
)
log2 = unary(
    "Log2",
    "log2",
    "The logarithm to base 2.",
    d=lambda m, x, y: 1 / (x * lit(x, _LOG2)),
    native="log2",
    domain=(0, np.inf),
    inverse="exp2",
    increasing=True,
)
log10 = unary(
    "Log10",
    "log10",
    "The logarithm to base 10.",
    d=lambda m, x, y: 1 / (x * lit(x, _LOG10)),
    native="log10",
    domain=(0, np.inf),
    increasing=True,
)
log1p = unary(
    "Log1p",
    "log1p",
    "log(1 + x), exact for small x.",
    d=lambda m, x, y: 1 / (1 + x),
    native="log1p",
    domain=(-1, np.inf),
    inverse="expm1",
    increasing=True,
    zero_at_zero=True,
)
log1mexp = unary(
    "Log1mexp",
    "log1mexp",
    "log(1 - exp(x)) for x <= 0, without cancellation.",
    function=_FUNCTIONS + "log1mexp",
    d=lambda m, x, y: -1 / m.expm1(-x),
    native=lambda n, x: n.select(
        n.lt(x, n.const(-_LOG2, x)), n.log1p(n.neg(n.exp(x))), n.log(n.neg(n.expm1(x)))
    ),
    domain=(-np.inf, 0),
    inverse="log1mexp",
    decreasing=True,
    range=(-np.inf, 0),
)

# -------------------------------------------------------------------- stable combinations

sigmoid = unary(
    "Sigmoid",
    "sigmoid",
    "1 / (1 + exp(-x)), without overflow.",
    function=_FUNCTIONS + "sigmoid",
    d=lambda m, x, y: y * (1 - y),
    native="sigmoid",
    increasing=True,
    range=(0, 1),
)
softplus = unary(
    "Softplus",
    "softplus",
    "log(1 + exp(x)), without overflow.",
    function=_FUNCTIONS + "softplus",
    d=lambda m, x, y: m.sigmoid(x),
    native="softplus",
    increasing=True,
    range=(0, np.inf),
)
logaddexp = binary(
    "LogAddExp2",
    "logaddexp",
    "log(exp(x) + exp(y)), without overflow.",
    rule=rules.inexact_real,
    d=lambda m, x, y, z: (m.exp(x - z), m.exp(y - z)),
    native=lambda n, x, y: n.select(
        n.eq(x, y),
        n.add(x, n.const(_LOG2, x)),
        n.add(n.max(x, y), n.softplus(n.neg(n.abs(n.sub(x, y))))),
    ),
    commutative=True,
    associative=True,
    domain=((-5, 5), (-5, 5)),
)
