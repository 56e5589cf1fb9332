"""Vectors of one array at constant distances, some of which are shuffled instead of loaded."""

from __future__ import annotations

import ctypes
import mmap
import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phintys
import phintys.tensor as pt
from phintys.backends.llvm import costs
from phintys.backends.llvm.kernel import kernels
from phintys.lowering.program import Kernel

pytestmark = pytest.mark.widths


@pytest.fixture(scope="module", autouse=True)
def at_all_widths():
    """Vectors are shuffled also where they are shorter than a cache line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs, "NEIGHBOUR_BYTES", 16)
        yield


@pytest.fixture
def fresh():
    """No texts of kernels are kept."""
    kernels._emit.cache_clear()
    yield
    kernels._emit.cache_clear()


DTYPES = ["float64", "float32", "int32", "int64", "uint32", "int16", "uint8", "bool", "complex128"]


def near(x, shift, margin):
    """The part of an array (its last axis) without ``margin`` elements at both ends, shifted."""
    return x[..., margin + shift : max(x.shape[-1] + shift - margin, 0)]


def near_of(x, shift, margin):
    stop = shift - margin
    return x[..., margin + shift : stop if stop else None]


def weighted(parts):
    """A sum that depends on the order of the parts, exact in all dtypes."""
    result = parts[0]
    for k, part in enumerate(parts[1:], 2):
        result = result ^ part if str(part.dtype) == "bool" else result + part * part.dtype.type(k)
    return result


def random(rng, shape, dtype):
    values = rng.integers(0, 9, shape)
    return values > 4 if dtype == "bool" else values.astype(dtype)


def check(dtype, shifts, lengths, rows=None):
    margin = max(map(abs, shifts))
    x = pt.tensor("x", dtype=dtype, shape=(None,) * (1 if rows is None else 2))
    parts = [near_of(x, shift, margin) for shift in shifts]
    total = parts[0]
    for k, part in enumerate(parts[1:], 2):
        total = total ^ part if dtype == "bool" else total + part * np.asarray(k, dtype)
    f = phintys.function([x], total)
    rng = np.random.default_rng(0)
    for n in lengths:
        shape = (n,) if rows is None else (rows, n)
        value = random(rng, shape, dtype)
        expected = weighted([near(value, shift, margin) for shift in shifts])
        if n >= 2 * margin:
            np.testing.assert_array_equal(f(value), expected)


@pytest.mark.parametrize("shifts", [(-1, 0, 1), (0, 1), (2, -2), (-1, 1, -1, 3), (-8, 0, 9)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_lengths(dtype, shifts):
    check(dtype, shifts, range(71))


@pytest.mark.own_width
@settings(max_examples=40, deadline=None)
@given(
    dtype=st.sampled_from(DTYPES),
    shifts=st.lists(st.integers(-20, 20), min_size=2, max_size=6),
    lengths=st.lists(st.integers(0, 150), min_size=3, max_size=6),
    rows=st.sampled_from([None, 1, 3]),
)
def test_any_shifts(dtype, shifts, lengths, rows):
    check(dtype, shifts, lengths, rows)


def shuffles(inputs, output):
    """The number of vectors that the longest kernel makes of two others."""
    steps = phintys.function(inputs, output).program.steps
    texts = [kernels.emit_kernel(step).ir for step in steps if isinstance(step, Kernel)]
    return len(re.findall(r"shufflevector <\d+ x i64> %h", max(texts, key=len)))


@pytest.mark.own_width
def test_which_vectors_are_shuffled(fresh, monkeypatch):
    x, y = pt.dvectors("x", "y")
    of_three = x[2:] + 3 * x[1:-1] - x[:-2]
    assert shuffles([x], of_three) == 1
    assert shuffles([x], pt.set_subtensor(x[1:-1], of_three)) == 1
    assert shuffles([x], x[4:] + x[3:-1] + x[2:-2] + x[1:-3] - x[:-4]) == 2
    assert shuffles([x], x[1:] - x[:-1]) == 1
    assert shuffles([x, y], x[1:] - y[:-1]) == 0
    assert shuffles([x], x[100:] - x[:-100]) == 0  # too far
    monkeypatch.setattr(costs, "NEIGHBOUR_BYTES", 1000)
    kernels._emit.cache_clear()
    assert shuffles([x], of_three) == 0


def test_shifted_indices_are_checked_in_active_lanes_only():
    """Inactive lanes hold numbers of the array that are not indices."""
    x, i = pt.dvector("x"), pt.lvector("i")
    f = phintys.function([x, i], x[i[1:-6]] - x[i[:-7]])
    value = np.random.default_rng(0).normal(size=50)
    for n in range(7, 71):
        indices = np.random.default_rng(n).integers(-50, 50, n)
        indices[-6:] = 10**12
        result = value[indices[1:-6]] - value[indices[:-7]]
        np.testing.assert_array_equal(f(value, indices), result)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 40, 41])
def test_reductions_over_neighbours(n):
    x = pt.matrix("x")
    inner = pt.tanh(x[:, 2:] - x[:, :-2]) * pt.cos(x[:, 1:-1])
    f = phintys.function([x], [inner.sum(), inner.max(axis=1, initial=-5.0)])
    value = np.random.default_rng(n).normal(size=(3, n + 2))
    inner = np.tanh(value[:, 2:] - value[:, :-2]) * np.cos(value[:, 1:-1])
    total, largest = f(value)
    np.testing.assert_allclose(total, inner.sum(), atol=1e-12)
    np.testing.assert_allclose(largest, inner.max(axis=1, initial=-5), rtol=1e-12)


def test_blocks_between_polls(monkeypatch):
    """The vectors that are kept are found again after a poll."""
    monkeypatch.setattr(costs, "POLL_NANOSECONDS", 1)
    monkeypatch.setattr(costs, "DENSE_NANOSECONDS", 0)
    x = pt.dvector("x")
    f = phintys.function([x], pt.tanh(x[2:]) - x[1:-1] * x[:-2])
    for n in (2, 3, 17, 18, 19, 100, 333):
        value = np.random.default_rng(n).normal(size=n)
        expected = np.tanh(value[2:]) - value[1:-1] * value[:-2]
        np.testing.assert_allclose(f(value), expected, rtol=1e-14)


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect by ctypes")
def test_nothing_outside_of_the_array_is_read():
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 3 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    for guard in (start, start + 2 * page):
        assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) == 0
    try:
        _read_at_ends(start + page, page)
    finally:
        for guard in (start, start + 2 * page):
            libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 3)


def _read_at_ends(start, page):
    x, y = pt.dvector("x"), pt.fvector("y")
    f = phintys.function([x], x[5:] + x[3:-2] - 2 * x[:-5])
    g = phintys.function([y], y[5:] + y[3:-2] - 2 * y[:-5])
    for size, function, kind in ((8, f, ctypes.c_double), (4, g, ctypes.c_float)):
        for n in range(5, 71):
            for at in (start, start + page - size * n):
                value = np.frombuffer((kind * n).from_address(at), f"f{size}")
                value[:] = np.arange(n) ** 2
                expected = value[5:] + value[3:-2] - 2 * value[:-5]
                np.testing.assert_array_equal(function(value), expected)
