"""Draw -> LLVM IR text: a loop nest that draws one element after the other.

An element is drawn by a C function of NumPy, or without a call (`inlined`): a second loop nest, for
generators of the kind PCG64, which is that of `numpy.random.default_rng`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.loops import counted_loop, pause, rarely
from phintys.backends.llvm.ir.types import KernelWriter, Type
from phintys.backends.llvm.ir.words import BASES
from phintys.backends.llvm.kernel.inlined import Stream, stream_of
from phintys.backends.llvm.kernel.kernels import KernelCode
from phintys.backends.llvm.kernel.lanes import Arguments
from phintys.dims import Dim, product
from phintys.lowering.program import Draw
from phintys.scalar.native import DISTRIBUTIONS


def emit_draw(draw: Draw) -> KernelCode:
    """Emit the function of a draw; it fails if a signal handler raises.

    Its argument for the slot `Draw.result` is the address of the ``bitgen_t``.
    """
    return _Draw(draw).emit()


class _Draw:
    def __init__(self, draw: Draw) -> None:
        self.draw, self.w, self.arguments = draw, KernelWriter(), Arguments()
        self.state = self.arguments.slot(draw.result)
        self.types = [Type(str(o.slot.dtype)) for o in draw.operands]
        self.stream: Stream | None = None
        self.scratch = self._zeros(DISTRIBUTIONS[draw.name].scratch)

    def emit(self) -> KernelCode:
        w, draw = self.w, self.draw
        pointers = [
            self._moved(self.arguments.slot(o.slot), t, "1", o.offset)
            for o, t in zip(draw.operands, self.types, strict=True)
        ]
        if len(draw.dims) > 1:
            self.done = w.stack("i64")
            w.line(f"store i64 0, ptr {self.done}")
        if draw.dims:
            size = self.arguments.dim(product(draw.dims))
            w.require(w(f"icmp ne i64 {size}, 0"), "done")  # there may be many empty rows
        self.fixed = {  # parameters that do not move
            k: self._load(pointers[k], self.types[k])
            for k, operand in enumerate(draw.operands)
            if k and all(stride.value == 0 for stride in operand.strides)
        }
        if draw.name in BASES:
            inlined, calls = w.name("inlined"), w.name("calls")
            w.branch(Stream.is_inlined(w, draw.name, self.state), inlined, calls)
            w.label(inlined)
            self.stream = stream_of(w, draw.name, self.state)
            self.stream.keep(self._loop(0, pointers, self.stream.start()))
            w.line("br label %done")
            w.label(calls)
        self.stream = None
        self._loop(0, pointers, [])
        for label, status in (("done", 0), ("fail", 1)):
            if label == "done":
                w.line("br label %done")
            w.label(label)
            w.line(f"ret i64 {status}")
        parameters = self.arguments.all()
        signature = ", ".join(f"{a.type} {name}" for name, a in parameters)
        text = w.text(f"i64 @SYMBOL({signature}) noinline nounwind")
        symbol = "phintys.kernel." + hashlib.sha256(text.encode()).hexdigest()[:20]
        arguments = tuple(a for _, a in parameters)
        text = text.replace("SYMBOL", symbol)
        return KernelCode(symbol, text, arguments, frozenset(w.declares), bool(draw.dims))

    def _loop(self, d: int, pointers: Sequence[str], carried: Sequence[str]) -> Sequence[str]:
        """Emit the loops from dim ``d`` on; the operands are at ``pointers`` at their start.

        ``carried`` is the state of the stream, if there is one; the result is that after the loops.
        """
        dims = self.draw.dims
        if d == len(dims):
            return self._element(pointers, carried)

        def turn(counter: str, carried: list[str]) -> Sequence[str]:
            here = [
                self._moved(pointer, t, counter, operand.strides[d])
                for pointer, t, operand in zip(pointers, self.types, self.draw.operands)
            ]
            return self._loop(d + 1, here, carried)

        length = self._number(dims[d])
        innermost = d == len(dims) - 1
        block = str(costs.POLL_DRAWS) if innermost else ""
        types = () if self.stream is None else self.stream.types
        carried = counted_loop(self.w, ("0", length, 1), types, carried, turn, block)
        if innermost and d:
            self._count(length)
        return carried

    def _count(self, length: str) -> None:
        """Emit the sum of the lengths of rows, with a poll for signals when they are many."""
        w = self.w
        done = w(f"add i64 {w(f'load i64, ptr {self.done}')}, {length}")
        w.line(f"store i64 {done}, ptr {self.done}")
        ask, go = w.name("ask"), w.name("go")
        rarely(w, w(f"icmp uge i64 {done}, {costs.POLL_DRAWS}"), ask, go)
        w.line(f"store i64 0, ptr {self.done}")
        pause(w, go)
        w.label(go)

    def _element(self, pointers: Sequence[str], carried: Sequence[str]) -> Sequence[str]:
        w, (t, *types) = self.w, self.types
        target, *sources = pointers
        given = [
            (kind.text, self.fixed[k] if k in self.fixed else self._load(source, kind))
            for k, (source, kind) in enumerate(zip(sources, types, strict=True), 1)
        ]
        if self.stream is not None:
            carried, x = self.stream.number(carried, [value for _, value in given])
        else:
            given = [("ptr", self.state), *given]
            if self.scratch:
                given.append(("ptr", self.scratch))
            x = w.extern(f"phintys.random.{self.draw.name}", t.text, given)
        w.line(f"store {t.text} {x}, ptr {target}, align {t.bytes}")
        return carried

    def _load(self, source: str, kind: Type) -> str:
        return self.w(f"load {kind.text}, ptr {source}, align {kind.bytes}")

    def _zeros(self, count: int) -> str:
        """Emit bytes on the stack, which are 0; their address, "" if there are none."""
        if count == 0:
            return ""
        place = self.w.stack(f"[{count // 8} x i64]")
        self.w.line(f"store [{count // 8} x i64] zeroinitializer, ptr {place}")
        return place

    def _moved(self, pointer: str, t: Type, count: str, stride: Dim) -> str:
        """Emit the address ``count`` times a stride after a pointer."""
        if stride.value == 0:
            return pointer
        elements = self.w(f"mul i64 {count}, {self._number(stride)}")
        return self.w(f"getelementptr {t.text}, ptr {pointer}, i64 {elements}")

    def _number(self, dim: Dim) -> str:
        """A length or stride: a literal if it is 1, else an argument."""
        return "1" if dim.value == 1 else self.arguments.dim(dim)
