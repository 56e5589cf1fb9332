"""Program -> LLVM IR of one native routine.

The routine has the vectorcall signature of CPython.  It tests its arguments, computes lengths,
allocates, runs the steps one after the other, hands out results and new values of shared
variables.  It shares nothing between calls but read-only data and the cells of shared
variables, so threads may be in it at once.

Everything outside comes through the block of pointers that belongs to the function object (see
`callable.Block`) or is a symbol for the linker; no address stands in the code.  What does not
depend on the Program is in ``runtime.ll`` and ``blas.ll``.

Ways out::

    miss      an argument does not fit: runtime.ll copies it or asks the ``slow`` callback
    fail      a step failed: the ``failed`` callback raises the error
    memory    out of memory
    raise     an exception is set
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from phintys.backends.llvm import blas
from phintys.backends.llvm.callable import CHECKED, DATA_OFFSET, MODE_OFFSET
from phintys.backends.llvm.cpython import LAYOUT, offsets
from phintys.backends.llvm.kernels import KernelCode, emit_kernel
from phintys.backends.llvm.writer import Lengths, Writer
from phintys.dims import ZERO, Dim, product
from phintys.lowering.program import (
    Call,
    Check,
    Copy,
    Kernel,
    Operand,
    Program,
    Python,
    Slot,
    Step,
)

#: Temps of known size are kept on the stack up to this many bytes a call.
STACK_BYTES = 4096

#: The fixed words at the start of a block; the rows of the arguments follow.
HEADER = ("slow", "failed", "count")

#: Routines with more steps are not optimised: it would take most of the time of code generation,
#: and gains some nanoseconds a call.
OPTIMISED_STEPS = 8

#: The lock of the interpreter is given up around work of more than this many scalar instructions,
#: which is some 10 microseconds.
LONG_WORK = 20_000

_SIGNATURE = "ptr @phintys.entry(ptr %self, ptr %args, i64 %flagged, ptr %names) nounwind"
_ALIGN = 64

DECLARATIONS = """
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @PyErr_NoMemory()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyMem_RawMalloc(i64)
declare ptr @PyTuple_GetItem(ptr, i64)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.sadd.sat.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare {i64, i1} @llvm.sadd.with.overflow.i64(i64, i64)
declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)
declare ptr @phintys_array(ptr, ptr, i64, ptr)
declare ptr @phintys_call(ptr, ptr, i64, i64, ptr)
declare ptr @phintys_copy(i64, ptr, ptr, ptr, i64)
declare ptr @phintys_empty(i64, ptr, ptr)
declare ptr @phintys_failed(ptr, ptr, i64)
declare void @phintys_free(ptr, i64)
declare ptr @phintys_miss(ptr, ptr, i64, ptr)
declare void @phintys_release(ptr, i64)
declare void @phintys_too_large()
@PyArray_Type = external global i8
@PyDoubleArrType_Type = external global i8
@PyFloat_Type = external global i8
@PyLong_Type = external global i8
@_Py_FalseStruct = external global i8
@_Py_TrueStruct = external global i8
""".strip().splitlines()


@dataclass(frozen=True, slots=True)
class EntryCode:
    """The routine and what it needs.

    ``words`` says what each word of the function's block is: ("slow", None), ("failed", None),
    ("integer", n), ("object", o), ("array", a) for the address of an array's data, ("cell", i)
    for the list that holds the i-th shared variable, or ("null", None).
    """

    ir: str
    declares: frozenset[str]
    kernels: dict[str, KernelCode]
    words: tuple[tuple[str, Any], ...]


def emit_entry(program: Program, single: bool = False) -> EntryCode:
    """The routine of a whole Program; ``single`` returns the one result instead of a list."""
    return _Entry(program).emit(single)


class _Entry:
    """One routine: its text, the words of its block, what it owns."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.out = Writer()
        self.words: list[tuple[str, Any]] = [("slow", None), ("failed", None)]
        self.words.append(("integer", program.n_arguments))
        self.kernels: dict[str, KernelCode] = {}
        self.declares: set[str] = set()
        self.owned = 0  # Python objects that the call owns: places in the array %owned
        self.works = 0  # memory that the call has allocated: places in the array %works
        self.stack_bytes = 0
        self.step = self.out.stack("i64")  # the step that is about to fail
        self.thread = ""  # where the thread state is kept while the lock is given up
        self.body = _Body(self, program)

    # ----- the routine
    def emit(self, single: bool) -> EntryCode:
        self.arguments()
        self.body.shared(self.program.inputs[self.program.n_arguments :])
        self.body.constants()
        self.body.run()
        self.results(single)
        self.failures()
        plain = " noinline optnone" if len(self.program.steps) > OPTIMISED_STEPS else ""
        ir = self.out.text(_SIGNATURE + plain).replace("entry:\n", "entry:\n" + self.frame(), 1)
        return EntryCode(ir, frozenset(self.declares), self.kernels, tuple(self.words))

    def frame(self) -> str:
        """The start of the routine, whose size is known last."""
        lines = [
            f"%block.at = getelementptr i8, ptr %self, i64 {DATA_OFFSET}",
            "%block = load ptr, ptr %block.at",
            f"%owned = alloca [{self.owned + 1} x ptr], align 8",
            f"%works = alloca [{self.works + 1} x ptr], align 8",
        ]
        if self.stack_bytes:
            lines.append(f"%stack = alloca [{self.stack_bytes} x i8], align {_ALIGN}")
        for name, count in (("%owned", self.owned), ("%works", self.works)):
            if count:
                size = 8 * count
                lines.append(f"call void @llvm.memset.p0.i64(ptr {name}, i8 0, i64 {size}, i1 0)")
        return "".join(f"  {line}\n" for line in lines)

    def word(self, kind: str, value: Any) -> int:
        """The position of a new word of the block."""
        self.words.append((kind, value))
        return len(self.words) - 1

    # ----- arguments
    def arguments(self) -> None:
        """Test the arguments; nothing is owned yet, so a miss just leaves."""
        out, program = self.out, self.program
        slots = program.inputs[: program.n_arguments]
        for slot in slots:
            descr = np.dtype(slot.dtype) if slot.dtype else None
            self.word("object" if descr else "null", descr)
            self.word("integer", slot.ndim)
        named = out.value("icmp eq ptr %names, null")
        given = out.value("and i64 %flagged, 9223372036854775807")
        count = out.value(f"icmp eq i64 {given}, {len(slots)}")
        out.require(out.value(f"and i1 {named}, {count}"), "miss")
        if any(slot.kind == "object" for slot in slots):
            mode = out.load("i64", "%self", MODE_OFFSET)
            out.require(out.value(f"icmp ne i64 {mode}, {CHECKED}"), "miss")
        to_python = _seen_by_python(program)
        for i, slot in enumerate(slots):
            object_ = out.load("ptr", "%args", 8 * i)
            if slot.dtype is None:
                self.body.objects[slot.number] = object_
            elif slot.ndim == 0 and slot.dtype in _SCALARS and slot.number not in to_python:
                self.scalar(i, slot, object_)
            else:
                kind = out.load("ptr", object_, offsets().type)
                out.require(out.value(f"icmp eq ptr {kind}, @PyArray_Type"), "miss")
                self.body.objects[slot.number] = object_
                self.body.addresses[slot.number] = self.array(i, slot, object_, "miss")

    def array(self, i: int, slot: Slot, object_: str, otherwise: str) -> str:
        """The data of an ndarray that is as the slot says, else go to ``otherwise``."""
        out, at = self.out, offsets()
        descr = out.load("ptr", "%block", 8 * (len(HEADER) + 2 * i))
        has = out.load("ptr", object_, at.descr)
        rank = out.load("i32", object_, at.nd)
        flags = out.load("i32", object_, at.flags)
        layout = out.value(f"and i32 {flags}, {LAYOUT}")
        tests = [
            out.value(f"icmp eq ptr {has}, {descr}"),
            out.value(f"icmp eq i32 {rank}, {slot.ndim}"),
            out.value(f"icmp eq i32 {layout}, {LAYOUT}"),
        ]
        out.require(_all(out, tests), otherwise)
        tests = []
        for axis, dim in enumerate(slot.shape):
            if dim.value is not None:
                length = out.load("i64", out.load("ptr", object_, at.dims), 8 * axis)
                tests.append(out.value(f"icmp eq i64 {length}, {dim.value}"))
        if tests:
            out.require(_all(out, tests), otherwise)
        return out.load("ptr", object_, at.data)

    def scalar(self, i: int, slot: Slot, object_: str) -> None:
        """A 0-d argument: an array, or a Python number, which goes to the stack."""
        out = self.out
        memory = out.stack("i64")
        is_array, number, done = (out.name(n) for n in ("array", "number", "done"))
        kind = out.load("ptr", object_, offsets().type)
        out.branch(out.value(f"icmp eq ptr {kind}, @PyArray_Type"), is_array, number)
        out.label(number)
        _SCALARS[slot.dtype or ""](out, object_, kind, memory)
        numbers_end = out.block
        out.line(f"br label %{done}")
        out.label(is_array)
        data = self.array(i, slot, object_, "miss")
        arrays_end = out.block
        out.line(f"br label %{done}")
        out.label(done)
        self.body.addresses[slot.number] = out.value(
            f"phi ptr [{memory}, %{numbers_end}], [{data}, %{arrays_end}]"
        )

    # ----- ownership
    def own(self, object_: str) -> int:
        """Keep a reference until the end of the call."""
        self.out.store("ptr", object_, "%owned", 8 * self.owned)
        self.owned += 1
        return self.owned - 1

    def obtain(self, call: str) -> tuple[str, int]:
        """Call something that gives a new reference, or null with an exception."""
        object_ = self.out.value(call)
        self.out.require(self.out.value(f"icmp ne ptr {object_}, null"), "raise")
        return object_, self.own(object_)

    def release(self, place: int) -> None:
        """Drop a reference early."""
        at = self.out.at("%owned", 8 * place)
        self.out.line(f"call void @phintys_release(ptr {at}, i64 1)")

    def fail_unless(self, condition: str, step: int) -> None:
        self.out.line(f"store i64 {step}, ptr {self.step}")
        self.out.require(condition, "fail")

    # ----- the lock of the interpreter
    def suspend(self, work: str) -> None:
        """Give up the lock if there is enough work to do."""
        out, give, after = self.out, self.out.name("give"), self.out.name("go")
        if not self.thread:
            self.thread = out.stack("ptr")
            out.head.append(f"  store ptr null, ptr {self.thread}")
        out.branch(out.value(f"icmp sgt i64 {work}, {LONG_WORK}"), give, after)
        out.label(give)
        out.store("ptr", out.value("call ptr @PyEval_SaveThread()"), self.thread)
        out.line(f"br label %{after}")
        out.label(after)

    def resume(self) -> None:
        """Take the lock again if it has been given up."""
        if not self.thread:
            return
        out, take, after = self.out, self.out.name("take"), self.out.name("go")
        state = out.load("ptr", self.thread)
        out.branch(out.value(f"icmp ne ptr {state}, null"), take, after)
        out.label(take)
        out.store("ptr", "null", self.thread)
        out.line(f"call void @PyEval_RestoreThread(ptr {state})")
        out.line(f"br label %{after}")
        out.label(after)

    # ----- the end
    def results(self, single: bool) -> None:
        """Hand out results, then the new values of shared variables: nothing fails any more."""
        out, program = self.out, self.program
        split = len(program.outputs) - len(program.updates)
        results, updates = program.outputs[:split], program.outputs[split:]
        moved: set[int] = set()
        if not single:
            answer = out.value(f"call ptr @PyList_New(i64 {len(results)})")
            out.require(out.value(f"icmp ne ptr {answer}, null"), "raise")
            for i, slot in enumerate(results):
                object_ = self.hand_out(slot, moved)
                out.value(f"call i32 @PyList_SetItem(ptr {answer}, i64 {i}, ptr {object_})")
        else:
            answer = self.hand_out(results[0], moved)
        news = [self.hand_out(slot, moved) for slot in updates]
        for number, new in zip(program.updates, news):
            cell = self.body.cells[program.inputs[number].number]
            out.value(f"call i32 @PyList_SetItem(ptr {cell}, i64 0, ptr {new})")
        self.clean(everything=len(moved) < self.owned)
        out.line(f"ret ptr {answer}")

    def hand_out(self, slot: Slot, moved: set[int]) -> str:
        """A new reference to the object in an output slot."""
        object_ = self.body.objects[slot.number]
        place = self.body.places.get(slot.number)
        if place is None or place in moved:
            self.out.line(f"call void @Py_IncRef(ptr {object_})")
        else:
            moved.add(place)
            self.out.store("ptr", "null", "%owned", 8 * place)
        return object_

    def clean(self, everything: bool = True) -> None:
        if self.works:
            self.out.line(f"call void @phintys_free(ptr %works, i64 {self.works})")
        if self.owned and everything:
            self.out.line(f"call void @phintys_release(ptr %owned, i64 {self.owned})")

    def failures(self) -> None:
        out = self.out
        out.label("miss")
        out.line(
            "%answer = tail call ptr @phintys_miss(ptr %self, ptr %args, i64 %flagged, ptr %names)"
        )
        out.line("ret ptr %answer")
        out.label("fail")
        self.resume()
        step = out.load("i64", self.step)
        self.clean()
        out.value(f"call ptr @phintys_failed(ptr %block, ptr %args, i64 {step})")
        out.line("ret ptr null")
        out.label("large")
        self.resume()
        out.line("call void @phintys_too_large()")
        out.line("br label %raise")
        out.label("memory")
        out.value("call ptr @PyErr_NoMemory()")
        out.line("br label %raise")
        out.label("raise")
        self.clean()
        out.line("ret ptr null")


