"""`Call` steps: BLAS.

``blas.ll`` holds routines for row-major matrices that translate sizes, leading dimensions and
transposition for BLAS; a step becomes a loop over its batch that calls one of them.  ``gemms``
loops over the last axis of the batch itself, and decides once how its items are computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir import poll
from phintys.backends.llvm.ir.writer import Lengths, Writer
from phintys.backends.llvm.runtime.libraries import BLAS_TYPES
from phintys.dims import product
from phintys.lowering.program import Call, Operand

#: name -> (number of sizes, rank of each operand, takes beta)
_FORMS = {
    "gemm": (3, (2, 2, 2), True),
    "gemv": (2, (1, 2, 1), True),
    "ger": (2, (2, 1, 1), False),
    "dot": (1, (0, 1, 1), True),
}


def routine(step: Call) -> str:
    """The symbol of the routine that a step calls; ``gemms`` takes a batch."""
    name = "gemms" if _takes_batch(step) else step.name
    return f"phintys_{BLAS_TYPES[step.dtype][1]}{name}"


def _takes_batch(step: Call) -> bool:
    """Whether the routine loops over the last axis of the batch."""
    return step.name == "gemm" and bool(step.batch)


def declarations(dtype: str) -> list[str]:
    """The ``declare`` lines of the BLAS routines for a dtype."""
    kind, p = BLAS_TYPES[dtype]
    lines = []
    for name, (sizes, ranks, takes_beta) in _FORMS.items():
        types = ["i64"] * sizes + [kind]
        for rank in ranks:
            types += ["ptr", *["i64"] * rank]
        types += [kind] * takes_beta
        lines.append(f"declare i64 @phintys_{p}{name}({', '.join(types)})")
    matrices = [kind, *["ptr", *["i64"] * 3] * 3, kind]
    lines.append(f"declare i64 @phintys_{p}gemms({', '.join(['i64'] * 4 + matrices)})")
    return lines


def emit_call(out: Writer, step: Call, lengths: Lengths, addresses: dict[int, str]) -> None:
    """Emit the call, repeated over the batch; branches to ``large`` if it fails."""
    kind = BLAS_TYPES[step.dtype][0]
    sizes, _, takes_beta = _FORMS[step.name]
    batch = [lengths(d) for d in step.batch]
    strides = [[lengths(s) for s in operand.strides] for operand in step.operands]
    bases = [element(out, o, lengths, addresses, kind) for o in step.operands]
    fixed = [f"i64 {lengths(d)}" for d in step.sizes[:sizes]]
    alpha, beta = (_factor(out, f, lengths, addresses, kind) for f in (step.alpha, step.beta))
    inner = int(_takes_batch(step))
    outer = len(batch) - inner
    work = lengths(product((*step.sizes, *step.batch[outer:]))) if outer else ""
    loops = Batch(out, batch[:outer])
    arguments = [*(f"i64 {n}" for n in batch[outer:]), *fixed, alpha]
    for base, stride in zip(bases, strides):
        arguments.append(f"ptr {loops.advance(base, stride[:outer], kind)}")
        arguments += [f"i64 {s}" for s in stride[outer:]]
    arguments += [beta] if takes_beta else []
    _succeed(out, f"call i64 @{routine(step)}({', '.join(arguments)})")
    loops.close(work)


def _succeed(out: Writer, call: str) -> None:
    """Emit ``call``, whose result is 0 on success; branches to ``large`` otherwise."""
    out.require(out.value(f"icmp eq i64 {out.value(call)}, 0"), "large")


class Batch:
    """The loop nest over the batch of a call, outermost loop first."""

    def __init__(self, out: Writer, lengths: list[str]) -> None:
        self.out, self.lengths = out, lengths
        self.work = out.stack("i64") if lengths else ""
        self.counters = [out.stack("i64") for _ in lengths]
        self.tests = [out.name("test") for _ in lengths]
        self.ends = [out.name("end") for _ in lengths]
        self.values: list[str] = []
        if lengths:
            out.store("i64", "0", self.work)
        for counter, length, test, end in zip(self.counters, lengths, self.tests, self.ends):
            out.store("i64", "0", counter)
            out.line(f"br label %{test}")
            out.label(test)
            value = out.load("i64", counter)
            out.require(out.value(f"icmp slt i64 {value}, {length}"), end)
            self.values.append(value)

    def advance(self, base: str, strides: list[str], kind: str) -> str:
        """Emit the address of an operand at the current point of the batch."""
        for value, stride in zip(self.values, strides):
            step = self.out.value(f"mul i64 {value}, {stride}")
            base = self.out.value(f"getelementptr {kind}, ptr {base}, i64 {step}")
        return base

    def close(self, work: str) -> None:
        """Emit the end of the loops; ``work`` is that of one iteration, for `count`."""
        out = self.out
        if self.lengths:
            self.count(work)
        for d in reversed(range(len(self.lengths))):
            after = out.value(f"add i64 {self.values[d]}, 1")
            out.store("i64", after, self.counters[d])
            out.line(f"br label %{self.tests[d]}")
            out.label(self.ends[d])

    def count(self, work: str) -> None:
        """Emit the sum of the work of iterations, with a poll for signals after a block of it."""
        out, ask, after = self.out, self.out.name("ask"), self.out.name("on")
        done = out.value(f"add i64 {out.load('i64', self.work)}, {work}")
        done = out.value(f"add i64 {done}, {costs.BATCH_TURN}")
        out.store("i64", done, self.work)
        out.branch(out.value(f"icmp ugt i64 {done}, {costs.POLL_PRODUCT}"), ask, after)
        out.label(ask)
        out.store("i64", "0", self.work)
        _succeed(out, poll.POLL)
        out.line(f"br label %{after}")
        out.label(after)


def element(
    out: Writer, operand: Operand, lengths: Lengths, addresses: dict[int, str], kind: str
) -> str:
    """Emit the address of the first element of an operand."""
    base, offset = addresses[operand.slot.number], lengths(operand.offset)
    if offset == "0":
        return base
    return out.value(f"getelementptr {kind}, ptr {base}, i64 {offset}")


def _factor(
    out: Writer, factor: Operand | float, lengths: Lengths, addresses: dict[int, str], kind: str
) -> str:
    """``alpha`` or ``beta`` as the text of an argument."""
    if isinstance(factor, Operand):
        return f"{kind} {out.load(kind, element(out, factor, lengths, addresses, kind))}"
    exact: Any = np.float64(np.float32(factor) if kind == "float" else factor)
    return f"{kind} 0x{exact.view(np.uint64):016X}"
