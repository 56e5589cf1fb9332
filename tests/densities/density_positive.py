"""Densities of one positive number, of a proportion or of an angle."""

from __future__ import annotations

import math
from math import log, pi, sqrt

from density_real import HALF_LOG_2PI, SQRT_2PI
from density_row import Density, Expr, System


def gamma_truth(mp: System, x: Expr, a: Expr, b: Expr) -> Expr:
    return a * mp.log(b) - mp.lgamma(a) + (a - 1) * mp.log(x) - b * x


def gamma_log(pt: System, x: Expr, a: Expr, b: Expr) -> Expr:
    return a * pt.log(b) - pt.gammaln(a) + (a - 1) * pt.log(x) - b * x


def gamma_pdf(pt: System, x: Expr, a: Expr, b: Expr) -> Expr:
    return b**a * x ** (a - 1) * pt.exp(-b * x) / pt.gamma(a)


def beta_truth(mp: System, x: Expr, a: Expr, b: Expr) -> Expr:
    return (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - mp.betaln(a, b)


def beta_log(pt: System, x: Expr, a: Expr, b: Expr) -> Expr:
    return (
        (a - 1) * pt.log(x)
        + (b - 1) * pt.log1p(-x)
        + pt.gammaln(a + b)
        - pt.gammaln(a)
        - pt.gammaln(b)
    )


def beta_hand(pt: System, x: Expr, a: Expr, b: Expr) -> Expr:
    constant = pt.gamma(a + b) / (pt.gamma(a) * pt.gamma(b))
    return pt.log(constant * x ** (a - 1) * (1 - x) ** (b - 1))


def wald_truth(mp: System, x: Expr, m: Expr, lam: Expr) -> Expr:
    return (
        mp.log(lam) / 2
        - mp.log(2 * mp.pi) / 2
        - 3 * mp.log(x) / 2
        - lam * ((x - m) / m) ** 2 / (2 * x)
    )


def gompertz_truth(mp: System, x: Expr, eta: Expr, b: Expr) -> Expr:
    return mp.log(b) + mp.log(eta) + b * x - eta * mp.expm1(b * x)


def log_logistic_truth(mp: System, x: Expr, a: Expr, b: Expr) -> Expr:
    z = b * (mp.log(x) - mp.log(a))
    return mp.log(b) - mp.log(x) + z - 2 * mp.softplus(z)


def weibull_truth(mp: System, x: Expr, a: Expr, b: Expr) -> Expr:
    z = mp.log(x) - mp.log(b)
    return mp.log(a) - mp.log(b) + (a - 1) * z - mp.exp(a * z)


def weibull_log(pt: System, x: Expr, a: Expr, b: Expr) -> Expr:
    return pt.log(a) - pt.log(b) + (a - 1) * pt.log(x / b) - (x / b) ** a


def aft_truth(mp: System, c: Expr, x: Expr, eta: Expr, s: Expr) -> Expr:
    """Accelerated failure time: log(x) is Gumbel distributed about eta; c marks censored times."""
    z = (mp.log(x) - eta) / s
    return -mp.exp(z) if c else z - mp.exp(z) - mp.log(s) - mp.log(x)


def aft_gumbel(pt: System, c: Expr, x: Expr, eta: Expr, s: Expr) -> Expr:
    z = (pt.log(x) - eta) / s
    return (1 - c) * (z - pt.log(s * x)) - pt.exp(z)


def aft_weibull(pt: System, c: Expr, x: Expr, eta: Expr, s: Expr) -> Expr:
    a, b = 1 / s, pt.exp(eta)
    return pt.switch(c, -((x / b) ** a), weibull_log(pt, x, a, b))


def aft_hand(pt: System, c: Expr, x: Expr, eta: Expr, s: Expr) -> Expr:
    hazard = x ** (1 / s - 1) * pt.exp(-eta / s) / s
    survival = pt.exp(-(x ** (1 / s)) * pt.exp(-eta / s))
    return pt.log(pt.switch(c, survival, hazard * survival))


def rice_truth(mp: System, x: Expr, nu: Expr, s: Expr) -> Expr:
    return (
        mp.log(x) - 2 * mp.log(s) - ((x / s) ** 2 + (nu / s) ** 2) / 2 + mp.log_i0(x / s * (nu / s))
    )


POSITIVE = [
    Density(
        "lognormal",
        "x positive, m real, s positive",
        lambda mp, x, m, s: mp.log_normal((mp.log(x) - m) / s) - mp.log(s) - mp.log(x),
        {
            "sum": lambda pt, x, m, s: (
                -0.5 * ((pt.log(x) - m) / s) ** 2 - HALF_LOG_2PI - pt.log(s) - pt.log(x)
            ),
            "hand": lambda pt, x, m, s: pt.log(
                pt.exp(-((pt.log(x) - m) ** 2) / (2 * s**2)) / (x * s * SQRT_2PI)
            ),
            "precision": lambda pt, x, m, s: (
                -0.5 * s**-2 * (pt.log(x) - m) ** 2 + 0.5 * pt.log(s**-2 / (2.0 * pi)) - pt.log(x)
            ),
        },
    ),
    Density(
        "exponential",
        "x nonnegative, rate positive",
        lambda mp, x, rate: mp.log(rate) - rate * x,
        {
            "hand": lambda pt, x, rate: pt.log(rate * pt.exp(-rate * x)),
            "sum": lambda pt, x, rate: pt.log(rate) - rate * x,
            "scale": lambda pt, x, rate: pt.switch(
                x >= 0, -pt.log(1 / rate) - x / (1 / rate), -math.inf
            ),
        },
    ),
    Density(
        "gamma",
        "x positive, a positive, b positive",
        gamma_truth,
        {
            "sum": gamma_log,
            "hand": lambda pt, *p: pt.log(gamma_pdf(pt, *p)),
            "logpow": lambda pt, x, a, b: (
                -pt.gammaln(a) + pt.log(b**a) - b * x + pt.log(x ** (a - 1))
            ),
            "exp_gammaln": lambda pt, x, a, b: pt.log(
                pt.exp(a * pt.log(b) - pt.gammaln(a)) * x ** (a - 1) * pt.exp(-b * x)
            ),
        },
    ),
    Density(
        "inverse_gamma",
        "x positive, a positive, b positive",
        lambda mp, x, a, b: a * mp.log(b) - mp.lgamma(a) - (a + 1) * mp.log(x) - b / x,
        {
            "sum": lambda pt, x, a, b: a * pt.log(b) - pt.gammaln(a) - (a + 1) * pt.log(x) - b / x,
            "hand": lambda pt, x, a, b: pt.log(b**a / pt.gamma(a) * x ** (-a - 1) * pt.exp(-b / x)),
        },
    ),
    Density(
        "gamma_mean",
        "x positive, m positive, s positive",
        lambda mp, x, m, s: gamma_truth(mp, x, (m / s) ** 2, m / s**2),
        {
            "sum": lambda pt, x, m, s: gamma_log(pt, x, (m / s) ** 2, m / s**2),
            "hand": lambda pt, x, m, s: pt.log(gamma_pdf(pt, x, m**2 / s**2, m / s**2)),
        },
    ),
    Density(
        "chi_squared",
        "x positive, nu positive",
        lambda mp, x, nu: (nu / 2 - 1) * mp.log(x) - x / 2 - nu / 2 * mp.log(2) - mp.lgamma(nu / 2),
        {
            "sum": lambda pt, x, nu: (
                (nu / 2 - 1) * pt.log(x) - x / 2 - nu / 2 * log(2) - pt.gammaln(nu / 2)
            ),
            "hand": lambda pt, x, nu: pt.log(
                x ** (nu / 2 - 1) * pt.exp(-x / 2) / (2 ** (nu / 2) * pt.gamma(nu / 2))
            ),
        },
    ),
    Density(
        "weibull",
        "x positive, a positive, b positive",
        weibull_truth,
        {
            "sum": weibull_log,
            "hand": lambda pt, x, a, b: pt.log(
                a / b * (x / b) ** (a - 1) * pt.exp(-((x / b) ** a))
            ),
            "exponent": lambda pt, x, a, b: (
                pt.log(a)
                - a * pt.log(b)
                + (a - 1) * pt.log(x)
                - pt.exp(a * (pt.log(x) - pt.log(b)))
            ),
        },
    ),
    Density(
        "weibull_aft",
        "c binary, x positive, eta real, s positive",
        aft_truth,
        {"gumbel": aft_gumbel, "weibull": aft_weibull, "hand": aft_hand},
    ),
    Density(
        "gompertz",
        "x nonnegative, eta positive, b positive",
        gompertz_truth,
        {
            "expm1": lambda pt, x, eta, b: pt.log(b * eta) + b * x - eta * pt.expm1(b * x),
            "sum": lambda pt, x, eta, b: (
                pt.log(b) + pt.log(eta) + eta + b * x - eta * pt.exp(b * x)
            ),
            "hand": lambda pt, x, eta, b: pt.log(
                b * eta * pt.exp(b * x) * pt.exp(-eta * (pt.exp(b * x) - 1))
            ),
        },
    ),
    Density(
        "log_logistic",
        "x positive, a positive, b positive",
        log_logistic_truth,
        {
            "log1p": lambda pt, x, a, b: (
                pt.log(b / a) + (b - 1) * pt.log(x / a) - 2 * pt.log1p((x / a) ** b)
            ),
            "hand": lambda pt, x, a, b: pt.log(
                b / a * (x / a) ** (b - 1) / (1 + (x / a) ** b) ** 2
            ),
        },
    ),
    Density(
        "pareto",
        "x positive, a positive, m positive",
        lambda mp, x, a, m: mp.log(a) + a * (mp.log(m) - mp.log(x)) - mp.log(x),
        {
            "sum": lambda pt, x, a, m: pt.log(a) + a * pt.log(m) - (a + 1) * pt.log(x),
            "hand": lambda pt, x, a, m: pt.log(a * m**a / x ** (a + 1)),
            "logpow": lambda pt, x, a, m: pt.log(a) + pt.log(m**a) - pt.log(x ** (a + 1)),
        },
        where=lambda x, a, m: x >= m,
    ),
    Density(
        "lomax",
        "x nonnegative, a positive, s positive",
        lambda mp, x, a, s: mp.log(a) - mp.log(s) - (a + 1) * mp.log1p(x / s),
        {
            "log1p": lambda pt, x, a, s: pt.log(a) - pt.log(s) - (a + 1) * pt.log1p(x / s),
            "hand": lambda pt, x, a, s: pt.log(a / s * (1 + x / s) ** (-(a + 1))),
        },
    ),
    Density(
        "burr",
        "x positive, c positive, k positive",
        lambda mp, x, c, k: (
            mp.log(c) + mp.log(k) + (c - 1) * mp.log(x) - (k + 1) * mp.softplus(c * mp.log(x))
        ),
        {
            "log1p": lambda pt, x, c, k: (
                pt.log(c * k) + (c - 1) * pt.log(x) - (k + 1) * pt.log1p(x**c)
            ),
            "hand": lambda pt, x, c, k: pt.log(c * k * x ** (c - 1) / (1 + x**c) ** (k + 1)),
        },
    ),
    Density(
        "rayleigh",
        "x positive, s positive",
        lambda mp, x, s: mp.log(x) - 2 * mp.log(s) - (x / s) ** 2 / 2,
        {
            "sum": lambda pt, x, s: pt.log(x) - 2 * pt.log(s) - 0.5 * (x / s) ** 2,
            "hand": lambda pt, x, s: pt.log(x / s**2 * pt.exp(-(x**2) / (2 * s**2))),
        },
    ),
    Density(
        "maxwell",
        "x positive, s positive",
        lambda mp, x, s: mp.log(2 / mp.pi) / 2 + 2 * mp.log(x) - 3 * mp.log(s) - (x / s) ** 2 / 2,
        {
            "sum": lambda pt, x, s: (
                0.5 * log(2 / pi) + 2 * pt.log(x) - 3 * pt.log(s) - 0.5 * (x / s) ** 2
            ),
            "hand": lambda pt, x, s: pt.log(
                sqrt(2 / pi) * x**2 * pt.exp(-(x**2) / (2 * s**2)) / s**3
            ),
        },
    ),
    Density(
        "rice",
        "x positive, nu nonnegative, s positive",
        rice_truth,
        {
            "i0": lambda pt, x, nu, s: (
                pt.log(x / s**2) - (x**2 + nu**2) / (2 * s**2) + pt.log(pt.i0(x * nu / s**2))
            ),
            "scaled": lambda pt, x, nu, s: (
                pt.log(x / s / s) - 0.5 * ((x - nu) / s) ** 2 + pt.log(pt.ive(0, x / s * (nu / s)))
            ),
            "hand": lambda pt, x, nu, s: pt.log(
                x / s**2 * pt.exp(-(x**2 + nu**2) / (2 * s**2)) * pt.i0(x * nu / s**2)
            ),
        },
    ),
    Density(
        "wald",
        "x positive, m positive, lam positive",
        wald_truth,
        {
            "sum": lambda pt, x, m, lam: (
                0.5 * pt.log(lam / (2 * pi)) - 1.5 * pt.log(x) - 0.5 * lam / x * ((x - m) / m) ** 2
            ),
            "hand": lambda pt, x, m, lam: pt.log(
                pt.sqrt(lam / (2 * pi * x**3)) * pt.exp(-lam * (x - m) ** 2 / (2 * m**2 * x))
            ),
        },
    ),
    Density(
        "beta_prime",
        "x positive, a positive, b positive",
        lambda mp, x, a, b: (a - 1) * mp.log(x) - (a + b) * mp.log1p(x) - mp.betaln(a, b),
        {
            "sum": lambda pt, x, a, b: (
                (a - 1) * pt.log(x) - (a + b) * pt.log1p(x) - pt.special.betaln(a, b)
            ),
            "hand": lambda pt, x, a, b: pt.log(
                x ** (a - 1) * (1 + x) ** (-a - b) / pt.special.beta(a, b)
            ),
        },
    ),
]

BOUNDED = [
    Density(
        "beta",
        "x probability, a positive, b positive",
        beta_truth,
        {
            "sum": beta_log,
            "hand": beta_hand,
            "betaln": lambda pt, x, a, b: (
                (a - 1) * pt.log(x) + (b - 1) * pt.log1p(-x) - pt.special.betaln(a, b)
            ),
            "logpow": lambda pt, x, a, b: (
                pt.log(x ** (a - 1))
                + pt.log((1 - x) ** (b - 1))
                - (pt.gammaln(a) + pt.gammaln(b) - pt.gammaln(a + b))
            ),
        },
    ),
    Density(
        "beta_mean",
        "x probability, m probability, k positive",
        lambda mp, x, m, k: beta_truth(mp, x, m * k, (1 - m) * k),
        {
            "sum": lambda pt, x, m, k: beta_log(pt, x, m * k, (1 - m) * k),
            "hand": lambda pt, x, m, k: beta_hand(pt, x, m * k, (1 - m) * k),
        },
    ),
    Density(
        "kumaraswamy",
        "x probability, a positive, b positive",
        lambda mp, x, a, b: (
            mp.log(a) + mp.log(b) + (a - 1) * mp.log(x) + (b - 1) * mp.log1mexp(a * mp.log(x))
        ),
        {
            "log1p": lambda pt, x, a, b: (
                pt.log(a) + pt.log(b) + (a - 1) * pt.log(x) + (b - 1) * pt.log1p(-(x**a))
            ),
            "hand": lambda pt, x, a, b: pt.log(a * b * x ** (a - 1) * (1 - x**a) ** (b - 1)),
            "log1mexp": lambda pt, x, a, b: (
                pt.log(a * b) + (a - 1) * pt.log(x) + (b - 1) * pt.log1mexp(a * pt.log(x))
            ),
        },
    ),
    Density(
        "logit_normal",
        "x probability, m real, s positive",
        lambda mp, x, m, s: (
            mp.log_normal((mp.log(x) - mp.log1p(-x) - m) / s) - mp.log(s) - mp.log(x) - mp.log1p(-x)
        ),
        {
            "sum": lambda pt, x, m, s: (
                -0.5 * ((pt.special.logit(x) - m) / s) ** 2
                - pt.log(s)
                - HALF_LOG_2PI
                - pt.log(x * (1 - x))
            ),
            "hand": lambda pt, x, m, s: pt.log(
                pt.exp(-((pt.log(x / (1 - x)) - m) ** 2) / (2 * s**2))
                / (s * SQRT_2PI * x * (1 - x))
            ),
        },
    ),
    Density(
        "continuous_bernoulli",
        "x probability, a positive",
        lambda mp, x, a: mp.log(a) + a * x - a - mp.log1mexp(-a),
        {
            "expm1": lambda pt, x, a: pt.log(a) + a * x - pt.log(pt.expm1(a)),
            "hand": lambda pt, x, a: pt.log(a * pt.exp(a * x) / (pt.exp(a) - 1)),
        },
    ),
    Density(
        "von_mises",
        "x angle, m angle, k positive",
        lambda mp, x, m, k: k * mp.cos(x - m) - mp.log(2 * mp.pi) - mp.log_i0(k),
        {
            "i0": lambda pt, x, m, k: k * pt.cos(x - m) - pt.log(2 * pi) - pt.log(pt.i0(k)),
            "hand": lambda pt, x, m, k: pt.log(pt.exp(k * pt.cos(m - x)) / (2 * pi * pt.i0(k))),
            "scaled": lambda pt, x, m, k: (
                k * (pt.cos(x - m) - 1) - log(2 * pi) - pt.log(pt.ive(0, k))
            ),
        },
    ),
    Density(
        "wrapped_cauchy",
        "x angle, m angle, r probability",
        lambda mp, x, m, r: (
            mp.log1p(-(r**2))
            - mp.log(2 * mp.pi)
            - mp.log((1 - r) ** 2 + 4 * r * mp.sin((x - m) / 2) ** 2)
        ),
        {
            "sum": lambda pt, x, m, r: (
                pt.log1p(-(r**2)) - log(2 * pi) - pt.log(1 + r**2 - 2 * r * pt.cos(x - m))
            ),
            "hand": lambda pt, x, m, r: pt.log(
                (1 - r**2) / (2 * pi * (1 + r**2 - 2 * r * pt.cos(x - m)))
            ),
        },
    ),
]

DENSITIES = [*POSITIVE, *BOUNDED]
