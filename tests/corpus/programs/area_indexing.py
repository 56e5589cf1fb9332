"""Reading and writing parts of tensors."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
from helpers import both, compiled
from pytensor.tensor.subtensor import (
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    inc_subtensor,
    set_subtensor,
)

M = np.arange(12.0).reshape(3, 4)
T = np.arange(24.0).reshape(2, 3, 4)


def basic_indices():
    x = pt.matrix("x", shape=(3, 4))
    keys = [
        0,
        -1,
        slice(1, 3),
        slice(None, None, -1),
        (0, 1),
        (slice(None), 2),
        (Ellipsis, 1),
        (None, 0),
        (slice(None), None),
        (slice(5, 10),),
        (slice(-2, None), slice(0, 3, 2)),
    ]
    for key in keys:
        yield both(x[key], {x: M})


def static_lengths_of_slices():
    x = pt.vector("x", shape=(10,))
    n = pt.lscalar("n")
    yield [x[2:], x[:-3], x[::3], x[::-1], x[20:], x[5:2], x[n:], x[:n], x[2:8:n], x[n]]
    y = pt.vector("y", shape=(None,))
    yield [y[2:], y[:3], y[:0], y[0:1], y[-1:], y[::-1], y[:-1]]


def symbolic_indices():
    x, i, j = pt.dmatrix("x"), pt.lscalar("i"), pt.lscalar("j")
    values = {x: M, i: 1, j: -1}
    for y in (x[i], x[i:], x[:j], x[i, j], x[i:, :j], x[::i], x[i + j]):
        yield both(y, values)


def indices_of_every_dtype():
    x = pt.dvector("x")
    for dtype in ("int8", "int64", "uint8", "uint64", "bool", "float64"):
        i = pt.scalar("i", dtype=dtype)
        yield [dtype, lambda i=i: x[i], lambda i=i: x[i:]]
        v = pt.vector("v", dtype=dtype)
        yield [dtype, lambda v=v: x[v]]


def wrong_indices():
    x = pt.dmatrix("x")
    for key in (
        1.5,
        "a",
        (0, 0, 0),
        (Ellipsis, Ellipsis),
        [0.5, 1.0],
        [True, False],
        {},
        slice(0.5),
    ):
        yield [str(key), lambda key=key: x[key]]
    yield lambda: pt.dscalar("s")[0]


def indices_out_of_range():
    x, i = pt.dvector("x"), pt.lscalar("i")
    f = pytensor.function([x, i], x[i])
    yield lambda: f([1.0, 2.0], 2)
    yield lambda: f([1.0, 2.0], -3)
    v = pt.lvector("v")
    g = pytensor.function([x, v], x[v])
    yield lambda: g([1.0, 2.0], [0, 5])
    yield lambda: pt.vector("y", shape=(3,))[5]
    yield lambda: pt.vector("y", shape=(3,))[-4]


def advanced_indices():
    x = pt.dmatrix("x")
    keys = [
        [0, 2],
        ([0, 1], [1, 2]),
        (slice(None), [0, 3]),
        ([0, 1], slice(1, 3)),
        np.array([[0, 1], [2, 0]]),
        (np.array([0, 1])[:, None], np.array([0, 2])),
    ]
    for key in keys:
        yield both(x[key], {x: M})


def places_of_advanced_axes():
    x = pt.dtensor3("x")
    keys = [
        (0, slice(None), [0, 1]),
        (slice(None), [0, 1], [0, 1]),
        ([0, 1], slice(None), [0, 1]),
        (slice(None), 1, [2, 0]),
        ([[0, 1]], None, 0),
        (None, [0, 1], slice(None), 0),
    ]
    for key in keys:
        yield both(x[key], {x: T})


def masks():
    x = pt.dmatrix("x")
    yield both(x[x > 4], {x: M})
    yield both(x[np.array([True, False, True])], {x: M})
    yield both(x[(x > 4).nonzero()], {x: M})
    yield both(x[:, np.array([True, False, True, True])], {x: M})
    yield lambda: x[np.array([True, False])].eval({x: M})
    yield lambda: x[pt.tensor("b", dtype="bool", shape=(None, None, None))]


def static_shapes_of_advanced_indices():
    x = pt.matrix("x", shape=(3, 4))
    i = pt.vector("i", dtype="int64", shape=(2,))
    yield [x[i], x[i, i], x[:, i], x[i[:, None], i], x[np.array([0, 1, 2])], x[[0, 1], 1:]]
    yield [x[x > 0], x[(x > 0).nonzero()], x[i, 0], x[0, i]]


def set_and_inc():
    x = pt.dvector("x")
    v = {x: [1.0, 2.0, 3.0]}
    yield both(pt.set_subtensor(x[1], 5), v)
    yield both(pt.inc_subtensor(x[1:], 5), v)
    yield both(x[0].set(7.0), v)
    yield both(x[[0, 0, 2]].inc(1), v)
    yield both(x[[0, 0, 2]].set([7, 8, 9]), v)
    yield both(x[x > 1].set(0), v)
    yield both(x[::-1].set([1.0, 2.0, 4.0]), v)
    yield both(set_subtensor(x[:2], x[1:]), v)


def writes_to_a_matrix():
    x = pt.dmatrix("x")
    yield both(x[0].set(1.0), {x: M})
    yield both(x[:, 1].inc(x[:, 0]), {x: M})
    yield both(x[[0, 1], [1, 2]].set(0), {x: M})
    yield both(x[[0, 2]].inc(100), {x: M})
    yield both(x[1:, ::2].set(-x[1:, ::2]), {x: M})
    yield both(x[np.array([0, 1])[:, None], np.array([0, 2])].inc(5), {x: M})


def writes_that_ignore_duplicates():
    x = pt.dvector("x")
    yield both(pt.inc_subtensor(x[[0, 0, 1]], 1, ignore_duplicates=True), {x: [1.0, 2.0]})
    yield both(inc_subtensor(x[[0, 0, 1]], 1), {x: [1.0, 2.0]})


def writes_that_are_wrong():
    x, i = pt.dvector("x"), pt.lvector("i")
    yield lambda: pt.set_subtensor(x, 1.0)
    yield lambda: pt.set_subtensor(x + 1, 1.0)
    yield lambda: pt.set_subtensor(x[0], pt.dvector("v"))
    yield lambda: pt.set_subtensor(x[:2], pt.dmatrix("m"))
    yield lambda: pt.set_subtensor(x[[0, 1]], pt.dmatrix("m"))
    yield lambda: pt.inc_subtensor(i[0], 0.5)
    yield lambda: x.set(1.0)
    yield lambda: pt.set_subtensor(x[0], 1j)
    yield lambda: pt.set_subtensor(x[:2], [1.0, 2.0, 3.0]).eval({x: [1.0, 2.0, 3.0]})


def writes_convert_dtypes():
    x, i = pt.fvector("x"), pt.bvector("i")
    yield [x[0].set(1), x[0].set(np.float64(0.1)), x[0].set(pt.dscalar("d")), i[0].set(1)]
    yield lambda: i[0].set(1.5)
    yield lambda: i[0].set(300)
    yield lambda: i[0].set(pt.lscalar("l"))


def writes_through_a_transpose():
    x = pt.dmatrix("x")
    yield lambda: both(pt.set_subtensor(x.T[0], 1.0), {x: M})
    yield lambda: both(pt.set_subtensor(x.flatten()[0], 1.0), {x: M})
    yield lambda: both(pt.inc_subtensor(x[0][1], 1.0), {x: M})
    yield lambda: both(pt.set_subtensor(x[1:][0], 1.0), {x: M})
    yield lambda: both(pt.set_subtensor(x.reshape((4, 3))[0], 1.0), {x: M})


def take_and_its_modes():
    x = pt.dmatrix("x")
    yield both(pt.take(x, [0, 2], axis=0), {x: M})
    yield both(pt.take(x, [[0, 11]]), {x: M})
    yield both(x.take(1, axis=1), {x: M})
    yield both(pt.take(x, [5, -1], axis=0, mode="wrap"), {x: M})
    yield both(pt.take(x, [5, -7], axis=0, mode="clip"), {x: M})
    yield lambda: pt.take(x, [0], axis=2)
    yield lambda: pt.take(x, [0], axis=0, mode="no such mode")


def take_along_axis():
    x = pt.dmatrix("x")
    yield both(pt.take_along_axis(x, pt.argsort(-x, axis=1), axis=1), {x: M})
    yield lambda: pt.take_along_axis(x, pt.lvector("i"), axis=1)
    yield lambda: pt.take_along_axis(x, pt.dmatrix("i"), axis=1)


def choose_and_compress():
    x = pt.dmatrix("x")
    yield both(pt.choose(pt.as_tensor([0, 1]), [np.array([1, 2]), np.array([3, 4])]))
    yield both(pt.compress([True, False, True], x, axis=0), {x: M})
    yield both(pt.compress([0, 1], x, axis=1), {x: M})


def nonzero():
    x = pt.lmatrix("x")
    value = np.array([[0, 1], [2, 0]])
    yield [both(i, {x: value}) for i in pt.nonzero(x)]
    yield [both(i, {x: value}) for i in x.nonzero()]
    yield both(pt.nonzero_values(x), {x: value})
    yield both(pt.flatnonzero(x), {x: value})
    yield both(pt.nonzero(x, return_matrix=True), {x: value})
    yield lambda: pt.nonzero(pt.lscalar("s"))


def classes_of_nodes():
    x, i = pt.dmatrix("x"), pt.lvector("i")
    nodes = [x[0], x[1:], x[i], x[i, i], pt.set_subtensor(x[0], 1), x[x > 1], x[:, None]]
    yield [type(y.owner.op).__name__ for y in nodes]
    yield [str(y.owner.op) for y in nodes]
    yield [isinstance(x[0].owner.op, Subtensor), isinstance(x[i].owner.op, AdvancedSubtensor)]
    yield isinstance(pt.set_subtensor(x[0], 1).owner.op, IncSubtensor)
    yield x[1:, 0].owner.op.idx_list == x[2:, 1].owner.op.idx_list


def iteration_over_known_lengths():
    x = pt.vector("x", shape=(3,))
    yield lambda: [y.eval({x: [1.0, 2.0, 3.0]}) for y in x]
    yield lambda: list(pt.matrix("m", shape=(2, 3)))
    yield lambda: list(pt.dscalar("s"))


def indexing_of_shared_values():
    x = pytensor.shared(M, name="x")
    i = pt.lscalar("i")
    f = pytensor.function([i], x[i], updates=[(x, pt.set_subtensor(x[i], 0))])
    yield [f(1), f(1), x.get_value()]


def grads_of_indexing():
    x, i = pt.dvector("x"), pt.lvector("i")
    values = {x: [1.0, 2.0, 3.0], i: [0, 0, 2]}
    yield both(pytensor.grad((x[i] ** 2).sum(), x), values)
    yield both(pytensor.grad((x[1:] * 3).sum(), x), values)
    yield both(pytensor.grad(x[x > 1].sum(), x), values)
    yield lambda: pytensor.grad(x[i].sum(), i)
    y = pt.dscalar("y")
    yield both(pytensor.grad(pt.set_subtensor(x[0], y).sum(), y), {**values, y: 1.0})


def merged_slices():
    x = pt.dvector("x")
    value = np.arange(20.0)
    for y in (x[2:][3:], x[2:][::2], x[::-1][2], x[:10][-3:], x[::-2][1:], x[3:15][2:-2][::3]):
        yield compiled(y, {x: value})


def slices_with_variables_that_are_none():
    x = pt.dvector("x")
    yield both(x[pt.as_tensor(1) :], {x: [1.0, 2.0]})
    yield both(x[slice(pt.constant(0), None)], {x: [1.0, 2.0]})


def grids():
    yield [both(v) for v in pt.mgrid[0:2, 0:3]]
    yield [both(v) for v in pt.ogrid[0:2, 0:3]]
    yield [both(v) for v in pt.mgrid[0:3]]
    yield [both(v) for v in pt.ogrid[1:3, 0:4:2]]


def indices_of_flat_positions():
    i = pt.lvector("i")
    yield [both(v, {i: [0, 5, 11]}) for v in pt.unravel_index(i, (3, 4))]
    yield both(pt.ravel_multi_index((i, i), (12, 12)), {i: [0, 5, 11]})
    yield lambda: pt.unravel_index(i, (3, 4)).__len__()
    yield lambda: pt.unravel_index(i, (3, 3))[0].eval({i: [100]})
    yield lambda: pt.unravel_index(i, (3, 4), order="X")


def diagonals():
    x = pt.dmatrix("x")
    yield both(pt.diag(x), {x: M})
    yield both(pt.diag(x, 1), {x: M})
    yield both(pt.diag(x[0]), {x: M})
    yield both(x.diagonal(), {x: M})
    yield both(pt.diagonal(x, offset=-1), {x: M})
    yield both(x.trace(), {x: M[:, :3]})
    yield both(pt.fill_diagonal(x, 9), {x: M})
    yield both(pt.fill_diagonal_offset(x, 9, 1), {x: M})
    yield lambda: pt.diag(pt.dscalar("s"))
    yield lambda: pt.diag(pt.dtensor3("t"))
