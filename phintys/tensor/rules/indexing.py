"""Reads and writes of parts."""

from __future__ import annotations

from typing import Any

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import rule
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import functions
from phintys.tensor.index_list import literal
from phintys.tensor.index_ops import AdvancedIncSubtensor, IncSubtensor, Subtensor
from phintys.tensor.rules.fills import fill_number
from phintys.tensor.shape import MakeVector


def _increment(v: Variable) -> Apply | None:
    """The node that adds something to a part of a tensor, if ``v`` is its result."""
    node = v.owner
    if node is None or not isinstance(node.op, IncSubtensor | AdvancedIncSubtensor):
        return None
    op = node.op
    return None if op.set_instead_of_inc or getattr(op, "ignore_duplicates", False) else node


@rule("a + inc(0, b, i) + inc(0, c, j) -> inc(inc(a, b, i), c, j)", ops=[TABLE["add"]],
      phase="specialize", law="rounding")  # fmt: skip
def chain_increments(ctx: Any, node: Apply) -> Any:
    """One tensor is written, part after part, instead of one tensor of zeros per part.

    This is the gradient of many indexed reads.
    """
    out = node.outputs[0].type
    parts: list[Apply] = []
    rest: list[Variable] = []
    for v in node.inputs:
        inc = _increment(v)
        fits = inc is not None and v.type == out and ctx.single_use(v)
        if fits and fill_number(inc.inputs[0]) == 0:  # type: ignore[union-attr]
            parts.append(inc)  # type: ignore[arg-type]
        else:
            rest.append(v)
    base = rest[0] if len(rest) == 1 else functions.add(*rest) if rest else None
    if base is not None and base.type != out:
        return None
    if not parts or (base is None and len(parts) < 2):
        return None
    if base is None:
        base, parts = parts[0].outputs[0], parts[1:]
    for inc in parts:
        base = inc.op(base, *inc.inputs[1:])
    return base


@rule("vector(a, b, ...)[i] -> its item", ops=[Subtensor], law="exact")
def item_of_vector(ctx: Any, node: Apply) -> Any:
    x = node.inputs[0]
    if x.owner is None or not isinstance(x.owner.op, MakeVector) or node.outputs[0].type.ndim:
        return None
    i = literal(node.inputs[1])
    if i is None or not -len(x.owner.inputs) <= i < len(x.owner.inputs):
        return None
    item = x.owner.inputs[i]
    return item if item.type.dtype == x.type.dtype else item.astype(x.type.dtype)


@rule("f(x, y)[i] -> f(x[i], y[i])", ops=[Subtensor], law="drops_errors", tags=("shape_unsafe",),
      phase="specialize")  # fmt: skip
def lift_subtensor(ctx: Any, node: Apply) -> Any:
    """Indexing an elementwise result that nothing else uses: only what is read is computed."""
    x, *indices = node.inputs
    inner = x.owner
    if inner is None or not hasattr(inner.op, "inplace_pattern") or not ctx.single_use(x):
        return None
    if any(v.type.broadcastable != x.type.broadcastable for v in inner.inputs):
        if not all(all(v.type.broadcastable) for v in inner.inputs
                   if v.type.broadcastable != x.type.broadcastable):  # fmt: skip
            return None
    if len(inner.outputs) != 1:
        return None
    return inner.op(*(_indexed(node, v, x, indices) for v in inner.inputs))


def _indexed(node: Apply, v: Variable, x: Variable, indices: Any) -> Any:
    if v.type.broadcastable == x.type.broadcastable:
        return node.op(v, *indices)
    rank = node.outputs[0].type.ndim
    return v.dimshuffle(["x"] * rank)  # every axis has length 1
