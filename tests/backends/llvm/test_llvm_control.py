"""`Branch` and `Loop` steps."""

from __future__ import annotations

import gc
import signal
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hand_built import ONE, ZERO, Builder, Failed, check, native, strides_of

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
from loop_programs import CASES

from phintys.config import config
from phintys.dims import Dim
from phintys.lowering.interpret import interpret
from phintys.lowering.program import Branch, Check, Inst, Kernel, Loop, Operand, Rows

rng = np.random.default_rng(1)


def _raise_if_two(x):
    if x[0] == 2:
        raise ZeroDivisionError
    return ()


def _inner(build, *static, dtype="float64"):
    """An inner Program with one result, from a function of (builder, *inputs)."""
    b = Builder()
    inputs = [b.input(dtype, lengths) for lengths in static]
    outputs = build(b, *inputs)
    return b.program(*outputs)


def _double(b, x):
    t = b.elementwise("add", b.temp("float64", x.shape), x, x)
    return [b.copy(t, b.output("float64", x.shape))]


def _negate(b, x):
    return [b.elementwise("neg", b.output("float64", x.shape), x)]


@pytest.mark.parametrize("n", [0, 3, 1000])
def test_branch(n):
    b = Builder()
    condition, x = b.input("bool"), b.input("float64", (None,))
    y = b.elementwise("exp", b.temp("float64", x.shape), x)
    z = b.temp("float64", x.shape)
    programs = [_inner(f, (None,)) for f in (_double, _negate)]
    b.add(Branch(condition, *programs, (y,), (z,)))
    out = b.elementwise("add", b.output("float64", x.shape), z, x)
    program, x = b.program(out), rng.normal(size=n)
    check(program, np.array(True), x)
    check(program, np.array(False), x)


def test_branch_with_python_results():
    def with_python(function):
        def build(b, x):
            array, thing = b.array("float64", 1), b.object()
            b.python(function, [x], [array, thing])
            return [array, thing]

        return _inner(build, (None,))

    token = object()
    b = Builder()
    condition, x = b.input("bool"), b.input("float64", (None,))
    array, thing = b.array("float64", 1), b.object()
    programs = (with_python(lambda x: (x[::2], token)), with_python(lambda x: (x * 2, None)))
    b.add(Branch(condition, *programs, (x,), (array, thing)))
    out = b.elementwise("neg", b.output("float64", array.shape), array)
    f, x = native(b.program(out, thing, array)), np.arange(6.0)
    before = sys.getrefcount(token)
    for _ in range(10):
        result = f(True, x)
        assert [result[0].tolist(), result[1]] == [[0, -2, -4], token]
        assert f(False, x)[1] is None and f(False, x)[2].tolist() == (x * 2).tolist()
    del result
    assert sys.getrefcount(token) == before


def test_a_branch_fails():
    def failing(b, x):
        b.add(Check(x.shape[0], "==", ONE))
        return _negate(b, x)

    def raising(b, x):
        b.python(_raise_if_two, [x], [])
        return _negate(b, x)

    b = Builder()
    condition, x = b.input("bool"), b.input("float64", (None,))
    b.elementwise("neg", b.temp("float64", x.shape), x)
    out = b.output("float64", x.shape)
    b.add(Branch(condition, _inner(failing, (None,)), _inner(raising, (None,)), (x,), (out,)))
    f = native(b.program(out), single=True)
    assert f(True, np.ones(1)) == -1 and f(False, np.ones(2)).tolist() == [-1, -1]
    with pytest.raises(Failed) as caught:
        f(True, np.ones(2))
    assert caught.value.args[1] == 2  # the first step of the first Program inside
    with pytest.raises(ZeroDivisionError):
        f(False, np.full(2, 2.0))


def test_a_branch_of_the_wrong_length_fails():
    def longer(b, x):
        out = b.output("float64", (x.shape[0] + 1,))
        body = (Inst("const", "float64", (), 7.0), Inst("store", "float64", (0,), 0))
        b.add(Kernel(out.shape, 1, (Operand(out, (ONE,), ZERO),), body))
        return [out]

    b = Builder()
    condition, x = b.input("bool"), b.input("float64", (None,))
    out = b.output("float64", x.shape)
    b.add(Branch(condition, _inner(longer, (None,)), _inner(_negate, (None,)), (x,), (out,)))
    f = native(b.program(out))
    with pytest.raises(Failed):
        f(True, np.ones(3))


