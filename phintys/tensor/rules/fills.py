"""Values that are repeated to a shape (`second`, `Alloc`), and choices (`switch`)."""

from __future__ import annotations

from typing import Any

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import rule
from phintys.scalar.op import TABLE, ScalarOp
from phintys.tensor.creation import Alloc
from phintys.tensor.elemwise import Elemwise, cast, dimshuffle, functions
from phintys.tensor.rules.match import applied, number, scalar_op_name

SECOND, SWITCH, MUL, DIV = (TABLE[n] for n in ("second", "switch", "mul", "true_div"))


def filled_value(v: Variable) -> Any:
    """What a fill repeats, in the rank of the fill; None if ``v`` is no fill."""
    if v.owner is None:
        return None
    if isinstance(v.owner.op, Alloc):
        value = v.owner.inputs[0]
        return dimshuffle(
            value, ["x"] * (v.type.ndim - value.type.ndim) + [*range(value.type.ndim)]
        )
    return v.owner.inputs[1] if scalar_op_name(v.owner) == "second" else None


def fill_number(v: Variable) -> Any:
    """The number that every element is known to be (a constant or a fill of one), or None."""
    k = number(v)
    if k is not None:
        return k
    value = filled_value(v)
    while value is not None:
        k = number(value)
        if k is not None:
            return k
        value = filled_value(value)
    return None


@rule("second(x, v) -> v", ops=[SECOND], law="drops_errors", tags=("shape_unsafe",))
def useless_second(ctx: Any, node: Apply) -> Any:
    """Where v has the shape already: the lengths of x and v agree, or the program is wrong."""
    x, v = node.inputs
    out = node.outputs[0].type
    if v.type.dtype == out.dtype and v.type.broadcastable == out.broadcastable:
        return v
    inner = filled_value(v)
    if inner is not None and v.type.broadcastable == out.broadcastable:
        return None
    if inner is not None and _covers(x, v):
        return functions.second(x, inner)
    return None


def _covers(x: Variable, v: Variable) -> bool:
    """Whether ``x`` is at least as large as ``v`` along every axis."""
    return all(b or not a for a, b in zip(x.type.broadcastable, v.type.broadcastable))


@rule("f(second(x, v), y) -> f(v, y)", ops=[ScalarOp], law="drops_errors", tags=("shape_unsafe",))
def sink_fills(ctx: Any, node: Apply) -> Any:
    """A fill need not be made where another operand has the shape."""
    if type(node.op) is not Elemwise or node.op.scalar_op is SECOND:
        return None
    values = [filled_value(v) for v in node.inputs]
    if not any(v is not None for v in values) or len(node.outputs) != 1:
        return None
    out = node.outputs[0].type
    inputs = list(node.inputs)
    for i, value in enumerate(values):
        if value is None:
            continue
        trial = [*inputs[:i], value, *inputs[i + 1 :]]
        patterns = [v.type.broadcastable for v in trial]
        if tuple(all(column) for column in zip(*patterns)) == out.broadcastable:
            inputs = trial
    if inputs != node.inputs:
        return node.op(*inputs)
    if len(inputs) == 1:
        return functions.second(node.inputs[0], node.op(values[0]))
    return None


@rule("useless switch", ops=[SWITCH], law="exact")
def useless_switch(ctx: Any, node: Apply) -> Any:
    condition, a, b = node.inputs
    out = node.outputs[0].type
    k = fill_number(condition)
    chosen = a if (k is not None and k) or a is b else b if k is not None else None
    if chosen is None:
        return _double_condition(condition, a, b, out)
    chosen = cast(chosen, out.dtype)
    for v in node.inputs:
        if chosen.type.broadcastable == out.broadcastable:
            break
        chosen = functions.second(v, chosen)
    return chosen


def _double_condition(condition: Variable, a: Variable, b: Variable, out: Any) -> Any:
    """``switch(c != 0, a, b)`` -> ``switch(c, a, b)`` for a boolean c."""
    node = applied(condition, "neq")
    if node is None or node.inputs[0].type.dtype != "bool" or number(node.inputs[1]) != 0:
        return None
    if node.inputs[0].type.broadcastable != condition.type.broadcastable:
        return None
    return functions.switch(node.inputs[0], a, b)


@rule("switch(c, a, 0) * b -> switch(c, a * b, 0)", ops=[MUL, DIV], law="finite")
def sink_switch(ctx: Any, node: Apply) -> Any:
    """Keeps gradients of masked branches free of ``0 * inf``: what is not chosen does not count."""
    candidates = node.inputs if scalar_op_name(node) == "mul" else node.inputs[:1]
    for i, v in enumerate(candidates):
        switch = applied(v, "switch")
        if switch is None or not ctx.single_use(v):
            continue
        condition, a, b = switch.inputs
        if fill_number(a) != 0 and fill_number(b) != 0:
            continue
        dtype = node.outputs[0].type.dtype
        branches = [
            _with(node, i, branch) if fill_number(branch) != 0 else _zero(dtype, branch)
            for branch in (a, b)
        ]
        return functions.switch(condition, *branches)
    return None


def _with(node: Apply, i: int, new: Variable) -> Any:
    return node.op(*(new if k == i else v for k, v in enumerate(node.inputs)))


def _zero(dtype: str, branch: Variable) -> Any:
    from phintys.tensor.rules.algebra import literal

    return literal(0, dtype, branch.type.ndim)


@rule("cast(cast(x)) -> cast(x)", ops=[type(TABLE["cast_float64"])], law="exact")
def merge_casts(ctx: Any, node: Apply) -> Any:
    """A cast to the same dtype, or one behind another that loses nothing."""
    (x,) = node.inputs
    target = node.outputs[0].type.dtype
    if x.type.dtype == target:
        return x
    if x.owner is None or type(x.owner.op) is not Elemwise:
        return None
    inner = x.owner.op.scalar_op
    if type(inner) is not type(node.op.scalar_op):
        return None
    (source,) = x.owner.inputs
    from phintys.scalar import dtypes

    lossless = dtypes.upcast(source.type.dtype, x.type.dtype) == x.type.dtype
    if source.type.dtype != "bool" and dtypes.kind(x.type.dtype) == "b":
        return None
    return cast(source, target) if lossless else None
