"""Tensors made from numbers and lengths; broadcasting; constructors of variables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_checks import MODES, assert_like, check, check_batched, check_derivatives, evaluate

import phintys
import phintys.tensor as pt
from phintys.config import config
from phintys.errors import ShapeError
from phintys.tensor.creation import Alloc, AllocEmpty
from phintys.tensor.ranges import ARange, Eye
from phintys.tensor.type import TensorType
from phintys.tensor.type_constructors import PREFIXES, SHAPES
from phintys.tensor.type_other import (
    NoneConst,
    NoneSliceConst,
    NoneTypeT,
    as_int_none_variable,
    make_slice,
    slicetype,
)
from phintys.tensor.variable import TensorConstant

# ------------------------------------------------------------------------------ constants

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.0, np.nan, np.inf])
DTYPES = st.sampled_from(["float32", "float64", "complex64", "complex128"])
SMALL_SHAPES = st.sampled_from([(), (1,), (1, 1), (2,), (0,)])


@given(*[st.builds(np.full, SMALL_SHAPES, NUMBERS, DTYPES)] * 2)
def test_constants_merge_if_type_and_bytes_are_equal(a, b):
    one, other = pt.constant(a), pt.constant(b)
    equal = one.type == other.type and a.tobytes() == b.tobytes()
    assert (one.merge_signature() == other.merge_signature()) == equal
    assert one.equals(other) == equal
    assert hash(one.merge_signature()) == hash(pt.constant(a.copy()).merge_signature())


# ------------------------------------------------------------------------ alloc and fills


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_filled(shape, dtype):
    for build, reference in ((pt.zeros, np.zeros), (pt.ones, np.ones)):
        out = build(shape, dtype)
        assert out.type.shape == shape and isinstance(out.owner.op, Alloc)
        for mode in MODES:
            assert_like(evaluate(out, mode=mode), reference(shape, dtype))
    assert evaluate(pt.empty(shape, dtype)).shape == shape
    assert isinstance(pt.empty(shape).owner.op, AllocEmpty)


@pytest.mark.parametrize("mode", MODES)
def test_symbolic_lengths(mode):
    i, v = pt.iscalar("i"), pt.lvector("v")
    assert evaluate(pt.zeros((i, 3)), [i], [2], mode).shape == (2, 3)
    assert evaluate(pt.zeros(i), [i], [0], mode).shape == (0,)
    shape = pt.specify_shape(v, 2)
    assert evaluate(pt.ones(shape), [v], [np.array([2, 3])], mode).shape == (2, 3)
    with pytest.raises(ValueError, match="negative"):
        evaluate(pt.zeros(i), [i], [-1], mode)


def test_default_dtypes():
    assert pt.zeros(2).type.dtype == "float64"
    with config.change_flags(floatX="float32"):
        assert pt.zeros(2).type.dtype == pt.eye(2).type.dtype == "float32"
        assert pt.empty(2).type.dtype == pt.tri(2).type.dtype == "float32"
    assert pt.full((2,), 1.5).type.dtype == "float32"
    assert pt.full((2,), 1).type.dtype == "int8"
    assert pt.full((2,), 1.5, dtype="int32").type.dtype == "int32"


@pytest.mark.parametrize("dtype", [None, "int32"])
def test_like(dtype):
    x = np.ones((2, 3), "float32")
    for name in ("zeros_like", "ones_like"):
        build, reference = getattr(pt, name), getattr(np, name)
        check(lambda x: build(x, dtype), lambda x: reference(x, dtype), [x])  # noqa: B023
    check(lambda x: pt.full_like(x, 7, dtype), lambda x: np.full_like(x, 7, dtype or "int8"), [x])
    assert pt.empty_like(pt.fmatrix()).type.dtype == "float32"
    assert pt.zeros_like(pt.fscalar(), opt=True).owner is None


def test_alloc_broadcasts_what_is_known_to_be_one():
    v, r = pt.dvector("v"), pt.drow("r")
    assert pt.alloc(v, 4, 3).type.shape == (4, 3)
    for mode in MODES:
        assert_like(evaluate(pt.alloc(r, 2, 3), [r], [np.arange(3.0)[None]], mode),
                    np.tile(np.arange(3.0), (2, 1)))  # fmt: skip
        with pytest.raises(ShapeError):
            evaluate(pt.alloc(v, 4, 3), [v], [np.ones(1)], mode)
        with pytest.raises(ShapeError):
            evaluate(pt.alloc(v, 4, 3), [v], [np.ones(2)], mode)
    with pytest.raises(TypeError, match="dimensions"):
        pt.alloc(pt.dmatrix(), 4)
    with pytest.raises(ShapeError, match="cannot fill"):
        pt.alloc(pt.tensor(shape=(2,)), 3)
    with pytest.raises(TypeError, match="0-d integer"):
        pt.alloc(1.0, pt.dscalar())


def test_alloc_derivatives_and_batches():
    check_derivatives(lambda x: pt.alloc(x, 2, 3) ** 2, [np.ones(3)])
    check_derivatives(lambda x: pt.alloc(x, 2, 3) ** 2, [np.array(2.0)])
    check_derivatives(lambda x: pt.alloc(pt.expand_dims(x, 1), 2, 3, 4) ** 2, [np.ones(3)])
    check_batched(lambda x: pt.alloc(x, 2, 3), [np.arange(3.0)])


# ------------------------------------------------------------------------------ sequences

INTS = st.integers(-6, 6)


@given(INTS, INTS, INTS.filter(bool))
@settings(max_examples=25, deadline=None)
def test_arange_of_integers(start, stop, step):
    expected = np.arange(start, stop, step)
    out = pt.arange(start, stop, step)
    assert out.type.shape == expected.shape
    first, last = pt.lscalars("first", "last")
    for mode in MODES:
        assert_like(evaluate(out, mode=mode), expected)
        found = evaluate(pt.arange(first, last, step), [first, last], [start, stop], mode)
        assert_like(found, expected)
    check(lambda a, b, c: pt.arange(a, b, c), lambda a, b, c: expected,
          [np.int64(start), np.int64(stop), np.int64(step)])  # fmt: skip


@pytest.mark.parametrize("args", [(3.0,), (0, 1, 0.1), (5, 0, -1.5), (1.0, 0.0)])
def test_arange_of_floats(args):
    expected = np.arange(*args)
    out = pt.arange(*args)
    assert out.type.shape == expected.shape
    for mode in MODES:
        assert_like(evaluate(out, mode=mode), expected, out.type.dtype)
    check(lambda *a: pt.arange(*a), lambda *a: np.arange(*a), [np.float64(a) for a in args])


def test_lengths_of_ranges_do_not_depend_on_earlier_graphs():
    """`tri(7)` had no static shape after a range whose stop was a cast of the constant 7."""
    computed = pt.cast(pt.constant(np.int8(7)), "int64")
    assert pt.arange(computed).type.shape == (None,)
    assert pt.arange(np.int64(7)).type.shape == (7,)
    assert pt.arange(computed).type.shape == (None,)


def test_arange_dtypes():
    for out, dtype in [
        (pt.arange(3), "int64"), (pt.arange(pt.iscalar()), "int64"), (pt.arange(3.0), "float32"),
        (pt.arange(0, 1, 0.1), "float64"), (pt.arange(pt.dscalar()), "float64"),
        (pt.arange(3, dtype="int8"), "int8"), (pt.arange(np.int8(3), np.int8(5)), "int64"),
    ]:  # fmt: skip
        assert out.type.dtype == dtype and isinstance(out.owner.op, ARange)
    for wrong in (lambda: pt.arange(pt.dvector()), lambda: pt.arange(1j)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="step"):
        pt.arange(0, 3, 0)
    i = pt.iscalar("i")
    for mode in MODES:
        with pytest.raises(ValueError, match="step"):
            evaluate(pt.arange(0, 3, i), [i], [0], mode)


def test_arange_derivatives():
    check_derivatives(lambda a, c: pt.arange(a, 10.0, c) ** 2, [0.5, 2.1])


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("num", [0, 1, 2, 5])
def test_linspace(num, endpoint):
    for start, stop in ((0.0, 1.0), (3.0, -1.0)):
        check(
            lambda a, b: pt.linspace(a, b, num, endpoint),
            lambda a, b: np.linspace(a, b, num, endpoint),
            [start, stop],
        )
        check(
            lambda a, b: pt.logspace(a, b, num, 2.0, endpoint),
            lambda a, b: np.logspace(a, b, num, endpoint, 2.0),
            [start, stop],
        )
    check(
        lambda a, b: pt.geomspace(a, b, num, endpoint=endpoint),
        lambda a, b: np.geomspace(a, b, num, endpoint),
        [-2.0, -50.0],
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_geomspace_has_its_ends(mode, dtype):
    """They have no rounding errors, as in NumPy."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-9, 9, (2, 50)).astype(dtype)
    b = b * np.sign(a * b)
    x, y, n = pt.vector(dtype=dtype), pt.vector(dtype=dtype), pt.lscalar()
    outs = [pt.geomspace(x, y, n, endpoint=flag, axis=k) for flag, k in ((True, 0), (False, 1))]
    f = phintys.function([x, y, n], outs, mode=mode)
    for count in (1, 2, 7):
        closed, half_open = f(a, b, count)
        np.testing.assert_array_equal(closed[0], a)
        np.testing.assert_array_equal(closed[-1], b if count > 1 else a)
        np.testing.assert_array_equal(half_open[:, 0], a)
        expected = np.geomspace(a, b, count, False, axis=1)
        np.testing.assert_allclose(half_open, expected, rtol=1e-4 if dtype == "float32" else 1e-12)
    assert evaluate(pt.geomspace(1, 8, 4))[-1] == 8
    many = pt.geomspace(1, 8, 4, base=[2.0, 10.0], axis=1)
    assert_like(evaluate(many), np.tile([1.0, 2, 4, 8], (2, 1)))
    check_derivatives(lambda x, y: pt.geomspace(x, y, 4), [a.real[:3], b.real[:3]])


