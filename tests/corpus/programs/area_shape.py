"""Creation, shapes, joins."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
from helpers import both, compiled
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.type import TensorType

M = np.arange(6.0).reshape(2, 3)


def filled():
    n = pt.lscalar("n")
    for y in (
        pt.zeros(3),
        pt.ones((2, 3)),
        pt.zeros((n, 2)),
        pt.full((2, n), 7),
        pt.zeros(()),
        pt.ones(3, dtype="int8"),
        pt.full(2, 1.5, dtype="float32"),
        pt.alloc(0.0, n, 3),
    ):
        yield both(y, {n: 2})
    yield pt.empty((2, 3), dtype="int64")
    yield lambda: pt.zeros(-1).eval()
    yield lambda: pt.zeros((2, -1))
    yield lambda: pt.zeros(2.5)
    yield lambda: pt.ones("a")


def filled_like():
    x = pt.matrix("x", dtype="float32", shape=(2, None))
    yield [pt.zeros_like(x), pt.ones_like(x, dtype="int8"), pt.full_like(x, 3), pt.empty_like(x)]
    yield [x.zeros_like(), x.ones_like(), pt.zeros_like(x, opt=True), pt.identity_like(x)]
    yield both(pt.full_like(x, 2.7, dtype="int64"), {x: M.astype("float32")})


def alloc_of_vectors():
    v = pt.dvector("v")
    yield both(pt.alloc(v, 2, 3), {v: [1.0, 2.0, 3.0]})
    yield lambda: pt.alloc(v, 2, 4).eval({v: [1.0, 2.0, 3.0]})
    yield lambda: pt.alloc(pt.dmatrix("m"), 3)
    yield lambda: pt.alloc(v, 2.0)
    yield pt.alloc(v, 2, 1)


def ranges():
    n = pt.lscalar("n")
    for y in (
        pt.arange(3),
        pt.arange(3.0),
        pt.arange(1, 7, 2),
        pt.arange(n),
        pt.arange(0, 1, 0.25),
        pt.arange(5, 0, -2),
        pt.arange(n, dtype="float32"),
        pt.arange(np.int8(3)),
        pt.arange(0),
    ):
        yield both(y, {n: 4})
    yield pt.arange(pt.bscalar("b"))
    yield pt.arange(pt.fscalar("f"))
    yield lambda: pt.arange(pt.dvector("v"))
    yield lambda: pt.arange()


def spaces():
    yield both(pt.linspace(0, 1, 5))
    yield both(pt.linspace(0, 1, 4, endpoint=False))
    yield both(pt.logspace(0, 2, 3))
    yield both(pt.geomspace(1, 100, 3))
    yield both(pt.linspace(pt.as_tensor([0.0, 1.0]), 2, 3))
    yield both(pt.linspace(pt.as_tensor([0.0, 1.0]), 2, 3, axis=-1))
    yield pt.linspace(0, 1, pt.lscalar("n"))


def matrices_of_ones():
    n = pt.lscalar("n")
    for y in (
        pt.eye(2),
        pt.eye(2, 3),
        pt.eye(3, k=1),
        pt.eye(n),
        pt.eye(2, dtype="int8"),
        pt.tri(3),
        pt.tri(2, 4, -1),
        pt.identity_like(pt.zeros((2, 2))),
    ):
        yield both(y, {n: 2})
    yield lambda: pt.eye(2.5)


def triangles():
    x = pt.dmatrix("x")
    yield both(pt.tril(x), {x: M})
    yield both(pt.triu(x, 1), {x: M})
    yield both(pt.tril(x, -1), {x: M})
    yield [both(i) for i in pt.tril_indices(3)]
    yield [both(i) for i in pt.triu_indices(3, 1)]
    yield lambda: pt.tril(pt.dscalar("s"))


def reshapes():
    x, s = pt.dmatrix("x"), pt.lvector("s")
    values = {x: M, s: [3, 2]}
    yield both(x.reshape((3, 2)), values)
    yield both(x.reshape((-1,)), values)
    yield both(x.reshape((3, -1)), values)
    yield both(x.reshape(s, ndim=2), values)
    yield both(pt.reshape(x, (6,)), values)
    yield both(x.reshape((1, 6, 1)), values)
    yield both(x.reshape([2, x.shape[1]]), values)
    yield lambda: x.reshape(s)
    yield lambda: x.reshape((4, 2)).eval(values)
    yield lambda: x.reshape((-1, -1))
    yield lambda: x.reshape((2.0, 3.0))
    yield lambda: x.reshape(3, 2)


def reshapes_of_known_lengths():
    x = pt.matrix("x", shape=(2, 3))
    y = pt.matrix("y", shape=(2, None))
    yield [
        x.reshape((-1,)),
        x.reshape((3, -1)),
        y.reshape((-1,)),
        y.reshape((2, -1)),
        x.reshape((6, 1)),
    ]
    yield [x.flatten(), y.flatten(), x.ravel(), x.flatten(2), pt.flatten(x, ndim=1)]
    yield lambda: x.reshape((7,))
    yield lambda: x.reshape((4, -1))
    yield isinstance(x.reshape((3, 2)).owner.op, Reshape)


def flatten():
    x = pt.dtensor3("x")
    value = np.arange(8.0).reshape(2, 2, 2)
    yield both(x.flatten(), {x: value})
    yield both(x.flatten(2), {x: value})
    yield both(pt.flatten(x, ndim=3), {x: value})
    yield lambda: x.flatten(0)
    yield lambda: x.flatten(4)


def transposes():
    x = pt.tensor("x", dtype="float64", shape=(2, None, 4))
    yield [x.T, x.transpose(), x.transpose(1, 0, 2), x.transpose((2, 0, 1)), x.mT, x.swapaxes(0, 2)]
    yield [
        pt.moveaxis(x, 0, -1),
        pt.transpose(x, (0, 2, 1)),
        x.dimshuffle(2, 0, 1),
        pt.swapaxes(x, 1, 2),
    ]
    yield lambda: x.transpose(0, 1)
    yield lambda: x.transpose(0, 0, 1)
    yield lambda: pt.moveaxis(x, 5, 0)
    yield lambda: x.swapaxes(0, 4)
    yield lambda: pt.dvector("v").mT


def dimshuffles():
    x = pt.tensor("x", dtype="float64", shape=(1, None))
    yield [
        x.dimshuffle(1),
        x.dimshuffle(1, 0),
        x.dimshuffle("x", 0, "x", 1),
        x.dimshuffle([1, "x", 0]),
    ]
    yield lambda: x.dimshuffle(0)
    yield lambda: x.dimshuffle(0, 1, 2)
    yield lambda: x.dimshuffle(0, 0, 1)
    yield lambda: x.dimshuffle("y", 0, 1)
    yield lambda: pt.matrix("y", shape=(2, 3)).dimshuffle(0)
    y = pt.dmatrix("y")
    yield lambda: y.dimshuffle(0).eval({y: M})
    yield lambda: y.dimshuffle(0).eval({y: M[:, :1]})


def dimensions_of_length_one():
    x = pt.tensor("x", dtype="float64", shape=(1, None, 1))
    yield [
        x.squeeze(),
        x.squeeze(0),
        x.squeeze(-1),
        pt.squeeze(x, axis=(0, 2)),
        pt.squeeze(x, axis=()),
    ]
    yield [pt.expand_dims(x, 0), pt.expand_dims(x, (0, -1)), pt.atleast_1d(pt.dscalar("s"))]
    yield [pt.atleast_2d(pt.dvector("v")), pt.atleast_3d(pt.dvector("v")), pt.shape_padleft(x, 2)]
    yield [pt.shape_padright(x), pt.shape_padaxis(x, 1), pt.atleast_Nd(pt.dvector("v"), n=3)]
    yield lambda: x.squeeze(3)
    yield lambda: pt.expand_dims(x, 7)
    y = pt.dmatrix("y")
    yield lambda: y.squeeze(0).eval({y: M})
    yield lambda: pt.matrix("z", shape=(2, 3)).squeeze(0)


def joins():
    a, b = pt.dmatrix("a"), pt.fmatrix("b")
    values = {a: M, b: M.astype("float32")}
    yield both(pt.concatenate([a, b]), values)
    yield both(pt.concatenate([a, b], axis=1), values)
    yield both(pt.join(0, a, b, a), values)
    yield both(pt.join(-1, a, b), values)
    yield lambda: pt.concatenate([a, b], axis=2)
    yield lambda: pt.join(0, a, pt.dvector("v"))
    yield lambda: pt.concatenate([])
    yield lambda: pt.concatenate([pt.dscalar("s"), pt.dscalar("t")])
    yield lambda: pt.concatenate([a, b], axis=0).eval({a: M, b: M[:, :2].astype("float32")})
    yield lambda: pt.concatenate(a)


def static_shapes_of_joins():
    a, b = pt.matrix("a", shape=(2, 3)), pt.matrix("b", shape=(None, 3))
    c = pt.matrix("c", shape=(4, None))
    yield [pt.concatenate([a, b]), pt.concatenate([a, a]), pt.concatenate([a, c]), pt.join(1, a, a)]
    yield lambda: pt.join(pt.lscalar("axis"), a, a)
    yield [pt.stack([a, a]), pt.stack([a, a], axis=-1)]
    yield lambda: pt.concatenate([a, pt.matrix("d", shape=(2, 4))])
    yield lambda: pt.stack([a, pt.matrix("d", shape=(2, 4))])


def stacks():
    a, b = pt.dvector("a"), pt.dvector("b")
    values = {a: [1.0, 2.0], b: [3.0, 4.0]}
    yield both(pt.stack([a, b]), values)
    yield both(pt.stack([a, b], axis=1), values)
    yield both(pt.stack([a, 2 * b], axis=-1), values)
    yield both(pt.stacklists([[1, 2], [3, 4]]))
    yield both(pt.horizontal_stack(a[None], b[None]), values)
    yield both(pt.vertical_stack(a[None], b[None]), values)
    yield lambda: pt.stack([a, b], axis=3)
    yield lambda: pt.stack([])
    yield lambda: pt.stack(a, b)
    yield lambda: pt.stack([a, pt.dmatrix("m")])


def splits():
    x = pt.dvector("x")
    values = {x: np.arange(6.0)}
    yield [both(y, values) for y in pt.split(x, [2, 4], n_splits=2)]
    yield [both(y, values) for y in pt.split(x, [1, 2, 3], n_splits=3, axis=0)]
    yield lambda: [y.eval(values) for y in pt.split(x, [2, 2], n_splits=2)]
    yield lambda: pt.split(x, [2, 4], n_splits=3)
    yield lambda: pt.split(x, [2, 4], n_splits=2, axis=1)
    yield lambda: pt.split(x, pt.lvector("s"), n_splits=2)
    yield lambda: pt.split(x, [2.0, 4.0], n_splits=2)


def broadcasts():
    x = pt.dvector("x")
    yield both(pt.broadcast_to(x, (2, 3)), {x: [1.0, 2.0, 3.0]})
    yield [both(y, {x: [1.0, 2.0]}) for y in pt.broadcast_arrays(x, np.ones((3, 1)))]
    yield [pt.broadcast_to(x, (2, 1)), pt.broadcast_to(pt.dscalar("s"), (2, pt.lscalar("n")))]
    yield lambda: pt.broadcast_to(x, (2, 3)).eval({x: [1.0, 2.0]})
    yield lambda: pt.broadcast_to(pt.dmatrix("m"), (3,))
    yield lambda: pt.broadcast_shape((2, 3), (2, 4), arrays_are_shapes=True)
    yield [str(d) for d in pt.broadcast_shape((2, 1), (1, 4), arrays_are_shapes=True)]


def repeats_and_tiles():
    x = pt.dmatrix("x")
    yield both(pt.repeat(x, 2), {x: M})
    yield both(pt.repeat(x, 2, axis=0), {x: M})
    yield both(pt.repeat(x, [1, 2, 0], axis=1), {x: M})
    yield both(pt.tile(x, 2), {x: M})
    yield both(pt.tile(x, (2, 1)), {x: M})
    yield both(pt.tile(x, (2, 1, 1)), {x: M})
    yield lambda: pt.repeat(x, -1)
    yield lambda: pt.repeat(x, 1.5)
    yield lambda: pt.repeat(x, 2, axis=3)
    yield lambda: pt.tile(x, -1).eval({x: M})
    yield lambda: pt.tile(x, 1.5)
    yield lambda: pt.repeat(x, pt.lmatrix("m"))


def rolls_and_flips():
    x = pt.dmatrix("x")
    yield both(pt.roll(x, 1), {x: M})
    yield both(pt.roll(x, 1, axis=1), {x: M})
    yield lambda: pt.roll(x, (1, -1), axis=(0, 1))
    yield both(pt.flip(x), {x: M})
    yield both(pt.flip(x, axis=1), {x: M})
    yield lambda: pt.roll(x, 1, axis=2)
    yield lambda: pt.flip(x, axis=3)


def shapes():
    x = pt.tensor("x", dtype="float64", shape=(2, None))
    yield both(x.shape, {x: M})
    yield both(pt.shape(x)[1], {x: M})
    yield both(x.size, {x: M})
    yield [x.ndim, x.dtype, x.type.shape, x.broadcastable, x.type.ndim, len(x.shape.type.shape)]
    yield pt.get_vector_length(x.shape)
    yield lambda: pt.get_vector_length(pt.lvector("v"))


def specified_shapes():
    x = pt.dmatrix("x")
    y = pt.specify_shape(x, (2, None))
    yield both(y, {x: M})
    yield lambda: y.eval({x: M[:1]})
    yield [pt.specify_shape(x, [2, 3]), pt.specify_shape(x, (pt.lscalar("n"), 3))]
    yield lambda: pt.specify_shape(x, (2,))
    yield lambda: pt.specify_shape(x, (2.5, 3))
    yield lambda: pt.specify_shape(pt.matrix("z", shape=(3, 3)), (2, 3))
    yield isinstance(y.owner.op, SpecifyShape)
    yield pt.specify_broadcastable(x, 0)
    yield lambda: pt.specify_broadcastable(x, 0).eval({x: M})
    yield lambda: pt.specify_broadcastable(x, 4)


def types():
    t = TensorType("float64", shape=(None, 1))
    yield [str(t), repr(t), t.ndim, t.broadcastable, t.dtype, t.shape, t == pt.dcol, t("x")]
    yield [
        str(pt.dvector),
        str(pt.lscalar),
        str(TensorType("int8", (2, 3))),
        t.clone(dtype="int8")("x"),
    ]
    yield [
        t.is_super(TensorType("float64", (2, 1))),
        t.is_super(pt.dmatrix),
        t.in_same_class(pt.dmatrix),
    ]
    yield lambda: TensorType("float63", (None,))
    yield lambda: TensorType("float64", shape=(-1,))
    yield lambda: TensorType("float64", shape=("a",))
    yield lambda: TensorType("float64", shape=3)
    yield TensorType("floatX", shape=(True, False)).dtype
    yield TensorType("float64", shape=(None,)).numpy_dtype == np.dtype("float64")


def filters_of_values():
    t = pt.fvector
    yield lambda: t.filter([1.0, 2.0])
    yield lambda: t.filter(np.array([0.1, 0.2]))
    yield lambda: t.filter(np.array([0.1, 0.2]), allow_downcast=True)
    yield lambda: t.filter(np.array([1, 2], dtype="int8"))
    yield lambda: t.filter([1.0, 2.0], strict=True)
    yield lambda: t.filter(np.ones((2, 2), "float32"))
    yield lambda: TensorType("float32", (3,)).filter(np.ones(2, "float32"))
    yield lambda: t.filter("text")
    yield lambda: t.filter(None)
    yield lambda: pt.fscalar.filter(0.1)
    yield lambda: pt.bscalar.filter(300)
    yield lambda: pt.bvector.filter(np.array([300]))
    yield [
        t.is_valid_value(np.ones(2, "float32")),
        t.is_valid_value([1.0]),
        t.is_valid_value(np.ones(2)),
    ]


def constructors():
    for name in (
        "scalar vector matrix row col tensor3 tensor4 dvector ivector bmatrix fscalar zcol".split()
    ):
        yield [name, getattr(pt, name)("x"), getattr(pt, name)().name]
    yield pt.tensor("x", dtype="int8", shape=(2, None))
    yield pt.tensor(dtype="float32", shape=(3,), name="y").name
    yield lambda: pt.vector("x", shape=(2, 3))
    yield lambda: pt.matrix("x", dtype="no such dtype")


def shape_of_large_graphs_is_inferred():
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    yield compiled(pt.dot(x, y).shape, {x: M, y: M.T})
    yield compiled(pt.concatenate([x, x]).shape[0], {x: M})
    yield compiled(x[1:].T.shape, {x: M})
    yield compiled((x.sum(axis=0) + y[:, 0]).shape, {x: M, y: M.T})


def packing():
    x, y = pt.dscalar("x"), pt.dmatrix("y")
    flat, shapes = pt.pack(x, y)
    yield both(flat, {x: 1.0, y: M})
    yield [both(z, {x: 1.0, y: M}) for z in pt.unpack(flat, shapes)]


def joined_and_split_dimensions():
    x = pt.tensor("x", dtype="float64", shape=(2, 3, None))
    yield [pt.join_dims(x, 0, 2), pt.split_dims(x, (1, 2), axis=0), pt.join_dims(x)]
    yield lambda: pt.join_dims(x, 0, 5)
    yield lambda: pt.split_dims(x, (3, 3), axis=0)


def padding():
    x = pt.dvector("x")
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "mean"):
        yield [mode, both(pt.pad(x, (2, 1), mode=mode), {x: [1.0, 2.0, 4.0]})]
    yield lambda: pt.pad(x, (1, 1), mode="no such mode")
    yield both(pt.pad(x, 1, constant_values=7.0), {x: [1.0, 2.0]})


def shared_shapes():
    x = pytensor.shared(M, name="x")
    yield [x, pytensor.shared(M, shape=(2, None)), pytensor.shared(np.ones((1, 3)))]
    yield lambda: x.set_value(np.ones((5, 5)))
    yield lambda: pytensor.shared(M, shape=(2, None)).set_value(np.ones((3, 3)))
    yield lambda: x.set_value(np.ones(3))
    yield x.get_value().shape
