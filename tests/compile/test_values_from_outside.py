"""What comes from outside while a function runs: shared arrays, results of users' ops."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import LoweringError, ShapeError
from phintys.graph.op import Op
from phintys.graph.variable import Apply


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_what_a_users_op_does_to_the_shape_of_its_input_stays_there(mode):
    class Reshapes(Op):
        __props__ = ()
        itypes = otypes = (pt.dvector,)

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0].copy()
            inputs[0].shape = (2, 2)

        def infer_shape(self, node, shapes):
            return shapes

    x = pt.dvector("x")
    f = phintys.function([x], [Reshapes()(x), x + 1], mode=mode)
    value = np.arange(4.0)
    for _ in range(2):
        np.testing.assert_array_equal(f(value), [[0, 1, 2, 3], [1, 2, 3, 4]])
    assert value.shape == (4,)


def test_an_op_that_is_not_well_formed_is_named():
    x = pt.dvector("x")

    class Wrong(Op):
        itypes = otypes = (pt.dvector,)

    class NoNode(Wrong):
        def make_node(self, x):
            return x

    class NoAttribute(Wrong):
        __props__ = ("absent",)

    class NoInput(Wrong):
        destroy_map = {0: [5]}

    class NoValue(Wrong):
        def lower(self, node, b, x):
            return None

    with pytest.raises(TypeError, match="NoNode"):
        NoNode()(x)
    with pytest.raises(TypeError, match="NoAttribute lacks"):
        hash(NoAttribute())
    with pytest.raises(TypeError, match=r"destroy_map is {0: \[5\]}, for 1 inputs"):
        NoInput()(x)
    with pytest.raises(LoweringError, match="lower returned None"):
        phintys.function([x], NoValue()(x))


def test_a_masked_result_is_refused(mode):
    x = pt.dscalar("x")
    masked = np.ma.masked_array(np.ones((3, 4)), np.eye(3, 4))
    with pytest.raises(TypeError, match="returned a masked array"):
        phintys.function([x], Fixed("masked", masked)(x).sum(), mode=mode)(1.0)


class Fixed(Op):
    """Says that its result is a 3 by 4 matrix of doubles, and gives ``result``."""

    __props__ = ("name",)

    def __init__(self, name, result):
        self.name, self.result = name, result

    def make_node(self, x):
        return Apply(self, [pt.as_tensor(x)], [pt.TensorType("float64", (3, 4))()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = self.result


@pytest.mark.parametrize(
    ("name", "result", "error"),
    [
        ("short", np.zeros((1, 1)), ShapeError),
        ("long", np.zeros((3, 400)), ShapeError),
        ("flat", np.zeros(12), TypeError),
        ("complex", np.zeros((3, 4), "complex128"), TypeError),
        ("nothing", None, TypeError),
    ],
)
@pytest.mark.parametrize("of", ["an input", "a constant"])
def test_a_result_that_contradicts_its_type_is_refused(mode, name, result, error, of):
    x = pt.dvector("x")
    y = Fixed(name, result)(x if of == "an input" else np.ones(2))
    f = phintys.function([x], y.sum() + y[2, 3] + x[0], mode=mode)
    with pytest.raises(error, match=r"Fixed.*perform returned .* output 0, whose\s*type is"):
        f([1.0])


def test_a_result_of_the_right_shape_is_taken(mode):
    x = pt.dvector("x")
    y = Fixed("right", np.full((3, 4), 2.0))(x)
    assert phintys.function([x], y.sum() + x[0], mode=mode)([1.0]) == 25


def _resize(array):
    array.resize((1, 1), refcheck=False)


def _transpose(array):
    array.shape = array.shape[::-1]


def _flatten(array):
    array.shape = (-1,)


def _reinterpret(array):
    array.dtype = "int64"


@pytest.mark.parametrize("change", [_resize, _transpose, _flatten, _reinterpret])
@pytest.mark.parametrize("outputs", ["read", "updated"])
@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")
def test_a_shared_array_changed_behind_our_back_is_refused(mode, change, outputs):
    s = phintys.shared(np.ones((3, 4)), "s", shape=(3, 4))
    count = phintys.shared(0, "count")
    if outputs == "read":
        f = phintys.function([], s.sum() + s[2, 3], updates={count: count + 1}, mode=mode)
    else:
        f = phintys.function([], [], updates={s: s * 2 + s[2, 3], count: count + 1}, mode=mode)
    f()
    s.set_value(np.ones((3, 4)))  # an array of its own
    change(s.get_value(borrow=True))
    for _ in range(2):
        with pytest.raises(TypeError, match=r"\bs\b.*(shape|must be an array)"):
            f()
    assert count.get_value() == 1
    s.set_value(np.ones((3, 4)))
    f()
    assert count.get_value() == 2


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_a_shared_array_may_change_lengths_that_its_type_does_not_know(mode):
    s = phintys.shared(np.ones((3, 4)))
    f = phintys.function([], s.sum(axis=0), mode=mode)
    f()
    s.get_value(borrow=True).shape = (6, 2)
    np.testing.assert_array_equal(f(), [6, 6])