def test_linspace_of_vectors():
    a, b = np.array([0.0, 1.0]), np.array([5.0, 6.0])
    for axis in (0, 1):
        check(
            lambda a, b, k=axis: pt.linspace(a, b, 4, axis=k),
            lambda a, b, k=axis: np.linspace(a, b, 4, axis=k),
            [a, b],
        )
    values, step = pt.linspace(0, 1, 5, retstep=True)
    assert evaluate(step) == 0.25 and values.type.shape == (5,)
    assert pt.linspace(0, 1, 5, dtype="float32").type.dtype == "float32"
    n = pt.iscalar("n")
    assert_like(evaluate(pt.linspace(0, 1, n), [n], [3]), [0, 0.5, 1], "float64")
    check_derivatives(lambda a, b: pt.linspace(a, b, 4), [0.5, 2.0])


@pytest.mark.parametrize("k", [-5, -1, 0, 1, 4])
def test_eye_and_triangles(k):
    for n, m in ((3, 3), (2, 4), (4, 2), (0, 2)):
        assert pt.eye(n, m, k).type.shape == (n, m)
        for mode in MODES:
            assert_like(evaluate(pt.eye(n, m, k), mode=mode), np.eye(n, m, k))
            assert_like(evaluate(pt.tri(n, m, k, "int8"), mode=mode), np.tri(n, m, k, "int8"))
        x = np.full((2, n, m), np.nan)
        check(lambda x: pt.tril(x, k), lambda x: np.tril(x, k), [x])
        check(lambda x: pt.triu(x, k), lambda x: np.triu(x, k), [x])
    check_derivatives(lambda x: pt.tril(x, k) ** 2, [np.ones((3, 4))])
    check(lambda x: pt.tril(x, k), lambda x: np.tril(x, k), [np.arange(1.0, 4.0)])
    check(lambda x: pt.triu(x, k), lambda x: np.triu(x, k), [np.arange(1.0, 4.0)])
    with pytest.raises(TypeError, match="at least one dimension"):
        pt.tril(1.0)


