"""Checks of values computed by Python code against the types of variables."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from phintys.errors import ShapeError
from phintys.graph.type import Type
from phintys.graph.variable import Apply

#: dtype and shape; None stands for a length that the type does not fix
ArrayType = tuple[str, tuple[int | None, ...]]


def array_type(type_: Type[Any]) -> ArrayType | None:
    """dtype and shape of a type whose values are single NumPy arrays; None for other types."""
    dtype, shape = type_.parts[0]
    return None if dtype is None or len(type_.parts) > 1 else (dtype, shape)


def has_shape(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether a shape has the wanted rank and lengths; None stands for any length."""
    if len(shape) != len(wanted):
        return False
    for n, want in zip(shape, wanted):  # noqa: SIM110 - a generator takes twice as long
        if want is not None and n != want:
            return False
    return True


def declared_result(node: Apply, number: int, value: Any) -> Any:
    """The value that ``perform`` computed for output ``number``, as an array of the declared type.

    The dtype is converted if that is a "same_kind" cast of NumPy.  Values of types other than those
    of arrays are returned unchanged.

    Raises
    ------
    TypeError
        if the dtype cannot be converted, the rank is wrong, or the array is masked
    ShapeError
        if a length contradicts the type of the output
    """
    type_ = node.outputs[number].type
    if type(value) is np.ndarray and value.dtype is getattr(type_, "numpy_dtype", None):
        shape = getattr(type_, "shape", None)
        if shape is not None and has_shape(value.shape, shape):  # the fast path
            return value
    known = array_type(type_)
    if known is None:
        return value
    if value is None:
        raise TypeError(
            f"{node.op}.perform returned no value for output {number}, whose type is {type_}: it "
            f"must store one in output_storage[{number}][0]."
        )
    if is_masked(value):
        raise TypeError(f"{node.op}.perform returned a masked array for output {number}.")
    array = np.asarray(value)
    dtype, shape = known
    if array.dtype != dtype:
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise TypeError(
                f"{node.op}.perform returned {array.dtype} for output {number}, whose type is "
                f"{node.outputs[number].type}."
            )
        array = array.astype(dtype)
    if array.dtype is not np.dtype(dtype):  # an equal dtype, such as long long for long
        array = array.view(np.dtype(dtype))
    if not has_shape(array.shape, shape):
        kind, advice = TypeError, ""
        if array.ndim == len(shape):
            kind, advice = ShapeError, " A length that may differ must be None in that type."
        raise kind(
            f"{node.op}.perform returned an array of rank {array.ndim} and shape {array.shape} for "
            f"output {number}, whose type is {node.outputs[number].type}.{advice}"
        )
    return array


def is_masked(value: Any) -> bool:
    """Whether a value is a masked array.  NumPy's module for these is not imported: 15 ms."""
    # without the class where another thread is importing the module: then no such array exists
    cls = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return cls is not None and isinstance(value, cls)
