"""Shapes, asserted shapes, reshape, axes, constants seen through ops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_checks import (
    MODES,
    assert_like,
    check,
    check_batched,
    check_derivatives,
    evaluate,
)
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode
from phintys.errors import NotScalarConstantError, ShapeError
from phintys.inner import OpFromGraph
from phintys.scalar.type import ScalarType
from phintys.tensor import elemwise, linalg
from phintys.tensor.reshape import Reshape
from phintys.tensor.shape import MakeVector, Shape, Shape_i, SpecifyShape
from phintys.tensor.type_other import NoneConst

CUBE = np.arange(24.0).reshape(2, 3, 4)


# ---------------------------------------------------------------------------------- shape


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3, 4)])
def test_shape_is_symbolic(shape):
    x = np.zeros(shape)
    check(pt.shape, lambda x: np.array(x.shape, "int64"), [x])
    check(lambda x: x.size, lambda x: np.array(x.size), [x])
    known = pt.tensor("x", shape=shape)
    assert isinstance(known.shape.owner.op, Shape)
    assert known.shape.type.shape == (len(shape),)
    for i in range(len(shape)):
        check(lambda x, i=i: pt.shape_i(x, i), lambda x, i=i: np.array(x.shape[i]), [x])
        check(lambda x, i=i: x.shape[i], lambda x, i=i: np.array(x.shape[i]), [x])


def test_shapes_have_no_gradient():
    x = pt.dmatrix("x")
    cost = (x * x.shape[0]).sum()
    found = evaluate(phintys.grad(cost, x), [x], [np.ones((2, 3))])
    assert_like(found, np.full((2, 3), 2.0))
    with pytest.raises(phintys.errors.DisconnectedInputError):
        phintys.grad(x.shape.sum().astype("float64"), x)
    with pytest.raises(TypeError, match="no axis 2"):
        Shape_i(2)(x)


def test_shape_i_asks_a_graph_that_tracks_shapes():
    class Feature:
        def get_shape(self, var, i):
            return (var, i)

    class Graph:
        shape_feature = Feature()

    x = pt.dmatrix("x")
    assert pt.shape_i(x, 1, Graph()) == (x, 1)
    assert isinstance(pt.shape_i(x, 1).owner.op, Shape_i)


def test_scalars_and_tensors():
    x = pt.dscalar("x")
    s = pt.scalar_from_tensor(x)
    assert isinstance(s.type, ScalarType)
    for mode in MODES:
        assert evaluate(pt.tensor_from_scalar(s), [x], [np.array(2.5)], mode) == 2.5
    assert pt.as_tensor(s).type.shape == ()
    found = phintys.grad(pt.tensor_from_scalar(s) ** 2, x)
    assert evaluate(found, [x], [np.array(3.0)]) == 6
    with pytest.raises(TypeError, match="0-d"):
        pt.scalar_from_tensor(pt.dvector())
    with pytest.raises(TypeError, match="scalar type"):
        pt.tensor_from_scalar(x)


# --------------------------------------------------------------------------- specify_shape


def test_specified_lengths_become_static():
    x, i = pt.dmatrix("x"), pt.iscalar("i")
    out = pt.specify_shape(x, (2, None))
    assert isinstance(out.owner.op, SpecifyShape)
    assert out.owner.inputs[2] is NoneConst
    assert out.type.shape == (2, None)
    assert pt.specify_shape(x, (i, 3)).type.shape == (None, 3)
    assert pt.specify_shape(x, (None, None)) is x
    assert pt.specify_shape(out, (2, None)) is out
    assert pt.specify_shape(x, x.shape).type.shape == (None, None)
    assert pt.specify_broadcastable(x, 0, -1).type.broadcastable == (True, True)
    with pytest.raises(ValueError, match="2 dimensions"):
        pt.specify_shape(x, (2,))
    with pytest.raises(ShapeError, match="Wrong length"):
        pt.specify_shape(out, (3, None))


@pytest.mark.parametrize("mode", MODES)
def test_unknown_lengths_do_not_broadcast(mode):
    x, y = pt.row("x"), pt.dmatrix("y")
    z = pt.unbroadcast(x, 0)
    assert z.type.shape == (None, None)
    assert pt.unbroadcast(y, 0, 1) is y
    f = phintys.function([x, y], [z + y, phintys.grad((z * y).sum(), x)], mode=mode)
    total, derivative = f(np.ones((1, 3)), np.full((1, 3), 2.0))
    assert_like(total, np.full((1, 3), 3.0))
    assert_like(derivative, np.full((1, 3), 2.0))
    with pytest.raises(ValueError, match="2"):
        pt.unbroadcast(x, 2)


#: functions that broadcast ``z``, of which the graph says that it has one row, with ``y``
BROADCASTING = {
    "add": lambda z, y: z + y,
    "exp": lambda z, y: pt.exp(z) * y,
    "switch": lambda z, y: pt.switch(z > 0, y, 0),
    "three": lambda z, y: pt.clip(y, z, 2 * y),
    "vecdot": pt.vecdot,
    "matmul": lambda z, y: pt.matmul(z[:, None], y[:, :, None]),
    "matmul of y": lambda z, y: pt.matmul(y[:, None], z[:, :, None]),
    "batched sum": lambda z, y: pt.einsum("bi,bj->bij", z, y),
    "solve": lambda z, y: linalg.solve(z[:, :1, None], y[:, :1, None]),
    "solve_triangular": lambda z, y: linalg.solve_triangular(y[:, :1, None], z[:, :1, None]),
    "set": lambda z, y: y[:, 1:].set(z[:, 1:]),
    "inc": lambda z, y: y[:, 1:].inc(z[:, 1:]),
    "set at positions": lambda z, y: y[pt.arange(y.shape[0])].set(z),
    "set at a mask": lambda z, y: y[:, 0][y[:, 0] > 0].set(z[:, 0]),
    "read": lambda z, y: y[z[:, 0].astype(int) * 0, y[:, 0].astype(int) * 0],
    "choose": lambda z, y: pt.choose(z.astype(int) * 0, [y, y]),
    "loop": lambda z, y: phintys.scan(
        lambda a, b: a + b, sequences=[pt.stack([y, y])], non_sequences=[z], return_updates=False
    ),
    "function": lambda z, y: OpFromGraph([z, y], [z + y])(z, y),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BROADCASTING)
def test_lengths_that_only_compiled_code_knows_do_not_broadcast(name, mode):
    x, y = pt.row("x"), pt.dmatrix("y")
    row, rows = np.ones((1, 3)), np.ones((2, 3))
    strict = phintys.function([x, y], BROADCASTING[name](pt.unbroadcast(x, 0), y), mode=mode)
    strict(row, row)
    wrong = IndexError if name in ("read", "choose") else ShapeError  # index tensors
    with pytest.raises(wrong):
        strict(row, rows)
    known = BROADCASTING[name](x, y)
    found, wanted = (evaluate(known, [x, y], [row, rows], m) for m in (mode, Mode("py", None)))
    assert_like(found, wanted)


@pytest.mark.parametrize("mode", MODES)
def test_specified_lengths_are_checked_where_used(mode):
    x, i = pt.dmatrix("x"), pt.iscalar("i")
    value = np.ones((2, 3))
    for out in (pt.specify_shape(x, (2, None)), pt.specify_shape(x, (i, 3))):
        assert_like(evaluate(out + 1, [x, i], [value, 2], mode), value + 1)
        assert_like(evaluate(out, [x, i], [value, 2], mode), value)
        with pytest.raises(ShapeError, match="Wrong length along axis 0"):
            evaluate(out * 2, [x, i], [np.ones((4, 3)), 2], mode)
    with pytest.raises(ShapeError, match="Wrong length along axis 0"):
        evaluate(pt.specify_shape(x, (i, 3)), [x, i], [value, 5], mode)
    unused = pt.specify_shape(x, (7, 7)).shape.sum() * 0 + x.sum()
    assert evaluate(x.sum() + 0 * i, [x, i], [value, 5], mode) == 6
    assert unused.type.ndim == 0


def test_specify_shape_derivatives_and_batches():
    check_derivatives(lambda x: pt.specify_shape(x, (2, None)) ** 2, [np.ones((2, 3))])
    check_batched(lambda x: pt.specify_shape(x, (2, None)) * 2, [np.ones((2, 3))])


def test_filter_variable_narrows():
    x = pt.dmatrix("x")
    narrow = pt.TensorType("float64", (2, None))
    out = narrow.filter_variable(x)
    assert isinstance(out.owner.op, SpecifyShape) and out.type == narrow
    assert narrow.filter_variable(out) is out


# --------------------------------------------------------------------------------- reshape


@st.composite
def reshapes(draw):
    """A shape, and another of the same size, one of whose lengths may be -1."""
    primes = draw(st.lists(st.sampled_from([1, 2, 3, 5]), max_size=4))

    def grouped():
        groups = [1] * draw(st.integers(0 if not primes else 1, 4))
        for p in primes:
            groups[draw(st.integers(0, len(groups) - 1))] *= p
        return groups

    old, new = grouped(), grouped()
    if new and draw(st.booleans()):
        new[draw(st.integers(0, len(new) - 1))] = -1
    return tuple(old), tuple(new)


@given(reshapes())
@settings(max_examples=30, deadline=None)
def test_reshape(case):
    old, new = case
    x = np.arange(float(np.prod(old))).reshape(old)
    check(lambda x: pt.reshape(x, new), lambda x: x.reshape(new), [x])
    known = pt.tensor(shape=old).reshape(new).type.shape
    assert known == x.reshape(new).shape


@given(reshapes())
@settings(max_examples=15, deadline=None)
def test_reshape_to_a_symbolic_shape(case):
    old, new = case
    x = np.arange(float(np.prod(old))).reshape(old)
    shape = np.array(new, "int64")
    check(lambda x, s: pt.reshape(x, s, ndim=len(new)), lambda x, s: x.reshape(s), [x, shape])
    lengths = pt.iscalars(len(new))
    v = pt.tensor("v", shape=(None,) * len(old))
    for mode in MODES:
        found = evaluate(v.reshape(tuple(lengths)), [v, *lengths], [x, *new], mode)
        assert_like(found, x.reshape(new))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("old", "new"), [((2, 3), (4, 2)), ((2, 3), (-1, 4)), ((0, 3), (0, -1)), ((2, 3), (7,))]
)
def test_reshape_to_another_size(old, new, mode):
    x = pt.tensor("x", shape=(None,) * len(old))
    with pytest.raises(ShapeError):
        evaluate(pt.reshape(x, new), [x], [np.zeros(old)], mode)
    with pytest.raises(ShapeError):
        pt.reshape(pt.tensor(shape=old), new)


@pytest.mark.parametrize("mode", [*MODES, "C", "NUMBA"])
def test_only_minus_one_stands_for_a_length(mode):
    """NumPy takes every negative length for -1."""
    x, m, n = pt.dvector("x"), pt.lscalar("m"), pt.lscalar("n")
    f = phintys.function([x, m, n], pt.reshape(x, (m, n)), mode=mode)
    for shape in ((1, -2), (-3, 2), (-2, -1)):
        for size in (0, 2, 6):
            with pytest.raises(ValueError):
                f(np.zeros(size), *shape)
    assert f(np.zeros(6), 2, -1).shape == (2, 3)


def test_reshape_misuse():
    x = pt.dmatrix("x")
    assert pt.reshape(x, 6).type.shape == (6,)
    for wrong in (pt.iscalar(), "23"):
        with pytest.raises(TypeError):
            pt.reshape(x, wrong)
    with pytest.raises(TypeError):
        x.reshape(2, 3)
    with pytest.raises(ValueError, match="ndim="):
        pt.reshape(x, pt.lvector("s"))
    with pytest.raises(ShapeError, match="may be -1"):
        pt.reshape(x, (-1, -1))
    with pytest.raises(TypeError, match="0-d integer"):
        pt.reshape(x, (2.0, 3.0))
    assert pt.reshape(x, []).type.ndim == 0
    assert isinstance(pt.reshape(x, (2, -1)).owner.op, Reshape)
    assert pt.reshape(x, pt.lvector(), ndim=3).owner.inputs[1].type.shape == (3,)


def test_reshape_derivatives_and_batches():
    check_derivatives(lambda x: pt.reshape(x, (3, -1)) ** 2, [np.arange(6.0).reshape(2, 3)])
    check_batched(lambda x: pt.reshape(x, (3, -1)), [np.arange(6.0).reshape(2, 3)])
    check_batched(lambda x: x.flatten(), [np.arange(6.0).reshape(2, 3)])


def test_flatten_keeps_leading_axes():
    """Unlike NumPy's, the argument is the rank of the result."""
    for ndim in (1, 2, 3):
        check(
            lambda x, n=ndim: x.flatten(n),
            lambda x, n=ndim: x.reshape((*x.shape[: n - 1], -1)),
            [CUBE],
        )
    check(lambda x: x.ravel(), np.ravel, [np.array(2.0)])
    check(lambda x: x.flatten(2), lambda x: x.reshape(0, 12), [np.zeros((0, 3, 4))])
    x = pt.dmatrix("x")
    assert x.flatten(2) is x
    assert pt.is_flat(x.flatten()) and not pt.is_flat(x)
    for wrong in (0, 3):
        with pytest.raises(ValueError, match="between 1 and 2"):
            x.flatten(wrong)