def _recurrence(step, n_outputs=2):
    """s, y = step(s, x[i], c): the last s and all y."""
    b = Builder()
    start, x, c = b.input("float64", (None,)), b.input("float64", (None, None)), b.input("float64")
    last = b.output("float64", start.shape)
    stacked = b.output("float64", (x.shape[0], start.shape[0]))
    moving = [Operand(s, (s.shape[1], ONE), ZERO) for s in (x, stacked)]
    windows = (Rows(x.shape[0], moving[0], (0,)), Rows(x.shape[0], moving[1], (), ((0, 1),)))
    body = _inner(step, (None,), (None,), ())
    b.add(Loop(x.shape[0], body, ((start, last),), windows, (c,)))
    return b.program(last, stacked)


def _native_step(b, s, x, c):
    new = b.elementwise("add", b.output("float64", s.shape), s, x)
    new2 = b.elementwise("mul", b.temp("float64", s.shape), s, c)
    return [new, b.elementwise("add", b.output("float64", s.shape), new2, x)]


def _python_step(b, s, x, c):
    t, y = b.elementwise("neg", b.temp("float64", s.shape), s), b.array("float64", 1)
    b.python(lambda s, x, t, c: (c * s + x + 0 * t,), [s, x, t, c], [y])
    return [b.elementwise("add", b.output("float64", s.shape), s, x), y]


