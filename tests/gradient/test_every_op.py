"""Both derivatives of every op: generated from one table of expressions and the scalar rows."""

from __future__ import annotations

import numpy as np
import pytest
from rows import ROWS, arity, points
from tensor_checks import check_derivatives, evaluate, symbols

import phintys
import phintys.gradient
import phintys.tensor as pt
from phintys import grad, pushforward
from phintys.errors import DisconnectedInputError, NullTypeGradError
from phintys.graph.op import Op
from phintys.graph.traversal import apply_ancestors
from phintys.scalar.op import TABLE
from phintys.tensor import blas, fourier, reduce
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.linalg import Cholesky, SolveTriangular
from phintys.tensor.others import ProdOthers
from phintys.tensor.shape import scalar_from_tensor, tensor_from_scalar

RNG = np.random.default_rng(0)
V, W, M, N, C = (RNG.uniform(0.3, 2, s) for s in ((4,), (4,), (3, 4), (4, 2), (2, 3, 4)))
ROW, S = RNG.uniform(0.3, 2, (1, 4)), np.array(0.7)
INDEX, MASK = np.array([[2, 0], [1, 2]]), np.array([True, False, True])
ORDERS = np.array([[2, 0, 1], [1, 2, 0]])

#: name -> (expression, values)
STRUCTURED = {
    "DimShuffle": (lambda x: x.dimshuffle(1, "x", 0), [M]),
    "DimShuffle, axes dropped": (lambda x: pt.squeeze(x), [ROW]),
    "Elemwise, broadcast": (lambda x, y: x * pt.specify_broadcastable(y, 0), [M, ROW]),
    "TensorFromScalar, ScalarFromTensor": (
        lambda x: tensor_from_scalar(scalar_from_tensor(x)),
        [S],
    ),
    "Shape": (lambda x: x * pt.shape(x).sum(), [M]),
    "Shape_i": (lambda x: x * x.shape[0], [M]),
    "MakeVector": (lambda x: pt.stack([x[0], x[1] * 2, x[0]]), [V]),
    "SpecifyShape": (lambda x: pt.specify_shape(x, (3, None)), [M]),
    "Alloc": (lambda x: pt.alloc(x, 2, 3, 4), [M]),
    "Alloc, broadcast": (lambda x: pt.alloc(pt.specify_broadcastable(x, 0), 3, 4), [ROW]),
    "Reshape": (lambda x: x.reshape((2, -1)), [M]),
    "CumOp add": (lambda x: pt.cumsum(x, axis=1), [M]),
    "CumOp mul": (lambda x: pt.cumprod(x, axis=0), [M]),
    "Subtensor": (lambda x: x[1:, ::-2], [M]),
    "Subtensor, one": (lambda x: x[-1, 2], [M]),
    "IncSubtensor, set": (lambda x, y: pt.set_subtensor(x[1], y), [M, V]),
    "IncSubtensor, inc": (lambda x, y: pt.inc_subtensor(x[::2], y), [M, V]),
    "AdvancedSubtensor": (lambda x: x[INDEX], [M]),
    "AdvancedSubtensor, mask": (lambda x: x[MASK, 1:], [M]),
    "AdvancedSubtensor, apart": (lambda x: x[np.array([0, 1]), :, np.array([2, 2])], [C]),
    "AdvancedIncSubtensor, set": (
        lambda x, y: pt.set_subtensor(x[np.array([2, 0]), 1], y),
        [M, V[:2]],
    ),
    "AdvancedIncSubtensor, inc": (
        lambda x, y: pt.inc_subtensor(x[np.array([2, 2])], y),
        [M, M[:2]],
    ),
    "Nonzero": (lambda x: x[pt.nonzero(x > 1)], [V]),
    "Sum": (lambda x: x.sum(axis=(0, 2)), [C]),
    "Prod": (lambda x: x.prod(axis=1), [M]),
    "Prod, with a zero": (lambda x: x.prod(axis=0), [M * (M > 0.6)]),
    "ProdOthers": (lambda x: ProdOthers((0, 2))(x), [C * (C > 0.6)]),
    "ProdOthers, one direction": (lambda x, h: ProdOthers((1,))(x, h), [M * (M > 0.6), M]),
    "ProdOthers, two directions": (lambda x, h, k: ProdOthers((0,))(x, h, k), [V, W, V * W]),
    "ProdWithoutZeros": (lambda x: reduce.ProdWithoutZeros(0)(x), [M]),
    "Max": (lambda x: x.max(axis=0), [M]),
    "Min": (lambda x: x.min(axis=1, keepdims=True), [M]),
    "mean, var": (lambda x: pt.var(x, axis=0) + x.mean(), [M]),
    "SortOp": (lambda x: pt.sort(x, axis=0), [M]),
    "ArgSortOp": (lambda x: x * pt.argsort(x, axis=1), [M]),
    "Argmax": (lambda x: x * pt.argmax(x, axis=0), [M]),
    "Argmin": (lambda x: x * pt.argmin(x), [M]),
    "All, Any": (lambda x: pt.switch(pt.all(x > 0) & pt.any(x > 1), x, x * 2), [M]),
    "ARange": (lambda x: pt.arange(x, 5.0, 1.0) ** 2, [S]),
    "Eye": (lambda x: x * pt.eye(3, 4), [M]),
    "Fourier": (lambda x: fourier.irfft(fourier.fft(fourier.rfft(x), 4)), [M]),
    "Join": (lambda x, y: pt.join(1, x, y), [M, N.reshape(2, 4)[:1].repeat(3, 0)]),
    "Split": (lambda x: pt.split(x, [1, 3], axis=1)[1], [M]),
    "ExtractDiag": (lambda x: pt.diagonal(x, offset=1), [M]),
    "diag": (lambda x: pt.diag(x), [V]),
    "Repeat": (lambda x: pt.repeat(x, [1, 0, 2], axis=0), [M]),
    "SearchsortedOp": (lambda x: x * pt.searchsorted(pt.sort(x), x), [V]),
    "Unique": (lambda x: x * pt.unique(x, return_inverse=True)[1], [V]),
    "PermuteRowElements": (
        lambda x: pt.permute_row_elements(x, ORDERS),
        [M[:2, :3]],
    ),
    "PermuteRowElements, inverse": (
        lambda x: pt.permute_row_elements(x, np.array([2, 0, 1]), True),
        [M[:, :3]],
    ),
    "RavelMultiIndex, UnravelIndex": (
        lambda x: x * pt.ravel_multi_index(pt.unravel_index(INDEX, (2, 3)), (3, 4)),
        [M[:2, :2]],
    ),
    "FillDiagonal": (lambda x, v: pt.fill_diagonal(x, v), [M, S]),
    "FillDiagonal, three axes": (lambda x, v: pt.fill_diagonal(x, v), [C[:2, :2, :2], S]),
    "FillDiagonalOffset": (lambda x, v: pt.fill_diagonal_offset(x, v, 2), [M, S]),
    "JoinDims": (lambda x: pt.join_dims(x, 1), [C]),
    "SplitDims": (lambda x: pt.split_dims(x, (2, 2), 1), [M]),
    "Dot": (lambda x, y: pt.dot(x, y), [M, N]),
    "Dot of vectors": (lambda x, y: pt.dot(x, y), [V, W]),
    "Blockwise": (lambda x, y: pt.matmul(x, y), [C, N]),
    "Cholesky": (lambda x: Cholesky()(pt.dot(x, x.T)), [M]),
    "SolveTriangular": (
        lambda a, b: SolveTriangular(b_ndim=2, lower=True)(pt.dot(a, a.T), b),
        [M, M],
    ),
    "Softmax": (lambda x: pt.softmax(x, axis=-1), [M]),
    "LogSoftmax": (lambda x: pt.log_softmax(x, axis=0), [M]),
    "LogSumExp": (lambda x: pt.logsumexp(x, axis=1), [M]),
    "Gemm": (lambda z, x, y: blas.gemm_no_inplace(z, 0.5, x, y, 2.0), [M[:, :2], M, N]),
    "Gemv": (lambda z, x, y: blas.gemv_no_inplace(z, 0.5, x, y, 2.0), [M[:, 0], M, V]),
    "Ger": (lambda z, x, y: blas.ger(z, 0.5, x, y), [M, M[:, 0], V]),
    "Dot22": (lambda x, y: blas._dot22(x, y), [M, N]),
    "Dot22Scalar": (lambda x, y: blas._dot22scalar(x, y, 0.5), [M, N]),
    "BatchedDot": (lambda x, y: pt.batched_dot(x, y), [C, C.transpose(0, 2, 1)]),
    "GradScale": (lambda x: phintys.gradient.grad_scale(x, 1.0), [V]),
    "tril": (lambda x: pt.tril(x), [M]),
    "tile": (lambda x: pt.tile(x, (2, 1)), [M]),
    "roll": (lambda x: pt.roll(x, 1, axis=1), [M]),
    "where": (lambda x, y: pt.where(x > 1, x * y, y), [V, W]),
}
#: makes no numbers of its inputs; only its shape counts, so nothing is connected to it
WITHOUT = {"AllocEmpty", "Lengths", "ARangeLength"}  # memory, lengths
WITHOUT |= {"SomeTrue"}  # masks
WITHOUT |= {"MakeSlice", "SliceParts"}  # slices
WITHOUT |= {"RandomVariable"}  # there is no derivative through a draw
ABSTRACT = {"CAReduce", "FixedOpCAReduce", "BlasOp", "AddingOp", "IndexOp"}


