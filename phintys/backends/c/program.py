"""Generates a C file from a `Program`.

The file defines ``int64_t run(void **p, int64_t *n, void *allocate, void *python)``.  ``p[k]`` is
the memory of slot ``k``.  ``n`` holds the lengths of arrays that come from outside, followed by
lengths that ``run`` passes to the Python function that it calls.  ``allocate`` and ``python`` are
Python functions of one argument, the number of a slot or step.  ``run`` returns 0, the number of
the step that failed plus 1, or a negative number: an exception is set (``RAISED``), or memory
could not be allocated (``OUT_OF_MEMORY``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from phintys.backends.c.kernels import TYPES, combined, emit_kernel, literal
from phintys.backends.c.routines import emit_library, emit_routine, entry
from phintys.dims import Dim, exact_operands
from phintys.errors import UnsupportedError
from phintys.lowering.program import (
    Call,
    Check,
    Copy,
    Draw,
    External,
    Kernel,
    Operand,
    Program,
    Python,
    Scan,
    Slot,
    Step,
)
from phintys.lowering.reductions import start_of_scan
from phintys.routines.language import PART
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
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.pointer_count = 1 + max((slot.number for slot in program.slots), default=0)
        self.lengths: dict[tuple[int, int], int] = {}
        self.functions: list[str] = []
        self.lines: list[str] = []
        self.freed: list[str] = []
        for slot in program.slots:
            if slot.kind in ("input", "python"):
                for axis in range(slot.ndim):
                    self.lengths[slot.number, axis] = len(self.lengths)
        self.call_lengths = self.length_count = len(self.lengths)
        self.routines = {
            entry(s.routine, s.dtype): (s.routine, s.dtype)
            for s in program.steps
            if isinstance(s, External)
        }
        self.outside = sorted({f for s in program.steps for f in _outside(s)})
        self.draws = sorted({s.name for s in program.steps if isinstance(s, Draw)})
        self.items = self._item_slots()
        self.text = self._emit()

    def _item_slots(self) -> set[int]:
        """Slots whose integer is used as a length."""
        found: set[int] = set()
        for dim in _dims(self.program):
            for symbol in dim.symbols():
                key = symbol.args[0]
                if key[0] == "item":
                    found.add(key[1])
        return found

    # ----- lengths
    def integer(self, dim: Dim, exact: bool = False) -> str:
        """A Dim as a C expression; if ``exact``, the C code sets ``overflow`` on overflow."""
        if dim.op == "const":
            return f"INT64_C({dim.args[0]})"
        if dim.op == "symbol":
            kind, number, *axis = dim.args[0]
            return f"item{number}" if kind == "item" else f"n[{self.lengths[number, axis[0]]}]"
        # recursive, bounded by the depth of a shape computation
        if exact and dim.op in ("add", "mul"):
            return self._exact(dim)
        args = [self.integer(a, exact) for a in dim.args]
        if dim.op in ("add", "mul"):
            return "(" + {"add": " + ", "mul": " * "}[dim.op].join(args) + ")"
        return f"dim_{dim.op}({', '.join(args)})"

    def _exact(self, dim: Dim) -> str:
        """A sum or product as a C expression that sets ``overflow``."""
        operands, subtracted = exact_operands(dim)
        result = self.integer(operands[0], True)
        for k, a in enumerate(operands[1:], 1):
            op = dim.op if k < len(operands) - subtracted else "sub"
            result = f"exact_{op}({result}, {self.integer(a, True)}, &overflow)"
        return result

    def size(self, slot: Slot) -> str:
        return " * ".join(["INT64_C(1)", *(self.integer(d) for d in slot.shape)])

    # ----- the file
    def _emit(self) -> str:
        for number in sorted(self.items):
            self.lines.append(f"int64_t item{number} = 0;")
        for slot in self.program.slots:
            if slot.kind in ("input", "constant"):
                self._item(slot)
        self._allocated: set[int] = set()
        for step in self.program.steps:
            self._step(step)
        for slot in self.program.outputs:
            self._allocate(slot)
        body = "\n".join("    " + line for line in self.lines)
        dtypes = sorted({s.dtype for s in self.program.steps if isinstance(s, Call)})
        specials = [name for library, name in self.outside if library == "special"]
        return "\n".join(
            [
                RUNTIME.read_text(),
                *(f"BLAS({TYPES[dtype]}, {LETTERS[dtype]})" for dtype in dtypes),
                *(f"static double (*special_{n})({_signature(n)});" for n in specials),
                *self._library_functions(),
                *(emit_routine(*routine) for routine in self.routines.values()),
                *(_distribution(name) for name in self.draws),
                self._bind(),
                *self.functions,
                "int64_t run(void **p, int64_t *n, void *allocate, void *python) {",
                "    int64_t failed = 0;",
                "    int overflow = 0;",
                "    int64_t work = 0;",
                "    void *thread = give_lock();",
                f"    void *storage[{len(self.program.storages) + 1}] = {{0}};",
                "    (void)n; (void)allocate; (void)python; (void)overflow; (void)work;",
                body,
                "done:",
                f"    for (int k = 0; k < {len(self.program.storages)}; k++) free(storage[k]);",
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
        return [emit_library(f, dtype) for f, dtype in sorted(calls)]

    def _item(self, slot: Slot) -> None:
        if slot.number in self.items:
            c_type = TYPES[str(slot.dtype)]
            self.lines.append(f"item{slot.number} = (int64_t)*({c_type} *)p[{slot.number}];")

    def _allocate(self, slot: Slot) -> None:
        """Emit the allocation of a slot before it is written for the first time."""
        if slot.number in self._allocated or slot.kind not in ("temp", "output"):
            return
        self._allocated.add(slot.number)
        if slot.storage is not None:
            cell = f"storage[{slot.storage}]"
            size = self.integer(self.program.storages[slot.storage], True)
            make = f"int64_t size = {size}; {cell} = storage_of(size, overflow);"
            self.lines.append(f"if (!{cell}) {{ {make} }}")
            self.lines.append(f"if (!{cell}) {{ failed = OUT_OF_MEMORY; goto done; }}")
            self.lines.append(f"p[{slot.number}] = {cell};")
            return
        self._call_python("allocate", slot.number, slot.shape)

    def _fail_unless(self, condition: str, step: Step) -> None:
        self.lines.append(f"if (!({condition})) {{ failed = {step.step + 1}; goto done; }}")

    # ----- steps
    def _step(self, step: Step) -> None:
        if isinstance(step, Kernel):
            self._kernel(step)
        elif isinstance(step, Check):
            left, right = self.integer(step.left, True), self.integer(step.right, True)
            self._fail_unless(f"{left} {step.relation} {right} && !overflow", step)
        elif isinstance(step, Copy):
            self._allocate(step.target)
            size = f"{self.size(step.target)} * {np.dtype(str(step.target.dtype)).itemsize}"
            places = f"p[{step.target.number}], p[{step.source.number}]"
            self.lines.append(f"memmove({places}, {size});")
            self._item(step.target)
        elif isinstance(step, Call):
            self._call(step)
        elif isinstance(step, Scan):
            self._scan(step)
        elif isinstance(step, External):
            self._external(step)
        elif isinstance(step, Draw):
            self._draw(step)
        elif isinstance(step, Python):
            self._python(step)
        else:
            raise UnsupportedError(
                f"Mode 'C' does not compile {type(step).__name__} steps; use FAST_RUN."
            )

    def _kernel(self, kernel: Kernel) -> None:
        targets = {s.number: s for s in kernel.writes()}
        for slot in targets.values():
            self._allocate(slot)
        function, call = emit_kernel(kernel, f"kernel_{len(self.functions)}", self.integer)
        self.functions.append(function)
        self._fail_unless(f"{call} == 0", kernel)
        for slot in targets.values():
            self._item(slot)

    def _call(self, step: Call) -> None:
        target = step.operands[0]
        self._allocate(target.slot)
        prefix = "s" if step.dtype == "float32" else "d"
        loops = [f"b{k}" for k in range(len(step.batch))]
        for b, length in zip(loops, step.batch):
            self.lines.append(f"for (int64_t {b} = 0; {b} < {self.integer(length)}; {b}++)")
        sizes = step.sizes[:1] if step.name == "dot" else step.sizes
        args = [self.integer(d) for d in sizes] + [self._factor(step.alpha)]
        for operand in step.operands:
            args.append(self._place(operand, loops))
            args += [self.integer(s) for s in operand.strides[len(loops) :]]
        if step.name != "ger":
            args.append(self._factor(step.beta))
        call = f"{prefix}{step.name}(&work, {', '.join(args)})"
        self.lines.append(f"if ({call}) {{ failed = RAISED; goto done; }}")
        self._item(target.slot)

    def _scan(self, step: Scan) -> None:
        target = step.operands[0].slot
        self._allocate(target)
        dtype = str(target.dtype)
        loops = [f"b{k}" for k in range(len(step.dims))]
        *outer, inner = (
            f"for (int64_t {b} = 0; {b} < {self.integer(length)}; {b}++)"
            for b, length in zip(loops, step.dims)
        )
        written, read = (f"*({self._place(o, loops)})" for o in step.operands)
        state = combined(step.kind, dtype, "state", read)
        self.lines += [
            *outer,
            "{",
            f"if (signals(&work, {self.integer(step.dims[-1])})) {{ failed = RAISED; goto done; }}",
            f"{TYPES[dtype]} state = {literal(start_of_scan(step.kind, dtype).item(), dtype)};",
            f"{inner} {{ state = {state}; {written} = state; }}",
            "}",
        ]
        self._item(target)

    def _external(self, step: External) -> None:
        for slot in step.in_role("uw"):
            self._allocate(slot)
        loops = [f"b{k}" for k in range(len(step.batch))]
        for b, length in zip(loops, step.batch):
            self.lines.append(f"for (int64_t {b} = 0; {b} < {self.integer(length)}; {b}++) {{")
        args = ["1"] if step.routine.grouped else []
        args += [self.integer(d) for d in step.integers]
        args += [self._place(operand, loops) for operand in step.operands]
        self._fail_unless(f"{entry(step.routine, step.dtype)}({', '.join(args)}) == 0", step)
        polled = f"signals(&work, {self.integer(step.work)})"
        self.lines.append(f"if ({polled}) {{ failed = RAISED; goto done; }}")
        self.lines += ["}"] * len(loops)
        for slot in step.in_role("uw"):
            self._item(slot)

    def _draw(self, step: Draw) -> None:
        """Emit a draw; Python puts the address of the state of the generator's copy into ``p``."""
        if step.source is not step.result:
            self._call_python("python", step.step, [])
        target, *parameters = step.operands
        self._allocate(target.slot)
        loops = [f"b{k}" for k in range(len(step.dims))]
        given = "".join(f", *({self._place(o, loops)})" for o in parameters)
        self.lines += [
            *(
                f"for (int64_t {b} = 0; {b} < {self.integer(length)}; {b}++)"
                for b, length in zip(loops, step.dims)
            ),
            "{",
            "if (signals(&work, 32)) { failed = RAISED; goto done; }",
            f"*({self._place(target, loops)}) = {step.name}(p[{step.result.number}]{given});",
            "}",
        ]
        self._item(target.slot)

    def _place(self, operand: Operand, loops: list[str]) -> str:
        """The address of the element of an operand at the counters of some loops."""
        terms = [self.integer(operand.offset)]
        terms += [f"{b} * {self.integer(s)}" for b, s in zip(loops, operand.strides)]
        dtype = str(operand.slot.dtype)
        place = " + ".join(terms)
        if dtype in PART:  # complex numbers are pairs
            dtype, place = PART[dtype], f"2 * ({place})"
        return f"({TYPES[dtype]} *)p[{operand.slot.number}] + {place}"

    def _factor(self, factor: Operand | float) -> str:
        if isinstance(factor, Operand):
            return f"*({self._place(factor, [])})"
        return repr(float(factor))

    def _python(self, step: Python) -> None:
        """Emit a `Python` step; the lengths of its inputs are passed in ``n``."""
        lengths = [d for s in step.inputs if s.dtype for d in s.shape]
        self._call_python("python", step.step, lengths)
        for slot in step.outputs:
            self._item(slot)

    def _call_python(self, function: str, number: int, lengths: Sequence[Dim]) -> None:
        """Emit a call of a Python function; ``lengths`` are passed in ``n``."""
        for place, dim in enumerate(lengths, self.call_lengths):
            self.lines.append(f"n[{place}] = {self.integer(dim)};")
        self.length_count = max(self.length_count, self.call_lengths + len(lengths))
        self.lines.append(f"if (called({function}, {number})) {{ failed = RAISED; goto done; }}")


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
    result, parameters = DISTRIBUTIONS[name]
    types = ", ".join(["void *", *(TYPES[d] for d in parameters)])
    return f"static {TYPES[result]} (*{name})({types});"


def _dims(program: Program) -> list[Dim]:
    """Every Dim that a Program mentions."""
    found: list[Dim] = [*program.storages]
    for slot in program.slots:
        found += slot.shape
    for step in program.steps:
        if isinstance(step, Check):
            found += [step.left, step.right]
        if isinstance(step, Kernel):
            found += [*step.dims, *(i.param for i in step.body if i.op == "dim")]
        if isinstance(step, Call):
            found += [*step.sizes, *step.batch]
        if isinstance(step, Scan | Draw):
            found += step.dims
        if isinstance(step, External):
            found += [*step.integers, *step.batch, step.work]
        if isinstance(step, Kernel | Call | Scan | External | Draw):
            for o in step.operands:
                found += [o.offset, *o.strides, *o.extra]
    return found
