"""Gradients of functions of determinants, of which the cotangent is a quotient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt

#: function of the determinant d, the same function's derivative
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "d": (lambda d: d, lambda d: np.ones_like(d)),
    "d / 3": (lambda d: d / 3, lambda d: np.full_like(d, 1 / 3)),
    "1 / (2 + d)": (lambda d: 1 / (2 + d), lambda d: -1 / (2 + d) ** 2),
    "1 / d": (lambda d: 1 / d, lambda d: -1 / d**2),
    "d**2": (lambda d: d**2, lambda d: 2 * d),
    "log(d**2)": (lambda d: pt.log(d**2), lambda d: 2 / d),
    "log(abs(d))": (lambda d: pt.log(abs(d)), lambda d: 1 / d),
    "log(sqrt(abs(d)))": (lambda d: pt.log(pt.sqrt(abs(d))), lambda d: 0.5 / d),
    "sqrt(1 + d**2)": (lambda d: pt.sqrt(1 + d**2), lambda d: d / np.sqrt(1 + d**2)),
    "d / abs(d)": (lambda d: d / abs(d), lambda d: np.zeros_like(d)),
    "tanh(d / 2)": (lambda d: pt.tanh(d / 2), lambda d: 0.5 / np.cosh(d / 2) ** 2),
}
MATRICES = np.random.default_rng(5).normal(size=(6, 3, 3))


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient(name: str, batched: bool) -> None:
    """Determinants of both signs."""
    f, derivative = FUNCTIONS[name]
    x = pt.dtensor3() if batched else pt.dmatrix()
    gradient = phintys.grad(f(pt.linalg.det(x)).sum(), x)
    d = np.linalg.det(MATRICES)
    assert min(d) < 0 < max(d)
    inverse = np.linalg.inv(MATRICES).swapaxes(-1, -2)
    expected = (derivative(d) * d)[:, None, None] * inverse
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        g = phintys.function([x], gradient, mode=mode)
        found = g(MATRICES) if batched else np.array([g(a) for a in MATRICES])
        np.testing.assert_allclose(found, expected, 1e-10, 1e-10, err_msg=mode)
