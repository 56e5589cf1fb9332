"""Correlations of batches of images with filters, and their cotangents: bilinear ops."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from phintys.dims import Dim, DimLike, dim_max, dim_min, product
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.routines import Routine
from phintys.tensor.aliases import Arrays, Length, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import conjugate, match_dtype
from phintys.tensor.linalg.matrix_op import inexact
from phintys.tensor.nnet.im2col import correlate_images, pull_back_to_filters, pull_back_to_images
from phintys.tensor.reshape import join_dims, split_dims
from phintys.tensor.shape import shape_tuple
from phintys.tensor.static import as_length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

#: about how many elements of the matrix of an image are made at a time, so that they stay in cache
BLOCK = 1 << 16
#: how an image is extended: by numbers of zeros (before, after) along each axis, or as the length
#: of the filter requires
Border = str | tuple[tuple[int, int], ...]
BorderLike = str | int | Sequence[int | Sequence[int]]


def border_of(mode: BorderLike, ndim: int) -> Border:
    """A border mode in the form that ops have; ValueError if it is none.

    >>> border_of((1, (0, 2)), 2)
    ((1, 1), (0, 2))
    """
    if isinstance(mode, str):
        if mode not in ("valid", "full", "half"):
            raise ValueError(f"border_mode is 'valid', 'full', 'half' or numbers, not {mode!r}.")
        return ((0, 0),) * ndim if mode == "valid" else mode
    given = list(mode) if isinstance(mode, Sequence | np.ndarray) else [mode] * ndim
    pairs = [p if isinstance(p, Sequence | np.ndarray) else (p, p) for p in given]
    try:
        found = tuple([(index(before), index(after)) for before, after in pairs])
    except (TypeError, ValueError):  # no integers, or not two of them
        found = ()
    if len(found) != ndim or any(min(p) < 0 for p in found):
        raise ValueError(
            f"border_mode has for each of {ndim} axes a number of zeros that is not negative, "
            f"or two, not {mode!r}."
        )
    return found


def _integers(given: Sequence[int], name: str) -> tuple[int, ...]:
    try:
        return tuple([index(n) for n in given])
    except TypeError:
        raise TypeError(f"{name} has an integer for each axis, not {given!r}.") from None


def border_pad(border: Border, axis: int, dilated: Any) -> tuple[Any, Any]:
    """How many zeros are before and after an axis, for the dilated length of the filter."""
    if not isinstance(border, str):
        return border[axis]
    n = dilated - 1 if border == "full" else dilated // 2
    return n, n


class BaseCorrMM(Op):
    """Base class of a correlation and its two gradients.

    Images have the shape (batch, channels, lengths), filters (filters, channels / groups, lengths),
    results (batch, filters, lengths).

    Parameters
    ----------
    border_mode
        ``"valid"``; ``"full"``: as many zeros around the image as filters meet; ``"half"``: half
        the length of filters; a number of zeros, or for each axis a number or a pair
    subsample
        for each axis, the distance of positions of which there is a result
    filter_dilation
        for each axis, the distance of elements of the image that a filter meets
    num_groups
        into how many groups channels and filters are divided, which do not meet each other
    """

    # ----- class and static shape
    __props__ = ("border_mode", "subsample", "filter_dilation", "num_groups")
    handles_missing = False
    #: which of images, filters and results it computes
    position: int
    #: the position of an input whose first axis is the batch of the result
    images_at: int | None = None

    def __init__(
        self,
        border_mode: BorderLike = "valid",
        subsample: Sequence[int] = (1, 1),
        filter_dilation: Sequence[int] | None = None,
        num_groups: int = 1,
    ) -> None:
        self.subsample = _integers(subsample, "subsample")
        self.ndim = len(self.subsample)
        dilation = (1,) * self.ndim if filter_dilation is None else filter_dilation
        self.filter_dilation = _integers(dilation, "filter_dilation")
        self.border_mode: Border = border_of(border_mode, self.ndim)
        self.num_groups = index(num_groups)
        if not 1 <= self.ndim <= 3 or len(self.filter_dilation) != self.ndim:
            raise ValueError("subsample and filter_dilation have an entry for each of 1 to 3 axes.")
        if min(*self.subsample, *self.filter_dilation, self.num_groups) < 1:
            raise ValueError("subsample, filter_dilation and num_groups are positive.")

    def _node(self, given: Sequence[TensorLike], lengths: Sequence[Length]) -> Apply:
        found = [as_tensor_variable(x) for x in given]
        for x in found:
            if x.type.ndim != self.ndim + 2:
                raise TypeError(f"{self} takes {self.ndim + 2} axes; {x} has {x.type.ndim}.")
        dtype = inexact(*[x.type.dtype for x in found])
        return typed_node(self, [*found, *map(as_length, lengths)], dtype)

    def _result_lengths(self, s: ShapeContext, image: Shape, kernel: Shape) -> Shape:
        """The lengths of the result, from those of one channel of images and filters."""
        rests = self._rests(image, kernel)
        for axis, rest in enumerate(rests, 2):
            message = f"Along axis {axis}, filters are longer than padded images"
            s.check(rest, ">=", 0, message, early=True)
        return tuple(rest // step + 1 for rest, step in zip(rests, self.subsample))

    def _rests(self, image: Shape, kernel: Shape) -> Shape:
        """How much longer padded images are than filters, along each axis."""
        found: list[Dim] = []
        for axis, (n, k) in enumerate(zip(image, kernel)):
            dilated = (k - 1) * self.filter_dilation[axis] + 1
            before, after = border_pad(self.border_mode, axis, dilated)
            found.append(n + before + after - dilated)
        return tuple(found)

    def _same_lengths(self, s: ShapeContext, g: Shape, expected: Shape) -> None:
        for axis, (n, m) in enumerate(zip(g[2:], expected), 2):
            s.equal(n, m, f"Along axis {axis}, the result has another length")

    def _group_sizes(self, s: ShapeContext, channels: Dim, filters: Dim) -> None:
        for n, name in ((channels, "channels"), (filters, "filters")):
            if self.num_groups > 1:
                whole = n // self.num_groups * self.num_groups
                s.equal(n, whole, f"The {name} cannot be divided into {self.num_groups} groups")

    # ----- perform
    def _windows(self, x: np.ndarray, kernel: Sequence[int]) -> np.ndarray:
        """The elements of images that filters meet, a view: (batch, channels, results, filter)."""
        axes = tuple(range(2, 2 + self.ndim))
        dilated = [(k - 1) * d + 1 for k, d in zip(kernel, self.filter_dilation)]
        pads = [border_pad(self.border_mode, axis, n) for axis, n in enumerate(dilated)]
        padded = np.pad(x, [(0, 0), (0, 0), *pads])
        view = np.lib.stride_tricks.sliding_window_view(padded, dilated, axes)
        steps = [slice(None, None, n) for n in (*self.subsample, *self.filter_dilation)]
        return view[(slice(None), slice(None), *steps)]

    def _add_windows(self, windows: np.ndarray, out: np.ndarray, kernel: Sequence[int]) -> None:
        """Add the elements that filters meet, (batch, channels, results, filter), to images."""
        dilated = [(k - 1) * d + 1 for k, d in zip(kernel, self.filter_dilation)]
        pads = [border_pad(self.border_mode, axis, n) for axis, n in enumerate(dilated)]
        lengths = [n + before + after for n, (before, after) in zip(out.shape[2:], pads)]
        padded = np.zeros((*out.shape[:2], *lengths), out.dtype)
        counts = windows.shape[2 : 2 + self.ndim]
        for place in np.ndindex(*kernel):
            starts = [c * d for c, d in zip(place, self.filter_dilation)]
            part = [
                slice(start, start + (n - 1) * step + 1, step)
                for start, n, step in zip(starts, counts, self.subsample)
            ]
            padded[(..., *part)] += windows[(..., *place)]
        out[...] = padded[
            (..., *[slice(before, before + n) for n, (before, _) in zip(out.shape[2:], pads)])
        ]

    def _groups(self, x: np.ndarray, axis: int) -> list[np.ndarray]:
        return np.split(x, self.num_groups, axis)

    def _converted(self, node: Apply, inputs: Arrays) -> list[np.ndarray]:
        """The two tensors in the dtype of the result; ShapeError if shapes do not fit."""
        check_shapes(node, inputs)
        return [x.astype(node.outputs[0].type.dtype, copy=False) for x in inputs[:2]]

    # ----- derivative: the three ops are the parts of one trilinear form
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[k < 2] for k in range(len(node.inputs))]

    def _results(self, x: TensorVariable, w: TensorVariable, like: TensorVariable) -> Variable:
        return match_dtype(CorrMM(**self._props)(x, w), like)

    def _filters(self, x: TensorVariable, g: TensorVariable, like: TensorVariable) -> Variable:
        return match_dtype(CorrMM_gradWeights(**self._props)(x, g, *shape_tuple(like)[2:]), like)

    def _images(self, w: TensorVariable, g: TensorVariable, like: TensorVariable) -> Variable:
        return match_dtype(CorrMM_gradInputs(**self._props)(w, g, *shape_tuple(like)[2:]), like)

    @property
    def _props(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__props__}

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        """With the same filters for the whole batch, its images are those of one node."""
        k = self.images_at
        counts = [x.type.ndim - v.type.ndim for x, v in zip(batched_inputs, node.inputs)]
        if k is None or any(n for i, n in enumerate(counts) if i != k):
            return super().vectorize_node(node, *batched_inputs)
        x, n = batched_inputs[k], counts[k]
        given = list(batched_inputs)
        given[k] = join_dims(x, 0, n + 1)
        out = self(*given)
        found = split_dims(out, shape_tuple(x)[: n + 1], 0).owner
        assert found is not None
        return found

    # ----- lowering
    def _call(
        self,
        b: Builder[V],
        made: Routine,
        dtype: str,
        given: Sequence[V],
        shapes: Sequence[Shape],
        batch: Shape = (),
    ) -> V:
        """Call a routine with two inputs, for the shapes of images, filters and results."""
        image, kernel, result = shapes
        geometry = self._geometry(b, image[2:], kernel[2:], result[2:])
        geometry = b.broadcast_to(geometry, (*batch, *b.shape(geometry)))
        groups = self.num_groups
        rows, line = product(kernel[1:]), result[-1]
        block = dim_max(dim_min(product(result[2:-1]), BLOCK // dim_max(rows * line, 1)), 1)
        sizes = image[0], groups, image[1] // groups, kernel[0] // groups, rows, block
        (out,) = b.external(
            made,
            dtype,
            (*sizes, product(image[2:])),
            [geometry, *given],
            writes=[(dtype, shapes[self.position])],
            batch=batch,
            work=product(result) * rows,
            scratch=[(dtype, rows * block * line)],
        )
        return out

    def _geometry(self, b: Builder[V], image: Shape, kernel: Shape, result: Shape) -> V:
        """For each of three axes, as a vector: lengths, strides and the zeros before the image."""
        found: list[DimLike] = []
        for axis in range(self.ndim - 3, self.ndim):
            if axis < 0:
                found += [1, 1, 1, 1, 1, 0]
                continue
            dilation = self.filter_dilation[axis]
            before, _ = border_pad(self.border_mode, axis, (kernel[axis] - 1) * dilation + 1)
            found += [image[axis], kernel[axis], result[axis]]
            found += [self.subsample[axis], dilation, before]
        return b.vector(found)

    def __str__(self) -> str:
        props = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__props__)
        return f"{type(self).__name__}{{{props}}}"


class CorrMM(BaseCorrMM):
    """The correlation of images with filters; the parameters are those of `BaseCorrMM`."""

    # ----- class and static shape
    position = 2
    images_at = 0

    def make_node(self, img: TensorLike, kern: TensorLike) -> Apply:
        return self._node([img, kern], [])

    def shape_rule(self, s: ShapeContext, x: Shape, w: Shape) -> list[Shape]:
        s.equal(x[1], w[1] * self.num_groups, "Images and filters differ in channels")
        self._group_sizes(s, x[1], w[0])
        return [(x[0], w[0], *self._result_lengths(s, x[2:], w[2:]))]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        x, w = self._converted(node, inputs)
        windows = self._groups(self._windows(x, w.shape[2:]), 1)
        axes = [1, *range(2 + self.ndim, 2 + 2 * self.ndim)], [1, *range(2, 2 + self.ndim)]
        pairs = zip(windows, self._groups(w, 0))
        found = [np.moveaxis(np.tensordot(x, w, axes), -1, 1) for x, w in pairs]
        output_storage[0][0] = np.concatenate(found, 1)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x, w), (g,) = inputs, cotangents
        return [self._images(conjugate(w), g, x), self._filters(conjugate(x), g, w)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (x, w), (tx, tw) = inputs, tangents
        return [self(tx, w) + self(x, tw)]

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (out,), dtype = b.result_shapes(node, *inputs), node.outputs[0].type.dtype
        x, w = (b.cast(v, dtype) for v in inputs)
        return self._call(b, correlate_images, dtype, [x, w], [b.shape(x), b.shape(w), out])

    def lower_batched(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        """The correlations of a batch of images and filters, for `Blockwise`."""
        dtype, rank = node.outputs[0].type.dtype, self.ndim + 2
        batch = b.broadcast_shape([b.shape(v)[:-rank] for v in inputs])
        x, w = (b.broadcast_to(b.cast(v, dtype), (*batch, *b.shape(v)[-rank:])) for v in inputs)
        image, kernel = b.shape(x)[-rank:], b.shape(w)[-rank:]
        rests = zip(self._rests(image[2:], kernel[2:]), self.subsample)
        result = (image[0], kernel[0], *(rest // step + 1 for rest, step in rests))
        return self._call(b, correlate_images, dtype, [x, w], [image, kernel, result], batch)


class CorrMM_gradWeights(BaseCorrMM):
    """The cotangent of filters: images, cotangents of results, and the lengths of filters."""

    # ----- class and static shape
    position = 1

    def make_node(self, img: TensorLike, topgrad: TensorLike, *shape: Length) -> Apply:
        return self._node([img, topgrad], shape)

    def shape_rule(self, s: ShapeContext, x: Shape, g: Shape, *shape: Shape) -> list[Shape]:
        kernel = s.lengths(range(2, 2 + self.ndim))
        s.equal(x[0], g[0], "Images and results differ in number")
        self._group_sizes(s, x[1], g[1])
        self._same_lengths(s, g, self._result_lengths(s, x[2:], kernel))
        return [(g[1], x[1] // self.num_groups, *kernel)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        x, g = self._converted(node, inputs)
        windows = self._groups(self._windows(x, [int(n) for n in inputs[2:]]), 1)
        axes = [0, *range(2, x.ndim)]
        found = [np.tensordot(g, x, (axes, axes)) for x, g in zip(windows, self._groups(g, 1))]
        output_storage[0][0] = np.concatenate(found, 0)

    # ----- derivative
    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        (x, g, *shape), (t,) = inputs, cotangents
        found = [self._images(t, conjugate(g), x), self._results(conjugate(x), t, g)]
        return [*found, *[None] * len(shape)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (x, g, *shape), (tx, tg) = inputs, tangents[:2]
        return [self(tx, g, *shape) + self(x, tg, *shape)]

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (out,), dtype = b.result_shapes(node, *inputs), node.outputs[0].type.dtype
        x, g = (b.cast(v, dtype) for v in inputs[:2])
        return self._call(b, pull_back_to_filters, dtype, [x, g], [b.shape(x), out, b.shape(g)])


class CorrMM_gradInputs(BaseCorrMM):
    """The cotangent of images: filters, cotangents of results, and the lengths of images."""

    # ----- class and static shape
    position = 0
    images_at = 1

    def make_node(self, kern: TensorLike, topgrad: TensorLike, *shape: Length) -> Apply:
        return self._node([kern, topgrad], shape)

    def shape_rule(self, s: ShapeContext, w: Shape, g: Shape, *shape: Shape) -> list[Shape]:
        image = s.lengths(range(2, 2 + self.ndim))
        s.equal(w[0], g[1], "Filters and results differ in number")
        self._group_sizes(s, w[1] * self.num_groups, w[0])
        self._same_lengths(s, g, self._result_lengths(s, image, w[2:]))
        return [(g[0], w[1] * self.num_groups, *image)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        w, g = self._converted(node, inputs)
        lengths = [int(n) for n in inputs[2:]]
        out = np.zeros((len(g), w.shape[1] * self.num_groups, *lengths), g.dtype)
        pairs = zip(self._groups(w, 0), self._groups(g, 1))
        found = np.concatenate([np.tensordot(g, w, (1, 0)) for w, g in pairs], self.ndim + 1)
        found = np.moveaxis(found, self.ndim + 1, 1)  # batch, channels, results, filter
        self._add_windows(found, out, w.shape[2:])
        output_storage[0][0] = out

    # ----- derivative
    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        (w, g, *shape), (t,) = inputs, cotangents
        found = [self._filters(t, conjugate(g), w), self._results(t, conjugate(w), g)]
        return [*found, *[None] * len(shape)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (w, g, *shape), (tw, tg) = inputs, tangents[:2]
        return [self(tw, g, *shape) + self(w, tg, *shape)]

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (out,), dtype = b.result_shapes(node, *inputs), node.outputs[0].type.dtype
        w, g = (b.cast(v, dtype) for v in inputs[:2])
        return self._call(b, pull_back_to_images, dtype, [w, g], [out, b.shape(w), b.shape(g)])