def test_eye_misuse_and_identity_like():
    assert isinstance(pt.eye(3).owner.op, Eye)
    check(pt.identity_like, lambda x: np.eye(2, 3, dtype="float32"), [np.ones((2, 3), "float32")])
    for wrong in (lambda: pt.identity_like(pt.dvector()), lambda: pt.eye(2.5)):
        with pytest.raises(TypeError):
            wrong()


# --------------------------------------------------------------------------- broadcasting


def test_broadcasting():
    row, col = np.arange(3.0)[None], np.arange(2.0)[:, None]
    r, c, x = pt.drow("r"), pt.dcol("c"), pt.dmatrix("x")
    for mode in MODES:
        first, second = evaluate(list(pt.broadcast_arrays(r, c)), [r, c], [row, col], mode)
        assert_like(first, np.broadcast_to(row, (2, 3)))
        assert_like(second, np.broadcast_to(col, (2, 3)))
        shape = evaluate(list(pt.broadcast_shape(r, c)), [r, c], [row, col], mode)
        assert [int(n) for n in shape] == [2, 3]
        with pytest.raises(ShapeError):
            evaluate(pt.broadcast_to(x, (2, 3)), [x], [row], mode)
    check(lambda v: pt.broadcast_to(v, (4, 3)), lambda v: np.tile(v, (4, 1)), [np.arange(3.0)])
    lengths = pt.broadcast_shape((1, 3), (2, 1), arrays_are_shapes=True)
    assert [int(n.data) for n in lengths] == [2, 3]
    with pytest.raises(ShapeError, match="do not broadcast"):
        pt.broadcast_shape((2,), (3,), arrays_are_shapes=True)
    found = pt.broadcast_shape(x, pt.dmatrix("y"), allow_runtime_broadcast=True)
    y = list(phintys.graph.traversal.explicit_graph_inputs(found))
    assert len(y) == 2


