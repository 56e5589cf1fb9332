"""Matrices of two or three rows that are written entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.linalg import from_entries

s, t, r, x, y, z = VECTORS = pt.dvectors(*"strxyz")
VALUES = [np.array(v) for v in ([0.5, 2], [3, 0.25], [0.5, -0.9], [1, 2], [-1, 3], [4.0, 0])]


def matrix(*rows: list[Any]) -> Any:
    return pt.stack([pt.stack(row, axis=-1) for row in rows], axis=-2)


ONE = pt.ones_like(r)
TWO = matrix([s**2, r * s * t], [r * s * t, t**2])
KERNEL = matrix([1 + s**2, pt.exp(-(t**2))], [pt.exp(-(t**2)), 1 + s**2])
GENERAL = matrix([x, y], [z, r])
THREE = (s**2)[:, None, None] * matrix([ONE, r, r**2], [r, ONE, r], [r**2, r, ONE])
COLUMN, LONG = pt.stack([x, y], axis=-1), pt.stack([x, y, z], axis=-1)


def factor_solution(m: Any, b: Any) -> Any:
    return pt.linalg.solve_triangular(pt.linalg.cholesky(m), b[..., None], lower=True)


#: results, and whether they are computed from entries
CASES = {
    "cholesky": (pt.linalg.cholesky(TWO), True),
    "inverse": (pt.linalg.inv(TWO), True),
    "determinant": (pt.linalg.det(TWO), True),
    "general inverse": (pt.linalg.inv(GENERAL), True),
    "general solution": (pt.linalg.solve(GENERAL, COLUMN, b_ndim=1), True),
    "kernel": (pt.linalg.cholesky(KERNEL), True),
    "kernel inverse": (pt.linalg.inv(KERNEL), True),
    "triangle": (factor_solution(TWO, COLUMN), True),
    "solution": (pt.linalg.solve(TWO, COLUMN[..., None]), True),
    "by the factor": (pt.linalg.cho_solve((pt.linalg.cholesky(TWO), True), COLUMN, b_ndim=1), True),
    "three rows": (pt.linalg.cholesky(THREE), True),
    "triangle of three": (factor_solution(THREE, LONG), True),
    "determinant of three": (pt.linalg.det(THREE), False),
    "two columns": (pt.linalg.solve(TWO, GENERAL), False),
    "upper factor": (pt.linalg.cholesky(TWO, lower=False), False),
}


@pytest.mark.parametrize("name", CASES)
def test_results(name: str) -> None:
    """They are those of the ops, which FAST_COMPILE applies, and so are derivatives."""
    v, known = CASES[name]
    f = phintys.function(VECTORS, v, mode="FAST_COMPILE", on_unused_input="ignore")
    expected = f(*VALUES)
    compiled = phintys.function(VECTORS, v, on_unused_input="ignore")
    np.testing.assert_allclose(compiled(*VALUES), expected, rtol=1e-10, atol=1e-12)
    if known:
        nodes = [node for node in compiled.maker.fgraph.apply_nodes]
        assert not any(isinstance(node.op, Blockwise) for node in nodes)
    if v.owner is not None and isinstance(v.owner.op, Blockwise):
        assert (from_entries(v.owner) is not None) == known


def test_pivots() -> None:
    """What cancels is not computed: near the correlation 1, and where a square is out of range."""
    log_det = pt.log(pt.linalg.det(TWO))
    near = pt.log(pt.linalg.det(KERNEL))
    outputs = [log_det, near, phintys.grad(log_det.sum(), s), pt.linalg.cholesky(TWO)[..., 1, 1]]
    f = phintys.function([s, t, r], outputs)
    small, gap = 1e-170, 2.0**-20
    found = f([small], [small], [1 - gap])
    left = 2 * gap - gap**2
    np.testing.assert_allclose(found[0], 4 * np.log(small) + np.log(left), rtol=1e-13)
    np.testing.assert_allclose(found[2], [2 / small], rtol=1e-13)
    np.testing.assert_allclose(found[3], [small * np.sqrt(left)], rtol=1e-13)
    found = f([1e-12], [1e-9], [0.0])
    np.testing.assert_allclose(found[1], np.log(2e-24 + 2e-18), rtol=1e-13)


def test_narrow_floats() -> None:
    a, b = pt.fvectors("a", "b")
    factor = pt.linalg.cholesky(matrix([a**2, a * b], [a * b, 2 * b**2]))
    assert factor.type.dtype == phintys.grad(factor.sum(), a).type.dtype == "float32"
    found = phintys.function([a, b], factor)(*np.array([[1e-30], [1e-25]], "float32"))
    np.testing.assert_allclose(found, [[[1e-30, 0], [1e-25, 1e-25]]], rtol=1e-6)
