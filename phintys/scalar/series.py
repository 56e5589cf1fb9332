"""Derivatives of the Gauss hypergeometric function in its parameters, by its series."""

from __future__ import annotations

from typing import Any

import numpy as np

_MAX_TERMS = 100_000


def _series(a: Any, b: Any, c: Any, z: Any) -> tuple[Any, Any, Any, Any]:
    """2F1 and its derivatives in a, b, c, for ``|z| < 1``; NaN where the series does not converge.

    Term n + 1 is term n times ``(a + n)(b + n) z / ((c + n)(n + 1))`` (DLMF 15.2.1); the
    derivatives follow by the product rule: nothing is special about a = 0 or negative integers.
    """
    term = np.ones_like(z)
    sums = [term, *(np.zeros_like(z) for _ in range(3))]
    slopes = [np.zeros_like(z) for _ in range(3)]
    active = np.abs(z) < 1
    for n in range(_MAX_TERMS):
        rest = z / ((c + n) * (n + 1))
        ratio = (a + n) * (b + n) * rest
        slopes = [
            ratio * slopes[0] + term * (b + n) * rest,
            ratio * slopes[1] + term * (a + n) * rest,
            ratio * (slopes[2] - term / (c + n)),
        ]
        term = term * ratio
        parts = [term, *slopes]
        sums = [s + p for s, p in zip(sums, parts)]
        # the terms may still grow while n is small; what is not finite stays so
        small = [np.abs(p) <= 1e-17 * (np.abs(s) + 1e-300) for s, p in zip(sums, parts)]
        active = active & ~(np.all(small, axis=0) & (np.abs(ratio) < 1)) & np.isfinite(term)
        if n % 8 == 0 and not active.any():
            break
    bad = active | (np.abs(z) >= 1)
    value, in_a, in_b, in_c = (np.where(bad, np.nan, s) for s in sums)
    return value, in_a, in_b, in_c


def _derivatives(*args: Any) -> tuple[Any, Any, Any]:
    """Derivatives of 2F1(a, b; c; z) in a, b and c, for z < 1.

    Below 0 through Pfaff's transformation, ``(1 - z)**-a F(a, c - b; c; z / (z - 1))``
    (DLMF 15.8.1).
    """
    a, b, c, z = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in args))
    below = z < 0
    value, in_a, in_b, in_c = _series(
        a, np.where(below, c - b, b), c, np.where(below, z / (z - 1), z)
    )
    scale = np.where(below, np.power(np.abs(1 - z), -a), 1.0)
    log_scale = np.where(below, -np.log(np.abs(1 - z)), 0.0)
    sign = np.where(below, -1.0, 1.0)
    extra = np.where(below, in_b, 0.0)
    return scale * (in_a + log_scale * value), scale * sign * in_b, scale * (in_c + extra)


def hyp2f1_der_a(a: Any, b: Any, c: Any, z: Any) -> Any:
    """d 2F1(a, b; c; z) / da for arrays and z < 1; NaN elsewhere."""
    return _derivatives(a, b, c, z)[0]


def hyp2f1_der_c(a: Any, b: Any, c: Any, z: Any) -> Any:
    """d 2F1(a, b; c; z) / dc for arrays and z < 1; NaN elsewhere."""
    return _derivatives(a, b, c, z)[2]
