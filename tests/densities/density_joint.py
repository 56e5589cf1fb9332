"""Densities of several numbers: mixtures, simplices, copulas, Gaussian vectors, time series."""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

from density_discrete import poisson_log, poisson_pmf, poisson_truth
from density_real import HALF_LOG_2PI, ndtr, normal_log, normal_pdf, normal_truth
from density_row import Density

LOG_2PI = 2 * HALF_LOG_2PI


def matrix(pt: Any, rows: list[list[Any]]) -> Any:
    """A batch of matrices of vectors."""
    return pt.stack([pt.stack(row, axis=-1) for row in rows], axis=-2)


def chosen(pt: Any, k: Any, items: list[Any]) -> Any:
    """The item of each label."""
    row = pt.stack(items, axis=-1)
    return pt.sum(row * pt.eq(k[:, None], list(range(len(items)))), axis=-1)


# mixtures


def mixture_truth(mp: Any, w: Any, first: Any, second: Any) -> Any:
    return mp.logsumexp(mp.log(w) + first, mp.log1p(-w) + second)


def mixture3_truth(mp: Any, x: Any, a: Any, b: Any, m: Any, s: Any) -> Any:
    """Weights softmax(a, b, 0), means m, 0 and -m."""
    normals = [normal_truth(mp, x, mean, s) for mean in (m, 0, -m)]
    weights = [a, b, 0]
    return mp.logsumexp(*(w + p for w, p in zip(weights, normals, strict=True))) - mp.logsumexp(
        *weights
    )


def mixture3_softmax(pt: Any, x: Any, a: Any, b: Any, m: Any, s: Any) -> Any:
    weights = pt.special.softmax(pt.stack([a, b, pt.zeros_like(a)], axis=-1), axis=-1)
    pdfs = pt.stack([normal_pdf(pt, x, mean, s) for mean in (m, 0.0, -m)], axis=-1)
    return pt.log(pt.sum(weights * pdfs, axis=-1))


def mixture3_logsumexp(pt: Any, x: Any, a: Any, b: Any, m: Any, s: Any) -> Any:
    weights = pt.special.log_softmax(pt.stack([a, b, pt.zeros_like(a)], axis=-1), axis=-1)
    logs = pt.stack([normal_log(pt, x, mean, s) for mean in (m, 0.0, -m)], axis=-1)
    return pt.logsumexp(weights + logs, axis=-1)


# simplices


def softmax_truth(mp: Any, k: int, *logits: Any) -> Any:
    return logits[k] - mp.logsumexp(*logits)


def softmax_hand(pt: Any, k: Any, *logits: Any) -> Any:
    exps = [pt.exp(x) for x in logits]
    return pt.log(chosen(pt, k, exps) / (exps[0] + exps[1] + exps[2]))


def multinomial_truth(mp: Any, y1: Any, y2: Any, y3: Any, a: Any, b: Any) -> Any:
    logits, counts = [a, b, 0], [y1, y2, y3]
    total = mp.logsumexp(*logits)
    return mp.lgamma(y1 + y2 + y3 + 1) + mp.total(
        y * (x - total) - mp.lgamma(y + 1) for x, y in zip(logits, counts, strict=True)
    )


def multinomial(pt: Any, log_p: Any, *counts: Any) -> Any:
    y = pt.stack(counts, axis=-1)
    constant = pt.gammaln(pt.sum(y, axis=-1) + 1) - pt.sum(pt.gammaln(y + 1), axis=-1)
    return constant + pt.sum(y * log_p, axis=-1)


def logits3(pt: Any, a: Any, b: Any) -> Any:
    return pt.stack([a, b, pt.zeros_like(a)], axis=-1)


def dirichlet_truth(mp: Any, x: Any, y: Any, a: Any, b: Any, c: Any) -> Any:
    return (
        mp.lgamma(a + b + c)
        - mp.lgamma(a)
        - mp.lgamma(b)
        - mp.lgamma(c)
        + (a - 1) * mp.log(x)
        + (b - 1) * mp.log(y)
        + (c - 1) * mp.log(1 - x - y)
    )


def dirichlet_sum(pt: Any, x: Any, y: Any, *alphas: Any) -> Any:
    a = pt.stack(alphas, axis=-1)
    p = pt.stack([x, y, 1 - x - y], axis=-1)
    normalizer = pt.gammaln(pt.sum(a, axis=-1)) - pt.sum(pt.gammaln(a), axis=-1)
    return normalizer + pt.sum((a - 1) * pt.log(p), axis=-1)