@pytest.mark.parametrize("step", [_native_step, _python_step])
@pytest.mark.parametrize("turns, n", [(5, 3), (0, 3), (1, 1), (4, 1000), (3, 0)])
def test_loop(step, turns, n):
    f = native(_recurrence(step))
    start, x = rng.normal(size=n), rng.normal(size=(turns, n))
    old = start.copy()
    for _ in range(2):
        last, stacked = f(start, x, 0.5)
        states = np.cumsum(np.vstack([old, x]), axis=0)
        np.testing.assert_allclose(last, states[-1])
        np.testing.assert_allclose(stacked, 0.5 * states[:-1] + x)
        np.testing.assert_array_equal(start, old)


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("name", CASES)
def test_programs_with_loops(name, bits):
    program, cases = CASES[name]()
    with config.change_flags(vector_bits=bits):
        run = native(program).strict
    for args in cases:
        for found, expected in zip(run(*args), interpret(program, *args), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_loop_until():
    def step(b, s):
        new = b.elementwise("mul", b.output("float64", ()), s, b.constant(2.0))
        return [new, b.elementwise("gt", b.output("bool", ()), new, b.constant(100.0))]

    b = Builder()
    start = b.input("float64")
    last, count = b.output("float64", ()), b.output("int64", ())
    b.add(Loop(Dim.const(1000), _inner(step, ()), ((start, last),), until=1, count=count))
    f = native(b.program(last, count))
    assert f(1.0) == [128, 7] and f(3.0) == [192, 6] and f(-1.0) == [-(2.0**1000), 1000]


#: reads and writes of a window, and numbers of its rows
_WINDOWS = [
    ((0,), (1,), (1, 2, 9)),
    ((0, 1), (2,), (2, 3, 9)),
    ((0,), (3,), (3, 4, 9)),
    ((0, 1, 2), (1, 2), (3, 4, 9)),
    ((1, 0), (0,), (3, 9)),
    ((0,), (0,), (1, 5)),
    ((), (1, 2), (2, 5)),
    ((0, 2), (), (1, 2, 3, 9)),
]


def _rings(turns, length, in_place, dtype="float64"):
    """A Program with a window for each row of _WINDOWS, whose outputs are computed from all rows.

    ``in_place``: each element of the rows is read before it is written.
    """
    b, inner = Builder(), Builder()
    length = () if length is None else (length,)
    given, windows, made, outputs = [], [], [], []
    for reads, writes, _ in _WINDOWS:
        x = b.input(dtype, (None, *length))
        slot = b.copy(x, b.output(dtype, x.shape))
        strides = strides_of(x.shape, x.shape)
        pairs = tuple((o, len(made) + k) for k, o in enumerate(writes))
        windows.append(Rows(x.shape[0], Operand(slot, strides, ZERO), reads, pairs))
        outputs.append(slot)
        here = [inner.input(dtype, length) for _ in reads]
        given.append(here)
        made += [(here, inner.output(dtype, length)) for _ in writes]
    rest = [slot for here in given for slot in here]
    for number, (here, out) in enumerate(made):
        here = here or rest[:1]
        t = inner.elementwise("add", inner.temp(dtype, length), here[0], here[-1])
        inner.elementwise("sub", out, t, inner.constant(np.array(number, dtype)))
        if not in_place:
            inner.elementwise("add", inner.temp(dtype, length), here[-1], t)
    b.add(Loop(Dim.const(turns), inner.program(*(o for _, o in made)), (), tuple(windows)))
    return b.program(*outputs)


@pytest.mark.parametrize("length, in_place", [(None, True), (5, True), (5, False), (70, False)])
@pytest.mark.parametrize("bits", [128, 256, 512])
def test_windows(length, in_place, bits):
    with config.change_flags(vector_bits=bits):
        program = _rings(4, length, in_place)
        shape = () if length is None else (length,)
        for choice in range(4):
            rows = [sizes[min(choice, len(sizes) - 1)] for _, _, sizes in _WINDOWS]
            rows = [n + choice // 3 for n in rows]
            check(program, *(rng.normal(size=(n, *shape)) for n in rows), rtol=0)


@pytest.mark.parametrize("dtype", ["float16", "complex128", "int8", "bool", "uint64"])
def test_windows_of_other_dtypes(dtype):
    step = "or" if dtype == "bool" else "add"
    b, inner = Builder(), Builder()
    s, t = inner.input(dtype), inner.input(dtype)
    if dtype in ("float16", "complex128"):
        new = inner.copy(s, inner.output(dtype, ()))
    else:
        new = inner.elementwise(step, inner.output(dtype, ()), s, t)
    x = b.input(dtype, (None,))
    out = b.copy(x, b.output(dtype, x.shape))
    rows = Rows(x.shape[0], Operand(out, (ONE,), ZERO), (0, 1), ((2, 0),))
    b.add(Loop(x.shape[0] - 2, inner.program(new), (), (rows,)))
    check(b.program(out), np.arange(9).astype(dtype))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a timer with signals")
@pytest.mark.parametrize("length", [(), (100,)])
def test_a_loop_is_interrupted(length):
    def step(b, s):
        return [b.elementwise("mul", b.output("float64", s.shape), s, b.constant(0.5))]

    def handler(*_):
        raise KeyboardInterrupt

    b = Builder()
    start, turns = b.input("float64", length), b.input("int64")
    last = b.output("float64", start.shape)
    count = Dim.symbol(("item", turns.number))
    b.add(Loop(count, _inner(step, length), ((start, last),)))
    f = native(b.program(last), single=True)
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            f(np.ones(length), 10**15)  # years
    finally:
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(f(np.ones(length), 3), np.full(length, 0.125))


def test_loop_with_an_object_as_state():
    inner = Builder()
    state, new, draw = inner.object(is_input=True), inner.object(), inner.array("float64", 1)
    inner.python(lambda s: ([*s, len(s)], np.ones(1)), [state], [new, draw])
    b = Builder()
    start, last = b.object(is_input=True), b.object()
    draws = b.output("float64", (Dim.const(4), ONE))
    body = inner.program(new, draw)
    stacked = (Rows(Dim.const(4), Operand(draws, (ONE, ONE), ZERO), (), ((0, 1),)),)
    b.add(Loop(Dim.const(4), body, ((start, last),), stacked))
    f, first = native(b.program(last, draws, legal=False)).strict, [7]
    before = sys.getrefcount(first)
    for _ in range(5):
        final, ones = f(first)
        assert final == [7, 1, 2, 3, 4] and ones.tolist() == [[1.0]] * 4
    del final
    assert sys.getrefcount(first) == before


def test_loops_do_not_leak():
    f = native(_recurrence(_python_step))
    start, x = np.ones(1000), np.ones((20, 1000))
    f(start, x, 0.5)
    tracemalloc.start()
    f(start, x, 0.5)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(50):
        f(start, x, 0.5)
    gc.collect()
    growth = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert growth < 10_000
    assert sys.getrefcount(x) == 2
