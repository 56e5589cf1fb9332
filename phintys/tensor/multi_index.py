"""Conversion between positions in a flattened array and along its axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

import numpy as np

from phintys.dims import dim_max
from phintys.dims import product as dim_product
from phintys.errors import RaggedError
from phintys.graph.op import Op
from phintys.graph.shapes import Shape, ShapeContext, check_lengths, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.axes import atleast_Nd
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast
from phintys.tensor.shape import lengths_vector
from phintys.tensor.static import get_vector_length, shape_entries
from phintys.tensor.type import typed_node

__all__ = ["ravel_multi_index", "unravel_index"]

Mode = Literal["raise", "wrap", "clip"]
Order = Literal["C", "F"]


class _Positions(Op):
    """Base class of `RavelMultiIndex` and `UnravelIndex`.  Their last input is the shape."""

    not_differentiable = "its results are integers"

    order: Order

    def set_order(self, order: Order) -> None:
        if order not in ("C", "F"):
            raise ValueError(f"The order of axes is 'C' or 'F', not {order!r}.")
        self.order = order

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * len(node.outputs) for _ in node.inputs]

    def innermost_first(self, ndim: int) -> list[int]:
        """The axes, the one along which positions are adjacent first."""
        return list(range(ndim)) if self.order == "F" else list(reversed(range(ndim)))

    def batched_dims(self, dims: Any) -> Any:
        """The shape in a batch, which must be the same for all items."""
        if dims.type.ndim != 1:
            raise RaggedError(f"The shape of {self} cannot differ within a batch.")
        return dims


def _shape_vector(dims: Any) -> Any:
    """A shape argument as an int64 vector whose length is known."""
    if not isinstance(dims, Variable):
        dims = lengths_vector(shape_entries(dims if isinstance(dims, Sequence) else np.ravel(dims)))
    if dims.type.ndim != 1 or dims.type.dtype not in dtypes.INTEGER:
        raise TypeError(f"A shape is an integer vector; {dims} has type {dims.type}.")
    get_vector_length(dims)
    return cast(dims, "int64")


def _positions(x: Any) -> Any:
    """An argument as an int64 tensor."""
    x = as_tensor_variable(x)
    if x.type.dtype not in dtypes.INTEGER:
        raise TypeError(f"Positions are integers; {x} has dtype {x.type.dtype}.")
    return cast(x, "int64")


def _lowered_lengths(b: Any, dims: Any, ndim: int) -> Any:
    """The lengths of the axes as Dims, checked as those of an array."""
    return b.lengths([b.take(dims, 0, k) for k in range(ndim)])


def _check_positions(b: Any, i: Any, n: Any) -> None:
    """Check that positions are not negative and less than a length."""
    wrong = b.map(lambda w, i, n: w.or_(w.lt(i, w.const(0, i)), w.ge(i, n)), i, b.scalar(n))
    found = b.reduce("or", wrong, range(wrong.ndim))
    b.check(b.item(b.cast(found, "int64")), "==", 0, "a position is out of range")


# ======================================================================= RavelMultiIndex


class RavelMultiIndex(_Positions):
    """The positions (int64) in a flattened array.

    Inputs: positions along each axis, which broadcast, and the shape of the array.

    Parameters
    ----------
    mode
        how positions out of range are handled, see `ravel_multi_index`
    order
        ``"C"``: the last axis varies fastest, ``"F"``: the first one
    """

    # ----- class and static shape
    __props__ = ("mode", "order")

    def __init__(self, mode: Mode = "raise", order: Order = "C") -> None:
        if mode not in ("raise", "wrap", "clip"):
            raise ValueError(f"The mode is 'raise', 'wrap' or 'clip', not {mode!r}.")
        self.mode: Mode = mode
        self.set_order(order)

    def make_node(self, *inp: Any) -> Apply:
        *index, dims = inp
        index, dims = [_positions(i) for i in index], _shape_vector(dims)
        if get_vector_length(dims) != len(index):
            raise ValueError(f"{len(index)} axes are indexed; the shape {dims} has another rank.")
        ndim = max((i.type.ndim for i in index), default=0)
        return typed_node(self, [*(atleast_Nd(i, n=ndim) for i in index), dims], "int64")

    def shape_rule(self, s: ShapeContext, *shapes: Shape) -> list[Shape]:
        return [s.broadcast(shapes[:-1])]

    # ----- perform
    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray], output_storage: list[list[Any]]
    ) -> None:
        check_shapes(node, inputs)
        *index, dims = inputs
        lengths: list[int] = dims.tolist()
        check_lengths(lengths)
        found, stride = np.zeros(np.broadcast_shapes(*(i.shape for i in index)), "int64"), 1
        for axis in self.innermost_first(len(index)):
            found += self._in_range(index[axis], lengths[axis]) * stride
            stride *= lengths[axis]
        output_storage[0][0] = found

    def _in_range(self, i: np.ndarray, n: int) -> np.ndarray:
        if self.mode == "wrap":
            return i % max(n, 1)
        if self.mode == "clip":
            return np.clip(i, 0, max(n - 1, 0))
        if ((i < 0) | (i >= n)).any():
            raise ValueError(f"{self}: a position is out of range for an axis of length {n}.")
        return i

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        *index, dims = batched_inputs
        return self.make_node(*index, self.batched_dims(dims))

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        *index, dims = inputs
        lengths = _lowered_lengths(b, dims, len(index))
        found, stride = b.const(0, "int64"), b.scalar(1)
        for axis in self.innermost_first(len(index)):
            i, n = index[axis], lengths[axis]
            if self.mode == "raise":
                _check_positions(b, i, n)
            found = b.map(self._lowered_term, found, i, b.scalar(dim_max(n, 1)), stride)
            stride = b.map(lambda w, x, y: w.mul(x, y), stride, b.scalar(n))
        return found

    def _lowered_term(self, w: Any, found: Any, i: Any, n: Any, stride: Any) -> Any:
        """``found`` plus the position along an axis times its stride."""
        if self.mode == "wrap":
            i = w.imod(i, n)
        elif self.mode == "clip":
            i = w.max(w.const(0, i), w.min(i, w.sub(n, w.const(1, n))))
        return w.add(found, w.mul(i, stride))


def ravel_multi_index(
    multi_index: Sequence[Any], dims: Any, mode: Mode = "raise", order: Order = "C"
) -> Any:
    """Positions along the axes of an array as positions (int64) in the flattened array.

    Parameters
    ----------
    multi_index : a sequence of integer tensors, one for each axis; they broadcast
    dims : the shape of the array, a sequence or a vector
    mode : how positions out of range, negative ones included, are handled: ``"raise"`` raises
        ValueError at run time, ``"wrap"`` takes them modulo the length, ``"clip"`` takes the
        nearest position
    order : ``"C"``: the last axis varies fastest, ``"F"``: the first one

    Raises
    ------
    TypeError for positions that are not integers, ValueError if there is not one for each axis.

    >>> import phintys.tensor as pt
    >>> pt.ravel_multi_index(([1, 2], [0, 1]), (3, 4)).eval()
    array([4, 9])
    """
    if not isinstance(multi_index, Sequence):
        raise TypeError("multi_index is a sequence with one tensor for each axis.")
    return RavelMultiIndex(mode, order)(*multi_index, dims)


# ========================================================================== UnravelIndex


class UnravelIndex(_Positions):
    """The positions (int64) along each axis, from those in the flattened array.

    Inputs: the positions, and the shape of the array.

    Parameters
    ----------
    order
        ``"C"``: the last axis varies fastest, ``"F"``: the first one
    """

    # ----- class and static shape
    __props__ = ("order",)

    def __init__(self, order: Order = "C") -> None:
        self.set_order(order)

    def make_node(self, indices: Any, dims: Any) -> Apply:
        indices, dims = _positions(indices), _shape_vector(dims)
        return typed_node(self, [indices, dims], *["int64"] * get_vector_length(dims))

    def shape_rule(self, s: ShapeContext, indices: Shape, dims: Shape) -> list[Shape]:
        return [indices] * len(s.values(1))

    # ----- perform
    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray], output_storage: list[list[Any]]
    ) -> None:
        i, dims = inputs
        lengths: list[int] = dims.tolist()
        check_lengths(lengths)
        size = prod(lengths)
        if ((i < 0) | (i >= size)).any():
            raise ValueError(f"{self}: a position is out of range for an array of {size} elements.")
        for axis in self.innermost_first(len(lengths)):
            i, rest = np.divmod(i, max(lengths[axis], 1))
            output_storage[axis][0] = np.asarray(rest)

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        indices, dims = batched_inputs
        return self.make_node(indices, self.batched_dims(dims))

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        i, dims = inputs
        lengths = _lowered_lengths(b, dims, len(node.outputs))
        _check_positions(b, i, dim_product(lengths))
        found: dict[int, Any] = {}
        for axis in self.innermost_first(len(lengths)):
            n = b.scalar(dim_max(lengths[axis], 1))
            found[axis] = b.map(lambda w, i, n: w.imod(i, n), i, n)
            i = b.map(lambda w, i, n: w.idiv(i, n), i, n)
        return [found[axis] for axis in range(len(lengths))]


def unravel_index(indices: Any, dims: Any, order: Order = "C") -> tuple[Any, ...]:
    """Positions in a flattened array as a tuple of positions (int64) along its axes.

    Parameters
    ----------
    indices : integer tensor; ValueError at run time for positions out of range
    dims : the shape of the array, a sequence or a vector whose length is known
    order : ``"C"``: the last axis varies fastest, ``"F"``: the first one

    >>> import phintys.tensor as pt
    >>> rows, columns = pt.unravel_index([4, 9], (3, 4))
    >>> rows.eval(), columns.eval()
    (array([1, 2]), array([0, 1]))
    """
    return tuple(UnravelIndex(order)(indices, dims, return_list=True))
