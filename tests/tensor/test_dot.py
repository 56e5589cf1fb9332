"""Products of vectors, matrices and tensors against NumPy."""

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
    symbols,
)
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.graph.vectorize import vectorize_graph
from phintys.lowering.program import Call
from phintys.tensor.dot import Dot

RNG = np.random.default_rng(3)
FEW = settings(max_examples=25, deadline=None)
RANKS = [((2,), (2,)), ((3, 2), (2,)), ((2,), (2, 4)), ((3, 2), (2, 4))]


def values(*shapes, dtype="float64"):
    if np.dtype(dtype).kind in "fc":
        made = [RNG.normal(size=s).astype(dtype) for s in shapes]
        return [m * dtype_unit(dtype) for m in made]
    return [RNG.integers(0, 5, size=s).astype(dtype) for s in shapes]


def dtype_unit(dtype):
    return np.array(1 + 2j if dtype.startswith("complex") else 1, dtype)


@pytest.mark.parametrize(
    "dtype",
    ["float64", "float32", "float16", "int8", "uint32", "int64", "bool", "complex64", "complex128"],
)
@pytest.mark.parametrize("shapes", RANKS, ids=str)
def test_dot_of_every_rank_and_dtype(shapes, dtype):
    check(pt.dot, np.dot, values(*shapes, dtype=dtype))


@pytest.mark.parametrize(
    "shapes", [((0,), (0,)), ((3, 0), (0, 2)), ((0, 2), (2,)), ((2, 1), (1, 0))]
)
def test_empty_products(shapes):
    check(pt.dot, np.dot, values(*shapes))


def test_mixed_dtypes_are_upcast():
    x, y = values((3, 2), dtype="float32")[0], values((2, 4), dtype="int8")[0]
    assert pt.dot(x, y).type.dtype == "float32"
    check(pt.dot, np.dot, [x.astype("float64"), y])
    assert pt.dot(pt.ivector(), pt.bvector()).type.dtype == "int32"
    assert pt.matmul(pt.dmatrix(), pt.dmatrix(), dtype="float32").type.dtype == "float32"


@FEW
@given(st.integers(0, 3), st.integers(0, 3), st.data())
def test_dot_follows_numpy(n, m, data):
    lengths = st.integers(1, 3)
    x = [data.draw(lengths) for _ in range(n)]
    y = [data.draw(lengths) for _ in range(m)]
    if n and m:
        y[max(m - 2, 0)] = x[-1]
    check(pt.dot, np.dot, values(x, y))


@FEW
@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_matmul_broadcasts_batches(n, m, data):
    """``check`` runs with lengths known and not: batch axes of length 1 need the former."""
    lengths = st.integers(2, 3)
    common = [data.draw(lengths) for _ in range(4)]
    x, y = common[4 - n :], common[4 - m :]
    if n > 1 and m > 1:
        x[-2], y[-1] = data.draw(lengths), data.draw(lengths)
    y[max(m - 2, 0)] = x[-1]
    check(pt.matmul, np.matmul, values(x, y))
    check(lambda x, y: x @ y, np.matmul, values(x, y))


def test_batches_of_known_length_one():
    x, y = values((4, 1, 3, 2), (5, 2, 3))
    symbols = pt.tensor(shape=(None, 1, None, None)), pt.tensor(shape=(None, None, None))
    for mode in MODES:
        assert_like(evaluate(symbols[0] @ symbols[1], symbols, [x, y], mode), x @ y)
        with pytest.raises(ShapeError):
            evaluate(symbols[0] @ symbols[1], symbols, [x, y[:, :1]], mode)
        plain = pt.dtensor4(), pt.dtensor3()
        with pytest.raises(ShapeError):
            evaluate(plain[0] @ plain[1], plain, [x, y], mode)


def matvec(x, y):
    return np.squeeze(x @ y[..., None], -1)


def vecmat(x, y):
    return np.squeeze(x[..., None, :] @ y, -2)


def vecdot(x, y):
    return np.sum(x * y, axis=-1, dtype=x.dtype)


@pytest.mark.parametrize(
    "dtype", few(["float64", "int32", "bool", "complex128"], "float64", "bool")
)
@pytest.mark.parametrize("batch", few([(), (3,), (2, 3)], (), (3,)))
def test_products_over_last_axes(batch, dtype):
    for shapes, op, reference in [
        (((4, 2), (2,)), pt.matvec, matvec),
        (((2,), (2, 4)), pt.vecmat, vecmat),
        (((2,), (2,)), pt.vecdot, vecdot),
    ]:
        x, y = values(*((*batch, *s) for s in shapes), dtype=dtype)
        check(op, reference, [x, y])
        if batch:
            check(op, reference, [x[0], y])
            check(op, reference, [x, y[0]])
    with pytest.raises(ValueError, match="matvec needs at least 2"):
        pt.matvec(pt.dvector(), pt.dvector())


