"""Program -> LLVM IR of one native routine.

The routine has the vectorcall signature of CPython.  It tests its arguments, computes lengths,
allocates memory, runs the steps one after the other, and returns results and new values of shared
variables.  Calls share only read-only data and the cells of shared variables, so the routine is
reentrant and thread-safe.  A call that finds that a value that it updates has been replaced
meanwhile is repeated.

External addresses come through the block of pointers that belongs to the function object (see
`callable.Block`) or are symbols for the linker; the code contains no absolute address.  Routines
that do not depend on the Program are in ``runtime.ll`` and ``blas.ll``.

Exits::

    miss      an argument does not fit or has a name: runtime.ll copies it, puts it in its place,
              or asks the ``slow`` callback
    fail      a step failed: the ``failed`` callback raises the error
    memory    out of memory
    raise     an exception is set
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.writer import Writer
from phintys.backends.llvm.kernel.kernels import KernelCode
from phintys.backends.llvm.routine import steps
from phintys.backends.llvm.routine.body import Body
from phintys.backends.llvm.routine.frame import HEADER, MOST_REPEATS, REPEATS_AT, Frame
from phintys.backends.llvm.routine.threads import thread_count
from phintys.backends.llvm.runtime.callable import CHECKED, MODE_OFFSET
from phintys.backends.llvm.runtime.cpython import LAYOUT, offsets
from phintys.lowering.program import Call, External, Program, Slot, all_steps


class EntryCode(NamedTuple):
    """The routine, its kernels, and the ``declare`` lines of what it calls.

    ``words`` describes each word of the function's block: ("slow", None), ("failed", None),
    ("integer", n), ("names", None), ("object", o), ("array", a) for the address of an array's data,
    ("cell", i) for the list that holds the i-th shared variable, or ("null", None).
    """

    ir: str
    kernels: dict[str, KernelCode]
    declares: frozenset[str]
    words: tuple[tuple[str, Any], ...]
    inlined: frozenset[str] = frozenset()
    has_loops: bool = False


def emit_entry(program: Program, single: bool = False) -> EntryCode:
    """The routine of a whole Program; ``single`` returns the one result instead of a list."""
    return Routine(program).emit(single)


class Routine(Frame):
    """The text of one routine: arguments, steps, results and exits."""

    signature = "ptr @phintys.entry(ptr %self, ptr %args, i64 %flagged, ptr %names) nounwind"
    body_class = Body

    def __init__(self, program: Program) -> None:
        super().__init__(program.n_arguments, thread_count())
        self.program = program
        self.starts = all_steps(program)[1]
        self.body = self.body_class(self, program, steps.emit)

    # ----- the routine
    def emit(self, single: bool) -> EntryCode:
        self.arguments()
        self.shared()
        self.body.constants()
        self.body.run()
        self.results(single)
        self.failures()
        plain = "" if self.is_worth_optimising() else " noinline optnone"
        ir = self.out.text(self.signature + plain).replace("entry:\n", "entry:\n" + self.start(), 1)
        ir = self.positions.text() + ir
        words, inlined = tuple(self.words), frozenset(self.inlined)
        return EntryCode(ir, self.kernels, frozenset(self.declares), words, inlined, self.has_loops)

    def is_worth_optimising(self) -> bool:
        all_steps = self.program.steps
        repeats = any(isinstance(s, (Call, External)) and s.batch for s in all_steps)
        return self.has_loops or (repeats and len(all_steps) <= costs.OPTIMISED_STEPS)

    # ----- arguments
    def arguments(self) -> None:
        """Emit the tests of the arguments; nothing is owned yet, so a miss needs no cleanup."""
        out, program = self.out, self.program
        slots = program.inputs[: program.n_arguments]
        for slot in slots:
            descr = np.dtype(slot.dtype) if slot.dtype else None
            self.word("object" if descr else "null", descr)
            self.word("integer", slot.ndim)
        named = out.value("icmp eq ptr %names, null")
        out.line(f"%given = and i64 %flagged, {(1 << REPEATS_AT) - 1}")
        count = out.value(f"icmp eq i64 %given, {len(slots)}")
        out.require(out.value(f"and i1 {named}, {count}"), "miss")
        if any(slot.kind == "object" for slot in slots):
            mode = out.load("i64", "%self", MODE_OFFSET)
            out.require(out.value(f"icmp ne i64 {mode}, {CHECKED}"), "miss")
        for i, slot in enumerate(slots):
            object_ = out.load("ptr", "%args", 8 * i)
            if slot.dtype is None:
                self.body.objects[slot.number] = object_
            elif slot.ndim == 0 and slot.dtype in _SCALARS:
                self.scalar(i, slot, object_)
            else:
                kind = out.load("ptr", object_, offsets().type)
                out.require(out.value(f"icmp eq ptr {kind}, @PyArray_Type"), "miss")
                self.body.objects[slot.number] = object_
                self.body.addresses[slot.number] = self.array(i, slot, object_, "miss")

    def array(self, i: int, slot: Slot, object_: str, otherwise: str) -> str:
        """Emit the address of an array's data; branches to ``otherwise`` if it does not fit."""
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
        """Emit the tests of a 0-d argument: an array, or a Python number, stored on the stack."""
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

    def shared(self) -> None:
        """Emit what reads the shared variables."""
        updated = {self.program.inputs[number].number for number in self.program.updates}
        self.body.shared(self.program.inputs[self.program.n_arguments :], updated)

    # ----- the end
    def results(self, single: bool) -> None:
        """Emit the return of results, then the update of shared variables, which cannot fail."""
        out, program = self.out, self.program
        split = len(program.outputs) - len(program.updates)
        results, updates = program.outputs[:split], program.outputs[split:]
        moved: set[int] = set()
        if not single:
            answer = out.value(f"call ptr @PyList_New(i64 {len(results)})")
            out.require(out.value(f"icmp ne ptr {answer}, null"), "raise")
            self.repeat_if_changed(answer)
            for i, slot in enumerate(results):
                object_ = self.hand_out(slot, moved)
                out.value(f"call i32 @PyList_SetItem(ptr {answer}, i64 {i}, ptr {object_})")
        else:
            self.repeat_if_changed()
            answer = self.hand_out(results[0], moved)
        news = [self.hand_out(slot, moved) for slot in updates]
        for number, new in zip(program.updates, news):
            cell = self.body.cells[program.inputs[number].number]
            out.value(f"call i32 @PyList_SetItem(ptr {cell}, i64 0, ptr {new})")
        self.clean(owned=0 if len(moved) < self.owned else self.owned)
        out.line(f"ret ptr {answer}")

    def repeat_if_changed(self, answer: str = "null") -> None:
        """Emit the repetition of the call if another one has replaced a value that it updates.

        So no update is lost, and draws from a shared generator are disjoint, although the GIL is
        released between reading a value and storing its successor.  A repeated call keeps the GIL,
        so it succeeds unless a `Python` step gives up the GIL, or replaces the value itself.  It
        takes the place of the call on the stack.
        """
        out, same = self.out, []
        for number, old in self.body.originals.items():
            cell = self.body.cells[number]
            now = out.value(f"call ptr @PyList_GetItem(ptr {cell}, i64 0)")
            same.append(out.value(f"icmp eq ptr {now}, {old}"))
        if not same:
            return
        again, go = out.name("again"), out.name("go")
        out.branch(_all(out, same), go, again)
        out.label(again)
        out.line(f"call void @Py_DecRef(ptr {answer})")
        self.clean()
        before = out.value(f"and i64 %flagged, {MOST_REPEATS << REPEATS_AT}")
        often = out.value(f"icmp eq i64 {before}, {MOST_REPEATS << REPEATS_AT}")
        fail, repeat = out.name("often"), out.name("repeat")
        out.branch(often, fail, repeat)
        out.label(fail)
        out.line("call void @phintys_replaced()")
        out.line("ret ptr null")
        out.label(repeat)
        count = out.value(f"add i64 {before}, {1 << REPEATS_AT}")
        flagged = out.value(f"or i64 %given, {count}")
        result = out.value(
            f"musttail call ptr @phintys.entry(ptr %self, ptr %args, i64 {flagged}, ptr null)"
        )
        out.line(f"ret ptr {result}")
        out.label(go)

    def hand_out(self, slot: Slot, moved: set[int]) -> str:
        """Emit a new reference to the object in an output slot."""
        object_ = self.body.objects[slot.number]
        place = self.body.places.get(slot.number)
        if place is None or place in moved:
            self.out.line(f"call void @Py_IncRef(ptr {object_})")
        else:
            moved.add(place)
            self.out.store("ptr", "null", "%owned", 8 * place)
        return object_

    def failures(self) -> None:
        out = self.out
        out.label("miss")
        out.line(
            "%answer = tail call ptr @phintys_miss(ptr %self, ptr %args, i64 %given, ptr %names)"
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
        self.resume()
        out.value("call ptr @PyErr_NoMemory()")
        out.line("br label %raise")
        out.label("raise")
        self.clean()
        out.line("ret ptr null")


def _all(out: Writer, tests: list[str]) -> str:
    result = tests[0]
    for test in tests[1:]:
        result = out.value(f"and i1 {result}, {test}")
    return result


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
