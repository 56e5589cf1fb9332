"""Generates a C file from a `Program`.

The file defines ``int64_t run(void **p, int64_t *n, void *python)``.  ``p[k]`` is the memory of
slot ``k``.  ``n`` holds the lengths of arrays that come from outside, followed by lengths that
``run`` passes to the Python function that it calls.  ``python`` is a Python function of one
argument, the number of an action: an allocation, or a step.  ``run`` returns 0, the number of the
step that failed plus 1, or a negative number: an exception is set (``RAISED``), or memory could not
be allocated (``OUT_OF_MEMORY``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phintys.backends.c.control import emit_branch, emit_loop
from phintys.backends.c.kernels import TYPES
from phintys.backends.c.routines import emit_library, emit_routine, entry, pointer
from phintys.backends.c.steps import Steps
from phintys.lowering.program import (
    Branch,
    Call,
    Draw,
    External,
    Kernel,
    Loop,
    Program,
    Step,
    all_steps,
    inner_programs,
)
from phintys.routines.libraries import LETTERS
from phintys.scalar.native import DISTRIBUTIONS, OWN_CALLS, SCIPY_CALLS

RUNTIME = Path(__file__).parent / "runtime.h"

#: name in ``runtime.h`` -> function of Python's C API; ``bind`` takes the addresses in this order
PYTHON = {
    "give_lock": "PyEval_SaveThread",
    "take_lock": "PyEval_RestoreThread",
    "ensure_lock": "PyGILState_Ensure",
    "release_lock": "PyGILState_Release",
    "check_signals": "PyErr_CheckSignals",
    "call_function": "PyObject_CallFunction",
    "release": "Py_DecRef",
}


class CFile:
    """The C text of a Program, and what the caller of ``run`` has to know.

    text
        the C text
    lengths
        (slot number, axis) -> position in ``n``
    outside
        (library, name) of the functions of SciPy, in the order in which ``bind`` takes their
        addresses, after those of `PYTHON`
    draws
        the distributions, whose addresses come last
    call_lengths
        the position in ``n`` of the lengths that are passed to a Python function
    pointer_count, length_count
        the sizes of ``p`` and ``n``
    inner
        the `Steps` of the Program, and of all Programs in loops and branches
    actions
        what C asks Python to do: the name of a method of the caller, and its arguments
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lengths: dict[tuple[int, int], int] = {}
        self.functions: list[str] = []
        self.lines: list[str] = []
        self.actions: list[tuple[Any, ...]] = []
        self.inner: list[Steps] = []
        self.inside: dict[Step, list[Steps]] = {}
        self.pointer_count = self.storage_count = 0
        self.starts = all_steps(program)[1]
        self.steps = self._number(program, 0)
        self.call_lengths = self.length_count = len(self.lengths)
        every = [s for inner in self.inner for s in inner.program.steps]
        self.routines = {
            entry(s.routine, s.dtype): (s.routine, s.dtype)
            for s in every
            if isinstance(s, External)
        }
        self.blas = sorted({s.dtype for s in every if isinstance(s, Call)})
        self.outside = sorted({f for s in every for f in _outside(s)})
        self.draws = sorted({s.name for s in every if isinstance(s, Draw)})
        self.text = self._emit()

    def _number(self, program: Program, first: int) -> Steps:
        """Give numbers to the slots, lengths and storages of a Program, and of those inside."""
        slots = {slot.number: slot for slot in (*program.slots, *program.inputs)}
        base = self.pointer_count
        steps = Steps(self, program, base, self.storage_count, first)
        self.inner.append(steps)
        self.pointer_count += 1 + max(slots, default=0)
        # a block for each output: a loop writes them there
        self.storage_count += len(program.storages) + len(program.outputs)
        for number, slot in slots.items():
            if slot.kind in ("input", "python"):
                for axis in range(slot.ndim):
                    self.lengths[base + number, axis] = len(self.lengths)
        for s in program.steps:  # recursion as deep as the nesting of Programs
            self.inside[s] = [
                self._number(inner, self.starts[s, place])
                for place, inner in enumerate(inner_programs(s))
            ]
        return steps

    def action(self, *what: Any) -> int:
        """The number of an action, by which C asks for it."""
        self.actions.append(what)
        return len(self.actions) - 1

    def control(self, steps: Steps, step: Loop | Branch) -> None:
        """Emit a loop or branch."""
        if isinstance(step, Loop):
            emit_loop(steps, step, self.inside[step])
        else:
            emit_branch(steps, step, self.inside[step])

    # ----- the file
    def _emit(self) -> str:
        for steps in self.inner:
            for number in sorted(steps.items):
                self.lines.append(f"int64_t item{steps.slots + number} = 0;")
        self.steps.emit()
        body = "\n".join("    " + line for line in self.lines)
        specials = [name for library, name in self.outside if library == "special"]
        return "\n".join(
            [
                RUNTIME.read_text(),
                *(f"BLAS({TYPES[dtype]}, {LETTERS[dtype]})" for dtype in self.blas),
                *(f"static double (*special_{n})({_signature(n)});" for n in specials),
                *self._library_functions(),
                *(emit_routine(*routine) for routine in self.routines.values()),
                *(_distribution(name) for name in self.draws),
                self._bind(),
                *self.functions,
                "int64_t run(void **p, int64_t *n, void *python) {",
                "    int64_t failed = 0;",
                "    int overflow = 0;",
                "    int64_t work = 0;",
                "    void *thread = give_lock();",
                f"    void *storage[{self.storage_count + 1}] = {{0}};",
                "    (void)n; (void)python; (void)overflow; (void)work;",
                body,
                "done:",
                f"    for (int k = 0; k < {self.storage_count}; k++) free(storage[k]);",
                "    take_lock(thread);",
                "    return failed;",
                "}",
                "",
            ]
        )

    def _bind(self) -> str:
        """The C function that stores the addresses of the functions that the file calls."""
        names = [*PYTHON]
        names += [f"{library}_{name}" for library, name in self.outside]
        names += self.draws
        lines = [f"    {name} = f[{k}];" for k, name in enumerate(names)]
        return "\n".join(["void bind(void **f) {", *lines, "}"])

    def _library_functions(self) -> list[str]:
        """The C variables of the library functions that routines call."""
        calls = {(f, d) for routine, d in self.routines.values() for f in routine.libraries}
        # two rows may be the same function for a dtype
        texts = {pointer(f, dtype): emit_library(f, dtype) for f, dtype in sorted(calls)}
        return list(texts.values())


def _outside(step: Step) -> list[tuple[str, str]]:
    """(library, name) of the functions of SciPy that a step calls."""
    if isinstance(step, Kernel):
        calls = [i.param for i in step.body if i.op == "call" and i.param in SCIPY_CALLS]
        return [("special", name) for name in calls if name not in OWN_CALLS]
    if isinstance(step, Call):
        return [("blas", LETTERS[step.dtype] + name) for name in ("gemm", "gemv")]
    if isinstance(step, External):
        return [(f.library, f.symbol(step.dtype)) for f in step.routine.libraries]
    return []


def _signature(name: str) -> str:
    return ", ".join(["double"] * SCIPY_CALLS[name] + ["int"])


def _distribution(name: str) -> str:
    """The declaration of the pointer to a function of `DISTRIBUTIONS`."""
    result, parameters, scratch = DISTRIBUTIONS[name]
    last = ["void *"] if scratch else []
    types = ", ".join(["void *", *(TYPES[d] for d in parameters), *last])
    return f"static {TYPES[result]} (*{name})({types});"
