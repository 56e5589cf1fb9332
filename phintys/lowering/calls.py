"""Values that become a step of their own; all their arguments must be in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from phintys.dims import ONE, ZERO, Dim, product
from phintys.graph.builder import Window
from phintys.lowering.clusters import Cluster
from phintys.lowering.program import (
    Branch,
    Call,
    Copy,
    Draw,
    External,
    Loop,
    Operand,
    Program,
    Python,
    Rows,
    Scan,
    Slot,
    Step,
)
from phintys.lowering.protocols import Fusion, Layouts
from phintys.lowering.values import Shape, Value
from phintys.routines import Routine


class CallValue(Value):
    """A value that is a step of its own."""

    __slots__ = ()
    from_memory = None
    is_array = True

    def place(self, fusion: Fusion) -> None:
        fusion.stages[self.id] = fusion.ready_args(self)

    def settle(self, fusion: Fusion, users: set[Cluster]) -> Iterable[Cluster]:
        fusion.stored.add(self.id)
        fusion.calls.append(self)
        return ()

    def call_steps(self, layouts: Layouts) -> list[Step]:
        source = self.initial()
        copies = [] if source is None else [Copy(layouts.slot(source), layouts.slot(self))]
        return [*copies, self.step(layouts)]

    def step(self, layouts: Layouts) -> Step:
        """The step that computes the value."""
        raise NotImplementedError


class BlasCall(CallValue):
    """The result of a BLAS `Call`.

    ``args``: the two factors, the array to add to if ``has_target``, then ``alpha`` and ``beta``
    if they are values.
    """

    __slots__ = ("alpha", "batch", "beta", "has_target", "name", "sizes")

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

    def initial(self) -> Value | None:
        return self.args[2] if self.has_target else None

    def step(self, layouts: Layouts) -> Step:
        find = layouts.builder.canonical
        sizes, batch = tuple(map(find, self.sizes)), tuple(map(find, self.batch))
        factors = [_operand(layouts, a, len(batch)) for a in self.args[:2]]
        operands = (_operand(layouts, self), *factors)
        if self.name == "gemm":
            sizes, batch, operands = _as_fewer(sizes, batch, operands)
        alpha, beta = (_factor(layouts, f) for f in (self.alpha, self.beta))
        return Call(self.name, str(self.dtype), sizes, operands, alpha, beta, batch)


def _as_fewer(
    sizes: Shape, batch: Shape, operands: tuple[Operand, ...]
) -> tuple[Shape, Shape, tuple[Operand, ...]]:
    """Products with one right factor as products of more rows, if the rows are evenly spaced."""
    while batch:
        axis, rows = len(batch) - 1, operands[:2]
        shared = operands[2].strides[axis].value == 0
        if not shared or any(o.strides[axis] is not sizes[0] * o.strides[axis + 1] for o in rows):
            break
        sizes, batch = (batch[-1] * sizes[0], *sizes[1:]), batch[:-1]
        operands = tuple(
            [o._replace(strides=(*o.strides[:axis], *o.strides[axis + 1 :])) for o in operands]
        )
    return sizes, batch, operands


class ScanCall(CallValue):
    """The running reductions ``kind`` of the argument along an axis."""

    __slots__ = ("axis", "kind")

    def __init__(self, kind: str, x: Value, axis: int):
        super().__init__(x.dtype, x.shape, (x,))
        self.kind = kind
        self.axis = axis

    def step(self, layouts: Layouts) -> Step:
        order = [*(k for k in range(self.ndim) if k != self.axis), self.axis]
        shape = layouts.fusion.shape(self)
        operands: list[Operand] = []
        for value in (self, self.args[0]):
            slot, offset, strides = value.address(layouts)
            operands.append(Operand(slot, tuple(strides[k] for k in order), offset))
        target, source = operands
        return Scan(self.kind, tuple(shape[k] for k in order), (target, source))


class ExternalCall(CallValue):
    """A call of a routine; its results are `Source` values.

    ``args``: what it reads, then the initial values of what it updates.  ``results`` are the slots
    of what it updates and writes, ``scratch`` those of workspaces.
    """

    __slots__ = ("batch", "dtype_of_routine", "integers", "results", "routine", "scratch", "work")

    def __init__(
        self,
        routine: Routine,
        dtype: str,
        integers: Shape,
        args: tuple[Value, ...],
        results: tuple[Slot, ...],
        batch: Shape,
        work: Dim,
        scratch: tuple[Slot, ...] = (),
    ):
        super().__init__(None, (), args)
        self.routine = routine
        self.dtype_of_routine = dtype
        self.integers = integers
        self.results = results
        self.batch = batch
        self.work = work
        self.scratch = scratch

    def dims(self) -> Shape:
        lengths = (d for slot in (*self.results, *self.scratch) for d in slot.shape)
        return (*self.integers, *self.batch, self.work, *lengths)

    def call_steps(self, layouts: Layouts) -> list[Step]:
        """Copies of the initial values, then the call."""
        find = layouts.builder.canonical
        writes = len(self.results) + len(self.scratch)
        reads = self.routine.count_of_arrays - writes
        initial = self.args[reads:]
        operands: list[Operand] = []
        for arg in self.args[:reads]:
            slot, offset, strides = arg.address(layouts)
            strides = self._along_batch(strides, tuple(map(find, arg.shape)))
            operands.append(Operand(slot, strides, offset))
        for slot in self.results:
            strides = self._along_batch(layouts.strides(slot.shape), slot.shape)
            operands.append(Operand(slot, strides, ZERO))
        batch = (product(self.batch),) if self.routine.grouped else self.batch
        operands += [Operand(slot, (ZERO,) * len(batch), ZERO) for slot in self.scratch]
        roles = "r" * reads + "u" * len(initial) + "w" * (writes - len(initial))
        copies = [Copy(layouts.slot(v), slot) for v, slot in zip(initial, self.results)]
        call = External(
            self.routine, self.dtype_of_routine, tuple(map(find, self.integers)), roles,
            tuple(operands), tuple(map(find, batch)), find(self.work),
        )  # fmt: skip
        return [*copies, call]

    def _along_batch(self, strides: Shape, shape: Shape) -> Shape:
        """The strides of an array along the batch: for a grouped routine, the length of an item."""
        n = len(self.batch)
        return (product(shape[n:]),) if self.routine.grouped else strides[:n]


class DrawCall(CallValue):
    """A `Draw` from the generator ``args[0]`` with the parameters that follow.

    Its results are `Source` values, in the slots ``state`` (the generator) and ``target``.  It runs
    after the checks of the lengths ``checked``.
    """

    __slots__ = ("checked", "name", "state", "target")

    def __init__(
        self, name: str, args: tuple[Value, ...], state: Slot, target: Slot, checked: Shape = ()
    ):
        super().__init__(None, (), args)
        self.checked = checked
        self.name = name
        self.state = state
        self.target = target

    def dims(self) -> Shape:
        return (*self.target.shape, *self.checked)

    def step(self, layouts: Layouts) -> Step:
        dims = tuple(map(layouts.builder.canonical, self.target.shape))
        operands = [Operand(self.target, layouts.strides(dims), ZERO)]
        for value in self.args[1:]:
            slot, offset, strides = value.address(layouts)
            operands.append(Operand(slot, strides, offset))
        source = layouts.slot(self.args[0])
        return Draw(self.name, dims, tuple(operands), source, self.state)


class LoopCall(CallValue):
    """A `Loop`; its results are `Source` values.

    ``args``: initial states, arrays of windows except those that are not initialised, constants, in
    this order.  ``finals`` are the slots of the final states, ``results`` those of the windows that
    are written, with None for others, ``count`` that of the number of iterations.
    """

    __slots__ = ("body", "count", "finals", "length", "results", "until", "windows")

    def __init__(
        self,
        length: Dim,
        body: Program,
        args: tuple[Value, ...],
        windows: Sequence[Window[Value]],
        finals: tuple[Slot, ...],
        results: tuple[Slot | None, ...],
        until: int | None,
        count: Slot,
    ):
        super().__init__(None, (), args)
        self.length = length
        self.body = body
        self.windows = windows
        self.finals = finals
        self.results = results
        self.until = until
        self.count = count

    def dims(self) -> Shape:
        lengths = (d for w in self.windows for d in w.value.dims_of_read())
        return (self.length, *lengths, *(d for slot in self.finals for d in slot.shape))

    def call_steps(self, layouts: Layouts) -> list[Step]:
        """Copies of the arrays whose rows are written, then the loop."""
        find = layouts.builder.canonical
        copies: list[Step] = []
        windows: list[Rows] = []
        for (value, reads, writes), slot in zip(self.windows, self.results, strict=True):
            if slot is None:
                rows = Rows(find(value.shape[0]), _addressed(layouts, value), reads)
            else:
                whole = Operand(slot, layouts.strides(slot.shape), ZERO)
                rows = Rows(slot.shape[0], whole, reads, writes)
                if not value.is_undefined:
                    copies.append(Copy(layouts.slot(value), slot))
            windows.append(rows)
        n = len(self.finals)
        given = sum(not w.value.is_undefined for w in self.windows)
        states = tuple(zip((layouts.slot(a) for a in self.args), self.finals))
        constants = tuple(layouts.slot(a) for a in self.args[n + given :])
        length = find(self.length)
        loop = Loop(length, self.body, states, tuple(windows), constants, self.until, self.count)
        return [*copies, loop]


class BranchCall(CallValue):
    """A `Branch` on ``args[0]``; its results are `Source` values."""

    __slots__ = ("orelse", "outputs", "then")

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
        return tuple(d for slot in self.outputs if slot.kind == "temp" for d in slot.shape)

    def step(self, layouts: Layouts) -> Step:
        condition, *inputs = (layouts.slot(a) for a in self.args)
        return Branch(condition, self.then, self.orelse, tuple(inputs), self.outputs)


class PythonCall(CallValue):
    """A call of ``function``; its results are `Source` values."""

    __slots__ = ("function", "name", "outputs")
    always_runs = True

    def __init__(
        self, function: Any, args: tuple[Value, ...], outputs: tuple[Slot, ...], name: str
    ):
        super().__init__(None, (), args)
        self.function = function
        self.outputs = outputs
        self.name = name

    def step(self, layouts: Layouts) -> Step:
        inputs = tuple(layouts.slot(a) for a in self.args)
        return Python(self.function, inputs, self.outputs, self.name)


def _factor(layouts: Layouts, factor: float | Value) -> Operand | float:
    """``alpha`` or ``beta`` of a call."""
    return _operand(layouts, factor) if isinstance(factor, Value) else factor


def _addressed(layouts: Layouts, value: Value) -> Operand:
    """An array as an operand with one stride per axis."""
    slot, offset, strides = value.address(layouts)
    return Operand(slot, strides, offset)


def _operand(layouts: Layouts, value: Value, batch: int = 0) -> Operand:
    """An array as the operand of a call; axes of length 1 get strides that BLAS accepts."""
    slot, offset, strides = value.address(layouts)
    shape = layouts.fusion.shape(value)
    if value.ndim - batch != 2:
        return Operand(slot, strides, offset)
    (m, n), (row, column) = shape[-2:], strides[-2:]
    if n.value == 1 and row.value != 1:
        column = ONE
    if m.value == 1:
        row = n if column.value == 1 else ONE
    if n.value == 1 and row.value == 1:
        column = m
    return Operand(slot, (*strides[:-2], row, column), offset)
