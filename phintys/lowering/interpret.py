"""The reference interpreter of Programs: executes kernels one scalar instruction at a time.

Generators and the fusion and memory passes are tested against it.  It follows ``schedule``
literally, keeps slots with the same storage in one block of memory, and fills new memory with
garbage, so that a wrong memory plan gives a wrong result.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys import bitgen
from phintys.dims import Dim
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
)
from phintys.lowering.reductions import identity
from phintys.lowering.schedule import Phase, Schedule, schedule
from phintys.lowering.strips import pace, strips_of
from phintys.routines.language import PART
from phintys.scalar import numeric
from phintys.scalar.conversion import convert_number
from phintys.scalar.native import DISTRIBUTIONS, OWN_CALLS

_GARBAGE = 0xA5  # the value of each byte of new memory


class StepFailure(Exception):
    """A step of a Program failed; ``step`` is its number."""

    def __init__(self, step: int, message: str):
        super().__init__(f"step {step}: {message}")
        self.step = step


def interpret(program: Program, *args: Any) -> list[Any]:
    """The outputs of a Program for the given arguments (ordinary ones, then shared values).

    Raises `StepFailure` if a check or an index fails; exceptions of `Python` steps propagate.
    """
    with np.errstate(all="ignore"):
        return _Run(program).run(args)


class _Run:
    def __init__(self, program: Program):
        self.program = program
        self.symbols: dict[Dim, int] = {}
        self.memory: dict[int, np.ndarray] = {}  # slot number -> flat array
        self.objects: dict[int, Any] = {}
        self.storages: dict[int, np.ndarray] = {}
        self.handlers: dict[type, Callable[[Any], None]] = {
            Kernel: self.kernel,
            Copy: self.copy,
            Call: self.call,
            Scan: self.scan,
            External: self.external,
            Draw: self.draw,
            Check: self.check,
            Python: self.python,
            Loop: self.loop,
            Branch: self.branch,
        }

    def run(self, args: Sequence[Any]) -> list[Any]:
        program = self.program
        if len(args) != len(program.inputs):
            raise TypeError(f"expected {len(program.inputs)} arguments, got {len(args)}")
        for slot, value in zip(program.inputs, args):
            self.fill(slot, value)
        for slot in program.slots:
            if slot.kind == "constant" or (slot.kind == "object" and slot.data is not None):
                self.fill(slot, slot.data)
        for step in program.in_strips():
            if isinstance(step, list):
                self.strips(step)
            else:
                self.handlers[type(step)](step)
        return [self.value(slot) for slot in program.outputs]

    # ----- slots
    def fill(self, slot: Slot, value: Any) -> None:
        """Put an argument, a constant or a result of Python into a slot."""
        if slot.dtype is None:
            self.objects[slot.number] = value
            return
        array = np.asarray(value, dtype=slot.dtype)
        if array.ndim != slot.ndim:
            raise TypeError(f"slot {slot.number} has rank {slot.ndim}, got {array.ndim}")
        self.objects[slot.number] = array
        self.memory[slot.number] = np.ascontiguousarray(array).reshape(-1)
        for axis, length in enumerate(array.shape):
            self.symbols[Dim.symbol(("len", slot.number, axis))] = length

    def flat(self, slot: Slot) -> np.ndarray:
        """The memory of an array slot as a flat array, allocated at the first access."""
        found = self.memory.get(slot.number)
        if found is not None:
            return found
        size = math.prod(self.shape(slot))
        dtype = np.dtype(slot.dtype)
        if slot.storage is None:
            block = np.full(size * dtype.itemsize, _GARBAGE, np.uint8)
        else:
            if slot.storage not in self.storages:
                bytes_ = self.integer(self.program.storages[slot.storage])
                self.storages[slot.storage] = np.full(bytes_, _GARBAGE, np.uint8)
            block = self.storages[slot.storage]
            if block.size < size * dtype.itemsize:
                raise ValueError(f"storage {slot.storage} is too small for slot {slot.number}")
        flat = block[: size * dtype.itemsize].view(dtype)
        self.memory[slot.number] = flat
        return flat

    def shape(self, slot: Slot) -> tuple[int, ...]:
        return tuple(self.integer(d) for d in slot.shape)

    def value(self, slot: Slot) -> Any:
        """The content of a slot: a NumPy array or an object."""
        if slot.dtype is None or slot.kind == "python":
            return self.objects[slot.number]
        return self.flat(slot).reshape(self.shape(slot)).copy()

    def integer(self, dim: Dim) -> int:
        """The value of a Dim; reads ``item`` symbols from memory at their first use."""
        for symbol in dim.symbols():
            if symbol not in self.symbols:
                kind, number, *_ = symbol.args[0]
                if kind != "item" or number not in self.memory:
                    raise KeyError(f"{symbol!r} is not known yet")
                self.symbols[symbol] = int(self.memory[number][0])
        return dim.evaluate(self.symbols)

    # ----- steps
    def kernel(self, kernel: Kernel) -> None:
        _KernelRun(self, kernel).run()

    def strips(self, kernels: Sequence[Any]) -> None:
        """Run kernels strip by strip."""
        strips = strips_of(kernels)
        if strips is None:
            raise ValueError("kernels that cannot run in strips")
        runs = [_KernelRun(self, kernel) for kernel in kernels]
        starts = [self.integer(start) for start in strips.starts]
        paces = [max(1, self.integer(pace(kernel))) for kernel in kernels]
        done = [0] * len(runs)
        for end in strips.ends(self.integer(strips.length)):
            for k, run in enumerate(runs):
                stop = min(run.dims[0], max(0, -((starts[k] - end) // paces[k])))
                run.ranges[0] = range(done[k], stop)
                if run.ranges[0]:
                    run.run()
                done[k] = max(done[k], stop)

    def copy(self, step: Copy) -> None:
        self.flat(step.target)[:] = self.flat(step.source)

    def check(self, step: Check) -> None:
        left, right = self.integer(step.left), self.integer(step.right)
        holds = {"==": left == right, ">=": left >= right, ">": left > right}[step.relation]
        if not holds or max(abs(left), abs(right)) >= 2**63:
            raise StepFailure(step.step, f"{left} {step.relation} {right}: {step.message}")

    def python(self, step: Python) -> None:
        results = step.function(*(self.value(slot) for slot in step.inputs))
        for slot, value in zip(step.outputs, results, strict=True):
            self.fill(slot, value)

    def call(self, step: Call) -> None:
        alpha, beta = self.factor(step.alpha), self.factor(step.beta)
        batch = [self.integer(d) for d in step.batch]
        for point in np.ndindex(*batch):
            target, *sources = (self.strided(step, i, point) for i in range(len(step.operands)))
            _CALLS[step.name](target, *sources, alpha, beta)

    def scan(self, step: Scan) -> None:
        *outer, length = (self.integer(d) for d in step.dims)
        for point in np.ndindex(*outer):
            target, source = (self.part(o, point, (length,)) for o in step.operands)
            values = source.get()
            for i in range(1, length):
                values[i] = _COMBINE[step.kind](values[i - 1], values[i])
            target.set(values)

    def external(self, step: External) -> None:
        function = step.routine.python(step.dtype)
        integers = [self.integer(d) for d in step.integers]
        integers = [1, *integers] if step.routine.grouped else integers
        for point in np.ndindex(*(self.integer(d) for d in step.batch)):
            items = [self.item(operand, point) for operand in step.operands]
            status = function(*integers, *items)
            if status != 0:
                raise StepFailure(step.step, f"{step.routine.name} returned {status}")

    def item(self, operand: Operand, point: tuple[int, ...]) -> np.ndarray:
        """The memory from an item of a batch on; complex numbers as pairs."""
        start = self.integer(operand.offset)
        start += sum(i * self.integer(s) for i, s in zip(point, operand.strides))
        flat = self.flat(operand.slot)[start:]
        return flat.view(PART.get(str(flat.dtype), flat.dtype))

    def draw(self, step: Draw) -> None:
        rng = self.objects[step.source.number]
        if step.result is not step.source:
            rng = self.objects[step.result.number] = bitgen.copied(rng)
        state = bitgen.address(rng)
        function = _distribution(step.name)
        shape = tuple(self.integer(d) for d in step.dims)
        target, *parameters = (self.part(o, (), shape) for o in step.operands)
        values = [p.get() for p in parameters]
        for point in np.ndindex(*shape):
            target.flat[target.index[point]] = function(state, *(v[point] for v in values))

    def factor(self, factor: Operand | float) -> Any:
        """The value of ``alpha`` or ``beta``."""
        if isinstance(factor, Operand):
            return self.flat(factor.slot)[self.integer(factor.offset)]
        return factor

    def strided(self, step: Call, number: int, point: tuple[int, ...]) -> _Strided:
        """An operand of a call at a point of the batch."""
        operand = step.operands[number]
        sizes = [self.integer(d) for d in step.sizes]
        own = tuple(sizes[i] for i in _CALL_AXES[step.name][number])
        return self.part(operand, point, own)

    def part(self, operand: Operand, point: tuple[int, ...], shape: tuple[int, ...]) -> _Strided:
        """The elements of an operand at an index of its first axes; the others have ``shape``."""
        strides = [self.integer(s) for s in operand.strides]
        offset = self.integer(operand.offset)
        offset += sum(i * s for i, s in zip(point, strides))
        index = np.full(shape, offset)
        for axis, (length, stride) in enumerate(zip(shape, strides[len(point) :])):
            extent = [1] * len(shape)
            extent[axis] = length
            index = index + (np.arange(length) * stride).reshape(extent)
        return _Strided(self.flat(operand.slot), index)

    def loop(self, step: Loop) -> None:
        states = [self.value(initial) for initial, _ in step.state]
        constants = [self.value(slot) for slot in step.constants]
        count, ended = 0, False
        while count < self.integer(step.length) and not ended:
            rows = [self.row(w, count + o).get() for w in step.windows for o in w.reads]
            results = _Run(step.body).run([*states, *rows, *constants])
            for window in step.windows:
                for offset, number in window.writes:
                    self.row(window, count + offset).set(results[number])
            states = results[: len(states)]
            ended = step.until is not None and bool(results[step.until])
            count += 1
        for (_, final), value in zip(step.state, states):
            if final.dtype is None:
                self.objects[final.number] = value
            else:
                self.flat(final)[:] = np.ravel(value)
        for window in step.windows:
            self.flat(window.operand.slot)  # written, even if there are no iterations
        if step.count is not None:
            self.flat(step.count)[:] = count

    def row(self, window: Rows, number: int) -> _Strided:
        """The row of a window with a number, which wraps around."""
        length = self.integer(window.length)
        if length < 1:
            raise IndexError("a window without rows")
        lengths = self.shape(window.operand.slot)[1:]
        return self.part(window.operand, (number % length,), lengths)

    def branch(self, step: Branch) -> None:
        program = step.then if self.flat(step.condition)[0] else step.orelse
        results = _Run(program).run([self.value(slot) for slot in step.inputs])
        for slot, value in zip(step.outputs, results, strict=True):
            if slot.kind in ("python", "object"):
                self.fill(slot, value)
            else:
                self.flat(slot)[:] = np.ravel(value)


class _Strided:
    """Elements of flat memory at an array of positions."""

    def __init__(self, flat: np.ndarray, index: np.ndarray):
        self.flat, self.index = flat, index

    def get(self) -> np.ndarray:
        return self.flat[self.index]

    def set(self, value: Any) -> None:
        self.flat[self.index] = value


#: for each operand of a call, the positions of its lengths in ``Call.sizes``
_CALL_AXES: dict[str, tuple[tuple[int, ...], ...]] = {
    "gemm": ((0, 1), (0, 2), (2, 1)),
    "gemv": ((0,), (0, 1), (1,)),
    "ger": ((0, 1), (0,), (1,)),
    "dot": ((), (0,), (0,)),
}


def _product(target: _Strided, a: _Strided, b: _Strided, alpha: Any, beta: Any) -> None:
    result = alpha * (a.get() @ b.get())
    target.set(result + beta * target.get() if beta != 0 else result)


def _outer(target: _Strided, x: _Strided, y: _Strided, alpha: Any, beta: Any) -> None:
    target.set(target.get() + alpha * np.outer(x.get(), y.get()))


_CALLS: dict[str, Callable[..., None]] = {
    "gemm": _product,
    "gemv": _product,
    "dot": _product,
    "ger": _outer,
}


# ------------------------------------------------------------------------- kernels


class _KernelRun:
    def __init__(self, run: _Run, kernel: Kernel):
        self.run_, self.kernel = run, kernel
        self.plan: Schedule = schedule(kernel)
        self.dims = [run.integer(d) for d in kernel.dims]
        self.ranges = [range(n) for n in self.dims]
        self.strides = [[run.integer(s) for s in o.strides] for o in kernel.operands]
        self.offsets = [run.integer(o.offset) for o in kernel.operands]
        self.extra = [[run.integer(s) for s in o.extra] for o in kernel.operands]
        self.memory = [run.flat(o.slot) for o in kernel.operands]
        self.registers: list[Any] = [None] * len(kernel.body)
        self.point = [0] * len(kernel.dims)

    def run(self) -> None:
        self.outer(0)

    def outer(self, depth: int) -> None:
        self.execute(self.plan.outer[depth])
        if self.kernel.ragged is not None and depth == len(self.dims) - 1:
            self.ranges[-1] = self.ragged_range(*self.kernel.ragged)
        if depth == self.kernel.split:
            for phase in self.plan.phases:
                self.phase(phase)
            return
        for counter in self.ranges[depth]:
            self.point[depth] = counter
            self.outer(depth + 1)

    def ragged_range(self, start: int, stop: int) -> range:
        """The counters of the last loop; the bounds are at these positions of the body."""
        first, end = int(self.registers[start]), int(self.registers[stop])
        if first < 0 or end > self.dims[-1]:
            text = f"{first} to {end} is out of range for length {self.dims[-1]}"
            raise StepFailure(self.kernel.step, text)
        return range(first, end)

    def phase(self, phase: Phase) -> None:
        self.execute(phase.levels[0])
        if not phase.has_loop:
            return
        sums = {p: Accumulator(self.kernel.body[p]) for p in phase.reduces}
        self.inner(phase, 0, sums)
        for position, accumulator in sums.items():
            self.registers[position] = accumulator.result()

    def inner(self, phase: Phase, level: int, sums: dict[int, Accumulator]) -> None:
        if level:
            self.execute(phase.levels[level])
        depth = self.kernel.split + level
        if depth == len(self.dims):
            for position, accumulator in sums.items():
                accumulator.add(self.registers[self.kernel.body[position].args[0]])
            return
        for counter in self.ranges[depth]:
            self.point[depth] = counter
            self.inner(phase, level + 1, sums)

    def execute(self, positions: list[int]) -> None:
        for position in positions:
            inst = self.kernel.body[position]
            self.registers[position] = self.instruction(inst)

    def instruction(self, inst: Inst) -> Any:
        args = [self.registers[a] for a in inst.args]
        special = _SPECIAL.get(inst.op)
        if special is not None:
            return special(self, inst, args)
        result = scalar_function(inst)(*args)
        return np.dtype(inst.dtype).type(result)

    def address(self, operand: int, indices: Sequence[Any]) -> int:
        address = self.offsets[operand]
        address += sum(i * s for i, s in zip(self.point, self.strides[operand]))
        address += sum(int(i) * s for i, s in zip(indices, self.extra[operand], strict=True))
        if not 0 <= address < self.memory[operand].size:
            number = self.kernel.operands[operand].slot.number
            raise IndexError(f"address {address} outside slot {number}")
        return address

    def load(self, inst: Inst, args: list[Any]) -> Any:
        return self.memory[inst.param][self.address(inst.param, args)]

    def store(self, inst: Inst, args: list[Any]) -> None:
        self.memory[inst.param][self.address(inst.param, args[1:])] = args[0]

    def accumulate(self, inst: Inst, args: list[Any]) -> None:
        operand, kind = inst.param
        address = self.address(operand, args[1:])
        memory = self.memory[operand]
        memory[address] = _COMBINE[kind](memory[address], args[0])

    def wrap(self, inst: Inst, args: list[Any]) -> Any:
        index, length = int(args[0]), int(args[1])
        if not -length <= index < length:
            raise StepFailure(self.kernel.step, f"index {index} out of range for length {length}")
        return np.int64(index + length if index < 0 else index)


_SPECIAL: dict[str, Callable[[_KernelRun, Inst, list[Any]], Any]] = {
    "load": _KernelRun.load,
    "store": _KernelRun.store,
    "accumulate": _KernelRun.accumulate,
    "wrap": _KernelRun.wrap,
    "const": lambda run, inst, args: convert_number(inst.param, inst.dtype),
    "dim": lambda run, inst, args: np.int64(run.run_.integer(inst.param)),
    "index": lambda run, inst, args: np.int64(run.point[inst.param]),
    "cast": lambda run, inst, args: convert_number(args[0], inst.dtype),
}


class Accumulator:
    """The running value of one ``reduce``."""

    def __init__(self, inst: Inst):
        self.kind = inst.param
        self.count = 0
        self.best: Any = None
        self.value: Any = (
            np.int64(0) if self.kind.startswith("arg") else identity(self.kind, inst.dtype)
        )

    def add(self, x: Any) -> None:
        if self.kind.startswith("arg"):
            if self.best is None or self.beats(x):
                self.best, self.value = x, np.int64(self.count)
        else:
            self.value = self.value.dtype.type(_COMBINE[self.kind](self.value, x))
        self.count += 1

    def beats(self, x: Any) -> bool:
        if self.best != self.best:
            return False
        return bool(x != x or (x > self.best if self.kind == "argmax" else x < self.best))

    def result(self) -> Any:
        return self.value


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _distribution(name: str) -> Callable[..., Any]:
    """A function of `DISTRIBUTIONS`: takes the address of the state, and the parameters."""
    result, parameters, scratch = DISTRIBUTIONS[name]
    types = [np.ctypeslib.as_ctypes_type(d) for d in (result, *parameters)]
    last = [ctypes.c_char_p] if scratch else []
    function = ctypes.CFUNCTYPE(types[0], ctypes.c_void_p, *types[1:], *last)(bitgen.routine(name))
    memory = [ctypes.create_string_buffer(scratch)] if scratch else []
    return lambda *args: function(*args, *memory)


def scalar_function(inst: Inst) -> Callable[..., Any]:
    """The NumPy (or SciPy) function that an arithmetic instruction stands for."""
    if inst.op == "call":
        return _special_function(inst.param)
    return FUNCTIONS[inst.op]


def _special_function(name: str) -> Callable[..., Any]:
    from scipy import special  # pyright: ignore[reportMissingTypeStubs]

    if name in OWN_CALLS:
        return getattr(numeric, OWN_CALLS[name])
    return getattr(special, {"lgamma": "gammaln", "tgamma": "gamma"}.get(name, name))


def _floor_divide(a: Any, b: Any) -> Any:
    return a // b if b != 0 else a.dtype.type(0)


def _floor_mod(a: Any, b: Any) -> Any:
    return a % b if b != 0 else a.dtype.type(0)


def _sigmoid(a: Any) -> Any:
    from scipy.special import expit  # pyright: ignore[reportMissingTypeStubs]

    return expit(a)


def _erf(a: Any) -> Any:
    from scipy.special import erf  # pyright: ignore[reportMissingTypeStubs]

    return erf(a)


def _erfc(a: Any) -> Any:
    from scipy.special import erfc  # pyright: ignore[reportMissingTypeStubs]

    return erfc(a)


def _not(a: Any) -> Any:
    return np.logical_not(a) if a.dtype.kind == "b" else np.invert(a)


_SAME_NAME = (
    "floor ceil trunc rint sqrt cbrt hypot isnan isinf exp exp2 expm1 log log2 log10 log1p "
    "sin cos tan sinh cosh tanh"
)
#: arithmetic instructions as functions of NumPy scalars
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "fma": lambda a, b, c: a * b + c,
    "idiv": _floor_divide,
    "imod": _floor_mod,
    "fmod": np.fmod,
    "neg": np.negative,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": _not,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "select": lambda a, b, c: b if a else c,
    "complex": numeric.complex_from_parts,
    "real": np.real,
    "imag": np.imag,
    "sigmoid": _sigmoid,
    "softplus": lambda a: np.logaddexp(a.dtype.type(0), a),
    "log1mexp": lambda a: numeric.log1mexp(a)[()],
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _erf,
    "erfc": _erfc,
    "pow": np.power,
    **{name: getattr(np, name) for name in _SAME_NAME.split(" ")},
}
