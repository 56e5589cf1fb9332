"""Ops that work in place, or hand out memory they were given: every backend gives pure results."""

from __future__ import annotations

import itertools

import numpy as np

import phintys
import phintys.tensor as pt
from phintys.compile.io import In
from phintys.graph.op import Op
from phintys.graph.variable import Apply
from phintys.scalar.arith import add
from phintys.tensor.blas import Gemv
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.index_ops import IncSubtensor

VALUE = np.array([1.0, 2.0, 3.0])
FAST = ("FAST_RUN", "FAST_COMPILE")


class Vectors(Op):
    """Ops on vectors, all of which have as many elements."""

    __props__ = ()
    nout = 1

    def make_node(self, *inputs):
        inputs = [pt.as_tensor(x) for x in inputs]
        return Apply(self, inputs, [inputs[0].type() for _ in range(self.nout)])

    def infer_shape(self, node, shapes):
        return [shapes[0]] * self.nout


class Increase(Vectors):
    destroy_map = {0: [0]}

    def perform(self, node, inputs, outputs):
        inputs[0] += 100
        outputs[0][0] = inputs[0]


class IncreaseBy(Vectors):
    """Overwrites its first input while it reads the second."""

    destroy_map = {0: [0]}

    def perform(self, node, inputs, outputs):
        inputs[0] += 1
        inputs[0] += inputs[1]
        outputs[0][0] = inputs[0]


class Swap(Vectors):
    destroy_map = {0: [0], 1: [1]}
    nout = 2

    def perform(self, node, inputs, outputs):
        x, y = inputs
        x[:], y[:] = y.copy(), x.copy() + 1
        outputs[0][0], outputs[1][0] = x, y


class Reverse(Vectors):
    view_map = {0: [0]}

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0][::-1]


class Same(Vectors):
    """Hands its input on without saying so."""

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]


class ReverseSilently(Vectors):
    """A view that it says nothing of."""

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0][::-1]


class Twins(Vectors):
    """Two results that are one array."""

    nout = 2

    def perform(self, node, inputs, outputs):
        outputs[0][0] = outputs[1][0] = inputs[0] * 2


class TwinViews(Vectors):
    """The second is a view of the first."""

    nout = 2

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * 2
        outputs[1][0] = outputs[0][0][::-1]


in_place_add = Elemwise(add, {0: 0})
in_place_set = IncSubtensor((0,), inplace=True, set_instead_of_inc=True)
EYE = np.eye(3)

#: (what is built of a vector, what it is of a value)
KINDS = {
    "destroys": (lambda x: [Increase()(x)], lambda x: [x + 100]),
    "destroys twice": (lambda x: [Increase()(x), Increase()(x + 0)], lambda x: [x + 100] * 2),
    "chain": (lambda x: [Increase()(Increase()(Increase()(x)))], lambda x: [x + 300]),
    "chain with readers": (
        lambda x: [Increase()(y := Increase()(x)), y * 2, y],
        lambda x: [x + 200, 2 * (x + 100), x + 100],
    ),
    "destroys what it reads": (lambda x: [IncreaseBy()(x, x)], lambda x: [2 * x + 1]),
    "destroys what it reads a view of": (
        lambda x: [IncreaseBy()(x, x[::-1])],
        lambda x: [x + x[::-1] + 1],
    ),
    "destroys two": (lambda x: Swap()(x, x), lambda x: [x, x + 1]),
    "destroys a view": (
        lambda x: [Increase()(Reverse()(x)), Increase()(x[:2]), x],
        lambda x: [x[::-1] + 100, x[:2] + 100, x],
    ),
    "views": (lambda x: [Reverse()(x), Reverse()(Reverse()(x))], lambda x: [x[::-1], x]),
    "same": (lambda x: [Same()(x), Increase()(Same()(x)), Same()(x)], lambda x: [x, x + 100, x]),
    "silent view": (lambda x: [ReverseSilently()(x)], lambda x: [x[::-1]]),
    "twins": (lambda x: Twins()(x), lambda x: [2 * x, 2 * x]),
    "twins destroyed": (
        lambda x: [Increase()(Twins()(x)[0]), Twins()(x)[1]],
        lambda x: [2 * x + 100, 2 * x],
    ),
    "twin views": (lambda x: TwinViews()(x), lambda x: [2 * x, 2 * x[::-1]]),
    "elementwise": (lambda x: [in_place_add(x, x + 1), x], lambda x: [2 * x + 1, x]),
    "indexing": (lambda x: [in_place_set(x, 9.0, 0), x], lambda x: [[9, *x[1:]], x]),
    "product": (
        lambda x: [Gemv(inplace=True)(x, pt.constant(1.0), EYE, x * 2, pt.constant(3.0)), x],
        lambda x: [5 * x, x],
    ),
}


def read(x):
    return x.sum()


#: what the op is applied to: (inputs, the vector, readers of it)
def place_input(vector):
    return [vector], vector, []


def place_mutable(vector):
    return [In(vector, mutable=True)], vector, [read(vector)]


def place_borrowed(vector):
    return [In(vector, borrow=True)], vector, [read(vector), vector]


def place_intermediate(vector):
    return [vector], vector * 1.0, []


def place_read_intermediate(vector):
    y = vector * 1.0
    return [vector], y, [y.sum(), y, pt.exp(y)[0], y[:1]]


PLACES = [
    place_input,
    place_mutable,
    place_borrowed,
    place_intermediate,
    place_read_intermediate,
]


