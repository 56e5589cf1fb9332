"""The searching, sorting and set functions of the array API."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

import phintys.tensor as pt
from phintys.tensor import numpy_functions
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.shape import length, shape_tuple
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


def searchsorted(
    x1: Any, x2: Any, /, *, side: Literal["left", "right"] = "left", sorter: Any = None
) -> Any:
    """The positions at which ``x2`` is inserted into the sorted vector ``x1`` to keep the order."""
    return pt.searchsorted(x1, x2, side, sorter)


# --------------------------------------------------------------------------------- sets


class UniqueAll(NamedTuple):
    """The distinct elements in order, the position of the first of each, the position of each
    element of the array among them, and how often they occur."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The distinct elements in order, and how often they occur."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The distinct elements in order, and the position of each element of the array among them."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements in order, with positions and counts; each NaN is distinct."""
    x = as_tensor_variable(x)
    flat = pt.flatten(x)
    n = length(flat, 0)
    order = pt.argsort(flat, stable=True)
    ordered = flat[order]
    differs = functions.neq(ordered[1:], ordered[:-1])
    is_first = pt.alloc(np.array(True), n)[1:].set(differs)
    starts = pt.flatnonzero(is_first)
    inverse = pt.zeros(n, "int64")[order].set(pt.cumsum(cast(is_first, "int64")) - 1)
    counts = pt.diff(pt.join(0, starts, pt.expand_dims(n, 0)))
    return UniqueAll(
        ordered[starts],
        order[starts],
        pt.reshape(inverse, shape_tuple(x), ndim=x.type.ndim),
        counts,
    )


def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct elements in order, and how often they occur; each NaN is distinct."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct elements in order, and the position of each element of ``x`` among them."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Any:
    """The distinct elements in order; each NaN is distinct."""
    return unique_all(x).values


__all__ = [
    "argmax", "argmin", "argsort", "count_nonzero", "nonzero", "searchsorted", "sort",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "where",
]  # fmt: skip
