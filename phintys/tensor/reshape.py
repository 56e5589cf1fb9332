"""Reshaping of tensors: reshape, flatten, axes joined and split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.dims import ZERO, dim_max, dim_min
from phintys.dims import product as dim_product
from phintys.errors import RaggedError, ShapeError
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, Length, ShapeLike, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.shape import (
    length,
    lengths_vector,
    normalize_axis_tuple,
    product,
    shape_tuple,
    specify_shape,
)
from phintys.tensor.static import (
    as_length,
    entries,
    get_vector_length,
    known_length,
    shape_entries,
)
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["flatten", "is_flat", "join_dims", "ravel", "reshape", "split_dims"]

# ============================================================================= Reshape


class Reshape(Op):
    """The elements in C order with another shape.  Inputs: the tensor and an integer vector.

    Parameters
    ----------
    ndim
        rank of the result; one entry of the shape may be -1, to be inferred from the others
    """

    # ----- class and static shape
    __props__ = ("ndim",)
    _output_type_depends_on_input_value = True
    is_linear = True
    handles_missing = False
    view_map = {0: [0]}

    def __init__(self, ndim: int) -> None:
        if ndim < 0:
            raise ValueError(f"The rank of a reshaped tensor is not negative, got {ndim}.")
        self.ndim = int(ndim)

    def make_node(self, x: TensorLike, shp: ShapeLike) -> Apply:
        x, shp = as_tensor_variable(x), as_tensor_variable(shp)
        if shp.type.ndim != 1 or shp.type.dtype not in dtypes.INTEGER:
            raise TypeError(f"The new shape is an integer vector; {shp} has type {shp.type}.")
        if shp.type.shape[0] is None:
            shp = specify_shape(shp, self.ndim)
        if get_vector_length(shp) != self.ndim:
            raise ValueError(f"{self} needs {self.ndim} lengths; {shp} has {shp.type.shape[0]}.")
        return typed_node(self, [x, shp], x.type)

    def shape_rule(self, s: ShapeContext, x: Shape, shp: Shape) -> list[Shape]:
        wanted, size = s.values(1), dim_product(x)
        known = [n.value for n in wanted if n.value is not None]
        wrong = sum(n < -1 for n in known) + max(known.count(-1) - 1, 0)
        s.check(0, ">=", wrong, "Only one length may be -1 and none less", early=True)
        # 1 where a length is -1, else 0
        missing = {
            i: dim_min(dim_max(-n, 0), 1) for i, n in enumerate(wanted) if not n.is_nonnegative
        }
        if missing:
            others, count = -dim_product(wanted), sum(missing.values(), start=ZERO)
            # fails for two lengths of -1, and for -1 with a length of 0: both are not determined
            message = "What -1 stands for is not determined"
            s.check(others * count + 1 - count, ">", 0, message, early=True)
            rest = size // dim_max(others, 1) + 1
            wanted = tuple([n + missing.get(i, ZERO) * rest for i, n in enumerate(wanted)])
        s.equal(size, dim_product(wanted), "The sizes of the old and the new shape differ")
        return [wanted]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        x, shp = inputs
        shape = tuple(shp.tolist())
        if min(shape, default=0) < -1:  # NumPy may accept it as -1
            check_shapes(node, inputs)
        try:
            output_storage[0][0] = x.reshape(shape)
        except ValueError as exc:
            check_shapes(node, inputs)
            raise ShapeError(f"NumPy does not support the shape {shape}: {exc}") from exc

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[TensorVariable | None]:
        (x, _), (g,) = inputs, cotangents
        return [_reshape_to(g, shape_tuple(x)), None]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        x, shp = batched_inputs
        if shp.type.ndim != 1:
            raise RaggedError("The new shape of Reshape cannot differ within a batch.")
        core, old = entries(shp), node.inputs[0]
        if any(known_length(n) == -1 for n in core):
            core = _without_minus_one(core, shape_tuple(x)[x.type.ndim - old.type.ndim :])
        batch = [length(x, i) for i in range(x.type.ndim - old.type.ndim)]
        return Reshape(len(batch) + self.ndim).make_node(x, lengths_vector([*batch, *core]))

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (shape,) = b.result_shapes(node, *inputs)
        return b.reshape(inputs[0], shape)

    def __str__(self) -> str:
        return f"Reshape{{{self.ndim}}}"


def _without_minus_one(requested: Tensors, old: Tensors) -> list[TensorVariable]:
    """The requested lengths with -1 replaced by the inferred length."""
    others = [as_length(n) for n in requested if known_length(n) != -1]
    missing = product(old) // product(others)
    return [missing if known_length(n) == -1 else n for n in requested]


def reshape(x: TensorLike, newshape: ShapeLike, *, ndim: int | None = None) -> TensorVariable:
    """The elements of ``x`` in C order with another shape.

    Parameters
    ----------
    x : tensor
    newshape : a sequence of lengths (numbers or variables), an integer vector, or one number; one
        length may be -1
    ndim : rank of the result, needed where ``newshape`` is a vector of unknown length

    Raises
    ------
    TypeError if ``newshape`` is not a vector, ValueError if its length is not known, ShapeError
    if the sizes are known to differ (otherwise at run time).

    >>> import phintys.tensor as pt
    >>> pt.reshape(pt.arange(6), (2, -1)).eval()
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    x = as_tensor_variable(x)
    if not isinstance(newshape, Variable):
        listed = [newshape] if isinstance(newshape, int | np.integer) else newshape
        if not isinstance(listed, Sequence | np.ndarray):
            raise TypeError(f"The new shape is a tuple or a vector of lengths, not {newshape!r}.")
        newshape = lengths_vector(shape_entries(listed))
    if newshape.type.ndim != 1:
        raise TypeError(f"The new shape is a tuple or a vector of lengths, not {newshape}.")
    if ndim is None:
        if newshape.type.shape[0] is None:
            raise ValueError(
                f"The length of {newshape} is not known: the rank of the result must be given with "
                "ndim=."
            )
        ndim = get_vector_length(newshape)
    return Reshape(ndim)(x, newshape)


