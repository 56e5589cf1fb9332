"""Derivatives of the Gauss hypergeometric function in its parameters, from its power series."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_MAX_TERMS = 100_000
#: Terms that are computed at once: in the first block, and at most.  Elements computed at once.
_FIRST, _MOST, _ELEMENTS = 32, 4096, 256


def _series(a: Any, b: Any, c: Any, z: Any) -> tuple[Any, Any, Any, Any]:
    """2F1 and its derivatives in a, b, c; NaN where the series does not converge.

    Term n + 1 is term n times ``(a + n)(b + n) z / ((c + n)(n + 1))`` (DLMF 15.2.1).
    """
    given = [v.reshape(-1, 1) for v in (a, b, c, z)]
    found = np.full((4, a.size), np.nan)
    inside = np.flatnonzero(np.abs(z) < 1)
    for k in range(0, inside.size, _ELEMENTS):
        part = inside[k : k + _ELEMENTS]
        found[:, part] = _sums(*(v[part] for v in given))
    return tuple(found.reshape(4, *a.shape))  # type: ignore[return-value]


def _sums(a: Any, b: Any, c: Any, z: Any) -> Any:
    """The sums of the series of 2F1 and its derivatives in a, b, c, as rows.

    The parameters are columns with one row per element.  NaN where a sum does not converge within
    `_MAX_TERMS`.
    """
    found = np.full((4, len(a)), np.nan)
    sums = np.zeros((4, len(a), 1))
    sums[0] = 1
    state, left = _State.start(a), np.arange(len(a))
    n, size = 0, _FIRST
    while n < _MAX_TERMS and left.size:
        parts, ratio, state = state.block(a, b, c, z, np.arange(n, n + size))
        sums = sums + parts.sum(axis=-1, keepdims=True)
        last = parts[..., -1:]
        # a sum has converged if the last terms are negligible and the terms no longer grow
        small = (np.abs(last) <= 1e-17 * (np.abs(sums) + 1e-300)).all(axis=0)
        done = (small & (np.abs(ratio) < 1)).reshape(-1)
        found[:, left[done]] = sums[:, done, 0]
        go_on = ~done & np.isfinite(last[0]).reshape(-1)
        if n >= _MOST:
            go_on &= (_terms_to_go(last, sums, z) < _MAX_TERMS).reshape(-1)
        left, sums = left[go_on], sums[:, go_on]
        a, b, c, z = (v[go_on] for v in (a, b, c, z))
        state = _State(*(v[go_on] for v in state))
        n, size = n + size, min(2 * size, max(_FIRST, _MOST * 16 // max(left.size, 16)))
    return found


def _terms_to_go(last: Any, sums: Any, z: Any) -> Any:
    """The number of terms until they are negligible, if each is z times the one before."""
    share = np.abs(last) / (np.abs(sums) + 1e-300)
    return np.log(1e17 * np.max(share, axis=0)) / -np.log(np.abs(z))


class _State(NamedTuple):
    """The latest term of the series, with what its derivatives are computed from.

    A factor ``a + n`` that is 0 is left out of ``product`` and counted.  All terms after it are 0,
    and their derivative in a is the product of the other factors.
    """

    product: Any  # of all factors that are not 0
    a_zeros: Any  # number of factors a + n that are 0
    b_zeros: Any
    in_a: Any  # the sum of 1 / (a + n) over n with a + n != 0: the logarithmic derivative in a
    in_b: Any
    in_c: Any

    @classmethod
    def start(cls, like: Any) -> _State:
        """The state at the first term, which is 1, for as many elements as ``like`` has."""
        return cls(np.ones_like(like), *(np.zeros_like(like) for _ in range(5)))

    def block(self, a: Any, b: Any, c: Any, z: Any, n: Any) -> tuple[Any, Any, _State]:
        """The terms after numbers ``n`` with their derivatives, the last ratio, the next state."""
        up, other, below = a + n, b + n, c + n
        a_zero, b_zero = up == 0, other == 0
        up_, other_ = np.where(a_zero, 1, up), np.where(b_zero, 1, other)
        factors = up_ * other_ * z / (below * (n + 1))
        product = self.product * np.cumprod(factors, axis=-1)
        a_zeros = self.a_zeros + np.cumsum(a_zero, axis=-1)
        b_zeros = self.b_zeros + np.cumsum(b_zero, axis=-1)
        in_a = self.in_a + np.cumsum(~a_zero / up_, axis=-1)
        in_b = self.in_b + np.cumsum(~b_zero / other_, axis=-1)
        in_c = self.in_c + np.cumsum(1 / below, axis=-1)
        no_a, no_b = a_zeros == 0, b_zeros == 0
        term = np.where(no_a & no_b, product, 0)
        parts = [
            term,
            np.where(no_b, product * np.where(no_a, in_a, 1), 0),
            np.where(no_a, product * np.where(no_b, in_b, 1), 0),
            -term * in_c,
        ]
        ratio = (up * other * z / (below * (n + 1)))[..., -1:]
        reached = (product, a_zeros, b_zeros, in_a, in_b, in_c)
        return np.stack(parts), ratio, _State(*(v[..., -1:] for v in reached))


def _derivatives(*args: Any) -> tuple[Any, Any, Any]:
    """The derivatives of 2F1(a, b; c; z) in a, b and c, for z < 1.

    For z < 0 by Pfaff's transformation, ``(1 - z)**-a F(a, c - b; c; z / (z - 1))`` (DLMF 15.8.1),
    whose argument is between 0 and 1.
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
    """d 2F1(a, b; c; z) / da, a float64 array; NaN unless z < 1."""
    return _derivatives(a, b, c, z)[0]


def hyp2f1_der_c(a: Any, b: Any, c: Any, z: Any) -> Any:
    """d 2F1(a, b; c; z) / dc, a float64 array; NaN unless z < 1."""
    return _derivatives(a, b, c, z)[2]
