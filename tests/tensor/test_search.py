"""Searching, counting, permutations: values on every backend, errors, derivatives, batches."""

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
from phintys.tensor.counting import Unique
from phintys.tensor.permute import PermuteRowElements
from phintys.tensor.search import SearchsortedOp

RNG = np.random.default_rng(7)
DTYPES = ["bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "float64"]


# ------------------------------------------------------------------------- searchsorted


def values(dtype, shape):
    """Numbers of a dtype, some of them equal, with NaN and infinities."""
    found = RNG.integers(-9, 10, shape) / 2
    if np.dtype(dtype).kind == "f":
        found.flat[:4] = np.nan, np.inf, -np.inf, -0.0
    return abs(found).astype(dtype) if np.dtype(dtype).kind in "ub" else found.astype(dtype)


@pytest.mark.parametrize("mode", BACKENDS)
@pytest.mark.filterwarnings("ignore:Numba has no values")
def test_searchsorted_is_numpys(mode):
    """Every dtype with itself and with others; no elements, no numbers; both sides."""
    pairs = [(d, d) for d in DTYPES] + [("int8", "float32"), ("int64", "uint64"), ("bool", "int8")]
    variables = [
        (pt.tensor(dtype=a, shape=(None,)), pt.tensor(dtype=b, shape=(None, None)))
        for a, b in pairs
    ]
    inputs = [v for pair in variables for v in pair]
    sides = ("left", "right")
    f = compiled(mode, inputs, [pt.searchsorted(x, v, s) for x, v in variables for s in sides])
    for n, shape in [(20, (5, 7)), (0, (2, 3)), (6, (0, 3)), (1, (3, 2))]:
        sorted_ = [np.sort(values(a, max(n, 4))[:n]) for a, _ in pairs]
        wanted = [values(b, (5, 7))[: shape[0], : shape[1]] for _, b in pairs]
        found = iter(f(*(x for pair in zip(sorted_, wanted, strict=True) for x in pair)))
        for x, v in zip(sorted_, wanted, strict=True):
            for side in sides:
                np.testing.assert_array_equal(next(found), np.searchsorted(x, v, side))


@pytest.mark.parametrize("mode", BACKENDS[1:4])
def test_searchsorted_in_vectors_that_are_not_sorted(mode):
    """Positions are not outside; those of ascending numbers are after a smaller element."""
    x, v = pt.dvectors("x", "v")
    f = compiled(mode, [x, v], [pt.searchsorted(x, v), pt.searchsorted(x, v, "right")])
    for _ in range(50):
        a, b = RNG.integers(0, 9, 12) / 1.0, RNG.integers(-1, 10, 9) / 1.0
        assert all(((found >= 0) & (found <= a.size)).all() for found in f(a, b))
        ascending, between = np.sort(b), np.concatenate([[-np.inf], a, [np.inf]])
        for found, precedes in zip(f(a, ascending), (np.less, np.less_equal), strict=True):
            assert precedes(between[found], ascending).all()
            assert not precedes(between[found + 1], ascending).any()


def test_searchsorted_with_a_sorter_and_as_a_method():
    x, v = np.array([3.0, 1.0, 2.0]), np.array([[1.5, 2.0], [9.0, 0.0]])
    order = np.argsort(x)
    check(
        lambda x, v, s: x.searchsorted(v, "right", s),
        lambda x, v, s: np.searchsorted(x, v, "right", s),
        [x, v, order],
    )
    check(pt.searchsorted, np.searchsorted, [np.sort(x), np.array(2.0)])


def test_searchsorted_batched():
    """Batches of numbers, and of sorted vectors."""
    x, v = np.sort(RNG.normal(size=6)), RNG.normal(size=(4, 3))
    check_batched(lambda v: pt.searchsorted(x, v), [v])
    vectors = np.sort(RNG.normal(size=(3, 6)))
    f = phintys.tensor.vectorize(pt.searchsorted, signature="(n),(a,b)->(a,b)")
    found = f(pt.as_tensor(vectors), pt.as_tensor(v))
    for mode in BACKENDS[:3]:
        expected = np.stack([np.searchsorted(x, v) for x in vectors])
        np.testing.assert_array_equal(evaluate(found, mode=mode), expected)


def test_searchsorted_is_compiled():
    x, v = pt.dvectors("x", "v")
    f = phintys.function([x, v], pt.searchsorted(x, v))
    assert "insertion_points" in str([step for step in f.program.steps])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([1, 2], 1, "middle"), ValueError),
        (([[1, 2]], 1), ValueError),
        (([1, 2], 1, "left", [0.0, 1.0]), TypeError),
    ],
)
def test_wrong_arguments_of_searchsorted(arguments, error):
    with pytest.raises(error):
        pt.searchsorted(*arguments)
    assert SearchsortedOp("left") != SearchsortedOp("right")


