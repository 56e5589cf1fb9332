"""Nodes of every op, with values of their inputs: what tests of all ops take.

They come from the expressions of the matrix, and from tables below: ``MORE`` for ops that the
matrix has no expression of, ``GROUPS`` for differentiable expressions at points without ties.
"""

from __future__ import annotations

import atexit
import itertools
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matrix_signal
import numpy as np
from matrix_structured import columns

import phintys
import phintys.loop
import phintys.tensor as pt
import phintys.typed_list as tl
from phintys.assumptions import assume
from phintys.conditional import ifelse
from phintys.conditional.lazy import Absent
from phintys.conditional.on_demand import OnDemand
from phintys.conditional.rewriting import IntroduceLazyIfElse
from phintys.gradient import barriers
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.perform import run_node
from phintys.graph.traversal import graph_inputs, io_toposort
from phintys.graph.variable import Apply, Constant
from phintys.inner import FinalizedOpFromGraph
from phintys.loop.ctc import ConnectionistTemporalClassification
from phintys.planned import Planned
from phintys.scalar.op import TABLE, ScalarOp
from phintys.tensor import blas, fourier, linalg, reduce
from phintys.tensor.as_written import as_written
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.cumulative import CumOp
from phintys.tensor.debugging import PdbBreakpoint, Print
from phintys.tensor.from_function import FromFunctionOp
from phintys.tensor.from_jax import wrap_jax
from phintys.tensor.io import load
from phintys.tensor.lengths import checked_lengths
from phintys.tensor.linalg.constructors import BlockDiagonal
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.decomposition.cholesky_pullback import CholeskyPullback
from phintys.tensor.linalg.decomposition.eigen import Eig, Eigh, Eigvalsh
from phintys.tensor.linalg.decomposition.qr import QR
from phintys.tensor.linalg.decomposition.svd import SVD
from phintys.tensor.linalg.equations import (
    TRSYL,
    SolveBilinearDiscreteLyapunov,
    SolveSylvester,
)
from phintys.tensor.linalg.matrix_functions import Expm, Logm, Sqrtm
from phintys.tensor.linalg.products import KroneckerProduct
from phintys.tensor.linalg.pseudo_inverse import MatrixPinv
from phintys.tensor.linalg.riccati import SolveContinuousARE, SolveDiscreteARE
from phintys.tensor.linalg.solvers.lstsq import Lstsq
from phintys.tensor.linalg.solvers.triangular import SolveTriangular
from phintys.tensor.nonzero import some_true
from phintys.tensor.optimize import minimize, minimize_scalar, root, root_scalar
from phintys.tensor.others import ProdOthers
from phintys.tensor.raise_op import Assert, CheckAndRaise
from phintys.tensor.random.basic import DISTRIBUTIONS, ChoiceWithoutReplacement, PermutationRV
from phintys.tensor.random.distribution import Distribution
from phintys.tensor.random.domains import first_violated
from phintys.tensor.ranges import ARangeLength
from phintys.tensor.recurrence import Recurrence
from phintys.tensor.reduce import CAReduce, ProdWithoutZeros
from phintys.tensor.shape import Shape, TensorFromScalar, scalar_from_tensor, tensor_from_scalar
from phintys.tensor.type import TensorType
from phintys.tensor.type_other import SliceParts, make_slice

#: classes without instances
BASES = """
    _Positions _Order _Exponentials FixedOpCAReduce _SameDtype _Extreme _Logical BlasOp AddingOp
    ViewOp RandomVariable SolveBase IndexOp MatrixOp InnerGraphOp RNGConsumerOp Op Output
    BaseBlockDiagonal MatrixEquation MatrixFunction RiccatiEquation AbstractConvolveNd BaseCorrMM
    AbstractRNGConstructor Distribution ScipyDistribution ScipyRandomVariable _NoDerivative
    _Hermitian _ListOp _Changed _Number SymbolicOp TensorSymbolicOp TypeCastingOp
    ScipyWrapperOp ScipyScalarWrapperOp ScipyVectorWrapperOp COp ExternalCOp OpenMPOp
"""


def doubled() -> FunctionGraph:
    """The graph of ``2 z`` of a vector."""
    z = pt.dvector("z")
    return FunctionGraph([z], [z * 2], clone=False)


