"""Rules for fills: `second` and `Alloc`, which broadcast a value to a shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from phintys.graph.op import Op
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.op import TABLE, ScalarOp
from phintys.tensor.aliases import Place
from phintys.tensor.creation import Alloc
from phintys.tensor.elemwise import Elemwise, dimshuffle, functions
from phintys.tensor.lengths import are_of_one_array, is_plain_length, jointly_checked
from phintys.tensor.rules.match import number, same_shape, scalar_op_name, some
from phintys.tensor.rules.powers import may_fail
from phintys.tensor.shape import length, product, shape_tuple
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorVariable

SECOND = TABLE["second"]


def filled_value(v: Variable) -> Variable | None:
    """The value that the fill ``v`` broadcasts, with the rank of ``v``; None if it is no fill."""
    if v.owner is None:
        return None
    if isinstance(v.owner.op, Alloc):
        value = v.owner.inputs[0]
        new = v.type.ndim - value.type.ndim
        return dimshuffle(value, ["x"] * new + [*range(value.type.ndim)])
    return v.owner.inputs[1] if scalar_op_name(v.owner) == "second" else None


def has_plain_lengths(v: Variable) -> bool:
    """Whether the lengths of the fill ``v`` need no check, because they are those of other arrays.

    Other integers are checked when the fill is computed, so such a fill must not be removed
    together with its lengths.  See `phintys.tensor.lengths`.
    """
    return all(map(is_plain_length, _requested_lengths(v)))


def count(v: Variable, axes: Iterable[int]) -> Variable:
    """The number of elements of the fill ``v`` along axes.

    It is checked if the lengths come from several arrays: their product may not fit in 64 bits,
    and the fill, which would have been checked, is removed.
    """
    lengths: Sequence[Variable] = shape_tuple(v)
    if not are_of_one_array(_requested_lengths(v)):
        lengths = jointly_checked(lengths)
    return product([lengths[a] for a in axes])


def _requested_lengths(v: Variable) -> Sequence[Variable]:
    """The lengths of the `Alloc` that gives the fill ``v`` its shape; () if there is none."""
    node = v.owner
    while node is not None and _is_fill(node.op):
        if type(node.op) is Alloc:
            return node.inputs[1:]
        node = node.inputs[0].owner
    return ()


def _is_fill(op: Op) -> bool:
    return type(op) is Alloc or (type(op) is Elemwise and op.scalar_op is SECOND)


def filled_as(v: Variable, value: Variable) -> Variable:
    """``value`` broadcast to the shape of the fill ``v``."""
    node = v.owner
    assert node is not None
    if isinstance(node.op, Alloc):
        return node.op(value, *node.inputs[1:])
    return functions.second(node.inputs[0], value)


def fill_number(v: Variable) -> Any:
    """The number that all elements of a constant or of a fill of a constant equal, or None."""
    while True:
        k = number(v)
        node = v.owner
        if k is not None or node is None:
            return k
        if isinstance(node.op, Alloc):
            v = node.inputs[0]
        elif scalar_op_name(node) == "second":
            v = node.inputs[1]
        else:
            return None


@rule(
    "second(x, v) -> v",
    "second(x, v)",
    law="drops_errors",
    tags=("local_useless_fill", "cleanup", "shape_unsafe"),
    tested_on=("second(v, w)", "second(M, second(N, 1.5))", "second(v, alloc(s, n))"),
)
def useless_second(node: Apply, x: TensorVariable, v: TensorVariable) -> Replacement:
    """Applies where v already has the shape of the result; other lengths would be an error."""
    if v.type.broadcastable != node.outputs[0].type.broadcastable:
        return None
    inner = filled_value(v)
    if inner is None or not _covers(x, v):
        return v
    return functions.second(x, inner)


def _covers(x: Variable, v: Variable) -> bool:
    """Whether ``x`` is broadcastable only along axes along which ``v`` is broadcastable too."""
    return all(b or not a for a, b in zip(x.type.broadcastable, v.type.broadcastable))


@rule(
    "f(fill(v), y) -> f(v, y), f(fill(v)) -> fill(f(v))",
    ops=[ScalarOp],
    where=some("second", Alloc),
    law="drops_errors",
    tags=(
        "local_second_sink",
        "local_fill_sink",
        "local_elemwise_alloc",
        "local_alloc_unary",
        "cleanup",
        "shape_unsafe",
    ),
    tested_on=(
        "second(v, s) + w",
        "alloc(s, n) * w",
        "exp(second(v, s))",
        "exp(alloc(s, n, 2))",
        "second(v, s) * t",
        "M + alloc(v, 2, n)",
    ),
)
def sink_fills(ctx: Context, node: Apply) -> Replacement:
    """Replace fills by their values if another operand has the shape, else fill the result."""
    for v in node.inputs:
        if v.owner is not None and _is_fill(v.owner.op):
            break
    else:
        return None
    if type(node.op) is not Elemwise or node.op.scalar_op is SECOND or len(node.outputs) != 1:
        return None
    values = [_value_to_sink(v) for v in node.inputs]
    out = node.outputs[0].type
    inputs = list(node.inputs)
    for i, value in enumerate(values):
        if value is None:
            continue
        trial = [*inputs[:i], value, *inputs[i + 1 :]]
        if _broadcastable(trial) == out.broadcastable:
            inputs = trial
    if inputs != node.inputs:
        return node.op(*inputs)
    return None if _may_fail(node) else _fill_last(node, values, out)


def _may_fail(node: Apply) -> bool:
    """Whether an element may be an error; without the fill, which may be empty, there are more."""
    return scalar_op_name(node) == "pow" and may_fail(node.inputs[1])


def _value_to_sink(v: Variable) -> Variable | None:
    """The value of the fill ``v``; None if it is no fill, or only ``v`` is known to have length 1.

    An axis of unknown length is never broadcast, even if it has length 1 in a call.
    """
    value = filled_value(v)
    return value if value is not None and _covers(v, value) else None


def _fill_last(node: Apply, values: list[Variable | None], out: TensorType) -> Variable | None:
    """A fill of the function of the values, if one fill has the shape of the result; else None."""
    for v, value in zip(node.inputs, values):
        if value is None or v.type.broadcastable != out.broadcastable:
            continue
        others = [w if other is None else other for w, other in zip(node.inputs, values)]
        if _broadcastable(others) != out.broadcastable:
            return filled_as(v, node.op(*others))
    return None


def _broadcastable(operands: Sequence[Variable]) -> tuple[bool, ...]:
    return tuple(all(column) for column in zip(*(v.type.broadcastable for v in operands)))


@rule(
    "alloc(v, lengths of v) -> v",
    "Alloc(value, *_)",
    law="drops_errors",
    tags=("local_useless_alloc", "cleanup", "shape_unsafe"),
    tested_on=("alloc(v, v.shape[0])", "alloc(v, n)", "alloc(M, 2, n)"),
)
def useless_alloc(node: Apply, value: TensorVariable) -> Replacement:
    return value if same_shape(value, node.outputs[0]) else None


@rule(
    "alloc(alloc(v)) -> alloc(v)",
    "Alloc(filled := second | Alloc(*_), *lengths)",
    law="drops_errors",
    tags=("local_merge_alloc", "cleanup", "shape_unsafe"),
    tested_on=("alloc(alloc(s, n), n, n)", "alloc(second(v, s), n, n)"),
)
def merge_allocs(node: Apply, filled: TensorVariable, lengths: Sequence[Variable]) -> Replacement:
    value = filled_value(filled)
    assert value is not None
    known = filled.type.broadcastable[filled.type.ndim - value.type.ndim :]
    if any(k and not v for k, v in zip(known, value.type.broadcastable)):
        return None  # the outer fill may broadcast an axis; only the inner one says it has length 1
    return node.op(value, *lengths)


@rule(
    "alloc(expand_dims(v)) -> alloc(v)",
    "Alloc(DimShuffle(v, is_left_expand_dims=True), *lengths)",
    law="exact",
    tags=("local_alloc_dimshuffle", "cleanup"),
    tested_on=("alloc(s.dimshuffle('x'), n)", "alloc(v.dimshuffle('x', 0), 2, n)"),
)
def alloc_of_expanded(node: Apply, v: TensorVariable, lengths: Sequence[Variable]) -> Replacement:
    """`Alloc` adds the axes on the left itself."""
    return node.op(v, *lengths)


@rule(
    "dimshuffle(fill(v)) -> alloc(v)",
    "DimShuffle(filled := Alloc(_, *lengths), new_order=order, drop=[])",
    law="drops_errors",
    tags=(
        "local_alloc_sink_dimshuffle",
        "local_dimshuffle_alloc",
        "cleanup",
    ),
    tested_on=("alloc(s, n, 3).T", "alloc(s, n).dimshuffle(0, 'x')"),
)
def dimshuffle_of_alloc(
    filled: TensorVariable, lengths: Sequence[Variable], order: tuple[Place, ...]
) -> Replacement:
    value = filled_value(filled)
    assert value is not None
    return Alloc()(dimshuffle(value, order), *(1 if o == "x" else lengths[o] for o in order))


@rule(
    "second(x, v) -> alloc(v, lengths of x)",
    "second(x, v)",
    phase="specialize",
    law="drops_errors",
    tags=("local_second_to_alloc", "local_fill_to_alloc", "shape_unsafe"),
    tested_on=("second(v, s)", "second(M, v)"),
)
def second_to_alloc(node: Apply, x: TensorVariable, v: TensorVariable) -> Replacement:
    """The lengths of x can be known without computing x."""
    out = node.outputs[0].type
    axes = enumerate(zip(x.type.broadcastable, out.shape))
    return Alloc()(v, *(length(v if short and n != 1 else x, i) for i, (short, n) in axes))