def test_the_derivative_of_positions_is_zero():
    x, v = pt.dvectors("x", "v")
    cost = (pt.searchsorted(x, v) * v).sum()
    found = evaluate(phintys.grad(cost, v), [x, v], [np.arange(3.0), np.array([0.5, 1.5])])
    np.testing.assert_array_equal(found, [1.0, 2.0])


# --------------------------------------------------------------------------------- topk


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("kth", [1, 2, -2])
def test_topk(axis, kth):
    x = RNG.permutation(12).reshape(3, 4) / 3.0

    def greatest(x):
        ordered = np.sort(x, axis=axis)
        ordered = np.flip(ordered, -1 if axis is None else axis) if kth > 0 else ordered
        return np.take(ordered, range(abs(kth)), axis=-1 if axis is None else axis)

    check(lambda x: pt.topk(x, kth, axis), greatest, [x])
    check_derivatives(lambda x: pt.topk(x, kth, axis), [x])
    positions = pt.argtopk(x, kth, axis, idx_dtype="int32")
    assert positions.dtype == "int32"
    flat = x.ravel() if axis is None else x
    np.testing.assert_array_equal(
        np.take_along_axis(flat, positions.eval(), axis or 0 if axis is None else axis), greatest(x)
    )


def test_topk_of_a_number_that_is_a_variable():
    k = pt.lscalar("k")
    x = RNG.permutation(12).reshape(3, 4) / 3.0
    f = phintys.function([k], [pt.topk(x, k), pt.argtopk(x, k, axis=0), pt.topk(x, k, axis=None)])
    for n in (1, 3, -1, -3, 9, -9):
        fixed = [pt.topk(x, np.clip(n, -4, 4)), pt.argtopk(x, np.clip(n, -3, 3), axis=0)]
        for found, expected in zip(f(n), [*fixed, pt.topk(x, n, axis=None)], strict=True):
            np.testing.assert_array_equal(found, expected.eval())
    assert pt.topk(x, pt.constant(2)).type.shape == (3, 2)


def test_wrong_arguments_of_topk():
    with pytest.raises(TypeError, match="is an integer"):
        pt.topk([1, 2], 1.5)
    with pytest.raises(ValueError, match="cannot be 0"):
        pt.topk([1, 2], 0)
    with pytest.raises(ValueError, match="There are no 3 elements"):
        pt.topk([1, 2], -3)
    with pytest.raises(TypeError, match="integer dtype"):
        pt.argtopk([1, 2], 1, idx_dtype="float32")


# ------------------------------------------------------------------------------ counting


@pytest.mark.parametrize("mode", BACKENDS[:4])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_bincount_is_numpys(mode, dtype):
    x, w = pt.vector("x", dtype=dtype), pt.fvector("w")
    f = compiled(mode, [x, w], [pt.bincount(x), pt.bincount(x, w, minlength=8)])
    for n in (9, 0):
        a, b = RNG.integers(0, 6, n).astype(dtype), RNG.normal(size=n).astype("float32")
        counts, sums = f(a, b)
        expected = np.bincount(a.astype("int64"))
        assert counts.dtype == "int64" and sums.dtype == "float32"
        np.testing.assert_array_equal(counts, expected)
        np.testing.assert_allclose(sums, np.bincount(a.astype("int64"), b, 8), rtol=1e-5)


@pytest.mark.parametrize("mode", BACKENDS[:4])
def test_bincount_refuses_negative_numbers(mode):
    x = pt.lvector("x")
    f = compiled(mode, [x], pt.bincount(x, assert_nonneg=True))
    with pytest.raises(ValueError, match="negative"):
        f([1, -1])


@pytest.mark.parametrize("mode", BACKENDS[:4])
def test_there_is_one_weight_for_each_number(mode):
    """A single weight does not broadcast."""
    x, w = pt.lvector("x"), pt.dvector("w")
    outputs = [pt.bincount(x, w), pt.histogram(x, 2, weights=w)[0]]
    outputs += [pt.bincount(x, w[:1]), pt.histogram(x, 2, weights=w[:1])[0]]
    for out in outputs:
        f = compiled(mode, [x, w], out)
        with pytest.raises(ValueError):
            f([0, 1, 1], [2.0, 3.0])
    with pytest.raises(ValueError):
        pt.histogram(np.zeros((2, 3)), 2, weights=np.zeros((3, 2)))


