"""The factors of elimination with partial pivoting: LU decompositions."""

from __future__ import annotations

import numpy as np

from phintys.dims import dim_min
from phintys.graph.builder import Builder, V
from phintys.graph.ignored import ignores
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import zeros
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import cast, match_dtype
from phintys.tensor.index import set_subtensor
from phintys.tensor.linalg.elimination import (
    counted_from,
    factored,
    lower_elimination,
    lower_order,
    require_pivots,
)
from phintys.tensor.linalg.matrix_op import (
    MatrixOp,
    adjoint,
    columns_first,
    inexact,
    square,
    triangle,
)
from phintys.tensor.linalg.solvers.triangular import solve_triangular
from phintys.tensor.ranges import eye
from phintys.tensor.shape import length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["lu", "lu_factor", "pivot_to_permutation"]


class LU(MatrixOp):
    """Factors of ``x = P L U``: a permutation, a lower triangle with ones on the diagonal, an upper
    triangle.

    Parameters
    ----------
    permute_l
        whether to return ``P L`` and ``U``
    overwrite_a
        whether the input may be overwritten
    p_indices
        whether to return ``P`` as a vector ``p`` of int32 with ``x = L[p] U``
    """

    # ----- class and static shape
    __props__ = ("permute_l", "overwrite_a", "p_indices")

    def __init__(
        self, *, permute_l: bool = False, overwrite_a: bool = False, p_indices: bool = False
    ) -> None:
        if permute_l and p_indices:
            raise ValueError("permute_l and p_indices exclude each other.")
        self.permute_l, self.p_indices = bool(permute_l), bool(p_indices)
        self.overwrite_a = bool(overwrite_a)
        order = "" if permute_l else "(m)," if p_indices else "(m,m),"
        self.gufunc_signature = f"(m,n)->{order}(m,k),(k,n)"

    def make_node(self, x: TensorLike) -> Apply:
        x = self.matrix(x)
        dtype = inexact(x.type.dtype)
        order = "int32" if self.p_indices else dtypes.real_of(dtype)
        return typed_node(self, [x], *([] if self.permute_l else [order]), dtype, dtype)

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        m, n = x
        k = dim_min(m, n)
        order: list[Shape] = [] if self.permute_l else [(m,)] if self.p_indices else [(m, m)]
        return [*order, (m, k), (k, n)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        x = inputs[0].astype(node.outputs[-1].type.dtype, copy=False)
        factors, pivots = factored(x)
        k = len(pivots)
        low = np.tril(factors[:, :k], -1) + np.eye(len(x), k, dtype=x.dtype)
        order = exchanged(pivots, len(x), inverse=True)
        found = [low[order]] if self.permute_l else [order.astype("int32"), low]
        if not (self.permute_l or self.p_indices):
            found[0] = np.eye(len(x), dtype=node.outputs[0].type.dtype)[order]
        for cell, value in zip(output_storage, [*found, np.triu(factors[:k])]):
            cell[0] = value

    # ----- derivative: with L and U extended to square matrices by rows of the identity, the part
    # of inv(L) P^T dx inv(U) below the diagonal is inv(L) dL, and the rest dU inv(U)
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[*[False] * (len(node.outputs) - 2), True, True]]

    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (*_, g_low, g_up) = inputs, cotangents
        order, low, up = self._factors(x, outputs)
        if self.permute_l:
            g_low = _reordered(g_low, order)
        nothing = zeros((length(x, 0), length(x, 1)), dtype=low.type.dtype)
        g_low = set_subtensor(nothing[:, : length(low, 1)], g_low)
        g_up = set_subtensor(nothing[: length(up, 0)], g_up)
        low, up = _extended(low, up)
        g = triangle(matrix_product(adjoint(low), g_low), True, 1) + triangle(
            matrix_product(g_up, adjoint(up)), False
        )
        g = solve_triangular(low, g, lower=True, unit_diagonal=True, trans="C")
        g = adjoint(solve_triangular(up, adjoint(g), b_ndim=2))
        return [match_dtype(g[order], x)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (x,), (t,) = inputs, tangents
        order, low, up = self._factors(x, outputs)
        k = length(low, 1)
        low, up = _extended(low, up)
        t = solve_triangular(low, _reordered(t, order), lower=True, unit_diagonal=True)
        t = solve_triangular(up, t.T, trans="T").T
        t_low, t_up = (
            matrix_product(low, triangle(t, True, 1))[:, :k],
            matrix_product(triangle(t, False), up)[:k],
        )
        nothing = [] if self.permute_l else [outputs[0] * 0]
        return [*nothing, t_low[order] if self.permute_l else t_low, t_up]

    def _factors(self, x: TensorVariable, outputs: Tensors) -> Tensors:
        """The order of rows, and both triangular factors."""
        found = outputs if self.p_indices else LU(p_indices=True)(x)
        return [cast(found[0], "int64"), *found[1:]]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        dtype = node.outputs[-1].type.dtype
        m, n = b.shape(x)[-2:]
        k = dim_min(m, n)
        factors, pivots = lower_elimination(b, x, dtype)
        factors = columns_first(b, factors)
        low = _lower_triangle(b, b.slice(factors, x.ndim - 1, 0, 1, k), below=True)
        up = _lower_triangle(b, b.slice(factors, x.ndim - 2, 0, 1, k), below=False)
        order = lower_order(b, counted_from(b, pivots, 1, 0), m, inverse=True)
        if self.p_indices:
            return [b.cast(order, "int32"), low, up]
        if self.permute_l:
            shape = b.shape(low)
            places = [b.index(axis, shape) for axis in range(x.ndim)]
            places[-2] = b.broadcast_to(b.expand(order, x.ndim - 1), shape)
            return [b.gather(low, places, range(x.ndim)), up]
        shape = (*b.shape(order), m)
        columns = b.index(x.ndim - 1, shape)
        ones = b.map(lambda n, i, j: n.eq(i, j), b.expand(order, x.ndim - 1), columns)
        return [b.cast(ones, node.outputs[0].type.dtype), low, up]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return self


def _lower_triangle(b: Builder[V], x: V, below: bool) -> V:
    """The elements below the diagonal, with ones on it; else the others."""
    shape = b.shape(x)
    rows, columns = (b.index(len(shape) - k, shape) for k in (2, 1))
    if not below:
        return b.map(lambda n, x, i, j: n.select(n.le(i, j), x, n.const(0, x)), x, rows, columns)
    return b.map(
        lambda n, x, i, j: n.select(
            n.lt(j, i), x, n.select(n.eq(i, j), n.const(1, x), n.const(0, x))
        ),
        x,
        rows,
        columns,
    )


def _extended(low: TensorVariable, up: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Triangular factors as square matrices; what is added is that of the identity."""
    if low.type.shape[0] != low.type.shape[1] or low.type.shape[0] is None:
        rows = eye(length(low, 0), dtype=low.type.dtype)
        low = set_subtensor(rows[:, : length(low, 1)], low)
    if up.type.shape[0] != up.type.shape[1] or up.type.shape[0] is None:
        rows = eye(length(up, 1), dtype=up.type.dtype)
        up = set_subtensor(rows[: length(up, 0)], up)
    return low, up


def _reordered(x: TensorVariable, order: TensorVariable) -> TensorVariable:
    """The rows that ``y[order]`` takes to ``x``."""
    return set_subtensor(x[order], x)


class LUFactor(MatrixOp):
    """The factors of `LU` of a square matrix in one matrix, and the exchanges of rows.

    The factor L has no place for its diagonal of ones.  Row ``i`` was exchanged with row
    ``pivots[i]`` (int32), one after the other.
    """

    # ----- class and static shape
    __props__ = ("overwrite_a",)
    gufunc_signature = "(m,m)->(m,m),(m)"

    def __init__(self, *, overwrite_a: bool = False) -> None:
        self.overwrite_a = bool(overwrite_a)
        self.destroy_map = {0: [0]} if overwrite_a else {}

    def make_node(self, x: TensorLike) -> Apply:
        x = self.matrix(x)
        return typed_node(self, [x], inexact(x.type.dtype), "int32")

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        n = square(s, x)
        return [(n, n), (n,)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        x = inputs[0].astype(node.outputs[0].type.dtype, copy=False)
        output_storage[0][0], output_storage[1][0] = factored(x)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False]]

    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (factors, pivots), (g, _) = inputs, outputs, cotangents
        low = matrix_product(adjoint(unit_lower(factors)), triangle(g, True, 1))
        g = triangle(low, True, 1) + triangle(
            matrix_product(triangle(g, False), adjoint(triangle(factors, False))), False
        )
        g = solve_triangular(factors, g, lower=True, unit_diagonal=True, trans="C")
        g = adjoint(solve_triangular(factors, adjoint(g), b_ndim=2))
        return [match_dtype(g[pivot_to_permutation(pivots)], x)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (factors, pivots), (t,) = outputs, tangents
        t = t[pivot_to_permutation(pivots, inverse=True)]
        t = solve_triangular(factors, t, lower=True, unit_diagonal=True)
        t = solve_triangular(factors, t.T, trans="T").T
        low = matrix_product(unit_lower(factors), triangle(t, True, 1))
        up = matrix_product(triangle(t, False), triangle(factors, False))
        return [match_dtype(low + up, factors), pivots * 0]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        factors, pivots = lower_elimination(b, x, node.outputs[0].type.dtype)
        return [columns_first(b, factors), counted_from(b, pivots, 1, 0)]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return LUFactor(overwrite_a=True) if allowed_inplace_inputs else self


def unit_lower(factors: TensorVariable) -> TensorVariable:
    """The lower factor with its diagonal of ones, from both in one matrix."""
    return triangle(factors, True, 1) + eye(length(factors, 0), dtype=factors.type.dtype)


class PivotToPermutations(MatrixOp):
    """The order of rows that exchanges give: ``x[order]`` is ``x`` after them.

    ``inverse``: this order; else its inverse, the order that undoes them.
    """

    # ----- class and static shape
    __props__ = ("inverse",)
    gufunc_signature = "(m)->(m)"
    not_differentiable = "its result is integers"

    def __init__(self, inverse: bool = True) -> None:
        self.inverse = bool(inverse)

    def make_node(self, pivots: TensorLike) -> Apply:
        return typed_node(self, [as_pivots(pivots)], "int64")

    def shape_rule(self, s: ShapeContext, pivots: Shape) -> list[Shape]:
        return [pivots]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        (pivots,) = inputs
        output_storage[0][0] = exchanged(pivots, len(pivots), inverse=not self.inverse)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], pivots: V) -> list[V]:
        return [lower_order(b, pivots, b.length(pivots, -1), inverse=not self.inverse)]


def as_pivots(pivots: TensorLike) -> TensorVariable:
    """A vector of exchanges as int32; TypeError if it is none."""
    pivots = as_tensor_variable(pivots)
    if pivots.type.ndim != 1 or not dtypes.is_discrete(pivots.type.dtype):
        raise TypeError(f"Pivots are a vector of integers; {pivots} has type {pivots.type}.")
    return cast(pivots, "int32")


def exchanged(pivots: np.ndarray, n: int, inverse: bool) -> np.ndarray:
    """The order of ``n`` rows after exchanges, or its inverse; ValueError for a wrong pivot."""
    require_pivots(pivots, n)
    order = np.arange(n)
    for i in reversed(range(len(pivots))) if inverse else range(len(pivots)):
        order[[i, pivots[i]]] = order[[pivots[i], i]]
    return order


# ----- user functions
@ignores("check_finite", "overwrite_a")
def lu(
    a: TensorLike,
    permute_l: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
    overwrite_a: bool = False,
) -> tuple[TensorVariable, ...]:
    """The factors ``P, L, U`` of matrices ``a = P L U``, the last two axes of ``a``.

    Parameters
    ----------
    a : tensor with at least two axes, of shape (..., m, n)
    permute_l : whether to return ``P L`` and ``U`` only
    p_indices : whether to return ``P`` as a vector ``p`` of int32 with ``a = L[p] @ U``
    check_finite, overwrite_a : ignored

    ``P`` is a permutation of shape (m, m), ``L`` is lower triangular with ones on the diagonal, of
    shape (m, k), and ``U`` is upper triangular, of shape (k, n), with ``k = min(m, n)``.  Of a
    matrix that contains NaN or infinity, the factors contain NaN.  ValueError if both ``permute_l``
    and ``p_indices`` are set.

    >>> import phintys.tensor as pt
    >>> p, l, u = pt.linalg.lu([[1.0, 2.0], [4.0, 4.0]], p_indices=True)
    >>> p.eval(), l.eval(), u.eval()
    (array([1, 0], dtype=int32), array([[1.  , 0.  ],
           [0.25, 1.  ]]), array([[4., 4.],
           [0., 1.]]))
    """
    return tuple(Blockwise(LU(permute_l=permute_l, p_indices=p_indices))(a))


@ignores("check_finite", "overwrite_a")
def lu_factor(
    a: TensorLike, *, check_finite: bool = True, overwrite_a: bool = False
) -> tuple[TensorVariable, TensorVariable]:
    """Both triangular factors of square matrices in one matrix each, and the exchanges of rows.

    Parameters
    ----------
    a : tensor with at least two axes
    check_finite, overwrite_a : ignored

    `lu_solve` takes the result.  The upper factor is the upper triangle; below it is the lower
    factor, whose diagonal of ones is not stored.  Row ``i`` was exchanged with row ``pivots[i]``
    (int32).  A singular matrix has factors too, with a zero on the diagonal.  ShapeError if the
    matrices are not square.

    >>> import phintys.tensor as pt
    >>> factors, pivots = pt.linalg.lu_factor([[1.0, 2.0], [4.0, 4.0]])
    >>> factors.eval(), pivots.eval()
    (array([[4.  , 4.  ],
           [0.25, 1.  ]]), array([1, 1], dtype=int32))
    """
    factors, pivots = Blockwise(LUFactor())(a)
    return factors, pivots


def pivot_to_permutation(p: TensorLike, inverse: bool = False) -> TensorVariable:
    """The order of rows (int64) that undoes the exchanges ``p`` of `lu_factor`.

    ``inverse``: the order that they give, so that ``a[order]`` is the product of the factors.
    ValueError at run time if a number in ``p`` is no row.

    >>> import phintys.tensor as pt
    >>> pt.linalg.pivot_to_permutation([2, 2, 2]).eval()
    array([1, 2, 0])
    """
    return Blockwise(PivotToPermutations(inverse=inverse))(p)
