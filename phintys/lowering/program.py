"""The Program: what lowering produces and every generator consumes.

A Program is a straight list of steps over *slots*.  It knows arrays, loops and calls; it knows
no `Op`, no `Variable`, no rewrite.  A generator (``backends/llvm``, ``backends/c``) implements
the steps and the scalar instructions of ``scalar/native.py`` and is done.

Slots
    A `Slot` is a place that holds one array (or one Python object).  Every array slot is
    C-contiguous, aligned and in native byte order; a generator's entry makes arguments so.  Its
    shape is a tuple of `Dim`.  Views do not exist as slots: an `Operand` of a step
    addresses a slot with an element offset and element strides.

Lengths
    `Dim` symbols have these keys: ``("len", slot_number, axis)``, the length of an array that
    comes from outside (an input or the result of a `Python` step), and ``("item", slot_number)``,
    the integer in a 0-d integer slot at the time it is first needed.  Both are defined once the
    slot is filled.  A generator evaluates any `Dim` with 64-bit integers; ``floordiv`` and ``mod``
    round towards minus infinity, a division by 0 gives 0.

Steps run in order.  A step that fails (a `Check`, an index out of range, an exception in a
`Python` step) ends the call: nothing that the caller can see has changed, because inputs are
never written and updates are handed over only at the end.  The generator then reports failure
with the number of the step; the function object finds the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Union

from phintys.dims import Dim

# --------------------------------------------------------------------------- slots


@dataclass(eq=False, slots=True)
class Slot:
    """A place for one array or one Python object.

    kind
        ``input``: an argument (an ordinary one, or the value of a shared variable);
        ``constant``: ``data`` holds the array;
        ``temp``: memory that lives inside the call; ``output``: memory handed to the caller;
        ``python``: an array that a `Python` step returned, owned by Python;
        ``object``: any Python object (no dtype, no shape), input, constant or result.
    storage
        Set by the memory plan: slots with the same storage number share one block of memory,
        one after the other.  None before planning and for slots that own no memory.
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

    For a kernel the strides are one per loop dimension of the kernel; 0 means the operand does
    not vary along that dimension.  ``extra`` are strides that go with computed indices (gather,
    scatter), one per index.
    """

    slot: Slot
    strides: tuple[Dim, ...]
    offset: Dim
    extra: tuple[Dim, ...] = ()


# ------------------------------------------------------------------------- kernels


class Inst(NamedTuple):
    """One instruction of a kernel body; arguments are positions of earlier instructions.

    Besides the instructions of ``scalar/native.py``:

    ``load``     param = operand position; args = computed indices (gather), usually none
    ``const``    param = Python number; a generator passes it as an argument of the kernel body,
                 so that kernels which differ in constants share code
    ``dim``      param = Dim; its value as int64
    ``index``    param = loop dimension; the loop counter as int64
    ``call``     param = name in LIBM_CALLS or SCIPY_CALLS
    ``cast``     dtype = the target
    ``wrap``     args = (index, length), both int64: a Python index made non-negative; the kernel
                 fails (IndexError) where it is out of range, also if nothing uses the result
    ``reduce``   param = ``add mul max min and or xor argmax argmin``; arg = the value reduced over
                 the inner dims (``dims[split:]``).  Its result varies with the outer dims only.
                 ``argmax`` / ``argmin`` give the int64 position (inner dims flattened in C order)
                 of the first extreme, the first NaN if there is one.
                 Reducing nothing gives the identity (``max``: -inf or the least integer); for
                 ``argmax`` and ``argmin`` lowering has put a `Check` before.
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
        """Number of the operand that a ``load``, ``store`` or ``accumulate`` reaches, else -1."""
        if self.op == "accumulate":
            return int(self.param[0])
        return self.param if self.op in ("load", "store") else -1


@dataclass(eq=False, slots=True)
class Kernel:
    """One loop nest.

    ``dims`` are the loop lengths, outermost first.  ``dims[:split]`` are the outer dims; a
    ``reduce`` runs over the inner dims ``dims[split:]`` once for each point of the outer dims.
    Without a ``reduce`` the split is ``len(dims)``.

    The body is a DAG.  An instruction is executed at the depth of the loops its operands vary
    with: what varies only with outer dims is done once per outer point.  An instruction that
    depends on a ``reduce`` is executed after that reduction's inner loop; if it varies with inner
    dims, in another inner loop (softmax: a loop for max, a loop for the sum, a loop for the
    quotient). ``schedule.py`` works this out; generators follow it.

    Memory: a stored slot may be the same slot as (or share storage with) a loaded one only where
    every load of an element precedes its store, which lowering guarantees.
    ``accumulate`` without indices along a dimension of stride 0 is a reduction in memory: lowering
    has put a step that fills the target before.
    """

    dims: tuple[Dim, ...]
    split: int
    operands: tuple[Operand, ...]
    body: tuple[Inst, ...]
    step: int = -1

    @property
    def is_reducing(self) -> bool:
        """Whether the body has a ``reduce``."""
        return any([inst.op == "reduce" for inst in self.body])

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
    """Copy a whole slot into another of that dtype and size (nothing if they share storage)."""

    source: Slot
    target: Slot
    step: int = -1


