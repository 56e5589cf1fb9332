"""`ArrayBuilder`, the base class of `Builder`: inputs, maps, reductions, views, updates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from phintys.dims import (
    ONE,
    ZERO,
    Dim,
    DimLike,
    are_of_one_array,
    as_dim,
    dim_max,
    from_end,
    product,
    quotient,
)
from phintys.lowering.elementwise import Gather, Index, Map
from phintys.lowering.equalities import Equalities
from phintys.lowering.long_lengths import LongLengths
from phintys.lowering.program import Check, Inst, Slot
from phintys.lowering.recorder import fits, fold_map, record_map
from phintys.lowering.reduce import Reduce
from phintys.lowering.reductions import combination
from phintys.lowering.updates import Update
from phintys.lowering.values import (
    Arbitrary,
    Empty,
    Length,
    Literal,
    Reshape,
    Shape,
    Source,
    Value,
    View,
)
from phintys.scalar.conversion import converted
from phintys.scalar.dtypes import is_complex
from phintys.scalar.native import COMPUTED_IN, NATIVE_DTYPES, NoForm

#: longest vector whose integers are tracked as Dims (`Value.content`)
_MAX_CONTENT = 64
#: the names of the dtypes that kernels support; ``str`` of a NumPy dtype is slow
_NAMES = {np.dtype(name): name for name in NATIVE_DTYPES}
#: integer dtypes whose values all fit in int64, the type of lengths and positions
_FIT_INT64 = frozenset(name for name in NATIVE_DTYPES if "int" in name) - {"uint64"}
#: one axis of a region: an integer position, or (start, step, length)
RegionAxis = DimLike | tuple[DimLike, DimLike, DimLike]


class NotNative(Exception):
    """The op cannot be compiled, for example because of a dtype; it runs through ``perform``."""


class ArrayBuilder:
    """Makes values, and holds the slots, checks and equalities of lengths.  Use `Builder`."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.slots: list[Slot] = []
        self.inputs: list[Slot] = []
        self.equalities = Equalities()
        self.checks: list[tuple[Check, Any]] = []
        self._checked: set[tuple[Dim, str, Dim]] = set()
        self._recorded: dict[tuple[Any, ...], tuple[tuple[Inst, ...], int, str]] = {}
        self.long_lengths = LongLengths(self._named)
        self.pinned: dict[int, Slot] = {}  # value id -> the slot whose item became a Dim
        self.origin: Any = None  # the node whose values are being made, for error messages

    # ------------------------------------------------------------------- sources
    def input(self, dtype: str | None, lengths: Sequence[int | None] = (), name: str = "") -> Value:
        """A new argument of the Program; a length is None if it is not static.

        The dtype None means any Python object.
        """
        slot = self._slot("object" if dtype is None else "input", dtype, lengths, name)
        self.inputs.append(slot)
        source: Value = self._add(Source(slot))
        if dtype in _FIT_INT64 and not lengths:
            source.content = (self.item(source),)
        return source

    def const(self, value: Any, dtype: str | None = None) -> Value:
        """A constant: one number (inlined into kernels) or an array.

        >>> ArrayBuilder().const(2.5)
        <Literal 0: float64[]>
        """
        array = np.array(value, dtype=dtype, order="C")
        name = _NAMES.get(array.dtype)
        if name is not None and array.size == 1:
            return self._number(array, name)
        slot = self._slot("constant", name or str(array.dtype), array.shape, "", array)
        source = self._add(Source(slot))
        if array.ndim == 1 and array.dtype.kind in "iu" and array.size <= _MAX_CONTENT:
            source.content = tuple(Dim.const(v) for v in array.tolist())
        return source

    def _number(self, array: np.ndarray[Any, Any], name: str) -> Value:
        """A constant array of one element."""
        literal = Literal(array.item(), name)
        if name[0] in "iub":  # integers and bool
            literal.content = (Dim.const(literal.number),)
        found: Value = self._add(literal)
        if array.ndim:
            found = self.broadcast_to(found, array.shape)
        if array.ndim == 1:
            found.content = literal.content
        return found

    def object(self, data: Any) -> Value:
        """A constant Python object."""
        return self._add(Source(self._slot("object", None, (), "", data)))

    def scalar(self, dim: DimLike) -> Value:
        """A Dim as a 0-d int64 value; the inverse of `item`."""
        return self._add(Length(self.short(dim)))

    def vector(self, dims: Iterable[DimLike]) -> Value:
        """Dims as a 1-d int64 value, as ``x.shape`` is."""
        content = tuple(self.short(d) for d in dims)
        if all(d.value is not None for d in content):
            return self.const(np.array([d.value for d in content], dtype="int64"))
        return self.join([self.expand(self.scalar(d), 0) for d in content], 0)

    def index(self, axis: int, shape: Sequence[DimLike]) -> Value:
        """The int64 position along an axis, as an array of the given shape."""
        return self._add(Index(axis, self._shape(shape)))

    def iota(self, length: DimLike, dtype: str = "int64") -> Value:
        """The 1-d value 0, 1, ... length - 1."""
        return self.cast(self.index(0, (length,)), dtype)

    # ------------------------------------------------------------------- lengths
    def length(self, value: Value, axis: int) -> Dim:
        """The length of an axis."""
        return self.equalities.find(value.shape[axis])

    def shape(self, value: Value) -> Shape:
        """All lengths."""
        find = self.equalities.find
        return tuple([find(d) for d in value.shape])

    def canonical(self, dim: DimLike) -> Dim:
        """The representative of all Dims known to be equal to this one."""
        return self.equalities.find(as_dim(dim))

    def short(self, dim: DimLike) -> Dim:
        """The representative, with a symbol for an expression that is long."""
        return self.long_lengths.shortened(self.equalities.find(as_dim(dim)))

    def check(
        self,
        left: DimLike,
        relation: str,
        right: DimLike,
        message: str = "",
        is_position: bool = False,
    ) -> None:
        """Add a `Check` of ``left relation right`` (``==``, ``>=``, ``>``) unless it is proven.

        Two Dims that are checked to be equal are the same Dim from then on.
        """
        left, right = map(self.long_lengths.shortened, (as_dim(left), as_dim(right)))
        a, b = self.short(left), self.short(right)
        if a is b and relation != ">":
            return
        if a.value is not None and b.value is not None:
            x, y = a.value, b.value
            if {"==": x == y, ">=": x >= y, ">": x > y}[relation]:
                return
        if (a, relation, b) in self._checked:
            return
        self._checked.add((a, relation, b))
        self.checks.append((Check(left, relation, right, message, is_position), self.origin))
        if relation == "==":
            self.equalities.unify(a, b)

    def unify(self, left: DimLike, right: DimLike, message: str = "") -> Dim:
        """Check that two lengths are equal; return the representative of both."""
        self.check(left, "==", right, message)
        return self.short(left)

    def item(self, value: Value) -> Dim:
        """The integer in a 0-d value as a Dim: an expression of lengths if possible, else a symbol.

        >>> b = ArrayBuilder()
        >>> n = b.length(b.input("float64", (None,)), 0)
        >>> b.item(b.map(lambda n, x, y: n.add(x, y), b.scalar(n), b.const(1))).render()
        "1 + ('len', 0, 0)"
        """
        if value.content is not None:
            return self.short(value.content[0])
        if value.dtype == "uint64":
            value = self.as_int64(value)
        return self._symbol(self._array(value))

    def _named(self, dim: Dim) -> Dim:
        """A symbol for the value of an expression, which a kernel computes."""
        return self._symbol(self._array(self._add(Length(dim))))

    def _symbol(self, value: Value) -> Dim:
        """A symbol for the integer in a 0-d array."""
        slot = value.own_slot() or self.pinned.get(value.id)
        if slot is None:
            slot = self.pinned[value.id] = self._slot("temp", value.dtype, ())
        return self.equalities.define(Dim.symbol(("item", slot.number)), value.id)

    def items(self, value: Value, count: int | None = None) -> Shape:
        """The integers in a 1-d value (such as a shape argument) as Dims.

        ``count`` is the required number of items; it may be None only if the length is constant.

        Raises ValueError if the number of items is not known.
        """
        if count is not None:
            self.check(value.shape[0], "==", count, f"expected {count} items")
        if value.content is not None:
            return self._shape(value.content)
        count = self.length(value, 0).value
        if count is None:
            raise ValueError(f"{value}: the number of items is not known")
        return tuple(self.item(self.take(value, 0, i)) for i in range(count))

    def lengths(self, values: Sequence[Value]) -> Shape:
        """The integers in 0-d values as the lengths of one array.

        Adds checks that they are not negative and that their product fits in 64 bits; an array that
        is never stored is checked nowhere else.  As in NumPy, the product leaves out lengths of 0.
        """
        dims = tuple(self.item(v) for v in values)
        for n in dims:
            if not n.is_nonnegative:
                self.check(n, ">=", 0, "a length is negative")
        if not are_of_one_array(dims):
            size = product(dim_max(n, 1) for n in dims)
            self.check(size, ">", 0, "an array of these lengths has too many elements")
        return dims

    # ----------------------------------------------------------------- elementwise
    def map(self, fn: Callable[..., Any], *values: Value, dtype: str | None = None) -> Value:
        """Apply ``fn(n, *scalars)`` elementwise; ``n`` is a `Native`.

        Values of smaller rank get axes of length 1 on the left; an axis of constant length 1
        broadcasts.  The result is cast to ``dtype`` if that is given.
        """
        shapes = [v.shape for v in values]
        rank = max(map(len, shapes), default=0)
        if any([len(s) != rank for s in shapes]):
            values = tuple([self._pad_left(v, rank) for v in values])
            shapes = [v.shape for v in values]
        return self._map(fn, values, self.broadcast_shape(shapes), dtype)

    def cast(self, value: Value, dtype: str) -> Value:
        """The value converted to a dtype."""
        if value.dtype == dtype:
            return value
        if isinstance(value, Literal):
            return self.const(converted(np.array(value.number).astype(value.dtype), dtype))
        return self._map(lambda n, x: n.cast(x, dtype), (value,), self.shape(value), None)

    def as_int64(self, value: Value) -> Value:
        """An integer value as int64; numbers that are too large become the largest one."""
        if value.dtype == "uint64":
            return self._map(_within_int64, (value,), self.shape(value), None)
        return self.cast(value, "int64")

    def contiguous(self, value: Value) -> Value:
        """A copy (fused into its consumers if it need not be stored), C-contiguous in memory."""
        return self._map(lambda n, x: x, (value,), self.shape(value), None)

    def kept(self, value: Value) -> Value:
        """The value, copied if it is of a kind that cannot have a slot (a view or a number)."""
        has_slot = value.base is value and not value.is_number
        return value if has_slot else self.contiguous(value)

    def broadcast_shape(self, shapes: Sequence[Sequence[DimLike]]) -> Shape:
        """The shape that shapes of equal rank broadcast to."""
        if not shapes or not shapes[0]:
            return ()
        result = list(self._shape(shapes[0]))
        for shape in shapes[1:]:
            if shape is shapes[0]:
                continue
            for axis, d in enumerate(self._shape(shape)):
                if result[axis].value == 1:
                    result[axis] = d
                elif d.value != 1 and d is not result[axis]:
                    message = f"Input dimension mismatch along axis {axis}"
                    result[axis] = self.unify(result[axis], d, message)
        return self._shape(result)

    def _record(
        self, fn: Callable[..., Any], dtypes: tuple[str | None, ...], dtype: str | None
    ) -> tuple[tuple[Inst, ...], int, str]:
        """`record_map`, cached by function and dtypes.  Raises `NotNative`."""
        key = (fn, dtypes, dtype)
        found = self._recorded.get(key)
        if found is None:
            names = [str(name) for name in dtypes]
            if not NATIVE_DTYPES.issuperset(names):
                raise NotNative(", ".join(names))
            try:
                found = self._recorded[key] = record_map(fn, names, dtype)
            except NoForm as exc:
                raise NotNative(str(exc)) from exc
            if found[2] not in NATIVE_DTYPES:
                raise NotNative(found[2])
        return found

    def _map(
        self, fn: Callable[..., Any], values: tuple[Value, ...], shape: Shape, dtype: str | None
    ) -> Value:
        dtypes = tuple([v.dtype for v in values])
        body, result, found = self._record(fn, dtypes, dtype)
        value = self._add(Map(found, shape, values, body, result))
        if len(shape) <= 1 and found[0] in "iub":
            value.content = fold_map(value, self.long_lengths)
        return value

    # ---------------------------------------------------------------------- reduce
    def reduce(
        self, kind: str, value: Value, axes: Iterable[int], dtype: str | None = None
    ) -> Value:
        """The reduction ``add mul max min and or xor argmax argmin`` over axes, which are dropped.

        ``dtype`` is that of the accumulator and the result; the value is cast to it first.  float16
        accumulates in float32.
        ``argmax`` and ``argmin`` give the int64 position in the reduced axes, flattened in C order.
        """
        axes = tuple(sorted(a % value.ndim for a in axes))
        if dtype is not None and not kind.startswith("arg"):
            value = self.cast(value, dtype)
        if axes and is_complex(str(value.dtype)):
            return self._by_parts(kind, value, lambda part: self.reduce(kind, part, axes))
        if kind.startswith("arg"):
            size = product(self.length(value, a) for a in axes)
            self.check(size, ">", 0, f"attempt to get {kind} of an empty sequence")
            rest = [a for a in range(value.ndim) if a not in axes]
            value = self.permute(value, (*rest, *axes))
            axes = tuple(range(len(rest), value.ndim))
        if not axes and not kind.startswith("arg"):
            return value
        found = "int64" if kind.startswith("arg") else str(value.dtype)
        if value.dtype not in NATIVE_DTYPES:
            raise NotNative(str(value.dtype))
        if value.dtype in COMPUTED_IN:
            wide = self.reduce(kind, self.cast(value, COMPUTED_IN[value.dtype]), axes)
            return self.cast(wide, found)
        kind = combination(kind, value.dtype)
        result = self._add(Reduce(kind, value, axes, found))
        if value.content is not None and kind in _FOLD and value.ndim == 1:
            total = as_dim(_FOLD[kind][0])
            for d in value.content:
                total = _FOLD[kind][1](total, d)
            if fits(total, found):
                result.content = (total,)
        return result

    def _by_parts(self, kind: str, value: Value, sums: Callable[[Value], Value]) -> Value:
        """A reduction of complex numbers, from that of their parts; only sums have one."""
        if kind != "add":
            raise NotNative(f"{kind} of {value.dtype}")
        parts = [sums(self.map(fn, value)) for fn in (_real, _imag)]
        return self.map(_pair, *parts, dtype=value.dtype)

    # ----------------------------------------------------------------------- views
    def permute(self, value: Value, order: Sequence[int]) -> Value:
        """A view with the axes in another order: axis ``i`` of the result is axis ``order[i]``."""
        shape = tuple(value.shape[a] for a in order)
        axes: list[int | None] = [None] * value.ndim
        for i, a in enumerate(order):
            axes[a] = i
        return self._view(value, shape, axes, content=value.content)

    def expand(self, value: Value, axis: int) -> Value:
        """A view with a new axis of length 1 before ``axis``."""
        axis = axis % (value.ndim + 1)
        shape = (*value.shape[:axis], ONE, *value.shape[axis:])
        axes = [k + (k >= axis) for k in range(value.ndim)]
        return self._view(value, shape, axes, content=value.content if value.ndim == 0 else None)

    def squeeze(self, value: Value, axis: int) -> Value:
        """A view without an axis whose length must be 1 (checked at run time)."""
        axis = axis % value.ndim
        self.check(value.shape[axis], "==", 1, f"cannot squeeze axis {axis}: its length is not 1")
        shape = (*value.shape[:axis], *value.shape[axis + 1 :])
        axes = [None if k == axis else k - (k > axis) for k in range(value.ndim)]
        return self._view(value, shape, axes, content=value.content)

    def slice(
        self, value: Value, axis: int, start: DimLike, step: DimLike, length: DimLike
    ) -> Value:
        """A view of the elements ``start + step * i``, ``i < length``, along an axis.

        The caller guarantees that all of them are in range.
        """
        axis = axis % value.ndim
        start, step, length = (self.short(d) for d in (start, step, length))
        shape = tuple(length if k == axis else d for k, d in enumerate(value.shape))
        starts = [start if k == axis else ZERO for k in range(value.ndim)]
        steps = [step if k == axis else ONE for k in range(value.ndim)]
        content = None
        first, by, count = start.value, step.value, length.value
        if value.content is not None and not (first is None or by is None or count is None):
            content = tuple(value.content[first + by * i] for i in range(count))
        return self._view(value, shape, list(range(value.ndim)), starts, steps, content)

    def take(self, value: Value, axis: int, position: DimLike) -> Value:
        """A view of the elements at one position of an axis, which is dropped.

        A negative position counts from the end.  One out of range fails at run time (IndexError).
        """
        axis = axis % value.ndim
        position = self.position(position, self.length(value, axis), axis)
        shape = (*value.shape[:axis], *value.shape[axis + 1 :])
        axes = [None if k == axis else k - (k > axis) for k in range(value.ndim)]
        starts = [position if k == axis else ZERO for k in range(value.ndim)]
        content = None
        if value.content is not None and position.value is not None:
            in_range = position.value < len(value.content)
            content = (value.content[position.value],) if in_range else None
        return self._view(value, shape, axes, starts, None, content)

    def position(self, position: DimLike, length: DimLike, axis: int) -> Dim:
        """A Python index as a non-negative position; adds the checks that it is in range."""
        length, position = self.short(length), self.short(position)
        message = f"index out of range for axis {axis}"
        if position.value is None:
            position = from_end(position, length)
            self.check(position, ">=", 0, message, True)
            self.check(length, ">", position, message, True)
        elif position.value < 0:
            self.check(length, ">=", -position, message, True)
            position = position + length
        else:
            self.check(length, ">", position, message, True)
        return position

    def diagonal(self, value: Value, axis1: int, axis2: int) -> Value:
        """The main diagonal of two axes of equal length, as the last axis of the result."""
        axis1, axis2 = axis1 % value.ndim, axis2 % value.ndim
        length = self.unify(value.shape[axis1], value.shape[axis2], "diagonal: lengths differ")
        rest = [k for k in range(value.ndim) if k not in (axis1, axis2)]
        shape = (*(value.shape[k] for k in rest), length)
        axes = [rest.index(k) if k in rest else len(rest) for k in range(value.ndim)]
        return self._view(value, shape, axes)

    def broadcast_to(self, value: Value, shape: Sequence[DimLike]) -> Value:
        """A view of another shape: axes of constant length 1 are repeated, missing ones added left.

        Other lengths must agree (checked at run time).
        """
        shape = self._shape(shape)
        value = self._pad_left(value, len(shape))
        axes: list[int | None] = list(range(value.ndim))
        result = list(shape)
        for k, d in enumerate(self.shape(value)):
            if d.value == 1 and shape[k].value != 1:
                axes[k] = None
            elif d is not shape[k]:
                result[k] = self.unify(d, shape[k], f"cannot broadcast axis {k}")
        content = value.content if len(result) <= 1 else None
        if content is not None and len(content) == 1 and len(result) == 1:
            count = result[0].value or 0
            content = content * count if 0 < count <= _MAX_CONTENT else None
        return self._view(value, tuple(result), axes, content=content)

    fill = broadcast_to

    def reshape(self, value: Value, shape: Sequence[DimLike]) -> Value:
        """The elements in C order with another shape of the same size; one length may be -1."""
        size = product(self.shape(value))
        lengths = [self.short(d) for d in shape]
        if any(d.value == -1 for d in lengths):
            known = product(d for d in lengths if d.value != -1)
            lengths = [quotient(size, known) if d.value == -1 else d for d in lengths]
        lengths = list(self._shape(lengths))
        wanted = product(lengths)
        if wanted is not size:
            self.check(size, "==", wanted, "reshape: the sizes differ")
        content = value.content if len(lengths) <= 1 else None
        old = self.shape(value)
        if _without_ones(old) == _without_ones(lengths):
            return self._reshape_ones(value, lengths, content)
        if isinstance(value, View):
            value = value.base if self._is_whole(value) else self.contiguous(value)
        value = self.kept(value)
        if isinstance(value, Reshape):
            return self.reshape(value.args[0], lengths)
        result = self._add(Reshape(value.dtype, tuple(lengths), (value,)))
        result.content = content
        return result

    def _is_whole(self, view: View) -> bool:
        """Whether a view consists of all elements of its base, in their order."""
        base, shape = self.shape(view.base), self.shape(view)
        axes = [a for a, d in zip(view.axes, base) if d.value != 1]
        moving = [a for a in axes if a is not None]
        return (
            len(moving) == len(axes)
            and moving == sorted(set(moving))
            and tuple([shape[a] for a in moving]) == _without_ones(base) == _without_ones(shape)
            and all(s.value == 0 for s in view.starts)
            and all(s.value == 1 for s in view.steps)
        )

    def _reshape_ones(
        self, value: Value, lengths: list[Dim], content: tuple[Dim, ...] | None
    ) -> Value:
        """A reshape that only adds and removes axes of length 1, as a view."""
        kept = [k for k, d in enumerate(lengths) if d.value != 1]
        old = [k for k, d in enumerate(self.shape(value)) if d.value != 1]
        axes: list[int | None] = [None] * value.ndim
        for a, k in zip(old, kept):
            axes[a] = k
        return self._view(value, tuple(lengths), axes, content=content)

    # ------------------------------------------------------- positions and regions
    def gather(self, x: Value, indices: Sequence[Value], axes: Sequence[int]) -> Value:
        """Elements of ``x`` at integer positions along ``axes``.

        There is one value of positions per axis, and they broadcast.  The axes of the result are
        those of the positions, then the other axes of ``x``.  A position out of range fails at run
        time (IndexError).
        """
        positions = self._positions(indices)
        axes = tuple(a % x.ndim for a in axes)
        x = self._addressed(x)
        shape = self.broadcast_shape([p.shape for p in positions])
        rest = [d for k, d in enumerate(self.shape(x)) if k not in axes]
        padded = tuple(self._pad_right(p, len(rest)) for p in positions)
        value = self._add(Gather(x, padded, axes, (*shape, *rest), len(shape)))
        found = [p.content for p in positions]
        if x.content is not None and len(found) == 1 and found[0] is not None:
            value.content = _pick(x.content, found[0])
        return value

    def join(self, values: Sequence[Value], axis: int) -> Value:
        """The values concatenated along an axis; other lengths must agree."""
        axis = axis % values[0].ndim
        total, shape = ZERO, list(self.shape(values[0]))
        for v in values:
            total = total + self.length(v, axis)
            for k, d in enumerate(v.shape):
                if k != axis:
                    message = f"join: the lengths of axis {k} differ"
                    shape[k] = self.unify(shape[k], d, message)
        if len(values) == 1:
            return values[0]
        shape[axis] = total
        result = self.empty(str(values[0].dtype), shape)
        start = ZERO
        for v in values:
            region: list[RegionAxis] = [(ZERO, ONE, d) for d in self.shape(v)]
            region[axis] = (start, ONE, self.length(v, axis))
            start = start + self.length(v, axis)
            result = self.update(result, region, v, "set")
        if len(shape) == 1 and all(v.content is not None for v in values):
            content = tuple(d for v in values for d in v.content or ())
            result.content = content if len(content) <= _MAX_CONTENT else None
        return result

    def empty(self, dtype: str, shape: Sequence[DimLike]) -> Value:
        """An array whose elements are not initialised, to be written by `update` or a loop.

        Elements that are read elsewhere are 0.
        """
        zero = np.zeros((), dtype).item()
        return self.broadcast_to(self._add(Arbitrary(zero, dtype)), shape)

    def _base(self, value: Value, mode: str) -> Value:
        """The base of an update: memory that need not be initialised, or an array."""
        if mode == "set" and isinstance(value.base, Arbitrary):
            return self._add(Empty(value.dtype, self.shape(value)))
        return self.kept(value)

    def update(self, base: Value, region: Sequence[RegionAxis], value: Value, mode: str) -> Value:
        """``base`` with a region overwritten (mode ``set``) or added to (``add``).

        ``region`` holds for each axis of ``base`` a position or (start, step, length); the caller
        guarantees that they are in range.  ``value`` broadcasts to the region, whose axes are those
        with a (start, step, length).
        """
        axes: list[int | None] = []
        starts: list[Dim] = []
        steps: list[Dim] = []
        shape: list[Dim] = []
        for part in region:
            start, step, length = part if isinstance(part, tuple) else (part, ONE, None)
            starts.append(self.short(start))
            steps.append(self.short(step))
            axes.append(None if length is None else len(shape))
            if length is not None:
                shape.append(self.short(length))
        value = self.broadcast_to(self.cast(value, str(base.dtype)), shape)
        base = self._base(base, mode)
        whole = self._shape(shape) == self.shape(base)
        if base.is_undefined and whole and all(d.value == 1 for d in steps):
            return value
        return self._add(
            Update(base, value, mode, tuple(shape), tuple(axes), tuple(starts), tuple(steps))
        )

    def scatter(
        self,
        base: Value,
        indices: Sequence[Value],
        axes: Sequence[int],
        value: Value,
        mode: str,
        slices: int = 0,
    ) -> Value:
        """``base`` with elements at integer positions overwritten (``set``) or added to (``add``).

        ``value`` broadcasts to the shape that `gather` gives.  At a position that occurs several
        times ``add`` adds every value, ``set`` keeps the last.  The last ``slices`` of the indices
        are slices, each along an axis of its own behind those of the others: the others are
        checked even if slices are empty.
        """
        positions = self._positions(indices)
        axes = tuple(a % base.ndim for a in axes)
        shape = self.broadcast_shape([p.shape for p in positions])
        rest = [k for k in range(base.ndim) if k not in axes]
        region = (*shape, *(self.length(base, k) for k in rest))
        padded = tuple(self._pad_right(p, len(rest)) for p in positions)
        where = [None if k in axes else len(shape) + rest.index(k) for k in range(base.ndim)]
        value = self.broadcast_to(self.cast(value, str(base.dtype)), region)
        base = self._base(base, mode)
        zeros, ones = (ZERO,) * base.ndim, (ONE,) * base.ndim
        checked = len(shape) - slices
        return self._add(
            Update(base, value, mode, region, tuple(where), zeros, ones, axes, padded, checked)
        )

    # -------------------------------------------------------------------- internal
    def _array(self, value: Value) -> Value:
        """The value, copied if it has no slot of its own with its shape."""
        if value.dtype is None:
            return value
        value = self.kept(value)
        return value if value.owner is value else self.contiguous(value)

    def _addressed(self, x: Value) -> Value:
        """The value, copied if it is (a view of) a number, which has no address."""
        return self.contiguous(x) if x.base.is_number else x

    def _add(self, value: Any) -> Any:
        value.id = len(self.values)
        value.origin = self.origin
        self.values.append(value)
        return value

    def _slot(
        self,
        kind: str,
        dtype: str | None,
        lengths: Sequence[int | None],
        name: str = "",
        data: Any = None,
    ) -> Slot:
        number = len(self.slots)
        shape = tuple(
            Dim.symbol(("len", number, axis)) if n is None else Dim.const(n)
            for axis, n in enumerate(lengths)
        )
        slot = Slot(number, kind, dtype, shape, name, data)
        self.slots.append(slot)
        return slot

    def _shape(self, dims: Iterable[DimLike]) -> Shape:
        return tuple([self.short(d) for d in dims])

    def _pad_left(self, value: Value, rank: int) -> Value:
        """The value with axes of length 1 added on the left."""
        missing = rank - value.ndim
        if missing <= 0:
            return value
        axes = [k + missing for k in range(value.ndim)]
        content = value.content if rank == 1 else None
        return self._view(value, (ONE,) * missing + value.shape, axes, content=content)

    def _pad_right(self, value: Value, count: int) -> Value:
        """The value with axes of length 1 added on the right."""
        if not count:
            return value
        return self._view(value, value.shape + (ONE,) * count, list(range(value.ndim)))

    def _positions(self, indices: Sequence[Value]) -> tuple[Value, ...]:
        rank = max(i.ndim for i in indices)
        return tuple(self._pad_left(self.cast(i, "int64"), rank) for i in indices)

    def written_region(self, update: Update) -> Value:
        """The region that an update without computed positions writes, as a view of the update."""
        return self._view(update, update.region, update.axes, update.starts, update.steps)

    def _view(
        self,
        value: Value,
        shape: Sequence[Dim],
        axes: Sequence[int | None],
        starts: Sequence[Dim] | None = None,
        steps: Sequence[Dim] | None = None,
        content: tuple[Dim, ...] | None = None,
    ) -> Value:
        """A view in normal form: views of views are composed, axes of length 1 map to None.

        A view that changes nothing is the value itself.
        """
        shape = self._shape(shape)
        axes = tuple(None if a is None or shape[a].value == 1 else a for a in axes)
        starts = tuple(starts or (ZERO,) * len(axes))
        steps = tuple(steps or (ONE,) * len(axes))
        if isinstance(value, View):
            value, axes, starts, steps = _compose(value, axes, starts, steps)
        shortened = self.long_lengths.shortened
        starts, steps = tuple(map(shortened, starts)), tuple(map(shortened, steps))
        plain = shape == self._shape(value.shape) and all(
            a == k or d.value == 1 for k, (a, d) in enumerate(zip(axes, shape))
        )
        if plain and all(s.value == 0 for s in starts) and all(s.value == 1 for s in steps):
            return value
        view = self._add(View(value, shape, axes, starts, steps))
        view.content = content
        return view


