"""Tensor-level SSA values: the intermediate form between the graph and the Program.

The `Builder` makes them, ``fuse`` and ``assemble`` turn them into steps.  A value has a dtype, a
shape of `Dim` and arguments that were made before it:

===============  ==================================================================
`Source`         an array in a slot: an input, a constant, a result of a call
`Literal`        a number; `Arbitrary`: any number
`Length`         a `Dim` as a 0-d int64
`Empty`          uninitialised memory
`Reshape`        the elements of an array in C order with another shape
`View`           an affine view: permute, slice, broadcast, diagonal
``elementwise``  `Index`: the position along one axis; `Map`: scalar instructions applied
                 elementwise; `Gather`: elements of an array at computed positions
``reduce``       `Reduce`: a reduction over axes
``ragged``       `RaggedReduce`, `RaggedUpdate`: loops over segments of flat data
``updates``      `Update`: an array with a region, or computed positions, set or added to
``calls``        `BlasCall`: a matrix product; `ScanCall`: running reductions along an axis;
                 `ExternalCall`: a call of a routine; `PythonCall`: a call of a Python function;
                 `LoopCall`: a Program that runs repeatedly; `BranchCall`: one of two Programs
===============  ==================================================================

Values are expressions.  Whether a value is stored in memory, and where, is decided by ``fuse`` and
``memory``.  These name no kind of value: a kind is a class that says, in the methods of `Value`,
where it is placed, what it costs and what it emits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from phintys.dims import ONE, ZERO, Dim
from phintys.lowering.clusters import Axes, Cluster, Place, Shape
from phintys.lowering.program import Slot, Step
from phintys.lowering.protocols import Fusion, KernelWriter, Layouts, Point
from phintys.scalar.dtypes import is_complex, real_of


class Value:
    """An array, or a Python object (then ``dtype`` is None), that the function computes.

    ``content``: the integers of a 0-d or 1-d integer value as Dims, if they are known.  Shape
    arithmetic in the graph is propagated through it.

    A kind of value is a subclass.  It overrides the facts and methods below whose defaults, which
    are those of an array that is in memory, do not hold for it.
    """

    __slots__ = ("args", "content", "dtype", "id", "origin", "shape")

    #: how many of the first arguments must be in memory; None: all
    from_memory: ClassVar[int | None] = 0
    #: whether it is a number that is written into every kernel that uses it, and has no slot
    is_number: ClassVar[bool] = False
    #: whether any kernel can compute single elements of it from elements of its arguments
    is_elementwise: ClassVar[bool] = False
    #: whether it is in memory without a kernel that stores it
    is_array: ClassVar[bool] = False
    #: whether kernels compute it
    in_kernels: ClassVar[bool] = False
    #: whether its elements are undefined
    is_undefined: ClassVar[bool] = False
    #: whether the code that computes an element fails where a position is out of range
    can_fail: ClassVar[bool] = False
    #: whether it is computed even if no output needs it
    always_runs: ClassVar[bool] = False
    #: whether a kernel that is too large can be split before the value is written
    starts_kernel: ClassVar[bool] = True

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

    def __repr__(self) -> str:
        lengths = ", ".join(d.render() for d in self.shape)
        return f"<{type(self).__name__} {self.id}: {self.dtype}[{lengths}]>"

    # ------------------------------------------------------------------ dependences
    def needed_in_memory(self) -> tuple[Value, ...]:
        """The arguments that must be in memory."""
        return self.args[: self.from_memory]

    def dims(self) -> Shape:
        """All lengths, offsets and steps that the value mentions."""
        return self.shape

    def dims_of_read(self) -> Iterable[Dim]:
        """All lengths, offsets and steps that the code of a value that reads this one mentions."""
        return self.shape

    def early_arguments(self) -> tuple[Value, ...]:
        """Arguments to be computed before everything else.

        The value can then be in any cluster, although it needs them in memory.
        """
        return ()

    # -------------------------------------------------------------------- elements
    @property
    def base(self) -> Value:
        """The value whose elements these are: that which a view is a view of, else this one."""
        return self

    @property
    def converted(self) -> Value | None:
        """The value whose elements these are, all of them, converted without loss; often None."""
        return None

    def axis_of(self, axis: int) -> int | None:
        """The axis along which an axis of the base varies."""
        return axis

    def varying_axes(self) -> set[int]:
        """The axes along which the value is neither broadcast nor of length 1."""
        return {k for k, d in enumerate(self.shape) if d.value != 1}

    def aligned(self, fusion: Fusion, axes: Axes) -> Axes | None:
        """The axes of a space that the axes of the base vary with.

        ``axes`` are those of the value.  None if an offset or a step lies between it and its base.
        """
        shape = fusion.shape(self)
        return tuple(None if d.value == 1 else a for d, a in zip(shape, axes, strict=True))

    def is_uniform(self) -> bool:
        """Whether all elements are surely the same number."""
        return False

    # --------------------------------------------------------------- fusion and cost
    def loops(self) -> Shape:
        """The lengths of the loops that compute the value."""
        return self.shape

    def cost(self) -> int:
        """The cost of one element without its arguments, relative to an addition."""
        return 1

    def weight(self) -> int:
        """The number of instructions in a kernel (estimate)."""
        return 2

    def place(self, fusion: Fusion) -> None:
        """Assign the value to a cluster, or as a call to a stage; its arguments come before."""

    def inner_dims(self, place: Place) -> int | None:
        """How many inner dimensions its cluster must have for values there to use the result.

        0: any number; None: only other clusters can use it, from memory.
        """
        return None

    def settle(self, fusion: Fusion, users: set[Cluster]) -> Iterable[Cluster]:
        """Decide whether the value is stored; return the clusters that compute it.

        ``users`` are the clusters that use it; they come before.
        """
        if self.is_array:
            fusion.stored.add(self.id)
        return ()

    # ---------------------------------------------------------------------- storage
    @property
    def owner(self) -> Value:
        """The value whose slot this one is in: itself, or that which it is a reshape of."""
        return self

    def own_slot(self) -> Slot | None:
        """The slot that the value was made with, if any."""
        return None

    def initial(self) -> Value | None:
        """The argument that is copied into the value's slot before the value is computed."""
        return None

    def address(self, layouts: Layouts) -> tuple[Slot, Dim, Shape]:
        """The slot, offset and strides of the value, which is in memory."""
        return layouts.slot(self), ZERO, layouts.strides(layouts.fusion.shape(self))

    # --------------------------------------------------------------------- emission
    def uses(self, writer: KernelWriter, index: Point) -> Sequence[tuple[Value, Point]]:
        """The values, with their indices, that the instructions for an element use."""
        return ()

    def emit(self, writer: KernelWriter, index: Point, args: list[int]) -> int:
        """Emit the element at an index; ``args`` are the positions of what it `uses`."""
        raise NotImplementedError(f"no kernel computes {self}")

    def write(self, writer: KernelWriter, place: Place) -> None:
        """Emit the computation of the value into its slot."""
        raise NotImplementedError(f"no kernel computes {self}")

    def call_steps(self, layouts: Layouts) -> list[Step]:
        """The steps of a call."""
        raise NotImplementedError(f"{self} is not a call")


