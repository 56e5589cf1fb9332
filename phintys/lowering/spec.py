"""The verifier of Programs.

``verify(program)`` raises `IllegalProgram`, with the place and the broken rule, if a Program is not
well-formed.  Lowering verifies every Program; tests also verify the stages in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from phintys.dims import Dim, product
from phintys.lowering.program import (
    Branch,
    Call,
    Check,
    Copy,
    Draw,
    External,
    Inst,
    Kernel,
    Loop,
    Operand,
    Program,
    Python,
    Rows,
    Scan,
    Slot,
    Step,
    items_in,
)
from phintys.lowering.reductions import combination
from phintys.lowering.schedule import bounds_vary_outside
from phintys.lowering.strips import strips_of
from phintys.routines.language import INTEGERS, PART
from phintys.scalar.dtypes import COMPLEX, is_complex
from phintys.scalar.native import (
    COMPUTED,
    COMPUTED_IN,
    DISTRIBUTIONS,
    INSTRUCTIONS,
    LIBM_CALLS,
    NATIVE_DTYPES,
    OF_PAIRS,
    SCIPY_CALLS,
)

KINDS = frozenset(("input", "constant", "temp", "output", "python", "object"))
OWNED = frozenset(("temp", "output"))
REDUCTIONS = frozenset(("add", "mul", "max", "min", "and", "or", "xor", "argmax", "argmin"))
CALL_OPERANDS = {"gemm": (2, 2, 2), "gemv": (1, 2, 1), "ger": (2, 1, 1), "dot": (0, 1, 1)}
CALL_SIZES = {"gemm": 3, "gemv": 2, "ger": 2, "dot": 1}


class IllegalProgram(Exception):
    """A Program is not well-formed; the message names the step or slot and the broken rule."""


def verify(program: Program) -> Program:
    """The Program itself, after all rules have been checked.

    Raises `IllegalProgram` if one is broken.
    """
    _Verifier(program).verify()
    return program


def step_reads(step: Step) -> Iterable[Slot]:
    """The slots a step reads."""
    match step:
        case Kernel():
            return step.reads()
        case Copy():
            return (step.source,)
        case Call():
            factors = [f.slot for f in (step.alpha, step.beta) if isinstance(f, Operand)]
            old = [step.operands[0].slot] if reads_target(step) else []
            return [o.slot for o in step.operands[1:]] + factors + old
        case Scan():
            return (step.operands[1].slot,)
        case External():
            return step.in_role("ru")
        case Draw():
            return (step.source, *(o.slot for o in step.operands[1:]))
        case Python():
            return step.inputs
        case Branch():
            return (step.condition, *step.inputs)
        case Loop():
            rows = (w.operand.slot for w in step.windows if w.reads)
            return (*(s for s, _ in step.state), *rows, *step.constants)
        case Check():
            return ()


def step_writes(step: Step) -> Iterable[Slot]:
    """The slots a step writes."""
    match step:
        case Kernel():
            return step.writes()
        case Copy():
            return (step.target,)
        case Call() | Scan():
            return (step.operands[0].slot,)
        case External():
            return step.in_role("uw")
        case Draw():
            return (step.operands[0].slot, step.result)
        case Python() | Branch():
            return step.outputs
        case Loop():
            rows = (w.operand.slot for w in step.windows if w.writes)
            count = () if step.count is None else (step.count,)
            return (*(t for _, t in step.state), *rows, *count)
        case Check():
            return ()


def reads_target(call: Call) -> bool:
    """Whether a call reads the old content of its target."""
    return call.name == "ger" or isinstance(call.beta, Operand) or call.beta != 0


def step_dims(step: Step) -> Iterable[Dim]:
    """All lengths, strides and offsets that a step uses."""
    match step:
        case Kernel():
            yield from step.lengths()
        case Call():
            yield from (*step.sizes, *step.batch)
            for operand in (*step.operands, step.alpha, step.beta):
                if isinstance(operand, Operand):
                    yield from operand.lengths()
        case Scan() | Draw():
            yield from step.dims
            for operand in step.operands:
                yield from operand.lengths()
        case External():
            yield from (*step.integers, *step.batch, step.work)
            for operand in step.operands:
                yield from operand.lengths()
        case Check():
            yield from (step.left, step.right)
        case Loop():
            yield step.length
            for window in step.windows:
                yield window.length
                yield from window.operand.lengths()
        case Copy() | Python() | Branch():
            return


def item_slots(program: Program) -> set[int]:
    """Numbers of the slots whose integer is used as a Dim."""
    dims = {d for step in program.steps for d in step_dims(step)}
    dims.update(d for slot in program.slots for d in slot.shape)
    return items_in(dims.union(program.storages))


class _Verifier:
    def __init__(self, program: Program):
        self.program = program
        self.filled: set[int] = set()
        self.slots: dict[int, Slot] = {}
        self.where: Any = "program"
        self.drawn: set[Slot] = set()  # generators that Draw steps have made
        self.defined: set[Dim] = set()  # dims whose symbols are all defined

    def require(self, condition: bool, message: str, *details: Any) -> None:
        """Raise IllegalProgram unless a condition holds; ``message % details`` is the rule."""
        if not condition:
            raise IllegalProgram(f"{self.where}: {message % details if details else message}")

    def verify(self) -> None:
        program = self.program
        for slot in program.slots:
            self.slot(slot)
        for slot in program.inputs:
            self.require(
                slot.kind in ("input", "object"), f"input slot {slot.number} is {slot.kind}"
            )
            self.filled.add(slot.number)
        self.require(0 <= program.n_arguments <= len(program.inputs), "n_arguments out of range")
        for number, step in enumerate(program.steps):
            self.where = f"step {number} ({type(step).__name__})"
            self.require(step.step in (-1, number), f"is numbered {step.step}")
            self.step(step)
        self.where = "strips"
        self.strips()
        self.where = "outputs"
        self.outputs()
        self.where = "storage"
        self.storage()

    # ----- slots
    def slot(self, slot: Slot) -> None:
        self.where = f"slot {slot.number}"
        self.require(slot.kind in KINDS, f"unknown kind {slot.kind!r}")
        self.require(slot.number not in self.slots, "number used twice")
        self.slots[slot.number] = slot
        if slot.kind == "object":
            self.require(slot.dtype is None, "an object has no dtype")
            if slot.data is not None:
                self.filled.add(slot.number)
            return
        if slot.kind == "constant":
            self.require(slot.data is not None, "a constant has no data")
            self.require(str(slot.data.dtype) == slot.dtype, f"data has dtype {slot.data.dtype}")
            lengths = tuple(d.value for d in slot.shape)
            self.require(slot.data.shape == lengths, f"data has shape {slot.data.shape}")
            self.filled.add(slot.number)
        if slot.storage is not None:
            self.require(slot.kind == "temp", "only temps have a storage")
            self.require(slot.storage < len(self.program.storages), "storage out of range")

    def readable(self, slot: Slot) -> None:
        number = slot.number
        self.require(self.slots.get(number) is slot, "slot %s is not listed", number)
        self.require(number in self.filled, "slot %s is read before it is filled", number)

    def writable(self, slot: Slot) -> None:
        self.require(self.slots.get(slot.number) is slot, f"slot {slot.number} is not listed")
        self.require(slot.kind in OWNED, f"slot {slot.number} of kind {slot.kind} is written")
        for d in slot.shape:
            self.dim(d)

    def dim(self, dim: Dim) -> None:
        """Every symbol of a dim must be defined when the step runs."""
        if dim in self.defined:
            return
        for symbol in dim.symbols():
            kind, number = symbol.args[0][:2]
            self.require(kind in ("len", "item"), f"unknown symbol {symbol!r}")
            self.require(number in self.filled, f"{symbol!r} is used before it is defined")
        self.defined.add(dim)

    # ----- steps
    def step(self, step: Step) -> None:
        if isinstance(step, Kernel):
            for inst in step.body:
                if inst.op in ("load", "store", "accumulate"):
                    known = 0 <= inst.operand < len(step.operands)
                    self.require(known, "no operand %s", inst.operand)
        for d in step_dims(step):
            self.dim(d)
        rules: dict[type, Callable[[Any], None]] = {
            Kernel: self.kernel,
            Copy: self.copy,
            Call: self.call,
            Scan: self.scan,
            External: self.external,
            Draw: self.draw,
            Check: self.check,
            Loop: self.loop,
            Branch: self.branch,
        }
        special = rules.get(type(step))
        for slot in step_reads(step):
            if slot.number not in self.filled and isinstance(step, Kernel):
                continue  # scratch, stored earlier in the same kernel; self.kernel checks it
            self.readable(slot)
        if special is not None:
            special(step)
        for slot in step_writes(step):
            if not isinstance(step, (Python, Branch)) and slot.kind != "object":
                self.writable(slot)
            self.filled.add(slot.number)

    def copy(self, step: Copy) -> None:
        self.require(step.source.dtype == step.target.dtype, "the dtypes differ")

    def check(self, step: Check) -> None:
        self.require(step.relation in ("==", ">=", ">"), f"unknown relation {step.relation!r}")

    def call(self, step: Call) -> None:
        self.require(step.name in CALL_OPERANDS, f"unknown call {step.name!r}")
        self.require(step.dtype in ("float32", "float64"), f"dtype {step.dtype}")
        self.require(len(step.sizes) == CALL_SIZES[step.name], "wrong number of sizes")
        self.require(len(step.operands) == 3, "wrong number of operands")
        for operand, rank in zip(step.operands, CALL_OPERANDS[step.name]):
            self.require(operand.slot.dtype == step.dtype, f"slot {operand.slot.number}: dtype")
            self.require(len(operand.strides) == len(step.batch) + rank, "wrong operand rank")
            if rank == 2:
                unit = any(s.value == 1 for s in operand.strides[-2:])
                self.require(unit, f"slot {operand.slot.number}: a matrix without a unit stride")

    def scan(self, step: Scan) -> None:
        known = step.kind in REDUCTIONS and not step.kind.startswith("arg")
        self.require(known, f"kind {step.kind!r}")
        allowed = combination(step.kind, step.operands[0].slot.dtype)
        self.require(step.kind == allowed, "%s of bools, not %s", step.kind, allowed)
        self.require(bool(step.dims), "no dims")
        target, source = step.operands
        self.require(target.slot.dtype == source.slot.dtype, "the dtypes differ")
        native = target.slot.dtype in COMPUTED or target.slot.dtype in COMPUTED_IN
        self.require(native, f"dtype {target.slot.dtype}")
        for operand in step.operands:
            self.require(len(operand.strides) == len(step.dims), "strides and dims differ")
            self.require(not operand.extra, "a scan has no computed indices")

    def external(self, step: External) -> None:
        routine, operands = step.routine, step.operands
        self.require(step.dtype in routine.dtypes, f"{routine} has no version for {step.dtype}")
        self.require(list(step.roles) == sorted(step.roles, key="ruw".index), "roles out of order")
        kinds = [kind for _, kind in routine.functions[-1].parameters]
        self.require(not routine.grouped or len(step.batch) == 1, "a group has one axis")
        count = len(step.integers) + routine.grouped
        wanted = ["int"] * count + ["reals"] * len(operands)
        found = ["reals" if kind in INTEGERS else kind for kind in kinds]
        self.require(found == wanted, f"{routine} has other parameters")
        for operand, kind in zip(operands, kinds[count:]):
            part = PART.get(step.dtype, step.dtype)
            dtypes = [INTEGERS[kind]] if kind in INTEGERS else [step.dtype, part]
            self.require(operand.slot.dtype in dtypes, f"slot {operand.slot.number}: dtype")
            self.require(len(operand.strides) == len(step.batch), "strides and batch differ")

    def draw(self, step: Draw) -> None:
        self.require(step.name in DISTRIBUTIONS, f"unknown distribution {step.name!r}")
        result, parameters, _ = DISTRIBUTIONS[step.name]
        found = [o.slot.dtype for o in step.operands]
        self.require(found == [result, *parameters], f"operands of dtypes {found}")
        for slot in (step.source, step.result):
            self.require(slot.kind == "object", f"slot {slot.number} is no object")
        if step.source is step.result:
            self.require(step.source in self.drawn, "changes a generator that no Draw has made")
        self.drawn.add(step.result)
        for operand in step.operands:
            self.require(len(operand.strides) == len(step.dims), "strides and dims differ")
            self.require(not operand.extra, "a draw has no computed indices")

    def loop(self, step: Loop) -> None:
        body = verify(step.body)
        given = [s for s, _ in step.state]
        given += [w.operand.slot for w in step.windows for _ in w.reads]
        self.signature(body, [*given, *step.constants])
        self.require(len(body.outputs) >= len(step.state), "the body has too few outputs")
        others = Counter([*given, *step.constants])
        for window in step.windows:
            self.window(window, body, others)
        written = [w.operand.slot for w in step.windows if w.writes]
        self.require(len(set(written)) == len(written), "two windows write the same slot")
        if step.count is not None:
            self.require(step.count.dtype == "int64" and step.count.ndim == 0, "count is no int64")
        if step.until is not None:
            self.require(body.outputs[step.until].dtype == "bool", "until is not bool")

    def window(self, window: Rows, body: Program, reads: Counter[Slot]) -> None:
        """The rows of a window that are written are in a slot alone.

        ``reads`` counts how often the body gets each slot, or rows of it.  That rows are contiguous
        cannot be seen: strides may be written in other lengths that are known to be equal.
        """
        slot, strides, offset, _ = window.operand
        self.require(bool(slot.shape), f"slot {slot.number} has no rows")
        self.require(len(strides) == slot.ndim, "strides and axes differ in number")
        offsets = [number for number, _ in window.writes]
        self.require(min((*window.reads, *offsets), default=0) >= 0, "an offset is negative")
        self.require(len(set(offsets)) == len(offsets), "a row is written twice")
        for _, number in window.writes:
            self.require(0 <= number < len(body.outputs), f"the body has no output {number}")
            same = body.outputs[number].dtype == slot.dtype
            self.require(same, f"output {number} has another dtype than its row")
        if window.writes:
            last = (slot.shape[0] - 1) * product(slot.shape[1:])  # offset of reversed rows
            whole = offset.value == 0 or offset is last
            whole = whole and window.length is slot.shape[0]
            self.require(whole, f"slot {slot.number} is written in part")
            alone = reads[slot] == len(window.reads)
            self.require(alone, f"slot {slot.number} is written, and read elsewhere")

    def branch(self, step: Branch) -> None:
        self.require(step.condition.dtype == "bool", "the condition is not bool")
        for program in (step.then, step.orelse):
            self.signature(verify(program), list(step.inputs))
            found = [s.dtype for s in program.outputs]
            self.require(found == [s.dtype for s in step.outputs], "the outputs differ in dtype")

    def signature(self, inner: Program, given: list[Slot]) -> None:
        """The inputs of an inner Program must match the slots that it is given."""
        found = [s.dtype for s in inner.inputs]
        self.require(found == [s.dtype for s in given], "inner inputs differ in number or dtype")

    def kernel(self, kernel: Kernel) -> None:
        reducing = any(inst.op == "reduce" for inst in kernel.body)
        n = len(kernel.dims)
        if reducing:
            self.require(0 <= kernel.split <= n, "split out of range")
        else:
            self.require(kernel.split == n, "without a reduce the split is the number of dims")
        for operand in kernel.operands:
            self.require(len(operand.strides) == n, "operand strides and dims differ in number")
            dtype = operand.slot.dtype
            self.require(dtype in NATIVE_DTYPES, "a kernel of dtype %s, which is not native", dtype)
        _Body(self, kernel).verify()
        if kernel.ragged is not None:
            self.ragged(kernel, kernel.ragged)

    def ragged(self, kernel: Kernel, bounds: tuple[int, int]) -> None:
        """The bounds of a ragged loop are int64 values that are known before the loop."""
        last = len(kernel.dims) - 1
        self.require(last >= 0, "a ragged kernel has no loop")
        self.require(kernel.split >= last, "a loop besides the ragged one is reduced")
        for position in bounds:
            self.require(0 <= position < len(kernel.body), "no instruction %s", position)
            inst = kernel.body[position]
            gives = inst.dtype == "int64" and inst.op not in ("store", "accumulate")
            self.require(gives, "the bound %s is no int64 value", position)
        self.require(bounds_vary_outside(kernel), "a bound depends on what the ragged loop does")

    # ----- outputs and memory
    def outputs(self) -> None:
        program = self.program
        seen: set[int] = set()
        for slot in program.outputs:
            self.readable(slot)
            kinds = ("output", "python", "object")
            self.require(slot.kind in kinds, f"slot {slot.number} has kind {slot.kind}")
            self.require(
                slot.kind == "object" or slot.number not in seen, f"slot {slot.number} twice"
            )
            seen.add(slot.number)
        self.require(len(program.updates) <= len(program.outputs), "more updates than outputs")
        for i in program.updates:
            self.require(0 <= i < len(program.inputs), f"update of input {i}")

    def strips(self) -> None:
        """Kernels that run in strips access what they write in step, and ranges are in order."""
        steps, end = self.program.steps, 0
        for first, stop in self.program.strips:
            self.require(end <= first < stop <= len(steps), f"the range {first}:{stop}")
            kernels = [step for step in steps[first:stop] if isinstance(step, Kernel)]
            self.require(len(kernels) == stop - first, "a step of %s:%s is no Kernel", first, stop)
            found = strips_of(kernels) is not None
            self.require(found, "the kernels %s:%s depend on each other", first, stop)
            end = stop

    def storage(self) -> None:
        """Slots of one storage have disjoint live ranges, or overlap in one kernel or copy.

        The latter is the step that overwrites the old slot with the new one.
        """
        first, last = live_ranges(self.program)
        by_storage: dict[int, list[Slot]] = {}
        for slot in self.program.slots:
            if slot.storage is not None and slot.number in first:
                by_storage.setdefault(slot.storage, []).append(slot)
        for number, slots in by_storage.items():
            slots.sort(key=lambda s: first[s.number])
            for a, b in pairwise(slots):
                step = self.program.steps[first[b.number]]
                overwrites = last[a.number] == first[b.number]
                overwrites = overwrites and isinstance(step, (Kernel, Copy))
                disjoint = last[a.number] < first[b.number] or overwrites
                text = f"storage {number}: slots {a.number} and {b.number} are live together"
                self.require(disjoint, text)


def live_ranges(program: Program) -> tuple[dict[int, int], dict[int, int]]:
    """The numbers of the first and of the last step that accesses each slot, by slot number."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, step in enumerate(program.steps):
        for slot in (*step_reads(step), *step_writes(step)):
            first.setdefault(slot.number, number)
            last[slot.number] = number
    return first, last