def test_broadcast_arrays_depend_on_each_other():
    """Also where lengths that are known say that nothing broadcasts."""
    given = pt.dscalar("a"), pt.lscalar("b"), pt.fscalar("c")
    for found, own in zip(pt.broadcast_arrays(*given), given, strict=True):
        assert {*phintys.graph.traversal.explicit_graph_inputs([found])} == {*given}
        assert found.type == own.type
        f = phintys.function(given, found, on_unused_input="ignore")
        assert len(f.maker.fgraph.apply_nodes) <= 1  # a copy of the argument
    assert pt.broadcast_arrays(given[0]) == (given[0],)
    assert pt.broadcast_arrays() == ()


# --------------------------------------------------------------------------- constructors


@pytest.mark.parametrize("kind", SHAPES)
def test_constructors(kind):
    plural = {"matrix": "matrices"}.get(kind, kind + "s")
    for letter, dtype in PREFIXES.items():
        x = getattr(pt, letter + kind)("x")
        assert (x.name, x.type.dtype, x.type.shape) == ("x", dtype, SHAPES[kind])
        assert [v.name for v in getattr(pt, letter + plural)("a", "b")] == ["a", "b"]
    for floatx in ("float32", "float64"):
        with config.change_flags(floatX=floatx):
            assert getattr(pt, kind)().type.dtype == floatx
            assert [v.type.dtype for v in getattr(pt, plural)(2)] == [floatx, floatx]
    assert getattr(pt, kind)(dtype="uint8").type.dtype == "uint8"


def test_constructors_of_several_variables():
    """One name is one variable, or a list of one for each of its letters; as in PyTensor."""
    for make in (pt.dvectors, pt.scalars, pt.itensor3s, phintys.scalar.floats, phintys.scalar.ints):
        assert [v.name for v in make("abcd")] == ["a", "b", "c", "d"]
        assert [v.name for v in make("ab", "cd")] == ["ab", "cd"]
        assert [v.name for v in make(["ab", "c"])] == ["ab", "c"]
        assert make("a").name == "a"
        assert [v.name for v in make(2)] == [None, None] and len(make(1)) == 1
        assert make() == make("") == make(0) == []
        with pytest.raises(TypeError, match="string"):
            make("a", 3)
        with pytest.raises(TypeError):
            make(None)
    assert [v.type.dtype for v in pt.vectors("ab", dtype="int8")] == ["int8", "int8"]