def dirichlet_hand(pt: Any, x: Any, y: Any, a: Any, b: Any, c: Any) -> Any:
    constant = pt.gamma(a + b + c) / (pt.gamma(a) * pt.gamma(b) * pt.gamma(c))
    return pt.log(constant * x ** (a - 1) * y ** (b - 1) * (1 - x - y) ** (c - 1))


def dirichlet_multinomial_truth(mp: Any, y1: Any, y2: Any, a: Any, b: Any) -> Any:
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


def dirichlet_multinomial_sum(pt: Any, y1: Any, y2: Any, a: Any, b: Any) -> Any:
    y, alpha = pt.stack([y1, y2], axis=-1), pt.stack([a, b], axis=-1)
    n, total = y1 + y2, a + b
    constant = pt.gammaln(total) + pt.gammaln(n + 1) - pt.gammaln(n + total)
    terms = pt.gammaln(y + alpha) - pt.gammaln(alpha) - pt.gammaln(y + 1)
    return constant + pt.sum(terms, axis=-1)


def dirichlet_multinomial_beta(pt: Any, y1: Any, y2: Any, a: Any, b: Any) -> Any:
    choose = pt.gammaln(y1 + y2 + 1) - pt.gammaln(y1 + 1) - pt.gammaln(y2 + 1)
    return choose + pt.special.betaln(y1 + a, y2 + b) - pt.special.betaln(a, b)


def cox_truth(mp: Any, x: Any, a: Any, b: Any, beta: Any) -> Any:
    """The partial likelihood of the first of three at risk."""
    return x * beta - mp.logsumexp(x * beta, a * beta, b * beta)


# copulas


def gaussian_copula_truth(mp: Any, u: Any, v: Any, r: Any) -> Any:
    a, b = mp.ndtri(u), mp.ndtri(v)
    rest = (1 - r) * (1 + r)
    return -mp.log(rest) / 2 - (r**2 * (a**2 + b**2) - 2 * r * a * b) / (2 * rest)


def gaussian_copula_sum(pt: Any, u: Any, v: Any, r: Any) -> Any:
    a, b = (-sqrt(2) * pt.erfcinv(2 * p) for p in (u, v))
    rest = 1 - r**2
    return -0.5 * pt.log(rest) - (r**2 * (a**2 + b**2) - 2 * r * a * b) / (2 * rest)


def gaussian_copula_matrix(pt: Any, u: Any, v: Any, r: Any) -> Any:
    a, b = (sqrt(2) * pt.erfinv(2 * p - 1) for p in (u, v))
    z = pt.stack([a, b], axis=-1)
    one = pt.ones_like(r)
    correlation = matrix(pt, [[one, r], [r, one]])
    solved = pt.linalg.solve(correlation, z[..., None])[..., 0]
    quadratic = pt.sum(z * solved, axis=-1) - pt.sum(z**2, axis=-1)
    return -0.5 * pt.log(pt.linalg.det(correlation)) - 0.5 * quadratic


def clayton_truth(mp: Any, u: Any, v: Any, t: Any) -> Any:
    first, second = mp.exp(-t * mp.log(u)), mp.exp(-t * mp.log(v))
    return (
        mp.log1p(t)
        - (1 + t) * (mp.log(u) + mp.log(v))
        - (2 + 1 / t) * mp.log(first + second - 1)
    )


def frank_truth(mp: Any, u: Any, v: Any, t: Any) -> Any:
    """In exponents that do not grow: t (1 - e^-t) e^(-t (u + v)) over the square of the rest."""
    rest = -mp.expm1(-t) - mp.expm1(-t * u) * mp.expm1(-t * v)
    return mp.log(t) + mp.log1mexp(-t) - t * (u + v) - 2 * mp.log(rest)


def gumbel_copula_truth(mp: Any, u: Any, v: Any, t: Any) -> Any:
    x, y = -mp.log(u), -mp.log(v)
    a = mp.exp(mp.logsumexp(t * mp.log(x), t * mp.log(y)) / t)
    return -a + (t - 1) * mp.log(x * y) + x + y + (1 - 2 * t) * mp.log(a) + mp.log(a + t - 1)


