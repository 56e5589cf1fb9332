"""Extraction and construction of diagonals."""

from __future__ import annotations

import numpy as np

from phintys.dims import dim_max, dim_min
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply, Variable
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.axes import moveaxis
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import zeros
from phintys.tensor.elemwise import zeros_of
from phintys.tensor.index import set_subtensor
from phintys.tensor.ranges import arange
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.shape import length, normalize_axis_tuple, shape_tuple
from phintys.tensor.static import as_length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["alloc_diag", "diag", "diagonal", "extract_diag", "trace"]


class ExtractDiag(Op):
    """The diagonal of two axes, as the last axis of the result.

    Parameters
    ----------
    offset
        0 for the main diagonal, positive above it
    axis1, axis2
        the axes of rows and columns, not negative
    view
        accepted for compatibility: the result is a view
    """

    # ----- class and static shape
    __props__ = ("offset", "axis1", "axis2", "view")
    is_linear = True
    handles_missing = False
    view_map = {0: [0]}

    def __init__(self, offset: int = 0, axis1: int = 0, axis2: int = 1, view: bool = True) -> None:
        if axis1 < 0 or axis2 < 0 or axis1 == axis2:
            raise ValueError(f"A diagonal needs two different axes, got {axis1} and {axis2}.")
        self.offset, self.view = int(offset), bool(view)
        self.axis1, self.axis2 = int(axis1), int(axis2)

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if max(self.axis1, self.axis2) >= x.type.ndim:
            raise ValueError(f"{self}: {x} has {x.type.ndim} dimensions.")
        return typed_node(self, [x], x.type.dtype)

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        rows, columns = x[self.axis1] + min(self.offset, 0), x[self.axis2] - max(self.offset, 0)
        rest = [n for i, n in enumerate(x) if i not in (self.axis1, self.axis2)]
        return [(*rest, dim_max(dim_min(rows, columns), 0))]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        output_storage[0][0] = np.diagonal(inputs[0], self.offset, self.axis1, self.axis2)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (g,) = inputs, cotangents
        last = moveaxis(zeros_of(x), (self.axis1, self.axis2), (-2, -1))
        filled = _with_diagonal(last, g, self.offset)
        return [moveaxis(filled, (-2, -1), (self.axis1, self.axis2))]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        batch = x.type.ndim - node.inputs[0].type.ndim
        return ExtractDiag(self.offset, self.axis1 + batch, self.axis2 + batch).make_node(x)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (x,) = inputs
        ((*_, count),) = b.result_shapes(node, x)
        x = b.slice(x, self.axis1, max(-self.offset, 0), 1, count)
        x = b.slice(x, self.axis2, max(self.offset, 0), 1, count)
        return b.diagonal(x, self.axis1, self.axis2)


def _with_diagonal(x: TensorVariable, diag: TensorVariable, offset: int) -> TensorVariable:
    """``x`` with the diagonal of its last two axes replaced."""
    index = arange(length(diag, diag.type.ndim - 1))
    return set_subtensor(x[..., index + max(-offset, 0), index + max(offset, 0)], diag)


def diagonal(a: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """The diagonal of two axes, as the last axis of the result.

    >>> import phintys.tensor as pt
    >>> pt.diagonal([[1.0, 2.0], [3.0, 4.0]]).eval()
    array([1., 4.])
    """
    return _diagonal(a, offset, axis1, axis2, "diagonal")


def _diagonal(a: TensorLike, offset: int, axis1: int, axis2: int, function: str) -> TensorVariable:
    """`diagonal`; errors name the function that asks for it."""
    a = as_tensor_variable(a)
    if a.type.ndim < 2:
        raise ValueError(f"{function} takes at least two axes; {a} has type {a.type}.")
    axis1, axis2 = normalize_axis_tuple((axis1, axis2), a.type.ndim)
    return ExtractDiag(offset, axis1, axis2)(a)


def extract_diag(x: TensorLike) -> TensorVariable:
    """The main diagonal of a matrix."""
    return diagonal(x)


def trace(a: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """The sum of the diagonal."""
    return sum_over(_diagonal(a, offset, axis1, axis2, "trace"), axis=-1)


def alloc_diag(diag: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """Square matrices with a diagonal (the last axis of ``diag``), and 0 elsewhere.

    ``axis1`` and ``axis2`` are the axes of the rows and columns of the result.

    >>> import phintys.tensor as pt
    >>> pt.alloc_diag([1.0, 2.0], offset=1).eval()
    array([[0., 1., 0.],
           [0., 0., 2.],
           [0., 0., 0.]])
    """
    diag = as_tensor_variable(diag)
    if diag.type.ndim < 1:
        raise ValueError(f"A diagonal is a vector; {diag} is 0-d.")
    *batch, n = shape_tuple(diag)
    size = n if offset == 0 else n + as_length(abs(offset))
    made = _with_diagonal(zeros((*batch, size, size), diag.type.dtype), diag, offset)
    return moveaxis(made, (-2, -1), (axis1, axis2))


def diag(v: TensorLike, k: int = 0) -> TensorVariable:
    """The diagonal of a matrix, or the matrix with a vector as diagonal; ValueError otherwise."""
    v = as_tensor_variable(v)
    if v.type.ndim == 1:
        return alloc_diag(v, k)
    if v.type.ndim == 2:
        return diagonal(v, k)
    raise ValueError(f"diag takes a vector or a matrix; {v} has {v.type.ndim} dimensions.")