@pytest.mark.parametrize("name", STRUCTURED)
def test_both_derivatives(name):
    build, values = STRUCTURED[name]
    check_derivatives(lambda *x: build(*x) ** 2, values)


@pytest.mark.parametrize("name", STRUCTURED)
def test_two_pullbacks_give_the_pushforward(name):
    build, values = STRUCTURED[name]
    inputs, tangents = symbols(values), symbols(values)
    out = build(*inputs) ** 2
    both = [pushforward(out, inputs, tangents, use_op_pushforward=by_op) for by_op in (True, False)]
    weights = [RNG.normal(size=v.shape) for v in values]
    direct, twice = evaluate(both, [*inputs, *tangents], [*values, *weights], "FAST_COMPILE")
    np.testing.assert_allclose(direct, twice, rtol=1e-9, atol=1e-12)


SECOND = ["PermuteRowElements", "FillDiagonal", "JoinDims", "SplitDims",
          "CumOp mul", "Prod", "Prod, with a zero", "Softmax", "LogSumExp", "Dot", "Blockwise",
          "Gemm", "Max", "Join", "IncSubtensor, set", "AdvancedSubtensor", "Elemwise, broadcast",
          "Repeat", "Reshape", "Cholesky", "SolveTriangular"]  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_second_order(name):
    build, values = STRUCTURED[name]
    phintys.verify_grad(
        lambda *x: sum((g**2).sum() for g in grad((build(*x) ** 3).sum(), list(x))),
        values,
        n_tests=1,
        mode="FAST_COMPILE",
    )


