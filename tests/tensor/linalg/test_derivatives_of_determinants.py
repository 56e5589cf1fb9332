"""First and second derivatives of determinants, of singular and of nearly singular matrices too.

They are polynomials: their errors are those of sums of products of rounded numbers.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import determinant_checks as checks
import mpmath
import numpy as np
import pytest
from tiers import few, rest

import phintys
import phintys.tensor as pt
from phintys.lowering.program import Python

mpmath.mp.dps = 80
FEW = (1, 3, 4)
#: mode, dtype, numbers of rows
CASES = [
    ("FAST_RUN", "float64", (1, 2, 3, 4)),
    ("FAST_RUN", "complex128", (1, 3)),
    ("FAST_COMPILE", "float64", (1, 2, 3)),
    *(
        pytest.param(*case, marks=rest)
        for case in (
            ("FAST_RUN", "float64", (5, 6, 16)),
            ("FAST_RUN", "complex128", (4,)),
            ("FAST_COMPILE", "float64", (4, 5)),
            ("C", "float64", (1, 3, 4, 6)),
            *((mode, "float64", (3,)) for mode in ("JAX", "NUMBA")),
            *(("FAST_RUN", dtype, FEW) for dtype in ("float32", "complex64")),
            *(("JAX", dtype, FEW) for dtype in ("float32", "complex128")),
            ("FAST_COMPILE", "complex128", FEW),
        )
    ),
]


def derivatives(x: pt.TensorVariable, t: pt.TensorVariable) -> list[pt.TensorVariable]:
    """The conjugate cofactors, their derivative along ``t`` in three ways."""
    d = pt.linalg.det(x)
    g = phintys.grad(pt.real(d).sum(), x)
    second = phintys.grad(pt.real(g * t).sum(), x)
    along = phintys.pushforward([g], [x], [t])
    (first,) = phintys.pushforward([d], [x], [t])
    both = phintys.pushforward([first], [x], [t])
    return [g, second, along[0] if isinstance(along, list) else along, both[0]]


def close(found: np.ndarray, expected: np.ndarray, size: float, eps: float) -> None:
    error = max(abs(np.ravel(checks.exact(np.asarray(found)) - expected)), default=0)
    assert error <= size * eps, (found, expected)


class Case(NamedTuple):
    """A matrix, a direction, and exact derivatives: the conjugate cofactors, and along it."""

    x: np.ndarray
    t: np.ndarray
    cofactors: np.ndarray
    moved: np.ndarray


@cache
def cases(n: int, dtype: str) -> list[Case]:
    rng = np.random.default_rng(n)
    conjugate, found = np.frompyfunc(mpmath.conj, 1, 1), []
    for x in list(checks.matrices(n, dtype))[:: 4 if n > 6 else 1]:
        x, t = x.astype(dtype), rng.normal(size=(n, n)).astype(dtype)
        given = checks.exact(x), checks.exact(t)
        derivatives = checks.cofactors(given[0]), checks.moved_cofactors(*given)
        found.append(Case(x, t, *map(conjugate, derivatives)))
    return found


@pytest.mark.parametrize(("mode", "dtype", "sizes"), CASES)
def test_derivatives(mode: str, dtype: str, sizes: tuple[int, ...]) -> None:
    """In batches that mix all kinds of matrices."""
    x, t = (pt.tensor(dtype=dtype, shape=(None,) * 3) for _ in range(2))
    outputs = derivatives(x, t)[: 1 if mode == "NUMBA" else 4]  # it compiles slowly
    f = phintys.function([x, t], outputs, mode=mode, on_unused_input="ignore")
    for n in sizes:
        given = cases(n, dtype)
        found = f(np.array([case.x for case in given]), np.array([case.t for case in given]))
        for k, case in enumerate(given):
            check_derivatives([np.asarray(v)[k] for v in found], case)


def check_derivatives(found: list[np.ndarray], case: Case) -> None:
    n, eps = len(case.x), 8 * len(case.x) * float(np.finfo(case.x.dtype).eps)
    norm = mpmath.sqrt(sum(abs(v) ** 2 for v in checks.exact(case.x).ravel())) or mpmath.mpf(1)
    length = mpmath.mpf(float(np.linalg.norm(case.t)))
    size = norm ** max(n - 2, 0) * length
    close(found[0], case.cofactors, norm ** (n - 1), eps)
    for moved in found[1:3]:
        close(moved, case.moved, size, eps)
    for number in found[3:]:
        expected = (checks.exact(case.t) * np.frompyfunc(mpmath.conj, 1, 1)(case.moved)).sum()
        close(number, expected, size * length, eps)


@pytest.mark.parametrize("mode", few(["FAST_RUN", "FAST_COMPILE"], "FAST_RUN"))
def test_single_matrices(mode: str) -> None:
    x, t = pt.dmatrix(), pt.dmatrix()
    f = phintys.function([x, t], derivatives(x, t), mode=mode)
    for n in (1, 2, 3, 5):
        for case in cases(n, "float64"):
            check_derivatives(f(case.x, case.t), case)
    if mode == "FAST_RUN":
        assert not [step for step in f.program.steps if isinstance(step, Python)]


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_third_derivatives(mode: str) -> None:
    """That of a determinant with three rows is a constant; where singular values are different."""
    x, t = pt.dmatrix(), pt.dmatrix()
    found = pt.linalg.det(x)
    for _ in range(3):
        found = (phintys.grad(found, x) * t).sum()
    f = phintys.function([x, t], found, mode=mode, on_unused_input="ignore")
    rng = np.random.default_rng(0)
    along, other = rng.normal(size=(2, 3, 3))
    for value in (np.eye(3), other, 1e3 * other, np.diag([1.0, 2, 0]), other * [1, 1, 0]):
        np.testing.assert_allclose(f(value, along), 6 * np.linalg.det(along), 1e-9)


@pytest.mark.parametrize("ndim", [2, 3])
def test_products_whose_determinants_are_products(ndim: int) -> None:
    """The determinants of factors have other errors than the inverse of the product."""
    a, b = (pt.tensor(dtype="float64", shape=(2, 3, 3)[-ndim:]) for _ in range(2))
    t = a.transpose(*range(ndim - 2), ndim - 1, ndim - 2)
    products = [pt.matmul(pt.tril(b), a), pt.matmul(t, a), t, pt.linalg.kron(a, b[..., :1, :1])]
    products += [pt.linalg.block_diag(a, b)]
    outputs = [phintys.grad(pt.linalg.det(x).sum(), x) for x in products]
    f = phintys.function([a, b], [*products, *outputs])
    rng = np.random.default_rng(4)
    for _ in range(10):
        value = rng.normal(size=(2, 3, 2)) @ rng.normal(size=(2, 2, 3))
        found = f(*((value, rng.normal(size=(2, 3, 3))) if ndim == 3 else (value[0], value[1])))
        for x, g in zip(found, found[len(products) :]):
            for item, cofactors in zip(x.reshape(-1, *x.shape[-2:]), g.reshape(-1, *g.shape[-2:])):
                expected = checks.cofactors(checks.exact(item))
                close(cofactors, expected, float(np.linalg.norm(item)) ** (len(item) - 1), 1e-14)
