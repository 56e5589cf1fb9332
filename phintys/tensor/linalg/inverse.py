"""Inverses of matrices and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.op import Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.axes import moveaxis
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import match_dtype
from phintys.tensor.linalg.elimination import (
    SINGULAR,
    factored,
    is_singular,
    lower_inverse,
    substituted,
)
from phintys.tensor.linalg.matrix_op import MatrixOp, adjoint, inexact, square
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.shape import shape_tuple
from phintys.tensor.symbolic import TensorSymbolicOp
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["inv", "matrix_inverse", "tensorinv", "tensorsolve"]


class MatrixInverse(MatrixOp):
    """The inverse of a square matrix; LinAlgError if it is singular, NaN if it is not finite."""

    # ----- class and static shape
    __props__ = ()
    gufunc_signature = "(m,m)->(m,m)"

    def make_node(self, x: TensorLike) -> Apply:
        x = self.matrix(x)
        return typed_node(self, [x], inexact(x.type.dtype))

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        n = square(s, x)
        return [(n, n)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        x = inputs[0].astype(node.outputs[0].type.dtype, copy=False)
        factors, pivots = factored(x)
        if is_singular(factors):
            raise np.linalg.LinAlgError(SINGULAR)
        output_storage[0][0] = substituted(factors, pivots, np.eye(len(x), dtype=x.dtype))

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (inverse,), (g,) = inputs, outputs, cotangents
        inverse = adjoint(inverse)
        return [match_dtype(-matrix_product(inverse, matrix_product(g, inverse)), x)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (inverse,), (t,) = outputs, tangents
        return [-matrix_product(inverse, matrix_product(t, inverse))]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        return [lower_inverse(b, x, node.outputs[0].type.dtype)]


# ----- user functions
def inv(a: TensorLike) -> TensorVariable:
    """The inverses of square matrices, the last two axes of ``a``.

    LinAlgError at run time if a matrix is singular; the inverse is NaN if one contains NaN or
    infinity.  ShapeError if the matrices are not square.

    >>> import phintys.tensor as pt
    >>> pt.linalg.inv([[2.0, 1.0], [1.0, 1.0]]).eval()
    array([[ 1., -1.],
           [-1.,  2.]])
    """
    return Blockwise(MatrixInverse())(a)


matrix_inverse = inv


def tensorinv(a: TensorLike, ind: int = 2) -> TensorVariable:
    """The inverse of a tensor for ``tensordot`` over its first ``ind`` axes.

    Parameters
    ----------
    a : tensor whose first ``ind`` axes have as many elements as the others
    ind : how many axes; the result has the others first

    LinAlgError at run time if the tensor is singular, ShapeError if the numbers of elements differ,
    ValueError if ``ind`` is not positive.

    >>> import phintys.tensor as pt
    >>> x = pt.eye(6).reshape((6, 2, 3))
    >>> pt.linalg.tensorinv(x, ind=1).eval().shape
    (2, 3, 6)
    """
    a = as_tensor_variable(a)
    if not 0 < ind <= a.type.ndim:
        raise ValueError(f"ind is from 1 to the number of axes, {a.type.ndim}, not {ind}.")
    lengths = shape_tuple(a)
    matrix = a.reshape((_product(lengths[:ind]), _product(lengths[ind:])))
    return inv(matrix).reshape((*lengths[ind:], *lengths[:ind]))


def tensorsolve(a: TensorLike, b: TensorLike, axes: Sequence[int] | None = None) -> TensorVariable:
    """The solution ``x`` of ``tensordot(a, x, x.ndim) = b``.

    Parameters
    ----------
    a : tensor whose first axes are those of ``b``; the others, with as many elements, those of
        ``x``
    b : tensor
    axes : axes of ``a`` to move behind the others before

    The solution is NaN if the tensor is singular.  ShapeError if the numbers of elements differ.

    >>> import phintys.tensor as pt
    >>> x = pt.linalg.tensorsolve(2 * pt.eye(6).reshape((6, 2, 3)), pt.ones(6))
    >>> x.eval()
    array([[0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5]])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if axes is not None:
        a = moveaxis(a, tuple(axes), tuple(range(a.type.ndim - len(axes), a.type.ndim)))
    lengths = shape_tuple(a)[b.type.ndim :]
    matrix = a.reshape((_product(shape_tuple(a)[: b.type.ndim]), _product(lengths)))
    return Solve(b_ndim=1)(matrix, b.ravel()).reshape(lengths)


class TensorInv(TensorSymbolicOp):
    """The op of `tensorinv`: its graph is that of the function.

    >>> import phintys.tensor as pt
    >>> TensorInv(ind=1)(2 * pt.eye(2)).eval()
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    __props__ = ("ind",)

    def __init__(self, ind: int = 2, **kwargs: Any) -> None:
        self.ind = int(ind)
        super().__init__(**kwargs)

    def build_inner_graph(self, *inputs: Any) -> list[Variable]:
        (a,) = inputs
        return [tensorinv(a, self.ind)]


class TensorSolve(TensorSymbolicOp):
    """The op of `tensorsolve`: its graph is that of the function.

    >>> import phintys.tensor as pt
    >>> TensorSolve()(2 * pt.eye(2), [1.0, 3.0]).eval()
    array([0.5, 1.5])
    """

    __props__ = ("axes",)

    def __init__(self, axes: Sequence[int] | None = None, **kwargs: Any) -> None:
        self.axes = None if axes is None else tuple(axes)
        super().__init__(**kwargs)

    def build_inner_graph(self, *inputs: Any) -> list[Variable]:
        a, b = inputs
        return [tensorsolve(a, b, self.axes)]


def _product(lengths: Sequence[TensorVariable]) -> TensorVariable:
    return reduce(mul, lengths, as_tensor_variable(1))
