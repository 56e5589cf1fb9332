"""The native entry: arguments, lengths, memory, steps other than kernels, results, references."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
from hand_built import Builder, Failed, Slow, addition, check, failed, native, slow
from hypothesis import given, settings
from hypothesis import strategies as st

from phintys.backends.llvm import bind, compile_program, generate
from phintys.backends.llvm.routine.entry import emit_entry
from phintys.backends.llvm.runtime import cpython
from phintys.backends.llvm.runtime.callable import TRUSTED, make_native_class
from phintys.dims import ONE, ZERO, Dim, as_dim, dim_max, dim_min
from phintys.lowering.program import Check, Inst, Kernel, Operand

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES = [*INTEGERS, "float32", "float64"]
rng = np.random.default_rng(1)
pytestmark = pytest.mark.usefixtures("each_loader")


# ----------------------------------------------------------------------- arguments


def test_scalar_addition():
    f = native(addition(0), single=True)
    result = f(1.5, 2.0)
    assert type(result) is np.ndarray and result.shape == () and result == 3.5
    assert f(np.array(1.5), 2.0) == 3.5
    assert f(np.float64(1.5), np.array(2.0)) == 3.5


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ndim", [0, 1, 2, 4])
def test_elementwise(dtype, ndim):
    shape = (3, 2, 5, 4)[:ndim]
    x, y = (rng.integers(0, 50, shape).astype(dtype) for _ in "xy")
    check(addition(ndim, dtype), x, y)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1, 1), (17,), (1000,), (33, 65)])
def test_lengths_are_free(shape):
    x, y = rng.normal(size=(2, *shape))
    np.testing.assert_array_equal(native(addition(len(shape)))(x, y), [x + y])


def test_ten_inputs():
    b = Builder()
    inputs = [b.input("float64", (None,)) for _ in range(10)]
    total = inputs[0]
    for x in inputs[1:-1]:
        total = b.elementwise("add", b.temp("float64", x.shape), total, x)
    out = b.elementwise("add", b.output("float64", total.shape), total, inputs[-1])
    check(b.program(out), *rng.normal(size=(10, 7)))


LAYOUTS = {
    "reversed": lambda x: x[::-1, ::-1],
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "fortran": np.asfortranarray,
    "transposed": lambda x: x.T.copy().T,
    "byteswapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "misaligned": lambda x: _misaligned(x),
    "matrix metadata": lambda x: x.astype(np.dtype("float64", metadata={"unit": "m"})),
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
}


def _misaligned(x):
    memory = np.zeros(x.nbytes + 1, "uint8")
    out = np.ndarray(x.shape, x.dtype, memory, offset=1)
    out[...] = x
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_any_memory_layout(layout, position):
    x, y = rng.normal(size=(2, 3, 4))
    odd = LAYOUTS[layout](y.copy())
    value = np.array(odd)
    f = native(addition(2))
    args = [(odd, x), (x, odd), (odd, odd)][position]
    other = value if position == 2 else x
    assert type(f(*args)[0]) is np.ndarray
    np.testing.assert_array_equal(f(*args)[0], value + other)
    np.testing.assert_array_equal(odd, value)


MISFITS = {
    "dtype": (np.ones(3, "float32"), np.ones(3)),
    "longlong": (np.ones(3, "longlong"), np.ones(3)),
    "masked": (np.ma.ones(3), np.ones(3)),
    "subclass": (np.ones(3).view(np.recarray), np.ones(3)),
    "rank": (np.ones((3, 1)), np.ones(3)),
    "list": ([1.0, 2.0, 3.0], np.ones(3)),
    "none": (np.ones(3), None),
    "number": (1.0, np.ones(3)),
    "too few": (np.ones(3),),
    "too many": (np.ones(3),) * 3,
    "nothing": (),
}


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_goes_to_slow(case):
    f, args = native(addition(1)), MISFITS[case]
    with pytest.raises(Slow) as caught:
        f(*args)
    assert caught.value.args[1] is None
    assert len(caught.value.args[0]) == len(args)
    assert all(a is b for a, b in zip(caught.value.args[0], args))
    with pytest.raises(RuntimeError, match="does not fit"):
        f.strict(*args)


def test_keywords_go_to_slow():
    x = np.ones(3)
    with pytest.raises(Slow) as caught:
        native(addition(1))(x, y=x, z=2)
    args, kwargs = caught.value.args
    assert len(args) == 1 and args[0] is x
    assert list(kwargs) == ["y", "z"] and kwargs["y"] is x


NAMES = ("one", "two", "three")


def joined(names=NAMES):
    """A function that returns its three numbers in one array."""
    b = Builder()
    inputs, out = [b.input() for _ in NAMES], b.array("float64", 1)
    b.python(lambda *objects: (np.array([o.item() for o in objects]),), inputs, [out])
    f = make_native_class()()
    bind(generate(b.program(out), single=True), [], slow, failed, f, names)
    return f


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)))
@pytest.mark.parametrize("positional", range(4))
def test_arguments_by_name(order, positional):
    values = dict(zip(NAMES, (1.0, 2.0, 3.0)))
    given = list(values.values())[:positional]
    named = {name: values[name] for name in order if name in NAMES[positional:]}
    assert joined()(*given, **named).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "given, named",
    [
        ((1.0,), {"one": 1.0, "two": 2.0}),  # twice
        ((1.0,), {"two": 2.0, "four": 2.0}),  # unknown
        ((1.0,), {"two": 2.0}),  # too few
        ((1.0, 2.0), {"two": 2.0, "three": 3.0}),  # too many
        ((1.0, 2.0), {"".join(["th", "ree"]): 3.0}),  # an equal name that is another object
    ],
)
def test_names_that_do_not_fit_are_slow(given, named):
    with pytest.raises(Slow) as caught:
        joined()(*given, **named)
    assert caught.value.args == (given, named)


def test_arguments_by_name_that_do_not_fit_are_slow():
    with pytest.raises(Slow) as caught:
        joined()("1", three="3", two="2")
    assert caught.value.args == (("1", "2", "3"), None)


def test_without_names_calls_by_name_are_slow():
    with pytest.raises(Slow):
        joined(())(1.0, 2.0, three=3.0)


def test_call_with_stars_and_map():
    f, x = native(addition(1), single=True), np.arange(3.0)
    np.testing.assert_array_equal(f(*[x, x], **{}), 2 * x)
    assert [r.tolist() for r in map(f, [x], [x])] == [[0, 2, 4]]


def test_slow_result_is_the_result():
    f = compile_program(addition(1), [], lambda args, kwargs: ("slow", args), None)
    assert f(1, 2) == ("slow", (1, 2))


def test_static_lengths():
    b = Builder()
    x = b.input("float64", (2, None))
    f = native(b.program(b.elementwise("neg", b.output("float64", x.shape), x)))
    assert f(np.ones((2, 5)))[0].shape == (2, 5)
    with pytest.raises(Slow):
        f(np.ones((3, 5)))
    with pytest.raises(Slow):
        f(np.ones((5, 3)).T)


@pytest.mark.parametrize(
    "dtype, good, bad",
    [
        ("float64", [1.5, -0.0, np.inf, np.float64(3)], [1, True, "1", np.float32(1), 1j]),
        ("int64", [0, -5, 2**63 - 1, -(2**63)], [2**63, -(2**63) - 1, 10**30, 1.0, True]),
        ("bool", [True, False], [1, 0, 1.0, None]),
        ("int32", [np.array(5, "int32")], [5, np.int32(5)]),
    ],
)
def test_python_numbers(dtype, good, bad):
    b = Builder()
    x = b.input(dtype)
    f = native(b.program(b.elementwise("max", b.output(dtype, ()), x, x)), single=True)
    for value in good:
        assert f(value) == value and f(value).dtype == dtype
        assert f(np.asarray(value, dtype)) == value
    for value in bad:
        with pytest.raises(Slow):
            f(value)


def test_objects_are_trusted_or_go_to_slow():
    b = Builder()
    x, out = b.object(is_input=True), b.object()
    b.python(lambda x: (x,), [x], [out])
    f = native(b.program(out))
    with pytest.raises(Slow):
        f("text")
    assert f.strict("text") == ["text"]
    f.native_mode = TRUSTED
    assert f("text") == ["text"]


def test_no_outputs():
    b = Builder()
    b.input("float64")
    assert native(b.program())(1.0) == []


# ------------------------------------------------------------------- lengths and checks


def dims(draw_from):
    leaves = st.sampled_from([*draw_from, *map(Dim.const, (-3, -1, 0, 1, 2, 7))])

    def extend(children):
        pairs = st.tuples(children, children)
        return st.one_of(
            pairs.map(lambda p: p[0] + p[1]),
            pairs.map(lambda p: p[0] * p[1]),
            pairs.map(lambda p: p[0] // p[1]),
            pairs.map(lambda p: p[0] % p[1]),
            pairs.map(lambda p: dim_max(*p)),
            pairs.map(lambda p: dim_min(*p)),
        )

    return st.recursive(leaves, extend, max_leaves=8)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_dims(data):
    b = Builder()
    x, y = b.input("int64"), b.input("int64")
    z = b.input("float64", (None,))
    symbols = [Dim.symbol(("item", x.number)), Dim.symbol(("item", y.number)), z.shape[0]]
    wanted = data.draw(st.lists(dims(symbols), min_size=1, max_size=4))
    out = b.output("int64", (len(wanted),))
    operands = tuple(Operand(out, (), as_dim(i)) for i in range(len(wanted)))
    body = []
    for i, d in enumerate(wanted):
        body += [Inst("dim", "int64", (), d), Inst("store", "int64", (len(body),), i)]
    b.add(Kernel((), 0, operands, tuple(body)))
    f = native(b.program(out), single=True)
    for m, n, k in itertools.product((-7, 0, 2), (-2, -1, 0, 3), (0, 4)):
        values = dict(zip(symbols, (m, n, k)))
        assert f(m, n, np.zeros(k)).tolist() == [d.evaluate(values) for d in wanted]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_any_dtype_are_lengths(dtype):
    b = Builder()
    n = b.input(dtype)
    out = b.output("int64", (Dim.symbol(("item", n.number)),))
    body = (Inst("index", "int64", (), 0), Inst("store", "int64", (0,), 0))
    b.add(Kernel(out.shape, 1, (Operand(out, (ONE,), ZERO),), body))
    f = native(b.program(out), single=True)
    assert f(np.array(100, dtype)).tolist() == list(range(100))
    if dtype.startswith("int"):
        with pytest.raises(ValueError, match="negative"):
            f(np.array(-1, dtype))


def test_too_large():
    b = Builder()
    m, n = b.input("int64"), b.input("int64")
    shape = [Dim.symbol(("item", s.number)) for s in (m, n)]
    temp = b.temp("float64", shape)
    body = (Inst("const", "float64", (), 1.0), Inst("store", "float64", (0,), 0))
    b.add(Kernel(temp.shape, 2, (Operand(temp, (shape[1], ONE), ZERO),), body))
    out = b.output("float64", ())
    last = Operand(temp, (), shape[0] * shape[1] - 1)
    body = (Inst("load", "float64", (), 0), Inst("store", "float64", (0,), 1))
    b.add(Kernel((), 0, (last, Operand(out, (), ZERO)), body))
    f = native(b.program(out), single=True)
    assert f(3, 4) == 1.0
    for huge in [(2**32, 2**32), (2**61, 1), (2**60, 1), (-1, 5), (2**62, 4)]:
        with pytest.raises(MemoryError):
            f(*huge)


@pytest.mark.parametrize(
    "relation, good", [("==", {4}), (">", {0, 1, 2, 3}), (">=", {0, 1, 2, 3, 4})]
)
def test_checks(relation, good):
    b = Builder()
    x = b.input("float64", (None,))
    b.elementwise("neg", b.temp("float64", x.shape), x)
    b.add(Check(Dim.const(4), relation, x.shape[0], "wrong"))
    f = native(b.program(b.elementwise("neg", b.output("float64", x.shape), x)), single=True)
    for n in range(7):
        x = np.ones(n)
        if n in good:
            assert f(x).tolist() == [-1.0] * n
        else:
            with pytest.raises(Failed) as caught:
                f(x)
            assert caught.value.args[0][0] is x and caught.value.args[1] == 1


def test_a_silent_failed_callback_is_an_error():
    f = compile_program(addition(1), [], None, lambda args, step: None)
    with pytest.raises(RuntimeError, match="step 0 failed"):
        f(np.ones(2), np.ones(3))


def test_index_out_of_range():
    b = Builder()
    x, i = b.input("float64", (None,)), b.input("int64", (None,))
    out = b.output("float64", i.shape)
    operands = (
        Operand(i, (ONE,), ZERO),
        Operand(x, (ZERO,), ZERO, (ONE,)),
        Operand(out, (ONE,), ZERO),
    )
    body = (
        Inst("load", "int64", (), 0),
        Inst("dim", "int64", (), x.shape[0]),
        Inst("wrap", "int64", (0, 1)),
        Inst("load", "float64", (2,), 1),
        Inst("store", "float64", (3,), 2),
    )
    b.add(Kernel(i.shape, 1, operands, body))
    program = b.program(out)
    x = np.arange(5.0)
    f = check(program, x, np.array([0, 4, -1, -5, 2]))
    for bad in (5, -6, 2**62):
        with pytest.raises(Failed):
            f(x, np.array([1, bad, 0]))
    with pytest.raises(Failed):
        f(x[:0], np.array([0]))


# --------------------------------------------------------------------------- memory


@pytest.mark.parametrize("n", [0, 1, 5, 100, 5000])
def test_temps(n):
    b = Builder()
    x = b.input("float64", (None,))
    y = b.elementwise("mul", b.temp("float64", x.shape), x, x)
    s = b.elementwise("add", b.temp("float64", ()), b.constant(2.0), b.constant(3.0))
    z = b.elementwise("add", b.temp("float64", x.shape), y, s)
    z = b.copy(z, b.temp("float64", x.shape))
    out = b.elementwise("sub", b.output("float64", x.shape), z, x)
    check(b.program(out), rng.normal(size=n))


def test_many_static_temps():
    b = Builder()
    x = b.input("float64", (200,))
    y = x
    for _ in range(6):  # more than fits on the stack
        y = b.elementwise("add", b.temp("float64", x.shape), y, x)
    check(b.program(b.copy(y, b.output("float64", x.shape))), rng.normal(size=200))


def test_storage_is_shared():
    b = Builder()
    x = b.input("float64", (None,))
    first = b.elementwise("exp", b.temp("float64", x.shape), x)
    second = b.elementwise("log", b.slot("temp", "float64", x.shape, storage=0), first)
    check(
        b.program(b.elementwise("neg", b.output("float64", x.shape), second)), rng.normal(size=50)
    )


def test_temps_with_lengths_known_late():
    b = Builder()
    x = b.input("float64", (None,))
    y = b.array("float64", 1)
    b.elementwise("neg", b.temp("float64", x.shape), x)
    b.python(lambda x: (np.repeat(x, 3),), [x], [y])
    z = b.elementwise("neg", b.temp("float64", y.shape), y)
    check(b.program(b.elementwise("neg", b.output("float64", y.shape), z)), rng.normal(size=9))


def test_constants_may_have_any_layout():
    b = Builder()
    x = b.input("float64", (None, None))
    c = b.constant(np.arange(6.0).reshape(2, 3).T)
    check(b.program(b.elementwise("add", b.output("float64", c.shape), c, x)), np.ones((3, 2)))


def test_results_are_fresh_and_aligned():
    f, x = native(addition(1), single=True), np.ones(5)
    first, second = f(x, x), f(x, x)
    assert not np.shares_memory(first, second)
    assert first.flags.owndata and first.flags.writeable and first.flags.aligned
    assert first.base is None


@pytest.mark.parametrize("shape", [(4, 3), (0, 3), (3, 0), (1, 1), (5, 100)])
@pytest.mark.parametrize("op", ["add", "mul", "max", "min"])
def test_reductions(op, shape):
    b = Builder()
    x = b.input("float64", (None, None))
    rows = b.reduce(op, b.temp("float64", x.shape[:1]), x)
    total = b.reduce(op, b.output("float64", ()), rows)
    check(b.program(b.copy(rows, b.output("float64", rows.shape)), total), rng.normal(size=shape))


# --------------------------------------------------------------------- shared variables


def swap():
    b = Builder()
    n = b.input("float64", (None,))
    x, y = b.input("float64", (None,)), b.input("float64", (None,))
    outs = [b.elementwise("neg", b.output("float64", s.shape), s) for s in (n, y, x)]
    return b.program(*outs, updates=(1, 2), shared=2)


def test_updates_are_simultaneous():
    x, y = np.arange(3.0), np.arange(5.0)
    cells = [[x], [y]]
    f = native(swap(), cells)
    for _ in range(3):
        (result,) = f(x)
        np.testing.assert_array_equal(result, -x)
    np.testing.assert_array_equal(cells[0][0], -y)
    np.testing.assert_array_equal(cells[1][0], -x)
    assert x.tolist() == [0, 1, 2] and y.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shared_values_of_any_layout(layout):
    b = Builder()
    x = b.input("float64", (None, None))
    out = b.elementwise("neg", b.output("float64", x.shape), x)
    value = LAYOUTS[layout](rng.normal(size=(3, 4)))
    f = native(b.program(out, shared=1), [[value]])
    np.testing.assert_array_equal(f()[0], -value)


@pytest.mark.parametrize("value", [np.ones(3, "float32"), np.ones((3, 3)), [1.0], None, 2.0])
def test_shared_values_that_do_not_fit(value):
    cells = [[np.ones(2)], [value]]
    before = [cell[0] for cell in cells]
    with pytest.raises(TypeError, match=r"shared variable 1 must be an array of dtype.'float64'"):
        native(swap(), cells)(np.ones(2))
    assert all(cell[0] is old for cell, old in zip(cells, before))


def test_a_failed_call_changes_nothing():
    b = Builder()
    x, s = b.input("float64", (None,)), b.input("float64", (None,))
    new = b.elementwise("neg", b.output("float64", s.shape), s)
    b.add(Check(x.shape[0], "==", ONE))
    b.python(_raise_if_two, [x], [])
    cells = [[np.ones(3)]]
    old = cells[0][0]
    f = native(b.program(new, updates=(1,), shared=1), cells)
    with pytest.raises(Failed):
        f(np.ones(3))
    with pytest.raises(ZeroDivisionError):
        f(np.array([2.0]))
    assert cells[0][0] is old and old.tolist() == [1, 1, 1]
    assert f(np.array([1.0])) == [] and cells[0][0].tolist() == [-1, -1, -1]


def _raise_if_two(x):
    if x[0] == 2:
        raise ZeroDivisionError
    return ()


def test_an_object_can_be_shared():
    b = Builder()
    state, new = b.object(is_input=True), b.object()
    b.python(lambda s: (s + 1,), [state], [new])
    cells = [[5]]
    f = native(b.program(new, new, updates=(0,), shared=1), cells)
    assert f() == [6] and cells == [[6]]


# ----------------------------------------------------------------------- Python steps


def test_python_step_gets_arrays_that_stay():
    seen = []
    b = Builder()
    x, c = b.input("float64", (None,)), b.constant(np.array([1.0, 2.0]))
    t = b.elementwise("neg", b.temp("float64", x.shape), x)
    small = b.elementwise("add", b.temp("float64", ()), b.constant(1.0), b.constant(2.0))
    extra, y = b.object({"key": 1}), b.array("float64", 1)

    def function(*args):
        seen.append(args)
        return (args[0] * 2,)

    b.python(function, [x, c, t, small, extra], [y])
    f = native(b.program(b.elementwise("neg", b.output("float64", y.shape), y)), single=True)
    for n in (3, 2000):
        x = rng.normal(size=n)
        np.testing.assert_array_equal(f(x), -2 * x)
    gc.collect()
    for args, n in zip(seen, (3, 2000)):
        np.testing.assert_array_equal(args[2], -args[0])
        assert args[0].shape == (n,) and args[1].tolist() == [1, 2] and args[3] == 3
        assert args[2].flags.owndata and args[4] == {"key": 1}


def test_python_step_with_a_number_as_argument():
    b = Builder()
    x, y = b.input("float64"), b.array("float64", 0)
    b.python(lambda x: (np.asarray(x + 1),), [x], [y])
    f = compile_program(
        b.program(y), [], lambda args, _: f.strict(*map(np.asarray, args)), None, single=True
    )
    assert f(1.5) == 2.5


@pytest.mark.parametrize("layout", LAYOUTS)
def test_python_step_returns_any_layout(layout):
    value = LAYOUTS[layout](rng.normal(size=(3, 4)))
    b = Builder()
    y = b.array("float64", 2)
    b.python(lambda: (value,), [], [y])
    f = native(b.program(b.elementwise("neg", b.output("float64", y.shape), y)), single=True)
    np.testing.assert_array_equal(f(), -value)


def test_python_step_returns_a_numpy_scalar():
    b = Builder()
    y = b.array("float64", 0)
    b.python(lambda: (np.float64(2.5),), [], [y])
    result = native(b.program(y), single=True)()
    assert type(result) is np.ndarray and result == 2.5


@pytest.mark.parametrize(
    "returned, message",
    [
        ((np.ones(3),), "output 0 of thing must be an array of dtype.*, rank 2"),
        ((np.ones((3, 3), "float32"),), "output 0 of thing"),
        (([[1.0]],), "output 0 of thing"),
        ((None,), "output 0 of thing"),
        ((), "thing must return a tuple of 1 value"),
        ((np.ones((1, 1)),) * 2, "thing must return a tuple of 1 value"),
        ([np.ones((1, 1))], "thing must return a tuple"),
        (None, "thing must return a tuple of 1 value.*None"),
    ],
)
def test_python_step_returns_nonsense(returned, message):
    b = Builder()
    y = b.array("float64", 2)
    b.python(lambda: returned, [], [y], name="thing")
    with pytest.raises(TypeError, match=message):
        native(b.program(y))()


def test_lengths_and_integers_from_python_steps():
    b = Builder()
    n, x = b.array("int32", 0), b.array("float64", 2)
    b.python(lambda: (np.array(3, "int32"), np.ones((2, 5))), [], [n, x])
    shape = (Dim.symbol(("item", n.number)), x.shape[1])
    out = b.output("float64", shape)
    body = (Inst("const", "float64", (), 7.0), Inst("store", "float64", (0,), 0))
    b.add(Kernel(out.shape, 2, (Operand(out, (shape[1], ONE), ZERO),), body))
    assert native(b.program(out))()[0].tolist() == [[7.0] * 5] * 3


def test_recursive_call_from_a_python_step():
    b = Builder()
    x, y = b.input("float64", (None,)), b.array("float64", 1)
    t = b.elementwise("neg", b.temp("float64", x.shape), x)
    b.python(lambda x: (f(x[1:])[0] if len(x) else x,), [x], [y])
    z = b.reduce("add", b.temp("float64", ()), y)
    del t
    f = native(b.program(b.elementwise("add", b.output("float64", x.shape), x, z)))
    assert f(np.ones(3))[0].tolist() == [5.0, 5.0, 5.0]


# ---------------------------------------------------------------- references and threads


def _counts(*objects):
    return [sys.getrefcount(o) for o in objects]


def test_references_are_exact():
    x, y = np.ones(3), np.ones(4)
    descr, f = np.dtype("float64"), native(addition(1))
    objects = (x, y, descr, f.strict)
    gc.collect()
    before = _counts(*objects)
    for _ in range(50):
        result = f(x, x)[0]
        assert sys.getrefcount(result) == 2  # the variable, the argument
        f(x[::-1], x)
        for bad in [(x, y), (x,), (x, None)]:
            with pytest.raises((Failed, Slow)):
                f(*bad)
        with pytest.raises(Slow):
            f(x, y=x)
    del bad, result
    gc.collect()
    assert _counts(*objects) == before


def test_references_of_python_steps_and_cells():
    token, made = object(), []
    b = Builder()
    x, s = b.input("float64", (None,)), b.input("float64", (None,))
    t = b.elementwise("neg", b.temp("float64", x.shape), x)
    o, y = b.object(), b.array("float64", 1)

    def function(*args):
        made.append(args[0].copy())
        return token, made[-1][::2]

    b.python(function, [t, s], [o, y])
    new = b.elementwise("add", b.output("float64", s.shape), s, s)
    b.add(Check(x.shape[0], "==", Dim.const(4)))
    cells = [[np.ones(2)]]
    f = native(b.program(o, y, new, updates=(1,), shared=1), cells)
    before = sys.getrefcount(token)
    x = np.ones(4)
    for _ in range(20):
        old = cells[0][0]
        result = f(x)
        counts = _counts(old, result[1], cells[0][0])
        assert result[0] is token and counts == [4, 4, 4]  # three are those of _counts
        with pytest.raises(Failed):
            f(np.ones(5))
    del result
    gc.collect()
    assert sys.getrefcount(token) == before
    assert _counts(*made) == _counts(*[np.ones(1) for _ in made])
    assert sys.getrefcount(x) == 2


def test_memory_does_not_grow():
    b = Builder()
    x = b.input("float64", (None,))
    y = b.array("float64", 1)
    t = b.elementwise("neg", b.temp("float64", x.shape), x)
    b.python(lambda t: (t[::2],), [t], [y])
    b.add(Check(y.shape[0], ">", ONE))
    f = native(b.program(b.elementwise("neg", b.output("float64", y.shape), y)))
    good, odd, bad = np.ones(1000), np.ones(2000)[::2], np.ones(1)

    def work(n):
        for _ in range(n):
            f(good), f(odd)
            with pytest.raises(Failed):
                f(bad)
            with pytest.raises(Slow):
                f(1)

    tracemalloc.start()
    work(100)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    work(2500)
    gc.collect()
    growth = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert growth < 20_000


def test_threads():
    b = Builder()
    x, s = b.input("float64", (None,)), b.input("float64", (None,))
    t = b.elementwise("exp", b.temp("float64", x.shape), x)
    y = b.elementwise("log", b.output("float64", x.shape), t)
    new = b.elementwise("neg", b.output("float64", s.shape), s)
    cells = [[np.ones(20_000)]]
    f = native(b.program(y, new, updates=(1,), shared=1), cells)
    errors = []

    def work(seed):
        local = np.random.default_rng(seed)
        for _ in range(100):
            x = local.normal(size=local.integers(1, 20_000))
            if not np.allclose(f(x)[0], x):
                errors.append(x)
            if abs(cells[0][0]).min() != 1:
                errors.append(x)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_long_work_lets_other_threads_run():
    b = Builder()
    x = b.input("float64", (None,))
    y = x
    for _ in range(20):
        y = b.elementwise("exp", b.temp("float64", x.shape), y)
        y = b.elementwise("log", b.temp("float64", x.shape), y)
    b.add(Check(x.shape[0], "==", Dim.const(1_000_000)))
    f = native(b.program(b.copy(y, b.output("float64", x.shape))), single=True)
    x, ticks, done = rng.normal(size=1_000_000), [], threading.Event()

    def work():
        np.testing.assert_allclose(f(x), x)
        with pytest.raises(Failed):  # the lock is taken again where a step fails
            f(x[1:])
        done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e3)  # nobody is interrupted: others run only if the lock is given up
    try:
        thread = threading.Thread(target=work)
        thread.start()
        while not done.wait(1e-4):
            ticks.append(1)
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(ticks) > 5


# -------------------------------------------------------------------- the function object


def test_functions_are_freed():
    x = np.ones(3)
    f = native(addition(1))
    f(x, x)
    ref, strict = weakref.ref(f), weakref.ref(f.strict)
    del f
    assert ref() is None and strict() is None


def test_cycles_of_functions_are_collected():
    f = native(addition(1))
    f.me = f
    ref = weakref.ref(f)
    del f
    gc.collect()
    assert ref() is None


def test_native_class():
    class Function:
        def __init__(self, name):
            self.name = name

        def __call__(self, *args):
            raise AssertionError("the native call comes first")

        def __repr__(self):
            return self.name

    native_class = make_native_class(Function)
    f = native_class("mine")
    bind(generate(addition(0), single=True), [], None, None, f)
    assert f(1.0, 2.0) == 3 and repr(f) == "mine" and isinstance(f, Function)
    assert native_class.__flags__ & (1 << 11), "calls go through a tuple of arguments"
    with pytest.raises(TypeError, match="vectorcall"):
        native_class("empty")(1.0)


def test_programs_of_equal_structure_share_the_cache():
    from phintys.config import cache_directory

    first = native(addition(1))
    entries = set(cache_directory().rglob("*.o"))
    second = native(addition(1))
    assert set(cache_directory().rglob("*.o")) == entries
    del first
    assert second(np.ones(2), np.ones(2))[0].tolist() == [2, 2]


# ------------------------------------------------------------------ across processes, layout


def test_another_process_uses_the_cached_code():
    """No address is part of the code: what one process has compiled runs in the next."""
    from phintys.config import cache_directory

    directory = cache_directory()
    code = (
        "import numpy as np; from test_entry import swap; from hand_built import native;"
        "cells = [[np.ones(2)], [np.ones(3)]]; f = native(swap(), cells);"
        "print(f(np.arange(3.0))[0].tolist(), cells[1][0].tolist())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    entries = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == "[-0.0, -1.0, -2.0] [-1.0, -1.0]"
        entries.append({p: p.stat().st_mtime_ns for p in directory.rglob("*.o")})
    assert entries[0] == entries[1]


@pytest.mark.parametrize("field", ["type", "data", "nd", "dims", "descr", "flags", "type_num"])
def test_an_unknown_memory_layout_is_noticed(field, monkeypatch):
    right = getattr(cpython.Offsets(), field)
    wrong = cpython.Offsets()._replace(**{field: right + 8})
    monkeypatch.setattr(cpython, "Offsets", lambda: wrong)
    with pytest.raises(RuntimeError, match="does not know the memory layout of NumPy"):
        cpython.offsets.__wrapped__()


# ------------------------------------------------------------------ fills


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "bool"])
@pytest.mark.parametrize("length", [0, 1, 70])
def test_zeros_need_no_kernel(dtype, length):
    import phintys
    import phintys.tensor as pt

    x = pt.vector("x", dtype=dtype)
    f = phintys.function([x], pt.set_subtensor(pt.zeros_like(x)[:1], x[:1]))
    value = np.ones(length, dtype)
    found = f(value)
    assert found.dtype == dtype and found.tolist() == [*value[:1], *np.zeros(max(length - 1, 0))]
    zeros = phintys.function([x], pt.zeros_like(x)).program
    assert "@phintys.kernel" not in emit_entry(zeros).ir
    if dtype in ("float32", "float64"):
        minus = phintys.function([x], pt.alloc(np.array(-0.0, dtype), x.shape[0]))
        assert np.signbit(minus(value)).all()


# ------------------------------------------------------------------ many steps


@pytest.mark.parametrize("length", [0, 3, 1000])
def test_a_long_chain_with_gradient(length):
    """Many temps of several sizes, more steps than one block of the routine holds."""
    import phintys
    import phintys.tensor as pt

    x, row = pt.dvector("x"), pt.fvector("row")
    y, z = x, row
    for k in range(150):
        y = pt.tanh(y * 0.9 + x) if k % 2 else y - 0.1 * x
        z = pt.sin(z + 0.5) if k % 3 else z * row
    total = y.sum() + z.astype("float64").sum()
    outputs = [total, *phintys.grad(total, [x, row])]
    values = [np.linspace(-1, 1, length), np.linspace(0, 1, length + 7).astype("float32")]
    f = phintys.function([x, row], outputs)
    assert len(f.program.steps) > 16
    wanted = phintys.function([x, row], outputs, mode="FAST_COMPILE")(*values)
    for found, expected in zip(f(*values), wanted):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-12)
