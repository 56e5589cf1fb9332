"""Kernels compiled by the llvm generator against a plain NumPy evaluation of the same body."""

from __future__ import annotations

import ctypes
import itertools
from functools import cache

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from phintys.backends.llvm.kernel.kernels import emit_kernel
from phintys.backends.llvm.machine.jit import compile_ir
from phintys.backends.llvm.machine.target import current
from phintys.backends.llvm.runtime.symbols import resolver
from phintys.dims import ONE, ZERO, Dim, product
from phintys.lowering.collapse import collapse
from phintys.lowering.program import Inst, Kernel, Operand, Slot
from phintys.lowering.reductions import combination
from phintys.scalar import numeric
from phintys.scalar.dtypes import COMPLEX, real_of
from phintys.scalar.native import (
    COMPUTED,
    INSTRUCTIONS,
    LIBM_CALLS,
    NATIVE_DTYPES,
    OF_PAIRS,
    SCIPY_CALLS,
)

pytestmark = pytest.mark.widths

DTYPES = sorted(COMPUTED)
REALS = sorted(NATIVE_DTYPES.difference(COMPLEX))
LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 100]

# ------------------------------------------------------------------------- build and call


class Build:
    """Builds a kernel by hand over named arrays."""

    def __init__(self, dims: tuple[Dim, ...], split: int | None = None) -> None:
        self.dims = dims
        self.split = len(dims) if split is None else split
        self.slots: list[Slot] = []
        self.operands: list[Operand] = []
        self.body: list[Inst] = []

    def slot(self, dtype: str) -> Slot:
        self.slots.append(Slot(len(self.slots), "input", dtype, ()))
        return self.slots[-1]

    def operand(self, slot: Slot, strides, offset=ZERO, extra=()) -> int:
        as_dims = [
            tuple(Dim.const(s) if isinstance(s, int) else s for s in x) for x in (strides, extra)
        ]
        offset = Dim.const(offset) if isinstance(offset, int) else offset
        self.operands.append(Operand(slot, as_dims[0], offset, as_dims[1]))
        return len(self.operands) - 1

    def __call__(self, op: str, dtype: str, *args: int, param=None) -> int:
        self.body.append(Inst(op, dtype, args, param))
        return len(self.body) - 1

    def load(self, dtype: str, strides, offset=ZERO, *indices: int, extra=()) -> int:
        operand = self.operand(self.slot(dtype), strides, offset, extra)
        return self("load", dtype, *indices, param=operand)

    def store(self, value: int, strides, offset=ZERO, *indices: int, extra=()) -> int:
        dtype = self.body[value].dtype
        operand = self.operand(self.slot(dtype), strides, offset, extra)
        return self("store", dtype, value, *indices, param=operand)

    def kernel(self) -> Kernel:
        return Kernel(self.dims, self.split, tuple(self.operands), tuple(self.body))


_CTYPES = {"ptr": ctypes.c_void_p, "double": ctypes.c_double, "float": ctypes.c_float}
_CTYPES |= {f"i{bits}": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)}


@cache
def _compiled(symbol: str, ir: str, declares: frozenset, types: tuple):
    text = "\n".join([*sorted(declares), ir])
    library = compile_ir(text, resolver(current()))
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *(_CTYPES[t] for t in types))(library.address(symbol))
    return library, call


def literal(argument) -> float | int:
    if argument.type in ("double", "float"):
        return float(np.uint64(int(argument.value, 16)).view(np.float64))
    return int(argument.value)


def run(kernel: Kernel, arrays: dict[int, np.ndarray], symbols: dict[Dim, int]) -> int:
    """Compile and call a kernel on flat arrays, by slot number."""
    code = emit_kernel(kernel)
    types = tuple(a.type for a in code.arguments)
    _, call = _compiled(code.symbol, code.ir, code.declares, types)
    values = []
    for a in code.arguments:
        if a.kind == "slot":
            values.append(arrays[a.value.number].ctypes.data)
        else:
            values.append(a.value.evaluate(symbols) if a.kind == "dim" else literal(a))
    return call(*values)