@pytest.mark.parametrize(
    "axes",
    [
        0,
        1,
        2,
        [[1], [0]],
        [[0, 1], [1, 0]],
        [[2, 0], [-1, 1]],
        [[1, 2], [0, 1]],
        [[1, 0], [0, 2]],
        [[2, 1, 0], [1, 0, 2]],
        [[], []],
        [[2], [1]],
        (2, 1),
        (0, -1),
    ],
    ids=str,
)
def test_tensordot(axes):
    x, y = values((2, 3, 2), (3, 2, 2))
    if axes == 1:
        y = values((2, 3))[0]
    if axes == 2:
        y = values((3, 2, 4))[0]
    check(lambda x, y: pt.tensordot(x, y, axes), lambda x, y: np.tensordot(x, y, axes), [x, y])


@pytest.mark.parametrize("mode", ["FAST_RUN", "C"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(5, 2, 3), (4, 5, 2, 3), (0, 2, 3), (5, 0, 3), (5, 2, 0)], ids=str
)
def test_products_with_one_right_factor_are_one_product(shape, dtype, mode):
    x, y = values(shape, (shape[-1], 4), dtype=dtype)
    a, b = symbols([x, y])
    f = phintys.function([a, b], [a @ b, a[..., ::2, :] @ b, a[..., :1, :] @ b], mode=mode)
    batches = [len(step.batch) for step in f.program.steps if isinstance(step, Call)]
    # rows that are left out are gaps
    assert sorted(batches) == [0, len(shape) - 2, len(shape) - 2]
    for found, left in zip(f(x, y), [x, x[..., ::2, :], x[..., :1, :]], strict=True):
        assert_like(found, left @ y)


@pytest.mark.parametrize("static", [False, True])
def test_batched_tensordot_and_inner(static):
    x, y = values((5, 2, 3, 4), (5, 4, 3, 6))
    inputs = symbols([x, y], static)
    outputs = [
        pt.batched_tensordot(*inputs, axes=[[2, 3], [2, 1]]),
        pt.batched_tensordot(inputs[0], inputs[1].swapaxes(1, 2), axes=2)[:, :0],
        pt.batched_tensordot(inputs[0], inputs[1], axes=1),
        pt.batched_tensordot(inputs[0][:, 0], inputs[1][:, 0, :2], axes=0),
        pt.inner(inputs[0], inputs[0][0]),
        pt.inner(inputs[0], 2.0),
    ]
    expected = [
        np.einsum("bipq,bqpj->bij", x, y),
        np.zeros((5, 0, 6)),
        np.einsum("bipq,bqkj->bipkj", x, y),
        np.einsum("bij,bkl->bijkl", x[:, 0], y[:, 0, :2]),
        np.inner(x, x[0]),
        2 * x,
    ]
    for mode in MODES:
        for found, value in zip(evaluate(outputs, inputs, [x, y], mode), expected, strict=True):
            assert_like(found, value)


def test_pairs_of_lengths_that_differ():
    """Their products may be equal: a matrix of 2 rows and one of 2 columns."""
    x, y = pt.dmatrices("x", "y")
    for axes in (2, [[0, 1], [0, 1]]):
        for mode in MODES:
            f = phintys.function([x, y], pt.tensordot(x, y, axes), mode=mode)
            with pytest.raises(ShapeError):
                f(np.ones((2, 3)), np.ones((3, 2)))
    for pair in ([pt.dmatrix(), pt.dmatrix()], [pt.dtensor3(), pt.dscalar()]):
        with pytest.raises(ValueError, match=r"batch|Cannot sum"):
            pt.batched_tensordot(*pair, axes=[[0], [1]] if pair[1].ndim else 1)


def test_tensordot_errors():
    x, y = pt.tensor(shape=(2, 3)), pt.tensor(shape=(4, 5))
    with pytest.raises(ShapeError, match="length 3"):
        pt.tensordot(x, y, 1)
    with pytest.raises(ValueError, match="over 3 axes"):
        pt.tensordot(x, y, 3)
    with pytest.raises(ValueError, match="as many axes"):
        pt.tensordot(x, y, [[0, 1], [0]])
    with pytest.raises(ValueError, match="two lists"):
        pt.tensordot(x, y, [0, 1, 2])


