"""Kernels with short rows, which take several rows at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phintys
import phintys.tensor as pt
from phintys import config
from phintys.scalar.dtypes import COMPLEX
from phintys.scalar.native import NATIVE_DTYPES

pytestmark = pytest.mark.widths

ROWS = st.sampled_from([0, 1, 3, 4, 7, 8, 16, 17, 37])
LENGTHS = st.integers(0, 9) | st.sampled_from([12, 16, 17, 24, 25, 31, 32, 33])
REALS = st.sampled_from(sorted(NATIVE_DTYPES.difference(COMPLEX)))
REDUCTIONS = ["sum", "prod", "max", "min", "argmax", "argmin", "any", "all"]


def assert_right(f, args, expected, **tolerance):
    for result, value in zip(f(*args), expected, strict=True):
        assert result.shape == value.shape
        np.testing.assert_allclose(result, value, **tolerance)


def numbers(rng, shape, dtype):
    if dtype.startswith("float"):
        x = rng.normal(size=shape).astype(dtype)
        x[rng.uniform(size=shape) < 0.02] = np.nan
        x[rng.uniform(size=shape) < 0.02] = -np.inf
        return x
    return rng.integers(0, 4, shape).astype(dtype)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), rows=ROWS, length=LENGTHS, dtype=REALS)
def test_reductions_of_rows(data, rows, length, dtype):
    known = data.draw(st.sampled_from([None, length]))
    names = data.draw(st.lists(st.sampled_from(REDUCTIONS), min_size=1, max_size=3, unique=True))
    if length == 0:
        names = [n for n in names if n in ("sum", "prod", "any", "all")] or ["sum"]
    if dtype == "bool":
        names = [n for n in names if n in ("sum", "any", "all")] or ["all"]
    x = pt.tensor("x", dtype=dtype, shape=(None, known))
    f = phintys.function([x], [getattr(pt, n)(x, axis=1) for n in names])
    values = numbers(np.random.default_rng(length), (rows, length), dtype)
    narrow = dtype in ("float16", "float32")  # sums may cancel
    wide = values.astype("float64") if narrow else values
    with np.errstate(all="ignore"):
        expected = [getattr(np, n)(wide, axis=1) for n in names]
        expected = [e.astype(dtype) if wide is not values else e for e in expected]
    assert_right(f, [values], expected, rtol=2e-3 if dtype == "float16" else 1e-5)


def views(data, shape):
    """A function from an array to a view of that shape, and the shape it starts from."""
    order = data.draw(st.permutations(range(len(shape))))
    steps = [data.draw(st.sampled_from([1, 1, -1, 2, -2])) for _ in shape]
    start = [shape[order.index(k)] * abs(steps[k]) for k in range(len(shape))]
    slices = tuple(slice(None, None, step) for step in steps)
    return lambda x: x[slices].transpose(order), start


@settings(max_examples=60, deadline=None)
@given(data=st.data(), rows=ROWS, length=LENGTHS, dtype=st.sampled_from(["float64", "float32"]))
def test_expressions_of_views_that_broadcast(data, rows, length, dtype):
    shape = (*data.draw(st.sampled_from([(), (2,), (3,)])), rows, length)
    first, a_shape = views(data, shape)
    second, b_shape = views(data, shape[-2:])
    x = pt.tensor("x", dtype=dtype, shape=(None,) * len(a_shape))
    y, z = pt.matrix("y", dtype=dtype), pt.vector("z", dtype=dtype)
    axis = data.draw(st.sampled_from([0, -1, -2, (-2, -1)]))

    def formulas(m, x, y, z):
        difference = (first(x) - z) * second(y)
        return [difference.sum(axis=axis), m.tanh(first(x)) * z, m.exp(difference).sum(axis=-1)]

    f = phintys.function([x, y, z], formulas(pt, x, y, z))
    rng = np.random.default_rng(rows)
    args = [rng.normal(size=s).astype(dtype) for s in (a_shape, b_shape, (length,))]
    tolerance = 1e-10 if dtype == "float64" else 1e-3
    assert_right(f, args, formulas(np, *args), rtol=tolerance, atol=tolerance)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, length=LENGTHS.filter(bool), dtype=st.sampled_from(["float64", "float32"]))
def test_several_passes_over_rows(rows, length, dtype):
    x, y = pt.matrix("x", dtype=dtype), pt.vector("y", dtype=dtype)

    def formulas(m, x, y):
        e = m.exp(x - m.max(x, axis=1, keepdims=True))
        centred = x - m.mean(x, axis=1, keepdims=True)
        scale = m.sqrt(m.mean(centred**2, axis=1, keepdims=True) + 0.1)
        best = m.argmax(x * y, axis=1)
        return [e / m.sum(e, axis=1, keepdims=True), centred / scale * y, best, x.max(axis=0)]

    f = phintys.function([x, y], formulas(pt, x, y))
    rng = np.random.default_rng(length)
    args = [
        rng.normal(size=(rows + 1, length)).astype(dtype),
        rng.normal(size=length).astype(dtype),
    ]
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    assert_right(f, args, formulas(np, *args), rtol=tolerance, atol=tolerance)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, length=LENGTHS.filter(bool))
def test_sums_over_rows_in_gradients(rows, length):
    x, mu = pt.vector("x"), pt.vector("mu")
    value = pt.log(pt.exp(-0.5 * (x[:, None] - mu[None, :]) ** 2).sum(axis=1)).sum()
    f = phintys.function([x, mu], [value, *phintys.grad(value, [x, mu])])
    rng = np.random.default_rng(rows)
    a, b = rng.normal(size=rows), rng.normal(size=length)
    gap = a[:, None] - b
    density = np.exp(-0.5 * gap**2)
    total = density.sum(axis=1, keepdims=True)
    slope = density / total * gap
    expected = [np.log(total).sum(), -slope.sum(axis=1), slope.sum(axis=0)]
    assert_right(f, [a, b], expected, rtol=1e-10, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(rows=ROWS, length=st.integers(1, 9), dtype=st.sampled_from(["float64", "int8", "bool"]))
def test_gathers_and_positions(rows, length, dtype):
    x, i = pt.matrix("x", dtype=dtype), pt.lvector("i")
    chosen = pt.eq(pt.arange(length), pt.mod(pt.arange(i.shape[0])[:, None], length))
    f = phintys.function([x, i], [x[i].max(axis=1), pt.where(chosen, x[i], x[0]), x[:, 0][i]])
    rng = np.random.default_rng(rows)
    values, at = rng.integers(0, 5, (6, length)).astype(dtype), rng.integers(-6, 6, rows)
    picked = np.arange(length) == np.arange(rows)[:, None] % length
    expected = [values[at].max(axis=1), np.where(picked, values[at], values[0]), values[at, 0]]
    assert_right(f, [values, at], expected)


def test_an_index_out_of_range_is_noticed_in_any_row():
    x, i = pt.matrix("x"), pt.lvector("i")
    f = phintys.function([x, i], pt.exp(x[i]).sum(axis=1))
    values, indices = np.ones((6, 3)), np.zeros(21, "int64")
    for bad in (0, 9, 15, 20):
        wrong = indices.copy()
        wrong[bad] = 6
        for at in (indices, indices, wrong, -wrong - 1):
            if np.ptp(at):
                with pytest.raises(IndexError):
                    f(values, at)
            else:
                np.testing.assert_allclose(f(values, at), np.full(21, 3 * np.e))


@pytest.mark.parametrize("rows", [5, 8, 64, 1001])
def test_updates_of_shared_variables_and_results_in_place(rows):
    start = np.random.default_rng(0).normal(size=(rows, 3))
    state = phintys.shared(start.copy())
    y = pt.vector("y")
    f = phintys.function([y], state.sum(axis=1), updates=[(state, pt.exp(-state) * y)])
    expected, factor = start, np.array([0.5, 1.0, 2.0])
    for _ in range(4):
        np.testing.assert_allclose(f(factor), expected.sum(axis=1))
        expected = np.exp(-expected) * factor
    np.testing.assert_allclose(state.get_value(), expected)


@pytest.mark.parametrize("shape", [(9, 3), (64, 8), (300, 5), (100_000, 3)])
def test_several_threads(shape):
    x, y = pt.matrix("x"), pt.vector("y")
    outputs = [pt.special.softmax(x * y, axis=1), pt.tanh(x + y), pt.exp(x).sum(axis=1)]
    with config.change_flags(threads=3):
        f = phintys.function([x, y], outputs)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=shape), rng.normal(size=shape[1])
    e = np.exp(x * y)
    expected = [e / e.sum(axis=1, keepdims=True), np.tanh(x + y), np.exp(x).sum(axis=1)]
    assert_right(f, [x, y], expected, rtol=1e-12)


def test_a_reduction_that_nothing_needs():
    """The length of the rows is then an argument of the function for short rows alone."""
    a, k = pt.matrix("a"), pt.lscalar("k")
    e = pt.second(pt.argmin(a, axis=0, keepdims=True), k)
    f = phintys.function([a, k], e, mode=phintys.Mode("llvm", None))
    for shape in ((3, 40), (40, 3), (40, 40)):
        np.testing.assert_array_equal(f(np.ones(shape), 7), np.full((1, shape[1]), 7))
