"""The Program: the intermediate representation (IR) that lowering produces and generators consume.

A Program is a list of steps over *slots*, without branches between steps.  It contains arrays,
loops and calls, and no `Op` or `Variable`.  A generator (``backends/llvm``, ``backends/c``) has to
implement the steps and the scalar instructions of ``scalar/native.py``, nothing else.

Slots
    A `Slot` holds one array (or one Python object).  Every array slot is C-contiguous, aligned and
    in native byte order; the entry code of a generator converts arguments accordingly.  Its shape
    is a tuple of `Dim`.  Views are not slots: an `Operand` of a step addresses a slot with an
    element offset and element strides.

Lengths
    `Dim` symbols have these keys: ``("len", slot_number, axis)``, the length of an array that
    comes from outside (an input or the result of a `Python` step), and ``("item", slot_number)``,
    the integer in a 0-d integer slot when it is first needed.  Both are defined once the slot is
    written.  A generator evaluates any `Dim` with 64-bit integers; ``floordiv`` and ``mod`` round
    towards minus infinity; division by 0 gives 0.

Steps run in order.  A step that fails (a `Check`, an index out of range, an exception in a
`Python` step) ends the call.  The caller sees no change then, because inputs are never written and
updates are stored only at the end.  The generator returns the number of the failed step; the
function object works out the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Union

from phintys.dims import ONE, Dim, product
from phintys.routines import Routine

# --------------------------------------------------------------------------- slots


@dataclass(eq=False, slots=True)
class Slot:
    """Storage for one array or one Python object.

    kind
        ``input``: an argument (an ordinary one, or the value of a shared variable);
        ``constant``: ``data`` holds the array;
        ``temp``: memory that is freed when the call ends; ``output``: memory that the caller
        receives;
        ``python``: an array that a `Python` step returned, owned by Python;
        ``object``: any Python object (no dtype, no shape): input, constant or result.
    storage
        Set by the memory plan: slots with the same storage number share one block of memory and
        have disjoint live ranges.  None before planning and for slots that own no memory.
    """

    number: int
    kind: str
    dtype: str | None
    shape: tuple[Dim, ...]
    name: str = ""
    data: Any = None
    storage: int | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Operand(NamedTuple):
    """How a step addresses a slot: element (i, j, ...) is at ``offset + i*strides[0] + ...``.

    ``offset`` and strides count elements.  In a kernel there is one stride per loop dimension; 0
    means that the operand does not vary along that dimension.  ``extra`` holds one stride per
    computed index of a gather or scatter.
    """

    slot: Slot
    strides: tuple[Dim, ...]
    offset: Dim
    extra: tuple[Dim, ...] = ()

    def lengths(self) -> Iterator[Dim]:
        """The strides and the offset."""
        yield from self.strides
        yield self.offset
        yield from self.extra


# ------------------------------------------------------------------------- kernels


class Inst(NamedTuple):
    """One SSA instruction of a kernel body; arguments are positions of earlier instructions.

    Besides the instructions of ``scalar/native.py``:

    ``load``     param = operand position; args = computed indices (gather), usually none
    ``const``    param = Python number; a generator may pass it to the kernel as an argument, so
                 that kernels which differ only in constants share code
    ``dim``      param = Dim; its value as int64
    ``index``    param = loop dimension; the loop counter as int64
    ``call``     param = name in LIBM_CALLS or SCIPY_CALLS
    ``cast``     dtype = the target
    ``wrap``     args = (index, length), both int64: the index, plus the length if it is negative.
                 The kernel fails (IndexError) if it is out of range, even if the result is unused
    ``reduce``   param = ``add mul max min and or xor argmax argmin``; not the first four of bools;
                 arg = the value reduced over the inner dims (``dims[split:]``).  Its result varies
                 with the outer dims only.
                 ``argmax`` / ``argmin`` give the int64 position (inner dims flattened in C order)
                 of the first extreme, or of the first NaN if there is one.
                 An empty reduction gives the identity (``max``: -inf or the least integer); for
                 ``argmax`` and ``argmin`` a preceding `Check` excludes it.
    ``store``    param = operand position; args = (value, *computed indices).  Gives no value.
    ``accumulate`` param = (operand position, ``add mul max min and or xor``); args = (value,
                 *computed indices): memory (op)= value, in loop order.  Gives no value.
    """

    op: str
    dtype: str
    args: tuple[int, ...] = ()
    param: Any = None

    @property
    def operand(self) -> int:
        """The number of the operand of a ``load``, ``store`` or ``accumulate``, else -1."""
        if self.op == "accumulate":
            return int(self.param[0])
        return self.param if self.op in ("load", "store") else -1


@dataclass(eq=False, slots=True)
class Kernel:
    """One loop nest.

    ``dims`` are the loop lengths, outermost first.  ``dims[:split]`` are the outer dims; a
    ``reduce`` runs over the inner dims ``dims[split:]`` once for each point of the outer dims.
    Without a ``reduce`` the split is ``len(dims)``.

    The body is a DAG.  An instruction is executed at the depth of the innermost loop that its
    operands vary with: loop-invariant code is hoisted.  An instruction that depends on a ``reduce``
    is executed after that reduction's inner loop; if it varies with inner dims, in another inner
    loop (softmax: one loop for the maximum, one for the sum, one for the quotient).
    ``schedule.py`` computes this; generators follow it.

    Memory: a stored slot may be the same slot as (or share storage with) a loaded one only if
    every load of an element precedes its store; lowering guarantees this.
    ``accumulate`` without indices along a dimension of stride 0 is a reduction in memory; an
    earlier step initialises its target.

    ``ragged``, if it is not None, holds the positions in the body of two int64 values, the start
    and the stop of the last loop, which may differ between the points of the loops around it.  The
    last loop is then the only inner one, if there is a ``reduce``.  Its counter runs from the start
    to the stop, so ``data[j]`` is an operand of stride 1 along it; ``argmax`` and ``argmin`` count
    from the start.  ``dims[-1]`` is an upper bound of the counter, the length of the flat data.  At
    every point of the loops around it, the kernel fails (IndexError) if the start is negative or
    the stop is greater than ``dims[-1]``, even if there are no iterations.  A stop below the start
    means no iterations; a ``reduce`` then gives the identity, or position 0.
    """

    dims: tuple[Dim, ...]
    split: int
    operands: tuple[Operand, ...]
    body: tuple[Inst, ...]
    step: int = -1
    ragged: tuple[int, int] | None = None

    @property
    def is_reducing(self) -> bool:
        """Whether the body has a ``reduce``."""
        return any([inst.op == "reduce" for inst in self.body])

    @property
    def points(self) -> Dim:
        """The number of points of the loop nest; an estimate if it is ragged."""
        if self.ragged is None:
            return product(self.dims)
        return product(self.dims[:-1]) + self.dims[-1]

    def lengths(self) -> Iterator[Dim]:
        """All lengths, strides and offsets that the kernel uses."""
        yield from self.dims
        for operand in self.operands:
            yield from operand.lengths()
        yield from (inst.param for inst in self.body if inst.op == "dim")

    def reads(self) -> Iterator[Slot]:
        for i in self.body:
            if i.op in ("load", "accumulate"):
                yield self.operands[i.operand].slot

    def writes(self) -> Iterator[Slot]:
        for i in self.body:
            if i.op in ("store", "accumulate"):
                yield self.operands[i.operand].slot


# ---------------------------------------------------------------------- other steps


@dataclass(eq=False, slots=True)
class Copy:
    """Copy a whole slot into another of the same dtype and size (no-op if they share storage)."""

    source: Slot
    target: Slot
    step: int = -1


@dataclass(eq=False, slots=True)
class Call:
    """A BLAS call over 2-d or 1-d operands, repeated over ``batch`` dims.

    ``dtype`` is float32 or float64, that of the target.  ``name`` is one of, in row-major terms:

    ``gemm``  C[m,n] = alpha * A[m,k] @ B[k,n] + beta * C     operands (C, A, B)
    ``gemv``  y[m]   = alpha * A[m,k] @ x[k] + beta * y       operands (y, A, x)
    ``ger``   A[m,n] = alpha * outer(x[m], y[n]) + A          operands (A, x, y)
    ``dot``   r[]    = x[k] @ y[k]                            operands (r, x, y)

    Strides of an operand: one per batch dim, then one per axis of the operand.  A matrix has unit
    stride along one of its axes (lowering copies it otherwise), so BLAS takes it as it is or
    transposed.  ``alpha`` and ``beta`` are 0-d operands or Python numbers.
    ``sizes`` = (m, n, k), (m, k), (m, n), (k,).  An empty sum (k = 0) gives beta * C.
    With beta == 0 the target is not read, so NaN in it does not propagate.
    """

    name: str
    dtype: str
    sizes: tuple[Dim, ...]
    operands: tuple[Operand, ...]
    alpha: Union[Operand, float] = 1.0
    beta: Union[Operand, float] = 0.0
    batch: tuple[Dim, ...] = ()
    step: int = -1


@dataclass(eq=False, slots=True)
class Scan:
    """Running reductions: element ``i`` along the last dim combines the elements 0, ... ``i``.

    ``kind`` is one of ``add mul max min and or xor``, ``operands`` are the target and the source,
    of one dtype, with one stride per dim.  They share no memory.  Elements are combined in order;
    element 0 is that of the source, to the sign of a zero.
    """

    kind: str
    dims: tuple[Dim, ...]
    operands: tuple[Operand, Operand]
    step: int = -1


@dataclass(eq=False, slots=True)
class External:
    """Call a routine for each item of a batch; the step fails if it returns another number than 0.

    The arguments are the ``integers``, then the addresses of the operands: ``roles`` has a letter
    for each, ``r`` if it is read, ``u`` if it is updated, ``w`` if it is only written; in this
    order.  An operand has one stride per batch dim, and its items are contiguous in memory; a
    workspace is written, and has the strides 0.
    ``dtype``, which may be complex, selects the version of the routine; then an operand has that
    dtype, or the dtype of its parts.  ``work`` estimates the number of operations for an item.  A
    grouped routine has a batch of one axis, along which the items are adjacent.
    """

    routine: Routine
    dtype: str
    integers: tuple[Dim, ...]
    roles: str
    operands: tuple[Operand, ...]
    batch: tuple[Dim, ...] = ()
    work: Dim = ONE
    step: int = -1

    def in_role(self, roles: str) -> list[Slot]:
        """The slots of the operands that have one of some roles."""
        return [o.slot for role, o in zip(self.roles, self.operands, strict=True) if role in roles]


@dataclass(eq=False, slots=True)
class Draw:
    """Draw an array of random numbers, in C order of ``dims``.

    ``name`` is a row of `phintys.scalar.native.DISTRIBUTIONS`; ``operands`` are the target and the
    parameters, with one stride per dim.  They share no memory.  ``source`` holds a
    `numpy.random.Generator`.  ``result`` receives an independent copy of it, in the state after
    the draws; if it is the same slot, the generator in it changes its state, which is legal only
    for one that an earlier Draw has made.
    """

    name: str
    dims: tuple[Dim, ...]
    operands: tuple[Operand, ...]
    source: Slot
    result: Slot
    step: int = -1


@dataclass(eq=False, slots=True)
class Check:
    """Fail unless ``left <relation> right``; relation is ``==``, ``>=`` or ``>``.

    It also fails if a sum or product in ``left`` or ``right`` overflows 64 bits.  The error is an
    IndexError if ``is_position``, else a ShapeError.
    """

    left: Dim
    relation: str
    right: Dim
    message: str = ""
    is_position: bool = False
    step: int = -1


@dataclass(eq=False, slots=True)
class Python:
    """Call ``function(*inputs)``, which returns a tuple with one value per output.

    Array inputs are passed as NumPy arrays that own or keep alive their memory, object inputs as
    they are.  An output of kind ``python`` must be an array of the slot's dtype and rank; the
    generator copies it if it is not C-contiguous.  Its lengths define the symbols
    ``("len", number, axis)``; where the slot's shape has other dims, `Check` steps follow.
    """

    function: Any
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    name: str = ""
    step: int = -1


class Rows(NamedTuple):
    """A window of a `Loop`: rows of an array, which iterations read and write.

    Row ``i`` of ``length`` rows is the contiguous part of ``operand`` at ``offset + i *
    strides[0]``.  Iteration ``t`` passes row ``(t + offset) % length`` to the body for each offset
    in ``reads``, and writes output ``number`` of the body to row ``(t + offset) % length`` for each
    (offset, number) in ``writes``.  Offsets are not negative, and there are at least as many rows
    as `least_rows` says.  Rows that are written are those of a whole slot, which no other operand
    of the loop is in; they may be in reverse order.
    """

    length: Dim
    operand: Operand
    reads: tuple[int, ...] = ()
    writes: tuple[tuple[int, int], ...] = ()


def least_rows(reads: Sequence[int], writes: Sequence[int]) -> tuple[int, int]:
    """The numbers of rows that a window must have if its loop has one, and several iterations.

    An iteration writes different rows; and the rows that it writes, and those that the next one
    reads, are different rows.  A ring may be as short as its taps: the new row then replaces the
    oldest one.
    """
    if not writes:
        return 1, 1
    touched = [*writes, *(offset + 1 for offset in reads)]
    return max(writes) - min(writes) + 1, max(touched) - min(touched) + 1


@dataclass(eq=False, slots=True)
class Loop:
    """A loop over ``body``, a Program of (states..., rows of windows..., constants...).

    ``state`` holds pairs (initial slot, final slot); the first outputs of the body are the next
    states.  All reads of an iteration see the values before it.  ``until`` is the number of a 0-d
    bool output of the body that ends the loop, or None.  ``count`` receives the number of
    iterations that have run.
    """

    length: Dim
    body: Program
    state: tuple[tuple[Slot, Slot], ...] = ()
    windows: tuple[Rows, ...] = ()
    constants: tuple[Slot, ...] = ()
    until: int | None = None
    count: Slot | None = None
    step: int = -1


@dataclass(eq=False, slots=True)
class Branch:
    """Run one of two Programs with the same signature; their outputs are copied to ``outputs``.

    An output of kind ``python`` is an array that the Program has made; its lengths define symbols,
    as those of a `Python` step.
    """

    condition: Slot
    then: Program
    orelse: Program
    inputs: tuple[Slot, ...] = ()
    outputs: tuple[Slot, ...] = ()
    step: int = -1


Step = Union[Kernel, Copy, Call, Scan, External, Draw, Check, Python, Loop, Branch]


def rename_slots(step: Step, merged: Mapping[Slot, Slot]) -> None:
    """Replace slots of a step by others."""

    def new(slot: Slot) -> Slot:
        return merged.get(slot, slot)

    def moved(operand: Operand) -> Operand:
        return operand._replace(slot=new(operand.slot)) if operand.slot in merged else operand

    if isinstance(step, Copy):
        step.source, step.target = new(step.source), new(step.target)
    elif isinstance(step, Scan):
        step.operands = (moved(step.operands[0]), moved(step.operands[1]))
    elif isinstance(step, Python):
        step.inputs = tuple(map(new, step.inputs))
    elif isinstance(step, Branch):
        step.condition, step.inputs = new(step.condition), tuple(map(new, step.inputs))
        step.outputs = tuple(map(new, step.outputs))
    elif isinstance(step, Loop):
        step.state = tuple((new(initial), new(final)) for initial, final in step.state)
        step.windows = tuple(w._replace(operand=moved(w.operand)) for w in step.windows)
        step.constants = tuple(map(new, step.constants))
        step.count = step.count and new(step.count)
    elif isinstance(step, (Kernel, Call, External, Draw)):
        step.operands = tuple(moved(o) for o in step.operands)
        if isinstance(step, Call):
            step.alpha = moved(step.alpha) if isinstance(step.alpha, Operand) else step.alpha
            step.beta = moved(step.beta) if isinstance(step.beta, Operand) else step.beta


# ------------------------------------------------------------------------- program


@dataclass(eq=False, slots=True)
class Program:
    """A function body: inputs, steps, outputs.

    ``inputs``
        one slot per argument in order, shared variables last (``n_arguments`` counts the ordinary
        ones).
    ``outputs``
        the slots that the caller receives: the results, then the new values of shared variables.
        ``updates[i]`` says that output ``len(outputs) - len(updates) + i`` becomes the value of
        input ``updates[i]``.  An output slot is of kind ``output``, ``python`` or ``object``; it
        never shares memory with an input, a constant or another output, so the caller owns it.
    ``storages``
        the sizes in bytes of the storage blocks for temps; `Slot.storage` is an index into it.
    ``strips``
        ranges (first, stop) of steps that are Kernels, in order: a generator may run the kernels of
        a range strip by strip, see `phintys.lowering.strips`.
    ``origins``
        for each step the Apply node it was made from, for error messages; generators ignore it.
    """

    inputs: list[Slot]
    n_arguments: int
    outputs: list[Slot]
    updates: list[int]
    steps: list[Step]
    slots: list[Slot]  # every slot that a step, an input or an output mentions
    storages: list[Dim] = field(default_factory=list)
    strips: list[tuple[int, int]] = field(default_factory=list)
    origins: list[Any] = field(default_factory=list)

    def in_strips(self) -> Iterator[Step | list[Step]]:
        """The steps in order, those of each range of ``strips`` as a list."""
        place = 0
        for first, stop in self.strips:
            yield from self.steps[place:first]
            yield self.steps[first:stop]
            place = stop
        yield from self.steps[place:]


def items_in(dims: Iterable[Dim]) -> set[int]:
    """Numbers of the slots whose integers are symbols of Dims."""
    keys = [symbol.args[0] for symbol in set[Dim]().union(*[d.symbols() for d in dims])]
    return {key[1] for key in keys if key[0] == "item"}


def inner_programs(step: Step) -> tuple[Program, ...]:
    """The Programs inside a step."""
    if isinstance(step, Loop):
        return (step.body,)
    return (step.then, step.orelse) if isinstance(step, Branch) else ()


def all_steps(program: Program) -> tuple[list[tuple[Step, Any]], dict[tuple[Step, int], int]]:
    """The steps of a Program, then those of the Programs inside, with their origins; their numbers.

    The second result tells where the steps of an inner Program start, from the step that contains
    it and its position there.  A step that fails has its position in the list as number.
    """
    found = list(_with_origins(program))
    starts: dict[tuple[Step, int], int] = {}
    for step, _ in found:  # grows
        for place, inner in enumerate(inner_programs(step)):
            starts[step, place] = len(found)
            found += _with_origins(inner)
    return found, starts


def _with_origins(program: Program) -> Iterator[tuple[Step, Any]]:
    return zip(program.steps, program.origins or [None] * len(program.steps))


def python_step(program: Program) -> str | None:
    """What of a Program, or of one inside, needs Python: the name of a step, or a kind of result.

    None if nothing does.
    """
    steps = [step for step, _ in all_steps(program)[0]]
    named = [step.name for step in steps if isinstance(step, (Python, Draw))]
    kinds = {slot.kind for step in steps for slot in _selected(step)}
    described = [text for kind, text in _NEEDING_PYTHON.items() if kind in kinds]
    return next(iter(named + described), None)


#: kind of the slot of a result that only Python can hold -> its description
_NEEDING_PYTHON = {
    "python": "An array whose lengths depend on which branch runs",
    "object": "A Python object that a branch or a loop returns",
}


def _selected(step: Step) -> Sequence[Slot]:
    """The results of a `Branch`, the final states of a `Loop`."""
    if isinstance(step, Branch):
        return step.outputs
    return [final for _, final in step.state] if isinstance(step, Loop) else ()
