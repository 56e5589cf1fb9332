"""Densities of a count or a label: Bernoulli to zero-inflated, ordered and hurdle models."""

from __future__ import annotations

from density_positive import gamma_log, gamma_pdf, gamma_truth
from density_real import ndtr, ndtr_erf, normal_log, normal_truth
from density_row import Density, Expr, System


def poisson_truth(mp: System, y: Expr, mu: Expr) -> Expr:
    return y * mp.log(mu) - mu - mp.lgamma(y + 1)


def poisson_log(pt: System, y: Expr, mu: Expr) -> Expr:
    return y * pt.log(mu) - mu - pt.gammaln(y + 1)


def poisson_pmf(pt: System, y: Expr, mu: Expr) -> Expr:
    return pt.exp(-mu) * mu**y / pt.gamma(y + 1)


def negative_binomial_truth(mp: System, y: Expr, mu: Expr, a: Expr) -> Expr:
    return (
        mp.lgamma(y + a)
        - mp.lgamma(a)
        - mp.lgamma(y + 1)
        - a * mp.log1p(mu / a)
        + y * (mp.log(mu) - mp.log(mu + a))
    )


def negative_binomial_log(pt: System, y: Expr, mu: Expr, a: Expr) -> Expr:
    return (
        pt.gammaln(y + a)
        - pt.gammaln(a)
        - pt.gammaln(y + 1)
        + a * pt.log(a / (mu + a))
        + y * pt.log(mu / (mu + a))
    )


def negative_binomial_pmf(pt: System, y: Expr, mu: Expr, a: Expr) -> Expr:
    choose = pt.exp(pt.gammaln(y + a) - pt.gammaln(a) - pt.gammaln(y + 1))
    return choose * (a / (mu + a)) ** a * (mu / (mu + a)) ** y


def choose_log(pt: System, n: Expr, k: Expr) -> Expr:
    return pt.gammaln(n + 1) - pt.gammaln(k + 1) - pt.gammaln(n - k + 1)


def inflated_truth(mp: System, y: Expr, psi: Expr, log_pmf: Expr, log_zero: Expr) -> Expr:
    """Zeros occur by themselves with the probability 1 - psi."""
    if y > 0:
        return mp.log(psi) + log_pmf
    return mp.log1p(psi * mp.expm1(log_zero))


def hurdle_truth(mp: System, y: Expr, psi: Expr, log_pmf: Expr, log_zero: Expr) -> Expr:
    """Zero with the probability 1 - psi, otherwise the distribution without its zero."""
    if y > 0:
        return mp.log(psi) + log_pmf - mp.log1mexp(log_zero)
    return mp.log1p(-psi)


def discrete_weibull_truth(mp: System, k: Expr, q: Expr, b: Expr) -> Expr:
    first = mp.log(q) * (mp.exp(b * mp.log(k)) if k > 0 else 0)
    second = mp.log(q) * mp.exp(b * mp.log(k + 1))
    return first + mp.log1mexp(second - first)


def beta_binomial_truth(mp: System, y: Expr, n: Expr, a: Expr, b: Expr) -> Expr:
    return mp.log_choose(n, y) + mp.betaln(y + a, n - y + b) - mp.betaln(a, b)


def ordered_logistic_truth(mp: System, k: Expr, eta: Expr, c1: Expr, c2: Expr) -> Expr:
    if k == 0:
        return -mp.softplus(eta - c1)
    if k == 2:
        return -mp.softplus(c2 - eta)
    return mp.log1mexp(c1 - c2) - mp.softplus(c1 - eta) - mp.softplus(eta - c2)


def ordered_probit_truth(mp: System, k: Expr, eta: Expr, c1: Expr, c2: Expr) -> Expr:
    if k == 0:
        return mp.log_ndtr(c1 - eta)
    if k == 2:
        return mp.log_ndtr(eta - c2)
    low, high = c1 - eta, c2 - eta
    if low > 0:
        low, high = -high, -low
    larger, smaller = mp.log_ndtr(high), mp.log_ndtr(low)
    return larger + mp.log1mexp(smaller - larger)


