"""Rules that recognise softmax, log_softmax and logsumexp in expressions."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import DimShuffle, functions
from phintys.tensor.reduce import Sum, keep_dims
from phintys.tensor.rules.match import argument, at, is_float, like, negated, some
from phintys.tensor.rules.stable import factors, product
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax
from phintys.tensor.variable import TensorVariable

TAGS = ("symbolic_op_recognition", "fast_compile")


def reduction(v: Variable, kind: type) -> tuple[Apply | None, bool]:
    """The reduction that computes ``v`` (or None), and whether its axes are kept with length 1."""
    node = v.owner
    if node is None or isinstance(node.op, kind):
        return node, False
    inner = node.inputs[0].owner if isinstance(node.op, DimShuffle) else None
    if inner is None or not isinstance(inner.op, kind):
        return None, False
    kept = keep_dims(node.inputs[0], reduced_axes(inner))
    return (inner, True) if kept.owner_op == node.op else (None, False)


def reduced_axes(node: Apply) -> tuple[int, ...]:
    """The axes of a reduction or of a softmax-like node."""
    axes = getattr(node.op, "axes", None)
    found: tuple[int, ...] = node.op.axis if axes is None else axes(node)
    return found


@rule(
    "log(sum(exp(x))) -> logsumexp(x)",
    ops=[TABLE["log"]],
    where=at(0, Sum, DimShuffle),
    phase="stabilize",
    law="accurate",
    tags=("local_log_sum_exp", *TAGS),
    tested_on=(
        "log(exp(M).sum(axis=0))",
        "log(exp(M).sum(axis=1, keepdims=True))",
        "log(sum(exp(v)))",
    ),
)
def log_of_sum_of_exp(ctx: Context, node: Apply) -> Replacement:
    inner, kept = reduction(node.inputs[0], Sum)
    x = None if inner is None else argument(inner.inputs[0], "exp")
    if inner is None or x is None or x.type.dtype != node.outputs[0].type.dtype:
        return None
    axes = reduced_axes(inner)
    out = LogSumExp(axis=axes)(x)
    return keep_dims(out, axes) if kept else out


@rule(
    "y * exp(x) / sum(exp(x)) -> y * softmax(x)",
    ops=[TABLE["true_div"]],
    where=at(1, Sum, DimShuffle),
    phase="stabilize",
    law="accurate",
    tags=("local_softmax_stabilize", *TAGS),
    tested_on=(
        "exp(M) / exp(M).sum(axis=1, keepdims=True) | below inf",
        "exp(v) / sum(exp(v)) | below inf",
        "w * exp(v) / sum(exp(v)) | below inf",
        "exp(M) / sum(exp(M)) | below inf",
    ),
)
def recognise_softmax(ctx: Context, node: Apply) -> Replacement:
    """Applies where the sum keeps its axes with length 1, or is over all axes."""
    below = node.inputs[1]
    inner, kept = reduction(below, Sum)
    if inner is None or not (kept or below.type.ndim == 0):
        return None
    top = factors(node.inputs[0])
    exp = inner.inputs[0]
    x = argument(exp, "exp")
    if x is None or exp not in top or not is_float(x) or x.type.dtype != below.type.dtype:
        return None
    top[top.index(exp)] = Softmax(axis=reduced_axes(inner))(x)
    return like(node, product(top))


@rule(
    "log(softmax(x)) -> log_softmax(x)",
    "log(Softmax(x, axis=axis))",
    phase="stabilize",
    law="accurate",
    tags=("local_logsoftmax",),
    tested_on=("log(special.softmax(M, axis=1))",),
)
def log_of_softmax(x: TensorVariable, axis: tuple[int, ...]) -> Replacement:
    return LogSoftmax(axis=axis)(x)


@rule(
    "exp(log_softmax(x)) -> softmax(x)",
    "exp(LogSoftmax(x, axis=axis))",
    phase="stabilize",
    law="accurate",
    tags=("local_exp_log_softmax",),
    tested_on=("exp(special.log_softmax(M, axis=1))",),
)
def exp_of_log_softmax(x: TensorVariable, axis: tuple[int, ...]) -> Replacement:
    return Softmax(axis=axis)(x)


@rule(
    "x - logsumexp(x) -> log_softmax(x)",
    ops=[TABLE["add"]],
    where=some("mul"),
    phase="stabilize",
    law="accurate",
    tags=("local_log_softmax_from_logsumexp",),
    tested_on=(
        "M - logsumexp(M, axis=1, keepdims=True) | below inf",
        "v - logsumexp(v) | below inf",
        "M + N - logsumexp(M, axis=0, keepdims=True) | below inf",
    ),
)
def difference_to_log_softmax(ctx: Context, node: Apply) -> Replacement:
    for v in node.inputs:
        total = negated(v)
        inner, kept = (None, False) if total is None else reduction(total, LogSumExp)
        if inner is None or not (kept or v.type.ndim == 0) or inner.inputs[0] not in node.inputs:
            continue
        x = inner.inputs[0]
        new = LogSoftmax(axis=inner.op.axis)(x)
        rest = [w for w in node.inputs if w is not v and w is not x]
        return like(node, functions.add(new, *rest) if rest else new)
    return None


@rule(
    "exp(x - max) / sum(exp(x - max)) -> softmax(x)",
    "Softmax | LogSoftmax(x := add(*terms), axis=axes)",
    law="finite",
    phase="stabilize",
    tags=("local_softmax_stabilize",),
    tested_on=(
        "special.softmax(M - M.max(axis=1, keepdims=True), axis=1)",
        "special.log_softmax(v + s, axis=0)",
    ),
)
def shifted_softmax(
    node: Apply, x: TensorVariable, terms: Sequence[Variable], axes: tuple[int, ...]
) -> Replacement:
    """Remove terms that are constant along the axes: they cancel."""
    moving = [v for v in terms if not all(v.type.broadcastable[a] for a in axes)]
    if len(moving) == len(terms) or not moving:
        return None
    rest = functions.add(*moving) if len(moving) > 1 else moving[0]
    return node.op(rest) if rest.type == x.type else None