def test_every_op_is_in_the_table():
    seen = {
        type(node.op).__name__
        for build, values in STRUCTURED.values()
        for node in apply_ancestors([build(*symbols(values))])
    }
    missing = {
        cls.__name__
        for cls in _subclasses(Op)
        if cls.__module__.startswith("phintys.tensor.")
        and not cls.__name__.startswith("_")
        and ("pullback" in cls.__dict__ or "perform" in cls.__dict__)
    }
    assert missing - seen - WITHOUT - ABSTRACT == set()


def _subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def test_a_reduction_without_rule_says_so():
    x, t = pt.dvector("x"), pt.dvector("t")
    out = reduce.CAReduce(TABLE["maximum"])(x)
    for ask in (lambda: grad(out, x), lambda: pushforward(out, x, t)):
        with pytest.raises(TypeError, match=r"CAReduce{maximum}.* has no derivative"):
            ask()


def test_what_only_has_a_shape_is_disconnected():
    n = pt.lscalar("n")
    with pytest.raises(DisconnectedInputError):
        grad(pt.empty((n,)).sum(), n)


# ----------------------------------------------------------------------- scalar rows

DIFFERENTIABLE = [name for name in ROWS if TABLE[name].d is not None]
REAL = [n for n in DIFFERENTIABLE if n not in ("complex", "complex_from_polar")]


def undefined_positions(name):
    """Arguments that have no derivative, or are not continuous."""
    values = points(name, 3)
    inputs = symbols(values)
    out = Elemwise(TABLE[name])(*inputs)
    skip = []
    for i, v in enumerate(values):
        try:
            grad(out.sum(), inputs[i])
        except (NullTypeGradError, DisconnectedInputError):
            skip.append(i)
        if v.dtype.kind != "f" and i not in skip:
            skip.append(i)
    return skip


@pytest.mark.parametrize("name", REAL)
def test_scalar_rows_as_tensors(name):
    """In the rewritten, compiled form; exact values are tested with the scalars."""
    values, skip = points(name, 3), undefined_positions(name)
    free = [i for i in range(arity(TABLE[name])) if i not in skip]
    op = Elemwise(TABLE[name])

    def build(*given):
        args = [pt.constant(v) for v in values]
        for i, x in zip(free, given):
            args[i] = x
        return op(*args)

    assert free
    if name == "imag":
        assert np.all(evaluate(grad(build(x := pt.dvector()).sum(), x), [x], values) == 0)
        return
    check_derivatives(build, [values[i] for i in free])


@pytest.mark.parametrize("name", [n for n in ROWS if n not in DIFFERENTIABLE])
def test_a_row_without_derivative_says_why(name):
    op = TABLE[name]
    dtype = "float64" if "float64" in _accepted(op) else "int64"
    inputs = [pt.vector(dtype=dtype) for _ in range(arity(op))]
    cost = Elemwise(op)(*inputs).astype("float64").sum()
    g = grad(cost, inputs[0], null_gradients="return")
    if op.not_differentiable:
        assert op.not_differentiable in g.type.why_null
    else:
        assert g.type.dtype == "float64"


def _accepted(op):
    found = []
    for dtype in ("float64", "int64"):
        try:
            op.output_dtypes(*[dtype] * arity(op))
        except TypeError:
            continue
        found.append(dtype)
    return found
