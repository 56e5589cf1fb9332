"""Repeating, tiling and rolling of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.errors import RaggedError
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, ShapeLike, TensorLike
from phintys.tensor.axes import atleast_Nd, expand_dims
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.counted import lower_repeated_positions
from phintys.tensor.creation import alloc
from phintys.tensor.elemwise import zeros_of
from phintys.tensor.index import inc_subtensor, remainder
from phintys.tensor.join import join
from phintys.tensor.ranges import arange
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.reshape import flatten, reshape
from phintys.tensor.shape import length, normalize_axis_tuple, shape_tuple
from phintys.tensor.static import as_length, shape_entries
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["repeat", "roll", "tile"]


class Repeat(Op):
    """Repeat each element along an axis.  Inputs: the tensor, and a vector of counts.

    Parameters
    ----------
    axis
        along which to repeat, not negative
    """

    # ----- class and static shape
    __props__ = ("axis",)
    is_linear = True
    handles_missing = False

    def __init__(self, axis: int) -> None:
        self.axis = int(axis)

    def make_node(self, x: TensorLike, repeats: TensorLike) -> Apply:
        x, repeats = as_tensor_variable(x), as_tensor_variable(repeats)
        if repeats.type.ndim != 1 or not dtypes.is_discrete(repeats.type.dtype):
            raise TypeError(f"The numbers of repeats are integers; {repeats} is {repeats.type}.")
        return typed_node(self, [x, repeats], x.type)

    def shape_rule(self, s: ShapeContext, x: Shape, repeats: Shape) -> list[Shape]:
        message = f"There is not one count for each element of axis {self.axis}"
        s.equal(x[self.axis], repeats[0], message)
        counts = s.inputs[1]
        total = s.unknown(lambda x, n: n.sum(dtype=int), lambda *_: sum_over(counts, dtype="int64"))
        return [tuple([total if i == self.axis else n for i, n in enumerate(x)])]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)  # NumPy repeats a single count
        x, counts = inputs
        counts = counts.astype("int64", copy=False)  # NumPy refuses uint64
        output_storage[0][0] = np.repeat(x, counts, axis=self.axis)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        (x, repeats), (g,) = inputs, cotangents
        source = Repeat(0)(arange(length(x, self.axis)), repeats)
        where = (*[slice(None)] * self.axis, source)
        return [inc_subtensor(zeros_of(x)[where], g), None]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        x, repeats = batched_inputs
        if repeats.type.ndim != 1:
            raise RaggedError("The numbers of repeats cannot differ within a batch.")
        batch = x.type.ndim - node.inputs[0].type.ndim
        return Repeat(self.axis + batch).make_node(x, repeats)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        x, counts = inputs
        message = f"There is not one count for each element of axis {self.axis}"
        b.check(b.length(x, self.axis), "==", b.length(counts, 0), message)
        out = b.gather(x, [lower_repeated_positions(b, counts)], [self.axis])
        return b.permute(out, [*range(1, self.axis + 1), 0, *range(self.axis + 1, x.ndim)])


def repeat(a: TensorLike, repeats: TensorLike, axis: int | None = None) -> TensorVariable:
    """Each element along an axis repeated.

    Parameters
    ----------
    a : tensor
    repeats : a number, or an integer vector with one number for each element along the axis; a
        vector of static length 1 counts as a number
    axis : along which to repeat; None flattens ``a``

    ShapeError if there is not one number for each element, ValueError if one is negative.

    >>> import phintys.tensor as pt
    >>> pt.repeat([1, 2], 2).eval()
    array([1, 1, 2, 2])
    """
    a, repeats = as_tensor_variable(a), as_tensor_variable(repeats)
    if repeats.type.ndim > 1:
        raise ValueError(f"The numbers of repeats are a vector; {repeats} is {repeats.type}.")
    if not dtypes.is_discrete(repeats.type.dtype):
        raise TypeError(f"The numbers of repeats are integers; {repeats} is {repeats.type}.")
    if axis is None:
        a, axis = flatten(a), 0
    (axis,) = normalize_axis_tuple(axis, a.type.ndim)
    if repeats.type.ndim == 1 and repeats.type.shape != (1,):
        return Repeat(axis)(a, repeats)
    times = as_length(repeats if repeats.type.ndim == 0 else repeats[0])
    lengths = list(shape_tuple(a))
    wide = [*lengths[: axis + 1], times, *lengths[axis + 1 :]]
    lengths[axis] = lengths[axis] * times
    return reshape(alloc(expand_dims(a, axis + 1), *wide), lengths)


def tile(A: TensorLike, reps: ShapeLike) -> TensorVariable:
    """The whole tensor repeated along axes, like ``numpy.tile``.

    >>> import phintys.tensor as pt
    >>> pt.tile([1, 2], 2).eval()
    array([1, 2, 1, 2])
    """
    times = [as_length(n) for n in shape_entries(reps, "number of repeats")]
    a = atleast_Nd(A, n=len(times))
    times = [as_length(1)] * (a.type.ndim - len(times)) + times
    lengths = shape_tuple(a)
    wide = [n for pair in zip(times, lengths, strict=True) for n in pair]
    apart = expand_dims(a, [2 * i for i in range(a.type.ndim)])
    together = [t * n for t, n in zip(times, lengths, strict=True)]
    return reshape(alloc(apart, *wide), together)


def roll(
    x: TensorLike,
    shift: TensorLike | Sequence[TensorLike],
    axis: int | Sequence[int] | None = None,
) -> TensorVariable:
    """Elements shifted along one axis or several, wrapping around at the end.

    ``axis`` None rolls the flattened tensor.  One shift is for all axes, and several shifts along
    one axis are added; ValueError if their numbers differ otherwise.

    >>> import phintys.tensor as pt
    >>> pt.roll([1, 2, 3], 1).eval()
    array([3, 1, 2])
    """
    x = as_tensor_variable(x)
    if axis is None:
        return reshape(roll(flatten(x), shift, 0), shape_tuple(x))
    axes = list(axis) if isinstance(axis, Sequence) else [axis]
    shifts = _shifts(shift, len(axes))
    if len(axes) == 1:
        axes *= len(shifts)
    for n, along in zip(shifts * len(axes) if len(shifts) == 1 else shifts, axes, strict=True):
        x = _rolled(x, n, normalize_axis_tuple(along, x.type.ndim)[0])
    return x


def _shifts(shift: TensorLike | Sequence[TensorLike], count: int) -> list[TensorLike]:
    """The shifts of `roll` along ``count`` axes; a vector of unknown length has one for each."""
    if isinstance(shift, Sequence):
        return list(shift)
    found = as_tensor_variable(shift)
    if found.type.ndim == 0:
        return [found]
    if count == 1:
        return [sum_over(found)]
    known = found.type.shape[0]
    return [found[k] for k in range(count if known is None else known)]


def _rolled(x: TensorVariable, shift: TensorLike, axis: int) -> TensorVariable:
    """`roll` along one axis."""
    n = length(x, axis)
    start = n - remainder(as_tensor_variable(shift), n)
    before = [slice(None)] * axis
    return join(axis, x[(*before, slice(start, None))], x[(*before, slice(None, start))])
