"""Kernels that run strip by strip, in windows of memory."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hand_built import Failed, native
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys import config
from phintys.backends.llvm import costs
from phintys.backends.llvm.routine import ahead, windows
from phintys.backends.llvm.routine.entry import emit_entry
from phintys.dims import Dim
from phintys.lowering import strips
from phintys.lowering.program import inner_programs

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
import shifted_chains

pytestmark = pytest.mark.widths


def short(patch, bytes_, cached=0, unit=1):
    """Set the length of strips; a window moves by its exact length."""
    patch.setattr(strips, "STRIP_BYTES", bytes_)
    patch.setattr(strips, "CACHED_BYTES", cached)
    patch.setattr(windows, "_UNIT", unit)


drawn_chains = given(
    seed=st.integers(0, 2**20),
    strip=st.sampled_from([1, 3, 8, 17]),
    cached=st.sampled_from([0, 0, 500]),
    distant=st.booleans(),
)


@pytest.mark.parametrize("rank", [1, 2])
@settings(max_examples=5, deadline=None)
@drawn_chains
def test_strips_change_no_result(rank, seed, strip, cached, distant):
    check_strips(rank, seed, strip, cached, distant)


@rest
@pytest.mark.parametrize("rank", [1, 2])
@settings(max_examples=10, deadline=None)
@drawn_chains
def test_strips_of_more_chains_change_no_result(rank, seed, strip, cached, distant):
    check_strips(rank, seed, strip, cached, distant)


def check_strips(rank, seed, strip, cached, distant):
    inputs, program, reference = shifted_chains.with_reference(seed, rank)
    with pytest.MonkeyPatch.context() as patch:
        short(patch, strip * 40, cached)
        patch.setattr(costs, "NEAR_BLOCKS", 0 if distant else 64)
        f = native(program)
    rng = np.random.default_rng(seed)
    lengths = [0, 1, 2, 3, 4, 5, 7, strip, 4 * strip - 1, 4 * strip, 4 * strip + 1, 200]
    for n in lengths:
        shape = (n,) if rank == 1 else (n // 3, 1 + seed % 7)
        args = [rng.normal(size=shape).astype(x.dtype) for x in inputs]
        try:
            expected = reference(*args)
        except ValueError:  # a part is longer than the array
            with pytest.raises(Failed):
                f(*args)
            continue
        for result, array in zip(f(*args), expected, strict=True):
            np.testing.assert_allclose(result, array, rtol=1e-6, atol=1e-6)


def heat(x, steps=10):
    for _ in range(steps):
        x = pt.set_subtensor(x[1:-1], x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]))
    return x


@pytest.mark.parametrize("distant", [True, False])
@pytest.mark.parametrize(("turns", "n", "strip"), [(20_000, 50, 2**20), (2000, 500, 800)])
def test_strips_have_their_memory_at_each_turn_of_a_loop(turns, n, strip, distant, monkeypatch):
    """A window that began where the last turn left it would leave its memory after some turns."""
    x = pt.dvector("x")
    rows = phintys.scan(
        lambda y: heat(pt.tanh(y), 4), outputs_info=[x], n_steps=turns, return_updates=False
    )
    program = phintys.function([x], rows[-1]).program
    short(monkeypatch, strip, unit=16)
    monkeypatch.setattr(costs, "NEAR_BLOCKS", 0 if distant else 64)
    value = np.random.default_rng(n).normal(size=n)
    (found,) = native(program)(value)
    for _ in range(turns):
        value = np.tanh(value)
        for _ in range(4):
            value[1:-1] += 0.1 * (value[2:] - 2 * value[1:-1] + value[:-2])
    np.testing.assert_allclose(found, value, rtol=1e-9)


def test_long_arrays():
    x = pt.dvector("x")
    f = phintys.function([x], heat(x))
    assert f.program.strips
    for n in (20_000, 300_001):
        value = np.random.default_rng(n).normal(size=n)
        y = value.copy()
        for _ in range(10):
            y[1:-1] = y[1:-1] + 0.1 * (y[2:] - 2 * y[1:-1] + y[:-2])
        np.testing.assert_allclose(f(value), y, rtol=1e-12, atol=1e-12)


@pytest.mark.own_width
def test_where_windows_are():
    """The inner elements begin at a cache line; windows are half a page of 4096 bytes apart."""
    x = pt.dvector("x")
    program = phintys.function([x], heat(x)).program
    found = strips.strips_of(program.steps[slice(*program.strips[0])])
    uses = Counter(s for step in program.steps for s in {o.slot for o in step.operands})
    for n in (3, 5000, 1_000_000):
        symbols = {Dim.symbol(("len", 0, 0)): n}
        for window in windows.windows_of(found, uses):
            whole = program.storages[window.storage]
            assert (window.pad + window.itemsize) % 64 == 0
            assert window.behind.evaluate(symbols) * window.itemsize % 64 == 0
            assert window.size(whole).evaluate(symbols) % 4096 == 2048
            assert window.size(whole).evaluate(symbols) >= min(8 * n, 2 * 1536 * 8) + window.pad


@pytest.mark.own_width
@pytest.mark.parametrize("dtype", ["float64", "int16"])
@pytest.mark.parametrize("steps", [2, 3, 7, 10, 20])
def test_all_of_the_next_strip_is_read_ahead(dtype, steps):
    x = pt.vector("x", dtype=dtype)
    y = x
    for _ in range(steps):
        y = pt.set_subtensor(y[1:-1], y[2:] - y[:-2])
    program = phintys.function([x], y).program
    assert sum("@llvm.prefetch" in code.ir for code in emit_entry(program).kernels.values()) == 1
    found = strips.strips_of(program.steps[slice(*program.strips[0])])
    slots = {o.slot for kernel in found.kernels for o in kernel.operands}
    near = {slot.number for slot in slots if slot.storage is not None}
    streams, rate, readers = ahead.streams_of(found, near)
    assert streams == [program.inputs[0], program.outputs[0]]
    assert len(readers) == steps
    for k, stream in enumerate(streams):
        firsts = {reader.first for reader in readers.values() if reader.stream == k}
        size = np.dtype(stream.dtype).itemsize * found.step
        assert firsts == set(range(0, size, rate * found.step))


def test_temps_are_not_whole_in_memory():
    resource = pytest.importorskip("resource")
    x = pt.dvector("x")
    f = phintys.function([x], heat(x))
    value = np.ones(4_000_000)
    f(np.ones(100))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = f(value)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < 1.5 * result.nbytes  # each of the two temps has that size, too


def test_several_threads_run_whole_kernels():
    x = pt.dvector("x")
    program = phintys.function([x], heat(x, 3)).program
    assert "%strip." in emit_entry(program).ir
    with config.change_flags(threads=2):
        assert "%strip." not in emit_entry(program).ir


def of_neighbours(y):
    return heat(pt.tanh(y), 2)


def of_the_other_end(y):
    """The old state is read again when a part of the new one is known."""
    a = pt.tanh(y[::-1])
    return 0.5 * y + pt.concatenate([a[:1], a[2:] - a[:-2], a[:1]])


@pytest.mark.parametrize("step", [of_neighbours, of_the_other_end])
def test_strips_in_a_loop(step):
    x, n = pt.dvector("x"), pt.lscalar("n")
    states = phintys.scan(step, outputs_info=x, n_steps=n, return_updates=False)
    program = phintys.function([x, n], states[-1]).program
    assert any(inner.strips for s in program.steps for inner in inner_programs(s))
    with pytest.MonkeyPatch.context() as patch:
        short(patch, 100)
        f = native(program)
    value = np.random.default_rng(0).normal(size=50)
    expected = phintys.function([x, n], states[-1], mode="FAST_COMPILE")(value, 3)
    np.testing.assert_allclose(f(value, 3)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("distant", [False, True])
def test_an_integer_that_is_a_position_is_in_no_window(distant):
    """A kernel of the range computes it, in memory that an array no longer needs."""
    x, k = pt.matrix("x", dtype="float32", shape=(3, 3)), pt.iscalar("k")
    y = 0.5 % pt.set_subtensor(x[:k], pt.cast(k, "float32"))
    out = pt.set_subtensor(y[k // 2], pt.cast(k, "float32"))
    with pytest.MonkeyPatch.context() as patch:
        short(patch, 64)
        patch.setattr(costs, "NEAR_BLOCKS", 0 if distant else 64)
        f = phintys.function([x, k], out, mode=phintys.Mode("llvm", None))
        assert f.program.strips
        for n in range(6):
            found = f(np.ones((3, 3), "float32"), n)
            expected = phintys.function([x, k], out, mode="NUMPY")(np.ones((3, 3), "float32"), n)
            np.testing.assert_array_equal(found, expected)
