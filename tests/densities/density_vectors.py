"""Densities of Gaussian vectors and of time series."""

from __future__ import annotations

from math import log, pi

from density_real import HALF_LOG_2PI, ndtr, normal_log, normal_pdf, normal_truth
from density_row import Density, Expr, System, matrix

# Gaussian vectors


def binormal_truth(mp: System, x: Expr, y: Expr, s: Expr, t: Expr, r: Expr) -> Expr:
    rest = (1 - r) * (1 + r)
    a, b = x / s, y / t
    quadratic = (a**2 - 2 * r * a * b + b**2) / rest
    return -quadratic / 2 - mp.log(2 * mp.pi) - mp.log(s) - mp.log(t) - mp.log(rest) / 2


def binormal_formula(pt: System, x: Expr, y: Expr, s: Expr, t: Expr, r: Expr) -> Expr:
    rest = 1 - r**2
    quadratic = ((x / s) ** 2 - 2 * r * x * y / (s * t) + (y / t) ** 2) / rest
    return pt.log(pt.exp(-0.5 * quadratic) / (2 * pi * s * t * pt.sqrt(rest)))


def covariance2(pt: System, s: Expr, t: Expr, r: Expr) -> Expr:
    return matrix(pt, [[s**2, r * s * t], [r * s * t, t**2]])


def binormal_inverse(pt: System, x: Expr, y: Expr, s: Expr, t: Expr, r: Expr) -> Expr:
    return gaussian_inverse(pt, [x, y], covariance2(pt, s, t, r))


def binormal_cholesky(pt: System, x: Expr, y: Expr, s: Expr, t: Expr, r: Expr) -> Expr:
    return gaussian_cholesky(pt, [x, y], covariance2(pt, s, t, r))


def gaussian_inverse(pt: System, numbers: list[Expr], covariance: Expr) -> Expr:
    x = pt.stack(numbers, axis=-1)
    precision = pt.linalg.inv(covariance)
    quadratic = pt.sum(x[..., None] * precision * x[..., None, :], axis=(-2, -1))
    constant = HALF_LOG_2PI * len(numbers)
    return -0.5 * quadratic - 0.5 * pt.log(pt.linalg.det(covariance)) - constant


def gaussian_cholesky(pt: System, numbers: list[Expr], covariance: Expr) -> Expr:
    x = pt.stack(numbers, axis=-1)
    factor = pt.linalg.cholesky(covariance)
    z = pt.linalg.solve_triangular(factor, x[..., None], lower=True)[..., 0]
    diagonal = pt.diagonal(factor, axis1=-2, axis2=-1)
    constant = HALF_LOG_2PI * len(numbers)
    return -0.5 * pt.sum(z**2, axis=-1) - pt.sum(pt.log(diagonal), axis=-1) - constant


def chain_truth(mp: System, x: Expr, y: Expr, z: Expr, s: Expr, r: Expr) -> Expr:
    """Three numbers with the correlations r, r and r**2: each depends on the one before."""
    rest = mp.sqrt((1 - r) * (1 + r)) * s
    return (
        normal_truth(mp, x, 0, s)
        + normal_truth(mp, y, r * x, rest)
        + normal_truth(mp, z, r * y, rest)
    )


def covariance3(pt: System, s: Expr, r: Expr) -> Expr:
    one = pt.ones_like(r)
    rows = [[one, r, r**2], [r, one, r], [r**2, r, one]]
    return (s**2)[:, None, None] * matrix(pt, rows)


def bistudent_truth(mp: System, x: Expr, y: Expr, s: Expr, r: Expr, nu: Expr) -> Expr:
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


def bistudent_formula(pt: System, x: Expr, y: Expr, s: Expr, r: Expr, nu: Expr) -> Expr:
    rest = 1 - r**2
    quadratic = (x**2 - 2 * r * x * y + y**2) / (rest * s**2)
    return pt.log(1 / (2 * pi * s**2 * pt.sqrt(rest))) - (nu / 2 + 1) * pt.log1p(quadratic / nu)


