"""Emits the kernels of a cluster.

Values are expanded on demand, by index: the instructions of a value at an index use its arguments
at the indices that the value implies.  A view only changes the index; a value in memory becomes a
load whose strides follow from the index.  So permuting, slicing and broadcasting cost nothing, and
a value that is needed at two different indices is computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from phintys.dims import ONE, ZERO, Dim, product
from phintys.lowering.clusters import Cluster
from phintys.lowering.fuse import MAX_INSTRUCTIONS, MAX_OPERANDS, Fusion
from phintys.lowering.loops import Draft, finish
from phintys.lowering.program import Copy, Inst, Operand, Slot, Step
from phintys.lowering.protocols import Affine, IndexLengths, Point
from phintys.lowering.values import Axes, Shape, Value

_ORIGIN: Affine = (ZERO, ())


class Layouts:
    """The slots, offsets and strides of values."""

    def __init__(self, fusion: Fusion):
        self.fusion = fusion
        self.builder = fusion.builder
        self.slots: dict[int, Slot] = {}
        self._strides: dict[Shape, Shape] = {}
        self._bounds: dict[int, tuple[int, int]] = {}
        self.instructions: dict[Inst, Inst] = {}  # see `Draft`

    def slot(self, value: Value) -> Slot:
        """The slot of a value, made on demand.

        A reshaped value is in the slot of its argument, an update that is continued in the slot of
        the next one.
        """
        value = value.owner
        while value.id in self.fusion.continued:
            value = self.fusion.continued[value.id].owner
        found = value.own_slot() or self.slots.get(value.id) or self.builder.pinned.get(value.id)
        if found is None:
            found = self.scratch(str(value.dtype), self.fusion.shape(value))
        self.slots[value.id] = found
        return found

    def scratch(self, dtype: str, shape: Shape) -> Slot:
        """A new temporary slot."""
        slot = Slot(len(self.builder.slots), "temp", dtype, shape)
        self.builder.slots.append(slot)
        return slot

    def bounds(self, value: Value) -> tuple[int, int] | None:
        """The least and the largest element of a constant array of integers, else None."""
        while value.converted is not None:
            value = value.converted
        slot = value.own_slot()
        if slot is None or slot.kind != "constant":
            return None
        data = np.asarray(slot.data)
        if data.dtype.kind not in "iu" or data.size == 0:
            return None
        found = self._bounds.get(value.id)
        if found is None:
            found = self._bounds[value.id] = int(data.min()), int(data.max())
        return found

    def strides(self, shape: Shape) -> Shape:
        """The strides, in elements, of a C-contiguous array."""
        found = self._strides.get(shape)
        if found is None:
            reverse = [ONE]
            for d in reversed(shape[1:]):
                reverse.append(reverse[-1] * d)
            found = self._strides[shape] = tuple(reversed(reverse)) if shape else ()
        return found


class KernelWriter:
    """Emits the instructions of one kernel into a `Draft`."""

    def __init__(self, layouts: Layouts, cluster: Cluster, written: set[int]):
        self.layouts = layouts
        self.fusion = layouts.fusion
        self.find = layouts.builder.canonical
        self.cluster = cluster
        self.written = written  # ids of values that an earlier kernel of this cluster has stored
        self.draft = Draft(cluster.space, cluster.inner, layouts.instructions)
        self.memo: dict[tuple[int, Point], int] = {}

    # ----- size
    def is_too_large(self) -> bool:
        """Whether the kernel has too many instructions or operands; it is split then."""
        draft = self.draft
        return len(draft.body) > 2 * MAX_INSTRUCTIONS or len(draft.operands) > MAX_OPERANDS

    def mark(self) -> tuple[int, ...]:
        """The current state, for `reset`."""
        return (len(self.memo), *self.draft.mark())

    def reset(self, mark: tuple[int, ...]) -> None:
        """Undo everything since a mark."""
        while len(self.memo) > mark[0]:
            self.memo.popitem()
        self.draft.reset(mark[1:])

    # ----- indices
    def natural(self, axes: Axes) -> Point:
        """The index of a value whose axes are these axes of the space."""
        return tuple(_ORIGIN if a is None else (ZERO, ((a, ONE),)) for a in axes)

    def index_of_argument(self, arg: Value, index: Point) -> Point:
        """The index of an argument of an elementwise value: 0 along axes of length 1."""
        ones = self.fusion.ones(arg)
        if not ones:
            return index
        return tuple([_ORIGIN if k in ones else i for k, i in enumerate(index)])

    def moved(self, index: Point, axes: Axes, starts: Shape, steps: Shape) -> Point:
        """The index into an array of an element of one of its regions; see `View`."""
        result: list[Affine] = []
        for axis, start, step in zip(axes, starts, steps):
            start, step = self.find(start), self.find(step)
            if axis is None:
                result.append((start, ()))
                continue
            offset, terms = index[axis]
            result.append((start + step * offset, tuple((a, step * c) for a, c in terms)))
        return tuple(result)

    # ----- expansion
    def value(self, value: Value, index: Point) -> int:
        """The position of the instruction that computes a value at an index; emits what it needs.

        Iterative, since expressions may be deep.
        """
        memo = self.memo
        stack: list[tuple[Value, Point, Sequence[tuple[Value, Point]] | None]]
        stack = [(value, index, None)]
        while stack:
            v, at, needed = stack.pop()
            if (v.id, at) in memo:
                continue
            if needed is None:
                if self.is_loaded(v):
                    memo[v.id, at] = self.load(v, at)
                    continue
                needed = v.uses(self, at)
                missing = [n for n in needed if (n[0].id, n[1]) not in memo]
                if missing:
                    stack.append((v, at, needed))
                    stack.extend([(*n, None) for n in missing])
                    continue
            memo[v.id, at] = v.emit(self, at, [memo[n.id, i] for n, i in needed])
        return memo[value.id, index]

    def is_loaded(self, value: Value) -> bool:
        """Whether this kernel loads a value: it was stored before the kernel runs."""
        if value.id not in self.fusion.stored:
            return value.is_array
        place = self.fusion.places.get(value.id)
        if place is None or value.id in self.written:
            return True
        return place.cluster is not self.cluster and place.cluster.stage < self.cluster.stage

    def load(self, value: Value, index: Point) -> int:
        """Emit the load of an element of a value that is in memory."""
        slot, offset, strides = value.address(self.layouts)
        return self.draft.load(self.operand(slot, offset, strides, index))

    def affine(self, position: Affine) -> int:
        """Emit a position along an axis as an int64."""
        offset, terms = position
        draft = self.draft
        total = None if offset.value == 0 and terms else draft.dim(offset)
        for axis, coefficient in terms:
            term = draft.emit("index", "int64", (), axis)
            if coefficient.value != 1:
                term = draft.emit("mul", "int64", (term, draft.dim(coefficient)))
            total = term if total is None else draft.emit("add", "int64", (total, term))
        assert total is not None
        return total

    def positions(
        self,
        array: Value,
        axes: Sequence[int],
        indices: Sequence[Value],
        at: Sequence[int],
        lengths: IndexLengths,
    ) -> tuple[int, ...]:
        """Emit positions along axes of an array, which fail if they are out of range.

        ``indices`` have been emitted at the positions ``at``.
        """
        shape = self.fusion.shape(array)
        found = zip(indices, at, axes)
        return tuple([self.position(i, p, shape[a], lengths) for i, p, a in found])

    def position(self, value: Value, at: int, length: Dim, lengths: IndexLengths) -> int:
        """Emit a Python index as a non-negative one; the kernel fails if it is out of range.

        ``at`` is the instruction that computes ``value``.  If that is a constant array without
        negative numbers, only its largest element is checked, outside of the loops.
        """
        bounds = self.layouts.bounds(value)
        if bounds is None or bounds[0] < 0:
            return self.wrap(at, length, lengths)
        if length.value is None or length.value <= bounds[1]:
            self.wrap(self.draft.emit("const", "int64", (), bounds[1]), length, lengths)
        return at

    def wrap(self, at: int, length: Dim, lengths: IndexLengths) -> int:
        """Emit a ``wrap`` that does not fail if the index array is empty.

        It is hoisted out of the loops along which the index does not vary, so it would also run if
        these loops have no iterations.
        """
        draft = self.draft
        outside = self.lengths_inside(draft.axes(at), lengths)
        size = draft.dim(length)
        if outside:
            iterations = product(d for d, _ in outside)
            some = draft.emit("gt", "bool", (draft.dim(iterations), draft.dim(ZERO)))
            at = draft.emit("select", "int64", (some, at, draft.dim(ZERO)))
            size = draft.emit("select", "int64", (some, size, draft.dim(ONE)))
        return draft.emit("wrap", "int64", (at, size))

    def pinned_inside(self, at: tuple[int, ...], lengths: IndexLengths) -> tuple[int, ...]:
        """The indices of a load; the first depends on every loop over them that may be empty.

        Without this, the load could be hoisted out of a loop without iterations, and read from an
        empty array.
        """
        axes = frozenset[int]().union(*map(self.draft.axes, at))
        inside = [a for _, own in self.lengths_inside(axes, lengths) for a in own]
        if not inside:
            return at
        return (self.draft.along(at[0], max(inside)), *at[1:])

    def lengths_inside(self, axes: frozenset[int], lengths: IndexLengths) -> IndexLengths:
        """The lengths that may be 0 of loops inside the loops along ``axes``.

        The order of the loops is then fixed (`Draft.ordered`), since the result depends on it.
        """
        maybe_empty = [(d, own) for d, own in lengths if not d.value]
        if any(not own <= axes for _, own in maybe_empty):
            self.draft.ordered = True
        last = max(axes, default=-1)
        return [(d, own) for d, own in maybe_empty if not any(a <= last for a in own)]

    def index_lengths(self, shape: Shape, index: Point, count: int) -> IndexLengths:
        """The first ``count`` lengths of a shape, each with the axes of the space it varies along.

        Lengths that are the constant 1 are left out.
        """
        axes = [frozenset(axis for axis, _ in terms) for _, terms in index[:count]]
        return [(d, a) for d, a in zip(shape, axes) if d.value != 1]

    def operand(self, slot: Slot, offset: Dim, strides: Shape, index: Point) -> Operand:
        """The operand that addresses an array at an index."""
        own = [ZERO] * len(self.cluster.space)
        for stride, (start, terms) in zip(strides, index, strict=True):
            if start.value != 0:
                offset = offset + start * stride
            for axis, coefficient in terms:
                step = stride if coefficient.value == 1 else coefficient * stride
                own[axis] = step if own[axis].value == 0 else own[axis] + step
        return Operand(slot, tuple(own), offset)

    # ----- roots
    def target(self, value: Value, axes: Axes) -> Operand:
        """The operand that a value is stored through."""
        slot, offset, strides = value.address(self.layouts)
        return self.operand(slot, offset, strides, self.natural(axes))

    def root(self, value: Value) -> None:
        """Emit the computation and the store of a value."""
        value.write(self, self.fusion.places[value.id])


class Nest(NamedTuple):
    """A kernel preceded by the steps that initialise its targets.

    ``value`` is the first value that it stores; ``checks`` numbers the checks that must run before.
    """

    steps: list[Step]
    value: Value
    checks: frozenset[int]


def write_cluster(layouts: Layouts, cluster: Cluster) -> list[Nest]:
    """The kernels of a cluster: one, or several if it is too large for one.

    A later kernel loads the values that an earlier one has stored.
    """
    result: list[Nest] = []
    written: set[int] = set()
    writer, roots = KernelWriter(layouts, cluster, written), list[Value]()
    for value in cluster.roots:
        mark = writer.mark()
        writer.root(value)
        if roots and writer.is_too_large() and value.starts_kernel:
            writer.reset(mark)
            for shared in _shared(writer, value):
                layouts.fusion.stored.add(shared.id)
                writer.root(shared)
                roots.append(shared)
            result.append(_finished(writer, roots))
            written.update(v.id for v in roots)
            writer, roots = KernelWriter(layouts, cluster, written), []
            writer.root(value)
        roots.append(value)
    result.append(_finished(writer, roots))
    return result


def _shared(writer: KernelWriter, root: Value) -> list[Value]:
    """The values of a kernel that the next one would compute again for its first root.

    They are stored instead: in a chain of which a part is stored for its gradient, each kernel
    would compute the whole chain before it.
    """
    fusion, found = writer.fusion, dict[int, Value]()
    seen, stack = {root.id}, [root]
    while stack:
        for arg in stack.pop().args:
            v = arg.base
            if v.id in seen or v.is_number or v.id in fusion.stored:
                continue
            seen.add(v.id)
            place = fusion.places.get(v.id)
            if place is None or place.cluster is not writer.cluster or not v.is_elementwise:
                continue
            if (v.id, writer.natural(place.axes)) not in writer.memo:
                stack.append(v)
            elif fusion.is_worth_storing(v):
                found[v.id] = v
    return list(found.values())


def _finished(writer: KernelWriter, roots: list[Value]) -> Nest:
    """The kernel of a writer, preceded by copies of the arrays that it updates."""
    layouts, prerequisites = writer.layouts, writer.fusion.prerequisites
    steps: list[Step] = []
    for value in roots:
        source = value.initial()
        if source is not None and source.id not in layouts.fusion.continued:
            steps.append(Copy(layouts.slot(source), layouts.slot(value)))
    values = [*roots, *(layouts.builder.values[number] for number, _ in writer.memo)]
    checks = frozenset[int]().union(*(prerequisites.of(v).checks for v in values))
    return Nest([*steps, *finish(writer.draft, layouts)], roots[0], checks)
