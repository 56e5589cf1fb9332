"""Axes, shapes, reductions and the functions of rows: what changes the form of a computation."""

from __future__ import annotations

from typing import Any

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import rule
from phintys.scalar.op import TABLE
from phintys.tensor.convert import constant
from phintys.tensor.elemwise import DimShuffle, Elemwise, dimshuffle, functions
from phintys.tensor.reduce import Max, Sum, keep_dims, normalize_axes
from phintys.tensor.rules.match import applied
from phintys.tensor.reshape import Reshape
from phintys.tensor.shape import MakeVector, Shape, Shape_i, SpecifyShape, length
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax

# ----------------------------------------------------------------------------- axes


@rule("dimshuffle(dimshuffle(x)) -> dimshuffle(x)", ops=[DimShuffle], law="exact")
def merge_dimshuffles(ctx: Any, node: Apply) -> Any:
    (x,) = node.inputs
    order = node.op.new_order
    if order == tuple(range(x.type.ndim)):
        return x
    if x.owner is None or not isinstance(x.owner.op, DimShuffle):
        return None
    inner = x.owner.op.new_order
    return dimshuffle(x.owner.inputs[0], ["x" if o == "x" else inner[o] for o in order])


@rule("dimshuffle(f(x, y)) -> f(dimshuffle(x), dimshuffle(y))", ops=[DimShuffle], law="exact")
def lift_dimshuffle(ctx: Any, node: Apply) -> Any:
    """Moves axes towards the inputs, where they cost nothing and hide no pattern."""
    (x,) = node.inputs
    inner = x.owner
    if inner is None or type(inner.op) is not Elemwise or not ctx.single_use(x):
        return None
    if node.op.drop or len(inner.outputs) != 1:
        return None
    return inner.op(*(dimshuffle(v, node.op.new_order) for v in inner.inputs))


# --------------------------------------------------------------------------- shapes


@rule("shape(x) -> vector of lengths", ops=[Shape], law="drops_errors", tags=("infer_shape",))
def shape_entries(ctx: Any, node: Apply) -> Any:
    (x,) = node.inputs
    if not hasattr(x.type, "ndim"):
        return None
    if x.type.ndim == 0:
        return constant([], dtype="int64")
    return MakeVector("int64")(*(length(x, i) for i in range(x.type.ndim)))


@rule("length of a result -> from lengths of inputs", ops=[Shape_i], law="drops_errors",
      tags=("infer_shape",))  # fmt: skip
def infer_length(ctx: Any, node: Apply) -> Any:
    """The length of a result without computing the result."""
    (x,) = node.inputs
    known = getattr(x.type, "shape", None)
    if known is not None and known[node.op.i] is not None:
        return constant(known[node.op.i], dtype="int64")
    owner = x.owner
    if owner is None or owner.op.infer_shape is None:
        return None
    shapes = [_symbolic_shape(v) for v in owner.inputs]
    if None in shapes:
        return None
    found = owner.op.infer_shape(owner, shapes)[x.index]
    if found is None:
        return None
    entry = found[node.op.i]
    if isinstance(entry, int):
        entry = constant(entry, dtype="int64")
    if (
        entry.owner is not None
        and isinstance(entry.owner.op, Shape_i)
        and entry.owner.inputs[0] is x
    ):
        return None
    return entry if entry.type.dtype == "int64" else entry.astype("int64")


def _symbolic_shape(v: Variable) -> Any:
    shape = getattr(v.type, "shape", None)
    return () if shape is None else tuple(length(v, i) for i in range(len(shape)))


@rule("specify_shape(x) -> x", ops=[SpecifyShape], law="exact")
def useless_specify_shape(ctx: Any, node: Apply) -> Any:
    """Where the type knows all that is asked for."""
    x = node.inputs[0]
    out = node.outputs[0].type
    asked = [n is None for n in out.shape]
    return (
        x
        if x.type == out and all(a or x.type.shape[i] is not None for i, a in enumerate(asked))
        else None
    )


@rule("reshape(reshape(x)) -> reshape(x)", ops=[Reshape], law="exact")
def merge_reshapes(ctx: Any, node: Apply) -> Any:
    x, shape = node.inputs
    if x.type.ndim == 1 and node.outputs[0].type.ndim == 1:
        return x
    if x.owner is not None and isinstance(x.owner.op, Reshape):
        return node.op(x.owner.inputs[0], shape)
    return None


# ------------------------------------------------------------------ functions of rows