def gumbel_copula_hand(pt: Any, u: Any, v: Any, t: Any) -> Any:
    x, y = -pt.log(u), -pt.log(v)
    a = (x**t + y**t) ** (1 / t)
    return pt.log(pt.exp(-a) * (x * y) ** (t - 1) / (u * v) * a ** (1 - 2 * t) * (a + t - 1))


def gumbel_copula_sum(pt: Any, u: Any, v: Any, t: Any) -> Any:
    x, y = -pt.log(u), -pt.log(v)
    a = pt.exp(pt.logaddexp(t * pt.log(x), t * pt.log(y)) / t)
    return (
        -a
        + x
        + y
        + (t - 1) * (pt.log(x) + pt.log(y))
        + (1 - 2 * t) * pt.log(a)
        + pt.log(a + t - 1)
    )


# Gaussian vectors


def binormal_truth(mp: Any, x: Any, y: Any, s: Any, t: Any, r: Any) -> Any:
    rest = (1 - r) * (1 + r)
    a, b = x / s, y / t
    quadratic = (a**2 - 2 * r * a * b + b**2) / rest
    return -quadratic / 2 - mp.log(2 * mp.pi) - mp.log(s) - mp.log(t) - mp.log(rest) / 2


def binormal_formula(pt: Any, x: Any, y: Any, s: Any, t: Any, r: Any) -> Any:
    rest = 1 - r**2
    quadratic = ((x / s) ** 2 - 2 * r * x * y / (s * t) + (y / t) ** 2) / rest
    return pt.log(pt.exp(-0.5 * quadratic) / (2 * pi * s * t * pt.sqrt(rest)))


def covariance2(pt: Any, s: Any, t: Any, r: Any) -> Any:
    return matrix(pt, [[s**2, r * s * t], [r * s * t, t**2]])


def binormal_inverse(pt: Any, x: Any, y: Any, s: Any, t: Any, r: Any) -> Any:
    return gaussian_inverse(pt, pt.stack([x, y], axis=-1), covariance2(pt, s, t, r))


def binormal_cholesky(pt: Any, x: Any, y: Any, s: Any, t: Any, r: Any) -> Any:
    return gaussian_cholesky(pt, pt.stack([x, y], axis=-1), covariance2(pt, s, t, r))


def gaussian_inverse(pt: Any, x: Any, covariance: Any) -> Any:
    constant = 0.5 * LOG_2PI * covariance.shape[-1]
    precision = pt.linalg.inv(covariance)
    quadratic = pt.sum(x[..., None] * precision * x[..., None, :], axis=(-2, -1))
    return -0.5 * quadratic - 0.5 * pt.log(pt.linalg.det(covariance)) - constant


def gaussian_cholesky(pt: Any, x: Any, covariance: Any) -> Any:
    factor = pt.linalg.cholesky(covariance)
    z = pt.linalg.solve_triangular(factor, x[..., None], lower=True)[..., 0]
    diagonal = pt.diagonal(factor, axis1=-2, axis2=-1)
    constant = 0.5 * LOG_2PI * covariance.shape[-1]
    return -0.5 * pt.sum(z**2, axis=-1) - pt.sum(pt.log(diagonal), axis=-1) - constant


def chain_truth(mp: Any, x: Any, y: Any, z: Any, s: Any, r: Any) -> Any:
    """Three numbers with the correlations r, r and r**2: each depends on the one before."""
    rest = mp.sqrt((1 - r) * (1 + r)) * s
    return (
        normal_truth(mp, x, 0, s) + normal_truth(mp, y, r * x, rest) + normal_truth(mp, z, r * y, rest)
    )


def covariance3(pt: Any, s: Any, r: Any) -> Any:
    one = pt.ones_like(r)
    rows = [[one, r, r**2], [r, one, r], [r**2, r, one]]
    return (s**2)[:, None, None] * matrix(pt, rows)


def bistudent_truth(mp: Any, x: Any, y: Any, s: Any, r: Any, nu: Any) -> Any:
    rest = (1 - r) * (1 + r)
    quadratic = (x**2 - 2 * r * x * y + y**2) / (rest * s**2)
    return (
        mp.lgamma(nu / 2 + 1)
        - mp.lgamma(nu / 2)
        - mp.log(nu * mp.pi)
        - 2 * mp.log(s)
        - mp.log(rest) / 2
        - (nu / 2 + 1) * mp.log1p(quadratic / nu)
    )


