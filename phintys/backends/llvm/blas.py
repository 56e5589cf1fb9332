"""`Call` steps: BLAS through the functions that SciPy exports.

``blas.ll`` holds routines in row-major terms that put sizes, leading dimensions and transposition
the way BLAS wants them; a step becomes a loop over its batch that calls one of them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from functools import cache
from importlib.machinery import ExtensionFileLoader, PathFinder
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from phintys.backends.capsules import capsule_pointer
from phintys.lowering.program import Call, Operand

if TYPE_CHECKING:
    from phintys.backends.llvm.writer import Lengths, Writer

_TYPES = {"float32": ("float", "s"), "float64": ("double", "d")}

#: name -> (number of sizes, rank of each operand, takes beta)
_FORMS = {
    "gemm": (3, (2, 2, 2), True),
    "gemv": (2, (1, 2, 1), True),
    "ger": (2, (2, 1, 1), False),
    "dot": (1, (0, 1, 1), True),
}


def source(dtype: str) -> str:
    """The text of ``blas.ll`` for a dtype."""
    kind, p = _TYPES[dtype]
    return Template((Path(__file__).parent / "blas.ll").read_text()).substitute(T=kind, p=p)


def routines(dtype: str) -> list[str]:
    """The symbols that ``blas.ll`` defines for a dtype."""
    return [f"phintys_{_TYPES[dtype][1]}{name}" for name in _FORMS]


@cache
def symbols() -> dict[str, int]:
    """name -> address of the BLAS functions that ``blas.ll`` calls; imports SciPy's BLAS."""
    exported = _cython_blas().__pyx_capi__
    return {
        f"blas_{p}{name}": capsule_pointer(exported[p + name])
        for _, p in _TYPES.values()
        for name in _FORMS
    }


def _cython_blas() -> Any:
    """``scipy.linalg.cython_blas``, without the rest of ``scipy.linalg`` if that can be done.

    The rest takes ten times as long.  A later import of the package finds the same module.
    """
    name, package = "scipy.linalg.cython_blas", importlib.util.find_spec("scipy")
    if name not in sys.modules and package is not None:
        places = [str(Path(p) / "linalg") for p in package.submodule_search_locations or ()]
        spec = PathFinder.find_spec(name, places)
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
            with contextlib.suppress(ImportError):
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    return importlib.import_module(name)


def routine(step: Call) -> str:
    """The symbol of the routine that a step calls."""
    return f"phintys_{_TYPES[step.dtype][1]}{step.name}"


def declarations(dtype: str) -> list[str]:
    """The ``declare`` lines of the routines for a dtype."""
    kind, p = _TYPES[dtype]
    lines = []
    for name, (sizes, ranks, takes_beta) in _FORMS.items():
        types = ["i64"] * sizes + [kind]
        for rank in ranks:
            types += ["ptr", *["i64"] * rank]
        types += [kind] * takes_beta
        lines.append(f"declare i64 @phintys_{p}{name}({', '.join(types)})")
    return lines


def emit_call(out: Writer, step: Call, lengths: Lengths, addresses: dict[int, str]) -> str:
    """Write the call, repeated over the batch; gives an i64 that is 0 if all went well."""
    kind = _TYPES[step.dtype][0]
    sizes, _, takes_beta = _FORMS[step.name]
    batch = [lengths(d) for d in step.batch]
    strides = [[lengths(s) for s in operand.strides] for operand in step.operands]
    bases = [_element(out, o, lengths, addresses, kind) for o in step.operands]
    fixed = [f"i64 {lengths(d)}" for d in step.sizes[:sizes]]
    alpha, beta = (_factor(out, f, lengths, addresses, kind) for f in (step.alpha, step.beta))
    loops = _Batch(out, batch)
    arguments = [*fixed, alpha]
    for base, stride in zip(bases, strides):
        arguments.append(f"ptr {loops.advance(base, stride, kind)}")
        arguments += [f"i64 {s}" for s in stride[len(batch) :]]
    arguments += [beta] if takes_beta else []
    return loops.close(out.value(f"call i64 @{routine(step)}({', '.join(arguments)})"))


class _Batch:
    """Loops over the batch of a call; one after the other, the outermost first."""

    def __init__(self, out: Writer, lengths: list[str]) -> None:
        self.out, self.lengths = out, lengths
        self.status = out.stack("i64") if lengths else ""
        self.counters = [out.stack("i64") for _ in lengths]
        self.tests = [out.name("test") for _ in lengths]
        self.ends = [out.name("end") for _ in lengths]
        self.values: list[str] = []
        if lengths:
            out.store("i64", "0", self.status)
        for counter, length, test, end in zip(self.counters, lengths, self.tests, self.ends):
            out.store("i64", "0", counter)
            out.line(f"br label %{test}")
            out.label(test)
            value = out.load("i64", counter)
            out.require(out.value(f"icmp slt i64 {value}, {length}"), end)
            self.values.append(value)

    def advance(self, base: str, strides: list[str], kind: str) -> str:
        """The address of an operand at the present point of the batch."""
        for value, stride in zip(self.values, strides):
            step = self.out.value(f"mul i64 {value}, {stride}")
            base = self.out.value(f"getelementptr {kind}, ptr {base}, i64 {step}")
        return base

    def close(self, status: str) -> str:
        """End the loops; the status of all calls."""
        out = self.out
        if not self.lengths:
            return status
        before = out.load("i64", self.status)
        out.store("i64", out.value(f"or i64 {before}, {status}"), self.status)
        for d in reversed(range(len(self.lengths))):
            after = out.value(f"add i64 {self.values[d]}, 1")
            out.store("i64", after, self.counters[d])
            out.line(f"br label %{self.tests[d]}")
            out.label(self.ends[d])
        return out.load("i64", self.status)


def _element(
    out: Writer, operand: Operand, lengths: Lengths, addresses: dict[int, str], kind: str
) -> str:
    """The address of the first element of an operand."""
    base, offset = addresses[operand.slot.number], lengths(operand.offset)
    if offset == "0":
        return base
    return out.value(f"getelementptr {kind}, ptr {base}, i64 {offset}")


def _factor(
    out: Writer, factor: Operand | float, lengths: Lengths, addresses: dict[int, str], kind: str
) -> str:
    """``alpha`` or ``beta`` as an argument."""
    if isinstance(factor, Operand):
        return f"{kind} {out.load(kind, _element(out, factor, lengths, addresses, kind))}"
    exact: Any = np.float64(np.float32(factor) if kind == "float" else factor)
    return f"{kind} 0x{exact.view(np.uint64):016X}"
