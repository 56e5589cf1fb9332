"""Division by a number that stays the same in a loop: compared with NumPy's, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hand_built import by_target
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phintys import function
from phintys.tensor.type import TensorType

pytestmark = pytest.mark.widths

INTEGERS = {"float64": "uint64", "float32": "uint32"}


@by_target
def quotient(dtype: str, ndim: int):
    x, y = TensorType(dtype, (None,) * ndim)("x"), TensorType(dtype, (None,) * (ndim - 1))("y")
    return function([x, y], x / (y if ndim == 1 else y[:, None]))


def special_values(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    sizes = [0, np.inf, np.nan, 1, 3, 0.1, 2, 0.5, info.max, info.tiny, info.smallest_subnormal]
    sizes += [info.max / 2, info.max / 3, info.tiny * 3, info.eps, 1 + info.eps, 1 - info.epsneg]
    return np.array([*sizes, *(-s for s in sizes)], dtype)


def check(dtype: str, x: np.ndarray, y: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        expected = x / (y if x.ndim == 1 else y[:, None])
        found = quotient(dtype, x.ndim)(x, y)
        exact = np.isfinite(expected) & (x == (y if x.ndim == 1 else y[:, None]) * np.rint(found))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[there], np.signbit(expected)[there])
    bits = [np.abs(a[there]).view(INTEGERS[dtype]).astype(object) for a in (found, expected)]
    assert np.all(np.abs(bits[0] - bits[1]) <= 1)
    whole = exact & (expected == np.rint(expected)) & (np.abs(expected) < 1000)
    np.testing.assert_array_equal(found[whole], expected[whole])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_special_values(dtype: str) -> None:
    values = special_values(dtype)
    for y in values:
        check(dtype, values, np.asarray(y))
    check(dtype, np.tile(values, (len(values), 1)), values)


@pytest.mark.parametrize("dtype", INTEGERS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_bits(dtype: str, data: st.DataObject) -> None:
    bits = st.integers(0, 2 ** (8 * np.dtype(dtype).itemsize) - 1)
    one = data.draw(bits)
    y = np.array([one], INTEGERS[dtype]).view(dtype)[0]
    seed, length = data.draw(st.integers(0, 2**32)), data.draw(st.integers(1, 40))
    x = np.random.default_rng(seed).bytes(length * y.itemsize)
    check(dtype, np.frombuffer(x, dtype), np.asarray(y))


@pytest.mark.parametrize("dtype", INTEGERS)
@given(seed=st.integers(0, 2**32))
@example(seed=0)
@settings(max_examples=30, deadline=None)
def test_nearly_always_the_nearest_number(dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=1000).astype(dtype), rng.normal(size=()).astype(dtype)
    assert np.count_nonzero(quotient(dtype, 1)(x, y) != x / y) <= 1
    whole = np.arange(-500, 500).astype(dtype)
    np.testing.assert_array_equal(
        quotient(dtype, 1)(whole * np.float32(3), np.asarray(3, dtype)), whole
    )
