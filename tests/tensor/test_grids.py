"""Index tensors, grids, diagonals, joined and split axes, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import (
    BACKENDS,
    check,
    check_batched,
    check_derivatives,
    compiled,
    evaluate,
)

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.graph.traversal import toposort
from phintys.tensor.fill_diagonal import FillDiagonal, FillDiagonalOffset
from phintys.tensor.reshape import JoinDims, SplitDims
from phintys.tensor.type_other import NoneSliceConst, make_slice, slicetype

RNG = np.random.default_rng(5)


def assert_all_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_array_equal(a, b)


# -------------------------------------------------------------------------------- grids


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_triangles_are_numpys(name):
    n, k, m = pt.lscalars("n", "k", "m")
    x = pt.dmatrix("x")
    ours, numpys = getattr(pt, name), getattr(np, name)
    f = phintys.function([n, k, m], list(ours(n, k, m)))
    of = phintys.function([x], list(getattr(pt, f"{name}_from")(x, -1)))
    for args in [(3, 0, 3), (2, 1, 4), (4, -2, 2), (0, 0, 3), (2, -9, 2), (2, 9, 2)]:
        assert_all_equal(f(*args), numpys(*args))
        assert_all_equal(of(np.zeros((args[0], args[2]))), numpys(args[0], -1, args[2]))
    assert_all_equal([v.eval() for v in ours(3)], numpys(3))
    for offset in (-128, 127):  # the limits of int8, the dtype of such a number
        assert_all_equal([v.eval() for v in ours(130, offset)], numpys(130, offset))
    with pytest.raises(ValueError, match="those of matrices"):
        getattr(pt, f"{name}_from")(pt.dvector())


@pytest.mark.parametrize("k", [-(2**63), -128, 0, 127, 2**63 - 1])
def test_triangles_with_extreme_offsets(k):
    ones = np.ones((130, 129), "int8")
    for name in ("tril", "triu"):
        expected = getattr(np, name)(ones, np.clip(k, -200, 200))
        np.testing.assert_array_equal(getattr(pt, name)(ones, k).eval(), expected)
    np.testing.assert_array_equal(pt.tri(3, 4, k).eval(), np.tri(3, 4, np.clip(k, -9, 9)))
    with pytest.raises(TypeError, match="is a 0-d integer"):
        pt.tri(2.5)


def test_grids_are_numpys():
    for ours, numpys in ((pt.mgrid, np.mgrid), (pt.ogrid, np.ogrid)):
        for key in [
            np.s_[0:3, 0:2],
            np.s_[0:4:2, 1:3, 5:3:-1],
            np.s_[:3, 0:1:3j],
            np.s_[0:3, 0:2.5],
        ]:
            found = [v.eval() for v in ours[key]]
            assert_all_equal(found, numpys[key])
            assert {v.dtype for v in found} == {v.dtype for v in numpys[key]}
        assert_all_equal([ours[0:3].eval()], [numpys[0:3]])
        assert repr(ours) in ("<mgrid>", "<ogrid>")
        with pytest.raises(TypeError, match="slices that have a stop"):
            ours[0:]
    n = pt.lscalar("n")
    assert_all_equal(evaluate(pt.mgrid[0:n, 0:2], [n], [3]), np.mgrid[0:3, 0:2])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid_is_numpys(indexing, sparse):
    values = [RNG.normal(size=k) for k in (3, 2, 4)]
    variables = [pt.dvector() for _ in values]
    for count in (1, 2, 3):
        out = pt.meshgrid(*variables[:count], indexing=indexing, sparse=sparse)
        expected = np.meshgrid(*values[:count], indexing=indexing, sparse=sparse)
        assert_all_equal(evaluate(out, variables[:count], values[:count]), expected)
    with pytest.raises(ValueError, match="'xy' or 'ij'"):
        pt.meshgrid([1], indexing="yx")


def test_ix_is_numpys():
    x = RNG.normal(size=(4, 5, 2))
    args = [[0, 2], np.array([True, False, True, True, False]), [-1]]
    found = [v.eval() for v in pt.ix_(*args)]
    assert_all_equal(found, np.ix_(*args))
    check(lambda x: x[pt.ix_(*args)], lambda x: x[np.ix_(*args)], [x])
    assert pt.ix_([], [1])[0].type.shape == (0, 1)
    with pytest.raises(ValueError, match="takes vectors"):
        pt.ix_([[1]])


# ---------------------------------------------------------------------------- selection


@pytest.mark.parametrize("how", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("mode", BACKENDS)
def test_choose_is_numpys(mode, how):
    a, x, y, z = pt.lmatrix("a"), pt.dvector("x"), pt.fmatrix("y"), pt.dtensor3("z")
    outputs = [pt.choose(a, [x, y], mode=how), pt.choose(a[0], z, mode=how), a.choose(z[0], how)]
    f = compiled(mode, [a, x, y, z], outputs)
    numbers = RNG.integers(0, 2, (4, 3)) if how == "raise" else RNG.integers(-3, 5, (4, 3))
    values = [RNG.normal(size=3), RNG.normal(size=(4, 3)).astype("f"), RNG.normal(size=(2, 4, 3))]
    expected = [
        np.choose(numbers, values[:2], mode=how),
        np.choose(numbers[0], values[2], mode=how),
        np.choose(numbers, values[2][0][:, :3], mode=how),
    ]
    assert_all_equal(f(numbers, *values), expected)
    for wrong in (2, -1) if how == "raise" else ():
        with pytest.raises(IndexError):
            f(numbers * 0 + wrong, *values)


def test_choose_has_derivatives_and_refuses():
    a = np.array([0, 1, 1])
    check_derivatives(lambda x, y: pt.choose(a, [x, y]), [RNG.normal(size=3), RNG.normal(size=3)])
    check_batched(lambda x: pt.choose(a, x), [RNG.normal(size=(2, 3))])
    with pytest.raises(TypeError, match="takes integers"):
        pt.choose([0.5], [[1], [2]])
    with pytest.raises(ValueError, match="has modes"):
        pt.choose([0], [[1], [2]], mode="nearest")


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_put_along_axis(axis):
    x = RNG.normal(size=(3, 4))
    i = RNG.permutation(12)[:5] if axis is None else np.argsort(x, axis)
    v = RNG.normal(size=i.shape)

    def put(x, i, v):
        out = x.copy()
        np.put_along_axis(out, i, v, axis)
        return out

    check(lambda x, i, v: pt.put_along_axis(x, i, v, axis), put, [x, i, v])


@pytest.mark.parametrize("mode", BACKENDS[:4])
@pytest.mark.filterwarnings("ignore:Numba has no values of type slice")
def test_slices_as_variables(mode):
    """`make_slice` and slice variables, in reads and writes."""
    x, m, n, s = pt.dvector("x"), pt.dmatrix("m"), pt.lscalar("n"), slicetype("s")
    outputs = [x[make_slice(1, n, None)], x[make_slice(slice(None, n, 2))], x[NoneSliceConst]]
    outputs += [x[s], m[:, s], m[s, 0], x[s].set(9), phintys.grad((x[s] ** 2).sum(), x)]
    f = compiled(mode, [x, m, n, s], outputs)
    a, b = RNG.normal(size=7), RNG.normal(size=(3, 4))
    ends = (None, 0, 2, -1, -100, 100)
    for k, key in enumerate(slice(i, j, by) for i in ends for j in ends for by in (None, 2, -1)):
        n = k % 9 - 4
        written, slope = a.copy(), 0 * a
        written[key], slope[key] = 9, 2 * a[key]
        expected = [a[1:n], a[:n:2], a, a[key], b[:, key], b[key, 0], written, slope]
        assert_all_equal(f(a, b, n, key), expected)
    read = compiled(mode, [x, s], x[s])
    for key in (slice(None, 2**70), slice(-(2**70), None), slice(2**70, -(2**70), -(2**70))):
        np.testing.assert_array_equal(read(a, key), a[key])
    for wrong, error in ((slice(1.5, None), TypeError), (slice(None, None, 0), ValueError)):
        with pytest.raises(error):
            read(a, wrong)


# ---------------------------------------------------------------------------- diagonals


def filled(a, value, offset=None):
    out = a.copy()
    if offset is None:
        np.fill_diagonal(out, value)
        return out
    return np.where(np.eye(*a.shape, offset, dtype=bool), value, a)


@pytest.mark.parametrize("mode", BACKENDS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float64", "complex128"])
def test_fill_diagonal_is_numpys(mode, dtype):
    x, c, v, k = (pt.tensor(dtype=d, shape=s) for d, s in [
        (dtype, (None, None)), (dtype, (None,) * 3), (dtype, ()), ("int8", ())
    ])  # fmt: skip
    outputs = [pt.fill_diagonal(x, v), pt.fill_diagonal(c, v), pt.fill_diagonal_offset(x, v, k)]
    f = compiled(mode, [x, c, v, k], outputs)
    for shape in [(3, 3), (5, 2), (2, 4), (0, 3), (2, 0)]:
        a, cube = np.zeros(shape, dtype), np.zeros((shape[0],) * 3, dtype)
        for offset in (0, 1, -2, 100, -100):
            one = np.array(1, dtype)
            expected = [filled(a, one), filled(cube, one), filled(a, one, offset)]
            assert_all_equal(f(a, cube, one, offset), expected)
    with pytest.raises(ValueError):
        f(a, np.zeros((2, 3, 2), dtype), one, 0)


def test_derivatives_and_batches_of_diagonals():
    x, v = RNG.normal(size=(3, 2)), RNG.normal(size=())
    weights = RNG.normal(size=(3, 2))
    for build in (pt.fill_diagonal, lambda x, v: pt.fill_diagonal_offset(x, v, -1)):
        check_derivatives(lambda x, v, build=build: build(x, v) * weights, [x, v])
        check_batched(build, [x, v])
    cube = RNG.normal(size=(2, 2, 2))
    check_derivatives(lambda x, v: pt.fill_diagonal(x, v) * cube, [cube, v])
    nan = np.full((2, 2), np.nan)
    y = pt.dmatrix("y")
    slope = phintys.grad((pt.fill_diagonal(y, 1.0) * nan).sum(), y)
    np.testing.assert_array_equal(evaluate(slope, [y], [nan]), [[0, np.nan], [np.nan, 0]])


def test_wrong_arguments_of_diagonals():
    x = pt.dmatrix("x")
    for build in (
        lambda: pt.fill_diagonal(x[0], 1.0),
        lambda: pt.fill_diagonal(x, [1.0, 2.0]),
        lambda: pt.fill_diagonal(pt.lmatrix(), 1.5),
        lambda: pt.fill_diagonal_offset(x[None], 1.0, 0),
        lambda: pt.fill_diagonal_offset(x, 1.0, 0.5),
    ):
        with pytest.raises(TypeError):
            build()
    assert FillDiagonal() == FillDiagonal() != FillDiagonalOffset()


# --------------------------------------------------------------- axes joined and split


@pytest.mark.parametrize("mode", BACKENDS)
def test_join_and_split_dims(mode):
    x, n = pt.dtensor3("x"), pt.lscalar("n")
    v, zero = pt.dvector("v"), pt.dscalar("zero")
    outputs = [pt.join_dims(x, *args) for args in [(), (1,), (0, 2), (1, 0), (-2,), (3, 0), (1, 1)]]
    outputs += [pt.join_dims(zero), pt.split_dims(x, (n, 2), 1), pt.split_dims(x, [2, 2], -1)]
    outputs += [pt.split_dims(v[:1], ()), pt.split_dims(v, n), pt.split_dims(x[:, :1], (), 1)]
    outputs += [pt.split_dims(x, (-1, 2), 1), pt.split_dims(x, (n, -1), 1), pt.split_dims(v, -1)]
    f = compiled(mode, [x, n, v, zero], outputs)
    for m in (2, 0):
        a = RNG.normal(size=(m, 6, 4))
        w = np.arange(3.0)
        shapes = [(m * 24,), (m, 24), (m * 6, 4), (m, 1, 6, 4), (m, 24), (m, 6, 4, 1), (m, 6, 4)]
        expected = [a.reshape(s) for s in shapes]
        expected += [np.array([2.0]), a.reshape(m, 3, 2, 4), a.reshape(m, 6, 2, 2)]
        expected += [w[0], w, a[:, 0], a.reshape(m, 3, 2, 4), a.reshape(m, 3, 2, 4), w]
        assert_all_equal(f(a, 3, w, 2.0), expected)
    with pytest.raises(ValueError):
        f(a, 4, w, 2.0)


def test_types_derivatives_and_batches_of_joined_axes():
    x = pt.tensor(shape=(2, None, 4))
    assert pt.join_dims(x, 0, 2).type.shape == (None, 4)
    assert pt.join_dims(pt.zeros((2, 3, 4)), 1).type.shape == (2, 12)
    assert pt.split_dims(x, (2, 2), 2).type.shape == (2, None, 2, 2)
    assert pt.split_dims(x, (2, -1), 2).type.shape == (2, None, 2, 2)
    for lengths, message in (((-1, 3), r"4, not 3.* SplitDims"), ((-1, -1), "negative")):
        with pytest.raises(ShapeError, match=message):
            pt.split_dims(x, lengths, 2)
    a = RNG.normal(size=(2, 6))
    weights = RNG.normal(size=(2, 3, 2))
    check_derivatives(lambda x: pt.split_dims(x, (3, 2), 1) * weights, [a])
    check_derivatives(lambda x: pt.join_dims(x, 0, 2) * weights.reshape(6, 2), [weights])
    check_batched(lambda x: pt.split_dims(x, (3, 2), 1), [a])
    check_batched(lambda x: pt.join_dims(x), [a])
    assert (JoinDims(0, 2), SplitDims(1)) == (JoinDims(0, 2), SplitDims(1))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: pt.join_dims(x, 1, 2),
        lambda x: pt.join_dims(x, -3),
        lambda x: pt.split_dims(x, (2, 2), 2),
        lambda x: pt.split_dims(pt.zeros((4, 2)), (3, 2)),
        lambda x: pt.split_dims(pt.zeros((4, 2)), (-2, -2)),
        lambda x: pt.split_dims(x, pt.lvector()),
        lambda x: JoinDims(-1, 2),
        lambda x: SplitDims(-1),
    ],
)
def test_wrong_axes(build):
    with pytest.raises(ValueError):
        build(pt.dmatrix("x"))


# ----------------------------------------------------------------------- pack and unpack


@pytest.mark.parametrize(
    ("keep", "shapes"),
    [
        (None, [(2, 3), (4,), ()]),
        (0, [(3, 2), (3,), (3, 2, 2)]),
        (-1, [(2, 3), (3,), (0, 3)]),
        ((0, -1), [(2, 5, 3), (2, 3)]),
        ([0, 1], [(2, 3, 4), (2, 3)]),
    ],
)
def test_unpack_undoes_pack(keep, shapes):
    values = [RNG.normal(size=s) for s in shapes]
    variables = [pt.tensor(shape=(None,) * len(s)) for s in shapes]
    packed, lengths = pt.pack(*variables, keep_axes=keep)
    found = evaluate([packed, *pt.unpack(packed, lengths, keep)], variables, values)
    assert found[0].size == sum(v.size for v in values)
    assert_all_equal(found[1:], values)


def test_wrong_arguments_of_pack():
    x = pt.dmatrix("x")
    for build in (
        lambda: pt.pack(),
        lambda: pt.pack(x, keep_axes=1),
        lambda: pt.pack(x, keep_axes=-2),
        lambda: pt.pack(x, keep_axes=(0, 1, -1)),
        lambda: pt.unpack(x, [(2,)]),
    ):
        with pytest.raises(ValueError):
            build()
    f = phintys.function([x], pt.unpack(x[0], [(2, 2), ()]))
    with pytest.raises(ValueError):
        f(np.zeros((1, 4)))


def test_choose_has_a_node_for_each_choice():
    def size(count):
        choices = [pt.dvector() for _ in range(count)]
        return sum(1 for _ in toposort([pt.choose(pt.lvector(), choices)]))

    assert size(20) - size(15) <= size(15) - size(10)
