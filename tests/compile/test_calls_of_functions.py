"""Calls from several threads, training steps, functions that are pickled to other processes."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.lowering.program import Python

THREADS = 8


def in_threads(call, values, threads=THREADS):
    """The results of ``call`` for each value, computed in several threads, and errors as text."""

    def one(value):
        try:
            return call(value)
        except ValueError as error:
            return str(error).split("\n")[0]

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, values, chunksize=25))


class Doubled(phintys.Op):
    """An op without a lowering, which refuses negative numbers."""

    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def perform(self, node, inputs, output_storage):
        if inputs[0][0] < 0:
            raise ValueError(f"negative: {inputs[0][0]}")
        output_storage[0][0] = 2 * inputs[0]


class Slow(phintys.Op):
    """An op that lets other threads run, and returns its input."""

    __props__ = ()
    itypes = (pt.dmatrix,)
    otypes = (pt.dmatrix,)

    def perform(self, node, inputs, output_storage):
        time.sleep(1e-4)
        output_storage[0][0] = inputs[0].copy()


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_calls_from_threads_agree_with_calls_in_turn(mode):
    count = 2500 if mode == "FAST_RUN" else 250  # for each of four functions
    x, n = pt.dvector("x"), pt.lscalar("n")
    values = [np.array([k, 1.0, -k]) for k in range(count)]

    plain = phintys.function([x], [pt.exp(-x).sum(), x[::-1] * 2], mode=mode)
    for found, value in zip(in_threads(plain, values), values):
        expected = plain(value)
        assert found[0] == expected[0]
        np.testing.assert_array_equal(found[1], expected[1])

    state = phintys.shared(0, "state")
    counted = phintys.function([n], state, updates={state: state + n}, mode=mode)
    in_threads(counted, [1] * count)
    assert state.get_value() == count

    rng = phintys.shared(np.random.default_rng(1), "rng")
    next_rng, draw = pt.random.normal(size=(2,), rng=rng).owner.outputs
    drawn = phintys.function([], draw, updates={rng: next_rng}, mode=mode)
    found = {tuple(v) for v in in_threads(lambda _: drawn(), range(count))}
    rng.set_value(np.random.default_rng(1))
    assert found == {tuple(drawn()) for _ in range(count)}

    fails = phintys.function([x], Doubled()(x) + 1, mode=mode)
    values = [np.array([float(k if k % 3 else -k - 1)]) for k in range(count)]
    for found, value in zip(in_threads(fails, values), values):
        assert found == f"negative: {value[0]}" if value[0] < 0 else found == 2 * value[0] + 1


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "NUMPY", "C", "NUMBA", "JAX"])
def test_no_update_is_lost_if_threads_call_a_function(mode):
    if mode == "C" and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    state, part = phintys.shared(np.zeros(3)), phintys.shared(np.zeros(3))
    updates = {state: state + 1, part: pt.inc_subtensor(part[0], 1.0)}
    f = phintys.function([], state, updates=updates, mode=mode)
    f()
    found = in_threads(lambda _: float(f()[0]), range(400))
    assert sorted(found) == [*range(1, 401)]
    np.testing.assert_array_equal(state.get_value(), 401.0)
    np.testing.assert_array_equal(part.get_value(), [401.0, 0.0, 0.0])

    s = pt.dscalar("s")
    g = phintys.function([phintys.In(s, value=0.0, update=s + 1)], s, mode=mode)
    assert sorted(map(float, in_threads(lambda _: g(), range(400)))) == [*range(400)]


@pytest.mark.parametrize("step", [pt.sin, Slow()])
@pytest.mark.parametrize("made", [np.zeros, lambda shape: np.zeros(shape).T])
def test_no_update_is_lost_while_the_interpreters_lock_is_given_up(step, made):
    """Long kernels, Python steps, and copies of arrays of another layout give it up."""
    state = phintys.shared(made((600, 100)), borrow=True)
    f = phintys.function([], [], updates={state: step(state) * 0 + state + 1})
    in_threads(lambda _: f(), range(400), threads=16)
    np.testing.assert_array_equal(state.get_value(), 400.0)


class Sets(phintys.Op):
    """The identity, which gives a shared variable another value."""

    __props__ = ("shared",)
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def __init__(self, shared):
        self.shared = shared

    def perform(self, node, inputs, output_storage):
        self.shared.set_value(inputs[0] + 1)
        output_storage[0][0] = inputs[0].copy()


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_an_op_that_replaces_what_its_function_updates_makes_the_call_fail(mode, outputs):
    state = phintys.shared(np.zeros(3), "state")
    result = Sets(state)(state)
    f = phintys.function([], [result] * outputs, updates={state: result * 2}, mode=mode)
    with pytest.raises(RuntimeError, match="replaced"):
        f()
    np.testing.assert_array_equal(state.get_value(), 1024.0 if mode == "FAST_RUN" else 64.0)


def test_no_update_is_lost_in_debug_mode():
    state = phintys.shared(np.zeros(3))
    f = phintys.function([], state, updates={state: state + 1}, mode="DebugMode")
    in_threads(lambda _: f(), range(48))
    np.testing.assert_array_equal(state.get_value(), 48.0)


class Calls(phintys.Op):
    """An op that calls a function, in another thread, and returns its input."""

    __props__ = ("function",)
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def __init__(self, function):
        self.function = function

    def perform(self, node, inputs, output_storage):
        thread = threading.Thread(target=self.function)
        thread.start()
        thread.join()
        output_storage[0][0] = inputs[0].copy()


def test_ops_may_call_functions_that_update_what_others_update():
    """Each of two functions updates what an op of the other one updates by a call."""
    a, b = phintys.shared(np.zeros(1), "a"), phintys.shared(np.zeros(1), "b")
    one, two = (phintys.function([], [], updates={s: s + 1}, mode="FAST_COMPILE") for s in (a, b))
    outer_a = phintys.function([], [], updates={a: Calls(two)(a) + 1}, mode="FAST_COMPILE")
    outer_b = phintys.function([], [], updates={b: Calls(one)(b) + 1}, mode="FAST_COMPILE")
    in_threads(lambda k: (outer_a if k % 2 else outer_b)(), range(4))  # or they wait for ever
    assert a.get_value() >= 4 and b.get_value() >= 4  # a repeated call runs its op again


def test_calls_wait_for_one_that_is_repeated(monkeypatch):
    """Otherwise short calls might replace a generator during each attempt of a long one."""
    rng = phintys.shared(np.random.default_rng(1), "rng")
    next_rng, draw = pt.random.normal(rng=rng).owner.outputs
    f = phintys.function([], draw, updates={rng: next_rng}, mode="FAST_COMPILE")
    attempt, threads, others = type(f)._attempt, [], []

    def second_succeeds(self, values):
        threads.append(threading.get_ident())
        if len(threads) == 1:
            return False, None
        if len(threads) == 2:
            others.append(pool.submit(f))
            time.sleep(0.05)
            assert not others[0].done() and len(threads) == 2
        return attempt(self, values)

    monkeypatch.setattr(type(f), "_attempt", second_succeeds)
    with ThreadPoolExecutor(1) as pool:
        found = [f(), *(other.result() for other in others)]
    assert threads[0] == threads[1] != threads[2]
    np.testing.assert_array_equal(found, np.random.default_rng(1).normal(size=2))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_long_draws_of_several_threads_do_not_fail():
    """C code gives up the interpreter's lock: another call may always replace the generator."""
    rng = phintys.shared(np.random.default_rng(1), "rng")
    next_rng, draw = pt.random.normal(size=(8000,), rng=rng).owner.outputs
    drawn = phintys.function([], draw.sum(), updates={rng: next_rng}, mode="C")
    found = {float(v) for v in in_threads(lambda _: drawn(), range(1000))}
    rng.set_value(np.random.default_rng(1))
    assert found == {float(drawn()) for _ in range(1000)}


