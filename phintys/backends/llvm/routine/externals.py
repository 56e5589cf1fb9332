"""`External` steps: a loop over the batch that calls a routine for each item."""

from __future__ import annotations

from phintys.backends.llvm.ir.types import SCALARS
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
    loops = Batch(out, batch)
    for operand, place, stride in zip(step.operands, places, strides):
        arguments.append(f"ptr {loops.advance(place, stride, _type(operand))}")
    name = f'@"{routines.symbol(step.routine, step.dtype)}"'
    body.succeed(out.value(f"call i64 {name}({', '.join(arguments)})"), step)
    loops.close(work)
    body.frame.declares.add(f"declare i64 {name}({routines.signature(step.routine)})")


def _type(operand: Operand) -> str:
    """The type in IR of the elements of an operand."""
    return SCALARS[str(operand.slot.dtype)]
