"""The pullback of the Cholesky decomposition, computed block by block."""

from __future__ import annotations

import numpy as np

from phintys.gradient.forward import forward_sweep
from phintys.gradient.reverse import backpropagate
from phintys.graph.builder import Builder, V
from phintys.graph.op import Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, routine
from phintys.routines.libraries import (
    LARGEST_INT,
    LEFT,
    NOT_UNIT,
    PLAIN,
    RIGHT,
    TRANSPOSED,
    UPPER,
    gemm,
    symm,
    trsm,
)
from phintys.scalar.dtypes import is_complex
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.dot import matrix_product
from phintys.tensor.linalg.matrix_op import (
    MatrixOp,
    adjoint,
    diagonal_part,
    halved,
    inexact,
    quiet,
    square,
    triangle,
)
from phintys.tensor.linalg.solvers.triangular import solve_triangular
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

#: rows of a block, and the largest matrix that is one block
BLOCK = 32


def cholesky_pullback(factor: TensorVariable, g: TensorVariable) -> TensorVariable:
    """The cotangent of a positive definite matrix from that of its lower factor, both triangular.

    Only the lower triangles of ``factor`` and ``g`` are read.
    """
    if is_complex(factor.type.dtype):
        return formula(factor, g)
    return Blockwise(CholeskyPullback())(factor, g)


def formula(factor: TensorVariable, g: TensorVariable) -> TensorVariable:
    """The same as a graph of products and solutions (I. Murray, "Differentiation of the Cholesky
    decomposition", 2016, section 3.2)."""
    s = halved(matrix_product(adjoint(triangle(factor, True)), triangle(g, True)))
    for _ in range(2):  # s becomes inv(L)^H s inv(L)
        s = adjoint(solve_triangular(factor, s, lower=True, trans="C"))
    return triangle(s + adjoint(s), True, 1) + diagonal_part(s)


class CholeskyPullback(MatrixOp):
    """`cholesky_pullback` of real matrices, in a sixth of the operations of its formula."""

    # ----- class and static shape
    __props__ = ()
    gufunc_signature = "(m,m),(m,m)->(m,m)"

    def make_node(self, factor: TensorLike, g: TensorLike) -> Apply:
        factor, g = self.matrix(factor), self.matrix(g)
        dtype = inexact(factor.type.dtype, g.type.dtype)
        if is_complex(dtype):
            raise TypeError(f"{self} takes real matrices, not {factor.type} and {g.type}.")
        return typed_node(self, [factor, g], dtype)

    def shape_rule(self, s: ShapeContext, factor: Shape, g: Shape) -> list[Shape]:
        n = s.equal(square(s, factor), square(s, g), "The shapes of the matrices differ")
        return [(n, n)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        from scipy.linalg import get_blas_funcs

        check_shapes(node, inputs)
        dtype = node.outputs[0].type.dtype
        factor, g = (np.tril(x).astype(dtype, copy=False) for x in inputs)
        with quiet():
            s = np.tril(factor.T @ g)
            np.fill_diagonal(s, 0.5 * s.diagonal())
            if s.size:
                (trsm,) = get_blas_funcs(["trsm"], [factor])
                s = trsm(1.0, factor, trsm(1.0, factor, s, lower=1, trans_a=1), lower=1, side=1)
            found = np.tril(s + s.T)
        np.fill_diagonal(found, s.diagonal())
        output_storage[0][0] = found

    # ----- derivatives: those of the formula
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        found = backpropagate({formula(*inputs): cotangents[0]}, inputs)
        return [found[x] for x in inputs]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        return list(forward_sweep([formula(*inputs)], dict(zip(inputs, tangents))))

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], factor: V, g: V) -> list[V]:
        dtype = node.outputs[0].type.dtype
        factor, g = b.cast(factor, dtype), b.cast(g, dtype)
        n = b.length(g, -1)
        batch = b.broadcast_shape([b.shape(factor)[:-2], b.shape(g)[:-2]])
        factor, g = (b.broadcast_to(x, (*batch, n, n)) for x in (factor, g))
        return b.external(
            differentiate_factor, dtype, (n,), [factor], [g], batch=batch, work=n * n * n
        )


@routine("float32 float64", (np.linalg.LinAlgError, "The matrices are too large for BLAS"))
def differentiate_factor(n: int, a: Array, g: Array) -> int:
    """Replace the cotangent ``g`` of a factor ``a`` by that of the matrix, block by block.

    The blocked algorithm of I. Murray, 2016, section 4.2.  To BLAS, the columns of a matrix are its
    rows: it computes the transposes of the products in the comments.
    """
    if n > LARGEST_INT:
        return 1
    stop = n
    while stop > 0:
        size = BLOCK if stop > BLOCK else stop
        k = stop - size
        below = n - stop
        d = k * n + k  # the block; the rows before it are r, those below it b, its columns there c
        r = k * n
        b = stop * n
        c = stop * n + k
        if below > 0:
            # c <- c inv(d);  b <- b - c r;  r <- r - c^T b;  d <- d - c^T c
            trsm(LEFT, UPPER, PLAIN, NOT_UNIT, size, below, 1.0, a[d:], n, g[c:], n)
            if k > 0:
                gemm(PLAIN, PLAIN, k, below, size, -1.0, a[r:], n, g[c:], n, 1.0, g[b:], n)
                gemm(PLAIN, TRANSPOSED, k, size, below, -1.0, a[b:], n, g[c:], n, 1.0, g[r:], n)
            gemm(PLAIN, TRANSPOSED, size, size, below, -1.0, a[c:], n, g[c:], n, 1.0, g[d:], n)
        _block(n, size, a[d:], g[d:])
        if k > 0:  # r <- r - d r, where d is symmetric
            symm(RIGHT, UPPER, k, size, -1.0, g[d:], n, a[r:], n, 1.0, g[r:], n)
        stop = k
    for i in range(n):
        g[i * n + i] = 0.5 * g[i * n + i]
        for k in range(i * n + i + 1, i * n + n):
            g[k] = 0.0
    return 0


def _block(n: int, size: int, a: Array, g: Array) -> None:
    """The same for one block, row by row from the last, with twice the diagonal."""
    for s in range(size):
        j = size - 1 - s
        row = a[j * n :]
        own = g[j * n :]
        pivot = row[j]
        x = own[j]
        for i in range(j + 1, size):
            y = g[i * n + j] / pivot
            x -= a[i * n + j] * y
            g[i * n + j] = y
        x = x / pivot
        own[j] = x
        for k in range(j):
            own[k] -= x * row[k]
        for i in range(j + 1, size):
            other = a[i * n :]
            lower = g[i * n :]
            y = lower[j]
            for k in range(j):
                own[k] -= y * other[k]
                lower[k] -= y * row[k]
