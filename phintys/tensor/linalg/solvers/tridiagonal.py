"""Systems of linear equations with a tridiagonal matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.dims import Dim, dim_max
from phintys.gradient.forward import forward_sweep
from phintys.gradient.reverse import backpropagate
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, Positions, routine
from phintys.routines.libraries import LAPACK, LARGEST_INT, PLAIN, TRANSPOSED, gttrf, gttrs
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import zeros
from phintys.tensor.diagonal import diagonal
from phintys.tensor.elemwise import functions, match_dtype
from phintys.tensor.index import set_subtensor
from phintys.tensor.linalg.decomposition.lu import LUFactor, as_pivots
from phintys.tensor.linalg.elimination import (
    counted_from,
    lower_columns,
)
from phintys.tensor.linalg.matrix_op import MatrixOp, inexact, nan_like, triangle
from phintys.tensor.linalg.routine_parts import fill_nan, has_zero, is_finite
from phintys.tensor.linalg.solvers.core import SolveBase
from phintys.tensor.linalg.solvers.lu import LUSolve
from phintys.tensor.ranges import arange
from phintys.tensor.reduce import min as min_over
from phintys.tensor.shape import length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["tridiagonal_lu_factor", "tridiagonal_lu_solve"]


class LUFactorTridiagonal(MatrixOp):
    """The factors of a tridiagonal matrix, from its diagonals below, on and above the main one.

    The results are the factors of the rows that were subtracted, the three diagonals of the upper
    factor, and exchanges of rows (int32): row ``i`` with row ``pivots[i]``, which is ``i`` or
    ``i + 1``.  If a diagonal contains NaN or infinity, all factors are NaN.
    """

    # ----- class and static shape
    __props__ = ("overwrite_dl", "overwrite_d", "overwrite_du")
    gufunc_signature = "(dl),(d),(dl)->(dl),(d),(dl),(du2),(d)"

    def __init__(
        self, overwrite_dl: bool = False, overwrite_d: bool = False, overwrite_du: bool = False
    ) -> None:
        given = overwrite_dl, overwrite_d, overwrite_du
        self.overwrite_dl, self.overwrite_d, self.overwrite_du = map(bool, given)
        self.destroy_map = {k: [k] for k in range(3) if given[k]}

    def make_node(self, dl: TensorLike, d: TensorLike, du: TensorLike) -> Apply:
        inputs = [_vector(self, x) for x in (dl, d, du)]
        dtype = inexact(*[x.type.dtype for x in inputs])
        return typed_node(self, inputs, *[dtype] * 4, "int32")

    def shape_rule(self, s: ShapeContext, dl: Shape, d: Shape, du: Shape) -> list[Shape]:
        (n,) = d
        _require_diagonals(s, n, dl, du)
        beside = dim_max(n - 1, 0)
        return [(beside,), (n,), (beside,), (dim_max(n - 2, 0),), (n,)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        diagonals = [x.astype(node.outputs[0].type.dtype, copy=False) for x in inputs]
        with np.errstate(all="ignore"):
            found = factored_diagonals(*diagonals)
        for cell, value in zip(output_storage, found):
            cell[0] = value

    # ----- derivatives: those of the formula
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True] * 4 + [False]] * 3

    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        found = backpropagate(dict(zip(self.formula(*inputs), cotangents)), inputs)
        return [match_dtype(found[x], x) for x in inputs]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        found = forward_sweep(self.formula(*inputs), dict(zip(inputs, tangents)))
        return [*found, outputs[4] * 0]

    def formula(self, *inputs: TensorVariable) -> list[TensorVariable]:
        """The factors as a graph of a decomposition of the full matrix."""
        factors = LUFactor()(_with_diagonals(dict(zip((-1, 0, 1), inputs))))[0]
        below = triangle(factors, True, 1).sum(0)[: length(inputs[0], 0)]
        return [below, *(diagonal(factors, k) for k in range(3))]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], dl: V, d: V, du: V) -> list[V]:
        *found, pivots = lower_tridiagonal(b, (dl, d, du), node.outputs[0].type.dtype)
        return [*found, counted_from(b, pivots, 1, 0)]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return LUFactorTridiagonal(*(k in allowed_inplace_inputs for k in range(3)))


def _vector(op: Op, x: TensorLike) -> TensorVariable:
    x = as_tensor_variable(x)
    if x.type.ndim != 1:
        raise TypeError(f"{op} takes vectors; {x} has {x.type.ndim} dimensions.")
    return x


def _require_diagonals(s: ShapeContext, n: Dim, *beside: Shape) -> None:
    for (found,) in beside:
        s.equal(found, dim_max(n - 1, 0), "The lengths of the diagonals do not fit")


def factored_diagonals(dl: np.ndarray, d: np.ndarray, du: np.ndarray) -> list[np.ndarray]:
    """The results of `LUFactorTridiagonal`, by the algorithm of LAPACK's ``gttrf``."""
    dl, d, du, n = dl.copy(), d.copy(), du.copy(), len(d)
    du2, pivots = np.zeros(max(n - 2, 0), d.dtype), np.arange(n, dtype="int32")
    if not all(np.isfinite(x).all() for x in (dl, d, du)):
        return [*map(nan_like, (dl, d, du, du2)), pivots]
    for i in range(n - 1):
        if abs(d[i].real) + abs(d[i].imag) >= abs(dl[i].real) + abs(dl[i].imag):
            if d[i] != 0:
                dl[i] /= d[i]
                d[i + 1] -= dl[i] * du[i]
            continue
        pivots[i] = i + 1
        d[i], dl[i] = dl[i], d[i] / dl[i]
        du[i], d[i + 1] = d[i + 1], du[i] - dl[i] * d[i + 1]
        if i < n - 2:
            du2[i], du[i + 1] = du[i + 1], -dl[i] * du[i + 1]
    return [dl, d, du, du2, pivots]


