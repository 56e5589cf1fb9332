"""First and second derivatives of functions of determinants, whose cotangents may be quotients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import determinant_checks as checks
import mpmath
import numpy as np
import pytest
from tiers import few

import phintys
import phintys.tensor as pt

mpmath.mp.dps = 80
#: function of the determinant d; the same in mpmath
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "d": lambda m, d: d,
    "d / 3": lambda m, d: d / 3,
    "1 / (2 + d)": lambda m, d: 1 / (2 + d),
    "d**2": lambda m, d: d**2,
    "sqrt(1 + d**2)": lambda m, d: m.sqrt(1 + d**2),
    "tanh(d / 2)": lambda m, d: m.tanh(d / 2),
    "exp(-d**2)": lambda m, d: m.exp(-(d**2)),
    "1 / d": lambda m, d: 1 / d,
    "log(d**2)": lambda m, d: m.log(d**2),
    "log(abs(d))": lambda m, d: m.log(abs(d)),
    "log(sqrt(abs(d)))": lambda m, d: m.log(m.sqrt(abs(d))),
    "d / abs(d)": lambda m, d: d / abs(d),
    "slogdet": lambda m, d: m.log(abs(d)),
}
#: those without derivatives at zero
POLES = frozenset([*FUNCTIONS][-6:])


def expected(f: Callable[[Any, Any], Any], x: np.ndarray, t: np.ndarray) -> list[np.ndarray]:
    """The gradient, and its derivative along ``t``."""
    x, t = checks.exact(x), checks.exact(t)
    d, cofactors = checks.determinant(x), checks.cofactors(x)
    first, second = (mpmath.diff(lambda v: f(mpmath, v), d, k) for k in (1, 2))
    moved = checks.moved_cofactors(x, t)
    return [first * cofactors, second * cofactors * (cofactors * t).sum() + first * moved]


def given(name: str) -> np.ndarray:
    """Matrices whose determinants have both signs; singular ones, too."""
    rng = np.random.default_rng(5)
    regular = rng.normal(size=(8, 3, 3))
    assert min(np.linalg.det(regular)) < 0 < max(np.linalg.det(regular))
    if name in POLES:
        return regular
    singular = [rng.normal(size=(3, k)) @ rng.normal(size=(k, 3)) for k in (0, 1, 2, 2)]
    return np.array([*regular, *singular, np.arange(1.0, 10).reshape(3, 3) / 4])


@cache
def case(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices, directions, and the derivatives of a function there."""
    values = given(name)
    along = np.random.default_rng(1).normal(size=values.shape)
    f = FUNCTIONS[name]
    right = np.array([expected(f, *item) for item in zip(values, along)], float).swapaxes(0, 1)
    return values, along, right


@pytest.mark.parametrize("batched", few([False, True], True))
@pytest.mark.parametrize("name", few(FUNCTIONS, "1 / (2 + d)", "1 / d", "slogdet"))
def test_derivatives(name: str, batched: bool) -> None:
    x, t = (pt.dtensor3() if batched else pt.dmatrix() for _ in range(2))
    f = FUNCTIONS[name]
    y = pt.linalg.slogdet(x)[1] if name == "slogdet" else f(pt, pt.linalg.det(x))
    gradient = phintys.grad(y.sum(), x)
    outputs = [gradient, phintys.grad((gradient * t).sum(), x)]
    values, along, right = case(name)
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        g = phintys.function([x, t], outputs, mode=mode, on_unused_input="ignore")
        items = [g(*item) for item in zip(values, along)] if not batched else [g(values, along)]
        found = [np.array(v).reshape(values.shape) for v in zip(*items)]
        for v, e in zip(found, right):
            np.testing.assert_allclose(v, e, 1e-9, 1e-12 * (1 + abs(e).max()), err_msg=mode)


def test_logarithms_of_determinants_out_of_range() -> None:
    """The cotangent of the determinant is zero or infinite, its product with it is not."""
    x, t = pt.dmatrix(), pt.dmatrix()
    d = pt.linalg.det(x)
    for y in (pt.log(abs(d)), pt.log(d), pt.linalg.slogdet(x)[1]):
        g = phintys.grad(y, x)
        f = phintys.function([x, t], [g, phintys.grad((g * t).sum(), x)])
        for scale in (1e-120, 1e120):
            for n in (3, 40):
                value, along = np.random.default_rng(n).normal(size=(2, n, n))
                inverse = np.linalg.inv(value)
                first, second = f(scale * value, scale * along)
                tolerance = 1e-12 * abs(inverse).max()
                np.testing.assert_allclose(first * scale, inverse.T, 1e-9, tolerance)
                moved = -(inverse @ along @ inverse).T
                np.testing.assert_allclose(
                    second * scale, moved, 1e-9, tolerance * abs(moved).max()
                )
