"""Least squares solutions of systems of linear equations."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np

from phintys.dims import Dim, dim_max, dim_min
from phintys.graph.builder import Builder, V
from phintys.graph.op import Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.type import disconnected_type
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, Longs, Positions, routine
from phintys.routines.language import PARTS
from phintys.routines.libraries import LAPACK, LARGEST_INT, gelsd
from phintys.scalar.dtypes import real_of
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.axes import expand_dims, squeeze
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import cast, conjugate, functions, match_dtype
from phintys.tensor.linalg.decomposition.svd import SVD
from phintys.tensor.linalg.matrix_op import (
    BLOCK,
    MatrixOp,
    adjoint,
    columns_first,
    inexact,
    is_tensor,
    nan_like,
)
from phintys.tensor.linalg.routine_parts import fill_nan, fill_nan_real, is_finite
from phintys.tensor.ranges import eye
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.shape import length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["lstsq"]

Matrix = np.ndarray[Any, Any]
NOT_CONVERGED = "The least squares problem is too large, or its singular values did not converge"
#: how often LAPACK divides a problem at most, and the size of its smallest parts
LEVELS, LEAST = 27, 25


class Lstsq(MatrixOp):
    """The shortest ``x`` that minimises the norm of ``a x - b`` for each column of ``b``.

    Results: ``x``; the sums of squares of ``a x - b``, NaN unless ``a`` has full column rank; the
    rank; the singular values of ``a``.  Singular values up to ``rcond`` times the
    greatest one count as 0; a negative ``rcond`` means the precision of the dtype.
    """

    # ----- class and static shape
    __props__ = ()
    gufunc_signature = "(m,n),(m,k),()->(n,k),(k),(),(l)"
    handles_missing = True

    def make_node(self, x: TensorLike, y: TensorLike, rcond: TensorLike) -> Apply:
        a, b, rcond = self.matrix(x), self.matrix(y), as_tensor_variable(rcond)
        dtype = inexact(a.type.dtype, b.type.dtype)
        if rcond.type.ndim or "complex" in rcond.type.dtype:
            raise TypeError(f"{self}: rcond is a real number, not of {rcond.type}.")
        rcond = cast(rcond, real_of(dtype))
        return typed_node(self, [a, b, rcond], dtype, real_of(dtype), "int64", real_of(dtype))

    def shape_rule(self, s: ShapeContext, a: Shape, b: Shape, rcond: Shape) -> list[Shape]:
        s.equal(a[0], b[0], "The matrix and the right sides do not fit")
        return [(a[1], b[1]), (b[1],), (), (dim_min(*a),)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        dtype = node.outputs[0].type.dtype
        a, b = (x.astype(dtype, copy=False) for x in inputs[:2])
        found = self._computed(a, b, float(inputs[2]))
        for cell, value in zip(output_storage, found, strict=True):
            cell[0] = value

    def _computed(self, a: Matrix, b: Matrix, rcond: float) -> list[Matrix]:
        from scipy.linalg import get_lapack_funcs

        (m, n), k, real = a.shape, b.shape[1], a.real.dtype
        rank, s = np.zeros((), "int64"), np.zeros(min(m, n), real)
        x = np.zeros((max(m, n), max(k, 1)), a.dtype)
        x[:m, :k] = b
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            return [nan_like(x[:n, :k]), np.full(k, nan, real), rank, nan_like(s)]
        if a.size:
            (compute,) = get_lapack_funcs(["gelsd"], [a])
            sizes = [d.evaluate({}) for d in work_sizes(*map(Dim.const, (m, n, x.shape[1])))]
            sizes = sizes if np.iscomplexobj(a) else sizes[::2]
            x, s, found, status = compute(a, x, *sizes, rcond)
            if status:
                raise np.linalg.LinAlgError(NOT_CONVERGED)
            rank[()] = found
        squares = np.sum(np.abs(x[n:m, :k]) ** 2, axis=0).astype(real)
        return [x[:n, :k], squares if rank == n else np.full(k, nan, real), rank, s]

    # ----- derivative: that of the pseudo-inverse, times the right side
    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Sequence[Variable]
    ) -> list[Variable]:
        (a, b, rcond), (x, *_) = inputs, outputs
        gx, gr, _, gs = cotangents
        r, ga, gb = b - matrix_product(a, x), a.zeros_like(x.type.dtype), b.zeros_like(x.type.dtype)
        if is_tensor(gx):
            p = self._pseudo_inverse(a, rcond)
            q = adjoint(p)
            w = matrix_product(q, gx)
            outside = gx - matrix_product(adjoint(a), w)
            ga += matrix_product(matrix_product(q, x), adjoint(outside)) - matrix_product(
                w, adjoint(x)
            )
            ga += matrix_product(r, adjoint(matrix_product(p, w)))
            gb += w
        if is_tensor(gr):
            ga -= matrix_product(2 * r * gr, adjoint(x))
            gb += 2 * r * gr
        if is_tensor(gs):
            u, _, vt = SVD(full_matrices=False)(a)
            ga += matrix_product(u * gs, vt)
        return [match_dtype(ga, a), match_dtype(gb, b), rcond.zeros_like()]

    def pushforward(
        self, inputs: Tensors, outputs: Tensors, tangents: Sequence[Variable]
    ) -> list[Variable]:
        (a, b, rcond), (x, squares, _, s) = inputs, outputs
        ta, tb = (t if is_tensor(t) else v.zeros_like() for t, v in zip(tangents, (a, b)))
        p, r, moved = (
            self._pseudo_inverse(a, rcond),
            b - matrix_product(a, x),
            tb - matrix_product(ta, x),
        )
        up = matrix_product(adjoint(ta), matrix_product(adjoint(p), x))
        tx = matrix_product(p, moved) + matrix_product(
            p, matrix_product(adjoint(p), matrix_product(adjoint(ta), r))
        )
        tx += up - matrix_product(p, matrix_product(a, up))
        tr = 2 * functions.real(sum_over(conjugate(r) * moved, axis=0))
        u, _, vt = SVD(full_matrices=False)(a)
        ts = functions.real(sum_over(conjugate(u) * matrix_product(ta, adjoint(vt)), axis=0))
        return [
            match_dtype(tx, x), match_dtype(tr, squares), disconnected_type(), match_dtype(ts, s),
        ]  # fmt: skip

    def _pseudo_inverse(self, a: TensorVariable, rcond: TensorVariable) -> TensorVariable:
        """The pseudo-inverse of ``a``, in which singular values up to ``rcond`` count as 0."""
        return self(a, eye(length(a, 0), dtype=a.type.dtype), rcond)[0]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, builder: Builder[V], a: V, b: V, rcond: V) -> list[V]:
        dtype = node.outputs[0].type.dtype
        real = real_of(dtype)
        (m, n), k = builder.shape(a)[-2:], builder.length(b, -1)
        size, columns = dim_max(m, n), dim_max(k, 1)
        batch = builder.broadcast_shape(
            [builder.shape(a)[:-2], builder.shape(b)[:-2], builder.shape(rcond)]
        )
        a = builder.broadcast_to(columns_first(builder, builder.cast(a, dtype)), (*batch, n, m))
        b = builder.broadcast_to(columns_first(builder, builder.cast(b, dtype)), (*batch, k, m))
        everywhere = [(0, 1, length) for length in batch]
        right = builder.fill(builder.const(0, dtype), (*batch, columns, size))
        right = builder.update(right, [*everywhere, (0, 1, k), (0, 1, m)], b, "set")
        rcond = builder.broadcast_to(builder.cast(rcond, real), batch)
        rcond = builder.expand(rcond, len(batch))
        lwork, lrwork, liwork = work_sizes(m, n, columns)
        _, x, squares, rank, s = builder.external(
            least_squares,
            dtype,
            (m, n, k, lwork, liwork),
            [rcond],
            [a, right],
            [(real, (k,)), ("int64", ()), (real, (dim_min(m, n),))],
            batch=batch,
            work=20 * m * n * dim_min(m, n),
            scratch=[(dtype, lwork), (real, lrwork), ("int32", liwork), ("int32", 1)],
        )
        x = builder.slice(builder.slice(x, len(batch), 0, 1, k), len(batch) + 1, 0, 1, n)
        return [columns_first(builder, x), squares, rank, s]


def work_sizes(m: Dim, n: Dim, k: Dim) -> tuple[Dim, Dim, Dim]:
    """The lengths of LAPACK's workspaces for gelsd: of the dtype, of real numbers, of integers."""
    small = dim_min(m, n)
    parts = 2 * LEAST + 8 * LEVELS
    squares = (LEAST + 1) ** 2
    work = small * (12 + parts + k) + squares + (m + n + k) * BLOCK
    real = small * (10 + parts + 1 + k) + 3 * LEAST * k + squares + 2 * k
    return work, real, small * (3 * LEVELS + 11) + 1


