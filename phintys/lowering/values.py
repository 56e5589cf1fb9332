"""Tensor-level SSA values: the intermediate form between the graph and the Program.

The `Builder` makes them, ``fuse`` and ``assemble`` turn them into steps.  A value has a dtype, a
shape of `Dim` and arguments that were made before it:

===============  ==================================================================
`Source`         an array in a slot: an input, a constant, a result of a call
`Literal`        a number
`Length`         a `Dim` as a 0-d int64
`Index`          the position along one axis
`Map`            scalar instructions applied elementwise
`Gather`         elements of an array at computed positions
`Reduce`         a reduction over axes
`View`           an affine view: permute, slice, broadcast, diagonal
`Reshape`        the elements of an array in C order with another shape
`Empty`          uninitialised memory
`Update`         an array with a region, or computed positions, set or added to
`BlasCall`       a matrix product
`PythonCall`     a call of a Python function
`LoopCall`       a Program that runs repeatedly
`BranchCall`     one of two Programs
===============  ==================================================================

Values are expressions.  Whether a value is stored in memory, and where, is decided by ``fuse`` and
``memory``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from phintys.dims import ONE, ZERO, Dim
from phintys.lowering.program import Inst, Program, Slot

Shape = tuple[Dim, ...]


class Value:
    """An array, or a Python object (then ``dtype`` is None), that the function computes.

    ``content``: the integers of a 0-d or 1-d integer value as Dims, if they are known.  Shape
    arithmetic in the graph is propagated through it.
    """

    __slots__ = ("args", "content", "dtype", "id", "origin", "shape")

    #: how many of the first arguments must be in memory; None: all
    from_memory: ClassVar[int | None] = 0

    def __init__(self, dtype: str | None, shape: Shape, args: tuple[Value, ...] = ()):
        self.dtype = dtype
        self.shape = shape
        self.args = args
        self.content: tuple[Dim, ...] | None = None
        self.origin: Any = None
        self.id = -1  # set by the Builder: creation order, a topological order

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def dims(self) -> Shape:
        """All lengths, offsets and steps that the value mentions."""
        return self.shape

    def __repr__(self) -> str:
        lengths = ", ".join(d.render() for d in self.shape)
        return f"<{type(self).__name__} {self.id}: {self.dtype}[{lengths}]>"


class Source(Value):
    """An array or object in a slot.  Its argument, if any, is the call that writes the slot."""

    __slots__ = ("slot",)

    def __init__(self, slot: Slot, args: tuple[Value, ...] = ()):
        super().__init__(slot.dtype, slot.shape, args)
        self.slot = slot


class Literal(Value):
    """A 0-d constant, inlined into the kernels that use it."""

    __slots__ = ("number",)

    def __init__(self, number: Any, dtype: str):
        super().__init__(dtype, ())
        self.number = number


class Length(Value):
    """A `Dim` as 0-d int64."""

    __slots__ = ("dim",)

    def __init__(self, dim: Dim):
        super().__init__("int64", ())
        self.dim = dim
        self.content = (dim,)

    def dims(self) -> Shape:
        return (self.dim,)


class Index(Value):
    """The int64 position along one axis of the shape."""

    __slots__ = ("axis",)

    def __init__(self, axis: int, shape: Shape):
        super().__init__("int64", shape)
        self.axis = axis


class Map(Value):
    """Scalar instructions applied elementwise.

    ``body`` is a kernel body in which positions 0, 1, ... are the arguments; ``result`` is the
    position of the result.  Arguments have the rank of the value; an axis of constant length 1
    broadcasts.
    """

    __slots__ = ("body", "result")

    def __init__(
        self, dtype: str, shape: Shape, args: tuple[Value, ...], body: tuple[Inst, ...], result: int
    ):
        super().__init__(dtype, shape, args)
        self.body = body
        self.result = result


class Gather(Value):
    """Elements of ``args[0]`` at positions ``args[1:]`` along ``axes``.

    The axes of the result are those of the broadcast positions (``index_ndim`` axes), then the
    other axes of the array, in order.
    """

    __slots__ = ("axes", "index_ndim")
    from_memory = 1

    def __init__(
        self, x: Value, indices: tuple[Value, ...], axes: tuple[int, ...], shape: Shape, ndim: int
    ):
        super().__init__(x.dtype, shape, (x, *indices))
        self.axes = axes
        self.index_ndim = ndim


class Reduce(Value):
    """The reduction ``kind`` of the argument over ``axes`` (sorted), which are dropped."""

    __slots__ = ("axes", "kind")

    def __init__(self, kind: str, x: Value, axes: tuple[int, ...], dtype: str):
        shape = tuple(d for i, d in enumerate(x.shape) if i not in axes)
        super().__init__(dtype, shape, (x,))
        self.kind = kind
        self.axes = axes


class View(Value):
    """An affine view of the argument.

    Element ``i`` is element ``j`` of the argument, with ``j[k] = starts[k] + steps[k] *
    i[axes[k]]``; ``j[k] = starts[k]`` if ``axes[k]`` is None.
    """

    __slots__ = ("axes", "starts", "steps")

    def __init__(
        self,
        x: Value,
        shape: Shape,
        axes: tuple[int | None, ...],
        starts: Shape | None = None,
        steps: Shape | None = None,
    ):
        super().__init__(x.dtype, shape, (x,))
        self.axes = axes
        self.starts = starts or (ZERO,) * len(axes)
        self.steps = steps or (ONE,) * len(axes)

    def dims(self) -> Shape:
        return (*self.shape, *self.starts, *self.steps)


class Reshape(Value):
    """The argument's elements, in C order, with another shape of the same size."""

    __slots__ = ()
    from_memory = 1


