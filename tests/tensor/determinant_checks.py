"""Exact derivatives of determinants, from minors, and matrices of which they are difficult."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np

Exact = Any
#: of the difference that replaces the derivative of a polynomial; its error is the square
_STEP = mpmath.mpf("1e-40")


def exact(x: np.ndarray) -> np.ndarray:
    """An array of numbers of mpmath."""
    return np.frompyfunc(mpmath.mpmathify, 1, 1)(x)


def determinant(x: np.ndarray) -> Exact:
    """Of a small matrix, by its first row and their minors."""
    if len(x) == 0:
        return mpmath.mpf(1)
    rest = [np.delete(x[1:], j, axis=1) for j in range(len(x))]
    return sum((-1) ** j * x[0, j] * determinant(r) for j, r in enumerate(rest))


def cofactors(x: np.ndarray) -> np.ndarray:
    """The gradient of the determinant of a matrix of exact numbers."""
    if len(x) > 5:
        return _of_inverse(x)
    found = np.empty_like(x)
    for i, j in np.ndindex(*x.shape):
        found[i, j] = (-1) ** (i + j) * determinant(np.delete(np.delete(x, i, 0), j, 1))
    return found


def _of_inverse(x: np.ndarray) -> np.ndarray:
    """Those of a matrix that differs so little that all digits of a float are the same."""
    with mpmath.workdps(400):
        noise = np.random.default_rng(3).normal(size=x.shape) * mpmath.mpf("1e-150")
        matrix = mpmath.matrix((x + noise).tolist())
        found = mpmath.det(matrix) * mpmath.inverse(matrix).T
        return np.array(found.tolist(), object)


def moved_cofactors(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The derivative of the cofactors along ``t``."""
    with mpmath.workdps(200):
        size = max(abs(x).max(), mpmath.mpf("1e-300"))
        step = _STEP * size
        return (cofactors(x + step * t) - cofactors(x - step * t)) / (2 * step)


def matrices(n: int, dtype: str, seed: int = 0) -> Iterator[np.ndarray]:
    """Regular, singular, up to rounding too, nearly singular, and large and small ones."""
    rng = np.random.default_rng(seed)

    def numbers(*shape: int) -> np.ndarray:
        found = rng.normal(size=shape)
        return found + 1j * rng.normal(size=shape) if dtype[0] == "c" else found

    yield numbers(n, n)
    yield np.eye(n)
    yield np.arange(1.0, n * n + 1).reshape(n, n)
    yield np.zeros((n, n))
    yield np.eye(n, k=1)
    for rank in range(max(n - 3, 0), n):
        yield numbers(n, rank) @ numbers(rank, n)
        yield rng.integers(-3, 4, (n, rank)) @ rng.integers(-3, 4, (rank, n)) / 3
        yield numbers(n, n) * (np.arange(n) < rank)
        yield np.diag(rng.permutation(1.0 * (np.arange(n) < rank)))
    for small in (1e-3, 1e-7, 1e-14):
        yield numbers(n, n) * (small if n == 1 else 1) + numbers(n, n) * small
        q, r = np.linalg.qr(numbers(n, n)), np.linalg.qr(numbers(n, n))
        sizes = np.where(np.arange(n) < n - 2, 1, small)
        yield q[0] * np.where(np.arange(n) < n - 1, 1, small) @ r[0]
        yield q[0] * sizes @ r[0]
    exponent = min(100, (35 if dtype in ("float32", "complex64") else 280) // max(n - 1, 1))
    for scale in (10.0**-exponent, 10.0**exponent):
        yield numbers(n, n) * scale
        yield numbers(n, n - 1) @ numbers(n - 1, n) * scale
