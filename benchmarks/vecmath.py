"""Vector mathematics against NumPy: time per element, code generation, greatest error.

    python benchmarks/vecmath.py [function ...]

Prints, per function and dtype: nanoseconds per element over 1e6 numbers at width 1, one and two
native registers, NumPy's (or SciPy's), the ratio to the best, milliseconds of code generation
(loop and overhead of about 0.7 included), greatest error in ulps of 1000 points against mpmath.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable

import llvmlite.binding as llvm
import mpmath as mp
import numpy as np
from scipy import special

from phintys.backends.llvm.vecmath import BINARY, CALLED, SUPPORTED, define, requirements, symbol
from phintys.lowering.interpret import FUNCTIONS
from phintys.scalar import numeric

COUNT = 1_000_000
NUMPY: dict[str, Callable] = FUNCTIONS | {
    "sigmoid": special.expit,
    "softplus": lambda x, out: np.logaddexp(x, 0, out=out),
    "log1mexp": lambda x, out: np.positive(numeric.log1mexp(x), out=out),
    "erf": special.erf,
    "erfc": special.erfc,
}
REFERENCE: dict[str, Callable] = {
    "exp2": lambda x: mp.mpf(2) ** x,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "erfc": lambda x: mp.erfc(min(x, 40)),  # 0 for all formats
    "log1p": mp.log1p,
    "log1mexp": lambda x: mp.log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x)),
    "log2": lambda x: mp.log(x, 2),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": lambda x: mp.log1p(mp.exp(x)),
    "pow": lambda x, y: mp.power(x, y),
}
POSITIVE = {"log", "log2", "log10", "log1p", "pow"}
UNIT = {"asin", "acos", "atanh"}  # defined on [-1, 1]


def loop_module(name: str, dtype: str, width: int) -> str:
    """A module whose ``run(x, y, out, n)`` maps the function; n is a multiple of the width."""
    scalar = {"float64": "double", "float32": "float"}[dtype]
    vector = scalar if width == 1 else f"<{width} x {scalar}>"
    arity = 2 if name in BINARY else 1
    size = int(dtype[5:]) // 8
    loads = "".join(
        f"  %p{i} = getelementptr {scalar}, ptr %in{i}, i64 %i\n"
        f"  %x{i} = load {vector}, ptr %p{i}, align {size}\n"
        for i in range(arity)
    )
    args = ", ".join(f"{vector} %x{i}" for i in range(arity))
    return (
        "\n".join(sorted(requirements(name, dtype, width)))
        + f"""
{define(name, dtype, width)}
define void @run(ptr %in0, ptr %in1, ptr %out, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
{loads}  %y = call {vector} @{symbol(name, dtype, width)}({args})
  %q = getelementptr {scalar}, ptr %out, i64 %i
  store {vector} %y, ptr %q, align {size}
  %j = add i64 %i, {width}
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
    )


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """LLVM's stock O2 passes."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


class Compiled:
    """The function over arrays, for one width and one machine description."""

    def __init__(
        self,
        name: str,
        dtype: str,
        width: int,
        cpu: str = "",
        features: str = "",
        optimise: bool = False,
    ) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        if not cpu:
            cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        target = llvm.Target.from_default_triple()
        self.machine = target.create_target_machine(
            cpu=cpu, features=features, opt=2, reloc="pic", codemodel="small"
        )
        self.is_x86 = "x86" in target.triple
        self.fuses = not self.is_x86 or "+fma" in features
        context = llvm.create_context()
        module = llvm.parse_assembly(loop_module(name, dtype, width), context)
        module.verify()
        if optimise:
            _optimise(module, self.machine)
        self.assembly = self.machine.emit_assembly(module)
        start = time.perf_counter()
        code = self.machine.emit_object(module)
        self.milliseconds = (time.perf_counter() - start) * 1e3
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly("", context), self.machine)
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
        address = self.engine.get_function_address("run")
        self.run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(address)
        self.width, self.dtype = width, dtype

    def __call__(self, x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
        n = len(x)
        padded = -(-n // self.width) * self.width
        xs, ys, out = (np.ones(padded, self.dtype) for _ in range(3))
        xs[:n] = x
        if y is not None:
            ys[:n] = y
        self.run(xs.ctypes.data, ys.ctypes.data, out.ctypes.data, padded)
        return out[:n]


def ulps(got: np.ndarray, exact: list, dtype: str) -> np.ndarray:
    """Distance of each result from the exact value in units of the exact value's last place."""
    with np.errstate(over="ignore"):
        rounded = np.abs(np.array([float(e) for e in exact]).astype(dtype))
        units = np.where(np.isinf(rounded), np.inf, np.spacing(rounded)).astype("f8")
    wrong = np.isinf(rounded) != np.isinf(got)
    distances = [
        0.0 if np.isinf(r) else float(abs(mp.mpf(float(g)) - e) / u)
        for g, e, r, u in zip(got, exact, rounded, units)
    ]
    return np.where(wrong, np.inf, distances)


def exact_values(name: str, *args: np.ndarray) -> list:
    """The function by mpmath, at its current precision."""
    reference = REFERENCE.get(name) or getattr(mp, name)
    return [reference(*(mp.mpf(float(v)) for v in row)) for row in zip(*args)]


def per_element(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) / COUNT * 1e9


def points(name: str, rng: np.random.Generator) -> np.ndarray:
    """Arguments where the function is defined."""
    if name in POSITIVE:
        return np.exp(rng.normal(size=COUNT))
    if name == "log1mexp":
        return -np.exp(rng.normal(size=COUNT))
    if name == "acosh":
        return np.cosh(rng.normal(size=COUNT) * 3)
    return rng.uniform(-1, 1, COUNT) if name in UNIT else rng.normal(size=COUNT) * 3


def measure(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = points(name, rng).astype(dtype)
    y = (rng.normal(size=COUNT) * 3).astype(dtype)
    out = np.empty_like(x)
    native = 32 // x.itemsize
    functions = [Compiled(name, dtype, w) for w in (1, native, 2 * native)]
    codegen = [
        min(Compiled(name, dtype, w).milliseconds for _ in range(5)) for w in (native, 2 * native)
    ]
    times = [
        per_element(lambda f=f: f.run(x.ctypes.data, y.ctypes.data, out.ctypes.data, COUNT))
        for f in functions
    ]
    peer = NUMPY[name]
    args = (x, y) if name in BINARY else (x,)
    theirs = per_element(lambda: peer(*args, out=out))
    sample = slice(0, 1000)
    few = [a[sample] for a in args]
    worst = ulps(functions[1](*few), exact_values(name, *few), dtype).max()
    print(
        f"{name:9}{dtype:9}{times[0]:9.2f}{times[1]:9.2f}{times[2]:9.2f}{theirs:9.2f}"
        f"{theirs / min(times):7.1f}{codegen[0]:9.1f}{codegen[1]:9.1f}{worst:7.2f}"
    )


def main() -> None:
    mp.mp.dps = 50
    print("                    nanoseconds                                 milliseconds")
    print("function dtype     W=1 ns   1 reg.   2 reg.    NumPy  ratio   1 reg.   2 reg.   ulps")
    for dtype in ("float64", "float32"):
        for name in sys.argv[1:] or sorted(SUPPORTED - CALLED):
            measure(name, dtype)


if __name__ == "__main__":
    main()
