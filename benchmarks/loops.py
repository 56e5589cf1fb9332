"""Loops as one writes them for Numba: what a compiler makes of the best program by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def costly(x: Any, y: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.size):
        a = math.exp(-0.5 * x[i] * x[i])
        b = math.log(a + y[i])
        out[i] = math.tanh(b - x[i]) * math.sqrt(a + 1.0) + math.log1p(b * b)
    return out


def cheap(x: Any, y: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.size):
        a = 2.0 * x[i] - y[i]
        b = a * y[i] + 0.5
        out[i] = (a - b) * (b + x[i]) - 3.0 * a + y[i] * y[i]
    return out


def log_density(x: Any, mu: Any, sigma: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        constant = math.log(sigma[i, 0]) + 0.5 * math.log(2 * math.pi)
        for j in range(x.shape[1]):
            z = (x[i, j] - mu[j]) / sigma[i, 0]
            total -= 0.5 * z * z + constant
    return total


def softmax(x: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        top = x[i].max()
        total = 0.0
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


def logsumexp(x: Any) -> Any:
    out = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        top = x[i].max()
        total = 0.0
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - top)
        out[i] = math.log(total) + top
    return out


def misfit(x: Any, y: Any, group: Any) -> Any:
    slope = np.zeros_like(x)
    total = 0.0
    for i in range(y.size):
        r = x[group[i]] - y[i]
        total += r * r
        slope[group[i]] += 2 * r
    return total, slope


def writes(x: Any, y: Any) -> Any:
    x = x.copy()
    n = x.size
    for k in range(1, 5):
        last = x[k - 1]
        for i in range(k, n - k):
            here = x[i]
            x[i] = 0.5 * (last + y[i + 1])
            last = here
    return x


def logistic(beta: Any, x: Any, y: Any) -> Any:
    slope = -beta
    total = -0.5 * (beta @ beta)
    for i in range(y.size):
        eta = 0.0
        for j in range(beta.size):
            eta += x[i, j] * beta[j]
        e = math.exp(-abs(eta))
        total += y[i] * eta - max(eta, 0.0) - math.log1p(e)
        r = y[i] - (1.0 if eta >= 0 else e) / (1.0 + e)
        for j in range(beta.size):
            slope[j] += r * x[i, j]
    return total, slope


def poisson(beta: Any, x: Any, y: Any) -> Any:
    slope = np.zeros_like(beta)
    total = 0.0
    for i in range(y.size):
        eta = 0.0
        for j in range(beta.size):
            eta += x[i, j] * beta[j]
        rate = math.exp(eta)
        total += y[i] * eta - rate
        for j in range(beta.size):
            slope[j] += (y[i] - rate) * x[i, j]
    return total, slope


def radon(
    mean: Any, log_spread: Any, slope: Any, offset: Any, log_noise: Any,
    county: Any, floor: Any, y: Any,
) -> Any:  # fmt: skip
    spread, noise, b = math.exp(log_spread[()]), math.exp(log_noise[()]), slope[()]
    pull = np.zeros_like(offset)
    squares = by_floor = 0.0
    for i in range(y.size):
        z = (y[i] - mean[()] - spread * offset[county[i]] - b * floor[i]) / noise
        squares += z * z
        by_floor += floor[i] * z / noise
        pull[county[i]] += z / noise
    prior = mean[()] ** 2 + log_spread[()] ** 2 + b**2 + log_noise[()] ** 2
    value = -0.5 * (squares + offset @ offset + prior) - y.size * log_noise[()]
    return (
        value,
        pull.sum() - mean[()],
        spread * (pull @ offset) - log_spread[()],
        by_floor - b,
        spread * pull - offset,
        squares - y.size - log_noise[()],
    )


LOOPS = {
    "exp-log chain": costly,
    "exp-log chain, float32": costly,
    "cheap chain": cheap,
    "cheap chain, float32": cheap,
    "sum of normal log-densities": log_density,
    "softmax": softmax,
    "logsumexp": logsumexp,
    "gather, value and gradient": misfit,
    "chain of writes": writes,
    "logistic regression": logistic,
    "Poisson regression": poisson,
    "hierarchical regression": radon,
}