def ordered_switch(pt: System, cdf: Expr, k: Expr, eta: Expr, c1: Expr, c2: Expr) -> Expr:
    middle = pt.log(cdf(c2 - eta) - cdf(c1 - eta))
    last = pt.log(1 - cdf(c2 - eta))
    return pt.switch(pt.eq(k, 0), pt.log(cdf(c1 - eta)), pt.switch(pt.eq(k, 1), middle, last))


def ordered_probabilities(pt: System, cdf: Expr, k: Expr, eta: Expr, c1: Expr, c2: Expr) -> Expr:
    """The logarithm of the chosen one of a row of probabilities."""
    low, high = cdf(c1 - eta), cdf(c2 - eta)
    p = pt.stack([low, high - low, 1 - high], axis=-1)
    return pt.log(pt.sum(p * pt.eq(k[:, None], [0, 1, 2]), axis=-1))


def response_hand(pt: System, y: Expr, x: Expr, a: Expr, b: Expr, c: Expr) -> Expr:
    p = c + (1 - c) / (1 + pt.exp(-a * (x - b)))
    return pt.log(pt.switch(y, p, 1 - p))


def response_sum(pt: System, y: Expr, x: Expr, a: Expr, b: Expr, c: Expr) -> Expr:
    p = c + (1 - c) * pt.sigmoid(a * (x - b))
    return y * pt.log(p) + (1 - y) * pt.log1p(-p)


def response_truth(mp: System, y: Expr, x: Expr, a: Expr, b: Expr, c: Expr) -> Expr:
    """Item response with guessing: c + (1 - c) sigmoid(a (x - b))."""
    z = a * (x - b)
    wrong = mp.log1p(-c) - mp.softplus(z)
    return mp.logsumexp(mp.log(c), mp.log1p(-c) - mp.softplus(-z)) if y else wrong


BINARY = [
    Density(
        "bernoulli",
        "y binary, p probability",
        lambda mp, y, p: mp.log(p) if y else mp.log1p(-p),
        {
            "log_of_switch": lambda pt, y, p: pt.log(pt.switch(y, p, 1 - p)),
            "switch": lambda pt, y, p: pt.switch(y, pt.log(p), pt.log1p(-p)),
            "weights": lambda pt, y, p: y * pt.log(p) + (1 - y) * pt.log(1 - p),
            "power": lambda pt, y, p: pt.log(p**y * (1 - p) ** (1 - y)),
        },
    ),
    Density(
        "bernoulli_logit",
        "y binary, x real",
        lambda mp, y, x: -mp.softplus(-x) if y else -mp.softplus(x),
        {
            "log_of_switch": lambda pt, y, x: pt.log(
                pt.switch(y, pt.sigmoid(x), 1 - pt.sigmoid(x))
            ),
            "switch": lambda pt, y, x: pt.switch(
                y, pt.log(pt.sigmoid(x)), pt.log1p(-pt.sigmoid(x))
            ),
            "weights": lambda pt, y, x: (
                y * pt.log(pt.sigmoid(x)) + (1 - y) * pt.log(1 - pt.sigmoid(x))
            ),
            "exp": lambda pt, y, x: y * x - pt.log(1 + pt.exp(x)),
            "sign": lambda pt, y, x: -pt.log1p(pt.exp(-(2 * y - 1) * x)),
        },
    ),
    Density(
        "bernoulli_probit",
        "y binary, x real",
        lambda mp, y, x: mp.log_ndtr(x if y else -x),
        {
            "log_of_switch": lambda pt, y, x: pt.log(
                pt.switch(y, ndtr_erf(pt, x), 1 - ndtr_erf(pt, x))
            ),
            "switch": lambda pt, y, x: pt.switch(y, pt.log(ndtr(pt, x)), pt.log1p(-ndtr(pt, x))),
            "weights": lambda pt, y, x: y * pt.log(ndtr(pt, x)) + (1 - y) * pt.log(ndtr(pt, -x)),
        },
    ),
    Density(
        "bernoulli_cloglog",
        "y binary, x real",
        lambda mp, y, x: mp.log1mexp(-mp.exp(x)) if y else -mp.exp(x),
        {
            "log_of_switch": lambda pt, y, x: pt.log(
                pt.switch(y, 1 - pt.exp(-pt.exp(x)), pt.exp(-pt.exp(x)))
            ),
            "weights": lambda pt, y, x: y * pt.log(1 - pt.exp(-pt.exp(x))) - (1 - y) * pt.exp(x),
            "log1mexp": lambda pt, y, x: pt.switch(y, pt.log1mexp(-pt.exp(x)), -pt.exp(x)),
        },
    ),
    Density(
        "item_response",
        "y binary, x real, a positive, b real, c probability",
        response_truth,
        {"hand": response_hand, "sum": response_sum},
    ),
]

