"""Joining and splitting of tensors, and conversion of lists of variables to tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from phintys.dims import ZERO
from phintys.errors import RaggedError
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor import convert
from phintys.tensor.aliases import Arrays, Length, TensorLike
from phintys.tensor.axes import expand_dims
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import broadcast_batches
from phintys.tensor.elemwise import cast
from phintys.tensor.shape import (
    length,
    lengths_vector,
    make_vector,
    normalize_axis_tuple,
    specify_shape,
    stacks,
)
from phintys.tensor.static import (
    MAX_NODES,
    Entry,
    as_length,
    entry_origin,
    get_underlying_scalar_constant_value,
)
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = [
    "concat_with_broadcast",
    "concatenate",
    "horizontal_stack",
    "join",
    "split",
    "stack",
    "stacklists",
    "vertical_stack",
]

# ================================================================================ Join


class Join(Op):
    """Concatenate tensors of equal rank along an axis.

    Parameters
    ----------
    axis
        along which to join, not negative; the other lengths must agree
    """

    # ----- class and static shape
    __props__ = ("axis",)
    is_linear = True
    handles_missing = False

    def __init__(self, axis: int) -> None:
        if axis < 0:
            raise ValueError(f"The axis of Join is not negative, got {axis}; see join.")
        self.axis = int(axis)

    def make_node(self, *tensors: TensorLike) -> Apply:
        if not tensors:
            raise ValueError("Join needs at least one tensor.")
        args = [as_tensor_variable(t) for t in tensors]
        ndims = sorted({a.type.ndim for a in args})
        if len(ndims) > 1:
            raise TypeError(f"Only tensors of equal rank can be joined; these have {ndims}.")
        if ndims == [0]:
            raise TypeError("Join cannot handle scalar arguments of dimension 0: use stack.")
        if self.axis >= ndims[0]:
            raise ValueError(f"{self}: the tensors have {ndims[0]} dimensions.")
        dtype = dtypes.upcast(*(a.type.dtype for a in args))
        return typed_node(self, args, dtype)

    def shape_rule(self, s: ShapeContext, *shapes: Shape) -> list[Shape]:
        found = list(shapes[0])
        for other in shapes[1:]:
            for axis, n in enumerate(other):
                if axis == self.axis:
                    found[axis] += n
                else:
                    message = f"Lengths along axis {axis} do not agree"
                    found[axis] = s.equal(found[axis], n, message)
        return [tuple(found)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        out = np.concatenate(inputs, axis=self.axis)
        output_storage[0][0] = out.astype(node.outputs[0].type.dtype, copy=False)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (g,) = cotangents
        lengths = lengths_vector([length(x, self.axis) for x in inputs])
        parts = Split(len(inputs), self.axis)(g, lengths, return_list=True)
        return [specify_shape(part, x.type.shape) for x, part in zip(inputs, parts)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        core = node.outputs[0].type.ndim
        args = broadcast_batches(batched_inputs, [core] * len(batched_inputs))
        return Join(self.axis + args[0].type.ndim - core).make_node(*args)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        dtype = node.outputs[0].type.dtype
        return b.join([b.cast(x, dtype) for x in inputs], self.axis)

    def __str__(self) -> str:
        return f"Join{{axis={self.axis}}}"


@entry_origin.register
def _entry_of_part(op: Join, out: Variable, position: int) -> Entry | None:
    _, *parts = out.owner_op_and_inputs
    for x in parts[:MAX_NODES]:
        n = x.type.shape[0]
        if n is None or position < n:
            return None if n is None else Entry(x, position)
        position -= n
    return None


def _stack_batches(scalars: Tensors) -> Apply:
    args = [expand_dims(x, -1) for x in broadcast_batches(scalars, [0] * len(scalars))]
    return Join(args[0].type.ndim - 1).make_node(*args)


stacks.append(_stack_batches)


def join(axis: TensorLike, *tensors_list: TensorLike) -> TensorVariable:
    """Tensors concatenated along ``axis``; see `concatenate`."""
    if not tensors_list:
        raise ValueError("join needs at least one tensor.")
    args = [as_tensor_variable(t) for t in tensors_list]
    if not isinstance(axis, int | np.integer):
        found: Any = get_underlying_scalar_constant_value(axis, raise_not_constant=False)
        if isinstance(found, Variable):
            raise TypeError(f"The axis of join is a constant; {axis} is a variable.")
        axis = int(found)
    (axis,) = normalize_axis_tuple(int(axis), args[0].type.ndim or 1)  # Join refuses numbers
    return args[0] if len(args) == 1 else Join(axis)(*args)


def concatenate(tensor_list: Sequence[TensorLike], axis: int = 0) -> TensorVariable:
    """Tensors of equal rank concatenated along an axis.

    Parameters
    ----------
    tensor_list : tensors whose lengths agree but for ``axis``; dtypes are upcast
    axis : a constant; negative counts from the end

    TypeError if ranks differ, ShapeError if lengths are known to differ.

    >>> import phintys.tensor as pt
    >>> pt.concatenate([pt.arange(2), pt.arange(3)]).eval()
    array([0, 1, 0, 1, 2])
    """
    if isinstance(tensor_list, Variable):
        raise TypeError(f"concatenate takes a list of tensors, not the one tensor {tensor_list}.")
    return join(axis, *tensor_list)


def stack(
    tensors: Sequence[TensorLike] | TensorVariable | np.ndarray, axis: int = 0
) -> TensorVariable:
    """Tensors of equal shape stacked along a new axis; 0-d tensors give a vector.

    One tensor is not joined, but gets the new axis.

    >>> import phintys.tensor as pt
    >>> pt.stack([pt.zeros(3), pt.ones(3)], axis=1).type.shape
    (3, 2)
    """
    given: Iterable[TensorLike] = tensors  # a variable is iterated over its first axis
    if not isinstance(tensors, Variable) and len(tensors) == 0:
        raise ValueError("stack needs at least one tensor.")
    args = [as_tensor_variable(t) for t in given]
    if len(args) > 1 and all(a.type.ndim == 0 for a in args) and axis in (0, -1):
        return make_vector(*args)
    return join(axis, *(expand_dims(a, axis) for a in args))


def stacklists(arg: TensorLike) -> TensorVariable:
    """A tensor from nested lists of tensors of equal shape.

    >>> import phintys.tensor as pt
    >>> pt.stacklists([[1, 2], [3, 4]]).eval()
    array([[1, 2],
           [3, 4]], dtype=int8)
    """
    if isinstance(arg, list | tuple):
        return stack([stacklists(a) for a in arg])  # the recursion is as deep as the list is nested
    return as_tensor_variable(arg)


def horizontal_stack(*args: TensorLike) -> TensorVariable:
    """Matrices joined along axis 1; ValueError for other ranks."""
    return _stack_matrices(args, 1)


def vertical_stack(*args: TensorLike) -> TensorVariable:
    """Matrices joined along axis 0; ValueError for other ranks."""
    return _stack_matrices(args, 0)


def _stack_matrices(args: Sequence[TensorLike], axis: int) -> TensorVariable:
    found = [as_tensor_variable(a) for a in args]
    if len(found) < 2 or any(a.type.ndim != 2 for a in found):
        raise ValueError("Two or more matrices are needed to stack them.")
    return concatenate(found, axis=axis)


def concat_with_broadcast(tensor_list: Sequence[TensorLike], axis: int = 0) -> TensorVariable:
    """`concatenate`, after broadcasting the axes other than ``axis``."""
    args = [as_tensor_variable(t) for t in tensor_list]
    if not args:
        raise ValueError("concat_with_broadcast needs at least one tensor.")
    ndim = args[0].type.ndim
    if any(a.type.ndim != ndim for a in args):
        raise TypeError("Only tensors of equal rank can be joined.")
    (axis,) = normalize_axis_tuple(axis, ndim)
    moved = [a.dimshuffle(*(i for i in range(ndim) if i != axis), axis) for a in args]
    joined = concatenate(broadcast_batches(moved, [1] * len(moved)), axis=-1)
    order = list(range(ndim - 1))
    order.insert(axis, ndim - 1)
    return joined.dimshuffle(*order)


# =============================================================================== Split


class Split(Op):
    """Split a tensor into pieces along an axis.  Inputs: the tensor, and the vector of lengths.

    Parameters
    ----------
    len_splits
        the number of pieces
    axis
        along which to split, not negative
    """

    # ----- class and static shape
    __props__ = ("len_splits", "axis")
    is_linear = True
    handles_missing = False

    def __init__(self, len_splits: int, axis: int) -> None:
        self.len_splits, self.axis = int(len_splits), int(axis)
        self.view_map = {i: [0] for i in range(self.len_splits)}

    def make_node(self, x: TensorLike, splits: TensorLike) -> Apply:
        x, splits = as_tensor_variable(x), as_tensor_variable(splits)
        if splits.type.ndim != 1 or splits.type.dtype not in dtypes.INTEGER:
            raise TypeError(f"The lengths are an integer vector; {splits} has type {splits.type}.")
        if not 0 <= self.axis < x.type.ndim:
            raise ValueError(f"{self}: {x} has {x.type.ndim} dimensions.")
        if splits.type.shape[0] is None:
            splits = specify_shape(splits, self.len_splits)
        if splits.type.shape[0] != self.len_splits:
            raise ValueError(f"{self} needs {self.len_splits} lengths, not {splits.type.shape[0]}.")
        return typed_node(self, [x, splits], *[x.type] * self.len_splits)

    def shape_rule(self, s: ShapeContext, x: Shape, splits: Shape) -> list[Shape]:
        lengths = s.values(1)
        for n in lengths:
            s.check(n, ">=", 0, "A length is negative")
        total = sum(lengths, start=ZERO)
        s.check(x[self.axis], "==", total, f"The lengths do not add up to that of axis {self.axis}")
        return [(*x[: self.axis], n, *x[self.axis + 1 :]) for n in lengths]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        x, splits = inputs
        pieces = np.split(x, np.cumsum(splits)[:-1], axis=self.axis)
        for cell, piece in zip(output_storage, pieces):
            cell[0] = piece

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True] * self.len_splits, [False] * self.len_splits]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        return [join(self.axis, *cotangents), None]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        x, splits = batched_inputs
        if splits.type.ndim != 1:
            raise RaggedError("The lengths of Split cannot differ within a batch.")
        batch = x.type.ndim - node.inputs[0].type.ndim
        return Split(self.len_splits, self.axis + batch).make_node(x, splits)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> list[V]:
        pieces, start = [], ZERO
        for shape in b.result_shapes(node, *inputs):
            pieces.append(b.slice(inputs[0], self.axis, start, 1, shape[self.axis]))
            start += shape[self.axis]
        return pieces

    def __str__(self) -> str:
        return f"Split{{len_splits={self.len_splits}, axis={self.axis}}}"


def split(
    x: TensorLike,
    splits_size: Sequence[Length | np.ndarray] | Variable | np.ndarray,
    *,
    n_splits: int | None = None,
    axis: int = 0,
) -> list[TensorVariable]:
    """``x`` split into pieces along an axis.

    Parameters
    ----------
    x : tensor
    splits_size : the lengths of the pieces: a sequence, or an integer vector; they must add up
    n_splits : the number of pieces, needed where ``splits_size`` is a vector of unknown length
    axis : along which to split

    >>> import phintys.tensor as pt
    >>> [piece.eval() for piece in pt.split(pt.arange(5), [2, 3])]
    [array([0, 1]), array([2, 3, 4])]
    """
    x = as_tensor_variable(x)
    (axis,) = normalize_axis_tuple(axis, x.type.ndim)
    if not isinstance(splits_size, Variable):
        splits_size = lengths_vector([as_length(n) for n in splits_size])
    if n_splits is None:
        n_splits = splits_size.type.shape[0]
        if n_splits is None:
            raise ValueError(f"The length of {splits_size} is not known: give n_splits.")
    return list(Split(n_splits, axis)(x, splits_size, return_list=True))


# ======================================================= lists of variables as tensors


def _holds_variables(x: object) -> bool:
    """Whether a nested list or object array contains a variable."""
    stack = [x]
    while stack:
        item = stack.pop()
        if isinstance(item, Variable | Apply):
            return True
        if isinstance(item, list | tuple) or (
            isinstance(item, np.ndarray) and item.dtype == object
        ):
            stack.extend(item)
    return False


@convert.tensor_variable_of.register(list)
@convert.tensor_variable_of.register(tuple)
def _from_sequence(
    x: Sequence[TensorLike], name: str | None = None, ndim: int | None = None, **kwargs: Any
) -> TensorVariable:
    if not _holds_variables(x):
        return convert.constant(x, name=name, ndim=ndim, **kwargs)
    made = stack([as_tensor_variable(item) for item in x])
    if kwargs.get("dtype") is not None:
        made = cast(made, kwargs["dtype"])
    return as_tensor_variable(made, ndim=ndim)


@convert.tensor_variable_of.register(np.ndarray)
def _from_array(
    x: np.ndarray, name: str | None = None, ndim: int | None = None, **kwargs: Any
) -> TensorVariable:
    if x.dtype == object and _holds_variables(x):
        return _from_sequence(x.tolist(), name, ndim, **kwargs)
    return convert.constant(x, name=name, ndim=ndim, **kwargs)
