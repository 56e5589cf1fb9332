"""Correlations of images with filters that differ from place to place: locally connected layers.

They are compositions of other ops: the windows of images, and one product of these with filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.gradient import pullback
from phintys.graph.builder import Builder, V
from phintys.graph.op import Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.tensor.aliases import Arrays, Length, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import zeros
from phintys.tensor.einsum import einsum
from phintys.tensor.elemwise import cast, conjugate, dimshuffle
from phintys.tensor.index import take
from phintys.tensor.linalg.matrix_op import inexact
from phintys.tensor.nnet.conv_shapes import border_mode_to_pad
from phintys.tensor.nnet.corr import BaseCorrMM, BorderLike
from phintys.tensor.pad import pad
from phintys.tensor.ranges import arange
from phintys.tensor.reshape import join_dims, split_dims
from phintys.tensor.shape import length, shape_tuple
from phintys.tensor.static import as_length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable


class FittingFilters(BaseCorrMM):
    """The filters of `correlate`, a view.  Inputs: filters, images, whose dtype does not matter.

    ShapeError if filters are longer than padded images, or their number of places is not that of
    the result.  The axes that the rule reads are the last ones: others may stand before them.
    """

    # ----- class and static shape
    is_linear = True
    view_map = {0: [0]}

    def make_node(self, filters: TensorLike, images: TensorLike) -> Apply:
        w, x = as_tensor_variable(filters), as_tensor_variable(images)
        return typed_node(self, [w, x], w.type)

    def shape_rule(self, s: ShapeContext, w: Shape, x: Shape) -> list[Shape]:
        first = len(w) - 2 * self.ndim - 1
        found = list(w)
        for axis, n in enumerate(self._result_lengths(s, x[-self.ndim :], w[-self.ndim :]), first):
            message = f"Axis {axis} of unshared filters has another length than the result"
            found[axis] = s.equal(w[axis], n, message)
        return [tuple(found)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        output_storage[0][0] = inputs[0]

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        return [cotangents[0], None]

    # ----- batching: items have the same lengths
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        return self.make_node(*batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (shape,) = b.result_shapes(node, *inputs)
        return b.broadcast_to(inputs[0], shape)

    def lower_batched(self, node: Apply, b: Builder[V], *inputs: V) -> list[V]:
        return [inputs[0]]


def correlate(
    images: TensorLike,
    filters: TensorLike,
    border_mode: BorderLike = "valid",
    subsample: Sequence[int] = (1, 1),
    filter_dilation: Sequence[int] = (1, 1),
    num_groups: int = 1,
) -> TensorVariable:
    """The correlations of images with filters that differ from place to place.

    Parameters
    ----------
    images : tensor (batch, channels, lengths)
    filters : tensor (filters, lengths of the result, channels / num_groups, lengths of a filter)
    border_mode, subsample, filter_dilation, num_groups : as for `conv2d`

    The result has the shape (batch, filters, lengths of the result).  TypeError for other ranks,
    ShapeError if lengths do not fit, or a filter is longer than what it moves in.
    """
    ndim = len(subsample)
    x, w = _tensor(images, ndim + 2, "images"), _tensor(filters, 2 * ndim + 2, "filters")
    dtype = inexact(x.type.dtype, w.type.dtype)
    x, w = cast(x, dtype), cast(w, dtype)
    kernel = [as_length(n) for n in shape_tuple(w)[-ndim:]]
    dilated = [(k - 1) * d + 1 for k, d in zip(kernel, filter_dilation, strict=True)]
    pads = border_mode_to_pad(border_mode, ndim, dilated)
    rows = zip(shape_tuple(x)[2:], pads, dilated, subsample)
    counts = [(as_length(n) + p[0] + p[1] - k) // s + 1 for n, p, k, s in rows]
    w = FittingFilters(border_mode, subsample, filter_dilation)(w, x)
    x = pad(x, [(0, 0), (0, 0), *pads])
    for axis in range(ndim):
        starts = dimshuffle(arange(counts[axis]) * subsample[axis], 0, "x")
        x = take(x, starts + arange(kernel[axis]) * filter_dilation[axis], 2 + 2 * axis)
    return _product(x, w, ndim, num_groups)


def _tensor(x: TensorLike, rank: int, name: str) -> TensorVariable:
    x = as_tensor_variable(x)
    if x.type.ndim != rank:
        raise TypeError(f"Unshared {name} have {rank} axes; {x} has {x.type.ndim}.")
    return x


def _product(x: TensorVariable, w: TensorVariable, ndim: int, groups: int) -> TensorVariable:
    """The sums over windows (batch, channels, place, filter, place, filter, ...) times filters."""
    x = split_dims(x, (groups, length(w, ndim + 1)), 1)
    w = split_dims(w, (groups, length(w, 0) // groups), 0)
    places, inner = "ijk"[:ndim], "uvw"[:ndim]
    windows = "".join(p + k for p, k in zip(places, inner))
    found = einsum(f"bgc{windows},gf{places}c{inner}->bgf{places}", x, w)
    return join_dims(found, 1, 2)


def cotangent_of_images(
    g: TensorLike, filters: TensorLike, lengths: Sequence[Length], num_groups: int, **props: Any
) -> TensorVariable:
    """The cotangent of the images of `correlate`, whose last lengths are given."""
    g, w = as_tensor_variable(g), as_tensor_variable(filters)
    ndim = len(lengths)
    channels = as_length(length(w, ndim + 1)) * num_groups
    images = zeros((length(g, 0), channels, *lengths), inexact(g.type.dtype, w.type.dtype))
    return _pulled(correlate(images, conjugate(w), num_groups=num_groups, **props), images, g)


def cotangent_of_filters(
    images: TensorLike, g: TensorLike, lengths: Sequence[Length], num_groups: int, **props: Any
) -> TensorVariable:
    """The cotangent of the filters of `correlate`, whose last lengths are given."""
    x, g = as_tensor_variable(images), as_tensor_variable(g)
    channels = as_length(length(x, 1)) // num_groups
    shape = (length(g, 1), *shape_tuple(g)[2:], channels, *lengths)
    filters = zeros(shape, inexact(x.type.dtype, g.type.dtype))
    return _pulled(correlate(conjugate(x), filters, num_groups=num_groups, **props), filters, g)


def _pulled(out: TensorVariable, wrt: TensorVariable, g: TensorVariable) -> TensorVariable:
    found: TensorVariable = pullback(out, wrt, cast(g, out.type.dtype))
    return found