def test_families_of_types():
    assert [t.dtype for t in pt.int_types] == ["int8", "int16", "int32", "int64"]
    assert [t.dtype for t in pt.float_matrix_types] == ["float32", "float64"]
    assert [t.dtype for t in pt.type.complex_vector_types] == ["complex64", "complex128"]
    assert pt.int_types == pt.int_scalar_types and pt.lscalar().type in pt.int_types
    ranks = {"scalar": 0, "vector": 1, "matrix": 2}
    for family in ("int", "float", "complex"):
        for kind, rank in ranks.items():
            assert {t.ndim for t in getattr(pt, f"{family}_{kind}_types")} == {rank}


def test_tensor():
    x = pt.tensor("x", dtype="float32", shape=(None, 3))
    assert (x.name, x.type.dtype, x.type.shape) == ("x", "float32", (None, 3))
    assert pt.vector("v", shape=(3,)).type.shape == (3,)
    assert pt.dvector("v", shape=(3,)).type.shape == (3,)
    with pytest.raises(ValueError, match="dtype="):
        pt.tensor("int8", shape=(2,))
    with pytest.raises(TypeError, match="shape"):
        pt.tensor(dtype="int8")
    with pytest.raises(ValueError, match="matrix"):
        pt.matrix(shape=(3,))


@pytest.mark.parametrize(
    "value, expected",
    [
        (np.full((2, 3), 4.0), 4.0),
        (np.array(True), True),
        (np.array([0.0, -0.0]), None),  # they differ: 1 / x
        (np.array([1, 2]), None),
        (np.zeros(0), None),
        (np.array([np.nan, np.nan]), np.nan),
    ],
)
def test_unique_value(value, expected):
    found = pt.constant(value).unique_value
    assert (found is None) == (expected is None)
    np.testing.assert_array_equal(found, expected)


def test_classes_of_dense_tensors():
    from phintys.tensor.variable import DenseTensorConstant, DenseTensorVariable

    x, one = pt.dvector("x"), pt.constant(1.0)
    assert isinstance(x, DenseTensorVariable) and isinstance(x + one, DenseTensorVariable)
    assert isinstance(one, DenseTensorConstant) and not isinstance(x, DenseTensorConstant)


def test_none_and_slices_as_variables():
    assert isinstance(NoneConst.type, NoneTypeT) and NoneConst.data is None
    assert as_int_none_variable(None) is NoneConst
    assert NoneSliceConst.data == slice(None)
    i = pt.lscalar("i")
    out = make_slice(i, 5)
    assert out.type == slicetype
    assert phintys.function([i], out, mode="FAST_COMPILE")(2) == slice(2, 5, None)
    assert make_slice(slice(1, i)).owner.inputs[2] is NoneConst
    with pytest.raises(TypeError, match="integer"):
        as_int_none_variable(2.5)
    with pytest.raises(TypeError):
        slicetype.filter(3)
    with pytest.raises(TypeError):
        NoneConst.type.filter(3)
    first, second = (slicetype.make_constant(slice(1, 2)) for _ in range(2))
    assert first.signature() == second.signature()


@pytest.mark.parametrize("policy", ["custom", "numpy2", "numpy+floatX"])
@pytest.mark.parametrize("value", [0, -0.0, 300, 2**40, 1.5, 0.1, float("nan"), 1e300, True, 2j])
def test_numbers_of_a_rank_are_their_arrays_of_that_rank(value, policy):
    with phintys.config.change_flags(cast_policy=policy):
        single = pt.constant(value)
        for ndim in range(4):
            found = pt.constant(value, ndim=ndim, name="c")
            assert found.type == pt.TensorType(single.type.dtype, (1,) * ndim)
            assert found.name == "c"
            assert found.data.dtype == found.type.numpy_dtype
            np.testing.assert_array_equal(found.data, np.reshape(single.data, (1,) * ndim))
            assert np.signbit(found.data.real).all() == np.signbit(value.real)