class _Body:
    """The steps of one Program, and where its slots are while they run."""

    def __init__(self, entry: _Entry, program: Program) -> None:
        self.entry, self.program, self.out = entry, program, entry.out
        self.lengths = Lengths(entry.out, self.symbol)
        self.addresses: dict[int, str] = {}  # slot number -> address of element 0
        self.objects: dict[int, str] = {}  # slot number -> the Python object
        self.places: dict[int, int] = {}  # slot number -> place in %owned
        self.cells: dict[int, str] = {}  # slot number -> the list of a shared variable
        self.blocks: dict[int, str] = {}  # storage number -> address
        self.words: dict[tuple[str, int], str] = {}
        self.slots = {slot.number: slot for slot in program.slots}
        self.slots.update((slot.number, slot) for slot in program.inputs)

    # ----- what comes from outside
    def word(self, kind: str, value: Any) -> str:
        """A word of the block that holds ``value``."""
        key = (kind, id(value))
        if key not in self.words:
            position = self.entry.word(kind, value)
            self.words[key] = self.out.load("ptr", "%block", 8 * position)
        return self.words[key]

    def descr(self, slot: Slot) -> str:
        return self.word("object", np.dtype(slot.dtype))

    def symbol(self, key: tuple[Any, ...]) -> str:
        """The value of a symbol: a length of an array, or an integer in a 0-d slot."""
        kind, number, *rest = key
        if kind == "item":
            slot = self.slots[number]
            return _load_integer(self.out, slot.dtype or "", self.addresses[number])
        dims = self.out.load("ptr", self.objects[number], offsets().dims)
        return self.out.load("i64", dims, 8 * rest[0])

    def shared(self, slots: list[Slot]) -> None:
        """Hold the values of shared variables for the time of the call."""
        for i, slot in enumerate(slots):
            cell = self.word("cell", i)
            self.cells[slot.number] = cell
            value = self.out.value(f"call ptr @PyList_GetItem(ptr {cell}, i64 0)")
            self.out.require(self.out.value(f"icmp ne ptr {value}, null"), "raise")
            self.receive(slot, value, slot.name or f"shared variable {i}")

    def receive(self, slot: Slot, value: str, what: str) -> None:
        """Take a reference to an object from outside, as the slot wants it."""
        if slot.dtype is None:
            self.out.line(f"call void @Py_IncRef(ptr {value})")
            self.objects[slot.number], self.places[slot.number] = value, self.entry.own(value)
            return
        descr, name = self.descr(slot), self.word("object", what)
        call = f"call ptr @phintys_array(ptr {value}, ptr {descr}, i64 {slot.ndim}, ptr {name})"
        self.hold(slot, *self.entry.obtain(call))

    def hold(self, slot: Slot, object_: str, place: int) -> None:
        """The slot is an array that the call owns."""
        self.objects[slot.number], self.places[slot.number] = object_, place
        self.addresses[slot.number] = self.out.load("ptr", object_, offsets().data)

    def constants(self) -> None:
        for slot in self.program.slots:
            if slot.data is None:
                continue
            if slot.kind == "object" and slot.number not in self.objects:
                self.objects[slot.number] = self.word("object", slot.data)
            elif slot.kind == "constant":
                data = np.asarray(slot.data, slot.dtype, order="C")
                self.objects[slot.number] = self.word("object", data)
                self.addresses[slot.number] = self.word("array", data)

    # ----- memory
    def provide(self, slot: Slot) -> None:
        """See to it that a slot which a step is about to use has memory."""
        if slot.number in self.addresses or slot.number in self.objects:
            return
        if slot.kind == "output":
            dims = self.dims_of(slot)
            call = f"call ptr @phintys_empty(i64 {slot.ndim}, ptr {dims}, ptr {self.descr(slot)})"
            self.hold(slot, *self.entry.obtain(call))
        elif slot.kind == "temp":
            number = slot.number if slot.storage is None else slot.storage
            if number not in self.blocks:
                self.allocate(slot)
            self.addresses[slot.number] = self.blocks[number]
        else:
            raise ValueError(f"slot {slot.number} ({slot.kind} {slot.name}) is used but not filled")

    def dims_of(self, slot: Slot) -> str:
        """An array on the stack with the lengths of a slot."""
        memory = self.out.stack(f"[{slot.ndim} x i64]")
        for axis, dim in enumerate(slot.shape):
            self.out.store("i64", self.lengths(dim), memory, 8 * axis)
        return memory

    def allocate(self, slot: Slot) -> None:
        """One workspace for this temp's storage and all others whose sizes are known by now."""
        sizes = self.program.storages
        first = slot.storage
        if first is None:
            raise ValueError(f"temp slot {slot.number} has no storage: the Program is not planned")
        known = [s for s in range(len(sizes)) if s not in self.blocks and self.is_known(sizes[s])]
        dynamic = []
        for s in dict.fromkeys([first, *known]):
            size = sizes[s].value
            if size is not None and self.entry.stack_bytes + size <= STACK_BYTES:
                self.blocks[s] = self.out.at("%stack", self.entry.stack_bytes)
                self.entry.stack_bytes += -(-size // _ALIGN) * _ALIGN
            else:
                dynamic.append(s)
        if dynamic:
            self.workspace(dynamic)

    def is_known(self, dim: Dim) -> bool:
        """Whether every symbol has a value that no later step can change."""
        return all(
            self.lengths.known(symbol)
            or (
                self.slots[symbol.args[0][1]].kind in ("input", "constant", "python")
                and symbol.args[0][1] in (self.addresses.keys() | self.objects.keys())
            )
            for symbol in dim.symbols()
        )

    def workspace(self, storages: list[int]) -> None:
        """Allocate blocks for storages, one after the other in one piece of memory."""
        out, starts, total = self.out, [], str(_ALIGN)
        for s in storages:
            starts.append(total)
            size = self.lengths.size(self.program.storages[s], "memory")
            padded = out.value(f"call i64 @llvm.sadd.sat.i64(i64 {size}, i64 {_ALIGN - 1})")
            rounded = out.value(f"and i64 {padded}, {-_ALIGN}")
            total = out.value(f"call i64 @llvm.sadd.sat.i64(i64 {total}, i64 {rounded})")
        raw = out.value(f"call ptr @PyMem_RawMalloc(i64 {total})")
        out.require(out.value(f"icmp ne ptr {raw}, null"), "memory")
        out.store("ptr", raw, "%works", 8 * self.entry.works)
        self.entry.works += 1
        beyond = out.value(f"and i64 {out.value(f'ptrtoint ptr {raw} to i64')}, {_ALIGN - 1}")
        base = out.at(raw, out.value(f"sub i64 0, {beyond}"))
        for s, start in zip(storages, starts):
            self.blocks[s] = out.at(base, start)

    # ----- steps
    def run(self) -> None:
        steps, last, start = self.program.steps, self.last_uses(), 0
        while start < len(steps):
            group = self.group(start)
            for step in group:
                for slot in _slots_of(step):
                    self.provide(slot)
            self.run_group(group)
            for i in range(start, start + len(group)):
                for number in last.get(i, ()):
                    if number in self.places:
                        self.entry.release(self.places[number])
            start += len(group)
        for slot in self.program.outputs:
            self.provide(slot)

    def group(self, start: int) -> list[Step]:
        """The next steps that can run without Python once all their memory has been allocated."""
        steps = self.program.steps
        end = start + 1
        if isinstance(steps[start], _NATIVE):
            while end < len(steps) and isinstance(steps[end], _NATIVE):
                if not all(self.can_provide(slot) for slot in _slots_of(steps[end])):
                    break
                end += 1
        return steps[start:end]

    def run_group(self, group: list[Step]) -> None:
        work = sum((_work(step) for step in group), ZERO)
        symbols = (self.is_known(symbol) for symbol in work.symbols())
        long = (work.value is None or work.value > LONG_WORK) and all(symbols)
        if long:
            self.entry.suspend(self.lengths(work))
        for step in group:
            _STEPS[type(step)](self, step)
        if long:
            self.entry.resume()

    def can_provide(self, slot: Slot) -> bool:
        """Whether the memory of a slot can be allocated now."""
        if slot.number in self.addresses or slot.number in self.objects:
            return True
        if slot.kind == "temp":
            return slot.storage in self.blocks or self.is_known(
                self.program.storages[slot.storage or 0]
            )
        return slot.kind == "output" and all(self.is_known(d) for d in slot.shape)

    def last_uses(self) -> dict[int, list[int]]:
        """step -> slots that Python made and that nothing needs after this step."""
        kept = {slot.number for slot in self.program.outputs}
        last: dict[int, int] = {}
        for i, step in enumerate(self.program.steps):
            made = step.outputs if isinstance(step, Python) else ()
            for slot in (*_slots_of(step), *made):
                if slot.kind in ("python", "object") and slot.number not in kept:
                    last[slot.number] = i
        uses: dict[int, list[int]] = {}
        for number, i in last.items():
            uses.setdefault(i, []).append(number)
        return uses

    def kernel(self, step: Kernel) -> None:
        code = emit_kernel(step)
        self.entry.kernels[code.symbol] = code
        args = []
        for a in code.arguments:
            if a.kind == "slot":
                args.append(f"ptr {self.addresses[a.value.number]}")
            elif a.kind == "dim":
                args.append(f"i64 {self.lengths(a.value)}")
            else:
                args.append(f"{a.type} {a.value}")
        status = self.out.value(f'call i64 @"{code.symbol}"({", ".join(args)})')
        if any(inst.op == "wrap" for inst in step.body):
            self.entry.fail_unless(self.out.value(f"icmp eq i64 {status}, 0"), step.step)

    def copy(self, step: Copy) -> None:
        source, target = (self.addresses[s.number] for s in (step.source, step.target))
        if source != target:
            size = self.lengths(_bytes(step.source))
            self.out.line(
                f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 0)"
            )

    def check(self, step: Check) -> None:
        left, right = self.lengths(step.left), self.lengths(step.right)
        test = {"==": "eq", ">=": "sge", ">": "sgt"}[step.relation]
        self.entry.fail_unless(self.out.value(f"icmp {test} i64 {left}, {right}"), step.step)

    def call(self, step: Call) -> None:
        status = blas.emit_call(self.out, step, self.lengths, self.addresses)
        self.entry.declares.add(blas.declaration(step))
        self.out.require(self.out.value(f"icmp eq i64 {status}, 0"), "large")

    def python(self, step: Python) -> None:
        out, entry = self.out, self.entry
        argv = out.stack(f"[{len(step.inputs) + 1} x ptr]")
        copies = []
        for i, slot in enumerate(step.inputs):
            object_ = self.objects.get(slot.number)
            if object_ is None:
                object_, place = self.wrapped(slot)
                copies.append(place)
            out.store("ptr", object_, argv, 8 * i)
        name = step.name or "a Python step"
        result, place = entry.obtain(
            f"call ptr @phintys_call(ptr {self.word('object', step.function)}, ptr {argv}, "
            f"i64 {len(step.inputs)}, i64 {len(step.outputs)}, ptr {self.word('object', name)})"
        )
        for i, slot in enumerate(step.outputs):
            value = out.value(f"call ptr @PyTuple_GetItem(ptr {result}, i64 {i})")
            self.receive(slot, value, f"output {i} of {name}")
            # read now: the array may be gone when a length is wanted
            if slot.dtype is not None:
                for axis in range(slot.ndim):
                    self.lengths(Dim.symbol(("len", slot.number, axis)))
                if slot.ndim == 0 and np.dtype(slot.dtype).kind in "iu":
                    self.lengths(Dim.symbol(("item", slot.number)))
        for done in (*copies, place):
            entry.release(done)

    def wrapped(self, slot: Slot) -> tuple[str, int]:
        """A fresh array with a copy of a temp: Python may keep it after the call."""
        dims, size = self.dims_of(slot), self.lengths(_bytes(slot))
        return self.entry.obtain(
            f"call ptr @phintys_copy(i64 {slot.ndim}, ptr {dims}, ptr {self.descr(slot)}, "
            f"ptr {self.addresses[slot.number]}, i64 {size})"
        )