def bistudent_formula(pt: Any, x: Any, y: Any, s: Any, r: Any, nu: Any) -> Any:
    rest = 1 - r**2
    quadratic = (x**2 - 2 * r * x * y + y**2) / (rest * s**2)
    return (
        pt.log(1 / (2 * pi * s**2 * pt.sqrt(rest)))
        - (nu / 2 + 1) * pt.log1p(quadratic / nu)
    )


def bistudent_cholesky(pt: Any, x: Any, y: Any, s: Any, r: Any, nu: Any) -> Any:
    factor = pt.linalg.cholesky(covariance2(pt, s, s, r))
    z = pt.linalg.solve_triangular(factor, pt.stack([x, y], axis=-1)[..., None], lower=True)
    diagonal = pt.diagonal(factor, axis1=-2, axis2=-1)
    return (
        pt.gammaln((nu + 2) / 2)
        - pt.gammaln(nu / 2)
        - pt.log(nu * pi)
        - pt.sum(pt.log(diagonal), axis=-1)
        - (nu + 2) / 2 * pt.log1p(pt.sum(z**2, axis=(-2, -1)) / nu)
    )


def process_truth(mp: Any, x: Any, y: Any, d: Any, l: Any, e: Any) -> Any:
    """A Gaussian process with a squared exponential kernel at two places, and noise e."""
    s = 1 + e**2
    k = mp.exp(-((d / l) ** 2) / 2)
    det = (s - k) * (s + k)
    quadratic = (s * (x**2 + y**2) - 2 * k * x * y) / det
    return -quadratic / 2 - mp.log(det) / 2 - mp.log(2 * mp.pi)


def process_covariance(pt: Any, d: Any, l: Any, e: Any) -> Any:
    k = pt.exp(-0.5 * (d / l) ** 2)
    return matrix(pt, [[1 + e**2, k], [k, 1 + e**2]])


def lkj_truth(mp: Any, r: Any, eta: Any) -> Any:
    """The correlation of a matrix of two rows."""
    constant = mp.lgamma(eta + mp.mpf("0.5")) - mp.log(mp.pi) / 2 - mp.lgamma(eta)
    return constant + (eta - 1) * (mp.log(1 - r) + mp.log(1 + r))


def lkj_det(pt: Any, r: Any, eta: Any) -> Any:
    one = pt.ones_like(r)
    constant = pt.gammaln(eta + 0.5) - 0.5 * log(pi) - pt.gammaln(eta)
    return constant + (eta - 1) * pt.log(pt.linalg.det(matrix(pt, [[one, r], [r, one]])))


# time series


def kalman_truth(mp: Any, y: Any, z: Any, m: Any, p: Any, q: Any, r: Any) -> Any:
    """Two steps of a local level: state variance p, of its steps q, of observations r."""
    first = p + q + r
    gain = (p + q) / first
    second = gain * r + q + r
    mean = m + gain * (y - m)
    return (
        -((y - m) ** 2) / (2 * first)
        - (z - mean) ** 2 / (2 * second)
        - mp.log(first) / 2
        - mp.log(second) / 2
        - mp.log(2 * mp.pi)
    )


def kalman_sum(pt: Any, y: Any, z: Any, m: Any, p: Any, q: Any, r: Any) -> Any:
    total = 0.0
    for observed in (y, z):
        p = p + q
        v, f = observed - m, p + r
        gain = p / f
        total = total - 0.5 * (LOG_2PI + pt.log(f) + v**2 / f)
        m, p = m + gain * v, (1 - gain) * p
    return total


def kalman_hand(pt: Any, y: Any, z: Any, m: Any, p: Any, q: Any, r: Any) -> Any:
    density = 1.0
    for observed in (y, z):
        p = p + q
        v, f = observed - m, p + r
        density = density * pt.exp(-0.5 * v**2 / f) / pt.sqrt(2 * pi * f)
        m, p = m + p / f * v, p - p**2 / f
    return pt.log(density)


def hidden_truth(mp: Any, a: Any, b: Any, c: Any, d: Any, p: Any, q: Any) -> Any:
    """Two states with log-emissions (a, b), then (c, d); they are left with p and q."""
    return mp.logsumexp(
        mp.log1p(-p) + a + c, mp.log(p) + a + d, mp.log(q) + b + c, mp.log1p(-q) + b + d
    ) - mp.log(2)


