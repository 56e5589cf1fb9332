"""Densities of one real number: on the real line, of positive numbers, on intervals."""

from __future__ import annotations

import math
from math import log, pi, sqrt

from density_row import Density, Expr, Form, System

HALF_LOG_2PI = 0.5 * log(2 * pi)
SQRT_2PI = sqrt(2 * pi)
SQRT_2 = sqrt(2)
STANDARD = "x real, m real, s positive"


def located(form: Form) -> Form:
    """A form ``(pt, z, s)`` of the standardized number, as one of ``(pt, x, m, s, ...)``."""
    return lambda pt, x, m, s, *shapes: form(pt, (x - m) / s, s, *shapes)


def normal_pdf(pt: System, x: Expr, m: Expr, s: Expr) -> Expr:
    return pt.exp(-0.5 * ((x - m) / s) ** 2) / (s * sqrt(2 * pi))


def normal_log(pt: System, x: Expr, m: Expr, s: Expr) -> Expr:
    return -0.5 * ((x - m) / s) ** 2 - pt.log(s) - HALF_LOG_2PI


def normal_truth(mp: System, x: Expr, m: Expr, s: Expr) -> Expr:
    return mp.log_normal((x - m) / s) - mp.log(s)


def ndtr(pt: System, z: Expr) -> Expr:
    return 0.5 * pt.erfc(-z / SQRT_2)


def ndtr_erf(pt: System, z: Expr) -> Expr:
    return 0.5 * (1 + pt.erf(z / SQRT_2))


def student_truth(mp: System, z: Expr, s: Expr, nu: Expr) -> Expr:
    return (
        mp.lgamma((nu + 1) / 2)
        - mp.lgamma(nu / 2)
        - mp.log(nu * mp.pi) / 2
        - mp.log(s)
        - (nu + 1) / 2 * mp.log1p(z**2 / nu)
    )


def student_log(pt: System, z: Expr, s: Expr, nu: Expr) -> Expr:
    return (
        pt.gammaln((nu + 1) / 2)
        - pt.gammaln(nu / 2)
        - 0.5 * pt.log(nu * pi)
        - pt.log(s)
        - (nu + 1) / 2 * pt.log1p(z**2 / nu)
    )


def student_lambda(pt: System, z: Expr, s: Expr, nu: Expr) -> Expr:
    lam = s**-2.0
    return (
        pt.gammaln((nu + 1.0) / 2.0)
        + 0.5 * pt.log(lam / (nu * pi))
        - pt.gammaln(nu / 2.0)
        - (nu + 1.0) / 2.0 * pt.log1p(lam * (z * s) ** 2 / nu)
    )


def student_hand(pt: System, z: Expr, s: Expr, nu: Expr) -> Expr:
    factor = pt.exp(pt.gammaln((nu + 1) / 2) - pt.gammaln(nu / 2)) / (s * pt.sqrt(nu * pi))
    return pt.log(factor * (1 + z**2 / nu) ** (-(nu + 1) / 2))


def asymmetric_laplace_log(pt: System, x: Expr, m: Expr, b: Expr, k: Expr) -> Expr:
    d = x - m
    sign = pt.switch(d < 0, -1.0, 1.0)
    return pt.log(b / (k + k**-1)) + -d * b * sign * k**sign


def log_ndtr_erfcx(pt: System, z: Expr) -> Expr:
    return pt.switch(
        z < -1.0,
        pt.log(pt.erfcx(-z / SQRT_2) / 2.0) - z**2 / 2.0,
        pt.log1p(-pt.erfc(z / SQRT_2) / 2.0),
    )


def exgaussian_erfcx(pt: System, x: Expr, m: Expr, s: Expr, nu: Expr) -> Expr:
    return (
        -pt.log(nu)
        + (m - x) / nu
        + 0.5 * (s / nu) ** 2
        + log_ndtr_erfcx(pt, (x - (m + s**2 / nu)) / s)
    )


def exgaussian_truth(mp: System, x: Expr, m: Expr, s: Expr, nu: Expr) -> Expr:
    return -mp.log(nu) + (m - x) / nu + (s / nu) ** 2 / 2 + mp.log_ndtr((x - m) / s - s / nu)