# ------------------------------------------------------------------------------- reference

_FLOOR = {"idiv": np.floor_divide, "imod": np.remainder}
_PLAIN = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "fma": lambda a, b, c: a * b + c, "fmod": np.fmod, "neg": np.negative, "abs": np.abs,
    "min": np.minimum, "max": np.maximum, "copysign": np.copysign, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "sqrt": np.sqrt, "eq": np.equal,
    "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "isnan": np.isnan, "isinf": np.isinf, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "shl": np.left_shift,
    "shr": np.right_shift, "select": np.where, "real": np.real, "imag": np.imag,
    "complex": numeric.complex_from_parts, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh,
    "cbrt": np.cbrt, "hypot": np.hypot,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "sigmoid": scipy.special.expit, "softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
    "log1mexp": numeric.log1mexp, "erf": scipy.special.erf, "erfc": scipy.special.erfc,
    "pow": np.power, "nextafter": np.nextafter,
}  # fmt: skip
_REDUCE = {
    "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def scalar(op: str, dtype: str, *args: np.ndarray) -> np.ndarray:
    """One instruction by NumPy."""
    if op in _FLOOR:
        a, b = args
        safe = np.where(b == 0, b.dtype.type(1), b)
        return np.where(b == 0, b.dtype.type(0), _FLOOR[op](a, safe))
    if op == "cast":
        return args[0].astype(dtype)
    return _PLAIN[op](*args).astype(dtype)


def identity(op: str, dtype: str):
    if op in ("max", "min"):
        if dtype == "bool":
            return op == "min"
        if dtype.startswith("float"):
            return -np.inf if op == "max" else np.inf
        return np.iinfo(dtype).min if op == "max" else np.iinfo(dtype).max
    return np.array({"mul": 1, "and": -1}.get(op, 0)).astype(dtype)


def reduce_reference(op: str, x: np.ndarray, kernel: Kernel, dims: tuple[int, ...]) -> np.ndarray:
    outer = dims[: kernel.split]
    flat = np.broadcast_to(x, dims).reshape(*outer, int(np.prod(dims[kernel.split :])))
    if op.startswith("arg"):
        result = np.argmax(flat, -1) if op == "argmax" else np.argmin(flat, -1)
    elif flat.dtype == bool and op in ("add", "mul"):
        result = flat.any(-1) if op == "add" else flat.all(-1)
    else:
        start = identity(op, str(flat.dtype))
        result = _REDUCE[op].reduce(flat, axis=-1, initial=start, dtype=flat.dtype)
    return np.asarray(result).reshape((*outer, *[1] * (len(dims) - kernel.split)))


def leaf(inst: Inst, grid, symbols: dict[Dim, int]) -> np.ndarray:
    """The value of an instruction without arguments."""
    if inst.op == "index":
        return grid[inst.param]
    value = inst.param.evaluate(symbols) if inst.op == "dim" else inst.param
    return np.array(value, inst.dtype)


def accumulate(kernel: Kernel, dims: tuple[int, ...], memory, op: str, at, value) -> None:
    """Once for each outer point if nothing varies with the inner dims, else for each point."""
    shape = np.broadcast_shapes(at.shape, value.shape, (1,) * len(dims))
    turns = dims
    if all(n == 1 for n in shape[kernel.split :]):
        turns = (*dims[: kernel.split], *shape[kernel.split :])
    at, value = np.broadcast_to(at, turns), np.broadcast_to(value, turns)
    _REDUCE[op].at(memory, at.ravel(), value.ravel())


def reference(kernel: Kernel, arrays: dict[int, np.ndarray], symbols: dict[Dim, int]) -> None:
    """Evaluate a kernel on flat arrays, in place.  Loads see what stores before them left."""
    dims = tuple(d.evaluate(symbols) for d in kernel.dims)
    grid = np.indices(dims, sparse=True) if dims else ()
    values: list = []

    def where(operand: int, indices) -> np.ndarray:
        o = kernel.operands[operand]
        at = np.array(o.offset.evaluate(symbols))
        for i, s in zip([*grid, *indices], [*o.strides, *o.extra], strict=True):
            if s.value != 0:  # what does not vary is computed once, even if a loop has no turn
                at = at + i * s.evaluate(symbols)
        return at

    def memory(operand: int) -> np.ndarray:
        return arrays[kernel.operands[operand].slot.number]

    for inst in kernel.body:
        args = [values[a] for a in inst.args]
        value = None
        if inst.op == "load":
            value = memory(inst.param)[where(inst.param, args)]
        elif inst.op in ("const", "dim", "index"):
            value = leaf(inst, grid, symbols)
        elif inst.op == "wrap":
            value = np.where(args[0] < 0, args[0] + args[1], args[0])
        elif inst.op == "call":
            function = LIBM.get(inst.param) or getattr(scipy.special, inst.param)
            value = np.asarray(function(*args)).astype(inst.dtype)
        elif inst.op == "reduce":
            value = reduce_reference(inst.param, args[0], kernel, dims)
        elif inst.op == "store":
            at, value = np.broadcast_arrays(where(inst.param, args[1:]), args[0])
            memory(inst.param)[at] = value
        elif inst.op == "accumulate":
            operand, op = inst.param
            accumulate(kernel, dims, memory(operand), op, where(operand, args[1:]), args[0])
        else:
            value = scalar(inst.op, inst.dtype, *args)
        values.append(value)


LIBM = {
    "trigamma": numeric.tri_gamma,
    "tgamma": scipy.special.gamma,
    "lgamma": scipy.special.gammaln,
}


def check(kernel: Kernel, arrays: list[np.ndarray], symbols: dict[Dim, int], rtol=None) -> None:
    """Compare machine code and reference on copies of flat arrays, one per slot."""
    actual = {number: np.array(a) for number, a in enumerate(arrays)}
    expected = {number: np.array(a) for number, a in enumerate(arrays)}
    assert run(kernel, actual, symbols) == 0
    with np.errstate(all="ignore"):
        reference(kernel, expected, symbols)
    for number, want in expected.items():
        got = actual[number]
        tolerance = rtol or (1e-12 if want.dtype == "float64" else 2e-6)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=1e-300)
        else:
            np.testing.assert_array_equal(got, want)