def hidden_logs(pt: Any, a: Any, b: Any, c: Any, d: Any, p: Any, q: Any) -> Any:
    start = pt.stack([a, b], axis=-1) - log(2)
    steps = pt.log(matrix(pt, [[1 - p, p], [q, 1 - q]]))
    forward = pt.logsumexp(start[:, :, None] + steps, axis=1)
    return pt.logsumexp(forward + pt.stack([c, d], axis=-1), axis=-1)


def hidden_probabilities(pt: Any, a: Any, b: Any, c: Any, d: Any, p: Any, q: Any) -> Any:
    u, v = 0.5 * pt.exp(a), 0.5 * pt.exp(b)
    return pt.log((u * (1 - p) + v * q) * pt.exp(c) + (u * p + v * (1 - q)) * pt.exp(d))


def forbidden_truth(mp: Any, a: Any, b: Any, c: Any, d: Any, p: Any) -> Any:
    """As `hidden_truth`, from the first state, and the second is never left."""
    return mp.logsumexp(mp.log1p(-p) + a + c, mp.log(p) + a + d) + 0 * b


def forbidden_logs(pt: Any, a: Any, b: Any, c: Any, d: Any, p: Any) -> Any:
    zero = pt.zeros_like(p)
    start = pt.log(pt.stack([zero + 1, zero], axis=-1)) + pt.stack([a, b], axis=-1)
    steps = pt.log(matrix(pt, [[1 - p, p], [zero, zero + 1]]))
    forward = pt.logsumexp(start[:, :, None] + steps, axis=1)
    return pt.logsumexp(forward + pt.stack([c, d], axis=-1), axis=-1)


def forbidden_probabilities(pt: Any, a: Any, b: Any, c: Any, d: Any, p: Any) -> Any:
    u, v = pt.exp(a), 0.0 * pt.exp(b)
    return pt.log(u * (1 - p) * pt.exp(c) + (u * p + v) * pt.exp(d))


def autoregression_truth(mp: Any, x: Any, y: Any, r: Any, s: Any) -> Any:
    """A stationary start, and one step."""
    first = s / mp.sqrt((1 - r) * (1 + r))
    return normal_truth(mp, x, 0, first) + normal_truth(mp, y, r * x, s)


def garch_truth(mp: Any, x: Any, y: Any, w: Any, a: Any, b: Any) -> Any:
    """The variance w + a x**2 + b w of the number y after x."""
    v = w + a * x**2 + b * w
    return -(y**2) / (2 * v) - mp.log(v) / 2 - mp.log(2 * mp.pi) / 2


def ornstein_truth(mp: Any, x: Any, y: Any, k: Any, s: Any) -> Any:
    """A step of the length 1 of a process that returns to 0 at the rate k."""
    v = s**2 * -mp.expm1(-2 * k) / (2 * k)
    return -((y - x * mp.exp(-k)) ** 2) / (2 * v) - mp.log(2 * mp.pi * v) / 2


def ornstein_hand(pt: Any, x: Any, y: Any, k: Any, s: Any) -> Any:
    v = s**2 / (2 * k) * (1 - pt.exp(-2 * k))
    return pt.log(pt.exp(-((y - x * pt.exp(-k)) ** 2) / (2 * v)) / pt.sqrt(2 * pi * v))


def ornstein_expm1(pt: Any, x: Any, y: Any, k: Any, s: Any) -> Any:
    scale = s * pt.sqrt(-pt.expm1(-2 * k) / (2 * k))
    return normal_log(pt, y, x * pt.exp(-k), scale)


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

