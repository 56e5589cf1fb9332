"""Values that Python code has given, checked against the types of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.errors import ShapeError
from phintys.graph.type import HasDataType, HasShape, Type
from phintys.graph.variable import Apply

#: dtype and lengths
ArrayType = tuple[str, tuple[int | None, ...]]


def array_type(type_: Type[Any]) -> ArrayType | None:
    """dtype and lengths, if the values of a type are NumPy arrays; None for other types.

    Types of sparse matrices have a dtype and a shape too; they say so by a ``format``.
    """
    if not isinstance(type_, HasDataType) or not isinstance(type_, HasShape):
        return None
    return None if hasattr(type_, "format") else (type_.dtype, tuple(type_.shape))


def has_shape(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether lengths are those that are wanted; None stands for any."""
    if len(shape) != len(wanted):
        return False
    for n, want in zip(shape, wanted):  # noqa: SIM110 - a generator takes twice as long
        if want is not None and n != want:
            return False
    return True


def declared_result(node: Apply, number: int, value: Any) -> Any:
    """What ``perform`` gave for an output, as an array of the declared dtype and shape.

    Values of types that are not of arrays are returned as they are.

    Raises
    ------
    TypeError
        if NumPy does not cast the dtype to the declared one within a kind, the rank is wrong, or
        the array is masked
    ShapeError
        if a length contradicts the type of the output
    """
    type_ = node.outputs[number].type
    if type(value) is np.ndarray and value.dtype is getattr(type_, "numpy_dtype", None):
        shape = getattr(type_, "shape", None)
        if shape is not None and has_shape(value.shape, shape):  # almost always
            return value
    known = array_type(type_)
    if known is None:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{node.op}.perform gave a masked array for output {number}.")
    array = np.asarray(value)
    dtype, shape = known
    if array.dtype != dtype:
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise TypeError(
                f"{node.op}.perform gave {array.dtype} for output {number}, whose type is "
                f"{node.outputs[number].type}."
            )
        array = array.astype(dtype)
    if array.dtype is not np.dtype(dtype):  # equal to it, like long long to long
        array = array.view(np.dtype(dtype))
    if not has_shape(array.shape, shape):
        kind = ShapeError if array.ndim == len(shape) else TypeError
        raise kind(
            f"{node.op}.perform gave an array of rank {array.ndim} and shape {array.shape} for "
            f"output {number}, whose type is {node.outputs[number].type}."
        )
    return array