_STEPS: dict[type, Callable[[_Body, Any], None]] = {
    Kernel: _Body.kernel,
    Copy: _Body.copy,
    Check: _Body.check,
    Call: _Body.call,
    Python: _Body.python,
}


#: Steps that need nothing of Python.
_NATIVE = (Kernel, Copy, Check, Call)


def _work(step: Step) -> Dim:
    """About how many scalar instructions a step is."""
    if isinstance(step, Kernel):
        return product(step.dims) * len(step.body)
    if isinstance(step, Copy):
        return product(step.source.shape)
    if isinstance(step, Call):
        return product((*step.sizes, *step.batch))
    return ZERO


def _slots_of(step: Step) -> list[Slot]:
    """The slots that a step uses, those that a `Python` step makes excepted."""
    if isinstance(step, Kernel):
        return [operand.slot for operand in step.operands]
    if isinstance(step, Copy):
        return [step.source, step.target]
    if isinstance(step, Call):
        factors = [f for f in (step.alpha, step.beta) if isinstance(f, Operand)]
        return [operand.slot for operand in (*step.operands, *factors)]
    return list(step.inputs) if isinstance(step, Python) else []


def _seen_by_python(program: Program) -> set[int]:
    """Numbers of slots that must be Python objects, not numbers on the stack."""
    steps = (step for step in program.steps if isinstance(step, Python))
    return {slot.number for step in steps for slot in step.inputs}


