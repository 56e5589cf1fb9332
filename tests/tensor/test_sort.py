"""Sorting: values, derivatives, batches."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tensor_checks import check, check_batched, check_derivatives
from tiers import few

import phintys
import phintys.tensor as pt

VALUES = np.array([[3.0, -1.0, np.nan, 2.0], [0.5, 0.5, -np.inf, 7.0]])


@pytest.mark.parametrize("axis", few([None, -1, 0, 1], None, 0))
@pytest.mark.parametrize(
    "dtype",
    few(
        ["float64", "float32", "float16", "int8", "uint64", "bool", "complex128"],
        *("float64", "float16", "int8", "complex128"),
    ),
)
def test_sort_is_numpys(axis, dtype):
    with np.errstate(invalid="ignore"):
        x = np.nan_to_num(VALUES, neginf=0).astype(dtype)
    check(lambda x: pt.sort(x, axis=axis), lambda x: np.sort(x, axis=axis), [x])
    check(
        lambda x: pt.argsort(x, axis=axis, stable=True),
        lambda x: np.argsort(x, axis=axis, stable=True),
        [x],
        dtype="int64",
    )


def test_nan_is_last():
    check(pt.sort, np.sort, [VALUES])


@cache
def compiled(ndim, axis):
    """A function of an array: its elements at their positions in order, and in order."""
    x = pt.TensorType("float64", (None,) * ndim)("x")
    positions = pt.argsort(x, axis=axis)
    outputs = [pt.take_along_axis(x, positions, axis=axis), pt.sort(x, axis=axis)]
    return phintys.function([x], outputs)


@given(
    arrays("float64", array_shapes(max_dims=3, max_side=4), elements=st.integers(-2, 2)), st.data()
)
def test_the_positions_give_the_elements_in_order(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    np.testing.assert_array_equal(*compiled(x.ndim, axis)(x))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_derivatives(axis):
    x = np.random.default_rng(0).permutation(12).reshape(3, 4) / 7.0
    weights = np.arange(1.0, 13.0).reshape(3, 4)
    w = weights.ravel() if axis is None else weights
    check_derivatives(lambda x: pt.sort(x, axis=axis) * w, [x])


def test_batch():
    x = np.random.default_rng(0).normal(size=(3, 4))
    check_batched(pt.sort, [x])


def test_methods():
    x = pt.dvector("x")
    assert x.sort().owner.op == pt.sort(x).owner.op
    assert x.argsort().owner.op == pt.argsort(x).owner.op


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"axis": 2}, "axis 2 is out of bounds for array of dimension 1"),
        ({"kind": "bubble"}, "no way of sorting called 'bubble'"),
        ({"kind": "stable", "stable": True}, "not both"),
        ({"order": "name"}, "fields of structured arrays"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        pt.sort(pt.dvector(), **arguments)


def test_of_diagonals():
    """The diagonal of a result that is stored is not contiguous in memory."""
    x = np.random.default_rng(0).normal(size=(2, 5, 5))
    variable = pt.dtensor3("x")
    stored = pt.matmul(variable, variable)
    single, batch = pt.diagonal(stored[0]), pt.diagonal(stored, 0, 1, 2)
    found = phintys.function([variable], [pt.argsort(single), pt.argsort(batch, axis=-1)])(x)
    diagonals = np.diagonal(x @ x, 0, 1, 2)
    for order, values in zip(found, (diagonals[0], diagonals)):
        np.testing.assert_array_equal(order, np.argsort(values, axis=-1))