@rule("log(sum(exp(x))) -> logsumexp(x)", ops=[TABLE["log"]], phase="stabilize", law="rounding",
      tested_on="rows")  # fmt: skip
def log_of_sum_of_exp(ctx: Any, node: Apply) -> Any:
    (total,) = node.inputs
    inner, kept = _reduction(total, Sum)
    if inner is None:
        return None
    exp = applied(inner.inputs[0], "exp")
    if exp is None or exp.outputs[0].type.dtype != node.outputs[0].type.dtype:
        return None
    axes = inner.op.axes(inner)
    out = LogSumExp(axis=axes)(exp.inputs[0])
    return keep_dims(out, axes) if kept else out


def _reduction(v: Variable, kind: type) -> tuple[Apply | None, bool]:
    """The reduction behind ``v``, and whether its axes are kept with length 1."""
    node = v.owner
    kept = False
    if node is not None and isinstance(node.op, DimShuffle) and not node.op.drop:
        inner = node.inputs[0].owner
        if inner is not None and isinstance(inner.op, kind):
            axes = inner.op.axes(inner)
            if keep_dims(node.inputs[0], axes).owner.op != node.op:
                return None, False
            node, kept = inner, True
    return (node, kept) if node is not None and isinstance(node.op, kind) else (None, False)


@rule("exp(x) / sum(exp(x)) -> softmax(x)", ops=[TABLE["true_div"]], phase="stabilize",
      law="rounding", tested_on="rows")  # fmt: skip
def recognise_softmax(ctx: Any, node: Apply) -> Any:
    top, below = node.inputs
    total, kept = _reduction(below, Sum)
    exp = applied(top, "exp")
    if total is None or exp is None or total.inputs[0] is not top:
        return None
    if not kept and total.op.axes(total) != tuple(range(top.type.ndim)):
        return None
    if exp.outputs[0].type.dtype != exp.inputs[0].type.dtype:
        return None
    return Softmax(axis=normalize_axes(total.op.axes(total), top.type.ndim))(exp.inputs[0])


@rule("log(softmax(x)) -> log_softmax(x)", ops=[TABLE["log"]], phase="stabilize", law="rounding",
      tested_on="rows")  # fmt: skip
def log_of_softmax(ctx: Any, node: Apply) -> Any:
    inner = node.inputs[0].owner
    if inner is None or not isinstance(inner.op, Softmax):
        return None
    return LogSoftmax(axis=inner.op.axis)(inner.inputs[0])


@rule("exp(log_softmax(x)) -> softmax(x)", ops=[TABLE["exp"]], phase="stabilize", law="rounding",
      tested_on="rows")  # fmt: skip
def exp_of_log_softmax(ctx: Any, node: Apply) -> Any:
    inner = node.inputs[0].owner
    if inner is None or not isinstance(inner.op, LogSoftmax):
        return None
    return Softmax(axis=inner.op.axis)(inner.inputs[0])


# ------------------------------------------------------------------------- reductions


@rule("reduce over axes of length 1 -> dimshuffle", ops=[Sum, Max], law="exact")
def reduce_broadcastable(ctx: Any, node: Apply) -> Any:
    (x,) = node.inputs
    axes = node.op.axes(node)
    if not axes and x.type.dtype == node.outputs[0].type.dtype:
        return x
    if not axes or not all(x.type.broadcastable[a] for a in axes):
        return None
    rest = [i for i in range(x.type.ndim) if i not in axes]
    return dimshuffle(x, rest).astype(node.outputs[0].type.dtype)


@rule("sum(c * x) -> c * sum(x)", ops=[Sum], law="rounding", tested_on="reals")
def pull_scalars_out_of_sums(ctx: Any, node: Apply) -> Any:
    """Factors that do not vary along the summed axes are applied once, to the sum."""
    (x,) = node.inputs
    product = applied(x, "mul")
    if product is None or not ctx.single_use(x) or x.type.dtype != node.outputs[0].type.dtype:
        return None
    axes = node.op.axes(node)
    fixed = [v for v in product.inputs if all(v.type.broadcastable[a] for a in axes)]
    varying = [v for v in product.inputs if v not in fixed]
    if not fixed or not axes or not varying:
        return None
    inside = varying[0] if len(varying) == 1 else functions.mul(*varying)
    if any(inside.type.broadcastable[a] for a in axes) or inside.type.dtype != x.type.dtype:
        return None
    rest = [i for i in range(x.type.ndim) if i not in axes]
    outside = [dimshuffle(v, rest) for v in fixed]
    return functions.mul(*outside, node.op(inside))