COUNTS = [
    Density(
        "binomial",
        "y count, n positive_count, p probability",
        lambda mp, y, n, p: mp.log_choose(n, y) + y * mp.log(p) + (n - y) * mp.log1p(-p),
        {
            "sum": lambda pt, y, n, p: (
                choose_log(pt, n, y) + y * pt.log(p) + (n - y) * pt.log1p(-p)
            ),
            "hand": lambda pt, y, n, p: pt.log(
                pt.exp(choose_log(pt, n, y)) * p**y * (1 - p) ** (n - y)
            ),
        },
        where=lambda y, n, p: y <= n,
    ),
    Density(
        "binomial_logit",
        "y count, n positive_count, x real",
        lambda mp, y, n, x: mp.log_choose(n, y) - y * mp.softplus(-x) - (n - y) * mp.softplus(x),
        {
            "sigmoid": lambda pt, y, n, x: (
                choose_log(pt, n, y)
                + y * pt.log(pt.sigmoid(x))
                + (n - y) * pt.log(1 - pt.sigmoid(x))
            ),
            "exp": lambda pt, y, n, x: choose_log(pt, n, y) + y * x - n * pt.log1p(pt.exp(x)),
        },
        where=lambda y, n, x: y <= n,
    ),
    Density(
        "poisson",
        "y count, mu positive",
        poisson_truth,
        {
            "sum": poisson_log,
            "hand": lambda pt, y, mu: pt.log(poisson_pmf(pt, y, mu)),
            "logpow": lambda pt, y, mu: pt.log(mu**y) - pt.gammaln(y + 1) - mu,
        },
    ),
    Density(
        "poisson_log",
        "y count, x real",
        lambda mp, y, x: y * x - mp.exp(x) - mp.lgamma(y + 1),
        {
            "sum": lambda pt, y, x: y * x - pt.exp(x) - pt.gammaln(y + 1),
            "log_of_exp": lambda pt, y, x: poisson_log(pt, y, pt.exp(x)),
            "hand": lambda pt, y, x: pt.log(poisson_pmf(pt, y, pt.exp(x))),
        },
    ),
    Density(
        "generalized_poisson",
        "y count, mu positive, lam probability",
        lambda mp, y, mu, lam: (
            mp.log(mu) + (y - 1) * mp.log(mu + lam * y) - mu - lam * y - mp.lgamma(y + 1)
        ),
        {
            "sum": lambda pt, y, mu, lam: (
                pt.log(mu) + (y - 1) * pt.log(mu + lam * y) - mu - lam * y - pt.gammaln(y + 1)
            ),
            "hand": lambda pt, y, mu, lam: pt.log(
                mu * (mu + lam * y) ** (y - 1) * pt.exp(-mu - lam * y) / pt.gamma(y + 1)
            ),
        },
    ),
    Density(
        "negative_binomial",
        "y count, mu positive, a positive",
        negative_binomial_truth,
        {
            "sum": negative_binomial_log,
            "hand": lambda pt, *p: pt.log(negative_binomial_pmf(pt, *p)),
            "log1p": lambda pt, y, mu, a: (
                choose_log(pt, y + a - 1, y)
                + y * (pt.log(mu) - pt.log(mu + a))
                - a * pt.log1p(mu / a)
            ),
            "logpow": lambda pt, y, mu, a: (
                choose_log(pt, y + a - 1, y)
                + pt.log((mu / (mu + a)) ** y)
                + pt.log((a / (mu + a)) ** a)
            ),
        },
    ),
    Density(
        "negative_binomial_p",
        "y count, n positive, p probability",
        lambda mp, y, n, p: (
            mp.lgamma(y + n) - mp.lgamma(n) - mp.lgamma(y + 1) + n * mp.log(p) + y * mp.log1p(-p)
        ),
        {
            "sum": lambda pt, y, n, p: (
                pt.gammaln(y + n)
                - pt.gammaln(n)
                - pt.gammaln(y + 1)
                + n * pt.log(p)
                + y * pt.log1p(-p)
            ),
            "hand": lambda pt, y, n, p: pt.log(
                pt.gamma(y + n) / (pt.gamma(n) * pt.gamma(y + 1)) * p**n * (1 - p) ** y
            ),
        },
    ),
    Density(
        "geometric",
        "y positive_count, p probability",
        lambda mp, y, p: mp.log(p) + (y - 1) * mp.log1p(-p),
        {
            "sum": lambda pt, y, p: pt.log(p) + (y - 1) * pt.log1p(-p),
            "hand": lambda pt, y, p: pt.log(p * (1 - p) ** (y - 1)),
            "log": lambda pt, y, p: pt.log(p) + (y - 1) * pt.log(1 - p),
        },
    ),
    Density(
        "hypergeometric",
        "k count, good count, bad count, n count",
        lambda mp, k, good, bad, n: (
            mp.log_choose(good, k) + mp.log_choose(bad, n - k) - mp.log_choose(good + bad, n)
        ),
        {
            "choose": lambda pt, k, good, bad, n: (
                choose_log(pt, good, k) + choose_log(pt, bad, n - k) - choose_log(pt, good + bad, n)
            ),
            "betaln": lambda pt, k, good, bad, n: (
                pt.special.betaln(good + bad - n + 1, n + 1)
                - pt.special.betaln(good - k + 1, k + 1)
                - pt.special.betaln(bad - n + k + 1, n - k + 1)
                + pt.log(good + bad + 1)
                - pt.log(good + 1)
                - pt.log(bad + 1)
            ),
        },
        where=lambda k, good, bad, n: 0 <= k <= good and 0 <= n - k <= bad,
    ),
    Density(
        "discrete_weibull",
        "k count, q probability, b positive",
        discrete_weibull_truth,
        {
            "hand": lambda pt, k, q, b: pt.log(q ** (k**b) - q ** ((k + 1) ** b)),
            "exp": lambda pt, k, q, b: pt.log(
                pt.exp(pt.log(q) * k**b) - pt.exp(pt.log(q) * (k + 1) ** b)
            ),
        },
    ),
    Density(
        "logarithmic_series",
        "k positive_count, p probability",
        lambda mp, k, p: k * mp.log(p) - mp.log(k) - mp.log(-mp.log1p(-p)),
        {
            "sum": lambda pt, k, p: k * pt.log(p) - pt.log(k) - pt.log(-pt.log1p(-p)),
            "hand": lambda pt, k, p: pt.log(-1 / pt.log(1 - p) * p**k / k),
        },
    ),
    Density(
        "beta_binomial",
        "y count, n positive_count, a positive, b positive",
        beta_binomial_truth,
        {
            "gammaln": lambda pt, y, n, a, b: (
                choose_log(pt, n, y)
                + pt.gammaln(y + a)
                + pt.gammaln(n - y + b)
                - pt.gammaln(n + a + b)
                + pt.gammaln(a + b)
                - pt.gammaln(a)
                - pt.gammaln(b)
            ),
            "betaln": lambda pt, y, n, a, b: (
                choose_log(pt, n, y) + pt.special.betaln(y + a, n - y + b) - pt.special.betaln(a, b)
            ),
        },
        where=lambda y, n, a, b: y <= n,
    ),
]

