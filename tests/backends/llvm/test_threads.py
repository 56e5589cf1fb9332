"""Kernels in several threads (``config.threads``)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hand_built import native
from hypothesis import example, given, settings
from hypothesis import strategies as st

import phintys
import phintys.tensor as pt
from phintys import config
from phintys.backends.llvm import costs
from phintys.backends.llvm.machine import process
from phintys.backends.llvm.machine.jit import compile_ir
from phintys.backends.llvm.routine import parts, threads
from phintys.backends.llvm.runtime import symbols
from phintys.backends.llvm.runtime.callable import TRUSTED
from phintys.lowering.assemble import assemble
from phintys.lowering.interpret import interpret
from phintys.lowering.memory import plan_memory

sys.path.append(str(Path(__file__).parents[2] / "lowering"))
from random_values import RandomValues

pytestmark = pytest.mark.widths

rng = np.random.default_rng(1)


@pytest.fixture
def forced(monkeypatch):
    """However little there is to do, it is done in several threads."""
    monkeypatch.setattr(costs, "THREAD_PICOSECONDS", 1)
    monkeypatch.setattr(parts, "_is_stream", lambda inst: False)


def both(inputs, outputs, count=3):
    """The function with one thread and with several."""
    with config.change_flags(threads=count):
        several = phintys.function(inputs, outputs)
    return phintys.function(inputs, outputs), several


def log_density(x, y):
    a = pt.exp(-(x * x))
    return pt.log(y + a) * x + pt.tanh(y) / (1 + a)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (1, 1000), (7, 33), (200, 5), (64, 64)])
def test_maps_are_the_same_to_the_bit(forced, shape, dtype):
    x, y = pt.matrix("x", dtype=dtype), pt.vector("y", dtype=dtype)
    serial, parallel = both([x, y], [log_density(x, y), pt.exp(x.T) + 1])
    args = rng.normal(size=shape).astype(dtype), rng.uniform(1, 2, shape[1]).astype(dtype)
    for one, several in zip(serial(*args), parallel(*args)):
        assert one.tobytes() == several.tobytes()


@pytest.mark.parametrize("shape", [(1, 1), (3, 1000), (300, 40)])
def test_rows_have_scratch_memory_of_their_own(forced, shape):
    x = pt.matrix("x")
    outputs = [pt.special.softmax(x, axis=1), pt.special.log_softmax(x, axis=1).sum(axis=0)]
    serial, parallel = both([x], outputs)
    x = rng.normal(size=shape)
    for _ in range(20):
        for one, several in zip(serial(x), parallel(x)):
            np.testing.assert_allclose(one, several, rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000, 100_000])
def test_sums_are_combined_in_a_fixed_order(forced, n):
    x, y = pt.vector("x"), pt.vector("y")
    z = log_density(x, y)
    serial, parallel = both([x, y], [z.sum(), pt.exp(z.mean()), z, (z * z).max(initial=-np.inf)])
    args = rng.normal(size=n), rng.uniform(1, 2, n)
    with np.errstate(invalid="ignore"):
        results = [parallel(*args) for _ in range(10)]
        expected = serial(*args)
    for result in results:
        for one, several, first in zip(expected, result, results[0]):
            np.testing.assert_allclose(one, several, rtol=1e-12)
            assert np.asarray(several).tobytes() == np.asarray(first).tobytes()


@pytest.mark.parametrize("shape", [(4,), (65,), (129,), (4, 3), (5, 7), (6, 2, 2)])
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_no_part_is_empty(forced, shape, count):
    x = pt.tensor("x", shape=(None,) * len(shape))
    _, parallel = both([x], [(-x * x).max(), pt.exp(x).min(), x.prod()], count)
    value = rng.normal(size=shape)
    expected = (-value * value).max(), np.exp(value).min(), value.prod()
    np.testing.assert_allclose(parallel(value), expected, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 30), count=st.integers(2, 5))
@example(seed=8975, size=10, count=2)
def test_programs_compute_what_the_interpreter_does(seed, size, count):
    values = RandomValues(seed)
    values.grow(size)
    outputs, _ = values.outputs(3)
    program = plan_memory(assemble(values.b, outputs))
    with pytest.MonkeyPatch.context() as patch, config.change_flags(threads=count):
        patch.setattr(costs, "THREAD_PICOSECONDS", 1)
        patch.setattr(parts, "_is_stream", lambda inst: False)
        f = native(program)
    f.native_mode = TRUSTED  # generators among the arguments are not checked
    expected = interpret(program, *values.args)
    for result, array in zip(f(*values.args), expected, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-9, atol=1e-9)


def test_an_index_out_of_range_is_noticed_in_any_part(forced):
    x, i = pt.vector("x"), pt.lvector("i")
    _, parallel = both([x, i], pt.exp(x[i]))
    values, indices = rng.normal(size=50), rng.integers(-50, 50, 1000)
    np.testing.assert_allclose(parallel(values, indices), np.exp(values[indices]))
    for bad in (0, 500, 999):
        wrong = indices.copy()
        wrong[bad] = 50
        with pytest.raises(IndexError):
            parallel(values, wrong)


def test_little_work_and_streams_through_memory_stay_in_one_thread():
    x = pt.vector("x")
    with config.change_flags(threads=4):
        outputs = [pt.exp(x), x + 1, x.sum()]
        compute, stream, total = (phintys.function([x], y) for y in outputs)
    text = [_text(f) for f in (compute, stream, total)]
    assert "pthread_create" in text[0]
    assert "pthread_create" not in text[1] + text[2]
    assert "pthread_create" not in _text(phintys.function([x], pt.exp(x)))


def _text(f):
    from phintys.backends.llvm.routine.entry import emit_entry
    from phintys.backends.llvm.routine.module import module_text

    with f.maker.settings_as_made():
        return module_text(emit_entry(f.program))


def test_a_thread_that_cannot_be_made_is_done_without(forced, monkeypatch):
    resolve = symbols.resolve
    stub = compile_ir("define i32 @no_thread(ptr %a, ptr %b, ptr %c, ptr %d) {\n  ret i32 11\n}")
    monkeypatch.setattr(
        symbols,
        "resolve",
        lambda name, target: (
            stub.address("no_thread") if name == "pthread_create" else resolve(name, target)
        ),
    )
    x = pt.vector("x")
    with config.change_flags(threads=3):
        f = phintys.function([x], [pt.exp(x) * 3, pt.exp(x).sum()])
    value = rng.normal(size=1000)
    for result, expected in zip(f(value), [np.exp(value) * 3, np.exp(value).sum()]):
        np.testing.assert_allclose(result, expected)


def test_without_threads_there_is_a_warning(monkeypatch):
    monkeypatch.setattr(process, "address_of", lambda name: 0)
    threads._has_threads.cache_clear()
    with config.change_flags(threads=2), pytest.warns(RuntimeWarning, match="POSIX threads"):
        assert threads.thread_count() == 1
    threads._has_threads.cache_clear()