def test_outer_and_batched_dot():
    check(pt.outer, np.outer, values((3,), (4,)))
    check(pt.outer, np.outer, values((3, 2), (4,), dtype="int16"))
    for x, y in [
        ((3, 2, 4), (3, 4, 5)),
        ((3, 2, 4), (3, 4)),
        ((3, 4), (3, 4, 2)),
        ((3, 4), (3, 4)),
    ]:
        core = "ij"[: len(x) - 2] + "k", "k" + "l"[: len(y) - 2]
        spec = f"b{core[0]},b{core[1]}->b{(core[0] + core[1]).replace('k', '')}"
        check(pt.batched_dot, lambda x, y, spec=spec: np.einsum(spec, x, y), values(x, y))
    check(pt.batched_dot, lambda x, y: x[:, None, None] * y, values((3,), (3, 2, 2)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shapes", RANKS, ids=str)
def test_inner_lengths_must_agree(shapes, mode):
    x, y = values(*shapes)
    variables = [pt.tensor(shape=(None,) * v.ndim) for v in (x, y)]
    with pytest.raises(ShapeError, match=r"[Ii]nner"):
        evaluate(pt.dot(*variables), variables, [x[..., :1], y], mode)
    known = pt.tensor(shape=x.shape), pt.tensor(shape=(7, *y.shape[1:]))
    with pytest.raises(ShapeError, match="Inner lengths"):
        pt.dot(*known)
    one = pt.tensor(shape=(*x.shape[:-1], 1))
    with pytest.raises(ShapeError):
        evaluate(pt.dot(one, variables[1]), [one, variables[1]], [x[..., :1], y], mode)


def test_what_has_no_product():
    with pytest.raises(TypeError, match="vectors and matrices"):
        Dot()(pt.dscalar(), pt.dvector())
    with pytest.raises(ValueError, match="0-d"):
        pt.matmul(pt.dscalar(), pt.dvector())
    assert_like(pt.dot(2.0, np.ones(2)).eval(), np.full(2, 2.0))


@pytest.mark.parametrize("shapes", RANKS, ids=str)
def test_derivatives_and_batches(shapes):
    check_derivatives(pt.dot, values(*shapes))
    check_batched(pt.dot, values(*shapes))
    x, y = values(*shapes)
    for over in (0, 1):
        variables = [pt.as_tensor(v).type() for v in (x, y)]
        batches = [x, y]
        batches[over] = np.stack([batches[over]] * 2 + [batches[over] + 1])
        batch = pt.as_tensor(batches[over]).type()
        out = vectorize_graph(pt.dot(*variables), {variables[over]: batch})
        variables[over] = batch
        parts = [[b] * 3 if k != over else b for k, b in enumerate(batches)]
        expected = np.stack([np.dot(a, b) for a, b in zip(*parts)])
        for mode in MODES:
            assert_like(evaluate(out, variables, batches, mode), expected)


@pytest.mark.parametrize(
    "build, shapes",
    [
        (pt.matmul, ((2, 3, 4), (4, 2))),
        (pt.matmul, ((3, 4), (2, 4, 2))),
        (pt.matvec, ((2, 3, 4), (4,))),
        (pt.vecmat, ((2, 4), (4, 3))),
        (pt.vecdot, ((2, 4), (4,))),
        (pt.outer, ((2,), (3,))),
        (lambda x, y: pt.tensordot(x, y, [[0, 2], [1, 0]]), ((2, 3, 4), (4, 2, 3))),
        (pt.batched_dot, ((2, 3, 4), (2, 4))),
    ],
)
def test_derivatives_of_products(build, shapes):
    check_derivatives(build, values(*shapes))


def test_a_jacobian_of_products_is_one_product():
    """Batches of vectors against one matrix are rows of a matrix."""
    x, a = pt.dvector("x"), pt.dmatrix("a")
    jacobian = phintys.jacobian(pt.tanh(a @ x), x)
    value, matrix = values((3,), (5, 3))
    found = evaluate(jacobian, [x, a], [value, matrix])
    assert_like(found, (1 - np.tanh(matrix @ value) ** 2)[:, None] * matrix)


def test_hessian_of_a_quadratic_form():
    x, a = pt.dvector("x"), pt.dmatrix("a")
    value, matrix, p = values((3,), (3, 3), (3,))
    cost = x @ a @ x
    assert_like(evaluate(phintys.hessian(cost, x), [x, a], [value, matrix]), matrix + matrix.T)
    v = pt.dvector("v")
    product = phintys.hessian_vector_product(cost, [x], [v])
    found = evaluate(product, [x, a, v], [value, matrix, p])[0]
    np.testing.assert_allclose(found, (matrix + matrix.T) @ p, rtol=1e-12)


def test_axes_that_are_dropped():
    """A matrix made by dropping an axis of length 1 is not the transpose of what it was made of."""
    x = pt.tensor("x", shape=(3, 3, 1), dtype="float64")
    (value,) = values((3, 3, 1))
    matrix = value[:, :, 0]
    transposed = pt.dot(x.dimshuffle(1, 0), x.dimshuffle(0, 1)).T
    assert_like(evaluate(transposed, [x], [value]), (matrix.T @ matrix).T)
    found = evaluate(pt.linalg.det(x.dimshuffle("x", 0, 1)), [x], [value])
    np.testing.assert_allclose(found, [np.linalg.det(matrix)])