class SolveLUFactorTridiagonal(SolveBase):
    """The solution ``x`` of ``a x = b`` from the results of `LUFactorTridiagonal` for ``a``; NaN if
    ``a`` is singular or not finite.

    Parameters
    ----------
    transposed
        whether to solve ``a^T x = b``
    b_ndim, overwrite_b
        see `SolveBase`
    """

    # ----- class and static shape
    __props__ = ("b_ndim", "overwrite_b", "transposed")

    def __init__(self, b_ndim: int, transposed: bool, overwrite_b: bool = False) -> None:
        super().__init__(b_ndim=b_ndim, overwrite_b=overwrite_b)
        self.transposed = bool(transposed)
        self.destroy_map = {0: [5]} if overwrite_b else {}
        right = "(d)" if b_ndim == 1 else "(d,rhs)"
        self.gufunc_signature = f"(dl),(d),(dl),(du2),(d),{right}->{right}"

    def make_node(self, *inputs: TensorLike) -> Apply:
        *diagonals, pivots, b = inputs
        given = [_vector(self, x) for x in diagonals]
        b = as_tensor_variable(b)
        self.require_b(b)
        dtype = inexact(*[x.type.dtype for x in given], b.type.dtype)
        return typed_node(self, [*given, as_pivots(pivots), b], dtype)

    def shape_rule(self, s: ShapeContext, *shapes: Shape) -> list[Shape]:
        dl, (n,), du, (above,), (count,), b = shapes
        _require_diagonals(s, n, dl, du)
        s.equal(above, dim_max(n - 2, 0), "The lengths of the diagonals do not fit")
        s.equal(count, n, "The matrix and the pivots do not fit")
        return [(s.equal(n, b[0], "The matrix and the right sides do not fit"), *b[1:])]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        *diagonals, pivots, b = inputs
        *diagonals, b = self.converted(node, [*diagonals, b])
        output_storage[0][0] = substituted_diagonals([*diagonals, pivots], b, self.transposed)

    # ----- derivatives: those of the formula
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[k != 4] for k in range(6)]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        found = backpropagate({self.formula(*inputs): cotangents[0]}, [*inputs[:4], inputs[5]])
        return [None if k == 4 else match_dtype(found[x], x) for k, x in enumerate(inputs)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        given: dict[Variable, Variable] = {
            x: t for k, (x, t) in enumerate(zip(inputs, tangents)) if k != 4
        }
        return list(forward_sweep([self.formula(*inputs)], given))

    def formula(self, *inputs: TensorVariable) -> TensorVariable:
        """The solution as a graph of a system with the full factors.

        A factor of column ``i`` stands in row ``i + 1``, and moves down with each exchange there.
        """
        dl, d, du, du2, pivots, b = inputs
        rows, n = arange(length(d, 0)), length(d, 0)
        stays = functions.eq(pivots, rows) & functions.gt(rows, rows[: length(dl, 0), None])
        last = functions.switch(stays, rows, n - 1)
        factors = _with_diagonals({0: d, 1: du, 2: du2})
        factors = set_subtensor(factors[min_over(last, axis=1), rows[: length(dl, 0)]], dl)
        return LUSolve(transposed=self.transposed, b_ndim=self.b_ndim)(factors, pivots, b)

    # ----- batching and lowering
    def lower_batched(self, node: Apply, builder: Builder[V], *inputs: V) -> list[V]:
        *diagonals, pivots, b = inputs
        pivots = counted_from(builder, pivots, 0, 1)
        arguments = b, node.outputs[0].type.dtype, self.b_ndim, self.transposed
        return [lower_tridiagonal_substitution(builder, [*diagonals, pivots], *arguments)]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        if 5 not in allowed_inplace_inputs:
            return self
        return SolveLUFactorTridiagonal(self.b_ndim, self.transposed, overwrite_b=True)


def _with_diagonals(diagonals: dict[int, TensorVariable]) -> TensorVariable:
    """A square matrix with diagonals at some offsets; that at 0 has its length."""
    n = length(diagonals[0], 0)
    full = zeros((n, n), dtype=inexact(*[x.type.dtype for x in diagonals.values()]))
    for offset, x in diagonals.items():
        places = arange(length(x, 0))
        full = set_subtensor(full[places + max(-offset, 0), places + max(offset, 0)], x)
    return full


def substituted_diagonals(
    factors: Sequence[np.ndarray], b: np.ndarray, transposed: bool = False
) -> np.ndarray:
    """The solution of a system with `factored_diagonals`, NaN if the matrix is singular or not
    finite; ValueError if the pivots are none."""
    from scipy.linalg import get_lapack_funcs

    dl, d, du, du2, pivots = factors
    n = len(d)
    if not np.all((pivots == np.arange(n)) | (pivots == np.minimum(np.arange(n) + 1, n - 1))):
        raise ValueError(f"The pivots {pivots} are not those of a tridiagonal matrix.")
    if not (np.all(d != 0) and all(np.isfinite(x).all() for x in (dl, d, du, du2))):
        return nan_like(b)
    if b.size == 0:
        return b.copy()
    if n < 3:  # which SciPy does not accept
        dl, d, du, du2 = (
            np.concatenate([x, np.full(3, one, x.dtype)])
            for x, one in zip((dl, d, du, du2), (0, 1, 0, 0))
        )
        pivots = np.concatenate([pivots, n + np.arange(3)])
        longer = np.concatenate([b, np.zeros((3, *b.shape[1:]), b.dtype)])
        factors = dl[: n + 2], d, du[: n + 2], du2[: n + 1], pivots
        return substituted_diagonals(factors, longer, transposed)[:n]
    (gttrs,) = get_lapack_funcs(["gttrs"], [d, b])
    found, _ = gttrs(dl, d, du, du2, pivots + 1, b, trans="T" if transposed else "N")
    return found.reshape(b.shape)


# ----- routines and lowering
def lower_tridiagonal(b: Builder[V], diagonals: tuple[V, V, V], dtype: str) -> list[V]:
    """The results of `LUFactorTridiagonal`, with pivots that count from 1."""
    dl, d, du = (b.cast(x, dtype) for x in diagonals)
    batch = b.broadcast_shape([b.shape(x)[:-1] for x in (dl, d, du)])
    n = b.length(d, -1)
    given = [b.broadcast_to(x, (*batch, b.length(x, -1))) for x in (dl, d, du)]
    found = b.external(
        factor_tridiagonal,
        dtype,
        (n,),
        updates=given,
        writes=[(dtype, (dim_max(n - 2, 0),)), ("int32", (n,))],
        batch=batch,
        work=8 * n,
    )
    return found


def lower_tridiagonal_substitution(
    b: Builder[V], factors: list[V], right: V, dtype: str, b_ndim: int, transposed: bool
) -> V:
    """Solutions for what `lower_tridiagonal` returns."""
    *diagonals, pivots = factors
    reads = [*(b.cast(x, dtype) for x in diagonals), pivots]
    batch = b.broadcast_shape([b.shape(x)[:-1] for x in reads])
    reads = [b.broadcast_to(x, (*batch, b.length(x, -1))) for x in reads]
    flags = (int(transposed),)
    return lower_columns(b, substitute_tridiagonal, flags, reads, right, dtype, b_ndim)


@routine(LAPACK, (np.linalg.LinAlgError, "The matrices are too large for LAPACK"))
def factor_tridiagonal(
    n: int, dl: Array, d: Array, du: Array, du2: Array, pivots: Positions
) -> int:
    """Replace the diagonals of a matrix by those of its factors, or by NaN if one is not finite;
    pivots count from 1."""
    if n > LARGEST_INT:
        return 1
    beside = n - 1 if n > 0 else 0
    if is_finite(beside, dl) * is_finite(n, d) * is_finite(beside, du) == 0:
        fill_nan(beside, dl)
        fill_nan(n, d)
        fill_nan(beside, du)
        fill_nan(n - 2 if n > 1 else 0, du2)
        for i in range(n):
            pivots[i] = i + 1
    elif n > 0:
        gttrf(n, dl, d, du, du2, pivots)
    return 0


@routine(LAPACK, (ValueError, "The pivots are not those of a tridiagonal matrix"))
def substitute_tridiagonal(
    transposed: int,
    n: int,
    m: int,
    dl: Array,
    d: Array,
    du: Array,
    du2: Array,
    pivots: Positions,
    b: Array,
) -> int:
    """Replace right sides, stored by columns, by solutions, or by NaN; return 1 for a pivot that is
    none."""
    if n > LARGEST_INT or m > LARGEST_INT:
        return 1
    beside = n - 1 if n > 0 else 0
    finite = is_finite(beside, dl) * is_finite(n, d) * is_finite(beside, du)
    finite *= is_finite(n - 2 if n > 1 else 0, du2)
    for i in range(n):
        if pivots[i] != i + 1 and (pivots[i] != i + 2 or i == n - 1):
            return 1
    if finite == 0 or has_zero(n, d, 1) == 1:
        fill_nan(n * m, b)
    elif n > 0 and m > 0:
        gttrs(TRANSPOSED if transposed == 1 else PLAIN, n, m, dl, d, du, du2, pivots, b, n)
    return 0


# ----- user functions
def tridiagonal_lu_factor(a: TensorLike) -> tuple[TensorVariable, ...]:
    """The factors of tridiagonal matrices, for `tridiagonal_lu_solve`: dl, d, du, du2, pivots.

    Parameters
    ----------
    a : tensor with at least two axes; only the three diagonals in the middle are read

    ``d``, ``du`` and ``du2`` are the diagonals of the upper factor, ``dl`` the factors of the rows
    that were subtracted, and row ``i`` was exchanged with row ``pivots[i]`` (int32).

    >>> import phintys.tensor as pt
    >>> a = pt.as_tensor([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    >>> [x.eval().tolist() for x in pt.linalg.tridiagonal_lu_factor(a)[:1]]
    [[0.5, 0.6666666666666666]]
    """
    a = as_tensor_variable(a)
    return tuple(Blockwise(LUFactorTridiagonal())(*(diagonal(a, k, -2, -1) for k in (-1, 0, 1))))


def tridiagonal_lu_solve(
    a_diagonals: tuple[TensorLike, TensorLike, TensorLike, TensorLike, TensorLike],
    b: TensorLike,
    *,
    b_ndim: int,
    transposed: bool = False,
) -> TensorVariable:
    """The solution ``x`` of ``a x = b`` from ``tridiagonal_lu_factor(a)``.

    Parameters
    ----------
    a_diagonals : what `tridiagonal_lu_factor` returns
    b : right sides
    b_ndim : 1 if right sides are vectors, 2 if they are matrices
    transposed : whether to solve ``a^T x = b``

    The solution is NaN where a matrix is singular or not finite.  ShapeError if shapes do not fit,
    ValueError at run time if the pivots are not those of a tridiagonal matrix.

    >>> import phintys.tensor as pt
    >>> factors = pt.linalg.tridiagonal_lu_factor([[2.0, 1.0], [1.0, 3.0]])
    >>> pt.linalg.tridiagonal_lu_solve(factors, [3.0, 4.0], b_ndim=1).eval()
    array([1., 1.])
    """
    return Blockwise(SolveLUFactorTridiagonal(b_ndim, transposed))(*a_diagonals, b)
