"""`Branch` steps, and what they share with loops: the steps of inner Programs, inlined.

An inner Program has its own slots.  Its inputs are bound to values of the outer one, its outputs of
kind ``output`` to memory of the outer one, so results need no copy.  Memory and references that an
inner Program allocates while it runs are released at the end of each run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.backends.llvm.routine.body import Body, Place
from phintys.dims import product
from phintys.lowering.program import Branch, Slot, Step

# ---------------------------------------------------------------------------- Branch


def emit_branch(body: Body, step: Branch) -> None:
    """Emit the run of one of two Programs."""
    out = body.out
    value = out.load("i8", body.addresses[step.condition.number])
    condition = out.value(f"icmp ne i8 {value}, 0")
    inputs = [whole(body, slot) for slot in step.inputs]
    outputs = [_result(body, slot) for slot in step.outputs]
    yes, no, end = out.name("then"), out.name("else"), out.name("end")
    out.branch(condition, yes, no)
    for place, label in enumerate((yes, no)):
        out.label(label)
        run(prepare(body, step, place, [p.lengths for p in inputs]), inputs, outputs)
        out.line(f"br label %{end}")
    out.label(end)
    for slot, place in zip(step.outputs, outputs):
        if place.owned is not None:
            body.adopt(slot, place.owned)


def whole(body: Body, slot: Slot) -> Place:
    """The location of a whole slot of the outer Program."""
    lengths = tuple(body.lengths(d) for d in slot.shape)
    number = slot.number
    return Place(body.addresses.get(number), lengths, body.objects.get(number))


def _result(body: Body, slot: Slot) -> Place:
    """The location for an output: memory, or an index in ``%owned`` for an object from Python."""
    if slot.kind in ("python", "object"):
        return Place(owned=body.frame.reserve())
    return whole(body, slot)


def prepare(body: Body, step: Step, place: int, lengths: Sequence[tuple[str, ...]]) -> Body:
    """The body of an inner Program whose inputs have these lengths, and its constants."""
    inner = body.inner(step, place)
    for slot, known in zip(inner.program.inputs, lengths, strict=True):
        inner.bind(slot, Place(lengths=known))
    inner.constants()
    return inner


def run(inner: Body, inputs: Sequence[Place], outputs: Sequence[Place | None]) -> None:
    """Emit the steps of an inner Program, and the release of all that it allocates."""
    frame, program = inner.frame, inner.program
    owned, works = frame.owned, frame.works
    for slot, place in zip(program.inputs, inputs, strict=True):
        inner.bind(slot, place)
    targets = [(s, p) for s, p in zip(program.outputs, outputs, strict=True) if p is not None]
    inner.targets = {s.number: p for s, p in targets if s.kind == "output" and p.address}
    inner.run()
    for slot, place in targets:
        if place.owned is not None:
            inner.pass_on(slot, place.owned)
        elif slot.number not in inner.targets:
            inner.match(slot, place.lengths)
            copy(inner, slot, inner.addresses[slot.number], place.address or "")
    frame.clean(owned, works)


def copy(body: Body, slot: Slot, source: str, target: str) -> None:
    """Emit a copy of the memory of a slot."""
    if source != target:
        size = body.lengths(product(slot.shape) * np.dtype(slot.dtype).itemsize)
        body.out.line(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 0)"
        )
