"""Sorting: `sort` and `argsort`."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from phintys.dims import Dim
from phintys.errors import MethodNotDefined
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, Longs, routine
from phintys.routines.libraries import argquicksort, argstablesort, quicksort, stablesort
from phintys.tensor.aliases import Arrays, Kind, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.index import take_along_axis
from phintys.tensor.reshape import flatten
from phintys.tensor.shape import normalize_axis_tuple
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["argsort", "sort"]

KINDS = get_args(Kind)


class _Order(Op):
    """Base class of `SortOp` and `ArgSortOp`.

    Parameters
    ----------
    kind
        NumPy's algorithm; only ``"stable"`` and ``"mergesort"`` keep the order of equal elements
    axis
        along which to sort, not negative
    """

    # ----- class and static shape
    __props__ = ("kind", "axis")
    handles_missing = False

    def __init__(self, kind: Kind, axis: int) -> None:
        if kind not in KINDS:
            raise ValueError(f"There is no way of sorting called {kind!r}; choose from {KINDS}.")
        self.kind: Kind = kind
        self.axis = int(axis)

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        normalize_axis_tuple(self.axis, x.type.ndim)
        return typed_node(self, [x], self.result_dtype(x.type.dtype))

    def result_dtype(self, dtype: str) -> str:
        return dtype

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        return [x]

    # ----- lowering: NumPy's own functions, over the items of the last axis
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (x,) = inputs
        if self.kind == "heapsort":
            return NotImplemented
        last = [*(k for k in range(x.ndim) if k != self.axis), self.axis]
        *batch, n = b.shape(rows := b.permute(x, last) if self.axis != x.ndim - 1 else x)
        arguments = {"batch": batch, "work": 16 * n}
        (found,) = self.lower_rows(b, rows, n, arguments)
        return found if rows is x else b.permute(found, [last.index(k) for k in range(x.ndim)])

    def lower_rows(self, b: Builder[V], x: V, n: Dim, arguments: dict[str, Any]) -> list[V]:
        """The one result, in a list, for an array whose last axis is to be sorted."""
        raise MethodNotDefined(f"{type(self).__name__} does not say how it is lowered.")

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        batch = x.type.ndim - node.inputs[0].type.ndim
        return type(self)(self.kind, self.axis + batch).make_node(x)


class ArgSortOp(_Order):
    """The positions (int64) that sort the elements along an axis."""

    not_differentiable = "its results are integers"

    def result_dtype(self, dtype: str) -> str:
        return "int64"

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        found = np.argsort(inputs[0], axis=self.axis, kind=self.kind)
        output_storage[0][0] = found.astype("int64", copy=False)

    # ----- lowering
    def lower_rows(self, b: Builder[V], x: V, n: Dim, arguments: dict[str, Any]) -> list[V]:
        """The positions for an array whose last axis is to be sorted."""
        order = sorted_positions if self.kind == "quicksort" else stable_positions
        return b.external(order, x.dtype, (n,), [x], writes=[("int64", (n,))], **arguments)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]


class SortOp(_Order):
    """The elements along an axis in order; NaN comes last."""

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        output_storage[0][0] = np.sort(inputs[0], axis=self.axis, kind=self.kind)

    # ----- lowering
    def lower_rows(self, b: Builder[V], x: V, n: Dim, arguments: dict[str, Any]) -> list[V]:
        """An array whose last axis is sorted."""
        order = in_order if self.kind == "quicksort" else in_stable_order
        return b.external(order, x.dtype, (n,), updates=[x], **arguments)

    # ----- derivative: through the permutation, whose inverse is its own argsort
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (g,) = inputs, cotangents
        positions = ArgSortOp(self.kind, self.axis)
        return [take_along_axis(g, positions(positions(x)), self.axis)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (x,), (t,) = inputs, tangents
        return [take_along_axis(t, ArgSortOp(self.kind, self.axis)(x), self.axis)]


_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
_sorts = routine(f"{_DTYPES} complex64 complex128", (MemoryError, "There is no memory to sort in."))


@_sorts
def in_order(n: int, x: Array) -> int:
    """Sort an array."""
    return quicksort(x, n)


@_sorts
def in_stable_order(n: int, x: Array) -> int:
    """Sort an array; equal elements, such as 0.0 and -0.0, keep their order."""
    return stablesort(x, n)


@_sorts
def sorted_positions(n: int, x: Array, order: Longs) -> int:
    """Write the positions of the elements in order."""
    for i in range(n):
        order[i] = i
    return argquicksort(x, order, n)


@_sorts
def stable_positions(n: int, x: Array, order: Longs) -> int:
    """Write the positions of the elements in order; equal elements keep theirs."""
    for i in range(n):
        order[i] = i
    return argstablesort(x, order, n)


def _ordered(
    op: type[_Order],
    a: TensorLike,
    axis: int | None,
    kind: Kind | None,
    order: None,
    stable: bool | None,
) -> TensorVariable:
    if order is not None:
        raise ValueError(f"order={order!r} names fields of structured arrays; tensors have none.")
    if kind is not None and stable is not None:
        raise ValueError("Give kind or stable, not both.")
    a = as_tensor_variable(a)
    if axis is None:
        a, axis = flatten(a), 0
    (axis,) = normalize_axis_tuple(axis, a.type.ndim)
    return op(kind or ("stable" if stable else "quicksort"), axis)(a)


def sort(
    a: TensorLike,
    axis: int | None = -1,
    kind: Kind | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
) -> TensorVariable:
    """The elements along an axis in ascending order, NaN last.

    Parameters
    ----------
    a : tensor with at least one axis
    axis : along which to sort; None flattens
    kind, stable : the algorithm, as for ``numpy.sort``
    order : None; it is here for the order of the parameters, which is NumPy's

    ValueError if the axis is out of range, or the kind unknown.

    >>> import phintys.tensor as pt
    >>> pt.sort([3.0, 1.0, 2.0]).eval()
    array([1., 2., 3.])
    """
    return _ordered(SortOp, a, axis, kind, order, stable)


def argsort(
    a: TensorLike,
    axis: int | None = -1,
    kind: Kind | None = None,
    order: None = None,
    stable: bool | None = None,
) -> TensorVariable:
    """The positions (int64) that sort the elements along an axis in ascending order; see `sort`.

    >>> import phintys.tensor as pt
    >>> pt.argsort([3.0, 1.0, 2.0]).eval()
    array([1, 2, 0])
    """
    return _ordered(ArgSortOp, a, axis, kind, order, stable)
