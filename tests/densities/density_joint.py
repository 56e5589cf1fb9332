"""Mixtures, and densities of labels, simplices and copulas."""

from __future__ import annotations

from math import sqrt

from density_discrete import poisson_log, poisson_pmf, poisson_truth
from density_real import normal_log, normal_pdf, normal_truth
from density_row import Density, Expr, System, matrix


def chosen(pt: System, k: Expr, items: list[Expr]) -> Expr:
    """The item of each label."""
    row = pt.stack(items, axis=-1)
    return pt.sum(row * pt.eq(k[:, None], list(range(len(items)))), axis=-1)


# mixtures


def mixture_truth(mp: System, w: Expr, first: Expr, second: Expr) -> Expr:
    return mp.logsumexp(mp.log(w) + first, mp.log1p(-w) + second)


def mixture3_truth(mp: System, x: Expr, a: Expr, b: Expr, m: Expr, s: Expr) -> Expr:
    """Weights softmax(a, b, 0), means m, 0 and -m."""
    normals = [normal_truth(mp, x, mean, s) for mean in (m, 0, -m)]
    weights = [a, b, 0]
    return mp.logsumexp(*(w + p for w, p in zip(weights, normals, strict=True))) - mp.logsumexp(
        *weights
    )


def mixture3_softmax(pt: System, x: Expr, a: Expr, b: Expr, m: Expr, s: Expr) -> Expr:
    weights = pt.special.softmax(pt.stack([a, b, pt.zeros_like(a)], axis=-1), axis=-1)
    pdfs = pt.stack([normal_pdf(pt, x, mean, s) for mean in (m, 0.0, -m)], axis=-1)
    return pt.log(pt.sum(weights * pdfs, axis=-1))


def mixture3_logsumexp(pt: System, x: Expr, a: Expr, b: Expr, m: Expr, s: Expr) -> Expr:
    weights = pt.special.log_softmax(pt.stack([a, b, pt.zeros_like(a)], axis=-1), axis=-1)
    logs = pt.stack([normal_log(pt, x, mean, s) for mean in (m, 0.0, -m)], axis=-1)
    return pt.logsumexp(weights + logs, axis=-1)


# simplices


def softmax_truth(mp: System, k: int, *logits: Expr) -> Expr:
    return logits[k] - mp.logsumexp(*logits)


def softmax_hand(pt: System, k: Expr, *logits: Expr) -> Expr:
    exps = [pt.exp(x) for x in logits]
    return pt.log(chosen(pt, k, exps) / (exps[0] + exps[1] + exps[2]))


def multinomial_truth(mp: System, y1: Expr, y2: Expr, y3: Expr, a: Expr, b: Expr) -> Expr:
    logits, counts = [a, b, 0], [y1, y2, y3]
    total = mp.logsumexp(*logits)
    return mp.lgamma(y1 + y2 + y3 + 1) + mp.total(
        y * (x - total) - mp.lgamma(y + 1) for x, y in zip(logits, counts, strict=True)
    )


def multinomial(pt: System, log_p: Expr, *counts: Expr) -> Expr:
    y = pt.stack(counts, axis=-1)
    constant = pt.gammaln(pt.sum(y, axis=-1) + 1) - pt.sum(pt.gammaln(y + 1), axis=-1)
    return constant + pt.sum(y * log_p, axis=-1)


def logits3(pt: System, a: Expr, b: Expr) -> Expr:
    return pt.stack([a, b, pt.zeros_like(a)], axis=-1)


def dirichlet_truth(mp: System, x: Expr, y: Expr, a: Expr, b: Expr, c: Expr) -> Expr:
    return (
        mp.lgamma(a + b + c)
        - mp.lgamma(a)
        - mp.lgamma(b)
        - mp.lgamma(c)
        + (a - 1) * mp.log(x)
        + (b - 1) * mp.log(y)
        + (c - 1) * mp.log(1 - x - y)
    )


def dirichlet_sum(pt: System, x: Expr, y: Expr, *alphas: Expr) -> Expr:
    a = pt.stack(alphas, axis=-1)
    p = pt.stack([x, y, 1 - x - y], axis=-1)
    normalizer = pt.gammaln(pt.sum(a, axis=-1)) - pt.sum(pt.gammaln(a), axis=-1)
    return normalizer + pt.sum((a - 1) * pt.log(p), axis=-1)


def dirichlet_hand(pt: System, x: Expr, y: Expr, a: Expr, b: Expr, c: Expr) -> Expr:
    constant = pt.gamma(a + b + c) / (pt.gamma(a) * pt.gamma(b) * pt.gamma(c))
    return pt.log(constant * x ** (a - 1) * y ** (b - 1) * (1 - x - y) ** (c - 1))


