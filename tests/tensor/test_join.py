"""Tensors joined, stacked and split; lists of variables."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import MODES, assert_like, check, check_batched, check_derivatives, evaluate

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.tensor.creation import Alloc
from phintys.tensor.elemwise import DimShuffle
from phintys.tensor.join import Join, Split
from phintys.tensor.shape import MakeVector

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("dtypes", [("float64", "float64"), ("int8", "float32"), ("bool", "int64")])
def test_concatenate(axis, dtypes):
    shapes = []
    for n in (2, 3):
        shape = [2, 3, 4]
        shape[axis] = n
        shapes.append(shape)
    values = [(RNG.normal(size=s) * 3).astype(d) for s, d in zip(shapes, dtypes, strict=True)]
    check(
        lambda *x: pt.concatenate(x, axis=axis),
        lambda *x: np.concatenate(x, axis=axis).astype(np.result_type(*dtypes)),
        values,
    )
    check(lambda *x: pt.join(axis, *x), lambda *x: np.concatenate(x, axis=axis), [values[0]] * 3)


@pytest.mark.parametrize("mode", MODES)
def test_second_derivative_through_a_join_of_equal_parts(mode):
    """With g = 4 c: the gradient of the sum of g**2 is 32 c."""
    c = pt.dvector("c")
    g = phintys.grad((pt.concatenate([c, c]) ** 2).sum(), c)
    f = phintys.function([c], phintys.grad((g**2).sum(), c), mode=mode)
    np.testing.assert_allclose(f([1.0, 2.0, -3.0]), [32.0, 64.0, -96.0])


def test_join_keeps_its_axis_in_the_op():
    x = pt.dmatrix("x")
    assert pt.join(-1, x, x).owner.op == Join(axis=1)
    assert pt.join(0, x) is x
    assert pt.join(pt.constant(1), x, x).owner.op == Join(1)
    check(lambda x: pt.concatenate([x, x]), lambda x: np.concatenate([x, x]), [np.zeros((0, 3))])


def test_join_static_shapes():
    a, b = pt.tensor(shape=(2, 3)), pt.tensor(shape=(4, None))
    assert pt.concatenate([a, b]).type.shape == (6, 3)
    assert pt.concatenate([pt.dmatrix(), b]).type.shape == (None, None)
    with pytest.raises(ShapeError, match="do not agree"):
        pt.concatenate([a, pt.tensor(shape=(4, 5))])


def test_join_misuse():
    x, v = pt.dmatrix("x"), pt.dvector("v")
    for build, error in [
        (lambda: pt.concatenate([x, v]), TypeError),
        (lambda: pt.concatenate([]), ValueError),
        (lambda: pt.concatenate(x), TypeError),
        (lambda: pt.join(2, x, x), ValueError),
        (lambda: pt.join(pt.iscalar(), x, x), TypeError),
        (lambda: pt.stack([]), ValueError),
        (lambda: pt.stack([x, x], axis=3), ValueError),
        (lambda: pt.horizontal_stack(x), ValueError),
        (lambda: pt.vertical_stack(v, v), ValueError),
        (lambda: Join(-1), ValueError),
    ]:
        with pytest.raises(error):
            build()
    y = pt.dmatrix("y")
    for mode in MODES:
        with pytest.raises(ShapeError):
            evaluate(pt.concatenate([x, y]), [x, y], [np.ones((2, 3)), np.ones((2, 4))], mode)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stack(axis):
    x, y = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3))
    check(lambda *v: pt.stack(v, axis), lambda *v: np.stack(v, axis), [x, y])
    check_derivatives(lambda *v: pt.stack(v, axis) ** 2, [x, y])
    check_batched(lambda *v: pt.stack(v, axis), [x, y])


def test_matrices_side_by_side():
    x, y = RNG.normal(size=(2, 2)), RNG.normal(size=(2, 2))
    check(pt.horizontal_stack, lambda *v: np.hstack(v), [x, y])
    check(pt.vertical_stack, lambda *v: np.vstack(v), [x, y])
    check(
        lambda a, b: pt.stacklists([[a, b], [b, a]]),
        lambda a, b: np.array([[a, b], [b, a]]),
        [1.5, 2.5],
    )
    assert pt.concat_with_broadcast([pt.drow(), pt.tensor(shape=(2, 3))], axis=1).type.ndim == 2
    r, m = np.ones((1, 2)), np.ones((3, 4))
    a, b = pt.drow("a"), pt.dmatrix("b")
    found = evaluate(pt.concat_with_broadcast([a, b], axis=1), [a, b], [r, m])
    assert_like(found, np.ones((3, 6)))


def test_join_derivatives_and_batches():
    x, y = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 3))
    check_derivatives(lambda *v: pt.concatenate(v) ** 2, [x, y])
    check_batched(lambda *v: pt.concatenate(v), [x, y])
    i, f = pt.ivector("i"), pt.fvector("f")
    gradient = phintys.grad((pt.concatenate([i, f]) ** 2).sum(), f)
    assert gradient.type.dtype == "float32"
    found = evaluate(gradient, [i, f], [np.ones(2, "int32"), np.ones(3, "float32")])
    assert_like(found, np.full(3, 2), "float32")


# ----------------------------------------------------------------------------------- split


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_split(axis):
    x = RNG.normal(size=(5, 5))
    for i in range(3):
        check(
            lambda x, i=i: pt.split(x, [2, 0, 3], n_splits=3, axis=axis)[i],
            lambda x, i=i: np.split(x, [2, 2], axis=axis)[i],
            [x],
        )
        check_derivatives(lambda x, i=i: pt.split(x, [2, 1, 2], axis=axis)[i] ** 2, [x])
    check_batched(lambda x: pt.split(x, [2, 3], axis=axis)[1], [x])
    assert pt.split(pt.dmatrix(), [2, 3])[1].type.shape == (3, None)
    assert pt.split(pt.dmatrix(), [2, 3])[0].owner.op == Split(2, 0)


@pytest.mark.parametrize("mode", MODES)
def test_split_by_symbolic_lengths(mode):
    x, n = pt.dvector("x"), pt.lvector("n")
    pieces = pt.split(x, n, n_splits=2)
    value = np.arange(5.0)
    found = evaluate(pieces, [x, n], [value, np.array([1, 4])], mode)
    assert_like(found[0], value[:1])
    assert_like(found[1], value[1:])
    for wrong in ([1, 3], [-1, 6]):
        with pytest.raises(ShapeError):
            evaluate(pieces, [x, n], [value, np.array(wrong)], mode)
    with pytest.raises(ValueError):
        evaluate(pieces, [x, n], [value, np.array([1, 2, 2])], mode)


def test_split_by_lengths_of_several_kinds():
    x, n = pt.dvector("x"), pt.lscalar("n")
    sizes = [np.array(2), n, 1, np.int64(0)]
    found = evaluate(pt.split(x, sizes, n_splits=4), [x, n], [np.arange(6.0), np.int64(3)])
    for piece, wanted in zip(found, np.split(np.arange(6.0), [2, 5, 6]), strict=True):
        assert_like(piece, wanted)
    with pytest.raises(TypeError, match="integer"):
        pt.split(x, [np.array(2.0), n])


def test_split_misuse():
    x = pt.dmatrix("x")
    for build, error in [
        (lambda: pt.split(x, pt.lvector()), ValueError),
        (lambda: pt.split(x, [2, 3], n_splits=3), ValueError),
        (lambda: pt.split(x, [2, 3], axis=2), ValueError),
        (lambda: pt.split(x, pt.dvector(), n_splits=2), TypeError),
    ]:
        with pytest.raises(error):
            build()


# ------------------------------------------------------------------------ lists as tensors


def test_lists_of_variables():
    s, i, v = pt.dscalar("s"), pt.iscalar("i"), pt.dvector("v")
    assert isinstance(pt.as_tensor([s, 1.0]).owner.op, MakeVector)
    for given, dtype, shape in [
        ([i, 1], "int32", (2,)),
        ([i, s], "float64", (2,)),
        ((v.shape[0], 3), "int64", (2,)),
        ([v, v], "float64", (2, None)),
        ([[s, s], [s, 1]], "float64", (2, 2)),
        ([1, 2], "int64", (2,)),
        ([1.5, 2], "float64", (2,)),
        ([], "float64", (0,)),
        (np.array([s, 2.0], dtype=object), "float64", (2,)),
    ]:
        out = pt.as_tensor(given)
        assert (out.type.dtype, out.type.shape) == (dtype, shape)
    assert pt.as_tensor([s, s], ndim=2).type.shape == (1, 2)
    assert pt.as_tensor([s, s], dtype="float32").type.dtype == "float32"
    for wrong in ([v, s], [v, 1], [True, i], ["a", "b"]):
        with pytest.raises(TypeError):
            pt.as_tensor(wrong)
    check(lambda x, y: [x, y] + x * 1, lambda x, y: np.array([x, y]) + x, [2.0, 3.0])


@pytest.mark.parametrize("axis", [0, -1])
def test_a_stack_of_one_scalar_expands_it(axis):
    """As a stack of one array does; the printed names of variables go through new axes."""
    s = pt.dscalar("s")
    one = pt.stack([s], axis=axis)
    assert isinstance(one.owner.op, DimShuffle) and one.owner.inputs == [s]
    assert one.type.shape == (1,) and one.eval({s: 2.0}).tolist() == [2.0]
    assert isinstance(pt.stack([s, s]).owner.op, MakeVector)
    n = pt.lscalar("n")
    f = phintys.function([n], pt.zeros(pt.stack([n])))
    assert [type(node.op) for node in f.maker.fgraph.toposort()] == [Alloc]
    assert pt.zeros(pt.stack([3])).type.shape == (3,)


def test_stacks_of_one_scalar_are_joined_to_a_vector():
    s, t = pt.dscalars("s", "t")
    f = phintys.function([s, t], pt.concatenate([pt.stack([s]), pt.stack([t])]))
    assert [type(n.op) for n in f.maker.fgraph.toposort()] == [MakeVector]
    assert f(2.0, 3.0).tolist() == [2.0, 3.0]