def test_additions_to_an_array_that_is_not_initialised():
    """Its elements are some numbers; those that are written have values."""
    x = pt.dvector("x")
    added = pt.inc_subtensor(pt.empty(3)[:1], x[:1])
    assert evaluate(pt.set_subtensor(added[:], x), [x], [np.arange(3.0)]).tolist() == [0, 1, 2]
    assert phintys.function([x], added)(np.ones(3)).shape == (3,)


def known_and_partly():
    return pt.tensor("z", shape=(2, 3, 4)), pt.tensor("x", shape=(2, None, 4))


#: shapes as programs compute them, of z with the lengths (2, 3, 4) and x with (2, ?, 4)
COMPUTED_SHAPES = {
    "joined": (lambda z, x: pt.concatenate([[3], z.shape[:1]]), (3, 2)),
    "joined, partly known": (lambda z, x: pt.concatenate([[3], x.shape[1:]]), (3, None, 4)),
    "joined twice": (lambda z, x: pt.join(-1, pt.join(0, [1], z.shape[:1]), [5]), (1, 2, 5)),
    "an entry of joined ones": (lambda z, x: [pt.concatenate([[3], z.shape])[-1]], (4,)),
    "part of joined ones": (lambda z, x: pt.concatenate([[9], x.shape])[1:], (2, None, 4)),
    "reversed": (lambda z, x: x.shape[::-1], (4, None, 2)),
    "cast": (lambda z, x: pt.concatenate([z.shape[:1], [7]]).astype("int32"), (2, 7)),
    "product with a number": (lambda z, x: x.shape * 2, (4, None, 8)),
    "product of one length": (lambda z, x: z.shape[:1] * 2, (4,)),
    "sum of two": (lambda z, x: z.shape[1:] + z.shape[:-1], (5, 7)),
    "chosen": (lambda z, x: z.shape[[2, 0, -2]], (4, 2, 3)),
    "product of lengths": (lambda z, x: [z.shape[0], pt.prod(z.shape[1:])], (2, 12)),
    "product of an unknown length": (lambda z, x: [pt.prod(x.shape)], (None,)),
    "number of elements": (lambda z, x: [z.size // 2, pt.max(z.shape)], (12, 4)),
    "specified": (lambda z, x: pt.specify_shape(pt.concatenate([[3], x.shape]), 4)[:2], (3, 2)),
}


@pytest.mark.parametrize("name", COMPUTED_SHAPES)
def test_lengths_of_computed_shapes_are_in_the_type(name):
    """As far as they are in PyTensor, which folds the shapes of `zeros` and of draws."""
    make, expected = COMPUTED_SHAPES[name]
    z, x = known_and_partly()
    shape = make(z, x)
    filled = pt.full(shape, 1.5)
    assert filled.type.shape == expected
    assert pt.random.normal(size=shape).type.shape == expected
    values = {z: np.zeros((2, 3, 4)), x: np.zeros((2, 5, 4))}
    wanted = filled.eval({v: values[v] for v in (z, x)}, on_unused_input="ignore").shape
    assert all(n in (None, k) for n, k in zip(expected, wanted, strict=True))


def test_the_type_of_a_constant_has_its_lengths():
    data = np.ones((2, 3))
    made = [
        TensorConstant(TensorType("float64", (None, 3)), data),
        TensorType("float64", (None, None)).make_constant(data),
        pt.dmatrix.filter_variable(data),
    ]
    assert {c.type for c in made} == {TensorType("float64", (2, 3))}
    assert all(c.equals(pt.constant(data)) for c in made)
    for wrong in ((None, 4), (2,), (2, 3, 1)):
        with pytest.raises(ValueError, match=r"shape \(2, 3\) cannot be a constant of type"):
            TensorConstant(TensorType("float64", wrong), data)