def bistudent_cholesky(pt: System, x: Expr, y: Expr, s: Expr, r: Expr, nu: Expr) -> Expr:
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


def process_truth(mp: System, x: Expr, y: Expr, d: Expr, w: Expr, e: Expr) -> Expr:
    """A Gaussian process with a squared exponential kernel at two places, and noise e."""
    s = 1 + e**2
    k = mp.exp(-((d / w) ** 2) / 2)
    det = (s - k) * (s + k)
    quadratic = (s * (x**2 + y**2) - 2 * k * x * y) / det
    return -quadratic / 2 - mp.log(det) / 2 - mp.log(2 * mp.pi)


def process_covariance(pt: System, d: Expr, w: Expr, e: Expr) -> Expr:
    k = pt.exp(-0.5 * (d / w) ** 2)
    return matrix(pt, [[1 + e**2, k], [k, 1 + e**2]])


def lkj_truth(mp: System, r: Expr, eta: Expr) -> Expr:
    """The correlation of a matrix of two rows."""
    constant = mp.lgamma(eta + mp.mpf("0.5")) - mp.log(mp.pi) / 2 - mp.lgamma(eta)
    return constant + (eta - 1) * (mp.log(1 - r) + mp.log(1 + r))


def lkj_det(pt: System, r: Expr, eta: Expr) -> Expr:
    one = pt.ones_like(r)
    constant = pt.gammaln(eta + 0.5) - 0.5 * log(pi) - pt.gammaln(eta)
    return constant + (eta - 1) * pt.log(pt.linalg.det(matrix(pt, [[one, r], [r, one]])))


# time series


def kalman_truth(
    mp: System,
    y: Expr,
    z: Expr,
    m: Expr,
    p: Expr,
    q: Expr,
    r: Expr,
) -> Expr:
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


def kalman_sum(
    pt: System,
    y: Expr,
    z: Expr,
    m: Expr,
    p: Expr,
    q: Expr,
    r: Expr,
) -> Expr:
    total = 0.0
    for observed in (y, z):
        p = p + q
        v, f = observed - m, p + r
        gain = p / f
        total = total - HALF_LOG_2PI - 0.5 * (pt.log(f) + v**2 / f)
        m, p = m + gain * v, (1 - gain) * p
    return total


def kalman_hand(
    pt: System,
    y: Expr,
    z: Expr,
    m: Expr,
    p: Expr,
    q: Expr,
    r: Expr,
) -> Expr:
    density = 1.0
    for observed in (y, z):
        p = p + q
        v, f = observed - m, p + r
        density = density * pt.exp(-0.5 * v**2 / f) / pt.sqrt(2 * pi * f)
        m, p = m + p / f * v, p - p**2 / f
    return pt.log(density)


def hidden_truth(
    mp: System,
    a: Expr,
    b: Expr,
    c: Expr,
    d: Expr,
    p: Expr,
    q: Expr,
) -> Expr:
    """Two states with log-emissions (a, b), then (c, d); they are left with p and q."""
    return mp.logsumexp(
        mp.log1p(-p) + a + c, mp.log(p) + a + d, mp.log(q) + b + c, mp.log1p(-q) + b + d
    ) - mp.log(2)


def hidden_logs(
    pt: System,
    a: Expr,
    b: Expr,
    c: Expr,
    d: Expr,
    p: Expr,
    q: Expr,
) -> Expr:
    start = pt.stack([a, b], axis=-1) - log(2)
    steps = pt.log(matrix(pt, [[1 - p, p], [q, 1 - q]]))
    forward = pt.logsumexp(start[:, :, None] + steps, axis=1)
    return pt.logsumexp(forward + pt.stack([c, d], axis=-1), axis=-1)


def hidden_probabilities(
    pt: System,
    a: Expr,
    b: Expr,
    c: Expr,
    d: Expr,
    p: Expr,
    q: Expr,
) -> Expr:
    u, v = 0.5 * pt.exp(a), 0.5 * pt.exp(b)
    return pt.log((u * (1 - p) + v * q) * pt.exp(c) + (u * p + v * (1 - q)) * pt.exp(d))


