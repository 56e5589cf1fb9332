"""Generates a C function from a `Kernel`: a loop nest with one statement per instruction."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.dims import Dim
from phintys.lowering.costs import nanoseconds
from phintys.lowering.program import Inst, Kernel, Slot
from phintys.lowering.reductions import identity
from phintys.lowering.schedule import Phase, schedule
from phintys.scalar.native import LIBM_CALLS, OWN_CALLS, VIA, half_bits

TYPES = {
    "bool": "uint8_t",
    "float16": "uint16_t",
    "float32": "float",
    "float64": "double",
    "complex64": "complex64",
    "complex128": "complex128",
    **{f"{s}int{bits}": f"{s}int{bits}_t" for s in ("", "u") for bits in (8, 16, 32, 64)},
}
OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip
#: instruction -> expression, with a place for each argument
EXPRESSIONS = {
    "fma": "({} * {} + {})", "select": "{} ? {} : {}", "isnan": "{0} != {0}",
    "isinf": "isinf({}) != 0", "complex": "{{{}, {}}}", "real": "{}.real", "imag": "{}.imag",
}  # fmt: skip
#: instruction -> function of the C library
LIBRARY = {
    name: name
    for name in "fmod copysign floor ceil trunc rint sqrt cbrt hypot exp exp2 expm1 log log2 log10 "
    "log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh "
    "erf erfc pow nextafter".split()
}
#: instructions that runtime.h defines for each dtype
RUNTIME = frozenset(("idiv", "imod", "min", "max", "sigmoid", "softplus", "log1mexp"))
#: a kernel polls for signals about every so many (estimated) nanoseconds of work
BLOCK = 2**24
COMBINE = {"add": "+", "mul": "*", "and": "&", "or": "|", "xor": "^"}


def emit_kernel(
    kernel: Kernel, name: str, integer: Callable[[Dim], str], pointer: Callable[[Slot], str]
) -> tuple[str, str]:
    """The text of the C function of a kernel, and the expression that calls it.

    ``integer`` returns a Dim, ``pointer`` the memory of a slot as a C expression in the names of
    the caller; the function takes lengths and strides as arguments.  It returns 1 if it fails, else
    0.
    """
    return _Function(kernel, name, integer).emit(pointer)


class _Function:
    def __init__(self, kernel: Kernel, name: str, integer: Callable[[Dim], str]) -> None:
        self.kernel, self.name, self.integer = kernel, name, integer
        self.plan = schedule(kernel)
        self.cost = max(1, sum(map(nanoseconds, kernel.body)))
        self.block = max(64, BLOCK // self.cost)  # iterations between two polls for signals
        self.parameters = ["int64_t *work"]
        self.arguments = ["&work"]
        self.numbers: dict[Dim, str] = {}
        self.lines: list[str] = []
        self.depth = 1

    def emit(self, pointer: Callable[[Slot], str]) -> tuple[str, str]:
        for k, operand in enumerate(self.kernel.operands):
            c_type = TYPES[str(operand.slot.dtype)]
            self.parameters.append(f"{c_type} *p{k}")
            self.arguments.append(
                f"({c_type} *){pointer(operand.slot)} + {self.integer(operand.offset)}"
            )
        self._outer(0)
        head = f"static int64_t {self.name}({', '.join(self.parameters)}) {{"
        call = f"{self.name}({', '.join(self.arguments)})"
        return "\n".join([head, *self.lines, "    return 0;", "}"]), call

    # ----- loops
    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def _open(self, axis: int) -> None:
        n = self._number(self.kernel.dims[axis])
        start = "0"
        if axis == len(self.kernel.dims) - 1:  # strip-mined, to poll for signals between blocks
            if self.kernel.ragged is not None:
                start, n = (f"v{position}" for position in self.kernel.ragged)
            self._line(f"for (int64_t s = {start}; s < {n}; s += {self.block}) {{")
            self.depth += 1
            self._line(f"const int64_t e = dim_min({n}, s + {self.block});")
            self._line(f"if (signals(work, (e - s) * {self.cost})) return 1;")
            start, n = "s", "e"
        self._line(f"for (int64_t i{axis} = {start}; i{axis} < {n}; i{axis}++) {{")
        self.depth += 1

    def _close(self, axis: int) -> None:
        for _ in range(2 if axis == len(self.kernel.dims) - 1 else 1):
            self.depth -= 1
            self._line("}")

    def _outer(self, depth: int) -> None:
        for level in range(self.kernel.split + 1):  # bounded: the rank of the kernel
            self._statements(self.plan.outer[level])
            if self.kernel.ragged is not None and level == len(self.kernel.dims) - 1:
                first, end = (f"v{position}" for position in self.kernel.ragged)
                length = self._number(self.kernel.dims[-1])
                self._line(f"if ({first} < 0 || {end} > {length}) return 1;")
            if level < self.kernel.split:
                self._open(level)
        for phase in self.plan.phases:
            self._phase(phase)
        for axis in reversed(range(self.kernel.split)):
            self._close(axis)

    def _phase(self, phase: Phase) -> None:
        self._statements(phase.levels[0])
        if not phase.has_loop:
            return
        body = self.kernel.body
        for r in phase.reduces:
            self._declare_accumulator(r, body[r])
        inner = range(self.kernel.split, len(self.kernel.dims))
        for level, axis in enumerate(inner, start=1):
            self._open(axis)
            self._statements(phase.levels[level], scoped=True)
        for r in phase.reduces:
            self._combine(r, body[r])
        for axis in reversed(inner):
            self._close(axis)

    def _declare_accumulator(self, r: int, inst: Inst) -> None:
        if inst.param.startswith("arg"):
            c_type = TYPES[self.kernel.body[inst.args[0]].dtype]
            self._line(f"int64_t v{r} = 0, count{r} = 0; {c_type} best{r} = 0;")
        else:
            start = literal(identity(inst.param, inst.dtype).item(), inst.dtype)
            self._line(f"{TYPES[inst.dtype]} v{r} = {start};")

    def _combine(self, r: int, inst: Inst) -> None:
        x = f"v{inst.args[0]}"
        if inst.param.startswith("arg"):
            sign = ">" if inst.param == "argmax" else "<"
            better = f"{x} {sign} best{r} || ({x} != {x} && best{r} == best{r})"
            self._line(f"if (count{r} == 0 || {better}) {{ best{r} = {x}; v{r} = count{r}; }}")
            self._line(f"count{r}++;")
        else:
            self._line(f"v{r} = {combined(inst.param, inst.dtype, f'v{r}', x)};")

    # ----- instructions
    def _statements(self, positions: Sequence[int], scoped: bool = False) -> None:
        for position in positions:
            inst = self.kernel.body[position]
            if inst.op == "store":
                self._line(f"{self._place(inst.param, inst.args[1:])} = v{inst.args[0]};")
            elif inst.op == "accumulate":
                operand, kind = inst.param
                place = self._place(operand, inst.args[1:])
                dtype = str(self.kernel.operands[operand].slot.dtype)
                self._line(f"{place} = {combined(kind, dtype, place, f'v{inst.args[0]}')};")
            elif inst.op == "wrap":
                self._wrap(position, inst)
            else:
                self._line(f"const {TYPES[inst.dtype]} v{position} = {self._expression(inst)};")

    def _wrap(self, position: int, inst: Inst) -> None:
        index, length = (f"v{a}" for a in inst.args)
        self._line(f"if ({index} < -{length} || {index} >= {length}) return 1;")
        self._line(f"const int64_t v{position} = {index} < 0 ? {index} + {length} : {index};")

    def _place(self, operand: int, indices: Sequence[int]) -> str:
        """The C expression of the element that an operand addresses in the current iteration."""
        o = self.kernel.operands[operand]
        terms = [
            f"i{axis}" if stride.value == 1 else f"i{axis} * {self._number(stride)}"
            for axis, stride in enumerate(o.strides)
            if stride.value != 0
        ]
        terms += [f"v{i} * {self._number(s)}" for i, s in zip(indices, o.extra)]
        return f"p{operand}[{' + '.join(terms) or '0'}]"

    def _number(self, dim: Dim) -> str:
        """A Dim as a C expression inside the function: a literal or a parameter."""
        if dim.value is not None:
            return str(dim.value)
        if dim not in self.numbers:
            self.numbers[dim] = f"n{len(self.numbers)}"
            self.parameters.append(f"int64_t {self.numbers[dim]}")
            self.arguments.append(self.integer(dim))
        return self.numbers[dim]

    def _expression(self, inst: Inst) -> str:
        args = [f"v{a}" for a in inst.args]
        if inst.op == "load":
            return self._place(inst.param, inst.args)
        if inst.op == "const":
            return literal(inst.param, inst.dtype)
        if inst.op == "dim":
            return self._number(inst.param)
        if inst.op == "index":
            return f"i{inst.param}"
        if inst.op == "cast":
            return cast(args[0], self.kernel.body[inst.args[0]].dtype, inst.dtype)
        if inst.op == "call":
            return called(inst.param, args)
        return arithmetic(inst.op, inst.dtype, args, self._argument_dtype(inst))

    def _argument_dtype(self, inst: Inst) -> str:
        return self.kernel.body[inst.args[-1]].dtype if inst.args else inst.dtype


def arithmetic(op: str, dtype: str, args: Sequence[str], argument_dtype: str) -> str:
    """An instruction of ``scalar/native.py`` as a C expression.

    ``dtype`` is that of the result, ``argument_dtype`` that of the arguments.
    """
    c_type = TYPES[dtype]
    if op in OPERATORS:
        left, right = args
        if op in ("shl", "shr"):  # masked: a shift by the width or more is undefined in C
            right = f"({right} & {8 * np.dtype(argument_dtype).itemsize - 1})"
        if op in ("add", "sub", "mul", "shl") and argument_dtype[0] in "iu":
            unsigned = f"u{argument_dtype.removeprefix('u')}_t"  # signed overflow is undefined in C
            wide = "uint32_t" if unsigned in ("uint8_t", "uint16_t") else unsigned
            return f"({c_type})(({wide}){left} {OPERATORS[op]} ({wide}){right})"
        return f"({c_type})({left} {OPERATORS[op]} {right})"
    if op in EXPRESSIONS:
        return EXPRESSIONS[op].format(*args)
    if op in LIBRARY:
        return f"{LIBRARY[op]}{'f' if dtype == 'float32' else ''}({', '.join(args)})"
    if op in RUNTIME:
        return f"{op}_{dtype}({', '.join(args)})"
    x = args[0]
    if op == "neg":
        return f"-{x}" if dtype[0] == "f" else f"({c_type})(0 - (uint64_t){x})"
    if op == "abs":
        if dtype[0] == "f":
            return f"fabs{'f' if dtype == 'float32' else ''}({x})"
        return x if dtype[0] == "u" else f"({c_type})({x} < 0 ? 0 - (uint64_t){x} : (uint64_t){x})"
    if op == "not":
        return f"!{x}" if dtype == "bool" else f"({c_type})~{x}"
    raise ValueError(f"There is no instruction {op!r}.")


def combined(kind: str, dtype: str, left: str, right: str) -> str:
    """The C expression that combines two values in a reduction of this kind."""
    if dtype == "float16":
        wide = (cast(x, dtype, "float32") for x in (left, right))
        return cast(combined(kind, "float32", *wide), "float32", dtype)
    if kind in ("max", "min") or dtype.startswith("complex"):
        return f"{kind}_{dtype}({left}, {right})"
    return arithmetic(kind, dtype, [left, right], dtype)


def called(name: str, args: Sequence[str]) -> str:
    """The C expression of a call of a special function of doubles."""
    if name in LIBM_CALLS:
        return f"{name}({', '.join(args)})"
    if name in OWN_CALLS:
        order = ["2"] if name == "trigamma" else []
        return f"hurwitz_zeta({', '.join([*order, *args])})"
    return f"special_{name}({', '.join(args)}, 0)"


def cast(x: str, source: str, target: str) -> str:
    """The C expression of a conversion, as `phintys.scalar.conversion` defines it."""
    if source == "float16":
        wide = f"half_to_float({x})"
        return wide if target == "float32" else cast(wide, "float32", target)
    if target == "float16":
        if source == "float64":
            return f"double_to_half({x})"
        return f"float_to_half({x})"  # C converts an integer to float
    if target == "bool":
        return f"{x} != 0"
    if source[0] == "f" and target == "uint64":
        return f"float_to_uint64({x})"
    if source[0] == "f" and target[0] in "iu":
        return f"({TYPES[target]})float_to_{VIA[target]}({x})"
    return f"({TYPES[target]}){x}"


def literal(value: Any, dtype: str) -> str:
    """A number as a C constant of a dtype."""
    if dtype == "float16":
        return f"UINT16_C({half_bits(value)})"
    if dtype[0] == "f":
        value = float(value)
        if math.isnan(value):
            text = "NAN" if math.copysign(1, value) > 0 else "-NAN"
        elif math.isinf(value):
            text = "INFINITY" if value > 0 else "-INFINITY"
        else:
            text = value.hex()
        return f"({TYPES[dtype]}){text}"
    if dtype == "uint64":
        return f"UINT64_C({int(value)})"
    if int(value) == -(2**63):
        return "INT64_MIN"
    return f"(({TYPES[dtype]})INT64_C({int(value)}))"
