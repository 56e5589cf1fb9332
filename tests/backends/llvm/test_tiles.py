"""Loops over operands that lie in memory the other way round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys.backends.llvm import costs
from phintys.scalar.native import NATIVE_DTYPES

pytestmark = pytest.mark.widths

# around the sides of tiles and of vectors
LENGTHS = st.sampled_from([1, 2, 15, 16, 17, 33, 48, 64, 65, 80])


@pytest.fixture(scope="module")
def smaller():
    """Tiles in any array that has room for one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs, "TILED_POINTS", 1)
        patch.setattr(costs, "TILE_LINES", 1)
        yield


@pytest.mark.own_width
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_expressions_of_permuted_arrays(smaller, data):
    check_permuted_arrays(data)


@rest
@pytest.mark.own_width
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_more_expressions_of_permuted_arrays(smaller, data):
    check_permuted_arrays(data)


def check_permuted_arrays(data):
    rank = data.draw(st.integers(2, 3))
    shape = data.draw(st.tuples(*[LENGTHS] * rank))
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


@st.composite
def views(draw, shape):
    """A function from an array of rank 3 to a view of that shape, and the shape it starts from."""
    order = draw(st.permutations(range(3)))
    steps = [draw(st.sampled_from([1, 1, 1, -1, 2, -2])) for _ in range(3)]
    start = [shape[order.index(k)] * abs(steps[k]) for k in range(3)]
    slices = tuple(slice(None, None, step) for step in steps)
    return lambda x: x[slices].transpose(order), start


of_any_dtype = given(data=st.data(), dtype=st.sampled_from(sorted(NATIVE_DTYPES)))


@pytest.mark.own_width
@settings(max_examples=20, deadline=None)
@of_any_dtype
def test_views_of_any_dtype(smaller, data, dtype):
    check_views(data, dtype)


@rest
@pytest.mark.own_width
@settings(max_examples=40, deadline=None)
@of_any_dtype
def test_more_views_of_any_dtype(smaller, data, dtype):
    check_views(data, dtype)


def check_views(data, dtype):
    shape = data.draw(st.tuples(*[LENGTHS] * 3).filter(lambda s: np.prod(s) <= 2**16))
    (first, a_shape), (second, b_shape) = data.draw(views(shape)), data.draw(views(shape))
    x, y = (pt.tensor(name, dtype=dtype, shape=(None,) * 3) for name in "xy")
    z = pt.tensor("z", dtype=dtype, shape=(1, None, None))
    maximum = pt.maximum(first(x), second(y))
    f = phintys.function([x, y, z], [pt.maximum(maximum, z), pt.neq(first(x), z)])
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(0, 100, s).astype(dtype) for s in (a_shape, b_shape, (1, *shape[1:])))
    largest, differ = f(a, b, c)
    np.testing.assert_array_equal(largest, np.maximum(np.maximum(first(a), second(b)), c))
    np.testing.assert_array_equal(differ, first(a) != c)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "int8"])
@pytest.mark.parametrize("order", [(2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
def test_same_bits_as_without_tiles(order, dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(1, 9, (64, 65, 80)).astype(dtype) for _ in range(2))
    x, y = (pt.tensor(name, dtype=dtype, shape=(None,) * 3) for name in "xy")
    f = phintys.function([x, y], x.transpose(order) * y - x.transpose(order))
    plain = phintys.function([x, y], x * y - x)
    turned = a.transpose(order)
    b = b.reshape(turned.shape)
    np.testing.assert_array_equal(f(a, b), plain(turned, b))


def test_memory_of_a_temporary_that_is_read_crosswise():
    x = pt.matrix("x")
    rows = pt.exp(x)[::-1] / x.sum()
    first = pt.specify_shape(x.T[:1], (1, None))
    f = phintys.function([x], [(rows.T + first) * 2, rows.T[::2] - 1])
    a = np.random.default_rng(0).normal(size=(130, 90))
    total = np.exp(a)[::-1] / a.sum()
    np.testing.assert_allclose(f(a)[0], (total.T + a.T[:1]) * 2, rtol=1e-12)
    np.testing.assert_allclose(f(a)[1], total.T[::2] - 1, rtol=1e-12)


@settings(max_examples=20, deadline=None)
@given(rows=LENGTHS, length=LENGTHS, axis=st.integers(0, 2))
def test_sums_of_what_lies_crosswise(smaller, rows, length, axis):
    x, y = pt.tensor3("x"), pt.tensor3("y")
    f = phintys.function([x, y], (x + y.transpose(0, 2, 1) * 2).sum(axis))
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, rows, length)), rng.normal(size=(3, length, rows))
    expected = (a + b.transpose(0, 2, 1) * 2).sum(axis)
    np.testing.assert_allclose(f(a, b), expected, rtol=1e-9, atol=1e-11)