@routine(LAPACK, (np.linalg.LinAlgError, NOT_CONVERGED))
def least_squares(
    m: int, n: int, k: int, lwork: int, liwork: int, rcond: Array, a: Array, b: Array,
    squares: Array, rank: Longs, s: Array, work: Array, rwork: Array, iwork: Positions,
    found: Positions,
) -> int:  # fmt: skip
    """Replace right sides b[m, k] by solutions; matrices are stored column by column."""
    size = m if m > n else n
    small = n if m > n else m
    columns = k if k > 0 else 1
    rank[0] = 0
    if is_finite(m * n, a) == 0 or is_finite(size * k, b) == 0:
        fill_nan(size * k, b)
        fill_nan_real(k, squares)
        fill_nan_real(small, s)
        return 0
    if lwork > LARGEST_INT or liwork > LARGEST_INT or size > LARGEST_INT:
        return 1
    if small > 0:
        status = gelsd(m, n, columns, a, m, b, size, s, rcond[0], found, work, lwork, rwork, iwork)
        if status != 0:
            return status
        rank[0] = found[0]
    for j in range(k):
        total = 0.0
        for i in range(n * PARTS, m * PARTS):
            x = b[j * size * PARTS + i]
            total += x * x
        squares[j] = total if rank[0] == n else nan
    return 0