def dirichlet_multinomial_truth(mp: System, y1: Expr, y2: Expr, a: Expr, b: Expr) -> Expr:
    return (
        mp.lgamma(a + b)
        + mp.lgamma(y1 + y2 + 1)
        - mp.lgamma(y1 + y2 + a + b)
        + mp.lgamma(y1 + a)
        - mp.lgamma(a)
        - mp.lgamma(y1 + 1)
        + mp.lgamma(y2 + b)
        - mp.lgamma(b)
        - mp.lgamma(y2 + 1)
    )


def dirichlet_multinomial_sum(pt: System, y1: Expr, y2: Expr, a: Expr, b: Expr) -> Expr:
    y, alpha = pt.stack([y1, y2], axis=-1), pt.stack([a, b], axis=-1)
    n, total = y1 + y2, a + b
    constant = pt.gammaln(total) + pt.gammaln(n + 1) - pt.gammaln(n + total)
    terms = pt.gammaln(y + alpha) - pt.gammaln(alpha) - pt.gammaln(y + 1)
    return constant + pt.sum(terms, axis=-1)


def dirichlet_multinomial_beta(pt: System, y1: Expr, y2: Expr, a: Expr, b: Expr) -> Expr:
    choose = pt.gammaln(y1 + y2 + 1) - pt.gammaln(y1 + 1) - pt.gammaln(y2 + 1)
    return choose + pt.special.betaln(y1 + a, y2 + b) - pt.special.betaln(a, b)


def cox_truth(mp: System, x: Expr, a: Expr, b: Expr, beta: Expr) -> Expr:
    """The partial likelihood of the first of three at risk."""
    return x * beta - mp.logsumexp(x * beta, a * beta, b * beta)


# copulas


def gaussian_copula_truth(mp: System, u: Expr, v: Expr, r: Expr) -> Expr:
    a, b = mp.ndtri(u), mp.ndtri(v)
    rest = (1 - r) * (1 + r)
    return -mp.log(rest) / 2 - (r**2 * (a**2 + b**2) - 2 * r * a * b) / (2 * rest)


def gaussian_copula_sum(pt: System, u: Expr, v: Expr, r: Expr) -> Expr:
    a, b = (-sqrt(2) * pt.erfcinv(2 * p) for p in (u, v))
    rest = 1 - r**2
    return -0.5 * pt.log(rest) - (r**2 * (a**2 + b**2) - 2 * r * a * b) / (2 * rest)


def gaussian_copula_matrix(pt: System, u: Expr, v: Expr, r: Expr) -> Expr:
    a, b = (sqrt(2) * pt.erfinv(2 * p - 1) for p in (u, v))
    z = pt.stack([a, b], axis=-1)
    one = pt.ones_like(r)
    correlation = matrix(pt, [[one, r], [r, one]])
    solved = pt.linalg.solve(correlation, z[..., None])[..., 0]
    quadratic = pt.sum(z * solved, axis=-1) - pt.sum(z**2, axis=-1)
    return -0.5 * pt.log(pt.linalg.det(correlation)) - 0.5 * quadratic


def clayton_truth(mp: System, u: Expr, v: Expr, t: Expr) -> Expr:
    first, second = mp.exp(-t * mp.log(u)), mp.exp(-t * mp.log(v))
    return (
        mp.log1p(t) - (1 + t) * (mp.log(u) + mp.log(v)) - (2 + 1 / t) * mp.log(first + second - 1)
    )


def frank_truth(mp: System, u: Expr, v: Expr, t: Expr) -> Expr:
    """(1 - e^-t) - (1 - e^-tu) (1 - e^-tv) is e^-tu + e^-tv - e^-t(u+v) - e^-t, of which the
    largest term is taken out."""
    low, high = sorted((u, v))
    rest = 1 + mp.exp(t * (low - high)) - mp.exp(-t * high) - mp.exp(t * (low - 1))
    return mp.log(t) + mp.log1mexp(-t) + t * (low - high) - 2 * mp.log(rest)


def gumbel_copula_truth(mp: System, u: Expr, v: Expr, t: Expr) -> Expr:
    x, y = -mp.log(u), -mp.log(v)
    a = mp.exp(mp.logsumexp(t * mp.log(x), t * mp.log(y)) / t)
    return -a + (t - 1) * mp.log(x * y) + x + y + (1 - 2 * t) * mp.log(a) + mp.log(a + t - 1)