@dataclass(eq=False, slots=True)
class Call:
    """A BLAS call over 2-d or 1-d operands, repeated over ``batch`` dims.

    ``name`` is one of, all in row-major terms, dtype float32 or float64 by the target:

    ``gemm``  C[m,n] = alpha * A[m,k] @ B[k,n] + beta * C     operands (C, A, B)
    ``gemv``  y[m]   = alpha * A[m,k] @ x[k] + beta * y       operands (y, A, x)
    ``ger``   A[m,n] = alpha * outer(x[m], y[n]) + A          operands (A, x, y)
    ``dot``   r[]    = x[k] @ y[k]                            operands (r, x, y)

    Strides of an operand: one per batch dim, then one per its own axis.  A matrix has unit
    stride along one of its axes (lowering copies it otherwise), so it is "normal" or
    "transposed" for BLAS.  ``alpha`` and ``beta`` are 0-d operands or Python numbers.
    ``sizes`` = (m, n, k), (m, k), (m, n), (k,).  An empty sum (k = 0) gives beta * C.
    With beta == 0 the target is not read (it may hold NaN).
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
class Check:
    """Fail unless ``left <relation> right``; relation is ``==``, ``>=`` or ``>``.

    Also where a sum or product in one of them does not fit in 64 bits.  The error is an IndexError
    if it ``is_position``, else it is about lengths.
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

    Array inputs arrive as NumPy arrays that own or keep their memory; object inputs as they
    are.  An output of kind ``python`` must be an array of the slot's dtype and rank; the generator
    takes a C-contiguous copy where it is not contiguous.  Its lengths become the symbols
    ``("len", number, axis)``; if the slot's shape has other dims there, `Check` steps follow.
    """

    function: Any
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    name: str = ""
    step: int = -1


@dataclass(eq=False, slots=True)
class Loop:
    """A loop with state: ``body`` is a Program with inputs (state..., slices..., constants...).

    ``state`` pairs (initial slot, final slot); ``slices`` are operands whose strides have the
    loop counter as first dimension; ``stacked`` are (body output, operand) written at each turn;
    ``until`` is the number of a 0-d bool output of the body that ends the loop, or None.
    """

    length: Dim
    body: Program
    state: tuple[tuple[Slot, Slot], ...] = ()
    slices: tuple[Operand, ...] = ()
    constants: tuple[Slot, ...] = ()
    stacked: tuple[tuple[int, Operand], ...] = ()
    until: int | None = None
    step: int = -1


@dataclass(eq=False, slots=True)
class Branch:
    """Run one of two Programs with the same signature; outputs are copied to ``outputs``."""

    condition: Slot
    then: Program
    orelse: Program
    inputs: tuple[Slot, ...] = ()
    outputs: tuple[Slot, ...] = ()
    step: int = -1


Step = Union[Kernel, Copy, Call, Check, Python, Loop, Branch]


# ------------------------------------------------------------------------- program


@dataclass(eq=False, slots=True)
class Program:
    """Inputs, steps, outputs.

    ``inputs``
        one slot per argument in order, shared variables last (``n_arguments`` counts the ordinary
        ones).
    ``outputs``
        the slots to hand over: first the results, then the new values of shared variables.
        ``updates[i]`` says that output ``len(outputs) - len(updates) + i`` becomes the value of
        input ``updates[i]``.  An output slot is of kind ``output``, ``python`` or ``object``; it
        never shares memory with an input, a constant or another output, so the caller owns it.
    ``storages``
        the sizes in bytes of the storage blocks that `Slot.storage` numbers, for temps.
    ``origins``
        for each step what it stems from (an Apply node), for error messages; no generator reads it.
    """

    inputs: list[Slot]
    n_arguments: int
    outputs: list[Slot]
    updates: list[int]
    steps: list[Step]
    slots: list[Slot]
    storages: list[Dim] = field(default_factory=list)
    origins: list[Any] = field(default_factory=list)