WITH_ZEROS = [
    Density(
        "zero_inflated_poisson",
        "y count, psi probability, mu positive",
        lambda mp, y, psi, mu: inflated_truth(mp, y, psi, poisson_truth(mp, y, mu), -mu),
        {
            "switch": lambda pt, y, psi, mu: pt.switch(
                pt.gt(y, 0),
                pt.log(psi) + poisson_log(pt, y, mu),
                pt.logaddexp(pt.log1p(-psi), pt.log(psi) - mu),
            ),
            "log_of_switch": lambda pt, y, psi, mu: pt.log(
                pt.switch(pt.eq(y, 0), 1 - psi + psi * pt.exp(-mu), psi * poisson_pmf(pt, y, mu))
            ),
            "sum": lambda pt, y, psi, mu: pt.log(
                (1 - psi) * pt.eq(y, 0) + psi * poisson_pmf(pt, y, mu)
            ),
        },
    ),
    Density(
        "zero_inflated_negative_binomial",
        "y count, psi probability, mu positive, a positive",
        lambda mp, y, psi, mu, a: inflated_truth(
            mp, y, psi, negative_binomial_truth(mp, y, mu, a), -a * mp.log1p(mu / a)
        ),
        {
            "switch": lambda pt, y, psi, mu, a: pt.switch(
                pt.gt(y, 0),
                pt.log(psi) + negative_binomial_log(pt, y, mu, a),
                pt.logaddexp(pt.log1p(-psi), pt.log(psi) + a * pt.log(a / (mu + a))),
            ),
            "log_of_switch": lambda pt, y, psi, mu, a: pt.log(
                pt.switch(
                    pt.eq(y, 0),
                    1 - psi + psi * (a / (mu + a)) ** a,
                    psi * negative_binomial_pmf(pt, y, mu, a),
                )
            ),
        },
    ),
    Density(
        "zero_inflated_binomial",
        "y count, n positive_count, psi probability, p probability",
        lambda mp, y, n, psi, p: inflated_truth(
            mp,
            y,
            psi,
            mp.log_choose(n, y) + y * mp.log(p) + (n - y) * mp.log1p(-p),
            n * mp.log1p(-p),
        ),
        {
            "switch": lambda pt, y, n, psi, p: pt.switch(
                pt.gt(y, 0),
                pt.log(psi) + choose_log(pt, n, y) + y * pt.log(p) + (n - y) * pt.log1p(-p),
                pt.logaddexp(pt.log1p(-psi), pt.log(psi) + n * pt.log1p(-p)),
            ),
            "hand": lambda pt, y, n, psi, p: pt.log(
                pt.switch(
                    pt.eq(y, 0),
                    (1 - psi) + psi * (1 - p) ** n,
                    psi * pt.exp(choose_log(pt, n, y)) * p**y * (1 - p) ** (n - y),
                )
            ),
        },
        where=lambda y, n, psi, p: y <= n,
    ),
    Density(
        "hurdle_poisson",
        "y count, psi probability, mu positive",
        lambda mp, y, psi, mu: hurdle_truth(mp, y, psi, poisson_truth(mp, y, mu), -mu),
        {
            "log1mexp": lambda pt, y, psi, mu: pt.switch(
                pt.eq(y, 0),
                pt.log1p(-psi),
                pt.log(psi) + poisson_log(pt, y, mu) - pt.log1mexp(-mu),
            ),
            "complement": lambda pt, y, psi, mu: pt.switch(
                pt.eq(y, 0),
                pt.log(1 - psi),
                pt.log(psi) + poisson_log(pt, y, mu) - pt.log(1 - pt.exp(-mu)),
            ),
            "hand": lambda pt, y, psi, mu: pt.log(
                pt.switch(pt.eq(y, 0), 1 - psi, psi * poisson_pmf(pt, y, mu) / (1 - pt.exp(-mu)))
            ),
        },
    ),
    Density(
        "hurdle_negative_binomial",
        "y count, psi probability, mu positive, a positive",
        lambda mp, y, psi, mu, a: hurdle_truth(
            mp, y, psi, negative_binomial_truth(mp, y, mu, a), -a * mp.log1p(mu / a)
        ),
        {
            "log1mexp": lambda pt, y, psi, mu, a: pt.switch(
                pt.eq(y, 0),
                pt.log1p(-psi),
                pt.log(psi)
                + negative_binomial_log(pt, y, mu, a)
                - pt.log1mexp(a * pt.log(a / (mu + a))),
            ),
            "hand": lambda pt, y, psi, mu, a: pt.log(
                pt.switch(
                    pt.eq(y, 0),
                    1 - psi,
                    psi * negative_binomial_pmf(pt, y, mu, a) / (1 - (a / (mu + a)) ** a),
                )
            ),
        },
    ),
    Density(
        "hurdle_gamma",
        "z binary, x positive, psi probability, a positive, b positive",
        lambda mp, z, x, psi, a, b: mp.log1p(-psi) if z else mp.log(psi) + gamma_truth(mp, x, a, b),
        {
            "switch": lambda pt, z, x, psi, a, b: pt.switch(
                z, pt.log1p(-psi), pt.log(psi) + gamma_log(pt, x, a, b)
            ),
            "log_of_switch": lambda pt, z, x, psi, a, b: pt.log(
                pt.switch(z, 1 - psi, psi * gamma_pdf(pt, x, a, b))
            ),
        },
    ),
    Density(
        "hurdle_lognormal",
        "z binary, x positive, psi probability, m real, s positive",
        lambda mp, z, x, psi, m, s: (
            mp.log1p(-psi) if z else mp.log(psi) + normal_truth(mp, mp.log(x), m, s) - mp.log(x)
        ),
        {
            "switch": lambda pt, z, x, psi, m, s: pt.switch(
                z,
                pt.log(1 - psi),
                pt.log(psi) + normal_log(pt, pt.log(x), m, s) - pt.log(x),
            ),
            "weights": lambda pt, z, x, psi, m, s: (
                z * pt.log1p(-psi) + (1 - z) * (pt.log(psi / x) + normal_log(pt, pt.log(x), m, s))
            ),
        },
    ),
]

ORDERED = [
    Density(
        "ordered_logistic",
        "k category, eta real, c1 real, c2 real",
        ordered_logistic_truth,
        {
            "switch": lambda pt, *a: ordered_switch(pt, pt.sigmoid, *a),
            "probabilities": lambda pt, *a: ordered_probabilities(pt, pt.sigmoid, *a),
            "fractions": lambda pt, *a: ordered_switch(pt, lambda z: 1 / (1 + pt.exp(-z)), *a),
        },
        where=lambda k, eta, c1, c2: c1 < c2,
    ),
    Density(
        "ordered_probit",
        "k category, eta real, c1 real, c2 real",
        ordered_probit_truth,
        {
            "switch": lambda pt, *a: ordered_switch(pt, lambda z: ndtr(pt, z), *a),
            "probabilities": lambda pt, *a: ordered_probabilities(
                pt, lambda z: ndtr_erf(pt, z), *a
            ),
        },
        where=lambda k, eta, c1, c2: c1 < c2,
    ),
]

DENSITIES = [*BINARY, *COUNTS, *WITH_ZEROS, *ORDERED]