# ----- user function
def lstsq(x: TensorLike, y: TensorLike, rcond: TensorLike | None = None) -> list[TensorVariable]:
    """The shortest ``z`` that minimises the norm of ``x z - y``, as ``numpy.linalg.lstsq``.

    Parameters
    ----------
    x : tensor with at least two axes; the last two are matrices
    y : right sides: a vector, or matrices
    rcond : singular values up to this number times the greatest one count as 0; negative: the
        precision of the dtype; None: that times the greater length

    Results: ``z``; the sums of squares of ``x z - y`` for each column of ``y``; the rank of ``x``,
    int64; its singular values.  For a single matrix there are no sums unless ``x`` has full column
    rank and more rows than columns; in a batch they are NaN for matrices of less than full rank.

    The solution for matrices that contain NaN or infinity is NaN.  Derivatives are those among
    matrices of the same rank.  ShapeError if shapes do not fit; LinAlgError at run time if LAPACK's
    iteration does not converge.

    >>> import phintys.tensor as pt
    >>> z, squares, rank, _ = pt.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])
    >>> z.eval(), squares.eval()
    (array([2.]), array([2.]))
    """
    a, b = as_tensor_variable(x), as_tensor_variable(y)
    if a.type.ndim < 2:
        raise ValueError(f"lstsq takes matrices for x; {a} has {a.type.ndim} dimensions.")
    right = expand_dims(b, 1) if b.type.ndim == 1 else b
    rows, columns = a.shape[-2], a.shape[-1]
    if rcond is None:
        eps = float(np.finfo(inexact(a.type.dtype, b.type.dtype)).eps)
        rcond = functions.maximum(rows, columns) * eps
    z, squares, rank, s = Blockwise(Lstsq())(a, right, rcond)
    if squares.type.ndim == 1:
        is_given = functions.eq(rank, columns) & functions.gt(rows, columns)
        squares = squares[: functions.switch(is_given, squares.shape[0], 0)]
    return [squeeze(z, -1) if b.type.ndim == 1 else z, squares, rank, s]
