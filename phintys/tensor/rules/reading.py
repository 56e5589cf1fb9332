"""Rules for reads by index: they simplify indices, merge reads, and move reads to the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from phintys.graph.shapes import LARGEST
from phintys.graph.variable import Apply, Computed, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.tensor.aliases import Place
from phintys.tensor.creation import Alloc
from phintys.tensor.elemwise import cast, dimshuffle
from phintys.tensor.index_list import (
    FULL,
    AxisIndex,
    Entry,
    flatten_index_variables,
    flatten_slice,
    literal,
    parts,
    symbolic_length,
    unflatten_index_variables,
)
from phintys.tensor.index_ops import Subtensor
from phintys.tensor.join import Join
from phintys.tensor.rules.fills import filled_value, has_plain_lengths
from phintys.tensor.rules.through import moved_to_inputs
from phintys.tensor.shape import Shape_i, as_length, specify_shape
from phintys.tensor.static import static_length
from phintys.tensor.type_other import NoneConst
from phintys.tensor.variable import TensorVariable

#: One entry per axis.
Index = list[AxisIndex]
#: Start, stop and step of a slice.
Bounds = tuple[int | None, int | None, int | None]


def index_of(node: Apply, first: int = 1) -> Index:
    """The index of a `Subtensor` or `IncSubtensor` node, one entry per axis."""
    entries = list(unflatten_index_variables(node.inputs[first:], node.op.idx_list))
    return entries + [FULL] * (node.inputs[0].type.ndim - len(entries))


def read(x: Variable, index: Sequence[AxisIndex]) -> Variable:
    """``x[index]``; ``x`` itself if all of it is read."""
    entries = list(index)
    while entries and is_full(entries[-1]):
        entries.pop()
    if not entries:
        return x
    idx_list, variables = flatten_index_variables(entries)
    return Subtensor(idx_list)(x, *variables)


def is_full(e: AxisIndex) -> bool:
    """Whether an entry reads a whole axis."""
    return isinstance(e, slice) and e == FULL


def kept_axes(index: Index) -> list[int]:
    """The axes that an index keeps: those indexed by slices."""
    return [axis for axis, e in enumerate(index) if isinstance(e, slice)]


def read_operand(v: Variable, like: Variable, index: Index) -> Variable:
    """``v[index]`` for an operand that broadcasts to ``like``; axes of length 1 are read whole."""
    short = [b and not o for b, o in zip(v.type.broadcastable, like.type.broadcastable)]
    entries = [
        e if not alone else FULL if isinstance(e, slice) else 0 for e, alone in zip(index, short)
    ]
    return read(v, entries)


# ------------------------------------------------------------- simplification of indices


@rule(
    "x[0:n:1] -> x",
    "Subtensor(x, *variables, idx_list=idx_list)",
    law="exact",
    tags=(
        "local_useless_slice",
        "local_useless_subtensor",
        "local_convert_negative_indices",
        "local_subtensor_remove_broadcastable_index",
        "cleanup",
    ),
    tested_on=(
        "R[0]",
        "C[:, -1]",
        "N[-1]",
        "N[:, -2:]",
        "N[-5:-1]",
        "v[0:]",
        "v[::1]",
        "N[0:2]",
        "M[0:, 1:]",
        "v[:v.shape[0]]",
        "M[1, 0:]",
    ),
)
def useless_slice(
    x: TensorVariable, variables: Sequence[Variable], idx_list: tuple[Entry, ...]
) -> Replacement:
    given = list(unflatten_index_variables(variables, idx_list))
    simpler = [
        simplified_slice(e, x, axis)
        if isinstance(e, slice)
        else _position(e, static_length(x, axis))
        for axis, e in enumerate(given)
    ]
    if 1 in x.type.shape and (single := _single_positions(simpler, x)):
        return dimshuffle(x, [a for a in range(x.type.ndim) if a not in single])
    if simpler == given and (not given or not is_full(given[-1])):
        return None
    return read(x, simpler)


def _single_positions(index: Index, x: Variable) -> list[int]:
    """The axes of an index of positions in axes of length 1; () if it reads other parts too."""
    if type(x.owner_op) is Subtensor:
        return []  # two reads are merged
    found = [axis for axis, e in enumerate(index) if not is_full(e)]
    whole = all(x.type.shape[a] == 1 and literal(index[a]) == 0 for a in found)
    return found if whole else []


def simplified_slice(e: slice, x: Variable, axis: int) -> slice:
    """A slice without redundant bounds and steps, such as a stop at the end of the axis."""
    step = None if e.step is None else literal(e.step)
    if e.step is not None and step == 1:
        return simplified_slice(slice(e.start, e.stop, None), x, axis)
    if e.step is not None and (step is None or step < 0):
        return e
    n = static_length(x, axis)
    first, last = e.start, e.stop
    if n is not None:
        first, last = _from_start(first, n), _from_start(last, n)
    start, stop = (None if p is None else literal(p) for p in (first, last))
    to_end = stop is not None and n is not None and stop >= n
    new_start = None if first is not None and start == 0 else first
    new_stop = None if to_end or is_length_of(last, x, axis) else last
    return slice(new_start, new_stop, e.step)


def _from_start(p: Any, n: int) -> Any:
    """A bound of a slice of an axis of length ``n``; a negative number is counted from 0."""
    k = None if p is None else literal(p)
    return p if k is None or k >= 0 else max(k + n, 0)


def _position(e: AxisIndex, n: int | None) -> AxisIndex:
    """A position; if it is a negative number, and the length known, counted from 0."""
    k = None if n is None else literal(e)
    return e if k is None or n is None or not -n <= k < 0 else k + n


def is_length_of(n: Any, x: Variable, axis: int) -> bool:
    """Whether ``n``, perhaps converted to or from a scalar, is the length of an axis of ``x``.

    A reversed axis has the length of the axis that is read.
    """
    node = getattr(n, "owner", None)
    while node is not None and type(node.op).__name__ in ("ScalarFromTensor", "TensorFromScalar"):
        n = node.inputs[0]
        node = n.owner
    if x.owner is not None and isinstance(x.owner.op, Alloc) and n is x.owner.inputs[1 + axis]:
        return True
    if node is None or not isinstance(node.op, Shape_i) or node.op.i != axis:
        return False
    while node.inputs[0] is not x:
        read_ = x.owner
        if read_ is None or type(read_.op) is not Subtensor:
            return False
        index = index_of(read_)
        if not all(isinstance(e, slice) for e in index) or not _is_all_of_axis(index[axis]):
            return False
        x = read_.inputs[0]
    return True


def _is_all_of_axis(e: AxisIndex) -> bool:
    """Whether an entry is ``:`` or ``::-1``."""
    return isinstance(e, slice) and (is_full(e) or _literals(e) == (None, None, -1))


@rule(
    "x[a:][b:] -> x[a + b:]",
    "Subtensor(inner := Subtensor(x, *_), *_)",
    law="exact",
    tags=(
        *("local_subtensor_merge_slice", "local_subtensor_merge_integer"),
        *("local_subtensor_merge", "cleanup"),
    ),
    tested_on=(
        "v[1:][2:]",
        "v[1:5][0]",
        "v[::-1][::-1]",
        "v[::-1][0]",
        "M[0][1]",
        "M[1:][:, 2]",
        "v[1::2][1:3]",
        "v[:4][1:]",
        "N[:, ::-1][:, 1]",
        "v[2:][::2]",
    ),
)
def merge_reads(node: Apply, inner: Computed, x: TensorVariable) -> Replacement:
    outer = iter(index_of(node))
    merged: Index = []
    for axis, e in enumerate(index_of(inner.owner)):
        if not isinstance(e, slice):
            merged.append(e)
            continue
        both = _composed(e, next(outer), static_length(x, axis))
        if both is None or not _fits(both):
            return None
        merged.append(both)
    return read(x, merged)


def _fits(e: AxisIndex) -> bool:
    """Whether the numbers in an entry fit into int64."""
    parts = (e.start, e.stop, e.step) if isinstance(e, slice) else (e,)
    return not any(isinstance(p, int) and p > LARGEST for p in parts)


def _composed(first: slice, second: AxisIndex, n: int | None) -> AxisIndex | None:
    """The entry that equals indexing by ``first`` and then ``second``; None if it is not known."""
    if is_full(first):
        return second
    if is_full(second):
        return first
    bounds = _literals(first)
    entry = _literals(second) if isinstance(second, slice) else literal(second)
    if bounds is None or entry is None:
        return None
    if n is not None:
        found = range(n)[slice(*bounds)]
        if not isinstance(entry, tuple):
            return found[entry] if -len(found) <= entry < len(found) else None
        return _as_slice(found[slice(*entry)])
    return _composed_unknown(bounds, entry)


def _literals(e: slice) -> Bounds | None:
    """The parts of a slice as numbers; None if one is a variable."""
    found = [None if p is None else literal(p) for p in parts(e)]
    if any(v is None and p is not None for v, p in zip(found, parts(e))):
        return None
    return found[0], found[1], found[2]


def _as_slice(r: range) -> slice:
    """A range of non-negative positions as a slice."""
    if not r:
        return slice(0, 0, None)
    stop = r[-1] + (1 if r.step > 0 else -1)
    return slice(r.start, None if stop < 0 else stop, None if r.step == 1 else r.step)


def _composed_unknown(bounds: Bounds, entry: Bounds | int) -> slice | int | None:
    """`_composed` for an axis of unknown length: from the start forward, or a reversed axis."""
    a, b, s = bounds
    if (a, b, s) == (None, None, -1):
        if entry == bounds:
            return FULL
        return None if isinstance(entry, tuple) else -1 - entry
    a, s = a or 0, s or 1
    if a < 0 or s < 0 or (b is not None and b < 0):
        return None
    if not isinstance(entry, tuple):
        inside = b is None or a + entry * s < b
        return a + entry * s if entry >= 0 and inside else None
    c, d, t = entry[0] or 0, entry[1], entry[2] or 1
    if c < 0 or t < 0 or (d is not None and d < 0):
        return None
    ends = [e for e in (b, None if d is None else a + d * s) if e is not None]
    return slice(a + c * s, min(ends) if ends else None, s * t if s * t > 1 else None)


# ------------------------------------------------------- reads of fills, joins and writes


@rule(
    "vector(a, b, ...)[i] -> its item",
    "Subtensor(vector := MakeVector(*items, dtype=dtype), *_)",
    law="exact",
    tags=("local_subtensor_make_vector", "cleanup"),
    tested_on=("stack([s, t])[1]", "stack([s, t, 2 * s])[1:]", "M.shape[0]"),
)
def item_of_vector(
    node: Apply, vector: Computed, items: Sequence[Variable], dtype: str
) -> Replacement:
    (e,) = index_of(node)
    if isinstance(e, slice):
        bounds = _literals(e)
        return None if bounds is None else vector.owner.op(*items[slice(*bounds)])
    i = literal(e)
    if i is None or not -len(items) <= i < len(items):
        return None
    return cast(items[i], dtype)


@rule(
    "alloc(v)[index] -> alloc(v)",
    "Subtensor(x := Alloc(_, *lengths), *_)",
    given={"x": has_plain_lengths},
    law="drops_errors",
    tags=(
        *("local_subtensor_of_alloc", "local_basic_subtensor_of_alloc"),
        *("cleanup", "shape_unsafe"),
    ),
    tested_on=(
        "zeros((3, 4))[1]",
        "alloc(s, w.shape[0])[:2]",
        "alloc(v, 4, 3)[1:, 0]",
        "alloc(v, 4, 3)[2]",
    ),
)
def read_of_alloc(node: Apply, x: TensorVariable, lengths: Sequence[Variable]) -> Replacement:
    index = index_of(node)
    if not all(map(_is_within, index, x.type.shape)):
        return None
    filled = filled_value(x)
    assert filled is not None
    value = read_operand(filled, x, index)
    left = [
        _length_of_entry(e, as_length(n)) for e, n in zip(index, lengths) if isinstance(e, slice)
    ]
    return Alloc()(value, *left) if left else value


def _is_within(e: AxisIndex, n: int | None) -> bool:
    """Whether an entry is a slice, or a position known to be in range of a length ``n``."""
    if isinstance(e, slice):
        return True
    i = literal(e)
    return i is not None and n is not None and -n <= i < n


def _length_of_entry(e: slice, n: Variable) -> Variable:
    entry, variables = flatten_slice(e)
    return symbolic_length(entry, variables, n)


@rule(
    "join(x, y)[i] -> join(x[i], y[i])",
    "Subtensor(x := Join(*pieces, axis=axis), *_)",
    law="drops_errors",
    tags=("local_subtensor_of_join",),
    tested_on=(
        "join(0, N, N)[2]",
        "join(1, M, N)[1]",
        "join(0, N, N)[-1]",
        "join(1, M, N)[1:, :]",
        "join(0, N, N)[1:3]",
        "join(1, N, N)[1, 3:]",
        "join(0, N, N, 2 * N)[-5:3, 0]",
    ),
)
def read_of_join(
    ctx: Context, node: Apply, x: TensorVariable, pieces: Sequence[Variable], axis: int
) -> Replacement:
    """Applies to reads of the other axes, and of positions in tensors whose lengths are known."""
    index = index_of(node)
    along = index[axis]
    moved = sum(isinstance(e, slice) for e in index[:axis])
    if is_full(along):
        return Join(moved)(*(read(v, index) for v in pieces)) if ctx.single_use(x) else None
    if not isinstance(along, slice):
        i = literal(along)
        return None if i is None else _read_at(pieces, x.type.dtype, axis, i, index)
    parts = _read_slice(pieces, axis, along, index)
    if parts is None or (len(parts) > 1 and not ctx.single_use(x)):
        return None
    return cast(Join(moved)(*parts) if len(parts) > 1 else parts[0], x.type.dtype)


def _read_slice(
    pieces: Sequence[Variable], axis: int, along: slice, index: Index
) -> list[Variable] | None:
    """The parts of tensors that a slice of their concatenation reads; None if not known."""
    lengths = [n for v in pieces if (n := v.type.shape[axis]) is not None]
    bounds = _literals(along)
    if len(lengths) < len(pieces) or bounds is None or along.step is not None:
        return None
    wanted = range(sum(lengths))[slice(*bounds)]
    parts, first = [], 0
    for v, n in zip(pieces, lengths):
        low, high = max(wanted.start - first, 0), min(wanted.stop - first, n)
        if low < high:
            parts.append(read(v, [*index[:axis], slice(low, high), *index[axis + 1 :]]))
        first += n
    return parts or None


def _read_at(
    pieces: Sequence[Variable], dtype: str, axis: int, i: int, index: Index
) -> Variable | None:
    """The part of a concatenation at position ``i`` of its axis; None if lengths are not known."""
    for v in pieces if i >= 0 else pieces[::-1]:
        n = v.type.shape[axis]
        if n is None:
            return None
        if -n <= i < n:
            part = read(v, [*index[:axis], i, *index[axis + 1 :]])
            return cast(part, dtype)
        i = i - n if i >= 0 else i + n
    return None


@rule(
    "set(x, y, index)[index] -> y",
    "Subtensor(write := IncSubtensor(x, y, *there, inplace=False), *here)",
    law="drops_errors",
    tags=("local_read_of_write_same_indices", "local_slice_read_of_write", "shape_unsafe"),
    tested_on=(
        "set_subtensor(v[1:], w[1:])[1:]",
        "inc_subtensor(v[0], s)[0]",
        "set_subtensor(v[0], s)[2]",
        "inc_subtensor(M[0], v)[1]",
        "set_subtensor(v[0:2], w[0:2])[1]",
        "set_subtensor(v[0:2], w[0:2])[2:]",
        "inc_subtensor(M[:, 1:], s)[1, 2]",
        "inc_subtensor(M[:, 1:], M[:, :2])[1, 2:]",
        "set_subtensor(v[1:], w[1:])[2:]",
    ),
)
def read_of_write(
    node: Apply,
    write: Computed,
    x: TensorVariable,
    y: TensorVariable,
    there: Sequence[Variable],
    here: Sequence[Variable],
) -> Replacement:
    """Applies where the part read is within the part written, or is disjoint from it."""
    op, index, written = write.owner.op, index_of(node), index_of(write.owner, 2)
    if _disjoint(index, written):
        return node.op(x, *here)
    same = node.op.idx_list == op.idx_list and here == there
    found = y if same else _part_of_value(y, index, written)
    if found is None:
        return None
    value = cast(found, x.type.dtype)
    if not op.set_instead_of_inc:
        return node.op(x, *here) + value
    now = node.op(write, *here)  # its type says more if lengths have become known
    return value if value.type.broadcastable == now.type.broadcastable else None


def _disjoint(a: Index, b: Index) -> bool:
    """Whether two indices are known to have different positions along some axis."""
    for e, f in zip(a, b):
        first, second = _interval(e), _interval(f)
        if first is not None and second is not None:
            if first[1] <= second[0] or second[1] <= first[0]:
                return True
        elif not isinstance(e, slice) and not isinstance(f, slice):
            i, j = literal(e), literal(f)
            if i is not None and j is not None and i != j and i < 0 and j < 0:
                return True
    return False


def _interval(e: AxisIndex) -> tuple[float, float] | None:
    """The first position of an entry and the one after its last, if both are counted from 0."""
    if not isinstance(e, slice):
        i = literal(e)
        return None if i is None or i < 0 else (i, i + 1)
    if e.step is not None:
        return None
    start = 0 if e.start is None else literal(e.start)
    stop = inf if e.stop is None else literal(e.stop)
    if start is None or stop is None or start < 0 or stop < 0:
        return None
    return start, stop


def _part_of_value(y: Variable, index: Index, written: Index) -> Variable | None:
    """What is read of ``y``, written at one index, by another index; None if not known."""
    entries: Index = []
    for e, w in zip(index, written):
        found = _relative(e, w)
        if found is None:
            return None
        if isinstance(w, slice):
            entries.append(found)
    missing = len(entries) - y.type.ndim
    y = dimshuffle(y, [*["x"] * missing, *range(y.type.ndim)])
    once = y.type.broadcastable
    return read(
        y,
        [e if not b else FULL if isinstance(e, slice) else 0 for e, b in zip(entries, once)],
    )


def _relative(e: AxisIndex, written: AxisIndex) -> AxisIndex | None:
    """An entry within the part that another entry selects, counted from its start."""
    if isinstance(written, slice) and is_full(written):
        return e
    inner, outer = _interval(e), _interval(written)
    if inner is None or outer is None or inner[0] < outer[0] or inner[1] > outer[1]:
        return None
    start = int(inner[0] - outer[0])
    if not isinstance(e, slice):
        return start
    return slice(start, None if inner[1] == inf else int(inner[1] - outer[0]))


# ------------------------------------------------------------- reads of computed results


@rule(
    "f(x, y)[i] -> f(x[i], y[i])",
    "Subtensor(x := Elemwise(*_), *_)",
    law="drops_errors",
    tags=("local_subtensor_of_batch_dims", "local_subtensor_of_elemwise", "shape_unsafe"),
    tested_on=(
        "exp(v)[2]",
        "(v + w)[1:]",
        "(s * v)[1]",
        "(M + v)[0]",
        "(M * R)[:, 1]",
        "exp(exp(M) + v)[1]",
    ),
)
def read_of_elementwise(ctx: Context, node: Apply, x: TensorVariable) -> Replacement:
    """Compute only the elements that are read, if the result has no other use.

    A read of a fill is kept unless its positions are known to be in range: it checks them.
    """
    index = index_of(node)
    if filled_value(x) is not None and not all(map(_is_within, index, x.type.shape)):
        return None
    return moved_to_inputs(ctx, x, lambda v: read_operand(v, x, index))


@rule(
    "dimshuffle(x)[i] -> dimshuffle(x[j])",
    "Subtensor(DimShuffle(x, new_order=shuffled), *_)",
    law="exact",
    tags=(
        "local_subtensor_of_transpose",
        "local_subtensor_of_expand_dims",
        "local_subtensor_of_squeeze",
        "cleanup",
    ),
    tested_on=(
        "M.T[0]",
        "M.T[1:]",
        "v.dimshuffle('x', 0)[0]",
        "v.dimshuffle(0, 'x')[1:]",
        "M.T[1, 2]",
        "v.dimshuffle(0, 'x')[1:, 0]",
    ),
)
def read_of_dimshuffle(node: Apply, x: TensorVariable, shuffled: tuple[Place, ...]) -> Replacement:
    entries: Index = [FULL] * x.type.ndim
    order: list[Place] = []
    for o, e in zip(shuffled, index_of(node)):
        if o != "x":
            entries[o] = e
        elif not (is_full(e) if isinstance(e, slice) else literal(e) in (0, -1)):
            return None
        if isinstance(e, slice):
            order.append(o)
    place = {axis: k for k, axis in enumerate(kept_axes(entries))}
    return dimshuffle(read(x, entries), ["x" if o == "x" else place[o] for o in order])


@rule(
    "sum(x, axis)[i] -> sum(x[i], axis)",
    "Subtensor(reduced := CAReduce(x), *_)",
    single_use=True,
    law="rounding",
    tags=("local_subtensor_of_reduce",),
    tested_on=("M.sum(axis=1)[0]", "M.max(axis=0)[1:]", "K.sum(axis=1)[0]"),
)
def read_of_reduction(node: Apply, reduced: Computed, x: TensorVariable) -> Replacement:
    reduction = reduced.owner
    entries, axes = _around(x, reduction.op.axes(reduction), index_of(node))
    return reduction.op.clone(axis=axes)(read(x, entries))


def _around(x: Variable, axes: Sequence[int], outer: Index) -> tuple[Index, tuple[int, ...]]:
    """An index of the axes of ``x`` other than ``axes`` as an index of ``x``.

    Also returns the positions of ``axes`` in the result.
    """
    rest = iter(outer)
    entries: Index = [FULL if axis in axes else next(rest) for axis in range(x.type.ndim)]
    place = {axis: k for k, axis in enumerate(kept_axes(entries))}
    return entries, tuple(place[a] for a in axes)


@rule(
    "softmax(x, axis)[i] -> softmax(x[i], axis)",
    "Subtensor(rows := Softmax | LogSoftmax(x, axis=axes), *_)",
    single_use=True,
    law="rounding",
    tags=("local_subtensor_of_softmax",),
    tested_on=("special.softmax(M, axis=1)[0]", "special.log_softmax(M, axis=0)[:, 1]"),
)
def read_of_rows(
    node: Apply, rows: Computed, x: TensorVariable, axes: tuple[int, ...]
) -> Replacement:
    """Applies where whole rows are read."""
    index = index_of(node)
    if not all(is_full(index[a]) for a in axes):
        return None
    place = {axis: k for k, axis in enumerate(kept_axes(index))}
    return type(rows.owner.op)(axis=tuple(place[a] for a in axes))(read(x, index))


@rule(
    "dot(A, B)[i, j] -> dot(A[i], B[:, j])",
    "Subtensor(product := Dot(a, b), *_)",
    single_use=True,
    law="rounding",
    tags=("local_subtensor_of_dot",),
    tested_on=("dot(M, M.T)[0]", "dot(M, v)[1:]", "dot(M, M.T)[1:, 0]", "dot(M, M.T)[:, 1]"),
)
def read_of_dot(
    node: Apply, product: Computed, a: TensorVariable, b: TensorVariable
) -> Replacement:
    index = index_of(node)
    rows = index[: a.type.ndim - 1]
    return product.owner.op(read(a, rows), read(b, [FULL, *index[a.type.ndim - 1 :]]))


@rule(
    "specify_shape(x)[i] -> specify_shape(x[i])",
    "Subtensor(SpecifyShape(x, *lengths), *_)",
    law="exact",
    tags=("local_subtensor_SpecifyShape_lift",),
    tested_on=("specify_shape(M, (None, 3))[0]", "specify_shape(K, (None, 3, None))[1:, :, 2]"),
)
def read_of_specified(node: Apply, x: TensorVariable, lengths: Sequence[Variable]) -> Replacement:
    """Applies where the axes whose lengths are asserted are read whole."""
    index = index_of(node)
    if any(n is not NoneConst and not is_full(e) for e, n in zip(index, lengths)):
        return None
    return specify_shape(read(x, index), [lengths[axis] for axis in kept_axes(index)])
