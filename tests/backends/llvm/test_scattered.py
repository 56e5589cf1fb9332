"""Reading and adding at computed positions beside other work in one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hand_built import by_target
from hypothesis import given, settings
from hypothesis import strategies as st

import phintys.tensor as pt
from phintys import function, grad
from phintys.lowering.program import Kernel
from phintys.tensor.type import TensorType

pytestmark = pytest.mark.widths

INDICES = ["int64", "int32", "int16", "uint8"]


@by_target
def misfit(dtype: str, index: str) -> Any:
    """A value and its gradient with respect to an array that is read at computed positions."""
    x, y = (TensorType(dtype, (None,))(name) for name in "xy")
    group = TensorType(index, (None,))("group")
    r = pt.exp(-((x[group] - y) ** 2))
    return function([x, y, group], [r.sum(), grad(r.sum(), x)])


def expected(x: np.ndarray, y: np.ndarray, group: np.ndarray) -> list[np.ndarray]:
    difference = x[group] - y
    r = np.exp(-(difference**2))
    slope = np.zeros_like(x)
    np.add.at(slope, group, -2 * difference * r)
    return [r.sum(), slope]


def draw_groups(data: st.DataObject, index: str) -> tuple[int, list[int]]:
    k = data.draw(st.integers(1, 12))
    least = 0 if index.startswith("u") else -k
    return k, data.draw(st.lists(st.integers(least, k - 1), max_size=40))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("index", INDICES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_value_and_gradient(dtype: str, index: str, data: st.DataObject) -> None:
    k, group = draw_groups(data, index)
    rng = np.random.default_rng(len(group))
    x, y = rng.normal(size=k).astype(dtype), rng.normal(size=len(group)).astype(dtype)
    positions = np.array(group, index)
    found = misfit(dtype, index)(x, y, positions)
    for a, b in zip(found, expected(x, y, positions), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12 if dtype == "float64" else 1e-4, atol=1e-5)


@pytest.mark.parametrize("index", INDICES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_position_out_of_range_is_found_anywhere(index: str, data: st.DataObject) -> None:
    k, group = draw_groups(data, index)
    bad = data.draw(st.sampled_from([k, k + 1, 99, *([] if index == "uint8" else [-k - 1, -99])]))
    group.insert(data.draw(st.integers(0, len(group))), bad)
    with pytest.raises(IndexError):
        misfit("float64", index)(np.ones(k), np.ones(len(group)), np.array(group, index))


@pytest.mark.parametrize("index", INDICES)
def test_nothing_to_read_from(index: str) -> None:
    value, slope = misfit("float64", index)(np.ones(0), np.ones(0), np.zeros(0, index))
    assert value == 0 and slope.shape == (0,)
    with pytest.raises(IndexError):
        misfit("float64", index)(np.ones(0), np.ones(3), np.zeros(3, index))


def test_sums_of_negative_zeros_keep_their_sign() -> None:
    x, y, group = pt.vector("x"), pt.vector("y"), pt.lvector("group")
    f = function([x, y, group], pt.inc_subtensor(x[group], y * y * y))
    found = f(np.array([-0.0, -0.0]), np.full(5, -0.0), np.ones(5, np.int64))
    np.testing.assert_array_equal(np.signbit(found), [True, True])


def test_values_and_their_scattered_sum_are_one_kernel() -> None:
    from phintys.compile.mode import get_mode
    from phintys.graph.fgraph import FunctionGraph
    from phintys.lowering.from_graph import lower_graph

    x, y, group = pt.vector("x"), pt.vector("y"), pt.lvector("group")
    r = (x[group] - y) ** 2
    graph = FunctionGraph([x, y, group], [r.sum(), grad(r.sum(), x)], clone=True)
    get_mode("FAST_RUN").optimizer.rewrite(graph)
    kernels = [s for s in lower_graph(graph, 3, []).steps if isinstance(s, Kernel)]
    both = [k for k in kernels if {"reduce", "accumulate"} <= {i.op for i in k.body}]
    assert len(kernels) == 2 and len(both) == 1