# ------------------------------------------------------------------------------------ axes

AXES = {
    "T": (lambda x: x.T, lambda x: x.T),
    "mT": (lambda x: x.mT, lambda x: np.swapaxes(x, -1, -2)),
    "transpose": (lambda x: x.transpose(), np.transpose),
    "transpose, axes": (lambda x: x.transpose(1, 0, 2), lambda x: x.transpose(1, 0, 2)),
    "transpose, a tuple": (lambda x: x.transpose((2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    "transpose, from the end": (
        lambda x: pt.transpose(x, (-1, 0, 1)),
        lambda x: x.transpose(-1, 0, 1),
    ),
    "swapaxes": (lambda x: x.swapaxes(0, -1), lambda x: x.swapaxes(0, -1)),
    "moveaxis": (lambda x: pt.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1)),
    "moveaxis, two": (
        lambda x: pt.moveaxis(x, (0, 1), (2, 0)),
        lambda x: np.moveaxis(x, (0, 1), (2, 0)),
    ),
    "expand_dims": (lambda x: pt.expand_dims(x, 1), lambda x: np.expand_dims(x, 1)),
    "expand_dims, two": (
        lambda x: pt.expand_dims(x, (0, -1)),
        lambda x: np.expand_dims(x, (0, -1)),
    ),
    "shape_padleft": (lambda x: pt.shape_padleft(x, 2), lambda x: x[None, None]),
    "shape_padright": (lambda x: pt.shape_padright(x), lambda x: x[..., None]),
    "shape_padaxis": (lambda x: pt.shape_padaxis(x, -2), lambda x: np.expand_dims(x, -2)),
    "dimshuffle": (
        lambda x: x.dimshuffle(1, "x", 2, 0),
        lambda x: x.transpose(1, 2, 0)[:, None],
    ),
}
#: those that ``make test`` takes
QUICK = "mT", "transpose, a tuple", "moveaxis, two", "expand_dims, two", "dimshuffle"


@pytest.mark.parametrize("name", few(AXES, *QUICK))
def test_axes(name):
    build, reference = AXES[name]
    check(build, reference, [CUBE])
    check(lambda x: build(x) + 1, lambda x: reference(x) + 1, [CUBE[:, :0]])
    check_derivatives(lambda x: build(x) ** 2, [CUBE])
    check_batched(build, [CUBE])


def test_atleast():
    for n in (1, 2, 3):
        build = getattr(pt, f"atleast_{n}d")
        check(build, lambda x, n=n: x.reshape((1,) * max(0, n - x.ndim) + x.shape), [np.ones(2)])
    assert pt.atleast_Nd(pt.dvector(), n=3, left=False).type.shape == (None, 1, 1)


def test_squeeze():
    """Without an axis only what is known to be 1 goes; a given axis goes whatever is known."""
    x = pt.tensor("x", shape=(1, None, 1))
    assert x.squeeze().type.shape == (None,)
    assert x.squeeze(0).type.shape == (None, 1)
    assert x.squeeze((0, -1)).type.shape == (None,)
    y = pt.dmatrix("y")
    assert y.squeeze() is y
    for mode in MODES:
        assert_like(evaluate(y.squeeze(1), [y], [np.ones((3, 1))], mode), np.ones(3))
        with pytest.raises(ShapeError):
            evaluate(y.squeeze(1), [y], [np.ones((3, 2))], mode)
    with pytest.raises(TypeError, match="dropped axis 0"):
        pt.tensor(shape=(2, 1)).squeeze(0)


def test_axes_misuse():
    x = pt.dmatrix("x")
    for build in (
        lambda: x.swapaxes(0, 2),
        lambda: pt.expand_dims(x, 5),
        lambda: pt.transpose(x, (0, 0)),
        lambda: pt.transpose(x, (0,)),
        lambda: pt.moveaxis(x, (0, 1), 0),
        lambda: pt.dvector().mT,
        lambda: x.squeeze(2),
    ):
        with pytest.raises(ValueError):
            build()


# ------------------------------------------------------------------- what is known of values


def test_constants_are_seen_through_ops():
    x = pt.tensor("x", shape=(2, None))
    for variable, value in [
        (pt.constant(3), 3),
        (pt.full((2, 3), 4), 4),
        (pt.zeros_like(x), 0),
        (pt.cast(pt.full((2, x.shape[1]), 4), "float32"), 4),
        (pt.expand_dims(pt.constant(2.5), 0), 2.5),
        (x.shape[0], 2),
        (pt.shape_i(x, 0) * 3 + 1, 7),
        (pt.as_tensor([x.shape[1], 5])[1], 5),
        (pt.constant([4, 5, 6])[-1], 6),
        (pt.tensor_from_scalar(pt.scalar_from_tensor(pt.constant(1))), 1),
        (pt.specify_shape(pt.ones_like(x), (2, 3)), 1),
    ]:
        assert pt.get_underlying_scalar_constant_value(variable) == value
        assert pt.extract_constant(variable) == value
    assert pt.get_underlying_scalar_constant_value(np.array([2, 2])) == 2
    assert pt.extract_constant(x.shape[1]).type.ndim == 0


def test_constants_that_are_not_known():
    x = pt.dvector("x")
    for variable in (x, x[0], x.shape[0], pt.constant([1, 2]), pt.exp(x)):
        with pytest.raises(NotScalarConstantError):
            pt.get_underlying_scalar_constant_value(variable)
        kept = pt.get_underlying_scalar_constant_value(variable, raise_not_constant=False)
        assert kept is variable
    with pytest.raises(NotScalarConstantError):
        pt.get_scalar_constant_value(pt.ones((2, 2)))
    with pytest.raises(NotScalarConstantError):
        pt.get_underlying_scalar_constant_value(pt.constant(1) + 1, elemwise=False)
    with pytest.raises(NotScalarConstantError):
        pt.get_underlying_scalar_constant_value(pt.ones((2,)), only_process_constants=True)


def test_the_search_for_a_constant_is_bounded():
    deep = pt.constant(1.0)
    for _ in range(10_000):
        deep = pt.exp(deep)
    with pytest.raises(NotScalarConstantError):
        pt.get_scalar_constant_value(deep)


@pytest.mark.parametrize("part", [lambda v: v[7], lambda v: v[5:9][2]])
def test_an_entry_of_a_converted_constant_costs_one_entry(part, lines_run):
    def work(n):
        entry = part(pt.cast(pt.constant(np.arange(n)), "int32"))
        assert pt.get_underlying_scalar_constant_value(entry) == 7
        return lines_run(pt.get_underlying_scalar_constant_value, entry)

    work(10)
    assert work(10_000) < 2 * work(10)


def test_vector_lengths_and_static_shapes():
    x = pt.dmatrix("x")
    assert pt.get_vector_length(x.shape) == 2
    assert pt.get_vector_length(pt.as_tensor([1, 2, 3])) == 3
    with pytest.raises(ValueError, match="not known"):
        pt.get_vector_length(pt.lvector())
    with pytest.raises(TypeError, match="not a vector"):
        pt.get_vector_length(x)
    entries, static = pt.infer_static_shape((x.shape[0], 3))
    assert static == (None, 3) and len(entries) == 2
    with pytest.raises(ValueError, match="negative"):
        pt.infer_static_shape((-1,))
    assert pt.reshape(x, (x.shape[1], 2, -1)).type.shape == (None, 2, None)


def test_make_vector():
    x, i = pt.dscalar("x"), pt.iscalar("i")
    made = pt.stack([x, i, 2])
    assert isinstance(made.owner.op, MakeVector) and made.type.shape == (3,)
    check(lambda x, i: pt.stack([x, i]), lambda x, i: np.array([x, i]), [2.5, np.int32(3)])
    check_derivatives(lambda x, y: pt.stack([x, y, x * y]), [2.0, 3.0])
    check_batched(lambda x, y: pt.stack([x, y]), [np.array(2.0), np.array(3.0)])
    with pytest.raises(TypeError, match="fit"):
        MakeVector("int8")(i)
    with pytest.raises(TypeError, match="0-d"):
        MakeVector("float64")(pt.dvector())
    assert evaluate(MakeVector("int64")()).shape == (0,)
    assert elemwise.one().data == 1
