"""Distinct elements and counts: `unique`, `bincount`, `histogram`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.config import config
from phintys.dims import product
from phintys.graph.op import Op
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import zeros
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.index import inc_subtensor
from phintys.tensor.ranges import linspace
from phintys.tensor.reduce import max as max_over
from phintys.tensor.reduce import min as min_over
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.reshape import flatten
from phintys.tensor.search import searchsorted
from phintys.tensor.shape import length, normalize_axis_tuple
from phintys.tensor.static import as_length, known_length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import TensorConstant

__all__ = ["bincount", "histogram", "unique"]

# ================================================================================ Unique


class Unique(Op):
    """The distinct elements of a tensor, or its distinct slices along an axis, in order.

    The other results, if they are asked for, are int64 vectors.

    Parameters
    ----------
    return_index
        also the position at which each of them occurs first
    return_inverse
        also, for each element or slice of the input, its position among the distinct ones
    return_counts
        also how often each of them occurs
    axis
        None: elements, of the flattened tensor
    """

    # ----- class and static shape
    __props__ = ("return_index", "return_inverse", "return_counts", "axis")

    def __init__(
        self,
        return_index: bool = False,
        return_inverse: bool = False,
        return_counts: bool = False,
        axis: int | None = None,
    ) -> None:
        self.return_index, self.return_inverse = bool(return_index), bool(return_inverse)
        self.return_counts, self.axis = bool(return_counts), None if axis is None else int(axis)

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        op = self
        if self.axis is not None:
            (axis,) = normalize_axis_tuple(self.axis, x.type.ndim)
            op = Unique(self.return_index, self.return_inverse, self.return_counts, axis)
        extra = self.return_index + self.return_inverse + self.return_counts
        return typed_node(op, [x], x.type.dtype, *["int64"] * extra)

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        axis = self.axis
        count = s.unknown(lambda x: np.unique(x, axis=axis).shape[axis or 0])
        inverse = product(x) if axis is None else x[axis]
        values = tuple([count if k == axis else n for k, n in enumerate(x)])
        found = [(count,) if axis is None else values]
        found += [(count,)] * self.return_index + [(inverse,)] * self.return_inverse
        return found + [(count,)] * self.return_counts

    # ----- perform
    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray], output_storage: list[list[Any]]
    ) -> None:
        flags = self.return_index, self.return_inverse, self.return_counts
        distinct: Any = np.unique
        found = distinct(inputs[0], *flags, axis=self.axis)
        values, *positions = found if isinstance(found, tuple) else (found,)
        output_storage[0][0] = np.asarray(values)
        for cell, p in zip(output_storage[1:], positions):
            # NumPy's inverse has the shape of the input
            cell[0] = np.ravel(p).astype("int64", copy=False)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * len(node.outputs)]

    def __str__(self) -> str:
        flags = [p for p in ("index", "inverse", "counts") if getattr(self, f"return_{p}")]
        return f"Unique{{{', '.join([*flags, f'axis={self.axis}'])}}}"


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """The distinct elements in ascending order, or the distinct slices along an axis.

    Their number is known when the function runs.  There is no derivative.

    Parameters
    ----------
    ar : tensor
    return_index : also the position at which each of them occurs first
    return_inverse : also, for each element or slice of ``ar``, its position among the distinct ones
        (a vector; elements in C order)
    return_counts : also how often each of them occurs
    axis : None: elements of the flattened tensor

    A list if more than one result is asked for.  ValueError if the axis is out of range.

    >>> import phintys.tensor as pt
    >>> values, counts = pt.unique(pt.as_tensor([3, 1, 3]), return_counts=True)
    >>> values.eval(), counts.eval()
    (array([1, 3]), array([1, 2]))
    """
    return Unique(return_index, return_inverse, return_counts, axis)(ar)


# ============================================================================== bincount


def bincount(
    x: Any, weights: Any = None, minlength: Any = None, assert_nonneg: bool = False
) -> Any:
    """How often each number 0, 1, ... occurs in a vector of integers.

    Parameters
    ----------
    x : vector of integers, none of them negative, or of bools
    weights : vector of the length of ``x``: the sums of the weights of each number, in their dtype
        (int64 for bools); None: counts, int64
    minlength : the least length of the result, which otherwise ends with the greatest number
    assert_nonneg : accepted for compatibility: negative numbers are always an error at run time

    Raises
    ------
    TypeError if ``x`` is not a vector of integers or bools, ValueError for a constant ``minlength``
    that is negative; ShapeError at run time for negative numbers.

    >>> import phintys.tensor as pt
    >>> pt.bincount([1, 1, 3]).eval()
    array([0, 2, 0, 1])
    >>> pt.bincount([1, 0, 1], weights=[0.5, 1.0, 2.0]).eval()
    array([1. , 2.5])
    """
    x = as_tensor_variable(x)
    if x.type.ndim != 1 or not dtypes.is_discrete(x.type.dtype):
        raise TypeError(f"bincount counts the elements of integer vectors; {x} is {x.type}.")
    x = cast(x, "int64")
    least_size = as_length(0 if minlength is None else minlength)
    if (known_length(least_size) or 0) < 0:
        raise ValueError(f"The minlength of bincount is not negative, got {minlength}.")
    least, greatest = min_over(x, initial=np.inf), max_over(x, initial=-np.inf)
    size = functions.maximum(greatest + 1, least_size)
    # a negative element becomes the length of the result, which is an error
    size = functions.switch(functions.lt(least, 0), least, size)
    values = as_tensor_variable(1 if weights is None else weights)
    dtype = "int64" if weights is None or values.type.dtype == "bool" else values.type.dtype
    if weights is not None and values.type.ndim != 1:
        raise TypeError(f"The weights of bincount are a vector; {values} is {values.type}.")
    return inc_subtensor(zeros((size,), dtype)[x], cast(values, dtype))


# ============================================================================= histogram


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> list[Any]:
    """How many elements lie between given numbers, and these numbers.

    Parameters
    ----------
    a : real tensor; NaN is not counted
    bins : the number of intervals of equal length, or a vector of ascending edges; an interval has
        its lower edge, the last one both
    range : the first and the last edge for a number of intervals; None: the least and the greatest
        element (0 and 1 if there are none), half a unit apart from it if they are equal
    density : return the density instead, whose integral is 1
    weights : tensor in the shape of ``a``: the sums of weights, in their dtype

    Returns
    -------
    list : the counts (int64), and the edges; those of intervals of equal length are of the dtype of
        ``a`` if it is a float

    ValueError for constants that are wrong: less than one interval, edges that are not ascending, a
    range that ends before it starts.

    >>> import phintys.tensor as pt
    >>> counts, edges = pt.histogram([1.0, 2.0, 2.5, 4.0], bins=3)
    >>> counts.eval(), edges.eval()
    (array([1, 2, 1]), array([1., 2., 3., 4.]))
    """
    a = flatten(as_tensor_variable(a))
    bins = as_tensor_variable(bins)
    if bins.type.ndim > 1:
        raise ValueError(f"The bins of histogram are a number or a vector; {bins} is {bins.type}.")
    edges = bins if bins.type.ndim else _edges(a, as_length(bins), range)
    if isinstance(edges, TensorConstant) and (np.diff(edges.data) < 0).any():
        raise ValueError(f"The bins of histogram are ascending, not {edges.data.tolist()}.")
    count = length(edges, 0)
    # 0 below the first edge, count above the last one and for NaN
    places = searchsorted(edges, a, side="right")
    places = functions.switch(functions.eq(a, edges[-1]), count - 1, places)
    values = as_tensor_variable(1 if weights is None else weights)
    dtype = "int64" if weights is None or values.type.dtype == "bool" else values.type.dtype
    values = cast(values if weights is None else flatten(values), dtype)
    found = inc_subtensor(zeros((count + 1,), dtype)[places], values)[1:-1]
    if density:
        found = found / (edges[1:] - edges[:-1]) / sum_over(found)
    return [found, edges]


def _edges(a: Any, count: Any, given: Any) -> Any:
    """The edges of ``count`` intervals of equal length."""
    known = known_length(count)
    if known is not None and known < 1:
        raise ValueError(f"The bins of histogram are a positive number, not {known}.")
    exact = a.type.dtype if dtypes.is_float(a.type.dtype) else None
    dtype = exact or dtypes.upcast(a.type.dtype, config.floatX)
    if given is None:
        empty = functions.eq(length(a, 0), 0)
        extremes = max_over(a, initial=-np.inf), min_over(a, initial=np.inf)
        high, low = (functions.switch(empty, k, x) for k, x in zip((1, 0), extremes))
        low, high = (cast(x, dtype) for x in (low, high))
    else:
        low, high = map(as_tensor_variable, given)
        ends = [x.data for x in (low, high) if isinstance(x, TensorConstant)]
        if len(ends) == 2 and ends[0] > ends[1]:
            raise ValueError(f"The range of histogram ends before it starts: {given}.")
        low, high = cast(low, "float64"), cast(high, "float64")
    half = functions.switch(functions.eq(low, high), 0.5, 0.0)
    return cast(linspace(low - half, high + half, count + 1), dtype)
