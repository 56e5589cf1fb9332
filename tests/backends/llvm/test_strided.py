"""Arguments in any memory layout are copied as NumPy copies them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hand_built import by_target
from hypothesis import given, settings
from hypothesis import strategies as st

from phintys import function
from phintys.backends.llvm.machine.target import Target, current
from phintys.backends.llvm.runtime import cells
from phintys.scalar.dtypes import ALL
from phintys.tensor.type import TensorType

pytestmark = pytest.mark.widths

DTYPES = sorted(ALL)
STEPS = st.sampled_from([1, 1, 2, 3, -1, -2])


@st.composite
def views(draw: Any, rank: int, most: int) -> np.ndarray:
    """Numbers, of 8 bytes, seen in some order: permuted, sliced, repeated."""
    steps = [draw(STEPS) for _ in range(rank)]
    lengths = [draw(st.integers(1, most)) for _ in range(rank)]
    shape = [n * abs(s) for n, s in zip(lengths, steps)]
    view = np.arange(np.prod(shape)).reshape(shape)[tuple(slice(None, None, s) for s in steps)]
    if draw(st.booleans()):
        axis = draw(st.integers(0, rank - 1))
        first = tuple(slice(1) if k == axis else slice(None) for k in range(rank))
        view = np.broadcast_to(view[first], view.shape)
    return view.transpose(draw(st.permutations(range(rank))))


_SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    *([ctypes.c_void_p] * 2),
    ctypes.c_int64,
    *([ctypes.c_void_p] * 2),
    ctypes.c_int64,
)


def native() -> Any:
    return _SIGNATURE(cells.strided_library(current()).address("strided"))


@given(st.integers(1, 4).flatmap(lambda rank: views(rank, 20)), st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=150, deadline=None)
def test_any_view(view: np.ndarray, size: int) -> None:
    numbers = np.arange(view.max() + 1).astype(f"uint{8 * size}")
    # the same places in memory of another element size
    source = np.lib.stride_tricks.as_strided(
        numbers[view.flat[0] :], view.shape, [s // 8 * size for s in view.strides]
    )
    found = np.zeros(view.shape, numbers.dtype)
    pointers = (found.ctypes.data, source.ctypes.data, view.ndim)
    assert native()(*pointers, source.ctypes.shape, source.ctypes.strides, size) == 1
    np.testing.assert_array_equal(found, source)


def test_tiles() -> None:
    for shape in ((400, 500), (17, 300, 300), (3, 1000, 200)):
        numbers = np.random.default_rng(0).normal(size=shape)
        for view in (numbers.T, numbers[..., ::-1].T, numbers[::-1].swapaxes(-1, -2)):
            found = np.zeros(view.shape)
            pointers = (found.ctypes.data, view.ctypes.data, view.ndim)
            assert native()(*pointers, view.ctypes.shape, view.ctypes.strides, 8) == 1
            np.testing.assert_array_equal(found, view)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@given(
    shape=st.tuples(*[st.sampled_from([1, 2, 7, 15, 16, 17, 63, 64, 65, 130])] * 2),
    outer=st.integers(1, 3),
    step=STEPS,
    columns=st.integers(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_sides_of_tiles(
    size: int, shape: tuple[int, int], outer: int, step: int, columns: int
) -> None:
    rows, length = shape
    numbers = np.random.default_rng(0).integers(0, 100, (outer, length + columns, rows))
    numbers = numbers.astype(f"uint{8 * size}")
    view = numbers[:, :length][:, ::step].swapaxes(1, 2)
    found = np.zeros((view.size + 1,), numbers.dtype)
    pointers = (found.ctypes.data, view.ctypes.data, view.ndim)
    assert native()(*pointers, view.ctypes.shape, view.ctypes.strides, size) == 1
    np.testing.assert_array_equal(found[:-1].reshape(view.shape), view)
    assert found[-1] == 0


@by_target
def doubled(dtype: str, rank: int) -> Any:
    x = TensorType(dtype, (None,) * rank)("x")
    return function([x], x.transpose(*reversed(range(rank))) if dtype == "bool" else x + x)


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.integers(1, 3).flatmap(lambda rank: views(rank, 40)))
@settings(max_examples=25, deadline=None)
def test_arguments(dtype: str, view: np.ndarray) -> None:
    source = (view % 100).astype(dtype, order="K")
    expected = source.T if dtype == "bool" else source + source
    np.testing.assert_array_equal(doubled(dtype, view.ndim)(source), expected)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_the_library_cannot_be_made(error: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the call's; the next call tries again."""
    f, cell, make = doubled("float64", 2), cells.strided(current()), cells.strided_library
    value = np.ones((5, 3)).T
    cell._word.value = None

    def fail(target: Target) -> None:
        raise error("no")

    monkeypatch.setattr(cells, "strided_library", fail)
    for _ in range(2):
        with pytest.raises(error, match="no"):
            f(value)
    monkeypatch.setattr(cells, "strided_library", make)
    np.testing.assert_array_equal(f(value), value + value)
    assert cell._word.value


def test_what_numpy_has_to_copy() -> None:
    f = doubled("float64", 2)
    numbers = np.random.default_rng(0).normal(size=(60, 70))
    records = np.zeros((60, 70), [("a", "i1"), ("b", "f8")])
    records["b"] = numbers
    for odd in (records["b"], numbers.astype(">f8"), numbers.astype(">f8").T, numbers[:0].T):
        np.testing.assert_array_equal(f(odd), odd + odd)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_small_arguments(dtype: str) -> None:
    f = doubled(dtype, 2)
    numbers = np.arange(60).astype(dtype).reshape(6, 10)
    views = numbers.T, numbers[:, ::-1], numbers[::2, 3:5], numbers[:, :0], numbers[:1].repeat(3, 0)
    views = (*views, np.broadcast_to(numbers[0], (4, 10)), np.broadcast_to(numbers[:, :1], (6, 7)))
    for view in views:
        np.testing.assert_array_equal(f(view), view + view)