def x3(x: Any) -> Any:
    """A matrix of 4 columns as a batch of matrices."""
    return x.reshape((x.shape[0], 2, -1))


def solutions(x: Any, v: Any, s: Any, t: Any) -> list[Any]:
    """What the ops of `phintys.tensor.optimize` find, for a matrix, a vector and two numbers."""
    return [
        minimize(((x - v) ** 2).sum(), x, "trust-exact", hess=True)[0],
        minimize_scalar((s - t) ** 2, s, optimizer_kwargs={"tol": 1e-12})[0],
        root(x**3 - v + x, x)[0],
        root_scalar(s**3 + s - t, s, "halley", True, True)[0],
    ]


def lazily(outputs: Any) -> list[Any]:
    """Outputs of `IfElse` nodes as those of `LazyIfElse` nodes."""
    fgraph = FunctionGraph(outputs=outputs if isinstance(outputs, list) else [outputs], clone=False)
    assert IntroduceLazyIfElse().apply(fgraph)
    return fgraph.outputs


def vectorized_choice(x: Any, size: Any, rng: Any) -> Any:
    """Two different elements of each row of a matrix."""
    op = ChoiceWithoutReplacement(signature="(a0),(1)->(s0)", dtype="float64")
    return op(x, [2], size=size, rng=rng)


def numbers_drawn(v: Any, n: Any) -> list[Any]:
    """Draws from each distribution of numbers, with parameters of the length of a vector."""
    found = [pt.random.gamma(pt.exp(v), 2.0, size=(n, v.shape[0]), rng=np.random.default_rng(1))]
    for d in DISTRIBUTIONS.values():
        if not isinstance(d, Distribution) or any(d.ndims_params):
            continue
        domains = [domain for domain, *_ in d.parameters.values()]
        inside = itertools.product(*([x for x in m.inside if np.isfinite(x)] for m in domains))
        params = next(p for p in inside if first_violated(d.conditions, p) is None)
        given = [pt.full_like(v, p, dtype=m.dtype) for p, m in zip(params, domains, strict=True)]
        for size in (None, (n, v.shape[0])):
            found.append(d(*given, size=size, rng=np.random.default_rng(1)))
    return found


