"""Forward mode: from the tangents of variables to those of what depends on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.errors import DisconnectedInputError, MethodNotDefined
from phintys.gradient.reverse import OnDisconnected, ReturnDisconnected, _disconnected, pullback
from phintys.graph.origin import inherit
from phintys.graph.traversal import toposort
from phintys.graph.type import DisconnectedType, disconnected_type
from phintys.graph.variable import Apply, Variable


def pushforward(
    f: Variable | Sequence[Variable],
    wrt: Variable | Sequence[Variable],
    tangents: Any,
    disconnected_outputs: OnDisconnected = "raise",
    return_disconnected: ReturnDisconnected = "zero",
    use_op_pushforward: bool = True,
) -> Any:
    """The product of the Jacobian of ``f`` with ``tangents`` (a Jacobian-vector product).

    Every node is differentiated by its op's ``pushforward``; an op without one by two pullbacks.  With
    ``use_op_pushforward=False`` the whole product is computed by two pullbacks.  The result has the form of ``f``.

    >>> import phintys, phintys.tensor as pt
    >>> x, t = pt.dvector("x"), pt.dvector("t")
    >>> phintys.pushforward(x**2, x, t).eval({x: [1.0, 2.0], t: [1.0, 10.0]})
    array([ 2., 40.])
    """
    outputs = [f] if isinstance(f, Variable) else list(f)
    inputs = [wrt] if isinstance(wrt, Variable) else list(wrt)
    given = list(tangents) if isinstance(tangents, list | tuple) else [tangents]
    if len(inputs) != len(given):
        raise ValueError(f"{len(inputs)} variables need as many tangents, not {len(given)}.")
    start = {v: _tangent(v, t) for v, t in zip(inputs, given)}
    found = _sweep(outputs, start, use_op_pushforward)
    results = [
        _disconnected("; ".join(map(str, inputs)), out, disconnected_outputs, return_disconnected)
        if t is None or isinstance(t.type, DisconnectedType)
        else t
        for out, t in zip(outputs, found)
    ]
    if isinstance(f, Variable):
        return results[0]
    return tuple(results) if isinstance(f, tuple) else results


def Rop(
    f: Any,
    wrt: Any,
    eval_points: Any,
    disconnected_outputs: OnDisconnected = "raise",
    return_disconnected: ReturnDisconnected = "zero",
    use_op_rop_implementation: bool = True,
) -> Any:
    """Older name of `pushforward`."""
    return pushforward(
        f, wrt, eval_points, disconnected_outputs, return_disconnected, use_op_rop_implementation
    )


def _tangent(v: Variable, t: Any) -> Variable:
    t = t if isinstance(t, Variable) else v.type.filter_variable(t)
    if getattr(t.type, "ndim", None) != getattr(v.type, "ndim", None):
        raise ValueError(f"The tangent of {v} (type {v.type}) has type {t.type}: the ranks differ.")
    return t


def _sweep(outputs: Sequence[Variable], start: dict[Variable, Any], by_op: bool) -> list[Any]:
    tangents: dict[Variable, Any] = dict(start)
    for node in toposort(outputs, blockers=start):
        given = [tangents.get(v) for v in node.inputs]
        if all(t is None for t in given):
            continue
        absent = [disconnected_type() if t is None else t for t in given]
        with inherit(node.origin):
            found = _node_pushforward(node, absent, by_op)
        for out, t in zip(node.outputs, found):
            if not isinstance(t.type, DisconnectedType):
                tangents[out] = t
    return [tangents.get(out) for out in outputs]


def _node_pushforward(node: Apply, tangents: list[Any], by_op: bool) -> Sequence[Any]:
    if by_op:
        try:
            return node.op.pushforward(node.inputs, node.outputs, tangents)
        except MethodNotDefined:
            pass
    return [_double_pullback(node, out, tangents) for out in node.outputs]


def _double_pullback(node: Apply, out: Variable, tangents: list[Any]) -> Any:
    """J t as the derivative of <v J, t> by v: the pullback is linear in its cotangent v."""
    given = [
        (x, t) for x, t in zip(node.inputs, tangents) if not isinstance(t.type, DisconnectedType)
    ]
    if getattr(out.type, "dtype", "float64")[0] in "iub":
        return disconnected_type()
    v = out.type("v")
    inputs = [x for x, _ in given]
    back = pullback(out, inputs, v, disconnected_inputs="ignore", consider_constant=None)
    try:
        return pullback(back, v, [t for _, t in given])
    except DisconnectedInputError:
        return disconnected_type()
