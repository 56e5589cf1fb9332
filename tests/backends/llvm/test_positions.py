"""Positions of extremes, in arrays longer than what one group of accumulators looks at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hand_built import by_target
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import few

import phintys.tensor as pt
from phintys import function
from phintys.scalar.dtypes import COMPLEX
from phintys.scalar.native import NATIVE_DTYPES
from phintys.tensor.type import TensorType

pytestmark = pytest.mark.widths

DTYPES = sorted(NATIVE_DTYPES.difference(COMPLEX))


@by_target
def compiled(op: str, dtype: str, axis: int | None, inner: bool) -> Any:
    x = TensorType(dtype, (None, None))("x")
    part = x[:, 1:-1] if inner else x  # whose rows cannot be joined
    return function([x], getattr(pt, op)(part, axis=axis))


def check(op: str, x: np.ndarray, axis: int | None, inner: bool) -> None:
    expected = getattr(np, op)(x[:, 1:-1] if inner else x, axis=axis)
    found = compiled(op, str(x.dtype), axis, inner)(x)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", few(DTYPES, "bool", "float32", "float64", "int8", "uint64"))
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_as_numpy(op: str, dtype: str, data: st.DataObject) -> None:
    rows, length = data.draw(st.integers(1, 3)), data.draw(st.integers(3, 9000))
    levels = data.draw(st.sampled_from([1, 2, 100]))  # few levels: many ties
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    x = rng.integers(0, levels, size=(rows, length)).astype(dtype)
    if x.dtype.kind == "f":
        specials = st.sampled_from([np.nan, np.inf, -np.inf, -0.0])
        for value in data.draw(st.lists(specials, max_size=3)):
            x[rng.integers(rows), rng.integers(length, size=data.draw(st.integers(1, 4)))] = value
    check(op, x, data.draw(st.sampled_from([None, 1])), data.draw(st.booleans()))


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_nothing_but_one_value(op: str, dtype: str, value: float) -> None:
    for length in (3, 40, 5000):
        for axis in (None, 1):
            check(op, np.full((2, length), value, dtype), axis, inner=False)
