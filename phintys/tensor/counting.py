"""Distinct elements and counts: `unique`, `bincount`, `histogram`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.config import config
from phintys.dims import product
from phintys.graph.ignored import ignores
from phintys.graph.op import Op
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import zeros
from phintys.tensor.elemwise import cast, functions, zeros_of
from phintys.tensor.index import inc_subtensor
from phintys.tensor.lengths import checked_lengths
from phintys.tensor.ranges import linspace
from phintys.tensor.reduce import max as max_over
from phintys.tensor.reduce import min as min_over
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.reshape import flatten, reshape
from phintys.tensor.search import searchsorted
from phintys.tensor.shape import length, normalize_axis_tuple, shape_tuple, specify_shape
from phintys.tensor.static import as_length, known_constant, known_length
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
    in_python = "the number of its results is known when they are computed"
    handles_missing = False

    def __init__(
        self,
        return_index: bool = False,
        return_inverse: bool = False,
        return_counts: bool = False,
        axis: int | None = None,
    ) -> None:
        self.return_index, self.return_inverse = bool(return_index), bool(return_inverse)
        self.return_counts = bool(return_counts)
        self.axis = None if axis is None else operator.index(axis)

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

    # ----- derivative: of the elements, or slices, that occur first
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, *[False] * (len(node.outputs) - 1)]]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        (x,), g = inputs, cotangents[0]
        zeros, at = self._sliced(zeros_of(x))
        found = inc_subtensor(zeros[(*at, self._first(x))], g)
        return [
            found if self.axis is not None else reshape(found, shape_tuple(x), ndim=x.type.ndim)
        ]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        t, at = self._sliced(tangents[0])
        return [t[(*at, self._first(inputs[0]))], *map(zeros_of, outputs[1:])]

    def _sliced(self, v: Any) -> tuple[Any, list[slice]]:
        """A variable in the shape of the input, flattened if there is no axis, and its axes before.

        These are the axes before that along which slices are distinct.
        """
        return (flatten(v), []) if self.axis is None else (v, [slice(None)] * self.axis)

    def _first(self, x: Any) -> Any:
        """The positions at which the distinct elements occur first."""
        return Unique(return_index=True, axis=self.axis)(x)[1]


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """The distinct elements in ascending order, or the distinct slices along an axis.

    Their number is known when the function runs.  The derivative is that of the elements that occur
    first.

    Parameters
    ----------
    ar : tensor
    return_index : also the position at which each of them occurs first
    return_inverse : also, for each element or slice of ``ar``, its position among the distinct ones
        (a vector; elements in C order)
    return_counts : also how often each of them occurs
    axis : None: elements of the flattened tensor

    A list if more than one result is asked for.  ValueError if the axis is out of range, TypeError
    if it is no integer.

    >>> import phintys.tensor as pt
    >>> values, counts = pt.unique(pt.as_tensor([3, 1, 3]), return_counts=True)
    >>> values.eval(), counts.eval()
    (array([1, 3]), array([1, 2]))
    """
    return Unique(return_index, return_inverse, return_counts, axis)(ar)


# ============================================================================== bincount


@ignores("assert_nonneg")
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
    TypeError if ``x`` is not a vector of integers or bools.  ValueError for negative numbers, a
    negative ``minlength``, or weights of another length, at run time if that is not known before.

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
    (minlength,) = checked_lengths([least_size])
    size = functions.maximum(greatest + 1, minlength)
    # a negative element becomes the length of the result, which is an error
    size = functions.switch(functions.lt(least, 0), least, size)
    if weights is not None:
        weights = as_tensor_variable(weights)
        if weights.type.ndim != 1:
            raise TypeError(f"The weights of bincount are a vector; {weights} is {weights.type}.")
    return _weighted_counts(x, size, weights)


def _weighted_counts(places: Any, size: Any, weights: Any) -> Any:
    """How often each position below ``size`` occurs, or the sums of the weights that occur there.

    ``places`` is a vector, ``weights`` None or a vector of its length (checked).
    """
    if weights is None:
        return inc_subtensor(zeros((size,), "int64")[places], 1)
    weights = specify_shape(weights, [length(places, 0)])
    dtype = "int64" if weights.type.dtype == "bool" else weights.type.dtype
    return inc_subtensor(zeros((size,), dtype)[places], cast(weights, dtype))


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
        element (0 and 1 if there are none), half a unit apart from it if they are equal.  If one
        of them is NaN or infinite, the edges are NaN
    density : return the density instead, whose integral is 1
    weights : tensor in the shape of ``a``: the sums of weights, in their dtype

    Returns
    -------
    list : the counts (int64), and the edges: the given ones, or numbers of the dtype of ``a``
        (floatX, or float64 where it is needed, for integers and bools)

    Raises
    ------
    TypeError if ``bins`` is a number but no integer; ValueError if it has more than one dimension,
    is known to be less than 1, or if edges or the range are known not to be ascending; ShapeError
    if the weights have another shape, at run time if that is not known before.

    >>> import phintys.tensor as pt
    >>> counts, edges = pt.histogram([1.0, 2.0, 2.5, 4.0], bins=3)
    >>> counts.eval(), edges.eval()
    (array([1, 2, 1]), array([1., 2., 3., 4.]))
    """
    a = as_tensor_variable(a)
    if weights is not None:
        weights = flatten(specify_shape(weights, shape_tuple(a)))
    a, bins = flatten(a), as_tensor_variable(bins)
    if bins.type.ndim > 1:
        raise ValueError(f"The bins of histogram are a number or a vector; {bins} is {bins.type}.")
    edges = bins if bins.type.ndim else _even_edges(a, as_length(bins), range)
    if isinstance(edges, TensorConstant) and (np.diff(edges.data) < 0).any():
        raise ValueError(f"The bins of histogram are ascending, not {edges.data.tolist()}.")
    count = length(edges, 0)
    # 0 below the first edge, count above the last one and for NaN
    places = searchsorted(edges, a, side="right")
    places = functions.switch(functions.eq(a, edges[-1]), count - 1, places)
    found = _weighted_counts(places, count + 1, weights)[1:-1]
    if density:
        found = found / (edges[1:] - edges[:-1]) / sum_over(found)
    return [found, edges]


def _even_edges(a: Any, count: Any, given: Any) -> Any:
    """The edges of ``count`` intervals of equal length."""
    known = known_length(count)
    if known is not None and known < 1:
        raise ValueError(f"A histogram has at least one interval, not {known}.")
    exact = a.type.dtype if dtypes.is_float(a.type.dtype) else None
    dtype = exact or dtypes.upcast(a.type.dtype, config.floatX)
    if given is None:
        empty = functions.eq(length(a, 0), 0)
        extremes = max_over(a, initial=-np.inf), min_over(a, initial=np.inf)
        high, low = (functions.switch(empty, k, x) for k, x in zip((1, 0), extremes))
        low, high = (cast(x, dtype) for x in (low, high))
    else:
        low, high = map(as_tensor_variable, given)
        ends: list[Any] = [known_constant(low), known_constant(high)]
        if None not in ends and ends[0] > ends[1]:
            raise ValueError(f"The range {given} of a histogram is in descending order.")
        low, high = cast(low, "float64"), cast(high, "float64")
    half = functions.switch(functions.eq(low, high), 0.5, 0.0)
    return cast(linspace(low - half, high + half, count + 1), dtype)
