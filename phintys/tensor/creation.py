"""Creation of tensors from values and lengths: alloc, empty, full, zeros, ones, broadcasting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from phintys.config import config
from phintys.errors import RaggedError, ShapeError
from phintys.graph.builder import Builder, V
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.scalar.broadcasting import broadcast_to as broadcast_array
from phintys.tensor import convert
from phintys.tensor.aliases import Arrays, DTypeLike, Length, Place, ShapeLike, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, dimshuffle, functions, sum_to
from phintys.tensor.shape import length, shape_tuple
from phintys.tensor.static import (
    as_length,
    constant_origin,
    known_length,
    shape_entries,
)
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = [
    "alloc",
    "broadcast_arrays",
    "broadcast_shape",
    "broadcast_shape_iter",
    "broadcast_to",
    "empty",
    "empty_like",
    "fill",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "second",
    "zeros",
    "zeros_like",
]

# =============================================================================== Alloc


class Alloc(Op):
    """A value broadcast to a shape.  Inputs: the value, then one 0-d integer per axis.

    The value broadcasts along axes whose length is known to be 1 when the graph is built.
    """

    # ----- class and static shape
    __props__ = ()
    _output_type_depends_on_input_value = True
    is_linear = True
    handles_missing = False

    def make_node(self, value: TensorLike, *shape: Length) -> Apply:
        value = as_tensor_variable(value)
        lengths = shape_entries(shape)
        if value.type.ndim > len(lengths):
            raise TypeError(
                f"{value} has {value.type.ndim} dimensions; it cannot fill {len(lengths)} lengths."
            )
        return typed_node(self, [value, *lengths], value.type)

    def shape_rule(self, s: ShapeContext, value: Shape, *lengths: Shape) -> list[Shape]:
        found = list(s.lengths(range(1, 1 + len(lengths))))
        for axis, n in enumerate(value, start=len(found) - len(value)):
            if n.value != 1:
                message = f"The value cannot fill axis {axis}"
                known = s.equal(n, found[axis], message, broadcasts=True)
                found[axis] = found[axis] if known.value is None else known
        return [tuple(found)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        value, *lengths = inputs
        target = tuple(int(n) for n in lengths)
        if value.shape != target[len(target) - value.ndim :]:
            check_shapes(node, inputs)
        output_storage[0][0] = broadcast_array(value, target).copy()

    def do_constant_folding(self, fgraph: FunctionGraph, node: Apply) -> bool:
        return False

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], *([False] for _ in node.inputs[1:])]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        value, (g,) = inputs[0], cotangents
        new = g.type.ndim - value.type.ndim
        summed = sum_to(g, convert.pad_left[0](value, g.type.ndim))
        return [dimshuffle(summed, list(range(new, g.type.ndim))), *[None] * len(inputs[1:])]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        value, *lengths = batched_inputs
        core = node.inputs[0].type.ndim
        batch = value.type.ndim - core
        if any(n.type.ndim for n in lengths):
            raise RaggedError("The lengths of Alloc cannot differ within a batch.")
        order: list[Place] = [*range(batch), *["x"] * (len(lengths) - core)]
        padded = dimshuffle(value, [*order, *range(batch, value.type.ndim)])
        return self.make_node(padded, *(length(value, i) for i in range(batch)), *lengths)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (shape,) = b.result_shapes(node, *inputs)
        return b.broadcast_to(inputs[0], shape)


_alloc = Alloc()
constant_origin.register(Alloc, lambda op, out: out.owner.inputs[0])


def alloc(value: TensorLike, *shape: Length) -> TensorVariable:
    """``value`` broadcast to a shape, for example ``alloc(0.0, 2, 3)``.

    An axis of ``value`` broadcasts only if its length is known to be 1.  TypeError if ``value`` has
    more dimensions than the shape, ShapeError if lengths are known to differ.

    >>> alloc(1.5, 2, 3).type.shape
    (2, 3)
    """
    return _alloc(value, *shape)


class AllocEmpty(Op):
    """A tensor of a shape whose elements are not initialised.

    Parameters
    ----------
    dtype
        of the result
    """

    # ----- class and static shape
    __props__ = ("dtype",)
    _output_type_depends_on_input_value = True
    not_differentiable = "its inputs are integers, and its elements are arbitrary"
    has_undefined_values = True

    def __init__(self, dtype: str) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def make_node(self, *_shape: Length) -> Apply:
        return typed_node(self, shape_entries(_shape), self.dtype)

    def shape_rule(self, s: ShapeContext, *lengths: Shape) -> list[Shape]:
        return [s.lengths(range(len(lengths)))]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        output_storage[0][0] = np.empty([int(n) for n in inputs], dtype=self.dtype)

    def do_constant_folding(self, fgraph: FunctionGraph, node: Apply) -> bool:
        return False

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] for _ in node.inputs]

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (shape,) = b.result_shapes(node, *inputs)
        return b.empty(self.dtype, shape)

    def __str__(self) -> str:
        return f"AllocEmpty{{dtype={self.dtype!r}}}"


def _dtype(dtype: DTypeLike | None) -> str:
    return config.floatX if dtype is None else dtypes.as_dtype(dtype)


def empty(shape: ShapeLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """A tensor whose elements are not initialised; dtype floatX unless given."""
    return AllocEmpty(_dtype(dtype))(*shape_entries(shape))


def full(
    shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None
) -> TensorVariable:
    """A tensor filled with a value; its dtype is that of the value unless given.

    >>> full((2, 3), 7, dtype="int32").type
    TensorType(int32, shape=(2, 3))
    """
    value = as_tensor_variable(fill_value)
    return alloc(value if dtype is None else cast(value, dtype), *shape_entries(shape))


def zeros(shape: ShapeLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """A tensor of zeros; dtype floatX unless given.

    Parameters
    ----------
    shape : a length, a sequence of lengths (numbers or variables), or an integer vector
    dtype : of the result

    >>> import phintys.tensor as pt
    >>> pt.zeros((2, 3)).eval()
    array([[0., 0., 0.],
           [0., 0., 0.]])
    """
    return alloc(convert.constant(0, dtype=_dtype(dtype)), *shape_entries(shape))


def ones(shape: ShapeLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """A tensor of ones; dtype floatX unless given.  See `zeros`."""
    return alloc(convert.constant(1, dtype=_dtype(dtype)), *shape_entries(shape))


def second(a: TensorLike, b: TensorLike) -> TensorVariable:
    """``b`` broadcast to the shape of ``a``, in the dtype of ``b``."""
    return functions.second(a, b)


fill = second


def full_like(
    a: TensorLike, fill_value: TensorLike, dtype: DTypeLike | None = None
) -> TensorVariable:
    """A tensor like ``a`` filled with a value; its dtype is that of the value unless given."""
    value = as_tensor_variable(fill_value)
    return fill(a, value if dtype is None else cast(value, dtype))


def _filled(model: TensorLike, number: int, dtype: DTypeLike | None, opt: bool) -> TensorVariable:
    model = as_tensor_variable(model)
    found = model.type.dtype if dtype is None else dtypes.as_dtype(dtype)
    value = convert.constant(number, dtype=found)
    return value if opt and model.type.ndim == 0 else fill(model, value)


def zeros_like(
    model: TensorLike, dtype: DTypeLike | None = None, opt: bool = False
) -> TensorVariable:
    """Zeros in the shape (and dtype, unless given) of ``model``.

    With ``opt`` the result is a constant if ``model`` is 0-d.
    """
    return _filled(model, 0, dtype, opt)


def ones_like(
    model: TensorLike, dtype: DTypeLike | None = None, opt: bool = False
) -> TensorVariable:
    """Ones in the shape (and dtype, unless given) of ``model``.  See `zeros_like`."""
    return _filled(model, 1, dtype, opt)


def empty_like(prototype: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """A tensor in the shape (and dtype, unless given) of ``prototype``, not initialised."""
    prototype = as_tensor_variable(prototype)
    return empty(list(shape_tuple(prototype)), dtype or prototype.type.dtype)


# ======================================================================= broadcasting


def broadcast_batches(tensors: Tensors, core_ndims: Sequence[int]) -> list[TensorVariable]:
    """Tensors whose leading (batch) axes are broadcast against each other.

    ``core_ndims``: for each tensor the number of trailing axes that are not broadcast.  An axis
    broadcasts only if its length is known to be 1.
    """
    counts = [x.type.ndim - core for x, core in zip(tensors, core_ndims)]
    most = max(counts)
    padded = [
        dimshuffle(x, ["x"] * (most - n) + list(range(x.type.ndim)))
        for x, n in zip(tensors, counts)
    ]
    batch = broadcast_shape_iter([shape_tuple(x)[:most] for x in padded], arrays_are_shapes=True)
    static = tuple(known_length(n) for n in batch)
    return [
        x if x.type.shape[:most] == static else alloc(x, *batch, *shape_tuple(x)[most:])
        for x in padded
    ]


def spread(tensors: Tensors) -> list[TensorVariable]:
    """Tensors broadcast against each other, by one node each: what ops here are built of.

    `broadcast_arrays` has a node for each pair.
    """
    return broadcast_batches(tensors, [0] * len(tensors)) if tensors else []


def broadcast_shape_iter(
    arrays: Iterable[Any],
    arrays_are_shapes: bool = False,
    allow_runtime_broadcast: bool = False,
) -> tuple[TensorVariable, ...]:
    """The shape that tensors (or shapes) broadcast to, as 0-d int64 variables.

    An axis broadcasts where its length is known to be 1; with ``allow_runtime_broadcast`` also
    where it is 1 at run time.  ShapeError if lengths are known to differ.
    """
    shapes = [
        [as_length(n) for n in (shape_entries(a) if arrays_are_shapes else shape_tuple(a))]
        for a in arrays
    ]
    ndim = max((len(s) for s in shapes), default=0)
    padded = [[as_length(1)] * (ndim - len(s)) + s for s in shapes]
    return tuple(_broadcast_length(axis, allow_runtime_broadcast) for axis in zip(*padded))


def _broadcast_length(lengths: Tensors, at_run_time: bool) -> TensorVariable:
    """The length that lengths broadcast to: a known one other than 1, else the first unknown."""
    known = [known_length(n) for n in lengths]
    wide = {n for n in known if n is not None and n != 1}
    if len(wide) > 1:
        raise ShapeError(f"Lengths {sorted(wide)} do not broadcast.")
    if wide:
        return as_length(wide.pop())
    unknown = [n for n, k in zip(lengths, known) if k is None]
    if not unknown:
        return as_length(1)
    found = unknown[0]
    for n in unknown[1:] if at_run_time else ():
        found = functions.switch(functions.eq(found, 1), n, found)
    return found


def broadcast_shape(*arrays: TensorLike, **kwargs: bool) -> tuple[TensorVariable, ...]:
    """The shape that tensors broadcast to; see `broadcast_shape_iter`."""
    return broadcast_shape_iter(arrays, **kwargs)


def broadcast_to(x: TensorLike, shape: ShapeLike) -> TensorVariable:
    """``x`` broadcast to a shape; an axis broadcasts only if its length is known to be 1.

    >>> import phintys.tensor as pt
    >>> pt.broadcast_to(pt.arange(2), (3, 2)).eval()
    array([[0, 1],
           [0, 1],
           [0, 1]])
    """
    return alloc(x, *shape_entries(shape))


def broadcast_arrays(*args: TensorLike) -> tuple[TensorVariable, ...]:
    """Tensors broadcast against each other.

    Each depends on all arguments, also where lengths that are known make that superfluous, as in
    PyTensor: programs that read which variables a result depends on find them.
    """
    found = [as_tensor_variable(a) for a in args]
    return tuple(
        reduce(lambda x, other: functions.second(other, x), (*found[:k], *found[k + 1 :]), x)
        for k, x in enumerate(found)
    )
