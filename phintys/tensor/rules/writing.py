"""Rules for indexed writes: `set_subtensor`, `inc_subtensor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.graph.variable import Apply, Computed, Constant, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.op import TABLE
from phintys.tensor.creation import Alloc
from phintys.tensor.elemwise import cast, dimshuffle, functions
from phintys.tensor.index_list import AxisIndex, Entry, flatten_index_variables, literal
from phintys.tensor.index_ops import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    may_repeat,
)
from phintys.tensor.rules.fills import fill_number, filled_value, has_plain_lengths
from phintys.tensor.rules.match import applied, at, some
from phintys.tensor.rules.reading import index_of, is_full, kept_axes, simplified_slice
from phintys.tensor.variable import TensorVariable

WRITES = (IncSubtensor, AdvancedIncSubtensor)


def increment(v: Variable) -> Apply | None:
    """The node of an indexed addition that computes ``v``, else None."""
    node = v.owner
    if node is None or not isinstance(node.op, WRITES):
        return None
    op = node.op
    return None if op.set_instead_of_inc or getattr(op, "ignore_duplicates", False) else node


def sparse(v: Variable) -> Apply | None:
    """The node of an indexed addition to zeros that computes ``v``, else None.

    Setting a part of zeros is the same, if it repeats no position.
    """
    node = increment(v)
    if node is None and type(v.owner_op) is IncSubtensor and v.owner is not None:
        added = IncSubtensor(v.owner.op.idx_list)
        node = added.make_node(*v.owner.inputs) if fill_number(v.owner.inputs[0]) == 0 else None
    return node if node is not None and fill_number(node.inputs[0]) == 0 else None


@rule(
    "a + inc(0, b, i) + inc(0, c, j) -> inc(inc(a, b, i), c, j)",
    ops=[TABLE["add"]],
    where=some(*WRITES),
    law="rounding",
    outermost=True,
    tags=("local_IncSubtensor_serialize", "local_add_of_sparse_write"),
    tested_on=(
        "v + inc_subtensor(zeros_like(v)[0], s)",
        "v + set_subtensor(zeros_like(v)[0], s)",
        "inc_subtensor(zeros_like(v)[0], s) + inc_subtensor(zeros_like(v)[2], t)",
        "inc_subtensor(zeros_like(M)[k], N) + M",
        "inc_subtensor(zeros_like(v)[0], s) + v + inc_subtensor(zeros_like(v)[0], t)",
        "inc_subtensor(zeros_like(M)[k], N) + inc_subtensor(zeros_like(M)[k], N + 1)",
        "inc_subtensor(zeros_like(v)[0], k[0]) + inc_subtensor(zeros_like(v)[0], k[1])",
    ),
)
def chain_increments(ctx: Context, node: Apply) -> Replacement:
    """Replace a sum of increments of zeros by increments of one tensor, one after the other.

    The gradient of several indexed reads has this form.  Terms for the same part are added first.
    """
    out = node.outputs[0].type
    written: dict[Any, list[Apply]] = {}  # by the part and the type of the value added
    rest: list[Variable] = []
    for v in node.inputs:
        inc = sparse(v) if v.type == out and ctx.single_use(v) else None
        if inc is not None:
            key = (inc.op, inc.inputs[1].type, *inc.inputs[2:])
            written.setdefault(key, []).append(inc)
        else:
            rest.append(v)
    if not written:
        return None
    base = rest[0] if len(rest) == 1 else functions.add(*rest) if rest else None
    if base is not None and base.type != out:
        return None
    for first, *others in written.values():
        x, y, *index = first.inputs
        if others:
            terms = [inc.inputs[1] for inc in (first, *others)]
            y = functions.add(*(cast(t, out.dtype) for t in terms))
        inputs = [x if base is None else base, y, *index]
        base = first.clone_with_new_inputs(inputs, strict=False).outputs[0]
    return base


@rule(
    "inc(x, 0, index) -> x",
    ops=list(WRITES),
    where=at(1, Constant, "second", Alloc, Subtensor),
    law="drops_errors",
    tags=("local_useless_inc_subtensor", "local_useless_inc_subtensor_alloc", "cleanup"),
    tested_on=(
        "inc_subtensor(v[1:], 0)",
        "inc_subtensor(M[k], zeros_like(N))",
        "set_subtensor(v[0], v[0])",
    ),
)
def useless_write(ctx: Context, node: Apply) -> Replacement:
    """Applies where zeros are added, or the part is set to the value that it has."""
    x, y = node.inputs[:2]
    if increment(node.outputs[0]) is not None:
        return x if fill_number(y) == 0 else None
    read = y.owner
    if read is None or not isinstance(node.op, IncSubtensor) or not isinstance(read.op, Subtensor):
        return None
    if read.op.idx_list != node.op.idx_list:
        return None
    return x if read.inputs == [x, *node.inputs[2:]] else None


@rule(
    "set(x, y, :len(x)) -> set(x, y, :)",
    "IncSubtensor(x, y, *_, inplace=False)",
    law="exact",
    tags=("local_useless_slice_of_write", "cleanup"),
    tested_on=("set_subtensor(v[0:], w)", "inc_subtensor(v[: v.shape[0]], w)"),
)
def useless_slice_of_write(node: Apply, x: TensorVariable, y: TensorVariable) -> Replacement:
    given = index_of(node, 2)
    simpler = [
        simplified_slice(e, x, axis) if isinstance(e, slice) else e for axis, e in enumerate(given)
    ]
    if simpler == given:
        return None
    idx_list, variables = flatten_index_variables(simpler)
    op = IncSubtensor(idx_list, set_instead_of_inc=node.op.set_instead_of_inc)
    return op(x, y, *variables)


@rule(
    "set(x, y, all) -> y, inc(x, y, all) -> x + y",
    "IncSubtensor(x, y, *_, set_instead_of_inc=is_set)",
    law="drops_errors",
    tags=("local_useless_inc_subtensor", "cleanup"),
    tested_on=(
        "set_subtensor(v[:], w)",
        "inc_subtensor(v[:], w)",
        "set_subtensor(M[:], v)",
        "inc_subtensor(zeros_like(v)[:], w)",
        "set_subtensor(zeros_like(C)[:, 0], k * 0.5)",
        "inc_subtensor(C[:, -1], s)",
    ),
)
def write_of_everything(
    node: Apply, x: TensorVariable, y: TensorVariable, is_set: bool
) -> Replacement:
    """Applies where axes are written whole; those of length 1 may be written at position 0."""
    index = index_of(node, 2)
    if not all(is_full(e) or _is_only_one(x, axis, e) for axis, e in enumerate(index)):
        return None
    kept = kept_axes(index)
    if len(kept) < len(index):
        missing = len(kept) - y.type.ndim
        places = {axis: k - missing for k, axis in enumerate(kept) if k >= missing}
        y = dimshuffle(y, [places.get(axis, "x") for axis in range(len(index))])
    y = cast(y, x.type.dtype)
    replaces = is_set or fill_number(x) == 0
    return functions.second(x, y) if replaces else functions.add(x, y)


def _is_only_one(x: Variable, axis: int, e: AxisIndex) -> bool:
    """Whether an index entry is the only position of an axis."""
    return x.type.broadcastable[axis] and literal(e) in (0, -1)


@rule(
    "set(set(x, y, index), z, index) -> set(x, z, index)",
    "IncSubtensor(first := IncSubtensor(x, y, *at, inplace=False, idx_list=part), z, *at,"
    " inplace=False, idx_list=part)",
    single_use=True,
    law="rounding",
    tags=("local_write_of_write_same_indices", "cleanup"),
    tested_on=(
        "set_subtensor(set_subtensor(v[1:], s)[1:], t)",
        "inc_subtensor(set_subtensor(v[0], s)[0], t)",
        "inc_subtensor(inc_subtensor(M[0], v)[0], w)",
    ),
)
def merge_writes(
    node: Apply,
    first: Computed,
    x: TensorVariable,
    y: TensorVariable,
    at: Sequence[Variable],
    z: TensorVariable,
) -> Replacement:
    """Merge two writes to the same part."""
    if node.op.set_instead_of_inc:
        return node.clone_with_new_inputs([x, z, *at], strict=False).outputs[0]
    both = functions.add(cast(y, x.type.dtype), cast(z, x.type.dtype))
    return first.owner.clone_with_new_inputs([x, both, *at], strict=False).outputs[0]


@rule(
    "set(set(x, y, positions), z, positions) -> set(x, z, positions)",
    "AdvancedIncSubtensor(first := AdvancedIncSubtensor(x, y, *at, inplace=False, idx_list=part),"
    " z, *at, inplace=False, idx_list=part)",
    single_use=True,
    law="rounding",
    tags=("local_write_of_write_same_indices", "cleanup"),
    tested_on=(
        "set_subtensor(set_subtensor(v[k], s)[k], t)",
        "inc_subtensor(inc_subtensor(v[k], s)[k], w[k])",
        "inc_subtensor(set_subtensor(v[b], s)[b], t)",
        "set_subtensor(inc_subtensor(M[:, k], s)[:, k], t)",
    ),
)
def merge_writes_at_positions(
    node: Apply,
    first: Computed,
    x: TensorVariable,
    y: TensorVariable,
    at: Sequence[Variable],
    z: TensorVariable,
) -> Replacement:
    """A sum is set only once where positions do not repeat: a second one would be added twice."""
    op, inner = node.op, first.owner.op
    if op.set_instead_of_inc:
        return op(x, z, *at)
    once = not may_repeat([v for v in at if isinstance(v, TensorVariable)])
    plain = not (op.ignore_duplicates or inner.ignore_duplicates or inner.set_instead_of_inc)
    if not (once or plain) or x.type.dtype == "bool":
        return None
    return inner(x, functions.add(cast(y, x.type.dtype), cast(z, x.type.dtype)), *at)


@rule(
    "set(x, x[index] + y, index) -> inc(x, y, index)",
    ops=list(WRITES),
    where=at(1, "add"),
    law="rounding",
    phase="specialize",  # after reads of the part have become the sum, which is then stored once
    tags=("local_set_to_inc_subtensor",),
    tested_on=(
        "set_subtensor(v[0], v[0] + s)",
        "set_subtensor(v[1:], w[1:] + v[1:] + s)",
        "set_subtensor(M[:, n - 2], M[:, n - 2] + s)",
        "set_subtensor(v[b], v[b] + w[b])",
        "set_subtensor(i[1:], i[1:] + 1)",
    ),
)
def set_to_increment(ctx: Context, node: Apply) -> Replacement:
    """Applies where no position is repeated: an increment would be added for each of them."""
    (x, y, *index), op = node.inputs, node.op
    dtype = x.type.dtype
    total = applied(y, "add")
    if not op.set_instead_of_inc or total is None or not ctx.single_use(y) or y.type.dtype != dtype:
        return None
    if dtype == "bool" or may_repeat([v for v in index if isinstance(v, TensorVariable)]):
        return None
    for k, v in enumerate(total.inputs):
        if _reads(v, op, x, index) and v.type.broadcastable == y.type.broadcastable:
            rest = [*total.inputs[:k], *total.inputs[k + 1 :]]
            added = rest[0] if len(rest) == 1 else functions.add(*rest)
            return type(op)(op.idx_list)(x, added, *index) if added.type.dtype == dtype else None
    return None


def _reads(v: Variable, op: Any, x: Variable, index: Sequence[Variable]) -> bool:
    """Whether ``v`` is the part of ``x`` that ``op`` writes."""
    node = v.owner
    kind = Subtensor if type(op) is IncSubtensor else AdvancedSubtensor
    if node is None or type(node.op) is not kind:
        return False
    return node.op.idx_list == op.idx_list and node.inputs == [x, *index]


@rule(
    "inc(x, alloc(y), index) -> inc(x, y, index)",
    ops=list(WRITES),
    where=at(1, "second", Alloc),
    phase="stabilize",
    law="drops_errors",
    tags=("local_useless_inc_subtensor_alloc", "shape_unsafe", "cleanup", "fast_compile"),
    tested_on=(
        "inc_subtensor(v[1:], second(w[1:], s))",
        "set_subtensor(M[k], alloc(v, 2, 3))",
        "inc_subtensor(v[b], alloc(s, w.shape[0]))",
    ),
)
def write_of_fill(ctx: Context, node: Apply) -> Replacement:
    """The value is broadcast to the part that is written, which has the shape of the fill.

    Not in canonicalize: programs that derive densities of loops read the initial rows of a state
    there, with their shape.
    """
    x, y, *index = node.inputs
    if filled_value(y) is None or y.owner is None or not has_plain_lengths(y):
        return None
    value = y.owner.inputs[0 if type(y.owner.op) is Alloc else 1]
    shorter = y.type.broadcastable[y.type.ndim - value.type.ndim :]
    if any(b and not v for b, v in zip(shorter, value.type.broadcastable)):
        return None  # only the fill says that this axis has length 1
    return node.clone_with_new_inputs([x, value, *index], strict=False).outputs[0]


@rule(
    "inc(0, y, index) -> set(0, y, index)",
    "IncSubtensor(x, *inputs, set_instead_of_inc=False, inplace=False, idx_list=part)",
    given={"x": lambda v: fill_number(v) == 0},
    where=at(0, Constant, "second", Alloc),
    phase="specialize",
    law="rounding",
    tags=("local_incsubtensor_of_zeros_to_setsubtensor", "local_incsubtensor_of_zeros"),
    tested_on=("inc_subtensor(zeros_like(v)[1:], w[1:])",),
)
def increment_of_zeros(
    x: TensorVariable, inputs: Sequence[Variable], part: tuple[Entry, ...]
) -> Replacement:
    """Basic indexing does not repeat positions, so that nothing accumulates."""
    return IncSubtensor(part, set_instead_of_inc=True)(x, *inputs)


@rule(
    "set(c, c, index) -> c",
    "IncSubtensor(x, y, *_, set_instead_of_inc=True)",
    where=at(1, Constant, "second", Alloc),
    law="drops_errors",
    tags=("local_setsubtensor_of_constants", "local_setsubtensor_of_allocs"),
    tested_on=("set_subtensor(zeros_like(v)[1:], 0)",),
)
def set_of_same_constant(x: TensorVariable, y: TensorVariable) -> Replacement:
    k = fill_number(x)
    return x if k is not None and fill_number(y) == k else None


@rule(
    "set(0, set(0, y, -j), s:) -> set(0, y, -j)",
    ops=[IncSubtensor],
    where=at(1, IncSubtensor),
    law="drops_errors",
    tags=("local_write_at_the_end",),
    tested_on=(
        "inc_subtensor(zeros_like(v)[1:], inc_subtensor(zeros_like(v[1:])[-1], s))",
        "set_subtensor(zeros_like(M)[1:], set_subtensor(zeros_like(M[1:])[-1], w))",
    ),
)
def write_at_the_end(ctx: Context, node: Apply) -> Replacement:
    """Write one row of zeros, where zeros with that row would be written.

    The gradient of the last row of what a loop computes has this form.
    """
    x, part = node.inputs[:2]
    first = part.owner
    if first is None or not isinstance(first.op, IncSubtensor) or not ctx.single_use(part):
        return None
    if fill_number(x) != 0 or fill_number(first.inputs[0]) != 0 or x.type.dtype != part.type.dtype:
        return None
    outer, inner = index_of(node, 2), index_of(first, 2)
    if not _is_suffix(outer[0]) or not all(map(is_full, outer[1:])):
        return None
    position = literal(inner[0])
    if position is None or position >= 0:
        return None
    return first.op.make_node(x, *first.inputs[1:]).outputs[0]


def _is_suffix(e: AxisIndex) -> bool:
    """Whether an index entry is ``s:`` for a position ``s`` that is known and not negative."""
    if not isinstance(e, slice) or e.stop is not None or e.step is not None:
        return False
    start = literal(e.start)
    return start is not None and start >= 0
