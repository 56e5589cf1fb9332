"""Kernels that have the same text.

The text of a kernel does not depend on its slots, on constants in its body, or on lengths and
strides (except small lengths, the strides 0 and 1, and the distances of `neighbours`): these are
arguments.  A `General` kernel has placeholders instead of them.  Kernels with equal general kernels
share one text, which is emitted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.types import Type, scalar_literal
from phintys.backends.llvm.kernel.lanes import Argument
from phintys.backends.llvm.kernel.neighbours import near
from phintys.dims import Dim
from phintys.lowering.program import Inst, Kernel, Operand, Slot

_NUMBERED = ("const", "dim")


class General(NamedTuple):
    """A kernel with placeholders; equal ones have equal text."""

    dims: tuple[Dim, ...]
    split: int
    operands: tuple[Operand, ...]
    body: tuple[Inst, ...]
    ragged: tuple[int, int] | None

    def kernel(self) -> Kernel:
        return Kernel(self.dims, self.split, self.operands, self.body, ragged=self.ragged)


class Special:
    """The values of the placeholders of a general kernel in one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._body = kernel.body
        self._slots: dict[Slot, int] = {}
        self._dims: dict[Dim, int] = {}
        operands = self._operands(kernel.operands)
        self.general = General(
            tuple([self._length(d) for d in kernel.dims]),
            kernel.split,
            operands,
            tuple([self._inst(i) if i.op in _NUMBERED else i for i in kernel.body]),
            kernel.ragged,
        )
        self._slot_list, self._dim_list = list(self._slots), list(self._dims)

    def argument(self, argument: Argument) -> Argument:
        """The argument of this kernel for an argument of the general kernel's function."""
        value = argument.value
        if argument.kind == "slot":
            value = self._slot_list[value.number]
        elif argument.kind == "dim" and value.op == "symbol":
            value = self._dim_list[value.args[0][1]]
        elif argument.kind == "const":
            inst = self._body[value]
            value = scalar_literal(inst.dtype, inst.param)
        return Argument(argument.kind, argument.type, value)

    def _length(self, dim: Dim) -> Dim:
        return dim if dim.value in costs.BAKED_LENGTHS else self._dim(dim)

    def _stride(self, dim: Dim) -> Dim:
        return dim if dim.value in (0, 1) else self._dim(dim)

    def _strides(self, dims: Iterable[Dim]) -> tuple[Dim, ...]:
        return tuple([self._stride(d) for d in dims])

    def _dim(self, dim: Dim) -> Dim:
        return _dim(self._dims.setdefault(dim, len(self._dims)))

    def _operands(self, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        """The general operands; offsets of neighbours are that of the first plus a constant."""
        result = [self._operand(o) for o in operands]
        for group in near(operands, range(len(operands)), costs.MOST_LANES):
            start = result[next(iter(group))].offset
            for number, distance in group.items():
                result[number] = result[number]._replace(offset=start + distance)
        return tuple(result)

    def _operand(self, operand: Operand) -> Operand:
        number = self._slots.setdefault(operand.slot, len(self._slots))
        slot = _slot(number, str(operand.slot.dtype))
        strides, extra = self._strides(operand.strides), self._strides(operand.extra)
        return Operand(slot, strides, self._stride(operand.offset), extra)

    def _inst(self, inst: Inst) -> Inst:
        if inst.op == "dim":
            return Inst("dim", inst.dtype, (), self._dim(inst.param))
        return inst if Type(inst.dtype).kind == "b" else _number(inst.dtype)


@cache
def _dim(number: int) -> Dim:
    return Dim.symbol(("argument", number))


@cache
def _slot(number: int, dtype: str) -> Slot:
    return Slot(number, "temp", dtype, ())


@cache
def _number(dtype: str) -> Inst:
    return Inst("const", dtype, (), 0)
