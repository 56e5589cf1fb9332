"""Values inside a loop that its outputs do not show, from a second run with more outputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from phintys.graph.traversal import ancestors, toposort
from phintys.graph.variable import Apply, Constant
from phintys.loop.parts import Part, apply_parts, parts_of
from phintys.tensor.elemwise import scalar_op_name
from phintys.tensor.index_ops import Subtensor
from phintys.tensor.shape import Shape, Shape_i
from phintys.tensor.type import TensorType


def recorded(
    op: Any, inputs: Sequence[Any], inner: Sequence[Any], values: Sequence[Any]
) -> list[Any]:
    """For each of ``values``, functions of the inner inputs ``inner``, its values at all steps.

    Rows of states and outputs that the second run computes once more are merged with those of the
    first, or dropped, by rewriting.
    """
    if not values:
        return []
    outputs = op.bind(inner)
    condition = outputs[-1] if op.info.as_while else None
    parts = parts_of(op, inputs, inner, outputs)
    parts += [Part("nit_sot", inputs[0], [], [v]) for v in values]
    return apply_parts(op, inputs[0], parts, condition)[-len(values) :]


def to_record(
    expressions: Sequence[Any], lost: Collection[Any], inner: Collection[Any]
) -> list[Any] | None:
    """The tensors to record so that ``expressions`` do not need the inner inputs ``lost``.

    These are the lost inputs that are tensors, and the first tensors that are computed from others,
    such as the draws from a random generator.  None if there are no such tensors: something else
    than the loop's step needs the input.
    """
    used = set(ancestors(expressions))
    found = [v for v in inner if v in lost and v in used and isinstance(v.type, TensorType)]
    objects = {v for v in lost if v in used}.difference(found)
    of_step = set(inner)
    for node in toposort(expressions) if objects else ():
        within = all(v in of_step or isinstance(v, Constant) for v in node.inputs)
        if within:
            of_step.update(node.outputs)
        if objects.isdisjoint(node.inputs):
            continue
        if not within:
            return None
        for v in node.outputs:
            if isinstance(v.type, TensorType):
                found += [v] if v in used else []
            else:
                objects.add(v)
    return None if objects.intersection(expressions) else found


def shapes_from(expressions: Sequence[Any], state: Any, like: Any) -> dict[Any, Any]:
    """Replacements in ``expressions``: the shape of a state becomes that of ``like``."""
    found: dict[Any, Any] = {}
    for node in toposort(expressions):
        first, *others = node.inputs or [None]
        of_shape = scalar_op_name(node) == "second" or isinstance(node.op, Shape | Shape_i)
        if of_shape and first is state and state not in others:
            new = node.op.make_node(like, *others).outputs[0]
            if new.type == node.outputs[0].type:
                found[node.outputs[0]] = new
    return found


def elements_of(expressions: Sequence[Any], state: Any, inner: Collection[Any]) -> list[Any]:
    """The elements, or rows, of a state that ``expressions`` need, at positions known to the step.

    There are none if they need more of the state.
    """
    found: list[Any] = []
    of_step = set(inner)
    for node in toposort(expressions):
        if all(v in of_step or isinstance(v, Constant) for v in node.inputs):
            of_step.update(node.outputs)
        if state in node.inputs:
            if not _reads_element(node, state) or node.outputs[0] not in of_step:
                return []
            found += node.outputs
    return [] if state in expressions else found


def _reads_element(node: Apply, state: Any) -> bool:
    """Whether a node reads a part of a state, with a position along at least one axis."""
    from phintys.tensor.rules.reading import index_of

    if type(node.op) is not Subtensor or state in node.inputs[1:]:
        return False
    index = index_of(node)
    positions = [e for e in index if not isinstance(e, slice)]
    return bool(positions) and all(e == slice(None) for e in index if isinstance(e, slice))