def forbidden_truth(mp: System, a: Expr, b: Expr, c: Expr, d: Expr, p: Expr) -> Expr:
    """As `hidden_truth`, from the first state, and the second is never left."""
    return mp.logsumexp(mp.log1p(-p) + a + c, mp.log(p) + a + d) + 0 * b


def forbidden_logs(pt: System, a: Expr, b: Expr, c: Expr, d: Expr, p: Expr) -> Expr:
    zero = pt.zeros_like(p)
    start = pt.log(pt.stack([zero + 1, zero], axis=-1)) + pt.stack([a, b], axis=-1)
    steps = pt.log(matrix(pt, [[1 - p, p], [zero, zero + 1]]))
    forward = pt.logsumexp(start[:, :, None] + steps, axis=1)
    return pt.logsumexp(forward + pt.stack([c, d], axis=-1), axis=-1)


def forbidden_probabilities(pt: System, a: Expr, b: Expr, c: Expr, d: Expr, p: Expr) -> Expr:
    u, v = pt.exp(a), 0.0 * pt.exp(b)
    return pt.log(u * (1 - p) * pt.exp(c) + (u * p + v) * pt.exp(d))


def autoregression_truth(mp: System, x: Expr, y: Expr, r: Expr, s: Expr) -> Expr:
    """A stationary start, and one step."""
    first = s / mp.sqrt((1 - r) * (1 + r))
    return normal_truth(mp, x, 0, first) + normal_truth(mp, y, r * x, s)


def garch_truth(mp: System, x: Expr, y: Expr, w: Expr, a: Expr, b: Expr) -> Expr:
    """The variance w + a x**2 + b w of the number y after x."""
    v = w + a * x**2 + b * w
    return -(y**2) / (2 * v) - mp.log(v) / 2 - mp.log(2 * mp.pi) / 2


def ornstein_truth(mp: System, x: Expr, y: Expr, k: Expr, s: Expr) -> Expr:
    """A step of the length 1 of a process that returns to 0 at the rate k."""
    v = s**2 * -mp.expm1(-2 * k) / (2 * k)
    return -((y - x * mp.exp(-k)) ** 2) / (2 * v) - mp.log(2 * mp.pi * v) / 2


def ornstein_hand(pt: System, x: Expr, y: Expr, k: Expr, s: Expr) -> Expr:
    v = s**2 / (2 * k) * (1 - pt.exp(-2 * k))
    return pt.log(pt.exp(-((y - x * pt.exp(-k)) ** 2) / (2 * v)) / pt.sqrt(2 * pi * v))


def ornstein_expm1(pt: System, x: Expr, y: Expr, k: Expr, s: Expr) -> Expr:
    scale = s * pt.sqrt(-pt.expm1(-2 * k) / (2 * k))
    return normal_log(pt, y, x * pt.exp(-k), scale)


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
                pt, [x, y, z], covariance3(pt, s, r)
            ),
            "inverse": lambda pt, x, y, z, s, r: gaussian_inverse(
                pt, [x, y, z], covariance3(pt, s, r)
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
        "x real, y real, d positive, w positive, e positive",
        process_truth,
        {
            "cholesky": lambda pt, x, y, d, w, e: gaussian_cholesky(
                pt, [x, y], process_covariance(pt, d, w, e)
            ),
            "inverse": lambda pt, x, y, d, w, e: gaussian_inverse(
                pt, [x, y], process_covariance(pt, d, w, e)
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
            "sum": lambda pt, x, y, w, a, b: normal_log(pt, y, 0.0, pt.sqrt(w + a * x**2 + b * w)),
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
            "variance": lambda pt, x, h: -0.5 * (pt.log(2 * pi * pt.exp(h)) + x**2 / pt.exp(h)),
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

DENSITIES = [*VECTORS, *SERIES]
