"""`External` steps: a loop over the batch that calls a routine for each item, or group of items."""

from __future__ import annotations

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.types import SCALARS
from phintys.backends.llvm.ir.writer import Writer
from phintys.backends.llvm.routine.blas import Batch, element
from phintys.backends.llvm.routine.body import Body
from phintys.backends.llvm.runtime import routines
from phintys.lowering.program import External, Operand


def emit(body: Body, step: External) -> None:
    """Emit the step."""
    out, lengths = body.out, body.lengths
    batch = [lengths(d) for d in step.batch]
    strides = [[lengths(s) for s in operand.strides] for operand in step.operands]
    places = [element(out, o, lengths, body.addresses, _type(o)) for o in step.operands]
    arguments = [f"i64 {lengths(d)}" for d in step.integers]
    work = lengths(step.work)
    if step.routine.grouped:
        (count,), size = batch, _group_size(out, work)
        ended = out.value(f"add i64 {count}, {out.value(f'sub i64 {size}, 1')}")
        batch = [out.value(f"udiv i64 {ended}, {size}")]
        strides = [[out.value(f"mul i64 {s}, {size}") for s in given] for given in strides]
        work = out.value(f"mul i64 {work}, {size}")
        loops = Batch(out, batch)
        left = out.value(f"sub i64 {count}, {out.value(f'mul i64 {loops.values[0]}, {size}')}")
        arguments.insert(0, f"i64 {_least(out, left, size)}")
    else:
        loops = Batch(out, batch)
    for operand, place, stride in zip(step.operands, places, strides):
        arguments.append(f"ptr {loops.advance(place, stride, _type(operand))}")
    name = f'@"{routines.symbol(step.routine, step.dtype)}"'
    body.succeed(out.value(f"call i64 {name}({', '.join(arguments)})"), step)
    loops.close(work)
    body.frame.declares.add(f"declare i64 {name}({routines.signature(step.routine)})")


def _group_size(out: Writer, work: str) -> str:
    """Emit the number of items of a group, from the operations for one."""
    size = out.value(f"udiv i64 {costs.POLL_PRODUCT}, {out.value(f'add i64 {work}, 1')}")
    return _least(out, out.value(f"add i64 {size}, 1"), str(costs.GROUP))


def _least(out: Writer, x: str, y: str) -> str:
    return out.value(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")


def _type(operand: Operand) -> str:
    """The type in IR of the elements of an operand."""
    return SCALARS[str(operand.slot.dtype)]
