"""Tensors that are written element by element along an axis, such as a stack of a few vectors.

``log(stack([p, 1 - p], axis=-1)) + x[:, None]`` has the elements ``log(p) + x`` and
``log(1 - p) + x`` along its last axis.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from phintys.graph.variable import Apply, Variable
from phintys.tensor.dominant import gaps, selection
from phintys.tensor.elemwise import DimShuffle, Elemwise, dimshuffle, functions
from phintys.tensor.join import Join
from phintys.tensor.reduce import Sum
from phintys.tensor.shape import MakeVector
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax

#: Elements along an axis, at most, and nodes that are looked at.
MOST_ELEMENTS, MOST_NODES = 4, 60


class Part(NamedTuple):
    """A variable, and an axis of it."""

    of: Variable
    axis: int


class Share(NamedTuple):
    """What is known of an element of the result of `softmax`: its logarithm, and the node."""

    logarithm: Variable
    node: Apply


#: Elements of results of `softmax`.
Shares = dict[Variable, Share]
#: The elements of a part; one if all are the same.
Found = dict[Part, list[Variable]]


def elements(
    x: Variable, axis: int, kept: Collection[Variable], shares: Shares
) -> list[Variable] | None:
    """The elements of ``x`` along an axis, without that axis; None if they are not written so.

    Parameters
    ----------
    x
        a tensor
    axis
        not negative
    kept
        variables that are not looked through
    shares
        receives the elements of softmax ops
    """
    found: Found = {}
    stack = [(Part(x, axis), False)]
    while stack:
        part, done = stack.pop()
        if part in found:
            continue
        if done:
            made = _made(part, found, shares)
            if made is None or len(found) > MOST_NODES:
                return None
            found[part] = made
            continue
        inner = _inner(part, kept)
        if inner is None:
            return None
        stack.append((part, True))
        stack.extend((p, False) for p in inner)
    result = found[Part(x, axis)]
    return result if len(result) > 1 else None


def _inner(part: Part, kept: Collection[Variable]) -> list[Part] | None:
    """The parts whose elements make those of ``part``; None if these are not known."""
    v, axis = part
    if v.type.broadcastable[axis]:
        return []
    node = v.owner
    if node is None or v in kept:
        return None
    op = node.op
    if type(op) is MakeVector:
        return []
    if type(op) is Join and op.axis == axis:
        return [] if all(u.type.broadcastable[axis] for u in node.inputs) else None
    if type(op) in (Join, Elemwise):
        return [Part(u, axis) for u in node.inputs]
    if type(op) is DimShuffle:
        return [Part(node.inputs[0], int(op.new_order[axis]))]
    if type(op) in (LogSumExp, Sum):
        return [Part(node.inputs[0], _axis_before(axis, axes_of(node)))]
    if type(op) in (Softmax, LogSoftmax) and axes_of(node) == (axis,):
        return [Part(node.inputs[0], axis)]
    return None


def _made(part: Part, found: Found, shares: Shares) -> list[Variable] | None:
    v, axis = part
    if v.type.broadcastable[axis]:
        return [_dropped(v, axis)]
    node = v.owner
    assert node is not None, "it has been looked at"
    op = node.op
    if type(op) is MakeVector:
        return _few(list(node.inputs))
    if type(op) is Join and op.axis == axis:
        return _few([_dropped(u, axis) for u in node.inputs])
    inner = _inner(part, ())
    assert inner is not None, "it has been looked at"
    columns = [found[p] for p in inner]
    count = max([len(column) for column in columns])
    if any(len(column) not in (1, count) for column in columns):
        return None
    if type(op) in (Softmax, LogSoftmax):
        return None if count == 1 else _shares(node, columns[0], shares)
    rows = [[column[k % len(column)] for column in columns] for k in range(count)]
    return [_rebuilt(node, axis, row) for row in rows]


def _few(found: list[Variable]) -> list[Variable] | None:
    return found if 1 < len(found) <= MOST_ELEMENTS else None


def _rebuilt(node: Apply, axis: int, inputs: list[Variable]) -> Variable:
    """What the op gives for inputs without an axis, that of its result."""
    op = node.op
    if type(op) is Elemwise:
        return op(*inputs)
    if type(op) is Join:
        return Join(op.axis - (axis < op.axis))(*inputs)
    if type(op) is DimShuffle:
        (x,) = inputs
        source = int(op.new_order[axis])
        rest = [o for k, o in enumerate(op.new_order) if k != axis]
        return dimshuffle(x, [o if o == "x" else int(o) - (int(o) > source) for o in rest])
    axes = axes_of(node)
    source = _axis_before(axis, axes)
    reduced = [a - (a > source) for a in axes]
    if type(op) is LogSumExp:
        return LogSumExp(axis=reduced)(*inputs)
    return Sum(axis=reduced, dtype=op.dtype, acc_dtype=op.acc_dtype)(*inputs)


def _shares(node: Apply, logits: list[Variable], shares: Shares) -> list[Variable]:
    """The elements of softmax, or of its logarithm, from those of the argument."""
    apart = gaps(logits, selection(logits))
    sizes = [functions.exp_diff(v, 0) for v in apart]
    total = functions.add(*sizes)
    parts: list[Variable] = [functions.true_div(v, total) for v in sizes]
    logarithms: list[Variable] = [functions.sub(v, functions.log(total)) for v in apart]
    shares.update({v: Share(log, node) for v, log in zip(parts, logarithms)})
    return logarithms if type(node.op) is LogSoftmax else parts


def axes_of(node: Apply) -> tuple[int, ...]:
    """The axes of a reduction, or of softmax."""
    op = node.op
    found = op.axes(node) if type(op) is Sum else op.axis
    return tuple(range(node.inputs[0].type.ndim)) if found is None else tuple(found)


def _axis_before(axis: int, reduced: tuple[int, ...]) -> int:
    """The axis that becomes ``axis`` when others are reduced."""
    for a in sorted(reduced):
        axis += a <= axis
    return axis


def _dropped(v: Variable, axis: int) -> Variable:
    """``v`` without an axis of length 1."""
    node = v.owner
    if node is not None and type(node.op) is DimShuffle and node.op.new_order[axis] == "x":
        order = node.op.new_order
        return dimshuffle(node.inputs[0], [*order[:axis], *order[axis + 1 :]])
    return dimshuffle(v, [k for k in range(v.type.ndim) if k != axis])
