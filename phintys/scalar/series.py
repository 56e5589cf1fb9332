"""Derivatives of the Gauss hypergeometric function in its parameters, from its power series."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_MAX_TERMS = 100_000
#: Terms that are computed at once: in the first block, and at most.  Elements computed at once.
_FIRST, _MOST, _ELEMENTS = 32, 4096, 256


#: The sums that are computed: of 2F1 and its derivatives in these parameters.
SUMS = ("", "a", "b", "c", "aa", "ab", "bb", "ac", "bc", "cc")
#: How many of them there are up to the first, and up to the second order.
_COUNTS = {1: 4, 2: 10}


def _series(a: Any, b: Any, c: Any, z: Any, order: int) -> dict[str, Any]:
    """2F1 and its derivatives up to an order, by `SUMS`; NaN where the series does not converge.

    Term n + 1 is term n times ``(a + n)(b + n) z / ((c + n)(n + 1))`` (DLMF 15.2.1).
    """
    given = [v.reshape(-1, 1) for v in (a, b, c, z)]
    count = _COUNTS[order]
    found = np.full((count, a.size), np.nan)
    inside = np.flatnonzero(np.abs(z) < 1)
    for k in range(0, inside.size, _ELEMENTS):
        part = inside[k : k + _ELEMENTS]
        found[:, part] = _sums(*(v[part] for v in given), count=count)
    return dict(zip(SUMS, found.reshape(count, *a.shape)))


def _sums(a: Any, b: Any, c: Any, z: Any, *, count: int) -> Any:
    """The first ``count`` sums of the series of 2F1 and its derivatives, as rows.

    The parameters are columns with one row per element.  NaN where a sum does not converge within
    `_MAX_TERMS`.
    """
    found = np.full((count, len(a)), np.nan)
    sums = np.zeros((count, len(a), 1))
    sums[0] = 1
    state, left = _State.start(a), np.arange(len(a))
    n, size = 0, _FIRST
    while n < _MAX_TERMS and left.size:
        parts, ratio, state = state.block(a, b, c, z, np.arange(n, n + size), count)
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
    square_a: Any  # the sum of the squares of the same
    square_b: Any
    square_c: Any

    @classmethod
    def start(cls, like: Any) -> _State:
        """The state at the first term, which is 1, for as many elements as ``like`` has."""
        return cls(np.ones_like(like), *(np.zeros_like(like) for _ in range(8)))

    def block(self, a: Any, b: Any, c: Any, z: Any, n: Any, count: int) -> tuple[Any, Any, _State]:
        """The terms after numbers ``n`` with their derivatives, the last ratio, the next state."""
        up, other, below = a + n, b + n, c + n
        a_zero, b_zero = up == 0, other == 0
        up_, other_ = np.where(a_zero, 1, up), np.where(b_zero, 1, other)
        shares = [~a_zero / up_, ~b_zero / other_, 1 / below]
        factors = up_ * other_ * z / (below * (n + 1))
        steps = [a_zero, b_zero, *shares, *(share * share for share in shares)]
        reached = _State(
            self.product * np.cumprod(factors, axis=-1),
            *(old + np.cumsum(step, axis=-1) for old, step in zip(self[1:], steps)),
        )
        ratio = (up * other * z / (below * (n + 1)))[..., -1:]
        parts = np.stack(reached.derivatives()[:count])
        return parts, ratio, _State(*(v[..., -1:] for v in reached))

    def derivatives(self) -> list[Any]:
        """The derivatives of the terms, in the order of `SUMS`, each a product of three factors."""
        of_a = _Factor.rising(self.a_zeros, self.in_a, self.square_a)
        of_b = _Factor.rising(self.b_zeros, self.in_b, self.square_b)
        of_c = _Factor(1, -self.in_c, self.in_c * self.in_c + self.square_c)
        orders = [[name.count(letter) for letter in "abc"] for name in SUMS]
        return [self.product * of_a[i] * of_b[j] * of_c[k] for i, j, k in orders]


class _Factor(NamedTuple):
    """A product of factors that depend on one parameter and its derivatives, over `product`."""

    value: Any
    first: Any
    second: Any

    @classmethod
    def rising(cls, zeros: Any, total: Any, squares: Any) -> _Factor:
        """Of ``(a)_n``, where ``zeros`` factors are 0: the rule for products of 0 and the rest."""
        none, one = zeros == 0, zeros == 1
        first = np.where(none, total, np.where(one, 1, 0))
        second = np.where(none, total * total - squares, np.where(one, 2 * total, 0))
        return cls(np.where(none, 1, 0), first, second)


def _derivatives(*args: Any, order: int) -> dict[str, Any]:
    """The derivatives of 2F1(a, b; c; z) in a, b and c, for z < 1.

    For z < 0 by Pfaff's transformation, ``(1 - z)**-a F(a, c - b; c; z / (z - 1))`` (DLMF 15.8.1),
    whose argument is between 0 and 1.
    """
    a, b, c, z = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in args))
    below = z < 0
    f = _series(a, np.where(below, c - b, b), c, np.where(below, z / (z - 1), z), order)
    scale = np.where(below, np.power(np.abs(1 - z), -a), 1.0)
    log = np.where(below, np.log(np.abs(1 - z)), 0.0)
    sign, inner = np.where(below, -1.0, 1.0), np.where(below, 1.0, 0.0)  # d/db and d/dc of c - b
    found = {
        "a": f["a"] - log * f[""],
        "b": sign * f["b"],
        "c": f["c"] + inner * f["b"],
    }
    if order == 2:
        found |= {
            "aa": f["aa"] - 2 * log * f["a"] + log * log * f[""],
            "ab": sign * (f["ab"] - log * f["b"]),
            "ac": f["ac"] + inner * f["ab"] - log * (f["c"] + inner * f["b"]),
            "cc": f["cc"] + inner * (2 * f["bc"] + f["bb"]),
        }
    return {name: scale * value for name, value in found.items()}


def hyp2f1_der_a(a: Any, b: Any, c: Any, z: Any) -> Any:
    """d 2F1(a, b; c; z) / da, a float64 array; NaN unless z < 1."""
    return _derivatives(a, b, c, z, order=1)["a"]


def hyp2f1_der_c(a: Any, b: Any, c: Any, z: Any) -> Any:
    """d 2F1(a, b; c; z) / dc, a float64 array; NaN unless z < 1."""
    return _derivatives(a, b, c, z, order=1)["c"]


def hyp2f1_der_aa(a: Any, b: Any, c: Any, z: Any) -> Any:
    """The second derivative of 2F1(a, b; c; z) in a; see `hyp2f1_der_a`."""
    return _derivatives(a, b, c, z, order=2)["aa"]


def hyp2f1_der_ab(a: Any, b: Any, c: Any, z: Any) -> Any:
    """The derivative of 2F1(a, b; c; z) in a and b; see `hyp2f1_der_a`."""
    return _derivatives(a, b, c, z, order=2)["ab"]


def hyp2f1_der_ac(a: Any, b: Any, c: Any, z: Any) -> Any:
    """The derivative of 2F1(a, b; c; z) in a and c; see `hyp2f1_der_a`."""
    return _derivatives(a, b, c, z, order=2)["ac"]


def hyp2f1_der_cc(a: Any, b: Any, c: Any, z: Any) -> Any:
    """The second derivative of 2F1(a, b; c; z) in c; see `hyp2f1_der_c`."""
    return _derivatives(a, b, c, z, order=2)["cc"]
