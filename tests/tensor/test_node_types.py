"""Nodes that are built from cached answers of shape rules, and the equality of their ops."""

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.graph.op import Op
from phintys.graph.variable import Apply
from phintys.scalar.type import ScalarType
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import DimShuffle
from phintys.tensor.type import TensorType, typed_node


class Celsius(TensorType):
    """A type of a user."""


class Times(Op):
    """``n`` times the input, in floatX."""

    __props__ = ("n",)

    def __init__(self, n=2):
        self.n = n

    def make_node(self, x):
        return typed_node(self, [as_tensor_variable(x)], "floatX")

    def shape_rule(self, s, x):
        return [x]

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.asarray(inputs[0] * self.n, node.outputs[0].type.dtype)


class Extends(Times):
    def __eq__(self, other):
        return super().__eq__(other) and self.n == other.n

    def __hash__(self):
        return hash((super().__hash__(), "more"))


class OnlyHash(Times):
    def __hash__(self):
        return hash((Times.__hash__(self), 1))


class OnlyEqual(Times):
    def __eq__(self, other):
        return Times.__eq__(self, other)

    __hash__ = Times.__hash__


@pytest.mark.parametrize("cls", [Times, Extends, OnlyHash, OnlyEqual])
@pytest.mark.parametrize("mode", ["llvm", "FAST_COMPILE"])
def test_equality_may_be_extended(cls, mode):
    assert cls(2) == cls(2) != cls(3)
    assert hash(cls(2)) == hash(cls(2))
    x = pt.dvector()
    f = phintys.function([x], cls(2)(x) + cls(2)(x) + cls(3)(x), mode=mode)
    np.testing.assert_array_equal(f([1.0, 2.0]), [7.0, 14.0])


def test_the_default_dtype_is_that_of_the_moment():
    x = pt.lvector()
    assert Times()(x).type.dtype == "float64"
    with phintys.config.change_flags(floatX="float32"):
        assert Times()(x).type.dtype == "float32"


def test_a_missing_prop_is_named():
    class Lacks(Times):
        __props__ = ("n", "other")

    with pytest.raises(TypeError, match=r"Lacks lacks an attribute of __props__.*other"):
        Lacks()(pt.dvector())


RESULTS = {
    "reshape": lambda m: m.reshape((2, 3)),
    "specify_shape": lambda m: pt.specify_shape(m, (3, None)),
    "alloc": lambda m: pt.alloc(m, 2, 3, 4),
    "split": lambda m: pt.split(m, [1, 2], n_splits=2)[0],
    "repeat": lambda m: pt.repeat(m, pt.lvector(), axis=0),
    "transpose": lambda m: m.T,
}


@pytest.mark.parametrize("name", RESULTS)
def test_types_of_users_stay(name):
    plain = RESULTS[name](pt.dmatrix())
    found = RESULTS[name](Celsius("float64", (None, None))("m"))
    assert type(plain.type) is TensorType
    assert type(found.type) is Celsius
    assert found.type.shape == plain.type.shape


def test_names_of_types_are_not_mixed_up():
    named = TensorType("float64", (None, None), name="hello")
    for _ in range(2):
        assert pt.specify_shape(named("x"), (3, None)).type.name == "hello"
        assert pt.specify_shape(pt.dmatrix(), (3, None)).type.name is None


def test_scalar_types_of_users_differ():
    class Degree(ScalarType):
        pass

    assert Degree("float64") != ScalarType("float64")
    assert not ScalarType("float64").is_super(Degree("float64"))


@pytest.mark.parametrize("axis", ["0", "01", 1.0, 1.7, None])
def test_axes_are_integers(axis):
    x = pt.tensor3()
    for function in (pt.expand_dims, pt.sort, pt.cumsum, pt.squeeze):
        if axis is None and function is not pt.expand_dims:
            continue
        with pytest.raises(TypeError):
            function(x, axis=axis)
    with pytest.raises(TypeError):
        pt.moveaxis(x, axis, 0)


@pytest.mark.parametrize("order", [("1", "0"), ("y", 0, 1), (0.0, 1)])
def test_orders_of_axes_are_integers(order):
    with pytest.raises(TypeError):
        DimShuffle(input_ndim=2, new_order=order)


def test_apply_has_the_op():
    node = Times(3).make_node(pt.dvector())
    assert isinstance(node, Apply)
    assert node.op == Times(3)


@pytest.mark.parametrize(
    "build",
    [
        lambda n: pt.alloc(1.0, n, 2),
        lambda n: pt.empty((n, 2)),
        lambda n: pt.eye(n, 2),
        lambda n: pt.dvector("v").reshape((n, 2)),
        lambda n: pt.specify_shape(pt.dmatrix("m"), (n, 2)),
        lambda n: pt.random.normal(size=(n, 2), rng=pt.random.rng("rng")),
        lambda n: pt.broadcast_to(pt.dvector("v"), (n, 2)),
    ],
)
def test_types_follow_from_lengths_that_are_replaced(build):
    """Freezing the lengths of a model makes them constants."""
    n = pt.lscalar("n")
    out = build(n) * 2
    assert out.type.shape == (None, 2)
    three = pt.constant(np.int64(3))
    frozen = phintys.clone_replace(out, {n: three}, rebuild_strict=False)
    assert frozen.type.shape == (3, 2)
    (again,) = phintys.rewrite_graph([frozen], include=["canonicalize"], clone=True)  # it ends
    assert again.type.shape == (3, 2)
