"""Turns the body of a kernel into loop nests: loop order, kinds of reductions, merged loops.

A `Draft` collects instructions whose operands have one stride per axis of a space.  ``finish`` then

1. orders the loops so that most operands are accessed in memory order;
2. decides how each reduction runs: in a register over the innermost loops (``reduce``), in memory
   (``accumulate`` into a target that an earlier kernel initialises), or both;
3. merges (collapses) adjacent loops where every operand is contiguous across both;
4. stores expensive values that several passes over the inner loops use in scratch buffers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from phintys.dims import ONE, ZERO, Dim, product
from phintys.lowering.clusters import Shape
from phintys.lowering.costs import EXPENSIVE, cost
from phintys.lowering.program import Inst, Kernel, Operand, Slot
from phintys.lowering.reductions import combination, identity
from phintys.lowering.schedule import Phase, Schedule, schedule

#: the instructions that take a complex number apart: the argument of ``complex`` that they give
_PARTS = {"real": 0, "imag": 1}


class SlotMaker(Protocol):
    """Makes slots for scratch buffers (`Layouts`)."""

    def scratch(self, dtype: str, shape: Shape) -> Slot: ...


@dataclass(slots=True)
class _Reduction:
    """A reduction of the instruction ``arg`` over axes of the space into ``target``."""

    kind: str
    dtype: str
    arg: int
    axes: frozenset[int]
    target: Operand


class Draft:
    """The body of a kernel under construction; equal instructions are merged (hash-consing).

    ``shared`` holds instructions of other kernels of the Program, of which equal ones are the same
    objects: kernels that were cut from one long expression have most of them in common.
    """

    def __init__(self, space: Shape, inner: int | None, shared: dict[Inst, Inst] | None = None):
        self.space = space
        self.inner = inner
        self._shared = {} if shared is None else shared
        self.body: list[Inst] = []
        self.operands: list[Operand] = []
        #: whether the order of the loops is fixed: stores may overwrite each other, or the handling
        #: of empty loops relies on it
        self.ordered = False
        self.reductions: list[_Reduction] = []
        self.ragged: tuple[int, int] | None = None  # set by `bound`
        self._axes: list[frozenset[int]] = []
        self._known: dict[tuple[Any, ...], int] = {}
        self._numbers: dict[Operand, int] = {}

    def mark(self) -> tuple[int, ...]:
        """The current state, for `reset`."""
        return tuple(len(part) for part in self._parts())

    def reset(self, mark: tuple[int, ...]) -> None:
        """Undo everything since a mark."""
        for part, length in zip(self._parts(), mark, strict=True):
            while len(part) > length:
                part.popitem() if isinstance(part, dict) else part.pop()

    def _parts(self) -> tuple[list[Any] | dict[Any, Any], ...]:
        lists = (self.body, self.operands, self.reductions, self._axes)
        return (*lists, self._known, self._numbers)

    def axes(self, position: int) -> frozenset[int]:
        """The axes of the space that the value of an instruction varies with."""
        for inst in self.body[len(self._axes) : position + 1]:
            found = frozenset[int]().union(*(self._axes[a] for a in inst.args))
            if inst.op == "index":
                found |= {inst.param}
            elif inst.op == "load":
                strides = self.operands[inst.param].strides
                found |= {axis for axis, stride in enumerate(strides) if stride.value != 0}
            elif inst.op == "reduce" and self.inner is not None:
                # without `inner`, only `finish` emits reductions, and chooses their axes
                found -= frozenset(range(len(self.space) - self.inner, len(self.space)))
            self._axes.append(found)
        return self._axes[position]

    def emit(self, op: str, dtype: str, args: tuple[int, ...] = (), param: Any = None) -> int:
        """The position of an instruction, which is appended unless an equal one exists.

        A part of a complex number that is made of two parts is that part.
        """
        if op in _PARTS:
            whole = self.body[args[0]]
            if whole.op == "complex":
                return whole.args[_PARTS[op]]
        # repr tells 0.0 from -0.0 and 1 from True, which compare equal
        key = (op, dtype, args, repr(param) if op == "const" else param)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.body)
            inst = Inst(op, dtype, args, param)
            self.body.append(inst if op == "const" else self._shared.setdefault(inst, inst))
        return found

    def effect(self, op: str, dtype: str, args: tuple[int, ...], param: Any) -> None:
        """Append an instruction that writes memory; it is never merged with an equal one."""
        inst = Inst(op, dtype, args, param)
        self.body.append(self._shared.setdefault(inst, inst))

    def operand(self, operand: Operand) -> int:
        """The number of an operand, which is added unless an equal one exists."""
        found = self._numbers.get(operand)
        if found is None:
            found = self._numbers[operand] = len(self.operands)
            self.operands.append(operand)
        return found

    def dim(self, dim: Dim) -> int:
        """Emit a length as an int64."""
        if dim.value is not None:
            return self.emit("const", "int64", (), dim.value)
        return self.emit("dim", "int64", (), dim)

    def load(self, operand: Operand, indices: tuple[int, ...] = ()) -> int:
        return self.emit("load", str(operand.slot.dtype), indices, self.operand(operand))

    def store(self, operand: Operand, value: int, indices: tuple[int, ...] = ()) -> None:
        dtype = str(operand.slot.dtype)
        self.effect("store", dtype, (value, *indices), self.operand(operand))

    def accumulate(
        self, operand: Operand, kind: str, value: int, indices: tuple[int, ...] = ()
    ) -> None:
        dtype = str(operand.slot.dtype)
        param = (self.operand(operand), combination(kind, dtype))
        self.effect("accumulate", dtype, (value, *indices), param)

    def along(self, at: int, axis: int) -> int:
        """An int64 instruction made to vary with a loop, so that it is not hoisted out of it."""
        counter = self.emit("index", "int64", (), axis)
        nothing = self.emit("mul", "int64", (counter, self.dim(ZERO)))
        return self.emit("add", "int64", (at, nothing))

    def bound(self, start: int, stop: int) -> None:
        """Let the last loop run from one int64 value to another; see `Kernel`."""
        self.ragged, self.ordered = (start, stop), True

    def reduce(
        self, kind: str, dtype: str, arg: int, axes: frozenset[int], target: Operand
    ) -> None:
        """Record a reduction over axes of the space into a target; `finish` emits it."""
        self.reductions.append(_Reduction(kind, dtype, arg, axes, target))


def finish(draft: Draft, slots: SlotMaker) -> list[Kernel]:
    """The kernels of a draft: those that initialise targets of reductions, then the loop nest."""
    order = loop_order(draft)
    inner = _inner_axes(draft, order)
    fills = [_emit_reduction(draft, r, inner) for r in draft.reductions]
    kernel = _merge_loops(_permuted(_without_unused_pairs(draft), order, len(inner)))
    return [k for k in fills if k is not None] + [_store_reused_values(kernel, slots)]


def _without_unused_pairs(draft: Draft) -> Draft:
    """The draft without complex numbers of which only parts are used."""
    if not any([inst.op == "complex" for inst in draft.body]):
        return draft
    used = {a for inst in draft.body for a in inst.args}
    unused = {k for k, inst in enumerate(draft.body) if inst.op == "complex" and k not in used}
    if not unused:
        return draft
    places: dict[int, int] = {}
    body: list[Inst] = []
    for position, inst in enumerate(draft.body):
        if position not in unused:
            places[position] = len(body)
            body.append(inst._replace(args=tuple([places[a] for a in inst.args])))
    draft.body = body
    if draft.ragged is not None:
        draft.ragged = (places[draft.ragged[0]], places[draft.ragged[1]])
    return draft


# ----------------------------------------------------------------------- loop order


def loop_order(draft: Draft) -> list[int]:
    """The axes of the space from the outermost loop to the innermost."""
    axes = list(range(len(draft.space)))
    if draft.ordered:
        return axes
    operands = [*draft.operands, *(r.target for r in draft.reductions)]
    if draft.inner is None:
        return _sorted_axes(axes, operands)
    middle = len(axes) - draft.inner
    positional = any(i.op == "reduce" and i.param.startswith("arg") for i in draft.body)
    inner = axes[middle:] if positional else _sorted_axes(axes[middle:], operands)
    return _sorted_axes(axes[:middle], operands) + inner


def _sorted_axes(axes: list[int], operands: list[Operand]) -> list[int]:
    """The axes sorted by a majority vote of the operands (insertion sort, stable)."""
    result: list[int] = []
    for axis in axes:
        place = len(result)
        while place and _votes(result[place - 1], axis, operands) < 0:
            place -= 1
        result.insert(place, axis)
    return result


def _votes(outer: int, inner: int, operands: list[Operand]) -> int:
    """The operands whose stride is larger along ``outer`` than along ``inner``, minus the others.

    Operands with a stride of 0 along either axis do not count.
    """
    total = 0
    for operand in operands:
        a, b = _magnitude(operand.strides[outer]), _magnitude(operand.strides[inner])
        if a is not None and b is not None:
            total += (a > b) - (a < b)
    return total


def _magnitude(stride: Dim) -> tuple[int, int] | None:
    """The size of a stride for comparison: number of symbolic factors, constant factor.

    None if the stride is 0.
    """
    if stride.value is not None:
        return (0, abs(stride.value)) if stride.value else None
    if stride.op == "mul":
        first = stride.args[0].value
        return (len(stride.args) - (first is not None), abs(first or 1))
    return (1, 1)


def _inner_axes(draft: Draft, order: list[int]) -> frozenset[int]:
    """The axes that ``reduce`` instructions run over.

    They are innermost; a reduction reduces either all of them in a register, or none.
    """
    if draft.inner is not None:
        return frozenset(range(len(order) - draft.inner, len(order)))
    best = 0
    for reduction in draft.reductions:
        count = 0
        while count < len(order) and order[-1 - count] in reduction.axes:
            count += 1
        if count:
            best = min(best, count) if best else count
    return frozenset(order[len(order) - best :])


def _emit_reduction(draft: Draft, r: _Reduction, inner: frozenset[int]) -> Kernel | None:
    """Emit one reduction; return the kernel that initialises its target if it needs one.

    The reduction is a ``reduce`` over the ``inner`` axes, and an ``accumulate`` over the others.
    """
    value, axes = r.arg, r.axes
    if inner and inner <= axes:
        value = draft.emit("reduce", r.dtype, (value,), r.kind)
        axes = axes - inner
    if not axes:
        draft.store(r.target, value)
        return None
    draft.accumulate(r.target, r.kind, value)
    return fill_kernel(r.target.slot, identity(r.kind, r.dtype).item())


def fill_kernel(slot: Slot, number: Any) -> Kernel:
    """A kernel that fills a slot with a number."""
    size = product(slot.shape)
    dims, strides = ((), ()) if size.value == 1 else ((size,), (ONE,))
    body = (Inst("const", str(slot.dtype), (), number), Inst("store", str(slot.dtype), (0,), 0))
    return Kernel(dims, len(dims), (Operand(slot, strides, ZERO),), body)


# ------------------------------------------------------------------ permute and merge


def _permuted(draft: Draft, order: list[int], inner: int) -> Kernel:
    """The kernel of a draft with its loops in the given order."""
    body, operands = tuple(draft.body), tuple(draft.operands)
    if order != sorted(order):
        place = {axis: d for d, axis in enumerate(order)}
        body = tuple(i._replace(param=place[i.param]) if i.op == "index" else i for i in body)
        operands = tuple(o._replace(strides=tuple(o.strides[a] for a in order)) for o in operands)
    dims = tuple(draft.space[a] for a in order)
    kernel = Kernel(dims, len(order), operands, body, ragged=draft.ragged)
    if kernel.is_reducing:
        kernel.split -= inner
    return kernel


def _merge_loops(kernel: Kernel) -> Kernel:
    """Collapse adjacent loops into one where every operand has strides of a single loop."""
    if len(kernel.dims) < 2:
        return kernel
    dims, split = list(kernel.dims), kernel.split
    strides = [list(o.strides) for o in kernel.operands]
    counted = {i.param for i in kernel.body if i.op == "index"}
    if kernel.ragged is not None:
        counted.add(len(dims) - 1)
    moved = {d: d for d in range(len(dims))}
    for d in range(len(dims) - 2, -1, -1):
        separate = d + 1 == split or d in counted or d + 1 in counted
        if separate or any(s[d] is not s[d + 1] * dims[d + 1] for s in strides):
            continue
        dims[d : d + 2] = [dims[d] * dims[d + 1]]
        for s in strides:
            del s[d]
        split -= d + 1 < split
        counted = {c - (c > d) for c in counted}
        moved = {k: v - (v > d) for k, v in moved.items()}
    body = tuple(i._replace(param=moved[i.param]) if i.op == "index" else i for i in kernel.body)
    operands = tuple(o._replace(strides=tuple(s)) for o, s in zip(kernel.operands, strides))
    return Kernel(tuple(dims), split, operands, body, ragged=kernel.ragged)


# --------------------------------------------------------------------- scratch buffers


def _store_reused_values(kernel: Kernel, slots: SlotMaker) -> Kernel:
    """A kernel that stores expensive values which several passes over the inner loops use.

    The first pass that computes such a value stores it in a scratch buffer; later passes load it.
    """
    if not kernel.is_reducing or kernel.ragged is not None:
        return kernel
    plan = schedule(kernel)
    first: dict[int, int] = {}
    repeated: set[int] = set()
    for number, phase in enumerate(plan.phases):
        for position in (p for level in phase.levels[1:] for p in level):
            if position in first and cost(kernel.body[position]) >= EXPENSIVE:
                repeated.add(position)
            first.setdefault(position, number)
    if not repeated:
        return kernel
    return _ScratchRewriter(kernel, plan, first, repeated, slots).rewrite()


class _ScratchRewriter:
    """Rewrites the body of a kernel phase by phase, with scratch buffers.

    ``first`` maps an inner instruction to the number of the first phase that runs it; ``repeated``
    holds the expensive ones that several phases run.
    """

    def __init__(
        self,
        kernel: Kernel,
        plan: Schedule,
        first: dict[int, int],
        repeated: set[int],
        slots: SlotMaker,
    ):
        self.kernel, self.plan, self.first, self.slots = kernel, plan, first, slots
        self.operands = list(kernel.operands)
        self.body: list[Inst] = []
        self.needs = [self.closure(p, n, repeated) for n, p in enumerate(plan.phases)]
        self.stored = {
            q for n, needs in enumerate(self.needs) for q in needs & repeated if first[q] < n
        }
        self.buffers: dict[int, int] = {}  # position -> operand of its scratch buffer
        self.new_positions: dict[int, int] = {}  # old position -> new, outside of inner loops

    def closure(self, phase: Phase, number: int, repeated: set[int]) -> set[int]:
        """The inner instructions that a phase needs, if it loads what earlier phases stored."""
        inside = {p for level in phase.levels[1:] for p in level}
        body = self.kernel.body
        stack = [p for p in inside if body[p].op in ("store", "accumulate")]
        stack += [body[p].args[0] for p in phase.reduces]
        needs: set[int] = set()
        while stack:
            position = stack.pop()
            if position in needs or position not in inside:
                continue
            needs.add(position)
            if position not in repeated or self.first[position] == number:
                stack.extend(body[position].args)
        return needs

    def rewrite(self) -> Kernel:
        self.emit_all(sorted(p for level in self.plan.outer for p in level), self.new_positions)
        for number, phase in enumerate(self.plan.phases):
            self.emit_all(sorted(phase.levels[0]), self.new_positions)
            local = dict(self.new_positions)
            for position in sorted(self.needs[number]):
                if position in self.stored and self.first[position] < number:
                    operand = self.buffers[position]
                    dtype = self.kernel.body[position].dtype
                    local[position] = self.append(Inst("load", dtype, (), operand))
                    continue
                self.emit_all((position,), local)
                if position in self.stored:
                    self.store(position, local[position])
            for position in phase.reduces:
                inst = self.kernel.body[position]
                args = (local[inst.args[0]],)
                self.new_positions[position] = self.append(inst._replace(args=args))
        return Kernel(self.kernel.dims, self.kernel.split, tuple(self.operands), tuple(self.body))

    def append(self, inst: Inst) -> int:
        self.body.append(inst)
        return len(self.body) - 1

    def emit_all(self, positions: Iterable[int], places: dict[int, int]) -> None:
        for position in positions:
            inst = self.kernel.body[position]
            args = tuple(places[a] for a in inst.args)
            places[position] = self.append(inst._replace(args=args))

    def store(self, position: int, value: int) -> None:
        """Store a value in a scratch buffer with the shape of the inner loops."""
        inst, split = self.kernel.body[position], self.kernel.split
        shape = self.kernel.dims[split:]
        strides = [ONE]
        for d in reversed(shape[1:]):
            strides.append(strides[-1] * d)
        slot = self.slots.scratch(inst.dtype, shape)
        operand = Operand(slot, (ZERO,) * split + tuple(reversed(strides)), ZERO)
        self.buffers[position] = len(self.operands)
        self.operands.append(operand)
        self.append(Inst("store", inst.dtype, (value,), self.buffers[position]))