class Empty(Value):
    """Uninitialised memory, to be written by `Update` values."""

    __slots__ = ()


class Update(Value):
    """``args[0]`` with ``args[1]`` written (mode ``set``) or added (mode ``add``) to a region.

    Element ``i`` of the region, whose shape is ``region``, is element ``j`` of the array, with
    ``j[k] = starts[k] + steps[k] * i[axes[k]]``.  Along an axis in ``gathered`` ``j[k]`` is instead
    an element of one of ``args[2:]`` (a scatter; as in `Gather`).  ``args[1:]`` broadcast against
    the region.
    """

    __slots__ = ("axes", "gathered", "mode", "region", "starts", "steps")
    from_memory = 1

    def __init__(
        self,
        base: Value,
        value: Value,
        mode: str,
        region: Shape,
        axes: tuple[int | None, ...],
        starts: Shape,
        steps: Shape,
        gathered: tuple[int, ...] = (),
        indices: tuple[Value, ...] = (),
    ):
        super().__init__(base.dtype, base.shape, (base, value, *indices))
        self.mode = mode
        self.region = region
        self.axes = axes
        self.starts = starts
        self.steps = steps
        self.gathered = gathered

    def dims(self) -> Shape:
        return (*self.shape, *self.region, *self.starts, *self.steps)


class BlasCall(Value):
    """The result of a BLAS `Call`.

    ``args``: the two factors, the array to add to if ``has_target``, then ``alpha`` and ``beta``
    if they are values.
    """

    __slots__ = ("alpha", "batch", "beta", "has_target", "name", "sizes")
    from_memory = None

    def __init__(
        self,
        name: str,
        factors: tuple[Value, ...],
        shape: Shape,
        sizes: Shape,
        batch: Shape = (),
        target: Value | None = None,
        alpha: float | Value = 1.0,
        beta: float | Value = 0.0,
    ):
        extra = [v for v in (target, alpha, beta) if isinstance(v, Value)]
        super().__init__(factors[0].dtype, shape, (*factors, *extra))
        self.name = name
        self.sizes = sizes
        self.batch = batch
        self.has_target = target is not None
        self.alpha = alpha
        self.beta = beta

    def dims(self) -> Shape:
        return (*self.shape, *self.sizes, *self.batch)


class LoopCall(Value):
    """A `Loop`; its results are `Source` values.

    ``args``: initial states, slices, constants, in this order.  ``finals`` are the slots of the
    final states; ``stacked`` pairs outputs of the body with the slots that they are stacked in.
    """

    __slots__ = ("body", "finals", "length", "n_slices", "stacked", "until")
    from_memory = None

    def __init__(
        self,
        length: Dim,
        body: Program,
        args: tuple[Value, ...],
        n_slices: int,
        finals: tuple[Slot, ...],
        stacked: tuple[tuple[int, Slot], ...],
        until: int | None,
    ):
        super().__init__(None, (), args)
        self.length = length
        self.body = body
        self.n_slices = n_slices
        self.finals = finals
        self.stacked = stacked
        self.until = until

    def dims(self) -> Shape:
        slots = (*self.finals, *(slot for _, slot in self.stacked))
        return (self.length, *(d for slot in slots for d in slot.shape))


class BranchCall(Value):
    """A `Branch` on ``args[0]``; its results are `Source` values."""

    __slots__ = ("orelse", "outputs", "then")
    from_memory = None

    def __init__(
        self,
        then: Program,
        orelse: Program,
        args: tuple[Value, ...],
        outputs: tuple[Slot, ...],
    ):
        super().__init__(None, (), args)
        self.then = then
        self.orelse = orelse
        self.outputs = outputs

    def dims(self) -> Shape:
        return tuple(d for slot in self.outputs for d in slot.shape)


class PythonCall(Value):
    """A call of ``function``; its results are `Source` values."""

    __slots__ = ("function", "name", "outputs")
    from_memory = None

    def __init__(
        self, function: Any, args: tuple[Value, ...], outputs: tuple[Slot, ...], name: str
    ):
        super().__init__(None, (), args)
        self.function = function
        self.outputs = outputs
        self.name = name


#: values that become a step of their own; all their arguments must be in memory
CALLS = (BlasCall, PythonCall, LoopCall, BranchCall)


def needed_in_memory(value: Value) -> tuple[Value, ...]:
    """The arguments that must be in memory."""
    return value.args[: value.from_memory]