def gumbel_copula_hand(pt: System, u: Expr, v: Expr, t: Expr) -> Expr:
    x, y = -pt.log(u), -pt.log(v)
    a = (x**t + y**t) ** (1 / t)
    return pt.log(pt.exp(-a) * (x * y) ** (t - 1) / (u * v) * a ** (1 - 2 * t) * (a + t - 1))


def gumbel_copula_sum(pt: System, u: Expr, v: Expr, t: Expr) -> Expr:
    x, y = -pt.log(u), -pt.log(v)
    a = pt.exp(pt.logaddexp(t * pt.log(x), t * pt.log(y)) / t)
    return (
        -a + x + y + (t - 1) * (pt.log(x) + pt.log(y)) + (1 - 2 * t) * pt.log(a) + pt.log(a + t - 1)
    )


MIXTURES = [
    Density(
        "mixture_of_two_normals",
        "x real, w probability, a real, b real, s positive",
        lambda mp, x, w, a, b, s: mixture_truth(
            mp, w, normal_truth(mp, x, a, s), normal_truth(mp, x, b, s)
        ),
        {
            "hand": lambda pt, x, w, a, b, s: pt.log(
                w * normal_pdf(pt, x, a, s) + (1 - w) * normal_pdf(pt, x, b, s)
            ),
            "logaddexp": lambda pt, x, w, a, b, s: pt.logaddexp(
                pt.log(w) + normal_log(pt, x, a, s), pt.log1p(-w) + normal_log(pt, x, b, s)
            ),
            "logsumexp": lambda pt, x, w, a, b, s: pt.logsumexp(
                pt.stack(
                    [
                        pt.log(w) + normal_log(pt, x, a, s),
                        pt.log(1 - w) + normal_log(pt, x, b, s),
                    ],
                    axis=-1,
                ),
                axis=-1,
            ),
            "exp_of_log": lambda pt, x, w, a, b, s: pt.log(
                w * pt.exp(normal_log(pt, x, a, s)) + (1 - w) * pt.exp(normal_log(pt, x, b, s))
            ),
        },
    ),
    Density(
        "mixture_of_three_normals",
        "x real, a real, b real, m real, s positive",
        mixture3_truth,
        {"softmax": mixture3_softmax, "logsumexp": mixture3_logsumexp},
    ),
    Density(
        "mixture_of_scales",
        "x real, w probability, s positive, t positive",
        lambda mp, x, w, s, t: mixture_truth(
            mp, w, normal_truth(mp, x, 0, s), normal_truth(mp, x, 0, t)
        ),
        {
            "hand": lambda pt, x, w, s, t: pt.log(
                w * normal_pdf(pt, x, 0.0, s) + (1 - w) * normal_pdf(pt, x, 0.0, t)
            ),
            "logaddexp": lambda pt, x, w, s, t: pt.logaddexp(
                pt.log(w) + normal_log(pt, x, 0.0, s),
                pt.log1p(-w) + normal_log(pt, x, 0.0, t),
            ),
        },
    ),
    Density(
        "mixture_of_poissons",
        "y count, w probability, mu positive, nu positive",
        lambda mp, y, w, mu, nu: mixture_truth(
            mp, w, poisson_truth(mp, y, mu), poisson_truth(mp, y, nu)
        ),
        {
            "hand": lambda pt, y, w, mu, nu: pt.log(
                w * poisson_pmf(pt, y, mu) + (1 - w) * poisson_pmf(pt, y, nu)
            ),
            "logaddexp": lambda pt, y, w, mu, nu: pt.logaddexp(
                pt.log(w) + poisson_log(pt, y, mu), pt.log1p(-w) + poisson_log(pt, y, nu)
            ),
        },
    ),
]