def test_bincount_takes_integer_vectors_and_has_a_derivative():
    for wrong in ([1.0, 2.0], [[1]], 3):
        with pytest.raises(TypeError, match="integer vectors"):
            pt.bincount(wrong)
    with pytest.raises(TypeError, match="are a vector"):
        pt.bincount([1, 2], weights=1.0)
    with pytest.raises(ValueError, match="not negative"):
        pt.bincount([1, 2], minlength=-1)
    assert pt.bincount([1, 1], weights=np.array([True, True])).eval().tolist() == [0, 2]
    with pytest.raises(TypeError, match="is an integer"):
        pt.bincount([1, 2], minlength=4.5)
    assert pt.bincount(np.array([True, False, True])).eval().tolist() == [1, 2]
    check_derivatives(lambda w: pt.bincount([2, 0, 2], w) * [1.0, 2.0, 3.0], [RNG.normal(size=3)])


@pytest.mark.parametrize("mode", BACKENDS[:4])
@pytest.mark.parametrize(
    "arguments",
    [{}, {"bins": 7, "range": (-1, 1)}, {"bins": [-1.0, 0.0, 0.5, 2.0]}, {"density": True}],
    ids=str,
)
def test_histogram_is_numpys(mode, arguments):
    x = pt.dmatrix("x")
    f = compiled(mode, [x], pt.histogram(x, **arguments))
    a = RNG.normal(size=(4, 9))
    for found, expected in zip(f(a), np.histogram(a, **arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert found.dtype == expected.dtype


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8", "int64", "bool"])
def test_dtypes_of_edges(dtype):
    """Those of floats, and float64 for others; the number of intervals has any dtype."""
    x = pt.vector("x", dtype=dtype)
    a = np.array([0, 1, 1]).astype(dtype)
    f = phintys.function([x], [*pt.histogram(x, 127), *pt.histogram(x, np.uint8(255))])
    numbers = a.astype("uint8") if dtype == "bool" else a
    expected = [*np.histogram(numbers, 127), *np.histogram(numbers, 255)]
    for found, e in zip(f(a), expected, strict=True):
        assert found.dtype == e.dtype
        np.testing.assert_allclose(found, e, rtol=1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"bins": 0}, ValueError),
        ({"bins": 2.5}, TypeError),
        ({"bins": [[1, 2]]}, ValueError),
        ({"bins": 2, "range": (3, 1)}, ValueError),
    ],
)
def test_wrong_arguments_of_histogram(arguments, error):
    with pytest.raises(error):
        pt.histogram(pt.dvector(), **arguments)


