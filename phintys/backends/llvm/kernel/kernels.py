"""Kernel -> LLVM IR text.

A kernel becomes one function.  Loops follow ``lowering/schedule.py``; the innermost one is
vectorized::

    for i in 0, W, 2W, ... while a whole vector is left:  body
    if points are left: copy them into scratch vectors, body once more, copy stores back

so the body is written once, and the epilogue costs little.  Cheap reductions get an unrolled loop
with several accumulators before that, which hides the latency of additions.

Adjacent loops along which every operand is contiguous are merged first (`collapse`).  Names are
numbered in order of appearance and lengths, strides and constants are arguments, so kernels with
equal bodies have equal text (see `sharing`), and the symbol is a hash of the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.loops import counted_loop
from phintys.backends.llvm.ir.transposed import copy_squares, side
from phintys.backends.llvm.ir.types import KernelWriter, Type
from phintys.backends.llvm.kernel import tiles
from phintys.backends.llvm.kernel.indexed import rows_of, without_indices
from phintys.backends.llvm.kernel.lanes import (
    Argument,
    Arguments,
    Lanes,
    Place,
    is_scattered_sum,
    is_vector_function,
)
from phintys.backends.llvm.kernel.reductions import Reduction
from phintys.backends.llvm.kernel.sharing import General, Special
from phintys.backends.llvm.kernel.short_rows import short_rows
from phintys.backends.llvm.kernel.vector_loop import Innermost, VectorLoop
from phintys.backends.llvm.machine.target import Target, current
from phintys.dims import Dim
from phintys.lowering.collapse import collapse
from phintys.lowering.program import Inst, Kernel
from phintys.lowering.schedule import Phase, schedule

__all__ = ["Argument", "KernelCode", "emit_kernel"]

_MEMORY = frozenset("load store accumulate call wrap".split())


@dataclass(frozen=True, slots=True)
class KernelCode:
    """The IR of one kernel and how to call it.

    ``symbol``
        name of the function, ``phintys.kernel.<hash of its text>``: equal bodies have equal
        symbols, so a module defines each symbol once.
    ``ir``
        text of ``define i64 @symbol(<arguments>)``; it returns 0, or 1 if an index was out of
        range or Python has set an exception.  Parameters are direct, in the order and with the
        types of ``arguments``.
    ``declares``
        texts of ``declare`` lines that the module needs (LLVM intrinsics, vector functions,
        external symbols); `runtime.symbols.resolver` finds them.
    ``can_fail``
        whether it may return 1.
    """

    symbol: str
    ir: str
    arguments: tuple[Argument, ...]
    declares: frozenset[str]
    can_fail: bool = False

    @property
    def is_straight(self) -> bool:
        """Whether it is short, and has no loops or branches."""
        return "  br " not in self.ir and self.ir.count("\n") <= costs.INLINED_LINES


def emit_kernel(kernel: Kernel, long: bool = False, ahead: int = 0) -> KernelCode:
    """Emit the function of a kernel for the target of the settings.

    ``long``: its rows are long whenever it has any points, so no code for short rows is needed.
    ``ahead``: with each point of its loop, it reads so many bytes ahead (`Arguments.ahead`).
    """
    special = Special(collapse(kernel))
    code = _emit(special.general, long, ahead, current())
    return replace(code, arguments=tuple([special.argument(a) for a in code.arguments]))


@lru_cache(maxsize=256)
def _emit(general: General, long: bool, ahead: int, target: Target) -> KernelCode:
    emitter = _Emitter(general.kernel(), long, target)
    emitter.lanes.ahead = ahead
    emitter.nest(0)
    return emitter.finish()


# -------------------------------------------------------------------------------- emission


class _Emitter:
    def __init__(self, kernel: Kernel, long: bool, target: Target) -> None:
        turned = tiles.crosswise(kernel) if tiles.is_tiled(kernel) else []
        self.turned = {number: kernel.operands[number].strides[-1] for number in turned}
        for number in turned:
            kernel = tiles.turned(kernel, number)
        self.w = KernelWriter(target)
        self.arguments = Arguments()
        self.schedule = schedule(kernel)  # before indices are removed: uses come after them
        short = None if long else short_rows(kernel, self.schedule, self.arguments, target)
        self.short = short
        self.rows = rows_of(kernel)
        self.kernel = without_indices(kernel, self.rows)
        self.lanes = Lanes(self.kernel, self.w, self.arguments)
        pointers = [self.lanes.base(number) for number in range(len(kernel.operands))]
        self.place = Place(1, pointers, {})

    def finish(self) -> KernelCode:
        w = self.w
        w.line("ret i64 0")
        if self.lanes.can_fail:
            w.label("fail")
            w.line("ret i64 1")
        short = self.short.first(w) if self.short else ""
        parameters = self.arguments.all()
        signature = ", ".join(f"{a.type} {name}" for name, a in parameters)
        name = f"@SYMBOL.rest({signature}, i64 %first)" if short else f"@SYMBOL({signature})"
        text = short + w.text(f"{'internal ' if short else ''}i64 {name} noinline nounwind")
        symbol = "phintys.kernel." + hashlib.sha256(text.encode()).hexdigest()[:20]
        return KernelCode(
            symbol,
            text.replace("SYMBOL", symbol),
            tuple(a for _, a in parameters),
            frozenset(w.declares),
            self.lanes.can_fail or (self.short is not None and self.short.can_fail),
        )

    # ----------------------------------------------------------------- structure of loops

    def nest(self, depth: int) -> None:
        """Emit the code inside ``depth`` outer loops."""
        kernel, outer = self.kernel, self.schedule.outer
        self.lanes.run(self.place, outer[depth])
        if kernel.ragged is not None and depth == len(kernel.dims) - 1:
            self._bounds(*kernel.ragged)
        if depth == kernel.split:
            for phase in self.schedule.phases:
                self._phase(phase)
            return
        if depth == len(kernel.dims) - 2:
            for number, stride in self.turned.items():
                self._turn(number, stride)
        if depth < len(kernel.dims) - 1:
            self._scalar_loop(depth, [], [], lambda flat: self._nested(depth + 1, flat))
        elif outer[depth + 1]:  # else everything has been hoisted
            self._vector_loop(self._innermost(outer[depth + 1], []), [])

    def _bounds(self, first: int, end: int) -> None:
        """Emit the check of the bounds of a ragged loop; pointers are moved to its start.

        The code of the loop then is that of a loop from 0 to the number of iterations.
        """
        w, lanes, values = self.w, self.lanes, self.place.values
        start, stop, good = values[first], values[end], w.name("ok")
        length = self.arguments.length(self.kernel.dims[-1])
        below, above = w(f"icmp slt i64 {start}, 0"), w(f"icmp sgt i64 {stop}, {length}")
        w.branch(w(f"or i1 {below}, {above}"), "fail", good)
        w.label(good)
        lanes.can_fail = True
        some = w(f"icmp slt i64 {start}, {stop}")
        count = w(f"select i1 {some}, i64 {w(f'sub i64 {stop}, {start}')}, i64 0")
        lanes.ragged = (start, count)
        pointers = [
            lanes.advance(number, pointer, start, operand.strides[-1])
            for number, (pointer, operand) in enumerate(
                zip(self.place.pointers, self.kernel.operands)
            )
        ]
        self.place = replace(self.place, pointers=pointers)

    def _turn(self, number: int, stride: Dim) -> None:
        """Emit the transposed copy of an operand's tile to the stack.

        The copy is contiguous along the last loop; ``stride`` is that of the operand itself.
        """
        w, cell = self.w, self.lanes.cell(number)
        step = w(f"mul i64 {self.arguments.dim(stride)}, {cell.bytes}")
        height, width = (self.arguments.length(d) for d in self.kernel.dims[-2:])
        tile = w.stack(f"[{int(height) * int(width)} x {cell.cell}]", 64)
        source, pointers = self.place.pointers[number], list(self.place.pointers)
        row = str(int(width) * cell.bytes)

        def turn(column: str, _: list[str]) -> list[str]:
            near = w.at(source, w(f"mul i64 {column}, {step}"))
            far = w.at(tile, w(f"mul i64 {column}, {cell.bytes}"))
            copy_squares(w, cell.cell, cell.bytes, (near, step), (far, row), height)
            return []

        counted_loop(w, ("0", width, side(w.target, cell.bytes)), [], [], turn)
        pointers[number] = tile
        self.place = replace(self.place, pointers=pointers)

    def _nested(self, depth: int, flat: list[str]) -> list[str]:
        self.nest(depth)
        return flat

    def _phase(self, phase: Phase) -> None:
        self.lanes.run(self.place, phase.levels[0])
        if not phase.has_loop:
            return
        body, outside = self.kernel.body, dict(self.place.values)
        reductions = [self._reduction(body[p].param, body[p].args[0]) for p in phase.reduces]
        inner = self._innermost(phase.levels[-1], reductions)
        count = len(inner.types()) - len(inner.totals)
        flat = self._inner_loops(phase, 0, inner, inner.identities()[:count])
        self.place.values = outside  # values from inner loops do not dominate later code
        states = inner.split(flat + inner.identities()[count:])
        for p, (reduction, _), state in zip(phase.reduces, reductions, states):
            self.place.values[p] = reduction.result(self.w, inner.width, state)

    def _reduction(self, op: str, value: int) -> tuple[Reduction, int]:
        return Reduction(op, self.kernel.body[value].dtype), value

    def _inner_loops(
        self, phase: Phase, level: int, inner: Innermost, flat: list[str]
    ) -> list[str]:
        """Emit inner loop number ``level`` of a phase, with the loops inside."""
        if self.kernel.split + level == len(self.kernel.dims) - 1:
            return self._vector_loop(inner, flat)

        def inside(flat: list[str]) -> list[str]:
            self.lanes.run(self.place, phase.levels[level + 1])
            return self._inner_loops(phase, level + 1, inner, flat)

        return self._scalar_loop(
            self.kernel.split + level, inner.types()[: len(flat)], flat, inside
        )

    def _innermost(
        self, positions: list[int], reductions: list[tuple[Reduction, int]]
    ) -> Innermost:
        body = self.kernel.body
        totals = [p for p in positions if self._is_total(p)]
        reductions = reductions + [
            self._reduction(body[p].param[1], body[p].args[0]) for p in totals
        ]
        positions = [p for p in positions if p not in totals]
        insts = [body[p] for p in positions]
        dtypes = {body[a].dtype for i in insts for a in i.args} | {i.dtype for i in insts}
        dtypes |= {r.dtype for r, _ in reductions}
        packed = all(self.lanes.is_packed(i) or i.op not in _MEMORY for i in insts)
        special = any(map(is_vector_function, insts))
        width = self._width(dtypes, packed, special)
        writes = [i for i in insts if i.op in ("store", "accumulate")]
        scattered = any(self.lanes.operand(i).extra and not is_scattered_sum(i) for i in writes)
        if scattered or any(map(self._is_scattered_pair, insts)):
            width = 1  # a vector would be stored lane by lane, through memory
        cheap = packed and len(insts) <= costs.UNROLLED_BODY and not special
        unroll = costs.UNROLL if cheap and reductions and width > 1 else 1
        return Innermost(positions, reductions, totals, width, unroll)

    def _is_total(self, position: int) -> bool:
        inst = self.kernel.body[position]
        if inst.op != "accumulate" or len(inst.args) > 1:
            return False
        return self.lanes.stride(inst.param[0]).value == 0

    def _is_scattered_pair(self, inst: Inst) -> bool:
        """Whether complex lanes are not contiguous in memory."""
        if inst.operand < 0 or self.lanes.cell(inst.operand).kind != "c":
            return False
        still = inst.op == "load" and not inst.args and self.lanes.stride(inst.operand).value == 0
        return not still and not self.lanes.is_packed(inst)

    def _width(self, dtypes: set[str], packed: bool, special: bool) -> int:
        """The number of lanes: a power of two.  Special functions are faster on two registers."""
        widest = max(Type(d).bytes for d in dtypes)
        most = costs.MOST_LANES if packed else costs.MOST_SINGLE_LANES
        width = self.w.target.lanes(widest, costs.SPECIAL_VECTORS if special else 1, most)
        length = self.kernel.dims[-1].value
        while length is not None and width >= 2 * length > 0:
            width //= 2
        return width

    # ------------------------------------------------------------------------------ loops

    def _scalar_loop(
        self,
        d: int,
        types: Sequence[Type],
        flat: list[str],
        inside: Callable[[list[str]], list[str]],
    ) -> list[str]:
        """Emit the loop over dim ``d``; ``flat`` are its loop-carried accumulators."""
        outside = self.place

        def turn(counter: str, flat: list[str]) -> list[str]:
            self.lanes.counters[d] = counter
            pointers = [
                self.lanes.advance(number, pointer, counter, operand.strides[d])
                for number, (pointer, operand) in enumerate(
                    zip(outside.pointers, self.kernel.operands)
                )
            ]
            self.place = replace(outside, pointers=pointers, values=dict(outside.values))
            return inside(flat)

        first = "%first" if self.short and d == len(self.kernel.dims) - 2 else "0"
        length = self.arguments.length(self.kernel.dims[d])
        block = self.lanes.block(d)
        flat = counted_loop(self.w, (first, length, 1), types, flat, turn, block)
        self.place = outside
        return flat

    def _vector_loop(self, inner: Innermost, flat: list[str]) -> list[str]:
        """Emit the innermost loop; ``flat`` are the accumulators of the loops around it."""
        count = len(flat)
        origin = self._origin() if any(r.positional for r, _ in inner.reductions) else "0"
        loop = VectorLoop(self.lanes, self._at_rows(inner.positions), inner, origin)
        flat = loop.write(flat + inner.identities()[count:])
        finals = list(zip(inner.reductions, inner.split(flat)))[
            len(inner.reductions) - len(inner.totals) :
        ]
        for position, ((reduction, _), state) in zip(inner.totals, finals):
            total = reduction.result(self.w, inner.width, state)
            self.lanes.accumulate_total(self.place, position, total)
        return flat[:count]

    def _at_rows(self, positions: list[int]) -> Place:
        """The place with the pointers of these instructions advanced to the indexed rows."""
        pointers, values = list(self.place.pointers), self.place.values
        used = {self.kernel.body[p].operand for p in positions}
        for number, row in self.rows.items():
            if number in used:
                for index, stride in zip(row.indices, row.strides, strict=True):
                    address = pointers[number]
                    pointers[number] = self.lanes.advance(number, address, values[index], stride)
        return replace(self.place, pointers=pointers)

    def _origin(self) -> str:
        """Emit the flat position, in C order of the inner dims, where the innermost loop starts."""
        position = "0"
        for d in range(self.kernel.split, len(self.kernel.dims)):
            length = self.arguments.length(self.kernel.dims[d])
            position = self.w(f"mul i64 {position}, {length}")
            if d < len(self.kernel.dims) - 1:
                position = self.w(f"add i64 {position}, {self.lanes.counters[d]}")
        return position