class Composite:
    """A value that consists of several arrays (see `Type.parts`): its parts, in order."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Value):
        self.parts = parts

    def __repr__(self) -> str:
        return f"<Composite of {', '.join(map(repr, self.parts))}>"


class Source(Value):
    """An array or object in a slot.  Its argument, if any, is the call that writes the slot."""

    __slots__ = ("slot",)
    is_array = True

    def __init__(self, slot: Slot, args: tuple[Value, ...] = ()):
        super().__init__(slot.dtype, slot.shape, args)
        self.slot = slot

    def own_slot(self) -> Slot:
        return self.slot


class Literal(Value):
    """A 0-d constant, inlined into the kernels that use it."""

    __slots__ = ("number",)
    is_number = True

    def __init__(self, number: Any, dtype: str):
        super().__init__(dtype, ())
        self.number = number

    def emit(self, writer: KernelWriter, index: Point, args: list[int]) -> int:
        draft, dtype = writer.draft, str(self.dtype)
        if not is_complex(dtype):
            return draft.emit("const", dtype, (), self.number)
        parts = (self.number.real, self.number.imag)
        return draft.emit(
            "complex", dtype, tuple([draft.emit("const", real_of(dtype), (), x) for x in parts])
        )


class Arbitrary(Literal):
    """An element that is not initialised: where it is read, the number, else nothing."""

    __slots__ = ()


class Length(Value):
    """A `Dim` as 0-d int64."""

    __slots__ = ("dim",)
    is_number = True

    def __init__(self, dim: Dim):
        super().__init__("int64", ())
        self.dim = dim
        self.content = (dim,)

    def dims(self) -> Shape:
        return (self.dim,)

    def dims_of_read(self) -> Shape:
        return (self.dim,)

    def emit(self, writer: KernelWriter, index: Point, args: list[int]) -> int:
        return writer.draft.dim(writer.find(self.dim))


class Empty(Value):
    """Uninitialised memory, to be written by `Update` values."""

    __slots__ = ()
    is_array = True
    is_undefined = True


class Reshape(Value):
    """The argument's elements, in C order, with another shape of the same size."""

    __slots__ = ()
    from_memory = 1
    is_array = True

    @property
    def owner(self) -> Value:
        return self.args[0].owner


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
        axes: Axes,
        starts: Shape | None = None,
        steps: Shape | None = None,
    ):
        super().__init__(x.dtype, shape, (x,))
        self.axes = axes
        self.starts = starts or (ZERO,) * len(axes)
        self.steps = steps or (ONE,) * len(axes)

    def dims(self) -> Shape:
        return (*self.shape, *self.starts, *self.steps)

    def dims_of_read(self) -> Shape:
        return (*self.dims(), *self.base.dims())

    @property
    def base(self) -> Value:
        return self.args[0]

    @property
    def converted(self) -> Value | None:
        lengths = [1 if a is None else self.shape[a].value for a in self.axes]
        is_whole = lengths == [d.value for d in self.base.shape] and None not in lengths
        is_permuted = is_whole and all(d.value in (1, -1) for d in self.steps)
        return self.base if is_permuted else None

    def axis_of(self, axis: int) -> int | None:
        return self.axes[axis]

    def varying_axes(self) -> set[int]:
        return {a for a in self.axes if a is not None}

    def aligned(self, fusion: Fusion, axes: Axes) -> Axes | None:
        result: list[int | None] = []
        for axis, start, step in zip(self.axes, self.starts, self.steps):
            if start.value != 0 or (axis is not None and step.value != 1):
                return None
            result.append(None if axis is None else axes[axis])
        return tuple(result)

    def address(self, layouts: Layouts) -> tuple[Slot, Dim, Shape]:
        slot, offset, base_strides = self.base.address(layouts)
        strides = [ZERO] * self.ndim
        find = layouts.builder.canonical
        for stride, axis, start, step in zip(base_strides, self.axes, self.starts, self.steps):
            offset = offset + find(start) * stride
            if axis is not None:
                strides[axis] = strides[axis] + find(step) * stride
        return slot, offset, tuple(strides)

    def uses(self, writer: KernelWriter, index: Point) -> Sequence[tuple[Value, Point]]:
        return [(self.base, writer.moved(index, self.axes, self.starts, self.steps))]

    def emit(self, writer: KernelWriter, index: Point, args: list[int]) -> int:
        return args[0]