def _bytes(slot: Slot) -> Dim:
    return product(slot.shape) * np.dtype(slot.dtype).itemsize


def _all(out: Writer, tests: list[str]) -> str:
    result = tests[0]
    for test in tests[1:]:
        result = out.value(f"and i1 {result}, {test}")
    return result


def _load_integer(out: Writer, dtype: str, address: str) -> str:
    """An integer of any dtype as i64."""
    kind = np.dtype(dtype)
    bits = 8 * kind.itemsize
    value = out.load(f"i{bits}", address)
    if bits == 64:
        return value
    return out.value(f"{'sext' if kind.kind == 'i' else 'zext'} i{bits} {value} to i64")


# ----- Python numbers as 0-d arguments: write the number to memory, or go to "miss"


def _float(out: Writer, object_: str, kind: str, memory: str) -> None:
    exact = out.value(f"icmp eq ptr {kind}, @PyFloat_Type")
    numpy = out.value(f"icmp eq ptr {kind}, @PyDoubleArrType_Type")
    out.require(out.value(f"or i1 {exact}, {numpy}"), "miss")
    value = out.value(f"call double @PyFloat_AsDouble(ptr {object_})")
    out.store("double", value, memory)


def _integer(out: Writer, object_: str, kind: str, memory: str) -> None:
    out.require(out.value(f"icmp eq ptr {kind}, @PyLong_Type"), "miss")
    flag = out.stack("i32")
    value = out.value(f"call i64 @PyLong_AsLongLongAndOverflow(ptr {object_}, ptr {flag})")
    overflow = out.load("i32", flag)
    out.require(out.value(f"icmp eq i32 {overflow}, 0"), "miss")
    out.store("i64", value, memory)


def _boolean(out: Writer, object_: str, kind: str, memory: str) -> None:
    true = out.value(f"icmp eq ptr {object_}, @_Py_TrueStruct")
    false = out.value(f"icmp eq ptr {object_}, @_Py_FalseStruct")
    out.require(out.value(f"or i1 {true}, {false}"), "miss")
    out.store("i8", out.value(f"zext i1 {true} to i8"), memory)


_SCALARS: dict[str, Callable[[Writer, str, str, str], None]] = {
    "float64": _float,
    "int64": _integer,
    "bool": _boolean,
}
