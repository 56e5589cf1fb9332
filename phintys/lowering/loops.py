"""From a body over a space to a loop nest: order of loops, kind of reductions, merged loops.

A `Draft` collects instructions whose operands have one stride per axis of a space.  ``finish`` then

1. orders the loops so that most operands are read in memory order;
2. decides how each reduction runs: over the innermost loops (a ``reduce``), in memory
   (``accumulate`` into a target that a kernel before fills), or both;
3. merges loops that no operand can tell apart;
4. keeps expensive values of a row that several passes need in a scratch row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from phintys.dims import ONE, ZERO, Dim, product
from phintys.lowering.costs import EXPENSIVE, cost
from phintys.lowering.program import Inst, Kernel, Operand, Slot
from phintys.lowering.reductions import identity
from phintys.lowering.schedule import Phase, Schedule, schedule
from phintys.lowering.values import Shape


class SlotMaker(Protocol):
    """What makes slots for scratch rows."""

    def scratch(self, dtype: str, shape: Shape) -> Slot: ...


@dataclass(slots=True)
class _Reduction:
    kind: str
    dtype: str
    arg: int
    axes: frozenset[int]
    target: Operand


class Draft:
    """The body of a kernel being written.  Equal instructions are written once."""

    def __init__(self, space: Shape, inner: int | None):
        self.space = space
        self.inner = inner
        self.body: list[Inst] = []
        self.operands: list[Operand] = []
        #: whether the order of the loops counts: stores may overwrite each other, or what is done
        #: about loops without turns relies on it
        self.ordered = False
        self.reductions: list[_Reduction] = []
        self._axes: list[frozenset[int]] = []
        self._known: dict[tuple[Any, ...], int] = {}
        self._numbers: dict[Operand, int] = {}

    def mark(self) -> tuple[int, ...]:
        """The present state, for `reset`."""
        return tuple(len(part) for part in self._parts())

    def reset(self, mark: tuple[int, ...]) -> None:
        """Forget what was written since a mark."""
        for part, length in zip(self._parts(), mark, strict=True):
            while len(part) > length:
                part.popitem() if isinstance(part, dict) else part.pop()

    def _parts(self) -> tuple[list[Any] | dict[Any, Any], ...]:
        lists = (self.body, self.operands, self.reductions, self._axes)
        return (*lists, self._known, self._numbers)

    def axes(self, position: int) -> frozenset[int]:
        """The axes of the space that the value of an instruction varies along."""
        for inst in self.body[len(self._axes) : position + 1]:
            found = frozenset[int]().union(*(self._axes[a] for a in inst.args))
            if inst.op == "index":
                found |= {inst.param}
            elif inst.op == "load":
                strides = self.operands[inst.param].strides
                found |= {axis for axis, stride in enumerate(strides) if stride.value != 0}
            self._axes.append(found)
        return self._axes[position]

    def emit(self, op: str, dtype: str, args: tuple[int, ...] = (), param: Any = None) -> int:
        """The position of an instruction, appended unless it is there."""
        # repr tells 0.0 from -0.0 and 1 from True, which compare equal
        key = (op, dtype, args, repr(param) if op == "const" else param)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.body)
            self.body.append(Inst(op, dtype, args, param))
        return found

    def effect(self, op: str, dtype: str, args: tuple[int, ...], param: Any) -> None:
        """Append an instruction that writes memory; what was loaded from there is not reused."""
        self.body.append(Inst(op, dtype, args, param))

    def operand(self, operand: Operand) -> int:
        """The number of an operand."""
        found = self._numbers.get(operand)
        if found is None:
            found = self._numbers[operand] = len(self.operands)
            self.operands.append(operand)
        return found

    def dim(self, dim: Dim) -> int:
        """A length as int64."""
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
        self.effect("accumulate", dtype, (value, *indices), (self.operand(operand), kind))

    def reduce(
        self, kind: str, dtype: str, arg: int, axes: frozenset[int], target: Operand
    ) -> None:
        """Reduce a value over axes of the space into a target; how is decided by `finish`."""
        self.reductions.append(_Reduction(kind, dtype, arg, axes, target))


def finish(draft: Draft, slots: SlotMaker) -> list[Kernel]:
    """The kernels of a draft: those that fill targets, then the loop nest."""
    order = loop_order(draft)
    inner = _inner_axes(draft, order)
    fills = [_emit_reduction(draft, r, inner) for r in draft.reductions]
    kernel = _merge_loops(_permuted(draft, order, len(inner)))
    return [k for k in fills if k is not None] + [_keep_rows(kernel, slots)]


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
    """Insertion sort by votes of the operands; axes without a majority stay as they are."""
    result: list[int] = []
    for axis in axes:
        place = len(result)
        while place and _votes(result[place - 1], axis, operands) < 0:
            place -= 1
        result.insert(place, axis)
    return result


def _votes(outer: int, inner: int, operands: list[Operand]) -> int:
    """How many operands more have the larger stride along ``outer`` than along ``inner``."""
    total = 0
    for operand in operands:
        a, b = _magnitude(operand.strides[outer]), _magnitude(operand.strides[inner])
        if a is not None and b is not None:
            total += (a > b) - (a < b)
    return total


def _magnitude(stride: Dim) -> tuple[int, int] | None:
    """A rough size of a stride: number of symbolic factors, then the constant one."""
    if stride.value is not None:
        return (0, abs(stride.value)) if stride.value else None
    if stride.op == "mul":
        first = stride.args[0].value
        return (len(stride.args) - (first is not None), abs(first or 1))
    return (1, 1)


def _inner_axes(draft: Draft, order: list[int]) -> frozenset[int]:
    """The axes that ``reduce`` instructions run over: innermost, and part of each reduction or not
    at all."""
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
    """Append one reduction; the kernel that fills its target before, if it needs one."""
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
    body, operands = tuple(draft.body), tuple(draft.operands)
    if order != sorted(order):
        place = {axis: d for d, axis in enumerate(order)}
        body = tuple(i._replace(param=place[i.param]) if i.op == "index" else i for i in body)
        operands = tuple(o._replace(strides=tuple(o.strides[a] for a in order)) for o in operands)
    kernel = Kernel(tuple(draft.space[a] for a in order), len(order), operands, body)
    if kernel.is_reducing:
        kernel.split -= inner
    return kernel


def _merge_loops(kernel: Kernel) -> Kernel:
    """Merge neighbouring loops along which every operand moves as along one."""
    if len(kernel.dims) < 2:
        return kernel
    dims, split = list(kernel.dims), kernel.split
    strides = [list(o.strides) for o in kernel.operands]
    counted = {i.param for i in kernel.body if i.op == "index"}
    moved = {d: d for d in range(len(dims))}
    for d in range(len(dims) - 2, -1, -1):
        apart = d + 1 == split or d in counted or d + 1 in counted
        if apart or any(_distinct(s[d], s[d + 1], dims[d + 1]) for s in strides):
            continue
        dims[d : d + 2] = [dims[d] * dims[d + 1]]
        for s in strides:
            del s[d]
        split -= d + 1 < split
        counted = {c - (c > d) for c in counted}
        moved = {k: v - (v > d) for k, v in moved.items()}
    body = tuple(i._replace(param=moved[i.param]) if i.op == "index" else i for i in kernel.body)
    operands = tuple(o._replace(strides=tuple(s)) for o, s in zip(kernel.operands, strides))
    return Kernel(tuple(dims), split, operands, body)


def _distinct(outer: Dim, inner: Dim, length: Dim) -> bool:
    return outer is not inner * length


# ------------------------------------------------------------------------ scratch rows


def _keep_rows(kernel: Kernel, slots: SlotMaker) -> Kernel:
    """Store expensive values that a later pass over the row needs again."""
    if not kernel.is_reducing:
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
    return _RowKeeper(kernel, plan, first, repeated, slots).rewrite()


class _RowKeeper:
    """Rewrites the body of a kernel phase by phase, with scratch rows."""

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
        self.kept = {
            q for n, needs in enumerate(self.needs) for q in needs & repeated if first[q] < n
        }
        self.rows: dict[int, int] = {}  # position -> operand of its scratch row
        self.places: dict[int, int] = {}  # old position -> new, outside inner loops

    def closure(self, phase: Phase, number: int, repeated: set[int]) -> set[int]:
        """The inner instructions a phase needs if repeated values are loaded, those included."""
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
        self.emit_all(sorted(p for level in self.plan.outer for p in level), self.places)
        for number, phase in enumerate(self.plan.phases):
            self.emit_all(sorted(phase.levels[0]), self.places)
            local = dict(self.places)
            for position in sorted(self.needs[number]):
                if position in self.kept and self.first[position] < number:
                    operand = self.rows[position]
                    dtype = self.kernel.body[position].dtype
                    local[position] = self.append(Inst("load", dtype, (), operand))
                    continue
                self.emit_all((position,), local)
                if position in self.kept:
                    self.keep(position, local[position])
            for position in phase.reduces:
                inst = self.kernel.body[position]
                args = (local[inst.args[0]],)
                self.places[position] = self.append(inst._replace(args=args))
        return Kernel(self.kernel.dims, self.kernel.split, tuple(self.operands), tuple(self.body))

    def append(self, inst: Inst) -> int:
        self.body.append(inst)
        return len(self.body) - 1

    def emit_all(self, positions: Iterable[int], places: dict[int, int]) -> None:
        for position in positions:
            inst = self.kernel.body[position]
            args = tuple(places[a] for a in inst.args)
            places[position] = self.append(inst._replace(args=args))

    def keep(self, position: int, value: int) -> None:
        """Store a value in a scratch row."""
        inst, split = self.kernel.body[position], self.kernel.split
        row = self.kernel.dims[split:]
        strides = [ONE]
        for d in reversed(row[1:]):
            strides.append(strides[-1] * d)
        slot = self.slots.scratch(inst.dtype, row)
        operand = Operand(slot, (ZERO,) * split + tuple(reversed(strides)), ZERO)
        self.rows[position] = len(self.operands)
        self.operands.append(operand)
        self.append(Inst("store", inst.dtype, (value,), self.rows[position]))
