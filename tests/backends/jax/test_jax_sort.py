"""Sorting on JAX: the reference's values, without a way back to Python."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt

pytest.importorskip("jax")

X = np.array([[3.0, -1.0, np.nan, 2.0], [0.5, 0.5, -np.inf, 7.0]])


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dtype", ["float64", "int8", "bool"])
def test_sort(axis, dtype):
    values = np.nan_to_num(X, neginf=0).astype(dtype)
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    outputs = [pt.sort(x, axis=axis), pt.argsort(x, axis=axis, stable=True)]
    found = phintys.function([x], outputs, mode="JAX")(values)
    expected = phintys.function([x], outputs, mode="FAST_COMPILE")(values)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_nan_is_last():
    x = pt.dmatrix("x")
    found = phintys.function([x], pt.sort(x), mode="JAX")(X)
    np.testing.assert_array_equal(found, np.sort(X))


def test_python_is_not_called():
    import jax

    from phintys.backends.jax import jax_funcify

    x = pt.dmatrix("x")
    fgraph = phintys.FunctionGraph([x], [pt.sort(x), pt.argsort(x)], clone=True)
    assert "callback" not in str(jax.make_jaxpr(jax_funcify(fgraph))(X))
