"""The derivative of the determinant, which is the matrix of cofactors.

It is ``det(x) inv(x)^T`` where ``x`` has an inverse, and exists where there is none, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.op import Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.diagonal import diagonal
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import cast, conjugate, dimshuffle, functions, match_dtype
from phintys.tensor.linalg.decomposition.lu import LUFactor
from phintys.tensor.linalg.decomposition.svd import SVD
from phintys.tensor.linalg.elimination import cofactors, lower_cofactors
from phintys.tensor.linalg.matrix_op import MatrixOp, adjoint, inexact, square
from phintys.tensor.ranges import arange, eye
from phintys.tensor.reduce import prod
from phintys.tensor.shape import length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

Tensor = TensorVariable


class SingularCofactors(MatrixOp):
    """The matrix of cofactors of a square matrix if the second input is True, else zeros.

    The cofactors are those of the matrix, also if it is regular.
    """

    # ----- class and static shape
    __props__ = ()
    gufunc_signature = "(m,m),()->(m,m)"

    def make_node(self, x: TensorLike, wanted: TensorLike) -> Apply:
        x, wanted = self.matrix(x), as_tensor_variable(wanted)
        if wanted.type.dtype != "bool" or wanted.type.ndim:
            raise TypeError(f"{self} takes a matrix and a bool, not {wanted} of {wanted.type}.")
        return typed_node(self, [x, wanted], inexact(x.type.dtype))

    def shape_rule(self, s: ShapeContext, x: Shape, wanted: Shape) -> list[Shape]:
        n = square(s, x)
        return [(n, n)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        x = inputs[0].astype(node.outputs[0].type.dtype)
        output_storage[0][0] = cofactors(x) if inputs[1] else np.zeros_like(x)

    # ----- derivatives, in the basis of singular vectors, in which the matrix is diagonal
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        (x, wanted), (g,) = inputs, cotangents
        u, s, vt = SVD()(_where(wanted, x))
        inner = matrix_product(vt, matrix_product(g.T * conjugate(_determinant(u, vt)), u))
        found = matrix_product(u, matrix_product(_moved_cofactors(s, inner), vt))
        return [match_dtype(functions.switch(wanted, found, 0), x), None]

    def pushforward(
        self, inputs: Tensors, outputs: Tensors, tangents: Sequence[Variable]
    ) -> list[Variable]:
        (x, wanted), t = inputs, tangents[0]
        assert isinstance(t, TensorVariable)
        u, s, vt = SVD()(_where(wanted, x))
        inner = matrix_product(adjoint(u), matrix_product(t, adjoint(vt))) * _determinant(u, vt)
        found = matrix_product(
            adjoint(vt), matrix_product(_moved_cofactors(s, inner), adjoint(u))
        ).T
        return [match_dtype(functions.switch(wanted, found, 0), outputs[0])]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V, wanted: V) -> list[V]:
        batch = b.broadcast_shape([b.shape(x)[:-2], b.shape(wanted)])
        x = b.broadcast_to(x, (*batch, *b.shape(x)[-2:]))
        wanted = b.broadcast_to(wanted, batch)
        return [lower_cofactors(b, x, wanted, node.outputs[0].type.dtype)]


def _where(wanted: Tensor, x: Tensor) -> Tensor:
    """The matrix if ``wanted``, else one with different singular values.

    Derivatives of singular vectors are NaN if values are equal, also with cotangents of zero.
    """
    n, dtype = length(x, 0), x.type.dtype
    return functions.switch(wanted, x, eye(n, dtype=dtype) * cast(arange(n) + 1, dtype))


def _moved_cofactors(s: Tensor, t: Tensor) -> Tensor:
    """The transposed tangent of the cofactors of ``diag(s)`` from that of the matrix.

    Row ``i`` without column ``j`` of a diagonal matrix leaves the products of all other elements.
    """
    k = arange(length(s, 0))
    rows, columns, others = dimshuffle(k, 0, "x", "x"), dimshuffle(k, 0, "x"), dimshuffle(k, "x", 0)
    left_out = functions.or_(functions.eq(rows, k), functions.eq(columns, k))
    products = prod(functions.switch(left_out, 1, s), axis=2)
    on_diagonal = functions.eq(columns, others)
    products = functions.switch(on_diagonal, 0, products)
    traces = dimshuffle(matrix_product(products, diagonal(t)), "x", 0)
    return functions.switch(on_diagonal, traces, -products * t)


def _determinant(u: Tensor, vt: Tensor) -> Tensor:
    """The determinant of the product of two matrices."""
    factors, pivots = LUFactor()(matrix_product(u, vt))
    d = diagonal(factors)
    return prod(functions.switch(functions.neq(pivots, arange(length(d, 0))), -d, d))