LOCATED = [
    Density(
        "normal",
        STANDARD,
        normal_truth,
        {
            "hand": lambda pt, *a: pt.log(normal_pdf(pt, *a)),
            "sum": normal_log,
            "variance": lambda pt, x, m, s: (
                -0.5 * pt.log(2 * pi * s**2) - (x - m) ** 2 / (2 * s**2)
            ),
            "precision": lambda pt, x, m, s: (
                0.5 * (-((x - m) ** 2) * s**-2 + pt.log(s**-2 / pi / 2.0))
            ),
            "factors": lambda pt, x, m, s: (
                pt.log(1 / (s * SQRT_2PI)) + pt.log(pt.exp(-0.5 * ((x - m) / s) ** 2))
            ),
        },
    ),
    Density(
        "half_normal",
        "x nonnegative, s positive",
        lambda mp, x, s: mp.log(2) + normal_truth(mp, x, 0, s),
        {
            "switch": lambda pt, x, s: pt.switch(
                x >= 0, normal_log(pt, x, 0.0, s) + log(2), -math.inf
            ),
            "hand": lambda pt, x, s: pt.log(pt.sqrt(2 / pi) / s * pt.exp(-(x**2) / (2 * s**2))),
            "twice": lambda pt, x, s: pt.log(2 * normal_pdf(pt, x, 0.0, s)),
        },
    ),
    Density(
        "skew_normal",
        f"{STANDARD}, a real",
        lambda mp, x, m, s, a: (
            mp.log(2) + normal_truth(mp, x, m, s) + mp.log_ndtr(a * ((x - m) / s))
        ),
        {
            "erf": lambda pt, x, m, s, a: (
                pt.log(1 + pt.erf((x - m) / s * a / SQRT_2))
                - 0.5 * ((x - m) / s) ** 2
                - pt.log(s)
                - HALF_LOG_2PI
            ),
            "erfc": lambda pt, x, m, s, a: (
                log(2) + normal_log(pt, x, m, s) + pt.log(ndtr(pt, a * (x - m) / s))
            ),
            "hand": lambda pt, x, m, s, a: pt.log(
                2 * normal_pdf(pt, x, m, s) * ndtr(pt, a * (x - m) / s)
            ),
        },
    ),
    Density(
        "student_t",
        f"{STANDARD}, nu positive",
        located(student_truth),
        {
            "sum": located(student_log),
            "precision": located(student_lambda),
            "hand": located(student_hand),
        },
    ),
    Density(
        "half_student_t",
        "x nonnegative, s positive, nu positive",
        lambda mp, x, s, nu: mp.log(2) + student_truth(mp, x / s, s, nu),
        {
            "sum": lambda pt, x, s, nu: log(2) + student_log(pt, x / s, s, nu),
            "switch": lambda pt, x, s, nu: pt.switch(
                x >= 0, log(2) + student_lambda(pt, x / s, s, nu), -math.inf
            ),
        },
    ),
    Density(
        "cauchy",
        STANDARD,
        lambda mp, x, m, s: -mp.log(mp.pi) - mp.log(s) - mp.log1p(((x - m) / s) ** 2),
        {
            "sum": located(lambda pt, z, s: -log(pi) - pt.log(s) - pt.log1p(z**2)),
            "hand": located(lambda pt, z, s: pt.log(1 / (pi * s * (1 + z**2)))),
            "product": located(lambda pt, z, s: -pt.log(pi * s * (1 + z**2))),
            "quotient": lambda pt, x, m, s: pt.log(s / pi / ((x - m) ** 2 + s**2)),
        },
    ),
    Density(
        "half_cauchy",
        "x nonnegative, s positive",
        lambda mp, x, s: mp.log(2) - mp.log(mp.pi) - mp.log(s) - mp.log1p((x / s) ** 2),
        {
            "sum": lambda pt, x, s: log(2) - log(pi) - pt.log(s) - pt.log1p((x / s) ** 2),
            "hand": lambda pt, x, s: pt.log(2 / (pi * s * (1 + (x / s) ** 2))),
        },
    ),
    Density(
        "laplace",
        STANDARD,
        lambda mp, x, m, s: -mp.log(2 * s) - mp.absolute((x - m) / s),
        {
            "sum": lambda pt, x, m, s: -pt.log(2 * s) - pt.abs(x - m) / s,
            "hand": lambda pt, x, m, s: pt.log(pt.exp(-pt.abs(x - m) / s) / (2 * s)),
            "product": located(lambda pt, z, s: pt.log(0.5 / s * pt.exp(-pt.abs(z)))),
        },
        where=lambda x, m, s: x != m,
    ),
    Density(
        "asymmetric_laplace",
        "x real, m real, b positive, k positive",
        lambda mp, x, m, b, k: (
            mp.log(b) - mp.log(k + 1 / k) - (b * k * (x - m) if x > m else b / k * (m - x))
        ),
        {
            "power": asymmetric_laplace_log,
            "branches": lambda pt, x, m, b, k: (
                pt.log(b) - pt.log(k + 1 / k) - pt.switch(x > m, b * k * (x - m), b / k * (m - x))
            ),
            "hand": lambda pt, x, m, b, k: pt.log(
                b / (k + 1 / k) * pt.exp(-b * pt.switch(x > m, k * (x - m), (m - x) / k))
            ),
        },
        where=lambda x, m, b, k: x != m,
    ),
    Density(
        "generalized_normal",
        "x positive, a positive, b positive",
        lambda mp, x, a, b: (
            mp.log(b) - mp.log(2 * a) - mp.lgamma(1 / b) - mp.exp(b * (mp.log(x) - mp.log(a)))
        ),
        {
            "sum": lambda pt, x, a, b: pt.log(b / (2 * a)) - pt.gammaln(1 / b) - (x / a) ** b,
            "hand": lambda pt, x, a, b: pt.log(
                b / (2 * a * pt.gamma(1 / b)) * pt.exp(-((x / a) ** b))
            ),
        },
    ),
    Density(
        "logistic",
        STANDARD,
        lambda mp, x, m, s: -mp.softplus((x - m) / s) - mp.softplus((m - x) / s) - mp.log(s),
        {
            "hand": located(lambda pt, z, s: pt.log(pt.exp(-z) / (s * (1 + pt.exp(-z)) ** 2))),
            "sum": located(lambda pt, z, s: -z - pt.log(s) - 2 * pt.log1p(pt.exp(-z))),
            "softplus": located(lambda pt, z, s: z - pt.log(s) - 2 * pt.softplus(z)),
            "sigmoid": located(lambda pt, z, s: pt.log(pt.sigmoid(z) * (1 - pt.sigmoid(z)) / s)),
            "cosh": located(lambda pt, z, s: -pt.log(4 * s * pt.cosh(z / 2) ** 2)),
        },
    ),
    Density(
        "gumbel",
        STANDARD,
        located(lambda mp, z, s: -z - mp.exp(-z) - mp.log(s)),
        {
            "sum": located(lambda pt, z, s: -z - pt.exp(-z) - pt.log(s)),
            "hand": located(lambda pt, z, s: pt.log(pt.exp(-(z + pt.exp(-z))) / s)),
            "product": located(lambda pt, z, s: pt.log(1 / s * pt.exp(-z) * pt.exp(-pt.exp(-z)))),
        },
    ),
    Density(
        "moyal",
        STANDARD,
        located(lambda mp, z, s: -(z + mp.exp(-z)) / 2 - mp.log(s) - mp.log(2 * mp.pi) / 2),
        {
            "sum": located(lambda pt, z, s: -0.5 * (z + pt.exp(-z)) - pt.log(s) - HALF_LOG_2PI),
            "hand": located(
                lambda pt, z, s: pt.log(pt.exp(-0.5 * (z + pt.exp(-z))) / (s * SQRT_2PI))
            ),
        },
    ),
    Density(
        "hyperbolic_secant",
        STANDARD,
        located(lambda mp, z, s: mp.pi / 2 * z - mp.softplus(mp.pi * z) - mp.log(s)),
        {
            "hand": located(lambda pt, z, s: pt.log(0.5 / s / pt.cosh(pi / 2 * z))),
            "logaddexp": located(
                lambda pt, z, s: -pt.log(s) - pt.logaddexp(pi / 2 * z, -pi / 2 * z)
            ),
        },
    ),
    Density(
        "johnson_su",
        "x real, m real, s positive, d positive",
        lambda mp, x, m, s, d: (
            mp.log(d)
            - mp.log(2 * mp.pi) / 2
            - mp.log(s)
            - mp.log1p(((x - m) / s) ** 2) / 2
            - (d * mp.asinh((x - m) / s)) ** 2 / 2
        ),
        {
            "sum": located(
                lambda pt, z, s, d: (
                    pt.log(d)
                    - HALF_LOG_2PI
                    - pt.log(s)
                    - 0.5 * pt.log1p(z**2)
                    - 0.5 * (d * pt.arcsinh(z)) ** 2
                )
            ),
            "hand": located(
                lambda pt, z, s, d: pt.log(
                    d
                    / (s * SQRT_2PI * pt.sqrt(1 + z**2))
                    * pt.exp(-0.5 * (d * pt.log(z + pt.sqrt(1 + z**2))) ** 2)
                )
            ),
        },
    ),
    Density(
        "exgaussian",
        "x real, m real, s positive, nu positive",
        exgaussian_truth,
        {
            "erfcx": exgaussian_erfcx,
            "sum": lambda pt, x, m, s, nu: (
                -pt.log(nu)
                + (m - x) / nu
                + 0.5 * (s / nu) ** 2
                + pt.log(ndtr(pt, (x - m) / s - s / nu))
            ),
            "hand": lambda pt, x, m, s, nu: pt.log(
                1
                / (2 * nu)
                * pt.exp((m - x) / nu + s**2 / (2 * nu**2))
                * pt.erfc((m + s**2 / nu - x) / (SQRT_2 * s))
            ),
        },
    ),
    Density(
        "exponential_gamma",
        "x real, a positive, s positive",
        lambda mp, x, a, s: a * x / s - mp.exp(x / s) - mp.lgamma(a) - mp.log(s),
        {
            "sum": lambda pt, x, a, s: a * x / s - pt.exp(x / s) - pt.gammaln(a) - pt.log(s),
            "hand": lambda pt, x, a, s: pt.log(
                pt.exp(a * x / s) * pt.exp(-pt.exp(x / s)) / (s * pt.gamma(a))
            ),
        },
    ),
]