def test_histogram_of_equal_and_no_and_missing_elements():
    x, w = pt.dvectors("x", "w")
    f = phintys.function([x, w], pt.histogram(x, [0.0, 1.0, 2.0], weights=w))
    found, _ = f([np.nan, 0.0, 1.0, 2.0, 2.5, -1.0], [1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    assert found.tolist() == [2.0, 12.0]
    g = phintys.function([x], pt.histogram(x, 4))
    for a in ([], [3.0, 3.0]):
        found, edges = g(a)
        assert found.sum() == len(a)
        np.testing.assert_array_equal(edges, np.histogram(a, 4)[1])
    with pytest.raises(ValueError, match="a number or a vector"):
        pt.histogram(x, [[1.0, 2.0]])
    with pytest.raises(ValueError, match="at least one interval"):
        pt.histogram(x, 0)
    with pytest.raises(ValueError, match="ascending"):
        pt.histogram(x, [3, 1, 2])
    with pytest.raises(ValueError, match="descending"):
        pt.histogram(x, 4, range=(3, 1))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_edges_of_a_histogram_are_of_the_dtype_of_its_elements(dtype):
    """An element that is rounded to an edge is not less than it."""
    x = pt.vector("x", dtype=dtype)
    a = np.round(RNG.random(200), 1).astype(dtype)
    found = phintys.function([x], pt.histogram(x, 10, range=(0, 1)))(a)
    for value, expected in zip(found, np.histogram(a, 10, range=(0, 1)), strict=True):
        np.testing.assert_array_equal(value, expected)
        assert value.dtype == expected.dtype


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float64", "complex128"])
def test_unique_is_numpys(axis, dtype):
    x = pt.matrix("x", dtype=dtype)
    f = phintys.function([x], pt.unique(x, True, True, True, axis))
    for shape in [(4, 3), (4, 0)]:
        a = RNG.integers(0, 2, shape).astype(dtype)
        expected = np.unique(a, True, True, True, axis=axis)
        for found, e in zip(f(a), expected, strict=True):
            np.testing.assert_array_equal(found, e if found.ndim == e.ndim else e.ravel())
            assert found.dtype == e.dtype


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_derivatives_of_distinct_elements(axis):
    """Against finite differences; equal elements stay equal if they are one variable."""
    check_derivatives(lambda x: pt.unique(x, axis=axis) ** 2, [RNG.normal(size=(4, 3))])
    check_derivatives(
        lambda x: pt.unique(pt.concatenate([x, x]), axis=axis), [RNG.normal(size=(3, 3))]
    )


def test_unique_of_nan_and_its_types():
    assert pt.unique(np.array([np.nan, 1.0, np.nan])).eval().tolist()[0] == 1.0
    x = pt.tensor(dtype="int8", shape=(2, 3))
    types = [v.type for v in pt.unique(x, return_inverse=True, axis=-2)]
    assert types == [pt.TensorType("int8", (None, 3)), pt.TensorType("int64", (2,))]
    assert pt.unique(x, return_inverse=True)[1].type.shape == (6,)
    assert pt.unique(x).owner.op == Unique()
    assert pt.unique(x, axis=-1).owner.op == pt.unique(x, axis=1).owner.op
    with pytest.raises(ValueError, match="out of bounds"):
        pt.unique(x, axis=2)
    with pytest.raises(TypeError):
        pt.unique(x, axis=0.5)


# -------------------------------------------------------------------------- permutations


@pytest.mark.parametrize("mode", BACKENDS)
@pytest.mark.parametrize("inverse", [False, True])
def test_permute_row_elements(mode, inverse):
    x, y, one = pt.dmatrix("x"), pt.lvector("y"), pt.tensor(shape=(1, None))
    batch = pt.lmatrix("batch")
    outputs = [pt.permute_row_elements(x, y, inverse), pt.permute_row_elements(one, batch, inverse)]
    f = compiled(mode, [x, y, one, batch], outputs)
    a, order = RNG.normal(size=(4, 6)), np.stack([RNG.permutation(6) for _ in range(4)])
    for n in (6, 0):
        first, second = f(a[:, :n], np.argsort(order[0][:n]), a[:1, :n], np.argsort(order[:, :n]))
        places = np.argsort(order[:, :n])
        places = np.argsort(places) if inverse else places
        np.testing.assert_array_equal(first, a[:, :n][:, places[0]])
        np.testing.assert_array_equal(second, np.stack([a[0, :n][p] for p in places]))


@pytest.mark.parametrize("mode", BACKENDS)
def test_permutations_out_of_range(mode):
    x, y = pt.dvector("x"), pt.lvector("y")
    for inverse in (False, True):
        f = compiled(mode, [x, y], pt.permute_row_elements(x, y, inverse))
        with pytest.raises(IndexError):
            f(np.zeros(3), [0, 1, 3])


@pytest.mark.parametrize("inverse", [False, True])
def test_derivatives_and_batches_of_permutations(inverse):
    y = np.array([[2, 0, 1], [1, 2, 0]])
    x = RNG.normal(size=3)
    weights = RNG.normal(size=(2, 3))
    check_derivatives(lambda x: pt.permute_row_elements(x, y, inverse) * weights, [x])
    check_batched(lambda x: pt.permute_row_elements(x, y, inverse), [RNG.normal(size=(2, 3))])


def test_wrong_permutations():
    x = pt.dvector("x")
    with pytest.raises(TypeError, match="are integers"):
        pt.permute_row_elements(x, x)
    with pytest.raises(ValueError, match="permutes rows"):
        pt.permute_row_elements(x, 1)
    with pytest.raises(ValueError, match="length of the rows"):
        pt.permute_row_elements(np.zeros(2), [0, 1, 2])
    assert PermuteRowElements(True) != PermuteRowElements(False)


def test_inverse_permutation():
    check(pt.inverse_permutation, np.argsort, [np.array([2, 0, 1])])
    perm = np.array([[1, 0, 2], [2, 1, 0]], "int8")
    check(pt.inverse_permutation, lambda p: np.argsort(p).astype("int8"), [perm])


@pytest.mark.parametrize("position", [pt.argmax, lambda x: pt.searchsorted(x, x[:2])])
def test_forward_mode_through_positions_that_depend_on_the_elements(position):
    check_derivatives(lambda x: x[position(x)] * 2.0, [np.array([1.0, 3.0, 2.0])])