def training_step():
    """Steps of the logistic regression of 40 points, with the function's value of the loss."""
    rng = np.random.default_rng(0)
    points, classes = rng.normal(size=(40, 3)), (rng.random(40) > 0.5).astype("float64")
    x, y = phintys.shared(points, "x"), phintys.shared(classes, "y")
    w, b = phintys.shared(np.zeros(3), "w"), phintys.shared(0.0, "b")
    rate = pt.dscalar("rate")
    p = pt.sigmoid(x @ w + b)
    loss = -(y * pt.log(p) + (1 - y) * pt.log(1 - p)).mean() + 0.01 * (w**2).sum()
    slopes = phintys.grad(loss, [w, b])
    updates = {v: v - rate * g for v, g in zip([w, b], slopes)}
    return phintys.function([rate], loss, updates=updates)


def test_a_training_step_runs_without_python():
    f = training_step()
    assert not [step for step in f.program.steps if isinstance(step, Python)]
    losses = [float(f(0.5)) for _ in range(20)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


READ = """
import json, pickle, sys
import phintys
functions = pickle.load(open(sys.argv[1], "rb"))
results = [float(f(0.5)) for f in functions for _ in range(2)]
lowered = ["lowering" in f.maker.times for f in functions]
print(json.dumps([results, lowered]))
"""


def test_pickled_functions_in_another_process(tmp_path):
    """They have the state of the moment, and run from the cache: nothing is lowered."""
    f = training_step()
    f(0.5)
    path = tmp_path / "functions"
    path.write_bytes(pickle.dumps([f, pickle.loads(cloudpickle.dumps(f))]))
    expected = [float(f(0.5)) for _ in range(2)]
    env = {**os.environ, "PHINTYS_CACHE_DIR": str(tmp_path / "cache")}
    answers = [
        json.loads(subprocess.check_output([sys.executable, "-c", READ, str(path)], env=env))
        for _ in range(2)
    ]
    for results, _ in answers:
        np.testing.assert_allclose(results, expected * 2, rtol=1e-12)
    assert [lowered for _, lowered in answers] == [[True, False], [False, False]]


def test_lambdas_in_functions_go_through_cloudpickle():
    x = pt.dvector("x")

    class Local(phintys.Op):
        itypes = otypes = (pt.dvector,)
        change = staticmethod(lambda v: v + 1)

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = self.change(inputs[0])

    state = phintys.shared(np.ones(2), "state")
    f = phintys.function([x], Local()(x) * state, updates={state: state * 2})
    g = pickle.loads(cloudpickle.dumps(f))
    for h in (f, g, g):
        h([0.0, 1.0])
    assert state.get_value().tolist() == [2, 2]
    assert g.get_shared()[0].get_value().tolist() == [4, 4]


def test_pickles_of_parts():
    """Modes, linkers, ops, graphs with shared state."""
    x, s = pt.dvector("x"), phintys.shared(np.ones(2), "s")
    mode = phintys.get_mode("FAST_COMPILE").excluding("fusion")
    fgraph = phintys.FunctionGraph([x, s], [(x * s).sum()], clone=False)
    parts = [mode, mode.linker, pt.exp, (x * s).owner.op, fgraph, s, phintys.In(x, value=[1.0])]
    for copied in (pickle.loads(pickle.dumps(parts)), pickle.loads(cloudpickle.dumps(parts))):
        assert str(copied[0]) == str(mode)
        assert copied[1] == mode.linker
        assert copied[3] == parts[3]
        assert copied[4].inputs[1] is copied[5]
        assert copied[5].get_value().tolist() == [1, 1]
        assert copied[6].value.value.tolist() == [1]