def truncated_truth(mp: System, x: Expr, m: Expr, s: Expr, lower: Expr) -> Expr:
    return normal_truth(mp, x, m, s) - mp.log_ndtr((m - lower) / s)


def log_interval(mp: System, a: Expr, b: Expr) -> Expr:
    """The logarithm of the normal probability between a and b, a < b, from the nearer tail."""
    if a > 0:
        a, b = -b, -a
    larger, smaller = mp.log_ndtr(b), mp.log_ndtr(a)
    return larger + mp.log1mexp(smaller - larger)


CUT = [
    Density(
        "truncated_normal",
        f"{STANDARD}, lower real",
        truncated_truth,
        {
            "erfc": lambda pt, x, m, s, lower: (
                normal_log(pt, x, m, s) - pt.log(ndtr(pt, (m - lower) / s))
            ),
            "complement": lambda pt, x, m, s, lower: (
                normal_log(pt, x, m, s) - pt.log(1 - ndtr(pt, (lower - m) / s))
            ),
            "log1p": lambda pt, x, m, s, lower: (
                normal_log(pt, x, m, s) - pt.log1p(-ndtr_erf(pt, (lower - m) / s))
            ),
            "hand": lambda pt, x, m, s, lower: pt.log(
                normal_pdf(pt, x, m, s) / (1 - ndtr_erf(pt, (lower - m) / s))
            ),
        },
        where=lambda x, m, s, lower: x >= lower,
    ),
    Density(
        "interval_normal",
        "x real, m real, s positive, lower real, upper real",
        lambda mp, x, m, s, lower, upper: (
            normal_truth(mp, x, m, s) - log_interval(mp, (lower - m) / s, (upper - m) / s)
        ),
        {
            "difference": lambda pt, x, m, s, lower, upper: (
                normal_log(pt, x, m, s)
                - pt.log(ndtr(pt, (upper - m) / s) - ndtr(pt, (lower - m) / s))
            ),
            "hand": lambda pt, x, m, s, lower, upper: pt.log(
                normal_pdf(pt, x, m, s)
                / (ndtr_erf(pt, (upper - m) / s) - ndtr_erf(pt, (lower - m) / s))
            ),
        },
        where=lambda x, m, s, lower, upper: lower <= x <= upper and lower < upper,
    ),
    Density(
        "censored_normal",
        f"c binary, {STANDARD}",
        lambda mp, c, x, m, s: mp.log_ndtr((m - x) / s) if c else normal_truth(mp, x, m, s),
        {
            "switch": lambda pt, c, x, m, s: pt.switch(
                pt.eq(c, 1), pt.log(ndtr(pt, (m - x) / s)), normal_log(pt, x, m, s)
            ),
            "complement": lambda pt, c, x, m, s: pt.switch(
                c, pt.log(1 - ndtr(pt, (x - m) / s)), normal_log(pt, x, m, s)
            ),
            "log_of_switch": lambda pt, c, x, m, s: pt.log(
                pt.switch(c, 1 - ndtr_erf(pt, (x - m) / s), normal_pdf(pt, x, m, s))
            ),
            "weights": lambda pt, c, x, m, s: (
                c * pt.log(ndtr(pt, (m - x) / s)) + (1 - c) * normal_log(pt, x, m, s)
            ),
        },
    ),
    Density(
        "tobit",
        "c binary, x positive, m real, s positive",
        lambda mp, c, x, m, s: mp.log_ndtr(-m / s) if c else normal_truth(mp, x, m, s),
        {
            "switch": lambda pt, c, x, m, s: pt.switch(
                c, pt.log(ndtr(pt, -m / s)), normal_log(pt, x, m, s)
            ),
            "log_of_switch": lambda pt, c, x, m, s: pt.log(
                pt.switch(c, ndtr(pt, -m / s), normal_pdf(pt, x, m, s))
            ),
        },
    ),
    Density(
        "censored_logistic",
        f"c binary, {STANDARD}",
        lambda mp, c, x, m, s: (
            -mp.softplus((x - m) / s)
            if c
            else (m - x) / s - mp.log(s) - 2 * mp.softplus((m - x) / s)
        ),
        {
            "switch": lambda pt, c, x, m, s: pt.switch(
                c,
                pt.log(1 - pt.sigmoid((x - m) / s)),
                -(x - m) / s - pt.log(s) - 2 * pt.log1p(pt.exp(-(x - m) / s)),
            ),
            "log_of_switch": lambda pt, c, x, m, s: pt.log(
                pt.switch(
                    c,
                    pt.sigmoid((m - x) / s),
                    pt.sigmoid((m - x) / s) * pt.sigmoid((x - m) / s) / s,
                )
            ),
        },
    ),
    Density(
        "interval_logistic",
        "lower real, upper real, m real, s positive",
        lambda mp, lower, upper, m, s: (
            mp.log1mexp((lower - upper) / s)
            - mp.softplus((lower - m) / s)
            - mp.softplus((m - upper) / s)
        ),
        {
            "sigmoids": lambda pt, lower, upper, m, s: pt.log(
                pt.sigmoid((upper - m) / s) - pt.sigmoid((lower - m) / s)
            ),
            "fractions": lambda pt, lower, upper, m, s: pt.log(
                1 / (1 + pt.exp((m - upper) / s)) - 1 / (1 + pt.exp((m - lower) / s))
            ),
        },
        where=lambda lower, upper, m, s: lower < upper,
    ),
    Density(
        "triangular",
        "x real, lower real, c real, upper real",
        lambda mp, x, lower, c, upper: (
            mp.log(2 * (x - lower) / ((upper - lower) * (c - lower)))
            if x < c
            else mp.log(2 * (upper - x) / ((upper - lower) * (upper - c)))
        ),
        {
            "switch": lambda pt, x, lower, c, upper: pt.switch(
                x < c,
                pt.log(2 * (x - lower) / ((upper - lower) * (c - lower))),
                pt.log(2 * (upper - x) / ((upper - lower) * (upper - c))),
            ),
            "log_of_switch": lambda pt, x, lower, c, upper: pt.log(
                pt.switch(
                    x < c,
                    2 * (x - lower) / (upper - lower) / (c - lower),
                    2 * (upper - x) / (upper - lower) / (upper - c),
                )
            ),
        },
        where=lambda x, lower, c, upper: lower < x < upper and lower < c < upper and x != c,
    ),
    Density(
        "uniform",
        "x real, lower real, upper real",
        lambda mp, x, lower, upper: (
            -mp.log(upper - lower) if lower <= x and x <= upper else mp.series(-mp.inf)
        ),
        {
            "switch": lambda pt, x, lower, upper: pt.switch(
                pt.and_(pt.ge(x, lower), pt.le(x, upper)), -pt.log(upper - lower), -math.inf
            ),
            "hand": lambda pt, x, lower, upper: (
                pt.log(pt.switch((x >= lower) & (x <= upper), 1 / (upper - lower), 1.0))
                + pt.switch((x >= lower) & (x <= upper), 0.0, -math.inf)
            ),
        },
        where=lambda x, lower, upper: lower < upper,
    ),
]

DENSITIES = [*LOCATED, *CUT]
