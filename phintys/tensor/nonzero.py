"""Positions of the elements that are not zero."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np

from phintys.errors import RaggedError
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.counted import lower_true_positions
from phintys.tensor.join import stack
from phintys.tensor.reshape import flatten
from phintys.tensor.type import TensorType, typed_node
from phintys.tensor.variable import TensorVariable

__all__ = ["flatnonzero", "nonzero"]


class Nonzero(Op):
    """Positions of nonzero elements in C order: one int64 vector per axis.

    Their number is only known at run time.
    """

    # ----- class and static shape
    __props__ = ()
    not_differentiable = "its results are integers"

    def make_node(self, a: TensorLike) -> Apply:
        a = as_tensor_variable(a)
        if a.type.ndim == 0:
            raise ValueError(f"Nonzero takes tensors with at least one axis; {a} is 0-d.")
        return Apply(
            self, [a], [TensorType("int64", (None,)).make_variable() for _ in range(a.type.ndim)]
        )

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        for cell, positions in zip(output_storage, np.nonzero(inputs[0])):
            cell[0] = positions.astype("int64", copy=False)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * len(node.outputs)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        raise RaggedError("The numbers of nonzero elements differ within a batch.")

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> list[V]:
        return lower_true_positions(b, b.cast(inputs[0], "bool"))


_nonzero = Nonzero()


class SomeTrue(Op):
    """A mask, checked to have a true element; ValueError if it has none.

    Rules insert it where a maximum of no elements would be an error.
    """

    # ----- class and static shape
    __props__ = ()
    view_map = {0: [0]}
    not_differentiable = "its result is a bool"
    in_python = "it raises an error that names no lengths"

    def make_node(self, mask: TensorLike) -> Apply:
        mask = as_tensor_variable(mask)
        if mask.type.dtype != "bool":
            raise TypeError(f"A mask has dtype bool; {mask} has type {mask.type}.")
        return typed_node(self, [mask], "bool")

    def shape_rule(self, s: ShapeContext, mask: Shape) -> list[Shape]:
        return [mask]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        if not inputs[0].any():
            raise ValueError("No result for an empty axis: the mask selects no element.")
        output_storage[0][0] = inputs[0]

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]


some_true = SomeTrue()


@overload
def nonzero(a: TensorLike, return_matrix: Literal[False] = False) -> tuple[TensorVariable, ...]: ...
@overload
def nonzero(a: TensorLike, return_matrix: Literal[True]) -> TensorVariable: ...
def nonzero(
    a: TensorLike, return_matrix: bool = False
) -> tuple[TensorVariable, ...] | TensorVariable:
    """The positions of the elements that are not zero, as a tuple of one int64 vector per axis.

    ``return_matrix``: as rows of one matrix.  ValueError for 0-d tensors.

    >>> import phintys.tensor as pt
    >>> rows, columns = pt.nonzero(pt.as_tensor([[0, 3], [4, 0]]))
    >>> columns.eval()
    array([1, 0])
    """
    positions = tuple(_nonzero(a, return_list=True))
    return stack(positions) if return_matrix else positions


def flatnonzero(a: TensorLike) -> TensorVariable:
    """The positions of the elements that are not zero in the flattened tensor.

    >>> import phintys.tensor as pt
    >>> pt.flatnonzero(pt.as_tensor([[0, 3], [4, 0]])).eval()
    array([1, 2])
    """
    a = as_tensor_variable(a)
    if a.type.ndim == 0:
        raise ValueError(f"flatnonzero takes tensors with at least one axis; {a} is 0-d.")
    return _nonzero(flatten(a))
