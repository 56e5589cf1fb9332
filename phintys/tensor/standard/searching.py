"""The searching, sorting and set functions of the array API."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import phintys.tensor as pt
from phintys.tensor import numpy_functions
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import functions
from phintys.tensor.shape import length
from phintys.tensor.standard.promotion import operands


def argmax(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The positions of the greatest elements along an axis; in the flattened array if None."""
    return pt.argmax(x, axis, keepdims)


def argmin(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The positions of the smallest elements along an axis; in the flattened array if None."""
    return pt.argmin(x, axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The number of elements that are not 0, over axes."""
    return numpy_functions.count_nonzero(x, axis, keepdims=keepdims)


def nonzero(x: Any, /) -> tuple[Any, ...]:
    """The positions of the elements that are not 0, one vector for each axis."""
    return tuple(pt.nonzero(x))


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """``x1`` where the condition holds, else ``x2``."""
    return functions.switch(condition, *operands(x1, x2))


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The elements along an axis in ascending or descending order."""
    found = pt.sort(x, axis, stable=stable)
    return pt.flip(found, axis) if descending else found


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The positions that sort the elements along an axis; equal elements keep their order."""
    if not descending:
        return pt.argsort(x, axis, stable=stable)
    x = as_tensor_variable(x)
    found = pt.argsort(pt.flip(x, axis), axis, stable=stable)
    return pt.flip(length(x, axis % x.type.ndim) - 1 - found, axis)


__all__ = ["argmax", "argmin", "argsort", "count_nonzero", "nonzero", "sort", "where"]
