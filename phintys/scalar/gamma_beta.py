"""Table: gamma and beta families, and the hypergeometric function.

Formulas: NIST Digital Library of Mathematical Functions, chapters 5, 8 and 15.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.scalar import increments, rules
from phintys.scalar.dtypes import float_of, is_complex, is_discrete
from phintys.scalar.native import Term
from phintys.scalar.op import (
    ScalarOp,
    Undefined,
    binary,
    call,
    lit,
    polynomial,
    special,
    ternary,
)

_FUNCTIONS = "phintys.scalar.numeric."
_QUADRATURE, _SERIES = "phintys.scalar.quadrature.", "phintys.scalar.series."
_POSITIVE, _UNIT = (0, np.inf), (0, 1)


# ------------------------------------------------------------------------ gamma function


def _sign_of_gamma(m: Any, x: Any) -> Any:
    """1 or -1: below 0 the sign changes at each integer."""
    return m.switch(m.ge(x, 0), 1, 1 - 2 * m.mod(m.floor(x), 2))


gamma = special(
    "Gamma",
    "gamma",
    "Gamma function; (x - 1)! for positive integers.",
    rule=rules.inexact,
    d=lambda m, x, y: y * m.psi(x),
    logs={"y": lambda m, x: (m.gammaln(x), _sign_of_gamma(m, x))},
    native=call("gamma"),
    domain=_POSITIVE,
    range=_POSITIVE,
)
gammaln = special(
    "GammaLn",
    "gammaln",
    "Logarithm of |gamma(x)|.",
    d=lambda m, x, y: m.psi(x),
    native=call("gammaln"),
    domain=_POSITIVE,
)
_NO_COMPLEX = Undefined("the trigamma function of complex numbers is not available")
psi = special(
    "Psi",
    "psi",
    "Derivative of gammaln (digamma function).",
    rule=rules.inexact,
    d=lambda m, x, y: _NO_COMPLEX if is_complex(x.type.dtype) else m.tri_gamma(x),
    native=call("psi"),
    domain=_POSITIVE,
    increasing=True,
)
tri_gamma = special(
    "TriGamma",
    "tri_gamma",
    "Second derivative of gammaln.",
    function=_FUNCTIONS + "tri_gamma",
    native=call("trigamma"),
    d=lambda m, x, y: m.polygamma(2, x),
    domain=_POSITIVE,
    decreasing=True,
    range=_POSITIVE,
)


def _at_positive_step(n: Any, x: Any, h: Any, near: Any, apart: Any) -> Any:
    """``near(x, h)`` where x and x + h are positive and finite, else ``apart(x, x + h)``."""
    moved, zero, one = n.add(x, h), n.const(0, x), n.const(1, x)
    inside = n.and_(n.gt(x, zero), n.gt(moved, zero))
    inside = n.and_(inside, n.lt(moved, n.const(np.inf, x)))
    found = near(Term(n, n.select(inside, x, one)), Term(n, n.select(inside, h, one)))
    others = apart(n.select(inside, one, x), n.select(inside, one, moved))
    return n.select(inside, found.value, others)


def _gammaln_increment(n: Any, x: Any, h: Any) -> Any:
    """`phintys.scalar.numeric.gammaln_increment` in native instructions: in float64."""
    dtype = n.dtype(x)
    x, h = (n.cast(v, "float64") for v in (x, h))
    short = n.and_(n.le(h, x), n.ge(h, n.mul(n.const(-0.5, x), x)))

    def near(x: Term, h: Term) -> Term:
        logs = (lambda t: Term(n, n.log(t.value)), lambda t: Term(n, n.log1p(t.value)))
        return increments.gammaln(*logs, x, h)

    def apart(x: Any, moved: Any) -> Any:
        return n.sub(n.call("gammaln", moved), n.call("gammaln", x))

    step = n.select(short, h, n.const(np.nan, x))
    found = _at_positive_step(n, x, step, near, apart)
    return n.cast(n.select(short, found, apart(x, n.add(x, h))), dtype)


def _psi_increment(n: Any, x: Any, h: Any) -> Any:
    """`phintys.scalar.numeric.psi_increment` in native instructions."""

    def log1p(t: Term) -> Term:
        return Term(n, n.log1p(t.value))

    return _at_positive_step(
        n,
        x,
        h,
        lambda x, h: increments.psi(log1p, x, h),
        lambda x, moved: n.sub(n.call("psi", moved), n.call("psi", x)),
    )


def _tri_gamma_increment(n: Any, x: Any, h: Any) -> Any:
    """`phintys.scalar.numeric.tri_gamma_increment` in native instructions."""
    return _at_positive_step(
        n,
        x,
        h,
        increments.tri_gamma,
        lambda x, moved: n.sub(n.call("trigamma", moved), n.call("trigamma", x)),
    )


_STEP_DOMAIN = {"domain": ((0.2, 6), (0.2, 6))}
gammaln_increment = special(
    "GammaLnIncrement",
    "gammaln_increment",
    "gammaln(x + y) - gammaln(x), without cancellation where both are positive.",
    binary,
    function=_FUNCTIONS + "gammaln_increment",
    d=lambda m, x, h, y: (m.psi_increment(x, h), lambda: m.psi(x + h)),
    native=_gammaln_increment,
    **_STEP_DOMAIN,
)
psi_increment = special(
    "PsiIncrement",
    "psi_increment",
    "psi(x + y) - psi(x), without cancellation where both are positive.",
    binary,
    function=_FUNCTIONS + "psi_increment",
    d=lambda m, x, h, y: (m.tri_gamma_increment(x, h), lambda: m.tri_gamma(x + h)),
    native=_psi_increment,
    **_STEP_DOMAIN,
)
tri_gamma_increment = special(
    "TriGammaIncrement",
    "tri_gamma_increment",
    "tri_gamma(x + y) - tri_gamma(x), without cancellation where both are positive.",
    binary,
    function=_FUNCTIONS + "tri_gamma_increment",
    d=lambda m, x, h, y: (
        m.polygamma(2, x + h) - m.polygamma(2, x),
        lambda: m.polygamma(2, x + h),
    ),
    native=_tri_gamma_increment,
    **_STEP_DOMAIN,
)


def _order_rule(order: str, x: str) -> rules.Signature:
    """The dtype rule of functions of an integer order and a real argument."""
    if not is_discrete(order):
        raise TypeError("the order must be an integer")
    (dtype,) = map(float_of, rules.no_complex((x,)))
    return (order, dtype), dtype


def _polygamma(n: Any, order: Any, x: Any) -> Any:
    """``(-1)**(order + 1) * order! * zeta(order + 1, x)``; psi(x) for order 0."""
    wide = n.cast(x, "float64")  # factorials overflow in float32
    raised = n.add(n.cast(order, "float64"), n.const(1, wide))
    size = n.mul(n.call("gamma", raised), n.call("zeta", raised, wide))
    odd = n.ne(n.and_(order, n.const(1, order)), n.const(0, order))
    signed = n.cast(n.select(odd, size, n.neg(size)), n.dtype(x))
    return n.select(n.eq(order, n.const(0, order)), n.call("psi", x), signed)


polygamma = special(
    "PolyGamma",
    "polygamma",
    "Derivative of order x (an integer) of psi at y.",
    binary,
    function=_FUNCTIONS + "polygamma",
    rule=_order_rule,
    d=lambda m, n, x, y: (None, m.polygamma(n + 1, x)),
    native=lambda n, order, x: _polygamma(
        n, n.cast(order, "int8") if n.dtype(order) == "bool" else order, x
    ),
    domain=((0, 4), _POSITIVE),
)
poch = special(
    "Poch",
    "poch",
    "Rising factorial gamma(x + y) / gamma(x).",
    binary,
    d=lambda m, x, y, z: (lambda: z * m.psi_increment(x, y), lambda: z * m.psi(x + y)),
    native=call("poch"),
    domain=((0.2, 4), (0.2, 4)),
)
zeta = special(
    "Zeta",
    "zeta",
    "Hurwitz zeta function, the sum of (n + y)**-x over n >= 0.",
    binary,
    function=_FUNCTIONS + "zeta",
    native=call("zeta"),
    d=lambda m, x, q, z: (Undefined("no closed form in the exponent"), -x * m.zeta(x + 1, q)),
    domain=((1.2, 6), (0.2, 4)),
)

# ---------------------------------------------------------------------- incomplete gamma


#: above it, Stirling's series with `_STIRLING` has all digits
_LARGE = 16
#: the coefficients of ``1/n, n**-3, ...`` in Stirling's series of log(n!) (DLMF 5.11.1)
_STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188]


def _stirling(m: Any, n: Any) -> Any:
    """log(n!) minus n log(n) - n + log(2 pi n) / 2, for n > `_LARGE` - 1."""
    inverse = 1 / n
    return inverse * polynomial(m.sqr(inverse), _STIRLING)


def _gamma_density(m: Any, k: Any, x: Any) -> Any:
    """Density of the gamma distribution: d gammainc(k, x) / dx.

    For large k it is computed from the deviance of x, as the terms of the logarithm cancel
    (C.  Loader, "Fast and accurate computation of binomial probabilities", 2000).
    """
    large = m.gt(k, _LARGE)
    n, x_ = m.switch(large, k - 1, _LARGE), m.switch(large, x, _LARGE)
    far = m.exp(-m.kl_div(n, x_) - _stirling(m, n)) / m.sqrt(n * lit(k, 2 * math.pi))
    k, x = m.switch(large, 1, k), m.switch(large, 1, x)
    return m.switch(large, far, m.exp(m.xlogy(k - 1, x) - x - m.gammaln(k)))


def _deviation(m: Any, k: Any, x: Any) -> Any:
    """The derivative of the logarithm of the density in k: log(x) minus its mean."""
    return m.log(x) - m.psi(k)


_SHAPE = {"domain": ((0.1, 8), (0.1, 12))}
_SHAPE_AND_UNIT = {"domain": ((0.3, 8), (0.02, 0.98))}

gammainc = special(
    "GammaInc",
    "gammainc",
    "Regularised lower incomplete gamma function of shape x at y.",
    binary,
    d=lambda m, k, x, y: (m.gammainc_der(k, x), _gamma_density(m, k, x)),
    native=call("gammainc"),
    range=_UNIT,
    **_SHAPE,
)
gammaincc = special(
    "GammaIncC",
    "gammaincc",
    "Regularised upper incomplete gamma function of shape x at y.",
    binary,
    d=lambda m, k, x, y: (-m.gammainc_der(k, x), -_gamma_density(m, k, x)),
    native=call("gammaincc"),
    range=_UNIT,
    **_SHAPE,
)
_THIRD = Undefined("third derivatives in the parameters are not available")
gammainc_der = special(
    "GammaIncDer",
    "gammainc_der",
    "Derivative of gammainc in its shape.",
    binary,
    function=_QUADRATURE + "gammainc_der",
    d=lambda m, k, x, y: (m.gammainc_der2(k, x), _gamma_density(m, k, x) * _deviation(m, k, x)),
    **_SHAPE,
)
gammainc_der2 = special(
    "GammaIncDer2",
    "gammainc_der2",
    "Second derivative of gammainc in its shape.",
    binary,
    function=_QUADRATURE + "gammainc_der2",
    d=lambda m, k, x, y: (
        _THIRD,
        _gamma_density(m, k, x) * (m.sqr(_deviation(m, k, x)) - m.tri_gamma(k)),
    ),
    **_SHAPE,
)


def _inverse_gamma(sign: int) -> Any:
    """The partial derivatives of the inverses of gammainc (sign 1) and gammaincc (sign -1)."""

    def partials(m: Any, k: Any, p: Any, x: Any) -> tuple[Any, Any]:
        density = _gamma_density(m, k, x)
        return -m.gammainc_der(k, x) / density, sign / density

    return partials


gammaincinv = special(
    "GammaIncInv",
    "gammaincinv",
    "The z with gammainc(x, z) = y.",
    binary,
    d=_inverse_gamma(1),
    native=call("gammaincinv"),
    range=_POSITIVE,
    **_SHAPE_AND_UNIT,
)
gammainccinv = special(
    "GammaIncCInv",
    "gammainccinv",
    "The z with gammaincc(x, z) = y.",
    binary,
    d=_inverse_gamma(-1),
    native=call("gammainccinv"),
    range=_POSITIVE,
    **_SHAPE_AND_UNIT,
)


def _unregularised(sign: int) -> Any:
    """The partial derivatives of gamma(k) times gammainc (sign 1) or gammaincc (sign -1)."""

    def partials(m: Any, k: Any, x: Any, y: Any) -> tuple[Any, Any]:
        shape = y * m.psi(k) + sign * m.gamma(k) * m.gammainc_der(k, x)
        return shape, sign * m.exp(m.xlogy(k - 1, x) - x)

    return partials


gammal = special(
    "GammaL",
    "gammal",
    "Lower incomplete gamma function: gamma(x) gammainc(x, y).",
    binary,
    function=_FUNCTIONS + "gammal",
    d=_unregularised(1),
    native=lambda n, k, x: n.mul(n.call("gammainc", k, x), n.call("gamma", k)),
    **_SHAPE,
)
gammau = special(
    "GammaU",
    "gammau",
    "Upper incomplete gamma function: gamma(x) gammaincc(x, y).",
    binary,
    function=_FUNCTIONS + "gammau",
    d=_unregularised(-1),
    native=lambda n, k, x: n.mul(n.call("gammaincc", k, x), n.call("gamma", k)),
    **_SHAPE,
)


def _chi2_partials(m: Any, x: Any, k: Any, y: Any) -> tuple[Any, Any]:
    x, k = x / 2, k / 2
    return -0.5 * _gamma_density(m, k, x), -0.5 * m.gammainc_der(k, x)


chi2sf = special(
    "Chi2SF",
    "chi2sf",
    "Probability that a chi-squared variable with y degrees of freedom exceeds x.",
    binary,
    function=_FUNCTIONS + "chi2sf",
    d=_chi2_partials,
    native=lambda n, x, k: n.call(
        "gammaincc", n.mul(k, n.const(0.5, k)), n.mul(x, n.const(0.5, x))
    ),
    domain=((0.2, 20), (0.5, 15)),
    range=_UNIT,
)

# ---------------------------------------------------------------------------------- beta

_SHAPES = {"domain": ((0.2, 6), (0.2, 6), (0.02, 0.98))}


def _sign_of_beta(m: Any, a: Any, b: Any) -> Any:
    return _sign_of_gamma(m, a) * _sign_of_gamma(m, b) * _sign_of_gamma(m, a + b)


beta = special(
    "Beta",
    "beta",
    "Beta function, gamma(x) gamma(y) / gamma(x + y).",
    binary,
    d=lambda m, a, b, y: (
        lambda: -y * m.psi_increment(a, b),
        lambda: -y * m.psi_increment(b, a),
    ),
    logs={"y": lambda m, a, b: (m.betaln(a, b), _sign_of_beta(m, a, b))},
    native=call("beta"),
    commutative=True,
    domain=((0.2, 6), (0.2, 6)),
)
betaln = special(
    "BetaLn",
    "betaln",
    "Logarithm of |beta(x, y)|.",
    binary,
    d=lambda m, a, b, y: (lambda: -m.psi_increment(a, b), lambda: -m.psi_increment(b, a)),
    native=call("betaln"),
    commutative=True,
    domain=((0.2, 6), (0.2, 6)),
)


def _beta_density(m: Any, a: Any, b: Any, x: Any) -> Any:
    """Density of the beta distribution: d betainc(a, b, x) / dx.

    For large shapes it is computed as that of the gamma distribution.
    """
    large = m.gt(m.minimum(a, b), _LARGE)
    i, j = (m.switch(large, v - 1, _LARGE) for v in (a, b))
    p = m.switch(large, x, 0.5)
    n = i + j
    deviance = m.kl_div(i, n * p) + m.kl_div(j, n * (1 - p))
    exponent = _stirling(m, n) - _stirling(m, i) - _stirling(m, j) - deviance
    far = (n + 1) * m.sqrt(n / i / (j * lit(n, 2 * math.pi))) * m.exp(exponent)
    a, b, x = (m.switch(large, 1, v) for v in (a, b, x))
    near = m.exp(m.xlogy(a - 1, x) + m.xlog1py(b - 1, -x) - m.betaln(a, b))
    return m.switch(large, far, near)


def _betainc_partials(m: Any, a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    return m.betainc_der_a(a, b, x), m.betainc_der_b(a, b, x), _beta_density(m, a, b, x)


betainc = special(
    "BetaInc",
    "betainc",
    "Regularised incomplete beta function of shapes x and y at z.",
    ternary,
    d=_betainc_partials,
    native=call("betainc"),
    range=_UNIT,
    **_SHAPES,
)


_BETAINC_DERIVATIVES: list[tuple[tuple[int, ...], str]] = [
    ((0,), "Derivative of betainc in its first shape."),
    ((1,), "Derivative of betainc in its second shape."),
    ((0, 0), "Second derivative of betainc in its first shape."),
    ((0, 1), "Derivative of betainc in both shapes."),
    ((1, 1), "Second derivative of betainc in its second shape."),
]


def _beta_moment(m: Any, a: Any, b: Any, x: Any, which: tuple[int, ...]) -> Any:
    """The derivative of the density in the shapes ``which``, divided by the density."""
    deviations = [m.log(x) + m.psi_increment(a, b), m.log1p(-x) + m.psi_increment(b, a)]
    if len(which) == 1:
        return deviations[which[0]]
    if which[0] != which[1]:
        return deviations[0] * deviations[1] + m.tri_gamma(a + b)
    shapes = (b, a) if which[0] else (a, b)
    return m.sqr(deviations[which[0]]) + m.tri_gamma_increment(*shapes)


def _betainc_derivative(which: tuple[int, ...], doc: str) -> Any:
    """Define the derivative of betainc in its shapes ``which``, one or two of 0 and 1."""
    letters = "".join("ab"[i] for i in which)

    def shape(m: Any, a: Any, b: Any, x: Any, number: int) -> Any:
        if len(which) == 2:
            return _THIRD
        name = "betainc_der_" + "".join(sorted(letters + "ab"[number]))
        return getattr(m, name)(a, b, x)

    def partials(m: Any, a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
        in_x = _beta_density(m, a, b, x) * _beta_moment(m, a, b, x, which)
        return shape(m, a, b, x, 0), shape(m, a, b, x, 1), in_x

    name = "betainc_der_" + letters
    cls = "BetaIncDer" + letters.upper()
    return special(cls, name, doc, ternary, function=_QUADRATURE + name, d=partials, **_SHAPES)


betainc_der_a, betainc_der_b, betainc_der_aa, betainc_der_ab, betainc_der_bb = (
    _betainc_derivative(which, doc) for which, doc in _BETAINC_DERIVATIVES
)


def _betaincinv_partials(m: Any, a: Any, b: Any, p: Any, x: Any) -> tuple[Any, Any, Any]:
    density = _beta_density(m, a, b, x)
    return -m.betainc_der_a(a, b, x) / density, -m.betainc_der_b(a, b, x) / density, 1 / density


betaincinv = special(
    "BetaIncInv",
    "betaincinv",
    "The w with betainc(x, y, w) = z.",
    ternary,
    d=_betaincinv_partials,
    native=call("betaincinv"),
    range=_UNIT,
    domain=((0.5, 6), (0.5, 6), (0.05, 0.95)),
)

# ------------------------------------------------------------------------ hypergeometric

_PARAMETERS = {"domain": ((0.2, 3), (0.2, 3), (0.5, 4), (-1.5, 0.8)), "nin": 4}


def _quaternary(cls: str, name: str, doc: str, **fields: Any) -> ScalarOp:
    """Define a function of four numbers."""
    return special(cls, name, doc, ternary, **fields, **_PARAMETERS)


def _hyp2f1_partials(m: Any, a: Any, b: Any, c: Any, z: Any, y: Any) -> tuple[Any, ...]:
    return (
        m.hyp2f1_der_a(a, b, c, z),
        m.hyp2f1_der_a(b, a, c, z),
        m.hyp2f1_der_c(a, b, c, z),
        a * b / c * m.hyp2f1(a + 1, b + 1, c + 1, z),
    )


hyp2f1 = _quaternary(
    "Hyp2F1",
    "hyp2f1",
    "Gauss hypergeometric function 2F1(x, y; z; w).",
    d=_hyp2f1_partials,
    native=call("hyp2f1"),
)


def _raised(m: Any, name: str, a: Any, b: Any, c: Any, z: Any) -> Any:
    return getattr(m, name)(a + 1, b + 1, c + 1, z)


def _der_a_partials(m: Any, a: Any, b: Any, c: Any, z: Any, y: Any) -> tuple[Any, ...]:
    at = a, b, c, z
    slope = b / c * (_raised(m, "hyp2f1", *at) + a * _raised(m, "hyp2f1_der_a", *at))
    return m.hyp2f1_der_aa(*at), m.hyp2f1_der_ab(*at), m.hyp2f1_der_ac(*at), slope


def _der_c_partials(m: Any, a: Any, b: Any, c: Any, z: Any, y: Any) -> tuple[Any, ...]:
    at = a, b, c, z
    slope = a * b / c * (_raised(m, "hyp2f1_der_c", *at) - _raised(m, "hyp2f1", *at) / c)
    return m.hyp2f1_der_ac(*at), m.hyp2f1_der_ac(b, a, c, z), m.hyp2f1_der_cc(*at), slope


def _der_aa_slope(m: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    at = a, b, c, z
    return b / c * (2 * _raised(m, "hyp2f1_der_a", *at) + a * _raised(m, "hyp2f1_der_aa", *at))


def _der_ab_slope(m: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    at = a, b, c, z
    first = a * _raised(m, "hyp2f1_der_a", *at) + b * _raised(m, "hyp2f1_der_a", b, a, c, z)
    return (_raised(m, "hyp2f1", *at) + first + a * b * _raised(m, "hyp2f1_der_ab", *at)) / c


def _der_ac_slope(m: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    at = a, b, c, z
    value = _raised(m, "hyp2f1_der_c", *at) + a * _raised(m, "hyp2f1_der_ac", *at)
    lower = _raised(m, "hyp2f1", *at) + a * _raised(m, "hyp2f1_der_a", *at)
    return b / c * (value - lower / c)


def _der_cc_slope(m: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    at = a, b, c, z
    lower = _raised(m, "hyp2f1_der_c", *at) - _raised(m, "hyp2f1", *at) / c
    return a * b / c * (_raised(m, "hyp2f1_der_cc", *at) - 2 / c * lower)


def _hyp2f1_derivative(letters: str, doc: str, d: Any) -> Any:
    name = "hyp2f1_der_" + letters
    cls = "Hyp2F1Der" + letters.upper()
    return _quaternary(cls, name, doc, function=_SERIES + name, d=d)


def _hyp2f1_second(letters: str, doc: str, slope: Any) -> Any:
    """A second derivative in parameters; ``slope`` is its derivative in the last argument."""
    return _hyp2f1_derivative(
        letters, doc, lambda m, a, b, c, z, y: (_THIRD, _THIRD, _THIRD, slope(m, a, b, c, z))
    )


hyp2f1_der_a = _hyp2f1_derivative(
    "a", "Derivative of hyp2f1 in its first parameter.", _der_a_partials
)
hyp2f1_der_c = _hyp2f1_derivative(
    "c", "Derivative of hyp2f1 in its third parameter.", _der_c_partials
)
hyp2f1_der_aa = _hyp2f1_second(
    "aa", "Second derivative of hyp2f1 in its first parameter.", _der_aa_slope
)
hyp2f1_der_ab = _hyp2f1_second(
    "ab", "Derivative of hyp2f1 in its first and second parameters.", _der_ab_slope
)
hyp2f1_der_ac = _hyp2f1_second(
    "ac", "Derivative of hyp2f1 in its first and third parameters.", _der_ac_slope
)
hyp2f1_der_cc = _hyp2f1_second(
    "cc", "Second derivative of hyp2f1 in its third parameter.", _der_cc_slope
)


# ------------------------------------------------------ derivatives by their PyTensor names


def gammainc_grad(k: Any, x: Any) -> Any:
    """The derivative of gammainc in its shape."""
    return gammainc_der(k, x)


def gammaincc_grad(k: Any, x: Any) -> Any:
    """The derivative of gammaincc in its shape."""
    return -gammainc_der(k, x)


def betainc_grad(p: Any, q: Any, x: Any, wrtp: bool) -> Any:
    """The derivative of betainc in its first shape if ``wrtp``, else in its second."""
    return betainc_der_a(p, q, x) if wrtp else betainc_der_b(p, q, x)


def hyp2f1_grad(a: Any, b: Any, c: Any, z: Any, wrt: Sequence[int]) -> list[Any]:
    """The derivatives of hyp2f1 in the arguments whose positions, from 0, are in ``wrt``.

    >>> from phintys.scalar import float64
    >>> len(hyp2f1_grad(*map(float64, "abcz"), wrt=[0, 3]))
    2
    """
    partials = (
        lambda: hyp2f1_der_a(a, b, c, z),
        lambda: hyp2f1_der_a(b, a, c, z),
        lambda: hyp2f1_der_c(a, b, c, z),
        lambda: a * b / c * hyp2f1(a + 1, b + 1, c + 1, z),
    )
    return [partials[i]() for i in wrt]
