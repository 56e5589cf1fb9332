"""Rules for indexed writes: `set_subtensor`, `inc_subtensor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.graph.variable import Apply, Computed, Constant, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.op import TABLE
from phintys.tensor.creation import Alloc
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.index_list import Entry
from phintys.tensor.index_ops import AdvancedIncSubtensor, IncSubtensor, Subtensor
from phintys.tensor.rules.fills import fill_number
from phintys.tensor.rules.match import at, some
from phintys.tensor.rules.reading import index_of, is_full
from phintys.tensor.variable import TensorVariable

WRITES = (IncSubtensor, AdvancedIncSubtensor)


def increment(v: Variable) -> Apply | None:
    """The node of an indexed addition that computes ``v``, else None."""
    node = v.owner
    if node is None or not isinstance(node.op, WRITES):
        return None
    op = node.op
    return None if op.set_instead_of_inc or getattr(op, "ignore_duplicates", False) else node


@rule(
    "a + inc(0, b, i) + inc(0, c, j) -> inc(inc(a, b, i), c, j)",
    ops=[TABLE["add"]],
    where=some(*WRITES),
    law="rounding",
    outermost=True,
    tags=("local_IncSubtensor_serialize", "local_add_of_sparse_write"),
    tested_on=(
        "v + inc_subtensor(zeros_like(v)[0], s)",
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
        inc = increment(v)
        fits = inc is not None and v.type == out and ctx.single_use(v)
        if inc is not None and fits and fill_number(inc.inputs[0]) == 0:
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
    "set(x, y, all) -> y, inc(x, y, all) -> x + y",
    "IncSubtensor(x, y, *_, set_instead_of_inc=is_set)",
    law="drops_errors",
    tags=("local_useless_inc_subtensor", "cleanup"),
    tested_on=("set_subtensor(v[:], w)", "inc_subtensor(v[:], w)", "set_subtensor(M[:], v)"),
)
def write_of_everything(
    node: Apply, x: TensorVariable, y: TensorVariable, is_set: bool
) -> Replacement:
    if not all(map(is_full, index_of(node, 2))):
        return None
    y = cast(y, x.type.dtype)
    return functions.second(x, y) if is_set else functions.add(x, y)


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