def data(dtype: str, size: int, seed: int = 0) -> np.ndarray:
    """Random numbers with special values among them."""
    rng = np.random.default_rng([seed, size])
    if dtype == "bool":
        return rng.random(size) < 0.5
    if dtype in COMPLEX:
        parts = data(real_of(dtype), 2 * size, seed)
        return parts.view(dtype)
    if dtype.startswith("float"):
        x = np.round(rng.normal(0, 3, size), 2)
        special = [0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf]
        pick = rng.random(size) < 0.2
        return np.where(pick, rng.choice(special, size), x).astype(dtype)
    info = np.iinfo(dtype)
    x = rng.integers(max(info.min, -20), 20, size)
    pick = rng.random(size) < 0.1
    return np.where(pick, rng.choice(np.array([info.min, info.max], dtype), size), x.astype(dtype))


# ----------------------------------------------------------------------------- instructions

N, M, K = (Dim.symbol(name) for name in "nmk")
CASES = [
    (row.name, dtype)
    for row in INSTRUCTIONS.values()
    for dtype in (sorted(NATIVE_DTYPES) if row.name in OF_PAIRS else DTYPES)
    if dtype[0] in row.kinds and row.name != "cast"
]


def instruction_kernel(op: str, dtype: str, dims=(N,), strides=((1,),) * 4) -> Kernel:
    b = Build(dims)
    row = INSTRUCTIONS[op]
    kinds = ["bool", dtype, dtype] if op == "select" else [dtype] * row.arity
    args = [b.load(kind, s) for kind, s in zip(kinds, strides)]
    if op in ("shl", "shr"):
        bits = np.dtype(dtype).itemsize * 8
        args[1] = b("and", dtype, args[1], b("const", dtype, param=bits - 1))
    value = b(op, row.result_dtype(dtype), *args)
    b.store(value, strides[3])
    return b.kernel()


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_instruction(op, dtype):
    kernel = instruction_kernel(op, dtype)
    for length in (0, 1, 3, 37):
        arrays = [data(s.slot.dtype, length, number) for number, s in enumerate(kernel.operands)]
        if op == "pow":
            arrays[1] = np.round(arrays[1])
        check(kernel, arrays, {N: length}, rtol=2e-6 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize("source", REALS)
@pytest.mark.parametrize("target", REALS)
def test_cast(source, target):
    b = Build((N,))
    b.store(b("cast", target, b.load(source, (1,))), (1,))
    x = data(source, 21)
    if source.startswith("float"):  # out of range is up to the machine
        x = np.where(np.isfinite(x), x, 7).astype(source)
        x = np.abs(x) if target.startswith("u") else x
    check(b.kernel(), [x, np.zeros(21, target)], {N: 21})


# ----------------------------------------------------------------------- layouts and lengths


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool"])
@pytest.mark.parametrize("layout", ["110", "101", "d1d", "1d1", "011", "ddd", "n1n"])
def test_layouts(dtype, layout):
    """Strides of the innermost dim: 0, 1, dynamic, negative."""
    stride = Dim.symbol("s")
    kinds = {"0": ZERO, "1": ONE, "d": stride, "n": -stride}
    b = Build((N,))
    first, second, target = (kinds[c] for c in layout)
    offsets = [(N - 1) * stride if c == "n" else ZERO for c in layout]
    x = b.load(dtype, (first,), offsets[0])
    y = b.load(dtype, (second,), offsets[1])
    value = b("xor" if dtype == "bool" else "sub", dtype, x, y)
    b.store(value, (target,), offsets[2])
    kernel = b.kernel()
    for length in LENGTHS:
        arrays = [data(dtype, 3 * length + 1, seed) for seed in range(3)]
        check(kernel, arrays, {N: length, stride: 3})


@pytest.mark.parametrize("length", range(9))
def test_constant_length(length):
    check(instruction_kernel("add", "float64", (Dim.const(length),)), [data("float64", 9)] * 3, {})
    kernel = reduction_kernel("add", "float64", (M, Dim.const(length)), 1)
    check(kernel, [data("int8", 5 * length).astype("float64"), np.zeros(5)], {M: 5})


def test_collapse_joins_contiguous_loops():
    b = Build((N, M, K))
    strides = (M * K, K, ONE)
    b.store(b.load("float64", strides), strides)
    assert collapse(b.kernel()).dims == (product((N, M, K)),)


def test_collapse_keeps_what_it_must():
    b = Build((N, M, K))
    b.store(b.load("float64", (M, ONE, ZERO)), (M * K, K, ONE))
    assert collapse(b.kernel()).dims == (N * M, K)
    b("index", "int64", param=0)
    assert collapse(b.kernel()).dims == (N, M, K)
    b = Build((N, ONE, M), 1)
    b.store(b("reduce", "float64", b.load("float64", (M, 0, 1)), param="add"), (1, 0, 0))
    collapsed = collapse(b.kernel())
    assert collapsed.dims == (N, M) and collapsed.split == 1


@pytest.mark.parametrize("shape", [(3, 5), (1, 4), (4, 1), (0, 3), (3, 0), (2, 18)])
def test_transposed_and_broadcast(shape):
    b = Build((N, M))
    x = b.load("float64", (ONE, N))  # transposed
    y = b.load("float32", (ZERO, ONE))  # a row
    z = b.load("int16", (ONE, ZERO))  # a column
    i = b("cast", "float64", b("index", "int64", param=0))
    j = b("cast", "float64", b("index", "int64", param=1))
    y = b("add", "float64", b("cast", "float64", y), i)
    z = b("mul", "float64", b("cast", "float64", z), j)
    b.store(b("fma", "float64", x, y, z), (M, ONE))
    n, m = shape
    arrays = [
        np.arange(n * m, dtype="float64"), data("int8", m).astype("float32"),
        data("int16", n), np.zeros(n * m),
    ]  # fmt: skip
    check(b.kernel(), arrays, {N: n, M: m})


def test_constants_do_not_change_the_code():
    def code(value: float, dtype: str = "float64"):
        b = Build((N,))
        b.store(b("mul", dtype, b.load(dtype, (1,)), b("const", dtype, param=value)), (1,))
        return b.kernel()

    assert emit_kernel(code(2.0)).symbol == emit_kernel(code(-0.1)).symbol
    assert emit_kernel(code(2.0)).symbol != emit_kernel(code(2.0, "float32")).symbol
    for value in (2.0, float("inf"), float("nan"), -0.0, 1e-320):
        check(code(value), [data("float64", 11), np.zeros(11)], {N: 11})
    for dtype, value in (("uint64", 2**64 - 1), ("int8", -128), ("uint8", 255), ("float32", 0.1)):
        check(code(value, dtype), [data(dtype, 11), np.zeros(11, dtype)], {N: 11})


def test_equal_offset_and_dim():
    b = Build((N,))
    total = b("cast", "float64", b("dim", "int64", param=N * 2))
    b.store(b("add", "float64", b.load("float64", (ONE,), 2), total), (ONE,), K)
    check(b.kernel(), [data("float64", 9), np.zeros(12)], {N: 7, K: 5})


def test_no_loop():
    b = Build(())
    x = b("tanh", "float64", b.load("float64", ()))
    b.store(b("mul", "float64", x, b("const", "float64", param=3.0)), ())
    check(b.kernel(), [np.array([0.3]), np.zeros(1)], {})


def test_in_place():
    b = Build((N,))
    slot = b.slot("float64")
    x = b("load", "float64", param=b.operand(slot, (1,)))
    y = b("exp", "float64", b("neg", "float64", x))
    b("store", "float64", y, param=b.operand(slot, (1,)))
    for length in LENGTHS:
        check(b.kernel(), [data("float64", length)], {N: length})


# -------------------------------------------------------------------------------- reductions


def reduction_kernel(op: str, dtype: str, dims: tuple[Dim, ...], split: int) -> Kernel:
    """Reduce a C-contiguous array over ``dims[split:]``."""
    b = Build(dims, split)
    strides = [product(dims[d + 1 :]) for d in range(len(dims))]
    result = "int64" if op.startswith("arg") else dtype
    value = b("reduce", result, b.load(dtype, tuple(strides)), param=op)
    outer = [product(dims[d + 1 : split]) for d in range(split)]
    b.store(value, (*outer, *[ZERO] * (len(dims) - split)))
    return b.kernel()


REDUCTIONS = [
    (op, dtype)
    for op in (*_REDUCE, "argmax", "argmin")
    for dtype in DTYPES
    if not (op in ("and", "or", "xor") and dtype.startswith("float"))
    and combination(op, dtype) == op
]


@pytest.mark.parametrize(("op", "dtype"), REDUCTIONS)
def test_reduction(op, dtype):
    kernel = reduction_kernel(op, dtype, (N, M), 1)
    result = "int64" if op.startswith("arg") else dtype
    for length in LENGTHS:
        if op.startswith("arg") and length == 0:
            continue
        x = data(dtype, 3 * length)
        if dtype.startswith("float") and op in ("add", "mul"):
            x = np.where(np.isfinite(x), x, 1.5).astype(dtype)
            x = x if op == "add" else np.sign(x) * (1 + np.abs(x) / 100)
            x = x.astype(dtype)
        check(kernel, [x, np.zeros(3, result)], {N: 3, M: length}, rtol=1e-4)


@pytest.mark.parametrize("op", ["add", "max", "argmax", "argmin"])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_reduction_of_special_values(op, special):
    kernel = reduction_kernel(op, "float64", (N,), 0)
    result = "int64" if op.startswith("arg") else "float64"
    for length in (1, 5, 40):
        for at in {0, length // 2, length - 1}:
            x = np.linspace(-1, 1, length)
            x[at] = special
            check(kernel, [x, np.zeros(1, result)], {N: length})
            x[-1] = special
            check(kernel, [x, np.zeros(1, result)], {N: length})


SHAPES = [(2, 3, 5), (2, 0, 5), (3, 4, 0), (0, 2, 2), (2, 1, 9)]


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        (op, shape)
        for op, shape in itertools.product(["add", "max", "argmin"], SHAPES)
        if op != "argmin" or shape[1] * shape[2]
    ],
)
def test_reduction_over_two_loops(op, shape):
    """A view that cannot be collapsed: the middle dim is read backwards."""
    dims = (N, M, K)
    b = Build(dims, 1)
    x = b.load("float64", (M * K, -K, ONE), (M - 1) * K)
    x = b("add", "float64", x, b.load("float64", (ZERO, ONE, ZERO)))
    result = "int64" if op == "argmin" else "float64"
    b.store(b("reduce", result, x, param=op), (1, 0, 0))
    n, m, k = shape
    x = np.round(np.random.default_rng(1).normal(size=n * m * k), 1)
    check(b.kernel(), [x, np.arange(m) / 10, np.zeros(n, result)], {N: n, M: m, K: k})


