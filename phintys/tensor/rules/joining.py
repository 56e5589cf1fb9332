"""Rules for `Join` and `Split`."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.tensor.elemwise import cast
from phintys.tensor.join import Join
from phintys.tensor.shape import MakeVector
from phintys.tensor.variable import TensorVariable


@rule(
    "join(x) -> x",
    "Join(x)",
    law="exact",
    tags=("local_join_1", "cleanup"),
    tested_on=("Join(0)(v)",),
)
def join_of_one(x: TensorVariable) -> Replacement:
    return x


@rule(
    "join(x, empty) -> x",
    "Join(*pieces, axis=axis)",
    law="drops_errors",
    tags=("local_join_empty", "cleanup"),
    tested_on=(
        "join(0, v, zeros((0,)))",
        "join(0, h, zeros((0,), 'int32'), h)",
        "join(0, h.dimshuffle(0), zeros((0,)))",
    ),
)
def join_without_empty(node: Apply, pieces: Sequence[Variable], axis: int) -> Replacement:
    """The result is cast to the dtype that it had with the empty tensors."""
    kept = [x for x in pieces if x.type.shape[axis] != 0]
    if len(kept) == len(pieces) or not kept:
        return None
    dtype = node.outputs[0].type.dtype
    first, *rest = kept
    return node.op(cast(first, dtype), *rest) if rest else cast(first, dtype)


@rule(
    "join(join(x, y), z) -> join(x, y, z)",
    ops=[Join],
    law="exact",
    outermost=True,
    tags=("local_join_join", "cleanup"),
    tested_on=("join(0, join(0, v, w), v)", "join(1, join(1, M, M), join(1, M, N))"),
)
def flatten_joins(ctx: Context, node: Apply) -> Replacement:
    pieces: list[Variable] = []
    stack = [node.outputs[0]]
    dtype = node.outputs[0].type.dtype
    while stack:
        v = stack.pop()
        inside = v.owner is node or (ctx.single_use(v) and v.type.dtype == dtype)
        if inside and v.owner is not None and v.owner.op == node.op:
            stack.extend(reversed(v.owner.inputs))
        else:
            pieces.append(v)
    return None if pieces == node.inputs else node.op(*pieces)


@rule(
    "join(vector(a, b), vector(c)) -> vector(a, b, c)",
    ops=[Join],
    law="exact",
    tags=("local_join_make_vector", "cleanup"),
    tested_on=("join(0, stack([s, t]), stack([t, s]))", "join(0, v, stack([s, t]), stack([t]))"),
)
def join_of_vectors(ctx: Context, node: Apply) -> Replacement:
    """Merge adjacent `MakeVector` operands of equal dtype."""
    merged: list[Variable] = []
    for x in node.inputs:
        last: Apply | None = merged[-1].owner if merged else None
        made = x.owner if isinstance(x.owner_op, MakeVector) else None
        if made is not None and last is not None and made.op == last.op:
            merged[-1] = made.op(*last.inputs, *made.inputs)
        else:
            merged.append(x)
    if len(merged) == len(node.inputs):
        return None
    dtype = node.outputs[0].type.dtype
    return cast(merged[0], dtype) if len(merged) == 1 else node.op(*merged)


@rule(
    "split(x) in one piece -> x",
    "Split(x, *_, len_splits=1)",
    law="drops_errors",
    tags=("local_useless_split", "cleanup", "shape_unsafe"),
    tested_on=("split(v, [3])[0]",),
)
def useless_split(x: TensorVariable) -> Replacement:
    return x


@rule(
    "split(join(x, y)) -> x, y",
    "Split(Join(*pieces, axis=axis), *_, axis=axis)",
    law="drops_errors",
    tags=("local_split_of_join", "cleanup", "shape_unsafe"),
    tested_on=("split(join(0, N, N), [2, 2])[1]",),
)
def split_of_join(node: Apply, pieces: Sequence[Variable], axis: int) -> Replacement:
    """Applies where the lengths of the pieces are known to be those of the joined tensors."""
    if len(pieces) != len(node.outputs):
        return None
    lengths = [(x.type.shape[axis], o.type.shape[axis]) for x, o in zip(pieces, node.outputs)]
    if any(a is None or a != b for a, b in lengths):
        return None
    return [cast(x, o.type.dtype) for x, o in zip(pieces, node.outputs)]
