"""Scan -> LLVM IR text: a loop over the rows, with the running value in a register."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from phintys.backends.llvm.ir.instructions import combine
from phintys.backends.llvm.ir.loops import counted_loop
from phintys.backends.llvm.ir.types import KernelWriter, Type
from phintys.backends.llvm.kernel.kernels import KernelCode
from phintys.backends.llvm.kernel.lanes import Arguments
from phintys.dims import Dim, product
from phintys.lowering.program import Scan
from phintys.lowering.reductions import start_of_scan


def emit_scan(scan: Scan) -> KernelCode:
    """Emit the function of a scan; it cannot fail.

    It does not poll for signals: a scan that takes seconds would write gigabytes.
    """
    return _Scan(scan).emit()


class _Scan:
    def __init__(self, scan: Scan) -> None:
        self.scan, self.w, self.arguments = scan, KernelWriter(), Arguments()
        dtype = str(scan.operands[0].slot.dtype)
        # a bool is a byte in memory; bitwise operations on bytes give the same result
        self.type = Type("uint8" if dtype == "bool" else dtype)
        self.start = self.type.literal(start_of_scan(scan.kind, dtype).item())

    def emit(self) -> KernelCode:
        w = self.w
        pointers = [
            self._moved(self.arguments.slot(o.slot), "1", o.offset) for o in self.scan.operands
        ]
        size = self.arguments.dim(product(self.scan.dims))
        w.require(w(f"icmp ne i64 {size}, 0"), "done")  # there may be many empty rows
        self._loop(0, pointers)
        w.line("br label %done")
        w.label("done")
        w.line("ret i64 0")
        parameters = self.arguments.all()
        signature = ", ".join(f"{a.type} {name}" for name, a in parameters)
        text = w.text(f"i64 @SYMBOL({signature}) noinline nounwind")
        symbol = "phintys.kernel." + hashlib.sha256(text.encode()).hexdigest()[:20]
        arguments = tuple(a for _, a in parameters)
        return KernelCode(symbol, text.replace("SYMBOL", symbol), arguments, frozenset(w.declares))

    def _loop(self, d: int, pointers: Sequence[str]) -> None:
        """Emit the loop over dim ``d``; the operands are at ``pointers`` in its first iteration."""
        innermost = d == len(self.scan.dims) - 1

        def turn(counter: str, carried: list[str]) -> list[str]:
            here = [
                self._moved(pointer, counter, operand.strides[d])
                for pointer, operand in zip(pointers, self.scan.operands, strict=True)
            ]
            if innermost:
                return [self._element(here, carried[0])]
            self._loop(d + 1, here)
            return []

        types, carried = ([self.type], [self.start]) if innermost else ([], [])
        counted_loop(self.w, ("0", self._number(self.scan.dims[d]), 1), types, carried, turn)

    def _element(self, pointers: Sequence[str], state: str) -> str:
        """Emit the combination of the next element with the running value, and its store."""
        w, t = self.w, self.type
        target, source = pointers
        x = w(f"load {t.text}, ptr {source}, align {t.bytes}")
        state = combine(w, self.scan.kind, t, state, x)
        w.line(f"store {t.text} {state}, ptr {target}, align {t.bytes}")
        return state

    def _moved(self, pointer: str, count: str, stride: Dim) -> str:
        """Emit the address ``count`` times a stride after a pointer."""
        if stride.value == 0:
            return pointer
        elements = self.w(f"mul i64 {count}, {self._number(stride)}")
        return self.w(f"getelementptr {self.type.text}, ptr {pointer}, i64 {elements}")

    def _number(self, dim: Dim) -> str:
        """A length or stride: a literal if it is 1, else an argument."""
        return "1" if dim.value == 1 else self.arguments.dim(dim)
