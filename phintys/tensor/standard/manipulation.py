"""The manipulation and indexing functions of the array API."""

from __future__ import annotations

from typing import Any

import phintys.tensor as pt
from phintys.tensor import numpy_functions
from phintys.tensor.convert import as_tensor_variable, constant
from phintys.tensor.elemwise import cast
from phintys.tensor.index import set_subtensor
from phintys.tensor.shape import shape_tuple
from phintys.tensor.standard.promotion import check_element, is_number


def concat(arrays: Any, /, *, axis: Any = 0) -> Any:
    """Arrays concatenated along an axis; flattened if it is None."""
    return numpy_functions.concatenate(arrays, axis)


def expand_dims(x: Any, /, axis: Any) -> Any:
    """``x`` with a new axis of length 1 at position ``axis`` of the result.

    IndexError if it is out of range.
    """
    x = as_tensor_variable(x)
    count = len(axis) if isinstance(axis, tuple) else 1
    for a in axis if isinstance(axis, tuple) else (axis,):
        if not -x.type.ndim - count <= a < x.type.ndim + count:
            raise IndexError(f"Axis {a} is out of range for {x.type.ndim + count} dimensions.")
    return pt.expand_dims(x, axis)


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """``x`` with the order of elements reversed along axes; None: along all."""
    return pt.flip(x, axis)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """``x`` with some axes moved to other positions."""
    return pt.moveaxis(x, source, destination)


def permute_dims(x: Any, /, axes: Any) -> Any:
    """``x`` with its axes permuted."""
    return pt.transpose(x, axes)


def repeat(x: Any, repeats: Any, /, *, axis: Any = None) -> Any:
    """Each element repeated along an axis; of the flattened array if it is None."""
    return pt.repeat(x, repeats, axis)


def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:
    """``x`` in another shape, of which one length may be -1."""
    return pt.reshape(x, shape)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Elements shifted along axes, wrapping around; of the flattened array if ``axis`` is None."""
    return numpy_functions.roll(x, shift, axis)


def squeeze(x: Any, /, axis: Any) -> Any:
    """``x`` without the given axes; ValueError if one has not length 1."""
    x = as_tensor_variable(x)
    for a in axis if isinstance(axis, tuple) else (axis,):
        if -x.type.ndim <= a < x.type.ndim and x.type.shape[a] not in (None, 1):
            raise ValueError(f"Axis {a} of {x} has length {x.type.shape[a]}: it cannot be dropped.")
    return pt.squeeze(x, axis)


def stack(arrays: Any, /, *, axis: Any = 0) -> Any:
    """Arrays of equal shape stacked along a new axis."""
    return pt.stack([as_tensor_variable(x) for x in arrays], axis)


def tile(x: Any, repetitions: Any, /) -> Any:
    """The whole array repeated along its axes."""
    return pt.tile(x, repetitions)


def unstack(x: Any, /, *, axis: Any = 0) -> tuple[Any, ...]:
    """The slices of ``x`` along an axis whose length is known when the graph is built."""
    return tuple(pt.moveaxis(as_tensor_variable(x), axis, 0))


def take(x: Any, indices: Any, /, *, axis: Any = None) -> Any:
    """Elements at integer positions along an axis, which must be given unless ``x`` is a vector."""
    x = as_tensor_variable(x)
    if axis is None and x.type.ndim != 1:
        raise ValueError(f"{x} has {x.type.ndim} axes: take needs the argument axis.")
    return pt.take(x, indices, axis)


def take_along_axis(x: Any, indices: Any, /, *, axis: Any = -1) -> Any:
    """Elements at positions along an axis, different for each entry of the other axes."""
    return pt.take_along_axis(x, indices, axis)


def items(x: Any, key: Any) -> Any:
    """``x[key]``."""
    return as_tensor_variable(x)[key]


def with_items(x: Any, key: Any, value: Any) -> Any:
    """``x`` with ``value``, in the dtype of ``x``, at the position ``key``.

    A Python number must be of a kind that the dtype holds.
    """
    x = as_tensor_variable(x)
    if is_number(value):
        check_element(value, x.type.dtype)
        value = constant(value, dtype=x.type.dtype)
    part = x[key]
    if part is x:
        return pt.alloc(cast(value, x.type.dtype), *shape_tuple(x))
    return set_subtensor(part, value)


__all__ = [
    "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat", "reshape", "roll",
    "squeeze", "stack", "take", "take_along_axis", "tile", "unstack",
]  # fmt: skip