def _reshape_to(x: TensorVariable, lengths: Sequence[Length]) -> TensorVariable:
    return Reshape(len(lengths))(x, lengths_vector(lengths))


def flatten(x: TensorLike, ndim: int = 1) -> TensorVariable:
    """``x`` with its first ``ndim - 1`` axes kept and the others flattened into one.

    ValueError if ``ndim`` is less than 1 or more than the rank of ``x``.

    >>> import phintys.tensor as pt
    >>> pt.flatten(pt.zeros((2, 3, 4)), 2).type.shape
    (2, 12)
    """
    x = as_tensor_variable(x)
    if not 1 <= ndim <= max(x.type.ndim, 1):
        raise ValueError(f"ndim must be between 1 and {max(x.type.ndim, 1)}, not {ndim}.")
    if x.type.ndim == ndim:
        return x
    if ndim == 1:
        return _reshape_to(x, [-1])
    lengths = shape_tuple(x)
    return _reshape_to(x, [*lengths[: ndim - 1], product(lengths[ndim - 1 :])])


def ravel(x: TensorLike) -> TensorVariable:
    """``x`` flattened to a vector."""
    return flatten(x)


def is_flat(var: TensorLike, ndim: int = 1) -> bool:
    """Whether ``var`` has rank ``ndim``."""
    return as_tensor_variable(var).type.ndim == ndim


# ============================================================================== JoinDims


class JoinDims(Op):
    """A tensor with adjacent axes joined into one, elements in C order.

    Parameters
    ----------
    start_axis
        the first of these axes, not negative
    n_axes
        their number; 0 inserts an axis of length 1
    """

    # ----- class and static shape
    __props__ = ("start_axis", "n_axes")
    is_linear = True
    handles_missing = False
    view_map = {0: [0]}

    def __init__(self, start_axis: int, n_axes: int) -> None:
        if start_axis < 0 or n_axes < 0:
            raise ValueError(f"JoinDims takes no negative numbers, got {start_axis} and {n_axes}.")
        self.start_axis, self.n_axes = int(start_axis), int(n_axes)

    @property
    def axis_range(self) -> range:
        """The axes that are joined."""
        return range(self.start_axis, self.start_axis + self.n_axes)

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        if self.axis_range.stop > x.type.ndim:
            raise ValueError(
                f"{self} joins axes up to {self.axis_range.stop - 1}; {x} has only "
                f"{x.type.ndim} dimensions."
            )
        return typed_node(self, [x], x.type.dtype)

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        axes = slice(self.axis_range.start, self.axis_range.stop)
        return [(*x[: axes.start], dim_product(x[axes]), *x[axes.stop :])]

    # ----- perform
    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray], output_storage: list[list[Any]]
    ) -> None:
        (x,) = inputs
        first, last = self.axis_range.start, self.axis_range.stop
        joined = int(np.prod(x.shape[first:last], dtype="int64"))
        output_storage[0][0] = x.reshape((*x.shape[:first], joined, *x.shape[last:]))

    # ----- derivative
    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        (x,), (g,) = inputs, cotangents
        lengths = [length(x, axis) for axis in self.axis_range]
        return [SplitDims(self.start_axis)(g, lengths_vector(lengths))]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        (x,) = batched_inputs
        batch = x.type.ndim - node.inputs[0].type.ndim
        return JoinDims(self.start_axis + batch, self.n_axes).make_node(x)

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        (shape,) = b.result_shapes(node, *inputs)
        return b.reshape(inputs[0], shape)

    def __str__(self) -> str:
        return f"JoinDims{{start_axis={self.start_axis}, n_axes={self.n_axes}}}"