def test_reduction_of_what_does_not_vary():
    b = Build((N, M), 1)
    b.store(b("reduce", "int64", b.load("int64", (1, 0)), param="add"), (1, 0))
    check(b.kernel(), [np.arange(3), np.zeros(3, int)], {N: 3, M: 11})


def test_reduction_over_one_point():
    b = Build((N, ONE), 1)
    x = b.load("float64", (1, 1))
    b.store(b("reduce", "float64", x, param="max"), (1, 0))
    b.store(b("reduce", "int64", x, param="argmax"), (1, 0))
    check(b.kernel(), [data("float64", 5), np.zeros(5), np.ones(5, int)], {N: 5})


def test_long_sum_is_accurate():
    x = np.full(10**6, 0.1, "float32")
    out = np.zeros(1, "float32")
    run(reduction_kernel("add", "float32", (N,), 0), {0: x, 1: out}, {N: len(x)})
    assert abs(out[0] / 1e5 - 1) < 1e-5


@pytest.mark.parametrize("shape", [(3, 7), (4, 8), (1, 1), (5, 0), (0, 5), (2, 33)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_softmax_rows(shape, dtype):
    """Three passes over each row, and the logarithm of the sum kept."""
    b = Build((N, M), 1)
    x = b.load(dtype, (M, ONE))
    top = b("reduce", dtype, x, param="max")
    e = b("exp", dtype, b("sub", dtype, x, top))
    total = b("reduce", dtype, e, param="add")
    b.store(b("div", dtype, e, total), (M, ONE))
    b.store(b("add", dtype, b("log", dtype, total), top), (ONE, ZERO))
    n, m = shape
    x = np.random.default_rng(0).normal(size=n * m).astype(dtype)
    arrays = [x, np.zeros(n * m, dtype), np.zeros(n, dtype)]
    check(b.kernel(), arrays, {N: n, M: m}, rtol=1e-12 if dtype == "float64" else 1e-5)


# ------------------------------------------------------------------ gather, scatter, accumulate


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["float64", "bool", "int16"])
def test_gather(length, dtype):
    b = Build((N,))
    index = b("wrap", "int64", b.load("int64", (1,)), b("dim", "int64", param=K))
    b.store(b.load(dtype, (0,), 0, index, extra=(M,)), (1,))
    indices = np.random.default_rng(length).integers(-6, 6, length)
    arrays = [indices, data(dtype, 12), np.zeros(length, dtype)]
    check(b.kernel(), arrays, {N: length, K: 6, M: 2})


@pytest.mark.parametrize("length", [1, 3, 4, 9])
@pytest.mark.parametrize("bad", [6, -7, 2**62, -(2**63)])
def test_index_out_of_range(length, bad):
    b = Build((N,))
    index = b("wrap", "int64", b.load("int64", (1,)), b("dim", "int64", param=K))
    b.store(b.load("float64", (0,), 0, index, extra=(1,)), (1,))
    for at in range(length):
        indices = np.zeros(length, "int64")
        indices[at] = bad
        arrays = {0: indices, 1: np.arange(6.0), 2: np.zeros(length)}
        assert run(b.kernel(), arrays, {N: length, K: 6}) == 1
        assert run(b.kernel(), arrays | {0: indices * 0}, {N: length, K: 6}) == 0


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("op", ["store", "add", "max"])
def test_scatter(length, op):
    """Rows of a matrix set or increased at computed places, repeated ones too: in order."""
    b = Build((N, M))
    index = b.load("int32", (ONE, ZERO))
    index = b("wrap", "int64", b("cast", "int64", index), b("dim", "int64", param=K))
    value = b.load("float64", (M, ONE))
    target = b.operand(b.slot("float64"), (ZERO, ONE), extra=(M,))
    if op == "store":
        b("store", "float64", value, index, param=target)
    else:
        b("accumulate", "float64", value, index, param=(target, op))
    indices = np.random.default_rng(length).integers(-4, 4, length).astype("int32")
    arrays = [indices, np.arange(length * 3.0), np.ones(12)]
    check(b.kernel(), arrays, {N: length, M: 3, K: 4})
    arrays = [indices[:2], np.arange(2.0 * length), np.ones(4 * length)]
    check(b.kernel(), arrays, {N: len(indices[:2]), M: length, K: 4})


@pytest.mark.parametrize("length", LENGTHS)
def test_scatter_along_the_innermost_loop(length):
    b = Build((N,))
    index = b.load("int64", (1,))
    value = b.load("float32", (-1,), N - 1)
    target = b.operand(b.slot("float32"), (ZERO,), extra=(ONE,))
    b("accumulate", "float32", value, index, param=(target, "add"))
    indices = np.random.default_rng(length).integers(0, 3, length)
    check(
        b.kernel(),
        [indices, np.arange(length, dtype="float32"), np.ones(3, "float32")],
        {N: length},
    )


@pytest.mark.parametrize("strides", [(0, 1), (1, 0), (0, 0), (K, 0), (0, K)])
@pytest.mark.parametrize("op", ["add", "min"])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_accumulate(strides, op, dtype):
    """A reduction in memory, over rows, columns, or both."""
    for shape in ((3, 5), (0, 4), (4, 0), (1, 33), (40, 3)):
        b = Build((N, M))
        value = b.load(dtype, (M, ONE))
        operand = b.operand(b.slot(dtype), strides)
        b("accumulate", dtype, value, param=(operand, op))
        x = data("int8", shape[0] * shape[1]).astype(dtype)
        arrays = [x, np.ones(200, dtype)]
        check(b.kernel(), arrays, dict(zip((N, M), shape)) | {K: 2})


@pytest.mark.parametrize("shape", [(3, 5), (1, 9), (4, 2), (0, 3), (6, 16)])
def test_accumulate_beside_a_reduction(shape):
    """A sum over rows, and what is made of it accumulated at three depths."""
    b = Build((N, M), 1)
    x = b.load("float64", (M, ONE))
    total = b("reduce", "float64", x, param="add")
    scaled = b("mul", "float64", x, total)
    for value, strides in ((total, (0, 0)), (scaled, (0, 1)), (scaled, (0, 0)), (scaled, (1, 0))):
        target = b.operand(b.slot("float64"), strides)
        b("accumulate", "float64", value, param=(target, "add"))
    n, m = shape
    arrays = [np.arange(n * m) / 8, np.ones(1), np.ones(m), np.ones(1), np.ones(n)]
    check(b.kernel(), arrays, {N: n, M: m})


def test_symbol_and_text_depend_on_nothing_else():
    """Other slots, other symbols, the same code."""

    def code(prefix: str, first_slot: int):
        b = Build((Dim.symbol(prefix + "0"), Dim.symbol(prefix + "1")), 1)
        b.slots.extend(Slot(k, "input", "int8", ()) for k in range(first_slot))
        x = b.load("float32", (Dim.symbol(prefix + "1") * 2, ONE))
        b.store(b("reduce", "float32", b("exp", "float32", x), param="add"), (1, 0))
        return emit_kernel(b.kernel())

    assert code("a", 0).ir == code("zz", 7).ir


def test_arguments_are_those_of_the_kernel_itself():
    """Kernels share one text; each passes its own slots, lengths, strides and numbers."""

    def kernel(n: Dim, step: Dim, number: float, first_slot: int) -> Kernel:
        b = Build((n,))
        b.slots.extend(Slot(k, "input", "int8", ()) for k in range(first_slot))
        x = b.load("float64", (step,))
        b.store(b("mul", "float64", x, b("const", "float64", param=number)), (1,))
        return b.kernel()

    kernels = [
        kernel(N, M, 2.0, 0),
        kernel(M, Dim.const(40), -0.5, 3),
        kernel(Dim.const(50), N, 1.5, 1),
    ]
    codes = [emit_kernel(k) for k in kernels]
    assert codes[0].symbol == codes[1].symbol == codes[2].symbol
    for k, code in zip(kernels, codes):
        slots = [a.value for a in code.arguments if a.kind == "slot"]
        dims = {a.value for a in code.arguments if a.kind == "dim"}
        assert {id(s) for s in slots} == {id(o.slot) for o in k.operands}
        assert dims <= {*k.dims, k.operands[0].strides[0]}
        number = next(i.param for i in k.body if i.op == "const")
        assert [literal(a) for a in code.arguments if a.kind == "const"] == [number]


# --------------------------------------------------------------------------------- calls

CALLS = {**LIBM_CALLS, **SCIPY_CALLS}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_call(name):
    rng = np.random.default_rng(0)
    for dtype, rtol in (("float64", 1e-12), ("float32", 1e-4)):
        b = Build((N,))
        args = [b.load(dtype, (1,)) for _ in range(CALLS[name])]
        b.store(b("call", dtype, *args, param=name), (1,))
        for length in (1, 6):
            arrays = [rng.uniform(0.1, 0.9, length).astype(dtype) for _ in args]
            arrays = [x + (k > 0) for k, x in enumerate(arrays)] if name == "zeta" else arrays
            arrays = [x + 1 for x in arrays] if name == "zeta" else arrays
            check(b.kernel(), [*arrays, np.zeros(length, dtype)], {N: length}, rtol)


# ---------------------------------------------------------------------------- random kernels


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_random_kernels(draw):
    """Random shapes, layouts, dtypes and bodies, with a reduction or without."""
    rank = draw.draw(st.integers(0, 3))
    split = draw.draw(st.integers(0, rank))
    shape = draw.draw(st.tuples(*[st.sampled_from([0, 1, 2, 3, 5, 8, 13])] * rank))
    dims = tuple(Dim.symbol(f"n{d}") for d in range(rank))
    symbols = dict(zip(dims, shape))
    b, arrays, values = Build(dims, split), [], []
    for seed in range(draw.draw(st.integers(1, 3))):
        dtype = draw.draw(st.sampled_from(["float64", "float32", "int32", "uint8"]))
        order = draw.draw(st.permutations(range(rank)))
        kept = draw.draw(st.sets(st.sampled_from(range(rank)))) if rank else set()
        strides, size = [ZERO] * rank, ONE
        for d in order:
            if d in kept:
                strides[d], size = size, size * dims[d]
        values.append(b("cast", "float64", b.load(dtype, tuple(strides))))
        arrays.append(data("uint8", size.evaluate(symbols), seed).astype(dtype))
    for _ in range(draw.draw(st.integers(0, 3))):
        op = draw.draw(st.sampled_from(["add", "sub", "max", "min"]))
        pick = st.sampled_from(values)
        values.append(b(op, "float64", draw.draw(pick), draw.draw(pick)))
        if draw.draw(st.booleans()):
            values.append(b("reduce", "float64", values[-1], param=op if op != "sub" else "add"))
    inner = any(i.op == "reduce" for i in b.body)
    b.split = split if inner else rank
    strides = tuple(product(dims[d + 1 :]) for d in range(rank))
    b.store(values[-1], strides)
    arrays.append(np.zeros(int(np.prod(shape, dtype=int))))
    check(b.kernel(), arrays, symbols)
