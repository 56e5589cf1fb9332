"""Functions that permute, add and drop axes; all are `DimShuffle`."""

from __future__ import annotations

import numpy as np

from phintys.tensor.aliases import Axes, Axis, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import dimshuffle
from phintys.tensor.shape import normalize_axis_tuple
from phintys.tensor.variable import TensorVariable

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "atleast_Nd",
    "expand_dims",
    "matrix_transpose",
    "moveaxis",
    "shape_padaxis",
    "shape_padleft",
    "shape_padright",
    "squeeze",
    "swapaxes",
    "transpose",
]


def transpose(x: TensorLike, axes: Axis = None) -> TensorVariable:
    """``x`` with its axes permuted; None reverses them, and ``x.T`` becomes the result's name.

    >>> import phintys.tensor as pt
    >>> pt.transpose(pt.zeros((2, 3, 4)), (1, 0, 2)).type.shape
    (3, 2, 4)
    """
    x = as_tensor_variable(x)
    order = range(x.type.ndim)[::-1] if axes is None else normalize_axis_tuple(axes, x.type.ndim)
    if len(order) != x.type.ndim:
        raise ValueError(f"{x} has {x.type.ndim} axes; {axes} names {len(order)}.")
    permuted = dimshuffle(x, list(order))
    if x.name and permuted is not x and list(order) == list(range(x.type.ndim))[::-1]:
        permuted.name = f"{x.name}.T"
    return permuted


def matrix_transpose(x: TensorLike) -> TensorVariable:
    """``x`` with its last two axes exchanged; ValueError for fewer than two dimensions."""
    x = as_tensor_variable(x)
    if x.type.ndim < 2:
        raise ValueError(f"A matrix transpose needs at least 2 dimensions; {x} has {x.type.ndim}.")
    return swapaxes(x, -1, -2)


def swapaxes(y: TensorLike, axis1: int, axis2: int) -> TensorVariable:
    """``y`` with two axes exchanged."""
    y = as_tensor_variable(y)
    (a,), (c,) = (normalize_axis_tuple(axis, y.type.ndim) for axis in (axis1, axis2))
    order = list(range(y.type.ndim))
    order[a], order[c] = c, a
    return dimshuffle(y, order)


def moveaxis(a: TensorLike, source: Axes, destination: Axes) -> TensorVariable:
    """``a`` with some axes moved to other positions, and the others kept in order.

    >>> import phintys.tensor as pt
    >>> pt.moveaxis(pt.zeros((2, 3, 4)), 0, -1).type.shape
    (3, 4, 2)
    """
    a = as_tensor_variable(a)
    sources = normalize_axis_tuple(source, a.type.ndim)
    destinations = normalize_axis_tuple(destination, a.type.ndim)
    if len(sources) != len(destinations):
        raise ValueError("source and destination name different numbers of axes.")
    order = [i for i in range(a.type.ndim) if i not in sources]
    for where, axis in sorted(zip(destinations, sources)):
        order.insert(where, axis)
    return dimshuffle(a, order)


def expand_dims(a: TensorLike, axis: Axes) -> TensorVariable:
    """``a`` with new axes of length 1, at positions ``axis`` of the result.

    >>> import phintys.tensor as pt
    >>> pt.expand_dims(pt.zeros(3), (0, -1)).type.shape
    (1, 3, 1)
    """
    a = as_tensor_variable(a)
    count = 1 if isinstance(axis, int | np.integer) else len(tuple(axis))
    new = normalize_axis_tuple(axis, a.type.ndim + count)
    old = iter(range(a.type.ndim))
    return dimshuffle(a, ["x" if i in new else next(old) for i in range(a.type.ndim + count)])


def squeeze(x: TensorLike, axis: Axis = None) -> TensorVariable:
    """``x`` without axes of length 1.

    ``axis`` None drops the axes whose length is known to be 1 when the graph is built.  A given
    axis is always dropped; the call fails if its length is not 1 at run time.
    """
    x = as_tensor_variable(x)
    if axis is None:
        dropped = {i for i, n in enumerate(x.type.shape) if n == 1}
    else:
        dropped = set(normalize_axis_tuple(axis, x.type.ndim))
    return dimshuffle(x, [i for i in range(x.type.ndim) if i not in dropped])


def shape_padleft(t: TensorLike, n_ones: int = 1) -> TensorVariable:
    """``t`` with ``n_ones`` axes of length 1 added on the left."""
    t = as_tensor_variable(t)
    return dimshuffle(t, ["x"] * n_ones + list(range(t.type.ndim)))


def shape_padright(t: TensorLike, n_ones: int = 1) -> TensorVariable:
    """``t`` with ``n_ones`` axes of length 1 added on the right."""
    t = as_tensor_variable(t)
    return dimshuffle(t, list(range(t.type.ndim)) + ["x"] * n_ones)


def shape_padaxis(t: TensorLike, axis: int) -> TensorVariable:
    """``t`` with one axis of length 1 added at position ``axis`` of the result."""
    return expand_dims(t, axis)


def atleast_Nd(arry: TensorLike, *, n: int = 1, left: bool = True) -> TensorVariable:
    """``arry`` with at least ``n`` dimensions, padded on the left (or right) with length 1."""
    arry = as_tensor_variable(arry)
    missing = max(0, n - arry.type.ndim)
    return shape_padleft(arry, missing) if left else shape_padright(arry, missing)


def atleast_1d(arry: TensorLike, *, left: bool = True) -> TensorVariable:
    """``arry`` with at least one dimension."""
    return atleast_Nd(arry, n=1, left=left)


def atleast_2d(arry: TensorLike, *, left: bool = True) -> TensorVariable:
    """``arry`` with at least two dimensions."""
    return atleast_Nd(arry, n=2, left=left)


def atleast_3d(arry: TensorLike, *, left: bool = True) -> TensorVariable:
    """``arry`` with at least three dimensions."""
    return atleast_Nd(arry, n=3, left=left)
