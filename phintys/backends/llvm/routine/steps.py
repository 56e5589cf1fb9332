"""One step as IR, dispatched on its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phintys.backends.llvm.kernel.draws import emit_draw
from phintys.backends.llvm.kernel.rows import by_several_rows
from phintys.backends.llvm.kernel.scans import emit_scan
from phintys.backends.llvm.kernel.tiles import by_tiles
from phintys.backends.llvm.routine import (
    blas,
    block_loop,
    control,
    externals,
    strip_loop,
    threads,
    turns,
)
from phintys.backends.llvm.routine.blocks import Blocks
from phintys.backends.llvm.routine.body import Body, Work
from phintys.backends.llvm.routine.parts import Parts, cut, picoseconds
from phintys.dims import ONE, Dim, product
from phintys.lowering.program import (
    Branch,
    Call,
    Check,
    Copy,
    Draw,
    External,
    Kernel,
    Loop,
    Operand,
    Python,
    Scan,
    Slot,
)
from phintys.lowering.strips import Strips

#: Slots of partial results of a kernel have numbers below 0, at most so many for each step.
_MOST_PARTIAL = 10_000


def emit(body: Body, step: Work) -> None:
    """Emit one step."""
    _STEPS[type(step)](body, step)


def _kernel(body: Body, step: Kernel) -> None:
    parts = _parts(body, step)
    cleared = _cleared(step)
    if parts is None and cleared is not None:
        with body.located([cleared.slot]):
            _clear(body, step, cleared)
    elif parts is None:
        *grouped, rest = by_several_rows(step)
        for part in (*grouped, rest):
            for kernel in by_tiles(part):
                status = body.call_kernel(kernel, body.lengths, part is not rest)
                body.succeed(status, step)
    else:
        with body.located([operand.slot for operand in step.operands]):
            status = threads.emit(body, step, parts, body.frame.threads)
        body.succeed(status, step)


def _cleared(step: Kernel) -> Operand | None:
    """The operand of a kernel that only stores zeros, in adjacent elements; None for others."""
    if [inst.op for inst in step.body] != ["const", "store"] or len(step.operands) != 1:
        return None
    (operand,), (value, _) = step.operands, step.body
    is_zero = not any(np.asarray(value.param, value.dtype).tobytes())
    return operand if is_zero and operand.strides == (ONE,) and not operand.extra else None


def _clear(body: Body, step: Kernel, operand: Operand) -> None:
    """Emit a call of ``memset``, which is as fast as a kernel, and no code to generate."""
    size = np.dtype(operand.slot.dtype).itemsize
    start = body.lengths(operand.offset * size)
    address = body.out.at(body.addresses[operand.slot.number], start)
    count = body.lengths(step.dims[0] * size)
    body.out.line(f"call void @llvm.memset.p0.i64(ptr {address}, i8 0, i64 {count}, i1 0)")


def _parts(body: Body, step: Kernel) -> Parts | None:
    """The parts of a kernel that may run in parallel."""
    if body.frame.threads == 1 or not picoseconds(step):
        return None
    own = {o.slot for o in step.operands if o.slot.kind == "temp" and body.used[o.slot] == 1}
    return cut(step, own, -1 - _MOST_PARTIAL * step.step)


def _copy(body: Body, step: Copy) -> None:
    source, target = (body.addresses[s.number] for s in (step.source, step.target))
    if source != target:
        size = body.lengths(_bytes(step.source))
        body.out.line(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 0)"
        )


def _check(body: Body, step: Check) -> None:
    left, right, overflow = body.lengths.exact(step.left, step.right)
    test = {"==": "eq", ">=": "sge", ">": "sgt"}[step.relation]
    holds = body.out.value(f"icmp {test} i64 {left}, {right}")
    if overflow:
        fits = body.out.value(f"xor i1 {overflow}, true")
        holds = body.out.value(f"and i1 {holds}, {fits}")
    body.fail_unless(holds, step.step)


def _call(body: Body, step: Call) -> None:
    blas.emit_call(body.out, step, body.lengths, body.addresses)
    body.frame.declares.update(blas.declarations(step.dtype))


def _scan(body: Body, step: Scan) -> None:
    body.call(emit_scan(step), body.lengths)


def _draw(body: Body, step: Draw) -> None:
    body.succeed(body.call(emit_draw(step), body.lengths), step)


def _python(body: Body, step: Python) -> None:
    out, frame = body.out, body.frame
    argv = out.stack(f"[{len(step.inputs) + 1} x ptr]")
    copies = []
    for i, slot in enumerate(step.inputs):
        object_ = body.objects.get(slot.number)
        if object_ is None:
            object_, place = _wrapped(body, slot)
            copies.append(place)
        out.store("ptr", object_, argv, 8 * i)
    name = step.name or "a Python step"
    result, place = frame.obtain(
        f"call ptr @phintys_call(ptr {body.word('object', step.function)}, ptr {argv}, "
        f"i64 {len(step.inputs)}, i64 {len(step.outputs)}, ptr {body.word('object', name)})"
    )
    for i, slot in enumerate(step.outputs):
        value = out.value(f"call ptr @PyTuple_GetItem(ptr {result}, i64 {i})")
        body.receive(slot, value, f"output {i} of {name}")
    for done in (*copies, place):
        frame.release(done)


def _wrapped(body: Body, slot: Slot) -> tuple[str, int]:
    """Emit a new array with a copy of a temp, since Python may keep it after the call."""
    dims, size = body.dims_of(slot), body.lengths(_bytes(slot))
    return body.frame.obtain(
        f"call ptr @phintys_copy(i64 {slot.ndim}, ptr {dims}, ptr {body.descr(slot)}, "
        f"ptr {body.addresses[slot.number]}, i64 {size})"
    )


def _bytes(slot: Slot) -> Dim:
    return product(slot.shape) * np.dtype(slot.dtype).itemsize


_STEPS: dict[type, Callable[[Body, Any], None]] = {
    Kernel: _kernel,
    Copy: _copy,
    Check: _check,
    Call: _call,
    Scan: _scan,
    External: externals.emit,
    Draw: _draw,
    Python: _python,
    Branch: control.emit_branch,
    Loop: turns.emit_loop,
    Blocks: block_loop.emit,
    Strips: strip_loop.emit,
}
