"""Table: exponentials, logarithms, and stable combinations of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.scalar import dtypes, increments, rules
from phintys.scalar.dtypes import is_complex
from phintys.scalar.native import Term
from phintys.scalar.op import Inverse, Leading, binary, call, lit, polynomial, unary

_LOG2, _LOG10 = float(np.log(2)), float(np.log(10))
_FUNCTIONS, _SPECIAL = "phintys.scalar.numeric.", "scipy.special."

# -------------------------------------------------------------------------- exponentials

exp = unary(
    "Exp",
    "exp",
    "e to the power x.",
    d=lambda m, x, y: y,
    logs={"y": lambda m, x: x},
    leading=Leading(1, 0, lambda m, x: m.expm1(x), near=1),
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
    logs={"y": lambda m, x: x * lit(x, _LOG2)},
    native="exp2",
    inverse="log2",
    increasing=True,
    range=(0, np.inf),
)
expm1 = unary(
    "Expm1",
    "expm1",
    "exp(x) - 1, exact for small x.",
    function=_FUNCTIONS + "expm1",
    d=lambda m, x, y: m.exp(x),
    logs={"log(y)": lambda m, x: x + m.log1mexp(-x)},
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
    d=lambda m, x, y: Inverse(x),
    native="log",
    domain=(0, np.inf),
    inverse="exp",
    increasing=True,
)
log2 = unary(
    "Log2",
    "log2",
    "The logarithm to base 2.",
    d=lambda m, x, y: Inverse(x * lit(x, _LOG2)),
    native="log2",
    domain=(0, np.inf),
    inverse="exp2",
    increasing=True,
)
log10 = unary(
    "Log10",
    "log10",
    "The logarithm to base 10.",
    d=lambda m, x, y: Inverse(x * lit(x, _LOG10)),
    native="log10",
    domain=(0, np.inf),
    increasing=True,
)
log1p = unary(
    "Log1p",
    "log1p",
    "log(1 + x), exact for small x.",
    d=lambda m, x, y: Inverse(1 + x),
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
    d=lambda m, x, y: -m.exp(x - y),
    native="log1mexp",
    domain=(-np.inf, 0),
    inverse="log1mexp",
    decreasing=True,
    range=(-np.inf, 0),
)

# -------------------------------------------------------------------- stable combinations


def _logistic_density(n: Any, x: Any) -> Any:
    small = n.exp(n.neg(n.abs(x)))
    total = n.add(n.const(1, x), small)
    return n.div(small, n.mul(total, total))


logistic_density = unary(
    "LogisticDensity",
    "logistic_density",
    "sigmoid(x) sigmoid(-x), the derivative of sigmoid: exact for large x.",
    function=_FUNCTIONS + "logistic_density",
    rule=rules.inexact_real,
    d=lambda m, x, y: -y * m.tanh(0.5 * x),
    native=_logistic_density,
    even=True,
    range=(0, 0.25),
)


tanh_half = unary(
    "TanhHalf",
    "tanh_half",
    "tanh(x / 2), which is sigmoid(x) - sigmoid(-x); its derivative is exact for large x.",
    function=_FUNCTIONS + "tanh_half",
    rule=rules.inexact_real,
    d=lambda m, x, y: m.logistic_density(x) * lit(x, 2),
    native=lambda n, x: n.tanh(n.mul(n.const(0.5, x), x)),
    odd=True,
    increasing=True,
    zero_at_zero=True,
    range=(-1, 1),
)


def _sigmoid_slope(m: Any, x: Any, y: Any) -> Any:
    return y * (1 - y) if is_complex(x.type.dtype) else m.logistic_density(x)


sigmoid = unary(
    "Sigmoid",
    "sigmoid",
    "1 / (1 + exp(-x)), without overflow.",
    function=_FUNCTIONS + "sigmoid",
    d=_sigmoid_slope,
    logs={"y": lambda m, x: -m.softplus(-x), "1 - y": lambda m, x: -m.softplus(x)},
    distribution=("sigmoid", 1, 0, 1),
    leading=Leading(0.5, 0, lambda m, x: m.tanh_half(x) * lit(x, 0.5), near=1),
    native="sigmoid",
    inverse="logit",
    increasing=True,
    range=(0, 1),
)
softplus = unary(
    "Softplus",
    "softplus",
    "log(1 + exp(x)), without overflow.",
    function=_FUNCTIONS + "softplus",
    d=lambda m, x, y: m.sigmoid(x),
    logs={"y": lambda m, x: m.log_softplus(x)},
    native="softplus",
    increasing=True,
    range=(0, np.inf),
)
log_softplus = unary(
    "LogSoftplus",
    "log_softplus",
    "log(softplus(x)), without underflow.",
    function=_FUNCTIONS + "log_softplus",
    rule=rules.inexact_real,
    d=lambda m, x, y: m.exp(-m.softplus(-x) - y),
    native=lambda n, x: n.select(n.lt(x, n.const(-40, x)), x, n.log(n.softplus(x))),
    increasing=True,
)
exp_diff = binary(
    "ExpDiff",
    "exp_diff",
    "exp(x - y); 1 where x equals y, also where both are inf or both are -inf.",
    function=_FUNCTIONS + "exp_diff",
    rule=rules.inexact_real,
    d=lambda m, x, y, z: (z, -z),
    native=lambda n, x, y: n.select(n.eq(x, y), n.const(1, x), n.exp(n.sub(x, y))),
    domain=((-5, 5), (-5, 5)),
)


def _logaddexp_partials(m: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    """The shares of exp(x) and exp(y) in their sum; 1/2 each where both are inf or both are -inf.

    Zero probabilities of a hidden Markov model are logarithms that are -inf: its gradient, in which
    such shares are multiplied by 0, is finite.
    """
    most = lit(z, float(np.finfo(dtypes.float_of(z.type.dtype)).max))
    apart = m.clip(x, -most, most) - m.clip(y, -most, most)
    return m.sigmoid(apart), lambda: m.sigmoid(-apart)


logaddexp = binary(
    "LogAddExp",
    "logaddexp",
    "log(exp(x) + exp(y)), without overflow.",
    rule=rules.inexact_real,
    d=_logaddexp_partials,
    native=lambda n, x, y: n.select(
        n.eq(x, y),
        n.add(x, n.const(_LOG2, x)),
        n.add(n.max(x, y), n.softplus(n.neg(n.abs(n.sub(x, y))))),
    ),
    commutative=True,
    associative=True,
    domain=((-5, 5), (-5, 5)),
)


def _logit_form(n: Any, x: Any) -> Any:
    """Near 1/2, where the difference of the logarithms cancels, 2 atanh(2x - 1)."""
    half = n.const(0.5, x)
    beside = n.atanh(n.sub(n.add(x, x), n.const(1.0, x)))
    apart = n.sub(n.log(x), n.log1p(n.neg(x)))
    near = n.lt(n.abs(n.sub(x, half)), n.const(0.25, x))
    return n.select(near, n.add(beside, beside), apart)


logit = unary(
    "Logit",
    "logit",
    "log(x / (1 - x)); NaN outside [0, 1].",
    function=_SPECIAL + "logit",
    rule=rules.inexact_real,
    d=lambda m, x, y: 1 / x + 1 / (1 - x),
    native=_logit_form,
    domain=(0, 1),
    inverse="sigmoid",
    increasing=True,
)
log_expit = unary(
    "LogExpit",
    "log_expit",
    "log(sigmoid(x)), without underflow.",
    function=_SPECIAL + "log_expit",
    rule=rules.inexact_real,
    d=lambda m, x, y: m.sigmoid(-x),
    native=lambda n, x: n.neg(n.softplus(n.neg(x))),
    increasing=True,
    range=(-np.inf, 0),
)

# -------------------------------------------------------------------------- entropy terms


def _times_log(log: str) -> Any:
    """The native form of x log(y) for an instruction; 0 where x is 0, unless y is NaN.

    There is none for complex numbers: SciPy's product differs from NumPy's where a part is infinite
    or NaN.
    """

    def native(n: Any, x: Any, y: Any) -> Any:
        if is_complex(n.dtype(x)):
            return NotImplemented
        zero = n.and_(n.eq(x, n.const(0, x)), n.not_(n.isnan(y)))
        return n.select(zero, n.const(0, x), n.mul(x, getattr(n, log)(y)))

    return native


def _over(m: Any, x: Any, y: Any) -> Any:
    """x / y, and 0 where both are 0."""
    both = m.and_(m.eq(x, 0), m.eq(y, 0))
    return x / m.switch(both, 1, y)


xlogy = binary(
    "XLogY",
    "xlogy",
    "x log(y); 0 where x is 0.",
    function=_SPECIAL + "xlogy",
    rule=rules.inexact,
    d=lambda m, x, y, z: (m.log(y), lambda: _over(m, x, y)),
    native=_times_log("log"),
    domain=((-5, 5), (0.1, 5)),
)
xlog1py = binary(
    "XLog1PY",
    "xlog1py",
    "x log(1 + y); 0 where x is 0.",
    function=_SPECIAL + "xlog1py",
    rule=rules.inexact,
    d=lambda m, x, y, z: (m.log1p(y), lambda: _over(m, x, 1 + y)),
    native=_times_log("log1p"),
    domain=((-5, 5), (-0.9, 5)),
)
entr = unary(
    "Entr",
    "entr",
    "-x log(x); 0 at 0 and -inf below.",
    function=_SPECIAL + "entr",
    native=call("entr"),
    rule=rules.inexact_real,
    d=lambda m, x, y: -1 - m.log(x),
    domain=(0, np.inf),
    zero_at_zero=True,
)
rel_entr = binary(
    "RelEntr",
    "rel_entr",
    "x log(x / y); 0 where x is 0 and y is not negative.",
    function=_SPECIAL + "rel_entr",
    native=call("rel_entr"),
    rule=rules.inexact_real,
    d=lambda m, x, y, z: (1 + (m.log(x) - m.log(y)), -x / y),
    domain=((0.1, 5), (0.1, 5)),
)


def _kl_div(n: Any, x: Any, y: Any) -> Any:
    """`phintys.scalar.numeric.kl_div` in native instructions."""
    size = n.abs(n.sub(x, y))
    near = n.lt(size, n.mul(n.add(x, y), n.const(increments.NEAR, x)))
    series = increments.divergence(Term(n, x), Term(n, y)).value
    return n.select(near, series, n.call("kl_div", x, y))


kl_div = binary(
    "KLDiv",
    "kl_div",
    "x log(x / y) - x + y.",
    function=_FUNCTIONS + "kl_div",
    native=_kl_div,
    rule=rules.inexact_real,
    d=lambda m, x, y, z: (m.log(x) - m.log(y), 1 - x / y),
    domain=((0.1, 5), (0.1, 5)),
)

# ------------------------------------------------------------------ exponential integrals

exp1 = unary(
    "Exp1",
    "exp1",
    "Exponential integral E1, the integral of exp(-t) / t from x to infinity.",
    function=_SPECIAL + "exp1",
    native=call("exp1"),
    d=lambda m, x, y: -m.exp(-x) / x,
    domain=(0, np.inf),
    decreasing=True,
    range=(0, np.inf),
)
expi = unary(
    "ExpI",
    "expi",
    "Exponential integral Ei, the integral of exp(t) / t from -infinity to x.",
    function=_SPECIAL + "expi",
    native=call("expi"),
    d=lambda m, x, y: m.exp(x) / x,
    domain=(0, np.inf),
    increasing=True,
)


def _spence_slope(m: Any, x: Any, y: Any) -> Any:
    """log(x) / (1 - x), by a series near 1, where derivatives of the formula cancel."""
    w = 1 - x
    near = m.lt(m.abs(w), lit(x, 0.05))
    far = m.switch(near, 2, x)
    series = polynomial(m.switch(near, w, 0), [1 / k for k in range(1, 15)])
    return m.switch(near, -series, m.log(far) / (1 - far))


spence = unary(
    "Spence",
    "spence",
    "Dilogarithm, the integral of log(t) / (1 - t) from 1 to x.",
    function=_SPECIAL + "spence",
    native=call("spence"),
    d=_spence_slope,
    domain=(0, np.inf),
    decreasing=True,
)
