"""Rules for DimShuffle and Reshape."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Apply, Computed, Constant, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.tensor.aliases import Place
from phintys.tensor.elemwise import DimShuffle, cast, dimshuffle
from phintys.tensor.lengths import is_plain_length
from phintys.tensor.reshape import JoinDims, Reshape, SplitDims
from phintys.tensor.rules.through import moved_to_inputs
from phintys.tensor.shape import Shape_i, lengths_vector, product, shape_tuple
from phintys.tensor.static import entries, known_length
from phintys.tensor.variable import TensorVariable


@rule(
    "dimshuffle(dimshuffle(x)) -> dimshuffle(x)",
    ops=[DimShuffle],
    law="exact",
    tags=("local_dimshuffle_lift", "local_dimshuffle_merge", "cleanup", "vectors"),
    tested_on=(
        "M.T.T",
        "v.dimshuffle('x', 0).dimshuffle(1, 0)",
        "M.dimshuffle(1, 'x', 0).dimshuffle(2, 0)",
    ),
)
def merge_dimshuffles(ctx: Context, node: Apply) -> Replacement:
    (x,) = node.inputs
    order = node.op.new_order
    if order == tuple(range(x.type.ndim)):
        return x
    if x.owner is None or not isinstance(x.owner.op, DimShuffle):
        return None
    inner = x.owner.op.new_order
    if any(inner[axis] != "x" for axis in node.op.drop):
        return None  # dropping the axis checks that its length is 1
    return dimshuffle(x.owner.inputs[0], ["x" if o == "x" else inner[o] for o in order])


@rule(
    "dimshuffle(f(x, y)) -> f(dimshuffle(x), dimshuffle(y))",
    "DimShuffle(x := Elemwise(*_), new_order=order, drop=[])",
    law="exact",
    tags=("local_dimshuffle_lift", "cleanup"),
    tested_on=("exp(M).T", "(M + v).T", "(v * w).dimshuffle(0, 'x')"),
)
def lift_dimshuffle(ctx: Context, x: TensorVariable, order: tuple[Place, ...]) -> Replacement:
    """Move DimShuffle towards the inputs, where it is free and does not hide other patterns."""
    return moved_to_inputs(ctx, x, lambda v: dimshuffle(v, order))


@rule(
    "squeeze(f(expand_dims(x), y)) -> f(x, squeeze(y))",
    "DimShuffle(x := Elemwise(*_), new_order=order)",
    law="exact",
    tags=("local_dimshuffle_lift", "cleanup", "vectors"),
    tested_on=(
        "exp(v.dimshuffle(0, 'x') + C[:2] * 2.0).dimshuffle(0)",
        "exp(v.dimshuffle('x', 0) + w.dimshuffle('x', 0)[:, :2]).dimshuffle(1, 'x')",
    ),
)
def lift_squeeze(
    ctx: Context, node: Apply, x: TensorVariable, order: tuple[Place, ...]
) -> Replacement:
    """Applies to axes of known length 1, if all inputs but one lose them without a new node."""
    dropped = node.op.drop
    if not dropped or any(x.type.shape[axis] != 1 for axis in dropped):
        return None
    others: list[Variable] = []

    def move(v: Variable) -> TensorVariable | None:
        if not isinstance(v, Constant) and not has_new_axes(v, dropped):
            others.append(v)
        return dimshuffle(v, order) if len(others) < 2 else None

    return moved_to_inputs(ctx, x, move)


def has_new_axes(x: Variable, axes: Sequence[int]) -> bool:
    """Whether a `DimShuffle` has added these axes."""
    node = x.owner
    return (
        node is not None
        and isinstance(node.op, DimShuffle)
        and all(node.op.new_order[axis] == "x" for axis in axes)
    )


@rule(
    "dimshuffle(vector(a)) -> dimshuffle(a)",
    "DimShuffle(MakeVector(*items, dtype=dtype), new_order=order)",
    law="exact",
    tags=("local_useless_dimshuffle_makevector", "cleanup"),
    tested_on=("make_vector(s).dimshuffle()", "make_vector(s).dimshuffle('x', 0)"),
)
def dimshuffle_of_one(
    items: Sequence[Variable], dtype: str, order: tuple[Place, ...]
) -> Replacement:
    if len(items) != 1:
        return None
    return dimshuffle(cast(items[0], dtype), ["x"] * len(order))


# --------------------------------------------------------------------------------- reshape


@rule(
    "reshape(reshape(x)) -> reshape(x)",
    "Reshape(inner := Reshape | DimShuffle(x, *_), shape)",
    law="drops_errors",
    tags=(
        "local_reshape_chain",
        "local_useless_expand_dims_in_reshape",
        "local_fuse_squeeze_reshape",
        "cleanup",
        "shape_unsafe",
    ),
    tested_on=("M.reshape((6,)).reshape((2, 3))", "M.dimshuffle(0, 'x', 1).reshape((-1,))"),
)
def merge_reshapes(
    node: Apply, inner: Computed, x: TensorVariable, shape: TensorVariable
) -> Replacement:
    """Remove a Reshape, or a DimShuffle that only moves axes of length 1, before a Reshape."""
    return None if getattr(inner.owner.op, "is_transpose", False) else node.op(x, shape)


@rule(
    "reshape(x) -> dimshuffle(x)",
    "Reshape(x, shape)",
    law="drops_errors",
    tags=("local_useless_reshape", "local_reshape_to_dimshuffle", "cleanup", "shape_unsafe"),
    tested_on=(
        "v.reshape((-1,))",
        "s.reshape((1,))",
        "M.reshape(M.shape)",
        "N.reshape((2, 3))",
        "v.reshape((1, v.shape[0]))",
        "R.reshape((-1,))",
        "M.reshape((M.shape[0], -1))",
        "M.reshape((-1, 1, M.shape[1]))",
    ),
)
def reshape_to_dimshuffle(node: Apply, x: TensorVariable, shape: TensorVariable) -> Replacement:
    """Applies where the reshape only adds or removes axes of length 1."""
    wanted = [(axis, n) for axis, n in enumerate(entries(shape)) if known_length(n) != 1]
    given = [axis for axis, n in enumerate(x.type.shape) if n != 1]
    if len(wanted) != len(given):
        return None
    if not all(is_length_of(n, x, axis, len(given) == 1) for (_, n), axis in zip(wanted, given)):
        return None
    order: list[Place] = ["x"] * node.outputs[0].type.ndim
    for (position, _), axis in zip(wanted, given):
        order[position] = axis
    return dimshuffle(x, order)


def is_length_of(n: Variable, x: Variable, axis: int, only: bool) -> bool:
    """Whether an entry of a shape is the length of ``axis``, if the other entries are lengths too.

    -1 stands for the length that is left.  ``only``: there is no other axis, so that any known
    length except 0 must be its length.
    """
    known = known_length(n)
    if known is not None:
        return known in (x.type.shape[axis], -1) or (only and known != 0)
    node = n.owner
    return (
        node is not None
        and isinstance(node.op, Shape_i)
        and node.inputs[0] is x
        and node.op.i == axis
    )


@rule(
    "reshape(f(x)) -> f(reshape(x))",
    "Reshape(x := Elemwise(_), shape)",
    law="drops_errors",
    tags=("local_reshape_lift",),
    tested_on=("exp(M).reshape((6,))",),
)
def lift_reshape(
    ctx: Context, node: Apply, x: TensorVariable, shape: TensorVariable
) -> Replacement:
    return moved_to_inputs(
        ctx, x, lambda v: node.op(v, shape), lambda inner: len(inner.inputs) == 1
    )


@rule(
    "squeeze(reshape(x)) -> reshape(x)",
    "DimShuffle(shaped := Reshape(x, shape), new_order=order)",
    single_use=True,
    law="exact",
    tags=("local_fuse_squeeze_reshape", "local_fuse_expand_dims_reshape", "cleanup"),
    tested_on=(
        "M.reshape((2, 1, 3)).squeeze(1)",
        "K.reshape((6, 4)).dimshuffle(0, 'x', 1)",
        "K.reshape((K.shape[2], 1, -1)).dimshuffle(0, 2, 'x')",
    ),
)
def reshape_without_dimshuffle(
    x: TensorVariable, shape: TensorVariable, order: tuple[Place, ...]
) -> Replacement:
    """Let the reshape add and remove axes of length 1, if the other axes keep their order."""
    lengths = entries(shape)
    kept = [o for o in order if o != "x"]
    dropped = [n for axis, n in enumerate(lengths) if axis not in kept]
    if kept != sorted(kept) or any(known_length(n) != 1 for n in dropped):
        return None
    new = [1 if o == "x" else lengths[o] for o in order]
    return Reshape(len(new))(x, lengths_vector(new))


@rule(
    "join_dims(x) -> reshape(x)",
    ops=[JoinDims],
    law="exact",
    tags=("local_join_dims", "cleanup"),
    tested_on=("join_dims(K, 0, 2)", "join_dims(K, 1, 1)", "join_dims(M, 1, 0)", "join_dims(N)"),
)
def join_dims_to_reshape(ctx: Context, node: Apply) -> Replacement:
    (x,), joined = node.inputs, node.op.axis_range
    axes: list[Place] = [*range(x.type.ndim)]
    if len(joined) < 2:
        return x if joined else dimshuffle(x, [*axes[: joined.start], "x", *axes[joined.start :]])
    lengths = shape_tuple(x)
    inner = product(lengths[joined.start : joined.stop])
    new = [*lengths[: joined.start], inner, *lengths[joined.stop :]]
    return Reshape(len(new))(x, lengths_vector(new))


@rule(
    "split_dims(x) -> reshape(x)",
    ops=[SplitDims],
    law="drops_errors",
    tags=("local_split_dims", "cleanup", "shape_unsafe"),
    tested_on=("split_dims(v, (1, 3), 0)", "split_dims(M, (M.shape[1],), 1)"),
)
def split_dims_to_reshape(ctx: Context, node: Apply) -> Replacement:
    """Applies to lengths that are not negative: for `Reshape`, -1 has a meaning."""
    (x, shape), axis = node.inputs, node.op.axis
    inner, lengths = entries(shape), shape_tuple(x)
    if not all(map(is_plain_length, inner)):
        return None
    new = [*lengths[:axis], *inner, *lengths[axis + 1 :]]
    return Reshape(len(new))(x, lengths_vector(new))
