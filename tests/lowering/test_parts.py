"""Values that consist of several arrays: a type of users, and ops that compute with the parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import LoweringError
from phintys.graph.type import Part
from phintys.lowering.program import Python
from phintys.lowering.values import Composite

MODES = ("FAST_COMPILE", "FAST_RUN", "C")


@dataclass
class Pairs:
    """Numbers at positions of a vector: what a sparse vector is."""

    data: np.ndarray
    positions: np.ndarray


class PairsType(phintys.Type):
    __props__ = ()
    parts = (Part("float64", (None,)), Part("int64", (None,)))

    def filter(self, data, strict=False, allow_downcast=None):
        if not isinstance(data, Pairs):
            raise TypeError(f"Expected Pairs, not {data!r}.")
        return data

    def split(self, value):
        return value.data, value.positions

    def join(self, parts):
        return Pairs(*parts)


pairs = PairsType()


class Scale(phintys.Op):
    """A number times pairs; the positions are those of the input."""

    __props__ = ()

    def make_node(self, a, x):
        return phintys.Apply(self, [pt.as_tensor_variable(a), x], [pairs()])

    def perform(self, node, inputs, output_storage):
        a, x = inputs
        output_storage[0][0] = Pairs(a * x.data, x.positions.copy())

    def lower(self, node, b, a, x):
        data, positions = x.parts
        return Composite(b.map(lambda n, a, x: n.mul(n.cast(a, "float64"), x), a, data), positions)


class Total(phintys.Op):
    """The sum of the numbers, each times its position."""

    __props__ = ()

    def make_node(self, x):
        return phintys.Apply(self, [x], [pt.dscalar()])

    def perform(self, node, inputs, output_storage):
        (x,) = inputs
        output_storage[0][0] = np.sum(x.data * x.positions)

    def lower(self, node, b, x):
        data, positions = x.parts
        terms = b.map(lambda n, x, i: n.mul(x, n.cast(i, "float64")), data, positions)
        return b.reduce("add", terms, (0,))


class Reversed(Total):
    """Pairs in reversed order, by ``perform`` only."""

    def make_node(self, x):
        return phintys.Apply(self, [x], [pairs()])

    def perform(self, node, inputs, output_storage):
        (x,) = inputs
        output_storage[0][0] = Pairs(x.data[::-1].copy(), x.positions[::-1].copy())

    def lower(self, node, b, x):
        return NotImplemented


scale, total, reversed_ = Scale(), Total(), Reversed()


def example(n=3):
    return Pairs(np.arange(1.0, n + 1), np.arange(n) * 2)


def assert_equal(found, expected):
    assert isinstance(found, Pairs)
    np.testing.assert_array_equal(found.data, expected.data)
    np.testing.assert_array_equal(found.positions, expected.positions)
    assert found.data.dtype == "float64"
    assert found.positions.dtype == "int64"


def share_memory(a, b):
    return np.shares_memory(a.data, b.data) or np.shares_memory(a.positions, b.positions)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [0, 1, 3, 1000])
def test_passed_in_computed_and_returned(mode, n):
    x, a = pairs("x"), pt.dscalar("a")
    f = phintys.function([a, x], [scale(a, x), total(scale(a, x)), x], mode=mode)
    given = example(n)
    given.data = np.repeat(given.data, 2)[::2]  # not contiguous
    for _ in range(3):
        y, s, same = f(2.0, given)
        assert_equal(y, Pairs(2 * given.data, given.positions))
        assert s == np.sum(2 * given.data * given.positions)
        assert_equal(same, given)
        assert not share_memory(y, given)
        assert not share_memory(same, given)
    with pytest.raises(TypeError, match="Expected Pairs"):
        f(2.0, np.zeros(3))


@pytest.mark.parametrize("mode", MODES)
def test_shared_and_updated(mode):
    x = phintys.graph.shared.SharedVariable(pairs, example(), name="x")
    f = phintys.function([], [x, scale(2.0, x)], updates=[(x, scale(3.0, x))], mode=mode)
    before = x.get_value(borrow=True)
    for k in range(3):
        old, doubled = f()
        assert_equal(old, Pairs(3.0**k * before.data, before.positions))
        assert_equal(doubled, Pairs(2 * 3.0**k * before.data, before.positions))
        assert not share_memory(old, x.get_value(borrow=True))
    assert_equal(x.get_value(), Pairs(27 * before.data, before.positions))
    assert_equal(before, example())


@pytest.mark.parametrize("mode", MODES)
def test_through_perform_and_constants(mode):
    x, constant = pairs("x"), pairs.make_constant(example())
    y = scale(2.0, reversed_(scale(5.0, x)))
    f = phintys.function([x], [y, total(y), total(constant), constant, constant], mode=mode)
    expected = Pairs(10 * example().data[::-1], example().positions[::-1])
    found, s, t, c, d = f(example())
    assert_equal(found, expected)
    assert s == np.sum(expected.data * expected.positions)
    assert t == 16.0
    assert_equal(c, example())
    assert not share_memory(c, d)
    c.data[:] = 7
    assert_equal(f(example())[3], example())


def test_parts_are_computed_natively():
    x = pairs("x")
    program = phintys.function([x], total(scale(2.0, scale(3.0, x)))).program
    assert [s.name for s in program.steps if isinstance(s, Python)] == ["split"]


def test_an_inconsistent_value_is_an_error():
    x = pairs("x")
    f = phintys.function([x], total(x))
    with pytest.raises((phintys.errors.ShapeError, ValueError)):
        f(Pairs(np.zeros(2), np.zeros(3, "int64")))
    with pytest.raises(TypeError, match="float64"):
        f(Pairs(np.zeros(2, "float32"), np.zeros(2, "int64")))


def test_wrong_parts_are_errors_of_lowering():
    class Wrong(Scale):
        def lower(self, node, b, a, x):
            return Composite(*reversed(x.parts))

    class Few(Scale):
        def lower(self, node, b, a, x):
            return Composite(x.parts[0])

    x = pairs("x")
    for op in (Wrong(), Few()):
        with pytest.raises(LoweringError, match="lower returned"):
            phintys.function([x], op(2.0, x))


def test_types_say_what_values_consist_of():
    assert pt.TensorType("float64", (2, None)).parts == (Part("float64", (2, None)),)
    assert phintys.generic.parts == (Part(None),)
    copy = pairs.copy_value(example())
    assert_equal(copy, example())


@pytest.mark.parametrize("mode", ["NUMBA", "JAX"])
def test_transpilers_run_such_functions_in_python(mode):
    x = pairs("x")
    with pytest.warns(UserWarning, match="has no values of type PairsType"):
        f = phintys.function([x], scale(2.0, x), mode=mode)
    assert_equal(f(example()), Pairs(2 * example().data, example().positions))
