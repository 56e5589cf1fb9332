"""Permutations of the elements of rows, and their inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.graph.op import Op
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.axes import atleast_Nd
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import sum_to
from phintys.tensor.ranges import arange
from phintys.tensor.shape import length
from phintys.tensor.type import typed_node

__all__ = ["inverse_permutation", "permute_row_elements"]


class PermuteRowElements(Op):
    """The elements of each row (along the last axis) in another order.

    Inputs: the tensor and the permutations, whose other axes broadcast.

    Parameters
    ----------
    inverse
        False: ``out[i] = x[y[i]]``; True: ``out[y[i]] = x[i]``
    """

    # ----- class and static shape
    __props__ = ("inverse",)
    is_linear = True
    handles_missing = False

    def __init__(self, inverse: bool) -> None:
        self.inverse = bool(inverse)

    def make_node(self, x: Any, y: Any) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        if y.type.dtype not in dtypes.INTEGER:
            raise TypeError(f"Permutations are integers; {y} has dtype {y.type.dtype}.")
        ndim = max(x.type.ndim, y.type.ndim)
        if min(x.type.ndim, y.type.ndim) == 0:
            raise ValueError(f"{self} permutes rows; {x} is {x.type}, {y} is {y.type}.")
        return typed_node(self, [atleast_Nd(x, n=ndim), atleast_Nd(y, n=ndim)], x.type.dtype)

    def shape_rule(self, s: ShapeContext, x: Shape, y: Shape) -> list[Shape]:
        n = s.equal(x[-1], y[-1], "A permutation has not the length of the rows")
        return [(*s.broadcast([x[:-1], y[:-1]]), n)]

    # ----- perform
    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray], output_storage: list[list[Any]]
    ) -> None:
        check_shapes(node, inputs)
        x, y = np.broadcast_arrays(*inputs)
        y = y.astype("int64", copy=False)
        if self.inverse:
            x = x.copy()
            np.put_along_axis(x, y, np.broadcast_to(inputs[0], x.shape), -1)
            output_storage[0][0] = x
        else:
            output_storage[0][0] = np.take_along_axis(x, y, -1)

    # ----- derivative: the inverse permutation
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable | None]:
        (x, y), (g,) = inputs, cotangents
        return [sum_to(PermuteRowElements(not self.inverse)(g, y), x), None]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        return self.make_node(*batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        x, y = inputs
        (shape,) = b.result_shapes(node, x, y)
        x, last = b.broadcast_to(x, shape), len(shape) - 1
        axes = range(len(shape))
        places = [y if k == last else b.index(k, shape) for k in axes]
        if self.inverse:
            return b.scatter(b.contiguous(x), places, axes, x, "set")
        return b.gather(x, places, axes)

    def __str__(self) -> str:
        return f"PermuteRowElements{{inverse={self.inverse}}}"


def permute_row_elements(x: Any, y: Any, inverse: bool = False) -> Any:
    """The elements of each row (along the last axis) in another order.

    Parameters
    ----------
    x : tensor with at least one axis
    y : integer tensor, each row a permutation of ``0 ... n - 1`` (not checked, but positions out of
        range are an IndexError); the other axes broadcast against those of ``x``
    inverse : False: ``out[i] = x[y[i]]``; True: ``out[y[i]] = x[i]``

    >>> import phintys.tensor as pt
    >>> pt.permute_row_elements(pt.as_tensor([10, 20, 30]), [2, 0, 1]).eval()
    array([30, 10, 20])
    >>> pt.permute_row_elements(pt.as_tensor([10, 20, 30]), [2, 0, 1], inverse=True).eval()
    array([20, 30, 10])
    """
    return PermuteRowElements(inverse)(x, y)


def inverse_permutation(perm: Any) -> Any:
    """The inverse of each permutation along the last axis, in its dtype.

    >>> import phintys.tensor as pt
    >>> pt.inverse_permutation(pt.as_tensor([2, 0, 1])).eval()
    array([1, 2, 0])
    """
    perm = as_tensor_variable(perm)
    numbers = arange(length(perm, perm.type.ndim - 1), dtype=perm.type.dtype)
    return permute_row_elements(numbers, perm, inverse=True)