class _Where(NamedTuple):
    """A place in a kernel, formatted only if an error is raised."""

    step: Any
    position: int
    op: str

    def __str__(self) -> str:
        return f"{self.step}, instruction {self.position} ({self.op})"


class _Body:
    """Checks the instructions of one kernel; ``do_*`` methods are the rules of single ones."""

    def __init__(self, verifier: _Verifier, kernel: Kernel):
        self.v, self.kernel = verifier, kernel
        self.stored: set[int] = set()

    def verify(self) -> None:
        where = self.v.where
        for position, inst in enumerate(self.kernel.body):
            self.v.where = _Where(where, position, inst.op)
            for a in inst.args:
                self.v.require(0 <= a < position, "argument %s is not an earlier instruction", a)
                gives = self.kernel.body[a].op not in ("store", "accumulate")
                self.v.require(gives, "argument %s gives no value", a)
            handler = getattr(self, "do_" + inst.op, self.arithmetic)
            handler(inst)
        self.v.where = where

    def dtypes(self, inst: Inst) -> list[str]:
        return [self.kernel.body[a].dtype for a in inst.args]

    def operand(self, number: int, indices: int, dtype: str) -> Operand:
        self.v.require(0 <= number < len(self.kernel.operands), "no operand %s", number)
        operand = self.kernel.operands[number]
        self.v.require(operand.slot.dtype == dtype, "slot has dtype %s", operand.slot.dtype)
        self.v.require(len(operand.extra) == indices, "indices and extra strides differ in number")
        return operand

    def do_load(self, inst: Inst) -> None:
        slot = self.operand(inst.param, len(inst.args), inst.dtype).slot
        self.v.require(all(d == "int64" for d in self.dtypes(inst)), "an index is not int64")
        if slot.number not in self.stored:
            self.v.readable(slot)

    def do_store(self, inst: Inst) -> None:
        self.v.require(len(inst.args) >= 1, "no value")
        dtype = self.dtypes(inst)[0]
        slot = self.operand(inst.param, len(inst.args) - 1, dtype).slot
        self.stored.add(slot.number)

    def do_accumulate(self, inst: Inst) -> None:
        number, kind = inst.param
        self.v.require(kind in REDUCTIONS and not kind.startswith("arg"), f"kind {kind!r}")
        slot = self.operand(number, len(inst.args) - 1, self.dtypes(inst)[0]).slot
        allowed = combination(kind, slot.dtype)
        self.v.require(kind == allowed, "%s of bools, not %s", kind, allowed)
        self.v.require(kind == "add" or slot.dtype not in COMPLEX, "%s of %s", kind, slot.dtype)
        self.v.readable(slot)

    def do_reduce(self, inst: Inst) -> None:
        self.v.require(inst.param in REDUCTIONS, f"unknown reduction {inst.param!r}")
        self.v.require(self.dtypes(inst)[0] in COMPUTED, "of %s", self.dtypes(inst)[0])
        wanted = "int64" if inst.param.startswith("arg") else self.dtypes(inst)[0]
        self.v.require(inst.dtype == wanted, "gives %s, not %s", inst.dtype, wanted)
        allowed = combination(inst.param, inst.dtype)
        self.v.require(inst.param == allowed, "%s of bools, not %s", inst.param, allowed)

    def do_const(self, inst: Inst) -> None:
        self.v.require(isinstance(inst.param, (bool, int, float)), "not a Python number")
        self.v.require(not is_complex(inst.dtype), "of %s", inst.dtype)

    def do_dim(self, inst: Inst) -> None:
        self.v.require(inst.dtype == "int64", "a dim is int64")

    def do_index(self, inst: Inst) -> None:
        self.v.require(inst.dtype == "int64", "an index is int64")
        self.v.require(0 <= inst.param < len(self.kernel.dims), f"no dimension {inst.param}")

    def do_wrap(self, inst: Inst) -> None:
        self.v.require(self.dtypes(inst) == ["int64", "int64"], "arguments are not int64")

    def do_call(self, inst: Inst) -> None:
        arity = LIBM_CALLS.get(inst.param, SCIPY_CALLS.get(inst.param))
        self.v.require(arity == len(inst.args), f"call of {inst.param!r} with {len(inst.args)}")
        self.v.require(all(d == inst.dtype for d in self.dtypes(inst)), "argument dtypes differ")
        self.v.require(inst.dtype in COMPUTED, "does not take %s", inst.dtype)

    def do_cast(self, inst: Inst) -> None:
        dtypes = [*self.dtypes(inst), inst.dtype]
        native = not any([is_complex(dtype) for dtype in dtypes])
        self.v.require(len(dtypes) == 2 and native, "bad cast")

    def do_select(self, inst: Inst) -> None:
        wanted = ["bool", inst.dtype, inst.dtype]
        self.v.require(self.dtypes(inst) == wanted, "argument dtypes are %s", self.dtypes(inst))

    def arithmetic(self, inst: Inst) -> None:
        row = INSTRUCTIONS.get(inst.op)
        if row is None:
            raise IllegalProgram(f"{self.v.where}: unknown instruction")
        dtypes = self.dtypes(inst)
        self.v.require(
            len(dtypes) == row.arity, "takes %s arguments, got %s", row.arity, len(dtypes)
        )
        self.v.require(len(set(dtypes)) == 1, "argument dtypes %s differ", dtypes)
        native = dtypes[0] in COMPUTED or (is_complex(dtypes[0]) and inst.op in OF_PAIRS)
        self.v.require(native and dtypes[0][0] in row.kinds, "does not take %s", dtypes[0])
        wanted = row.result_dtype(dtypes[0])
        self.v.require(inst.dtype == wanted, "gives %s, not %s", inst.dtype, wanted)
