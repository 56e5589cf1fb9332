"""Small matrices of a batch are eliminated in groups, one in each lane; a single one in rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.tensor import linalg

DTYPES = ("float64", "float32")


def compiled(make: Callable[[Any], Any], dtype: str) -> tuple[Any, Any]:
    """A function of one matrix, and one of a batch."""
    xs = [pt.tensor("x", dtype=dtype, shape=(None,) * ndim) for ndim in (2, 3)]
    one, many = (phintys.function([x], make(x)) for x in xs)
    return one, many


def batch(m: int, n: int, dtype: str) -> Any:
    """Matrices; rows of the first sixteen ones are not exchanged, so that groups stay as they are.

    Others have NaN, infinity, equal numbers, zeros, and numbers so large that sums overflow.
    """
    a = np.random.default_rng(m + 31 * n).normal(size=(45, m, n))
    k = min(m, n)
    a[:16, :k, :k] += 10 * m * np.eye(k)
    a[20, m - 1, 0] = np.nan
    a[21, 0, n - 1] = np.inf
    a[22], a[23] = 49.0, 0.0
    a = a.astype(dtype)
    a[24] = np.sign(a[24]) * np.finfo(dtype).max * 0.9
    return a


def assert_equal(one: Any, many: Any, a: Any) -> None:
    """The bits of results do not depend on the group, but for those of NaN."""
    found = many(a)
    for k, item in enumerate(a):
        for x, y in zip(one(item), found, strict=True):
            np.testing.assert_array_equal(x, y[k])
            np.testing.assert_array_equal(np.signbit(x[x == 0]), np.signbit(y[k][y[k] == 0]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions(dtype: str) -> None:
    one, many = compiled(lambda x: [linalg.solve(x, x[..., :1]), linalg.solve(x, x)], dtype)
    for n in (1, 2, 3, 4, 7, 8, 9, 16, 17, 24):
        assert_equal(one, many, batch(n, n, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_inverses_and_factors(dtype: str) -> None:
    one, many = compiled(
        lambda x: [linalg.inv(x), linalg.cholesky(x), linalg.cholesky(x, lower=False)], dtype
    )
    for n in (1, 2, 3, 5, 8, 11, 16, 24):
        a = batch(n, n, dtype)[:20]
        assert_equal(one, many, a)
        bound = np.finfo(dtype).eps * 4 * n * np.linalg.cond(a)
        assert (np.abs(a @ many(a)[0] - np.eye(n)).max((1, 2)) < bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_of_any_shape(dtype: str) -> None:
    one, many = compiled(lambda x: list(linalg.lu(x)), dtype)
    for m, n in ((5, 3), (3, 5), (17, 4), (4, 17), (1, 6), (6, 1), (16, 16), (24, 23)):
        a = batch(m, n, dtype)
        assert_equal(one, many, a)
        p, lower, u = many(a[:20])
        np.testing.assert_allclose(p @ lower @ u, a[:20], rtol=1e-4, atol=1e-3)


@pytest.mark.widths
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_exchanged_in_one_step(dtype: str) -> None:
    """Other steps are done two at a time."""
    one, many = compiled(
        lambda x: [linalg.inv(x), linalg.solve(x, x[..., :3]), *linalg.lu(x)], dtype
    )
    for n in (5, 6, 9, 16):
        x = batch(n, n, dtype)[:16]
        groups = [x]
        for k in range(n - 1):
            order = np.arange(n)
            order[k : k + 2] = k + 1, k
            groups.append(x[:, order])
        a = np.concatenate(groups)
        assert_equal(one, many, a)
        inverse, _, p, lower, u = many(a)
        np.testing.assert_allclose(p @ lower @ u, a, rtol=1e-4, atol=1e-3)
        assert np.abs(a @ inverse - np.eye(n)).max() < 100 * n * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinants(dtype: str) -> None:
    """Rows are exchanged in a group, in none of its lanes, in some."""
    _, many = compiled(lambda x: [linalg.det(x), *linalg.slogdet(x)], dtype)
    for n in (1, 2, 3, 6, 8, 13, 16, 24):
        a = batch(n, n, dtype)
        det, sign, logarithm = many(a)
        assert np.isnan(det[20:22]).all() and np.isnan(logarithm[20:22]).all()
        assert n == 1 or (not det[22:24].any() and (logarithm[22:24] == -np.inf).all())
        for good in (slice(0, 20), slice(25, None)):
            expected = np.linalg.slogdet(a[good].astype("float64"))
            np.testing.assert_array_equal(sign[good], expected[0])
            np.testing.assert_allclose(logarithm[good], expected[1], rtol=1e-3, atol=1e-3)
