"""Rows taken by number: whole vectors of them are moved at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hand_built import by_target
from hypothesis import given, settings
from hypothesis import strategies as st

import phintys.tensor as pt
from phintys import function, grad
from phintys.backends.llvm.kernel.indexed import rows_of
from phintys.compile.io import In
from phintys.lowering.program import Kernel
from phintys.tensor.type import TensorType

pytestmark = pytest.mark.widths

LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]
cases = st.tuples(
    st.sampled_from(LENGTHS),
    st.integers(1, 6),
    st.lists(st.integers(-6, 5), max_size=9),
    st.integers(0, 2**32 - 1),
)


def made(case: Any, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    length, count, numbers, seed = case
    x = np.random.default_rng(seed).normal(size=(count, length)) * 20
    index = np.array([n % count - count * (n < 0) for n in numbers], dtype="int64")
    return (x > 0 if dtype == "bool" else x.astype(dtype)), index


@by_target
def gather(dtype: str) -> Any:
    x, i = TensorType(dtype, (None, None))("x"), pt.lvector("i")
    return function([x, i], pt.eq(x[i], x[i[::-1]]) if dtype == "bool" else x[i] + 2 * x[i[::-1]])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "bool"])
@given(cases)
@settings(max_examples=30, deadline=None)
def test_gather(dtype: str, case: Any) -> None:
    x, i = made(case, dtype)
    wanted = x[i] == x[i[::-1]] if dtype == "bool" else x[i] + x.dtype.type(2) * x[i[::-1]]
    np.testing.assert_array_equal(gather(dtype)(x, i), wanted)


@by_target
def gradient() -> Any:
    x, i = pt.matrix("x"), pt.lvector("i")
    rows = x[i]
    shifted = rows - pt.max(rows, axis=1, keepdims=True)
    value = pt.sum(shifted - pt.log(pt.sum(pt.exp(shifted), axis=1, keepdims=True)), axis=1)
    return function([x, i], [value, grad(pt.sum(x[i] ** 3), x)])


@given(cases.filter(lambda case: case[0] > 0))
@settings(max_examples=60, deadline=None)
def test_rows_in_several_loops_and_sums_of_rows(case: Any) -> None:
    x, i = made(case, "float64")
    value, slope = gradient()(x, i)
    rows = x[i] - x[i].max(axis=1, keepdims=True)
    rows = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(value, rows.sum(axis=1), rtol=1e-12)
    wanted = np.zeros_like(x)
    np.add.at(wanted, i, 3 * x[i] ** 2)
    np.testing.assert_allclose(slope, wanted, rtol=1e-12)


@by_target
def writing(name: str) -> Any:
    x, i, y = pt.matrix("x"), pt.lvector("i"), pt.matrix("y")
    return function([In(x, borrow=True), i, y], getattr(pt, name)(x[i], y))


@pytest.mark.parametrize("name", ["set_subtensor", "inc_subtensor"])
@given(cases)
@settings(max_examples=60, deadline=None)
def test_writes(name: str, case: Any) -> None:
    x, i = made(case, "float64")
    y = np.arange(i.size * x.shape[1], dtype="float64").reshape(
        i.size, -1 if i.size else x.shape[1]
    )
    wanted = x.copy()
    if name == "set_subtensor":
        wanted[i] = y
    else:
        np.add.at(wanted, i, y)
    np.testing.assert_allclose(writing(name)(x, i, y), wanted, rtol=1e-12)


def test_out_of_range() -> None:
    f, x = gather("float64"), np.ones((3, 5))
    for wrong in (3, -4):
        with pytest.raises(IndexError):
            f(x, np.array([0, wrong, 1]))


def test_which_operands_are_rows() -> None:
    def found(*expressions: Any) -> list[int]:
        steps = function([*inputs], [*expressions]).program.steps
        return [len(rows_of(step)) for step in steps if isinstance(step, Kernel)]

    x, v, i = pt.matrix("x"), pt.vector("v"), pt.lvector("i")
    inputs = (x, v, i)
    assert max(found(x[i] * 2, v * 1)) == 1
    assert max(found(v[i] * 2, x * 1)) == 0


@pytest.mark.parametrize("ndim", [1, 2])
def test_writing_the_same_number_again_and_again(ndim: int) -> None:
    """The innermost loop has nothing to do: what it would write does not depend on its counter."""
    c, i = pt.vector("c"), TensorType("int64", (None,) * ndim)("i")
    f = function([c, i], pt.set_subtensor(c[pt.zeros_like(i)], 2.0))
    np.testing.assert_array_equal(f(np.arange(4.0) + 5, np.ones((3,) * ndim, int)), [2, 6, 7, 8])
