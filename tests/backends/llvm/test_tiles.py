"""Loops over operands that lie in memory the other way round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phintys
import phintys.tensor as pt
from phintys.backends.llvm import tiles


@pytest.fixture(scope="module")
def smaller():
    """Tiles of two by three elements, in any array."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "HEIGHT", 2)
        patch.setattr(tiles, "WIDTH", 3)
        patch.setattr(tiles, "_LARGE", 1)
        yield


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_expressions_of_permuted_arrays(smaller, data):
    rank = data.draw(st.integers(2, 3))
    shape = data.draw(st.tuples(*[st.integers(1, 11)] * rank))
    orders = [data.draw(st.permutations(range(rank))) for _ in range(2)]
    dtype = data.draw(st.sampled_from(["float64", "float32", "int32", "bool"]))
    rng = np.random.default_rng(0)
    x = pt.tensor("x", dtype=dtype, shape=(None,) * rank)
    others = [pt.tensor(f"y{k}", dtype="float64", shape=(None,) * rank) for k in range(2)]
    values = [rng.integers(0, 4, shape).astype(dtype)]
    values += [rng.normal(size=[shape[order.index(k)] for k in range(rank)]) for order in orders]
    first, second = (y.transpose(order) for y, order in zip(others, orders))
    f = phintys.function([x, *others], [x * first + second, first - 1, x + second[..., ::-1]])
    a, b, c = values[0], values[1].transpose(orders[0]), values[2].transpose(orders[1])
    for result, expected in zip(f(*values), [a * b + c, b - 1, a + c[..., ::-1]]):
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 7), (300, 500), (512, 256)])
def test_sizes_around_tiles(shape):
    x, y = pt.matrix("x"), pt.matrix("y")
    f = phintys.function([x, y], [x + 2 * y.T, y.T * 1.5])
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=shape), rng.normal(size=shape[::-1])
    total, scaled = f(x, y)
    np.testing.assert_allclose(total, x + 2 * y.T)
    np.testing.assert_allclose(scaled, y.T * 1.5)


def test_failed_gathers_are_noticed_in_all_tiles(smaller):
    x, i = pt.matrix("x"), pt.lmatrix("i")
    f = phintys.function([x, i], x[i.T, 0] + x[:, :4].sum())
    with pytest.raises(IndexError):
        f(np.ones((5, 5)), np.full((7, 9), 5))