def assert_separate(results, others):
    """Nobody else holds the memory of a result."""
    arrays = [r for r in results if isinstance(r, np.ndarray)]
    for k, r in enumerate(arrays):
        assert not any(np.may_share_memory(r, x) for x in (*others, *arrays[:k]))


def assert_equal(results, expected):
    assert len(results) == len(expected)
    for r, e in zip(results, expected):
        np.testing.assert_allclose(np.asarray(r), np.asarray(e))


def sampled(mode, *parameters):
    """Modes that compile for long take some of the cases."""
    step = {"NUMBA": 11, "JAX": 4, "C": 4}.get(mode, 1)
    return list(itertools.product(*parameters))[::step]


def compile_(inputs, outputs, mode, **kwargs):
    return phintys.function(
        inputs, outputs, mode=mode, accept_inplace=True, on_unused_input="ignore", **kwargs
    )


def test_arguments_and_intermediate_results(mode):
    for (build, reference), place in sampled(mode, KINDS.values(), PLACES):
        inputs, vector, readers = place(pt.dvector("x"))
        wanted = build(vector)
        before = compile_(inputs, readers, "FAST_COMPILE")(VALUE) if readers else []
        f = compile_(inputs, [*wanted, *readers], mode)
        value = VALUE.copy()
        for _ in range(2):
            results = f(value)
            assert_equal(results, [*reference(VALUE), *before])
            np.testing.assert_array_equal(value, VALUE)
            assert_separate(results, [value])


def outputs_of(kind, vector):
    build, reference = KINDS[kind]
    return build(vector), [np.asarray(r) for r in reference(VALUE)]


def test_shared_variables(mode):
    for (kind,) in sampled(mode, KINDS):
        s = phintys.shared(VALUE.copy(), "s")
        wanted, expected = outputs_of(kind, s)
        f = compile_([], [*wanted, s.sum()], mode)
        for _ in range(2):
            results = f()
            assert_equal(results, [*expected, 6.0])
            np.testing.assert_array_equal(s.get_value(), VALUE)
            assert_separate(results, [s.get_value(borrow=True)])


def test_constants(mode):
    for (kind,) in sampled(mode, KINDS):
        c = pt.constant(VALUE.copy())
        wanted, expected = outputs_of(kind, c)
        f = compile_([], [*wanted, c.sum()], mode)
        for _ in range(2):
            results = f()
            assert_equal(results, [*expected, 6.0])
            for r in results:
                if isinstance(r, np.ndarray) and r.flags.writeable:
                    r[...] = -1
        np.testing.assert_array_equal(c.data, VALUE)


def test_updates(mode):
    """New values own their memory: they share it with no argument, result or other variable."""
    for (kind,) in sampled(mode, [k for k in KINDS if k != "destroys a view"]):
        x = pt.dvector("x")
        s, t = phintys.shared(VALUE.copy(), "s"), phintys.shared(VALUE * 7, "t")
        from_x, _ = outputs_of(kind, x)
        from_t, _ = outputs_of(kind, t)
        updates = {s: from_t[-1], t: from_x[0]}
        f = compile_([x], [from_x[0], s + 0], mode, updates=updates)
        value = VALUE.copy()
        reference = KINDS[kind][1]
        results = f(value)
        assert_equal(results, [reference(VALUE)[0], VALUE])
        assert_equal([s.get_value()], [reference(VALUE * 7)[-1]])
        assert_equal([t.get_value()], [reference(VALUE)[0]])
        np.testing.assert_array_equal(value, VALUE)
        held = [value, s.get_value(borrow=True), t.get_value(borrow=True)]
        assert_separate([*held, *results], [])


def test_shared_variables_that_exchange_their_values(mode):
    s, t = phintys.shared(VALUE.copy()), phintys.shared(VALUE * 2)
    f = compile_([], [s, t], mode, updates={s: Same()(t), t: Reverse()(s)})
    first = f()
    assert_equal(first, [VALUE, VALUE * 2])
    assert_equal([s.get_value(), t.get_value()], [VALUE * 2, VALUE[::-1]])
    held = [s.get_value(borrow=True), t.get_value(borrow=True)]
    assert_separate([*held, *first], [])


def test_one_array_for_all(mode):
    """An argument, a second one and a shared variable in one array."""
    x, y = pt.dvectors("x", "y")
    value = VALUE.copy()
    s = phintys.shared(value, borrow=True)
    f = compile_(
        [In(x, mutable=True), In(y, mutable=True)],
        [Increase()(x), y * 2, Increase()(s), s * 3],
        mode,
    )
    for _ in range(2):
        assert_equal(f(value, value), [VALUE + 100, VALUE * 2, VALUE + 100, VALUE * 3])
        np.testing.assert_array_equal(value, VALUE)


def test_results_do_not_change_with_arguments(mode):
    """A backend that works on behind our back would read what the caller writes after the call."""
    n = 500
    memory = np.zeros(n * n * 8 + 64, "uint8")
    start = -memory.ctypes.data % 64  # memory that XLA takes as it is
    value = memory[start : start + n * n * 8].view("float64").reshape(n, n)
    value[...] = 1e-3
    x = pt.dmatrix("x")
    f = compile_([x], [x, (x @ x @ x @ x).sum()], mode)
    expected = [np.array(r) for r in f(value)]
    results = f(value)
    value[...] = 7
    assert_equal(results, expected)