_FOLD: dict[str, tuple[int, Callable[[Dim, Dim], Dim]]] = {
    "add": (0, lambda a, b: a + b),
    "mul": (1, lambda a, b: a * b),
}


def _within_int64(n: Any, x: Any) -> Any:
    """A uint64 as int64, saturating."""
    return n.cast(n.min(x, n.const(2**63 - 1, x)), "int64")


def _compose(
    view: View, axes: Sequence[int | None], starts: Sequence[Dim], steps: Sequence[Dim]
) -> tuple[Value, tuple[int | None, ...], Shape, Shape]:
    """A view (axes, starts, steps) of a view, as a view of the base: base, axes, starts, steps."""
    new_axes: list[int | None] = []
    new_starts: list[Dim] = []
    new_steps: list[Dim] = []
    for axis, start, step in zip(view.axes, view.starts, view.steps):
        if axis is None:
            new_axes.append(None)
            new_starts.append(start)
            new_steps.append(ONE)
            continue
        new_axes.append(axes[axis])
        new_starts.append(start + step * starts[axis])
        new_steps.append(ONE if axes[axis] is None else step * steps[axis])
    return view.args[0], tuple(new_axes), tuple(new_starts), tuple(new_steps)


def _without_ones(shape: Iterable[Dim]) -> tuple[Dim, ...]:
    """A shape without the lengths that are the constant 1."""
    return tuple(d for d in shape if d.value != 1)


def _pick(content: tuple[Dim, ...], positions: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
    """The items at constant positions; None if a position is not constant or out of range."""
    numbers = [d.value for d in positions]
    if any(n is None or not -len(content) <= n < len(content) for n in numbers):
        return None
    return tuple(content[n] for n in numbers if n is not None)


def _real(n: Any, x: Any) -> Any:
    return n.real(x)


def _imag(n: Any, x: Any) -> Any:
    return n.imag(x)


def _pair(n: Any, x: Any, y: Any) -> Any:
    return n.complex(x, y)