SIMPLICES = [
    Density(
        "categorical_logits",
        "k category, a real, b real, c real",
        softmax_truth,
        {
            "hand": softmax_hand,
            "log_of_softmax": lambda pt, k, *x: pt.log(
                pt.sum(
                    pt.special.softmax(pt.stack(x, axis=-1), axis=-1)
                    * pt.eq(k[:, None], [0, 1, 2]),
                    axis=-1,
                )
            ),
            "chosen_log": lambda pt, k, *x: pt.sum(
                pt.log(pt.special.softmax(pt.stack(x, axis=-1), axis=-1))
                * pt.eq(k[:, None], [0, 1, 2]),
                axis=-1,
            ),
            "logsumexp": lambda pt, k, *x: (
                chosen(pt, k, list(x)) - pt.logsumexp(pt.stack(x, axis=-1), axis=-1)
            ),
        },
    ),
    Density(
        "categorical_weights",
        "k category, a positive, b positive, c positive",
        lambda mp, k, *w: mp.log(w[k]) - mp.log(w[0] + w[1] + w[2]),
        {
            "hand": lambda pt, k, a, b, c: pt.log(chosen(pt, k, [a, b, c]) / (a + b + c)),
            "switch": lambda pt, k, a, b, c: pt.switch(
                pt.eq(k, 0),
                pt.log(a / (a + b + c)),
                pt.switch(pt.eq(k, 1), pt.log(b / (a + b + c)), pt.log(c / (a + b + c))),
            ),
        },
    ),
    Density(
        "multinomial",
        "y1 count, y2 count, y3 count, a real, b real",
        multinomial_truth,
        {
            "log_of_softmax": lambda pt, y1, y2, y3, a, b: multinomial(
                pt, pt.log(pt.special.softmax(logits3(pt, a, b), axis=-1)), y1, y2, y3
            ),
            "log_softmax": lambda pt, y1, y2, y3, a, b: multinomial(
                pt, pt.special.log_softmax(logits3(pt, a, b), axis=-1), y1, y2, y3
            ),
            "logsumexp": lambda pt, y1, y2, y3, a, b: multinomial(
                pt,
                logits3(pt, a, b)
                - pt.log(pt.sum(pt.exp(logits3(pt, a, b)), axis=-1, keepdims=True)),
                y1,
                y2,
                y3,
            ),
        },
    ),
    Density(
        "dirichlet",
        "x probability, y probability, a positive, b positive, c positive",
        dirichlet_truth,
        {"sum": dirichlet_sum, "hand": dirichlet_hand},
        where=lambda x, y, *alphas: x + y < 1,
    ),
    Density(
        "dirichlet_multinomial",
        "y1 count, y2 count, a positive, b positive",
        dirichlet_multinomial_truth,
        {"sum": dirichlet_multinomial_sum, "betaln": dirichlet_multinomial_beta},
    ),
    Density(
        "bradley_terry",
        "a real, b real",
        lambda mp, a, b: -mp.softplus(b - a),
        {
            "hand": lambda pt, a, b: pt.log(pt.exp(a) / (pt.exp(a) + pt.exp(b))),
            "sigmoid": lambda pt, a, b: pt.log(pt.sigmoid(a - b)),
            "difference": lambda pt, a, b: a - pt.log(pt.exp(a) + pt.exp(b)),
        },
    ),
    Density(
        "cox_partial",
        "x real, a real, b real, beta real",
        cox_truth,
        {
            "hand": lambda pt, x, a, b, beta: pt.log(
                pt.exp(x * beta) / (pt.exp(x * beta) + pt.exp(a * beta) + pt.exp(b * beta))
            ),
            "sum_of_exp": lambda pt, x, a, b, beta: (
                x * beta
                - pt.log(pt.sum(pt.exp(pt.stack([x, a, b], axis=-1) * beta[:, None]), axis=-1))
            ),
        },
    ),
]

COPULAS = [
    Density(
        "gaussian_copula",
        "u probability, v probability, r correlation",
        gaussian_copula_truth,
        {"sum": gaussian_copula_sum, "matrix": gaussian_copula_matrix},
    ),
    Density(
        "clayton_copula",
        "u probability, v probability, t positive",
        clayton_truth,
        {
            "sum": lambda pt, u, v, t: (
                pt.log1p(t)
                - (1 + t) * (pt.log(u) + pt.log(v))
                - (2 + 1 / t) * pt.log(u**-t + v**-t - 1)
            ),
            "hand": lambda pt, u, v, t: pt.log(
                (1 + t) * (u * v) ** (-1 - t) * (u**-t + v**-t - 1) ** (-2 - 1 / t)
            ),
        },
    ),
    Density(
        "frank_copula",
        "u probability, v probability, t positive",
        frank_truth,
        {
            "hand": lambda pt, u, v, t: pt.log(
                t
                * (1 - pt.exp(-t))
                * pt.exp(-t * (u + v))
                / (1 - pt.exp(-t) - (1 - pt.exp(-t * u)) * (1 - pt.exp(-t * v))) ** 2
            ),
            "expm1": lambda pt, u, v, t: (
                pt.log(-t * pt.expm1(-t))
                - t * (u + v)
                - 2 * pt.log(-pt.expm1(-t) - pt.expm1(-t * u) * pt.expm1(-t * v))
            ),
        },
    ),
    Density(
        "gumbel_copula",
        "u probability, v probability, t above_one",
        gumbel_copula_truth,
        {"hand": gumbel_copula_hand, "sum": gumbel_copula_sum},
    ),
]

DENSITIES = [*MIXTURES, *SIMPLICES, *COPULAS]
