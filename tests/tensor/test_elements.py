"""Tensors that are written element by element along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.tensor.elements import Shares, elements

x, y, z = VECTORS = pt.dvectors("x", "y", "z")
M = pt.dmatrix("M")
VALUES = [np.array(v) for v in ([0.5, 2, 1], [3, 0.25, -2], [0.5, -0.9, 4])]
STACK = pt.stack([x, y], axis=-1)
ROWS = pt.stack([STACK, pt.stack([z, x], axis=-1)], axis=-2)

#: tensors and axes along which they are written
CASES: dict[str, tuple[Any, int]] = {
    "stack": (STACK, 1),
    "function": (pt.exp(STACK) + z[:, None] * 2, 1),
    "vector": (pt.stack([x[0], y[1], z[2]]) ** 2, 0),
    "moved axes": (STACK.T[:, None] + 0, 0),
    "rows": (ROWS, 1),
    "columns": (ROWS * x[:, None, None], 2),
    "sum over rows": (pt.sum(ROWS, axis=1), 1),
    "logsumexp over columns": (pt.logsumexp(ROWS, axis=2), 1),
    "softmax": (pt.special.softmax(STACK, axis=1), 1),
    "log_softmax": (pt.special.log_softmax(pt.stack(VECTORS, axis=1), axis=1), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_elements(name: str) -> None:
    v, axis = CASES[name]
    shares: Shares = {}
    found = elements(v, axis, (), shares)
    assert found is not None
    f = phintys.function(VECTORS, [v, *found], mode="FAST_COMPILE", on_unused_input="ignore")
    whole, *parts = f(*VALUES)
    np.testing.assert_allclose(np.stack(parts, axis), whole, rtol=1e-14)
    assert (len(shares) > 0) == ("softmax" in name)


@pytest.mark.parametrize(
    ("v", "axis"),
    [
        (M, 1),
        (STACK, 0),
        (STACK + M, 1),
        (pt.concatenate([M, STACK], axis=1), 1),
        (pt.stack([x] * 5, axis=1), 1),
        (pt.special.softmax(ROWS, axis=(1, 2)), 1),
        (x[:, None], 1),
    ],
    ids=str,
)
def test_other_tensors(v: Any, axis: int) -> None:
    assert elements(v, axis, (), {}) is None


def test_variables_that_are_kept() -> None:
    assert elements(STACK * 2, 1, (STACK,), {}) is None