VECTORS = [
    Density(
        "normal_of_two",
        "x real, y real, s positive, t positive, r correlation",
        binormal_truth,
        {
            "formula": binormal_formula,
            "cholesky": binormal_cholesky,
            "inverse": binormal_inverse,
        },
    ),
    Density(
        "normal_of_three",
        "x real, y real, z real, s positive, r correlation",
        chain_truth,
        {
            "cholesky": lambda pt, x, y, z, s, r: gaussian_cholesky(
                pt, pt.stack([x, y, z], axis=-1), covariance3(pt, s, r)
            ),
            "inverse": lambda pt, x, y, z, s, r: gaussian_inverse(
                pt, pt.stack([x, y, z], axis=-1), covariance3(pt, s, r)
            ),
        },
    ),
    Density(
        "student_t_of_two",
        "x real, y real, s positive, r correlation, nu positive",
        bistudent_truth,
        {"formula": bistudent_formula, "cholesky": bistudent_cholesky},
    ),
    Density(
        "gaussian_process",
        "x real, y real, d positive, l positive, e positive",
        process_truth,
        {
            "cholesky": lambda pt, x, y, d, l, e: gaussian_cholesky(
                pt, pt.stack([x, y], axis=-1), process_covariance(pt, d, l, e)
            ),
            "inverse": lambda pt, x, y, d, l, e: gaussian_inverse(
                pt, pt.stack([x, y], axis=-1), process_covariance(pt, d, l, e)
            ),
        },
    ),
    Density(
        "lkj",
        "r correlation, eta positive",
        lkj_truth,
        {
            "log1p": lambda pt, r, eta: (
                pt.gammaln(eta + 0.5)
                - 0.5 * log(pi)
                - pt.gammaln(eta)
                + (eta - 1) * pt.log1p(-(r**2))
            ),
            "det": lkj_det,
        },
    ),
]

SERIES = [
    Density(
        "kalman",
        "y real, z real, m real, p positive, q positive, r positive",
        kalman_truth,
        {"sum": kalman_sum, "hand": kalman_hand},
    ),
    Density(
        "hidden_markov",
        "a real, b real, c real, d real, p probability, q probability",
        hidden_truth,
        {"logs": hidden_logs, "probabilities": hidden_probabilities},
    ),
    Density(
        "hidden_markov_forbidden",
        "a real, b real, c real, d real, p probability",
        forbidden_truth,
        {"logs": forbidden_logs, "probabilities": forbidden_probabilities},
    ),
    Density(
        "autoregression",
        "x real, y real, r correlation, s positive",
        autoregression_truth,
        {
            "sum": lambda pt, x, y, r, s: (
                normal_log(pt, x, 0.0, s / pt.sqrt(1 - r**2)) + normal_log(pt, y, r * x, s)
            ),
            "hand": lambda pt, x, y, r, s: pt.log(
                normal_pdf(pt, x, 0.0, s / pt.sqrt(1 - r**2)) * normal_pdf(pt, y, r * x, s)
            ),
        },
    ),
    Density(
        "garch",
        "x real, y real, w positive, a probability, b probability",
        garch_truth,
        {
            "sum": lambda pt, x, y, w, a, b: normal_log(
                pt, y, 0.0, pt.sqrt(w + a * x**2 + b * w)
            ),
            "hand": lambda pt, x, y, w, a, b: pt.log(
                normal_pdf(pt, y, 0.0, pt.sqrt(w + a * x**2 + b * w))
            ),
        },
    ),
    Density(
        "stochastic_volatility",
        "x real, h real",
        lambda mp, x, h: -(x**2) * mp.exp(-h) / 2 - h / 2 - mp.log(2 * mp.pi) / 2,
        {
            "scale": lambda pt, x, h: normal_log(pt, x, 0.0, pt.exp(h / 2)),
            "variance": lambda pt, x, h: (
                -0.5 * (pt.log(2 * pi * pt.exp(h)) + x**2 / pt.exp(h))
            ),
            "hand": lambda pt, x, h: pt.log(normal_pdf(pt, x, 0.0, pt.exp(h / 2))),
        },
    ),
    Density(
        "ornstein_uhlenbeck",
        "x real, y real, k positive, s positive",
        ornstein_truth,
        {"hand": ornstein_hand, "expm1": ornstein_expm1},
    ),
    Density(
        "probit_of_noise",
        "x real, m real, s positive, t positive",
        lambda mp, x, m, s, t: mp.log_ndtr((x - m) / mp.sqrt(s**2 + t**2)),
        {
            "erfc": lambda pt, x, m, s, t: pt.log(ndtr(pt, (x - m) / pt.sqrt(s**2 + t**2))),
            "complement": lambda pt, x, m, s, t: pt.log(
                1 - ndtr(pt, (m - x) / pt.sqrt(s**2 + t**2))
            ),
        },
    ),
]

DENSITIES = [*MIXTURES, *SIMPLICES, *COPULAS, *VECTORS, *SERIES]