@cache
def array_file() -> str:
    """The path of a file with three numbers, which is removed at the end of the process."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    path = str(Path(folder) / "x.npy")
    np.save(path, np.arange(3.0))
    return path


HAS_JAX = find_spec("jax") is not None
#: expressions of ops that the matrix has none of; ``x`` is a matrix, ``v`` a vector, ``n`` a number
MORE = {
    "diagonals": lambda x, v, n: [pt.diagonal(x, k) for k in (-9, -1, 0, 2)],
    "repeat": lambda x, v, n: pt.repeat(v, pt.cast(v * 0 + 2, "int64")),
    "masks and positions": lambda x, v, n: x[x[:, 0] > 0, pt.nonzero(x[:, 0] > 0)[0] * 0],
    "products of others": lambda x, v, n: ProdOthers((1,))(x, x + 1),
    "cumulative": lambda x, v, n: [CumOp(0)(x), CumOp(1, "mul")(x), pt.sort(x), pt.argsort(x, 0)],
    "files": lambda x, v, n: load(array_file(), "float64", (None,)),
    "lengths": lambda x, v, n: list(checked_lengths([n, v.shape[0]])),
    "ranges": lambda x, v, n: [pt.arange(1, n), pt.arange(0.5, n, 1.5), pt.arange(5, -n, -2)],
    "numbers of elements": lambda x, v, n: ARangeLength()(n, pt.constant(9), n - 1),
    "on demand": lambda x, v, n: OnDemand(doubled().freeze())(v),
    "empty": lambda x, v, n: [pt.empty((n, 2)), pt.eye(n, 2, 1), pt.alloc(v, n, v.shape[0])],
    "scalars": lambda x, v, n: [TensorFromScalar()(pt.scalar_from_tensor(n)), Shape()(x)],
    "reductions": lambda x, v, n: [
        *(op(z) for z in (x, x * 1j) for op in (ProdWithoutZeros(0), CAReduce(TABLE["add"], 1))),
        *(CAReduce(TABLE[name])(x) for name in ("mul", "maximum", "minimum")),
    ],
    "products": lambda x, v, n: [
        *(blas.Dot22()(x, x.T), blas.Dot22Scalar()(x, x.T, 2.0), blas.Ger()(x.T, 2.0, v, x[:, 0])),
        *(blas.Gemv()(x[:, 0], 2.0, x, v, 1.0), blas.BatchedDot()(x3(x), x3(x))),
    ],
    "barriers": lambda x, v, n: [
        *(getattr(barriers, f)(x) for f in ("disconnected_grad", "zero_grad", "undefined_grad")),
        *(barriers.grad_clip(x, -1, 1), barriers.grad_scale(x, 2), assume(x, symmetric=False)),
        *(barriers.known_slopes(x, [x, x + 1], [x**2, x]), as_written(x)),
    ],
    "slices": lambda x, v, n: [x[n:], x[::n, 1:-1], v[-n:n:-1], x[:, 1], v[:: -n]],
    "reshape": lambda x, v, n: [x.reshape((-1,)), x.reshape((x.shape[1], -1)), v.reshape((1, -1))],
    "split": lambda x, v, n: pt.split(v, [n, v.shape[0] - n]),
    "masks": lambda x, v, n: [
        *(x[x > 0], pt.set_subtensor(v[v > 0], 1.0), x[:, v > 0], some_true(v < 9)),
    ],
    "minima and roots": lambda x, v, n: solutions(x, v, v[0], v[1]),
    "specified": lambda x, v, n: pt.specify_shape(v, (v.shape[0],)),
    "written": lambda x, v, n: [pt.inc_subtensor(x[1:], x[1:]), pt.set_subtensor(x[n], v)],
    "elementwise": lambda x, v, n: [x + pt.sqr(x), x * v, pt.switch(x > 0, x, v)],
    "factors": lambda x, v, n: [
        Cholesky()(pt.conj(x.T) @ x + 2 * pt.eye(x.shape[1])),
        SolveTriangular(b_ndim=1)(x.T @ x, v),
        CholeskyPullback()(x.T @ x, x.T @ x),
    ],
    "decompositions": lambda x, v, n: [
        *(*QR()(x.T @ x), *QR("economic", pivoting=True)(x), QR("r")(x.T)),
        *(*SVD()(x.T @ x), *SVD(full_matrices=False)(x), SVD(compute_uv=False)(x.T)),
        *(*Eigh()(x.T @ x), *Eigh(lower=False)(x.T @ x, x.T @ x + 2 * pt.eye(4))),
        *(Eigvalsh()(x.T @ x), *Eig()(x[:3, :3])),
        *(*linalg.Schur()(x[:4]), *linalg.QZ(return_eigenvalues=True)(x[:4], x.T @ x)),
    ],
    "functions of matrices": lambda x, v, n: [
        *(BlockDiagonal(3)(x, x.T, x), KroneckerProduct()(x, x.T), Expm()(x.T @ x)),
    ],
    "equations of matrices": lambda x, v, n: [
        TRSYL()(pt.triu(x[:2, :2] + 3), x[3:4, :1] + 1, x[:2, :1]),
        SolveSylvester()(x @ x.T, x.T @ x + 1, x),
        SolveBilinearDiscreteLyapunov()(x.T @ x / 99, x.T @ x),
        *(MatrixPinv()(x), MatrixPinv(True)(x.T @ x), *Lstsq()(x, x + 1, 0.001)),
    ],
    "draws": lambda x, v, n: [
        pt.random.normal(x, pt.exp(v), rng=np.random.default_rng(1)),
        pt.random.normal(v, size=(n, v.shape[0]), rng=np.random.default_rng(1)),
        *numbers_drawn(v, n),
    ],
    "draws of vectors": lambda x, v, n: [
        draw(*params, size=size, rng=np.random.default_rng(1))
        for size in (None, (n, x.shape[0]))
        for draw, params in (
            (pt.random.dirichlet, [pt.exp(x)]),
            (pt.random.multinomial, [n, pt.special.softmax(x, axis=1)]),
            (pt.random.multivariate_normal, [x, x.T @ x + pt.eye(4)]),
            (pt.random.multivariate_hypergeometric, [pt.ones_like(x, dtype="int64") + n, n]),
            (pt.random.categorical, [pt.special.softmax(x, axis=1)]),
            (PermutationRV(signature="(x)->(x)", dtype="float64"), [x]),
            (vectorized_choice, [x]),
        )
    ],
    "generators": lambda x, v, n: [
        g.normal(v)[1] for g in pt.random.default_rng(n).spawn(2)[1]
    ],
    "transforms": lambda x, v, n: [fourier.fft(x, n, 0), fourier.rfft(v), fourier.irfft(x, 5)],
    "searches": lambda x, v, n: [pt.searchsorted(v, x), pt.permute_row_elements(x, pt.argsort(v))],
    "distinct": lambda x, v, n: [
        *pt.unique(x, True, True, True, axis=0), *pt.unique(x, True, True, True),
    ],
    "positions": lambda x, v, n: [
        pt.ravel_multi_index((pt.arange(n), n - pt.arange(2)), (n, n + 1)),
        *pt.unravel_index(pt.arange(n), (n, n)),
    ],
    "diagonals filled": lambda x, v, n: [
        pt.fill_diagonal(x, v[0]), pt.fill_diagonal_offset(x, v[0], n),
        pt.fill_diagonal(x3(x)[:2, :, :2], v[0]),
    ],
    "axes": lambda x, v, n: [
        *(pt.join_dims(x, 0, k) for k in range(3)),
        *(pt.split_dims(v, (n, 2)), pt.split_dims(x, (n, 2), 1), pt.split_dims(v[:1], ())),
    ],
    "branches": lambda x, v, n: [
        *ifelse(n > 2, [pt.exp(v), x], [v[::-1], 2 * x]),
        *lazily(ifelse(n > 2, [pt.exp(v), n], [v[::-1], n - 1])),
        *lazily(ifelse(n > 2, v[:2], pt.exp(v))), Absent(TensorType("float64", (None, 2)))(),
    ],
    "wrapped": lambda x, v, n: [
        FinalizedOpFromGraph([v], [pt.exp(v) * 2])(v),
        FromFunctionOp(np.sort, [v.type], [v.type], lambda node, shapes: shapes)(v),
        *([wrap_jax(lambda x: x * 2)(x)] if HAS_JAX else []),
    ],
    "checks": lambda x, v, n: [
        *(Assert()(x, n > 0, v.sum() < 1e9), Print(global_fn=lambda op, value: None)(x)),
        *PdbBreakpoint("here")(n < 0, v, x),
    ],
    "lists": lambda x, v, n: [
        *((z := tl.make_list([v, v + 1])).append(v)[n], z.extend(z)[n], z.insert(1, v)[0]),
        *(z[n - 2], z.remove(v)[0], z.reverse()[1], z.length(), z.count(v), z.ind(v)),
    ],
    "slice objects": lambda x, v, n: list(SliceParts()(make_slice(1, n, None))),
    "loops": lambda x, v, n: phintys.scan(
        lambda row, last, gain: [last + row * gain, row.sum()],
        sequences=x, outputs_info=[v, None], non_sequences=n, n_steps=n, return_updates=False,
    ),
    "dropped": lambda x, v, n: v[n:][: n - 1].dimshuffle(()),
}  # fmt: skip


RNG = np.random.default_rng(0)
V, W, M, N, C = (RNG.uniform(0.3, 2, s) for s in ((4,), (4,), (3, 4), (4, 2), (2, 3, 4)))
ROW, S = RNG.uniform(0.3, 2, (1, 4)), np.array(0.7)
M2 = RNG.normal(size=(6, 4))
INDEX, MASK = np.array([[2, 0], [1, 2]]), np.array([True, False, True])
ORDERS = np.array([[2, 0, 1], [1, 2, 0]])

# tables: name -> (expression, values)
SHAPES = {
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
    "Unbroadcast": (lambda x: pt.unbroadcast(pt.specify_broadcastable(x, 0), 0), [ROW]),
    "Alloc": (lambda x: pt.alloc(x, 2, 3, 4), [M]),
    "Alloc, broadcast": (lambda x: pt.alloc(pt.specify_broadcastable(x, 0), 3, 4), [ROW]),
    "Reshape": (lambda x: x.reshape((2, -1)), [M]),
    "JoinDims": (lambda x: pt.join_dims(x, 1), [C]),
    "SplitDims": (lambda x: pt.split_dims(x, (2, 2), 1), [M]),
    "Join": (lambda x, y: pt.join(1, x, y), [M, N.reshape(2, 4)[:1].repeat(3, 0)]),
    "Split": (lambda x: pt.split(x, [1, 3], axis=1)[1], [M]),
}
INDICES = {
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
    "roll": (lambda x: pt.roll(x, 1, axis=1), [M]),
}
REDUCTIONS = {
    "Sum": (lambda x: x.sum(axis=(0, 2)), [C]),
    "Prod": (lambda x: x.prod(axis=1), [M]),
    "Prod, with a zero": (lambda x: x.prod(axis=0), [M * (M > 0.6)]),
    "ProdOthers": (lambda x: ProdOthers((0, 2))(x), [C * (C > 0.6)]),
    "ProdOthers, one direction": (lambda x, h: ProdOthers((1,))(x, h), [M * (M > 0.6), M]),
    "ProdOthers, two directions": (lambda x, h, k: ProdOthers((0,))(x, h, k), [V, W, V * W]),
    "ProdWithoutZeros": (lambda x: reduce.ProdWithoutZeros(0)(x), [M]),
    "Max": (lambda x: x.max(axis=0), [M]),
    "Min": (reduce.Min((1,)), [M]),
    "mean, var": (lambda x: pt.var(x, axis=0) + x.mean(), [M]),
    "Argmax": (lambda x: x * pt.argmax(x, axis=0), [M]),
    "Argmin": (lambda x: x * reduce.Argmin()(x), [M]),
    "All, Any": (lambda x: pt.switch(pt.all(x > 0) & pt.any(x > 1), x, x * 2), [M]),
    "Softmax": (lambda x: pt.softmax(x, axis=-1), [M]),
    "LogSoftmax": (lambda x: pt.log_softmax(x, axis=0), [M]),
    "LogSumExp": (lambda x: pt.logsumexp(x, axis=1), [M]),
}
SEQUENCES = {
    "CumOp add": (lambda x: pt.cumsum(x, axis=1), [M]),
    "CumOp mul": (lambda x: pt.cumprod(x, axis=0), [M]),
    "SortOp": (lambda x: pt.sort(x, axis=0), [M]),
    "ArgSortOp": (lambda x: x * pt.argsort(x, axis=1), [M]),
    "SearchsortedOp": (lambda x: x * pt.searchsorted(pt.sort(x), x), [V]),
    "Unique": (lambda x: x * pt.unique(x, return_inverse=True)[1], [V]),
    "Repeat": (lambda x: pt.repeat(x, [1, 0, 2], axis=0), [M]),
    "tile": (lambda x: pt.tile(x, (2, 1)), [M]),
    "ARange": (lambda x: pt.arange(x, 5.0, 1.0) ** 2, [S]),
    "Fourier": (lambda x: fourier.irfft(fourier.fft(fourier.rfft(x), 4)), [M]),
    "Recurrence": (lambda x, y: Recurrence(1)(x, y), [M, M]),
    "Recurrence, one length": (lambda x, y: Recurrence(0)(x, y), [ROW, ROW]),
    "ConnectionistTemporalClassification": (
        lambda x: ConnectionistTemporalClassification(False)(
            x, [[1, -1], [1, 2], [2, -1]], [2, 2, 1]
        ),
        [C],
    ),
}
DIAGONALS = {
    "Eye": (lambda x: x * pt.eye(3, 4), [M]),
    "ExtractDiag": (lambda x: pt.diagonal(x, offset=1), [M]),
    "diag": (lambda x: pt.diag(x), [V]),
    "FillDiagonal": (lambda x, v: pt.fill_diagonal(x, v), [M, S]),
    "FillDiagonal, three axes": (lambda x, v: pt.fill_diagonal(x, v), [C[:2, :2, :2], S]),
    "FillDiagonalOffset": (lambda x, v: pt.fill_diagonal_offset(x, v, 2), [M, S]),
    "tril": (lambda x: pt.tril(x), [M]),
    "BlockDiagonal": (lambda x, y: BlockDiagonal(2)(x, y), [M, N]),
    "KroneckerProduct": (lambda x, y: KroneckerProduct()(x, y), [M, N]),
}
CONTROL = {
    "IfElse": (lambda x, y: ifelse(x[0] > 1, x * y, y), [V, W]),
    "where": (lambda x, y: pt.where(x > 1, x * y, y), [V, W]),
    "FinalizedOpFromGraph": (lambda x: FinalizedOpFromGraph([x], [pt.exp(x)])(x), [V]),
    "CheckAndRaise": (lambda x: CheckAndRaise(ValueError, "large")(x, pt.all(x < 99)), [V]),
    "Assert": (lambda x: Assert("large")(x, pt.all(x < 99)), [V]),
    "Print": (lambda x: Print(global_fn=lambda op, value: None)(x), [M]),
    "PdbBreakpoint": (lambda x, y: pt.add(*PdbBreakpoint("here")(x[0] < 0, x, y)), [V, W]),
    "DeepCopyOp": (lambda x: barriers.deep_copy_op(x), [V]),
    "GradScale": (lambda x: barriers.grad_scale(x, 1.0), [V]),
    "KnownSlopes": (lambda x: barriers.known_slopes(x, [x], [pt.ones_like(x)]), [V]),
    "AsWritten": (lambda x: as_written(x), [V]),
    "SpecifyAssumptions": (lambda x: assume(x, diagonal=False), [M]),
}
if HAS_JAX:
    CONTROL["JAXOp"] = (lambda x, y: wrap_jax(lambda x, y: (x * y * y).sum())(x, y), [V, W])
PRODUCTS = {
    "Dot": (lambda x, y: pt.dot(x, y), [M, N]),
    "Dot of vectors": (lambda x, y: pt.dot(x, y), [V, W]),
    "Blockwise": (lambda x, y: pt.matmul(x, y), [C, N]),
    "Einsum": (lambda x, y, z: pt.einsum("ij,...kj,kj->i...", x, y, z), [M, C, M]),
    "Gemm": (lambda z, x, y: blas.gemm_no_inplace(z, 0.5, x, y, 2.0), [M[:, :2], M, N]),
    "Gemv": (lambda z, x, y: blas.gemv_no_inplace(z, 0.5, x, y, 2.0), [M[:, 0], M, V]),
    "Ger": (lambda z, x, y: blas.ger(z, 0.5, x, y), [M, M[:, 0], V]),
    "Dot22": (lambda x, y: blas._dot22(x, y), [M, N]),
    "Dot22Scalar": (lambda x, y: blas._dot22scalar(x, y, 0.5), [M, N]),
    "BatchedDot": (lambda x, y: pt.batched_dot(x, y), [C, C.transpose(0, 2, 1)]),
}
DECOMPOSITIONS = {
    "Cholesky": (lambda x: Cholesky()(pt.dot(x, pt.conj(x.T))), [M]),
    "CholeskyPullback": (lambda x, g: CholeskyPullback()(pt.dot(x, x.T), g), [M, M[:, :3]]),
    "QR": (lambda x: pt.join(1, *QR("economic")(x)), [M]),
    "SVD": (lambda x: pt.join(1, *SVD(full_matrices=False)(x)[::2]), [M]),
    "Eigh": (lambda x: pt.join(0, *(y.ravel() for y in Eigh()(pt.dot(x, x.T)))), [M]),
    "Eigvalsh": (lambda x: Eigvalsh()(pt.dot(x, x.T)), [M]),
    "Eig": (lambda x: pt.real(Eig()(pt.dot(x, x.T))[0]), [M]),
    **{
        f"LU of {m} rows, {flags}": (
            lambda x, flags=flags: pt.dot(*(y**2 for y in linalg.LU(**flags)(x)[-2:])),
            [M2[:m]],
        )
        for m, flags in ((3, {}), (4, {"p_indices": True}), (6, {"permute_l": True}))
    },
    "LUFactor, PivotToPermutations": (
        lambda x: x[linalg.PivotToPermutations()((f := linalg.LUFactor()(x))[1])] * f[0],
        [M2[:4]],
    ),
}
SOLUTIONS = {
    "SolveTriangular": (
        lambda a, b: SolveTriangular(b_ndim=2, lower=True)(pt.dot(a, a.T), b),
        [M, M],
    ),
    **{
        f"LUSolve, {t}": (
            lambda a, b, t=t: linalg.LUSolve(b_ndim=2, transposed=t)(*linalg.LUFactor()(a), b),
            [M2[:4], N],
        )
        for t in (False, True)
    },
    **{
        f"Solve {kind}": (
            lambda x, b, flags={"assume_a": kind, "lower": lower}: linalg.Solve(b_ndim=2, **flags)(
                pt.dot(x, pt.conj(x.T)), b
            ),
            [M2[:4], N],
        )
        for kind, lower in zip("gen sym her pos tridiagonal diagonal".split(), [False, True] * 3)
    },
    "Solve, vector": (lambda a, b: linalg.Solve(b_ndim=1)(a, b), [M2[:4], V]),
    "CholeskySolve, lower": (
        lambda a, b: linalg.CholeskySolve(lower=True, b_ndim=1)(a, b),
        [M2[:4], V],
    ),
    "CholeskySolve": (lambda a, b: linalg.CholeskySolve(b_ndim=2)(a, b), [M2[:4], N]),
    "LUFactorTridiagonal, SolveLUFactorTridiagonal": (
        lambda x, b: sum(
            linalg.SolveLUFactorTridiagonal(2, t)(
                *linalg.LUFactorTridiagonal()(*(pt.diagonal(x, k) for k in (-1, 0, 1))), b
            )
            for t in (False, True)
        ),
        [M2[:4], N],
    ),
    "TensorSolve": (
        lambda x, b: linalg.TensorSolve()(x.reshape((2, 2, 4)), b.reshape((2, 2))),
        [M2[:4], V],
    ),
    "Lstsq": (lambda a, b: Lstsq()(a, b, 1e-9)[0], [M.T, M.T[:, :2]]),
    "SolveSylvester": (lambda a, b, c: SolveSylvester()(a, b, c), [M[:, :3], M[:2, 2:], M[:, :2]]),
    "TRSYL": (
        lambda a, b, c: TRSYL()(pt.triu(a), b, c),
        [M[:2, :2], M[:1, 2:3], M[:2, :1]],
    ),
    "SolveBilinearDiscreteLyapunov": (
        lambda a, q: SolveBilinearDiscreteLyapunov()(a / 9, q),
        [M[:, :3], M[:, 1:]],
    ),
    "SolveDiscreteARE": (
        lambda a, b, q, r: SolveDiscreteARE()(a / 3, b, q + pt.eye(3), r + pt.eye(2)),
        [M[:, :3], M[:, :2], M[:, :3] / 9, M[:2, 2:] / 9],
    ),
    "SolveContinuousARE": (
        lambda a, b, q, r: SolveContinuousARE()(a / 3, b, q + pt.eye(3), r + pt.eye(2)),
        [M[:, :3], M[:, :2], M[:, :3] / 9, M[:2, 2:] / 9],
    ),
}
MATRICES = {
    "TensorInv": (lambda x: linalg.TensorInv(1)(x.reshape((4, 2, 2))), [M2[:4]]),
    "MatrixInverse": (lambda x: linalg.MatrixInverse()(x), [M2[:4]]),
    "MatrixPinv": (lambda x: MatrixPinv()(x), [M]),
    "Det": (lambda x: linalg.Det()(x), [M2[:4]]),
    "DetCotangent": (lambda x, g: linalg.DetCotangent()(x, g[0]), [M2[:4], V]),
    "SingularCofactors": (lambda x: linalg.SingularCofactors()(x, pt.eq(1, 1)), [M2[:4]]),
    "SLogDet": (lambda x: linalg.SLogDet()(x)[0] * linalg.SLogDet()(x)[1], [M2[:4]]),
    "Expm": (lambda x: Expm()(x), [M[:, :3]]),
    "Logm": (lambda x: Logm()(x @ pt.conj(x.T)), [M[:2]]),
    "Sqrtm": (lambda x: Sqrtm()(x @ pt.conj(x.T)), [M]),
}
#: the tables by kind; a test that compiles many expressions makes one function of each
GROUPS = {
    "shapes": SHAPES,
    "indices": INDICES,
    "reductions": REDUCTIONS,
    "sequences": SEQUENCES,
    "diagonals": DIAGONALS,
    "control": CONTROL,
    "products": PRODUCTS,
    "decompositions": DECOMPOSITIONS,
    "solutions": SOLUTIONS,
    "matrices": MATRICES,
    "signals": matrix_signal.SMOOTH,
}
SMOOTH = {name: point for group in GROUPS.values() for name, point in group.items()}


def package_ops() -> dict[str, type[Op]]:
    """The ops of this package that have instances, by name; elementwise ones as `Elemwise`."""
    found, stack = {}, [Op]
    while stack:
        cls = stack.pop()
        stack += cls.__subclasses__()
        if cls.__module__.startswith("phintys.") and not issubclass(cls, (ScalarOp, Planned)):
            found[cls.__name__] = cls
    left = [*BASES.split(), *([] if HAS_JAX else ["JAXOp"])]
    return {name: cls for name, cls in sorted(found.items()) if name not in left}


def expressions(dtype: str) -> Iterator[tuple[list[Any], list[Any], list[np.ndarray]]]:
    """Results, inputs, and values of the inputs, of that dtype where the matrix has it."""
    rng = np.random.default_rng(3)
    for build in MORE.values():
        x, v, n = pt.dmatrix("x"), pt.dvector("v"), pt.lscalar("n")
        values = [rng.normal(size=(5, 4)), rng.normal(size=4), np.array(2)]
        yield _listed(build(x, v, n)), [x, v, n], values
    for build, values in SMOOTH.values():
        variables = [TensorType("float64", (None,) * v.ndim)() for v in values]
        yield _listed(build(*variables)), variables, values
    lines = {}
    for column in sorted(columns(), key=lambda c: c.dtype != dtype):
        lines.setdefault((column.family, column.name, column.ranks), column)
    for column in lines.values():
        for arguments in column.arguments.values():
            variables = column.variables()
            yield [column.build(*variables)], variables, list(arguments)


def _listed(out: Any) -> list[Any]:
    return list(out) if isinstance(out, list | tuple) else [out]


@cache
def examples(dtype: str = "bool") -> dict[type[Op], list[tuple[Apply, list[Any]]]]:
    """Nodes of each op, with values of their inputs; of equal ops, types and shapes only one.

    There is one of `Blockwise`, as the ops that it applies to items have their own.  Where the
    matrix has expressions of several dtypes, it is that of ``dtype``.
    """
    found: dict[type[Op], list[tuple[Apply, list[Any]]]] = {}
    seen = set()
    for outputs, variables, arguments in expressions(dtype):
        known = dict(zip(variables, arguments, strict=True))
        with np.errstate(all="ignore"):
            for node in computed(outputs, known):
                values = [known[v] for v in node.inputs]
                key = (node.op, *(v.type for v in node.inputs), *map(np.shape, values))
                if isinstance(node.op, Blockwise):
                    key = (Blockwise,)
                some = found.setdefault(type(node.op), [])
                if key not in seen and len(some) < 60:
                    seen.add(key)
                    some.append((node, values))
    return found


def computed(outputs: Sequence[Any], known: dict[Any, Any]) -> list[Apply]:
    """Compute outputs by ``perform``, into ``known``; return the nodes."""
    known.update((v, v.data) for v in graph_inputs(outputs) if isinstance(v, Constant))
    nodes = list(io_toposort(list(known), outputs))
    for node in nodes:
        known.update(zip(node.outputs, run_node(node, [known[v] for v in node.inputs])))
    return nodes


def alone(node: Apply) -> tuple[list[Any], Apply, list[int]]:
    """The node with new inputs, but for constants; these inputs and their positions."""
    places = [k for k, v in enumerate(node.inputs) if not isinstance(v, Constant)]
    fresh = list(node.inputs)
    for k in places:
        fresh[k] = node.inputs[k].type(f"input {k}")
    return [fresh[k] for k in places], node.clone_with_new_inputs(fresh), places