def join_dims(x: Any, start_axis: int = 0, n_axes: int | None = None) -> Any:
    """``x`` with adjacent axes joined into one, elements in C order.

    Parameters
    ----------
    x : tensor
    start_axis : the first of these axes; a negative one counts from the end
    n_axes : their number; None: all that follow, 0: insert an axis of length 1

    ValueError if there are not as many axes.

    >>> import phintys.tensor as pt
    >>> pt.join_dims(pt.zeros((2, 3, 4)), 1).type.shape
    (2, 12)
    """
    x = as_tensor_variable(x)
    ndim = x.type.ndim
    start = start_axis + ndim if start_axis < 0 else start_axis
    if not 0 <= start <= ndim:
        raise ValueError(f"Axis {start_axis} is out of range for {ndim} dimensions.")
    return JoinDims(start, ndim - start if n_axes is None else n_axes)(x)


# ============================================================================= SplitDims


class SplitDims(Op):
    """A tensor with one axis split into several, elements in C order; the inverse of `JoinDims`.

    Inputs: the tensor, and the vector of the new lengths, whose product is that of the axis.

    Parameters
    ----------
    axis
        the axis, not negative
    """

    # ----- class and static shape
    __props__ = ("axis",)
    is_linear = True
    handles_missing = False
    view_map = {0: [0]}

    def __init__(self, axis: int) -> None:
        if axis < 0:
            raise ValueError(f"The axis of SplitDims is not negative, got {axis}.")
        self.axis = int(axis)

    def make_node(self, x: Any, shape: Any) -> Apply:
        x, shape = as_tensor_variable(x), as_tensor_variable(shape)
        normalize_axis_tuple(self.axis, x.type.ndim)
        if shape.type.ndim != 1 or shape.type.dtype not in dtypes.INTEGER:
            raise TypeError(f"The lengths are an integer vector; {shape} has type {shape.type}.")
        get_vector_length(shape)
        return typed_node(self, [x, shape], x.type.dtype)

    def shape_rule(self, s: ShapeContext, x: Shape, shape: Shape) -> list[Shape]:
        lengths = s.values(1)
        for n in lengths:
            s.check(n, ">=", 0, "A length is negative", early=True)
        message = f"The product of the lengths is not the length of axis {self.axis}"
        s.equal(x[self.axis], dim_product(lengths), message)
        return [(*x[: self.axis], *lengths, *x[self.axis + 1 :])]

    # ----- perform
    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray], output_storage: list[list[Any]]
    ) -> None:
        check_shapes(node, inputs)
        x, lengths = inputs[0], inputs[1].tolist()
        shape = (*x.shape[: self.axis], *lengths, *x.shape[self.axis + 1 :])
        output_storage[0][0] = x.reshape(shape)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable | None]:
        (_, shape), (g,) = inputs, cotangents
        return [JoinDims(self.axis, get_vector_length(shape))(g), None]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        x, shape = batched_inputs
        if shape.type.ndim != 1:
            raise RaggedError("The lengths of SplitDims cannot differ within a batch.")
        batch = x.type.ndim - node.inputs[0].type.ndim
        return SplitDims(self.axis + batch).make_node(x, shape)

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        (shape,) = b.result_shapes(node, *inputs)
        return b.reshape(inputs[0], shape)

    def __str__(self) -> str:
        return f"SplitDims{{axis={self.axis}}}"


def split_dims(x: Any, shape: Any, axis: int = 0) -> Any:
    """``x`` with one axis split into several, elements in C order; the inverse of `join_dims`.

    Parameters
    ----------
    x : tensor
    shape : the new lengths, whose product is the length of the axis: a number, a sequence or an
        integer vector of known length; ``()`` drops an axis of length 1.  The constant -1 in a
        sequence stands for the length that follows from the others
    axis : the axis

    ValueError if the axis is out of range, ShapeError if the product is another (if it is not
    known when the graph is built, at run time).

    >>> import phintys.tensor as pt
    >>> pt.split_dims(pt.arange(6), (2, 3)).eval()
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    x = as_tensor_variable(x)
    (axis,) = normalize_axis_tuple(axis, x.type.ndim)
    if not isinstance(shape, Variable):
        shape = _completed(shape_entries(shape), length(x, axis))
    return SplitDims(axis)(x, as_lengths(shape))


def _completed(lengths: Sequence[TensorVariable], total: TensorVariable) -> list[TensorVariable]:
    """Lengths of which one may be -1: what their product must be divided by the others."""
    known = [known_length(n) for n in lengths]
    if known.count(-1) != 1 or 0 in known:
        return list(lengths)
    others = product([n for n, k in zip(lengths, known) if k != -1])
    return [total // others if k == -1 else n for n, k in zip(lengths, known)]


def as_lengths(shape: Any) -> Any:
    """Lengths as an integer vector."""
    if isinstance(shape, Variable):
        return lengths_vector([shape]) if shape.type.ndim == 0 else shape
    listed = shape if isinstance(shape, Sequence | np.ndarray) else [shape]
    return lengths_vector(shape_entries(listed))
