"""The steps of one Program as C statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from phintys.backends.c.kernels import TYPES, combined, emit_kernel, literal
from phintys.backends.c.routines import entry
from phintys.dims import Dim, exact_operands, product
from phintys.lowering.program import (
    Branch,
    Call,
    Check,
    Copy,
    Draw,
    External,
    Kernel,
    Loop,
    Operand,
    Program,
    Python,
    Scan,
    Slot,
    Step,
)
from phintys.lowering.reductions import start_of_scan
from phintys.lowering.spec import item_slots
from phintys.lowering.strips import COUNT, FIRST, pace, part_of, strips_of
from phintys.routines.language import PART
from phintys.scalar.native import DISTRIBUTIONS


class File(Protocol):
    """The C file, as far as steps use it."""

    lengths: dict[tuple[int, int], int]
    functions: list[str]
    lines: list[str]
    call_lengths: int
    length_count: int

    def action(self, *what: Any) -> int: ...
    def control(self, steps: Steps, step: Loop | Branch) -> None: ...


class Steps:
    """The steps of a Program, or of one inside a loop or branch.

    A file numbers the slots and storages of all its Programs: those of this one start at ``slots``
    and ``storages``, the numbers of its steps, should they fail, at ``first``.
    """

    def __init__(self, file: File, program: Program, slots: int, storages: int, first: int) -> None:
        self.file, self.program = file, program
        self.slots, self.storages, self.first = slots, storages, first
        self.items = item_slots(program)
        self._allocated: set[int] = set()
        self.blocks: dict[int, int] = {}  # output of an iteration -> number of its block
        self.defined: dict[Dim, str] = {}  # symbols of C variables

    def number(self, slot: Slot) -> int:
        """The number of a slot in the file."""
        return self.slots + slot.number

    def pointer(self, slot: Slot) -> str:
        """The memory of a slot."""
        return f"p[{self.number(slot)}]"

    # ----- lengths
    def integer(self, dim: Dim, exact: bool = False) -> str:
        """A Dim as a C expression; if ``exact``, the C code sets ``overflow`` on overflow."""
        if dim.op == "const":
            return f"INT64_C({dim.args[0]})"
        if dim in self.defined:
            return self.defined[dim]
        if dim.op == "symbol":
            kind, number, *axis = dim.args[0]
            number += self.slots
            if kind == "item":
                return f"item{number}"
            return f"n[{self.file.lengths[number, axis[0]]}]"
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

    def size(self, slot: Slot, exact: bool = False) -> str:
        """The number of bytes of a slot; see `integer`."""
        return self.integer(product(slot.shape) * np.dtype(str(slot.dtype)).itemsize, exact)

    def copy(self, target: str, source: str, size: str) -> None:
        """Emit a copy of memory; nothing is copied to itself."""
        self.file.lines.append(f"if ({target} != {source}) memmove({target}, {source}, {size});")

    # ----- the Program
    def emit(self) -> None:
        """Emit all steps, and the allocation of all outputs."""
        for slot in self.program.slots:
            if slot.kind in ("input", "constant"):
                self.item(slot)
        for step in self.program.in_strips():
            if isinstance(step, list):
                self._strips(step)
            else:
                self._step(step)
        for slot in self.program.outputs:
            self.allocate(slot)

    def item(self, slot: Slot) -> None:
        """Emit the load of the integer in a slot, if it is used as a length."""
        if slot.number in self.items:
            c_type, number = TYPES[str(slot.dtype)], self.number(slot)
            self.file.lines.append(f"item{number} = (int64_t)*({c_type} *)p[{number}];")

    def bound(self, slot: Slot) -> None:
        """Say that the memory of a slot is already known."""
        self._allocated.add(slot.number)

    def allocate(self, slot: Slot) -> None:
        """Emit the allocation of a slot before it is written for the first time."""
        if slot.number in self._allocated or slot.kind not in ("temp", "output"):
            return
        self._allocated.add(slot.number)
        if slot.storage is not None:
            number, size = slot.storage, self.integer(self.program.storages[slot.storage], True)
        elif slot.number in self.blocks:
            number, size = self.blocks[slot.number], self.size(slot, True)
        else:
            self.call_python(self.file.action("allocate", self, slot), slot.shape)
            return
        self.file.lines.append(self.storage(self.storages + number, size))
        self.file.lines.append(f"{self.pointer(slot)} = storage[{self.storages + number}];")

    def storage(self, number: int, size: str) -> str:
        """The C statement that allocates a block of memory, unless it has been."""
        cell = f"storage[{number}]"
        made = f"int64_t size = {size}; {cell} = storage_of(size, overflow);"
        return f"if (!{cell}) {{ {made} if (!{cell}) {{ failed = OUT_OF_MEMORY; goto done; }} }}"

    def fail_unless(self, condition: str, step: Step) -> None:
        number = self.first + step.step
        self.file.lines.append(f"if (!({condition})) {{ failed = {number + 1}; goto done; }}")

    # ----- steps
    def _step(self, step: Step) -> None:
        if isinstance(step, Kernel):
            self._kernel(step)
        elif isinstance(step, Check):
            left, right = self.integer(step.left, True), self.integer(step.right, True)
            self.fail_unless(f"{left} {step.relation} {right} && !overflow", step)
        elif isinstance(step, Copy):
            self.allocate(step.target)
            self.copy(self.pointer(step.target), self.pointer(step.source), self.size(step.target))
            self.item(step.target)
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
            self.file.control(self, step)

    def _kernel(self, kernel: Kernel) -> None:
        targets = {s.number: s for s in kernel.writes()}
        for slot in targets.values():
            self.allocate(slot)
        function, call = emit_kernel(
            kernel, f"kernel_{len(self.file.functions)}", self.integer, self.pointer
        )
        self.file.functions.append(function)
        self.fail_unless(f"{call} == 0", kernel)
        for slot in targets.values():
            self.item(slot)

    def _strips(self, kernels: Sequence[Any]) -> None:
        """Emit a loop over strips of kernels."""
        strips, lines = strips_of(kernels), self.file.lines
        if strips is None:
            raise ValueError("kernels that cannot run in strips")
        for slot in dict.fromkeys(slot for kernel in kernels for slot in kernel.writes()):
            self.allocate(slot)
        counts = ", ".join(self.integer(kernel.dims[0]) for kernel in kernels)
        starts = ", ".join(map(self.integer, strips.starts))
        length, step = self.integer(strips.length), strips.step
        lines += [
            "{",
            f"const int64_t starts[] = {{{starts}}}, counts[] = {{{counts}}};",
            f"int64_t done[{len(kernels)}] = {{0}}, first, count;",
            f"for (int64_t end = {length} > {strips.single} ? {step} : FOREVER;;) {{",
        ]
        self.defined = {FIRST: "first", COUNT: "count"}
        for k, kernel in enumerate(kernels):
            time = f"end - starts[{k}], {self.integer(pace(kernel))}"
            lines.append(f"first = done[{k}], count = strip({time}, counts[{k}]) - first;")
            lines.append(f"if (count > 0) {{ done[{k}] += count;")
            self._kernel(part_of(kernel, 0, FIRST, COUNT))
            lines.append("}")
        self.defined = {}
        lines += [
            "if (end == FOREVER) break;",
            f"end = end + {step} < {length} ? end + {step} : FOREVER;",
            "} }",
        ]

    def _call(self, step: Call) -> None:
        target = step.operands[0]
        self.allocate(target.slot)
        prefix = "s" if step.dtype == "float32" else "d"
        loops = [f"b{k}" for k in range(len(step.batch))]
        for b, length in zip(loops, step.batch):
            self.file.lines.append(f"for (int64_t {b} = 0; {b} < {self.integer(length)}; {b}++)")
        sizes = step.sizes[:1] if step.name == "dot" else step.sizes
        args = [self.integer(d) for d in sizes] + [self._factor(step.alpha)]
        for operand in step.operands:
            args.append(self._place(operand, loops))
            args += [self.integer(s) for s in operand.strides[len(loops) :]]
        if step.name != "ger":
            args.append(self._factor(step.beta))
        call = f"{prefix}{step.name}(&work, {', '.join(args)})"
        self.file.lines.append(f"if ({call}) {{ failed = RAISED; goto done; }}")
        self.item(target.slot)

    def _scan(self, step: Scan) -> None:
        target = step.operands[0].slot
        self.allocate(target)
        dtype = str(target.dtype)
        loops = [f"b{k}" for k in range(len(step.dims))]
        *outer, inner = (
            f"for (int64_t {b} = 0; {b} < {self.integer(length)}; {b}++)"
            for b, length in zip(loops, step.dims)
        )
        written, read = (f"*({self._place(o, loops)})" for o in step.operands)
        state = combined(step.kind, dtype, "state", read)
        self.file.lines += [
            *outer,
            "{",
            f"if (signals(&work, {self.integer(step.dims[-1])})) {{ failed = RAISED; goto done; }}",
            f"{TYPES[dtype]} state = {literal(start_of_scan(step.kind, dtype).item(), dtype)};",
            f"{inner} {{ state = {state}; {written} = state; }}",
            "}",
        ]
        self.item(target)

    def _external(self, step: External) -> None:
        for slot in step.in_role("uw"):
            self.allocate(slot)
        loops = [f"b{k}" for k in range(len(step.batch))]
        for b, length in zip(loops, step.batch):
            self.file.lines.append(f"for (int64_t {b} = 0; {b} < {self.integer(length)}; {b}++) {{")
        args = ["1"] if step.routine.grouped else []
        args += [self.integer(d) for d in step.integers]
        args += [self._place(operand, loops) for operand in step.operands]
        self.fail_unless(f"{entry(step.routine, step.dtype)}({', '.join(args)}) == 0", step)
        polled = f"signals(&work, {self.integer(step.work)})"
        self.file.lines.append(f"if ({polled}) {{ failed = RAISED; goto done; }}")
        self.file.lines += ["}"] * len(loops)
        for slot in step.in_role("uw"):
            self.item(slot)

    def _draw(self, step: Draw) -> None:
        """Emit a draw; Python puts the address of the state of the generator's copy into ``p``."""
        if step.source is not step.result:
            self.call_python(self.file.action("draw", self, step), [])
        target, *parameters = step.operands
        self.allocate(target.slot)
        loops = [f"b{k}" for k in range(len(step.dims))]
        given = "".join(f", *({self._place(o, loops)})" for o in parameters)
        scratch = DISTRIBUTIONS[step.name].scratch
        if scratch:
            self.file.lines.append(f"{{ int64_t scratch[{scratch // 8}] = {{0}};")
            given += ", scratch"
        self.file.lines += [
            *(
                f"for (int64_t {b} = 0; {b} < {self.integer(length)}; {b}++)"
                for b, length in zip(loops, step.dims)
            ),
            "{",
            "if (signals(&work, 32)) { failed = RAISED; goto done; }",
            f"*({self._place(target, loops)}) = {step.name}({self.pointer(step.result)}{given});",
            "}}" if scratch else "}",
        ]
        self.item(target.slot)

    def _place(self, operand: Operand, loops: list[str]) -> str:
        """The address of the element of an operand at the counters of some loops."""
        terms = [self.integer(operand.offset)]
        terms += [f"{b} * {self.integer(s)}" for b, s in zip(loops, operand.strides)]
        dtype = str(operand.slot.dtype)
        place = " + ".join(terms)
        if dtype in PART:  # complex numbers are pairs
            dtype, place = PART[dtype], f"2 * ({place})"
        return f"({TYPES[dtype]} *){self.pointer(operand.slot)} + {place}"

    def _factor(self, factor: Operand | float) -> str:
        if isinstance(factor, Operand):
            return f"*({self._place(factor, [])})"
        return repr(float(factor))

    def _python(self, step: Python) -> None:
        """Emit a `Python` step; the lengths of its inputs are passed in ``n``."""
        lengths = [d for s in step.inputs if s.dtype for d in s.shape]
        self.call_python(self.file.action("python", self, step), lengths)
        for slot in step.outputs:
            self.item(slot)

    def call_python(self, number: int, lengths: Sequence[Dim] = ()) -> None:
        """Emit a call of Python, for an action; ``lengths`` are passed in ``n``."""
        file = self.file
        for place, dim in enumerate(lengths, file.call_lengths):
            file.lines.append(f"n[{place}] = {self.integer(dim)};")
        file.length_count = max(file.length_count, file.call_lengths + len(lengths))
        file.lines.append(f"if (called(python, {number})) {{ failed = RAISED; goto done; }}")
