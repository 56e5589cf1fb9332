"""Eigenvalues and eigenvectors of small symmetric matrices, which are computed without LAPACK."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import config
from phintys.backends.llvm.machine.target import current
from phintys.tensor.linalg import eigh, eigvalsh
from phintys.tensor.linalg.decomposition.eigen_routines import factor_hermitian
from phintys.tensor.linalg.decomposition.eigen_small import SMALL

DTYPES = ("float64", "float32")


def compiled(dtype, ndim=3, mode=None):
    x = pt.tensor("x", dtype=dtype, shape=(None,) * ndim)
    return phintys.function([x], [*eigh(x), eigvalsh(x)], mode=mode)


def symmetric(seed, *shape):
    x = np.random.default_rng(seed).normal(size=shape)
    return x + x.swapaxes(-1, -2)


def check(x, found):
    """Residuals, orthogonality, order and signs; the values are those without vectors.

    Eigenvalues of subnormal matrices are rounded to subnormal numbers.
    """
    w, v, values = found
    eps, n, least = np.finfo(x.dtype).eps, x.shape[-1], np.finfo(x.dtype).smallest_subnormal
    assert w.dtype == v.dtype == x.dtype
    assert w.tobytes() == values.tobytes()
    assert (np.diff(w) >= 0).all()
    w, v, x = (y.astype("float64") for y in (w, v, x))
    size = np.abs(x).max((1, 2), initial=0)
    size = np.where(size > 0, size, 1)[:, None, None]
    residuals = np.abs((x / size) @ v - v * (w / size[..., 0])[:, None])
    assert (residuals < 6 * n * eps + 2 * np.float64(least) / size).all()
    assert (np.abs(v.swapaxes(1, 2) @ v - np.eye(n)) < 4 * n * eps).all()
    large = np.abs(v) > 0.375 * np.abs(v).max(1, keepdims=True)
    firsts = np.take_along_axis(v, large.argmax(1)[:, None], 1)
    assert (firsts > 0).all()


def hard(n, dtype):
    """Matrices with equal, zero, huge, tiny and close eigenvalues, graded and split ones."""
    q = np.linalg.qr(symmetric(n, n, n))[0]
    k = np.arange(n)
    found = [np.zeros((n, n)), np.eye(n), np.ones((n, n)), np.diag(k[::-1] - 2.0)]
    found += [q @ np.diag(k // 2 - 1.0) @ q.T, q @ np.diag(1 + 1e-6 * k) @ q.T]
    grade = 10.0 ** np.minimum(k, 30)
    found += [symmetric(1, n, n) / np.outer(grade, grade)]
    found += [symmetric(1, n, n) / np.outer(grade, grade)[::-1, ::-1]]
    found += [np.where(np.abs(k - k[:, None]) < 2, symmetric(2, n, n), 0)]
    found += [np.where((k // 3) == (k[:, None] // 3), symmetric(3, n, n), 0)]
    close = 1 + 1e-14 * k if dtype == "float64" else 1 + 1e-6 * k
    found += [q @ np.diag(close) @ q.T, q @ np.diag(np.where(k < n // 2, 1, -3)) @ q.T]
    path = np.where(np.abs(k - k[:, None]) == 1, 1.0, 0)
    found += [2 * np.eye(n) - path, np.diag(np.abs(k - n // 2)) + path, path[::-1]]
    found += [np.eye(n) + 1e-9 * np.ones((n, n)), np.diag(k % 3) + 1e-17 * path]
    found = [(x + x.T) / 2 for x in found]
    limits = np.finfo(dtype)
    widest = np.logspace(-1, 1, n, base=float(limits.max) ** 0.49)
    found += [symmetric(7, n, n) * np.outer(g, g) for g in (widest, widest[::-1], 1 / widest)]
    scales = limits.max / 100, limits.tiny, 100 * limits.smallest_subnormal, 1e-7, 3e5
    found += [np.round(symmetric(4, n, n) * 64) / 64 * s for s in scales]
    return np.asarray(found).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hard_matrices(dtype):
    f = compiled(dtype)
    for n in (*range(1, 18), 25, SMALL):
        x = np.concatenate([hard(n, dtype), symmetric(n, 50, n, n).astype(dtype)])
        check(x, f(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_the_group(dtype):
    """A matrix alone, at each place of a group, beside matrices with NaN, at each width."""
    alone, together = compiled(dtype, 2), [compiled(dtype)]
    if current().is_x86 and current().register_bits > 256:
        with config.change_flags(cpu="x86-64-v3"):
            together.append(compiled(dtype))
    for n in (*range(1, 18), SMALL):
        x = np.concatenate([hard(n, dtype), symmetric(n, 8, n, n).astype(dtype)])
        one = [alone(v) for v in x]
        for f in together:
            for shift in (0, 1, 3):
                order = (np.arange(len(x)) + shift) % len(x)
                given = x[order]
                given[-2] = np.nan
                found = f(given)
                for place, k in enumerate(order):
                    if place != len(x) - 2:
                        assert [y[place].tobytes() for y in found] == [y.tobytes() for y in one[k]]
                assert all(np.isnan(y[-2]).all() for y in found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_triangle_is_read(dtype):
    """Alone and in groups, whose last one may have any number of matrices."""
    x = pt.tensor("x", dtype=dtype, shape=(None, None, None))
    lower, upper = (phintys.function([x], eigh(x, lower=part)) for part in (True, False))
    for n in (1, 2, 5, 8, 16, 17):
        matrices = symmetric(n, 17, n, n).astype(dtype)
        w, v = lower(matrices)
        for count in range(1, 18):
            given = matrices[:count] + np.triu(np.full((n, n), np.nan, dtype), 1)
            for f, y in ((lower, given), (upper, given.swapaxes(1, 2))):
                for found, expected in zip(f(y), (w, v), strict=True):
                    assert found.tobytes() == expected[:count].tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_interpreter(dtype):
    """The routine as Python code, with one number in a pack."""
    routine = factor_hermitian.python(dtype)
    for n in (1, 2, 3, 6):
        x = np.concatenate([hard(n, dtype), symmetric(n, 3, n, n).astype(dtype)])
        w, v, values = x[:, 0].copy(), np.zeros_like(x), x[:, 0].copy()
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            for vectors, found in ((1, w), (0, values)):
                given = x.ravel(), found.ravel(), v.ravel() if vectors else v[0].ravel().copy()
                work = [np.zeros(1, t) for t in (dtype, dtype, "int32")]
                assert routine(len(x), vectors, 1, n, 1, 1, 1, *given, *work) == 0
        check(x, [w, v, values])


def test_backends_agree():
    """Of eigenvectors, the first component above 3/8 of the largest one is positive."""
    x = symmetric(5, 6, 5, 5)
    x[2, 1, 0] = np.inf  # in the triangle that is read
    x[3, 0, 1] = np.nan
    expected = compiled("float64", mode="FAST_COMPILE")(x)
    for mode in ("FAST_RUN", "C"):
        for y, e in zip(compiled("float64", mode=mode)(x), expected, strict=True):
            np.testing.assert_allclose(y, e, rtol=1e-11, atol=1e-12)
    assert np.isnan(expected[1][2]).all()
    assert not np.isnan(expected[1][3]).any()


def test_one_matrix_of_many_columns():
    """LAPACK's vectors get the same signs, real and complex."""
    x = symmetric(6, 1, 40, 40)
    w, v, _ = compiled("float64")(x)
    check(x, [w, v, w])
    z = x[0] + 1j * np.triu(x[0], 1) - 1j * np.triu(x[0], 1).T
    w, v = phintys.function([], eigh(z))()
    np.testing.assert_allclose(z @ v, v * w, atol=1e-12)
    sizes = np.abs(v)
    firsts = v[(sizes > 0.375 * sizes.max(0)).argmax(0), np.arange(40)]
    assert (firsts.imag == 0).all()
    assert (firsts.real > 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_of_equal_eigenvalues_stay_in_order(dtype):
    f, g = compiled(dtype, 2), compiled(dtype)
    for n in (1, 2, 3, 8, 17):
        values = np.arange(n) // 2
        order = np.argsort(-values, kind="stable")
        for diagonal, expected in ((np.ones(n), np.eye(n)), (-values, np.eye(n)[:, order])):
            x = np.diag(diagonal).astype(dtype)
            for v in (f(x)[1], *g(np.stack([x] * 9))[1]):
                np.testing.assert_array_equal(v, expected)
