"""Asking an op for derivatives: what it is given, and checks of what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.errors import MethodNotDefined
from phintys.graph.origin import describe
from phintys.graph.type import DisconnectedType, NullType
from phintys.graph.variable import Apply, Variable

_VERBS = {"pullback": "gradient", "pushforward": "tangent"}


def is_null(g: Any) -> bool:
    """Whether a derivative is of `NullType`: it is not defined."""
    return isinstance(g.type, NullType)


def zeros_like(v: Any) -> Any:
    """Zeros of the shape of ``v``, in the dtype of its derivatives."""
    return v.type.tangent_zeros(v)


def connection_pattern(node: Apply) -> list[list[bool]] | None:
    """A node's connection pattern; None if every input influences every output.

    TypeError if the op returns something else than a matrix of bools, ``[input][output]``.
    """
    if node.op.is_fully_connected:
        return None
    pattern: Any = node.op.connection_pattern(node)
    ok = (
        isinstance(pattern, list | tuple)
        and len(pattern) == len(node.inputs)
        and all(isinstance(row, list | tuple) and len(row) == len(node.outputs) for row in pattern)
    )
    if not ok:
        raise TypeError(
            f"{node.op}.connection_pattern must return one list per input ({len(node.inputs)}), "
            f"each with one bool per output ({len(node.outputs)}), not {pattern!r}.{_made_at(node)}"
        )
    return pattern  # type: ignore[no-any-return]


def ask(
    node: Apply,
    rule: str,
    given: Sequence[Any],
    variables: Sequence[Variable],
    needed: Sequence[bool],
) -> list[Any]:
    """The results of the derivative rule of an op, one for each of ``variables``, in their dtypes.

    None where there is no influence, and where one is not needed.  TypeError or ValueError, naming
    the op, if a result cannot be a derivative of its variable.
    """
    try:
        if rule == "pullback":
            found: Any = node.op.wanted_pullback(node.inputs, node.outputs, given, needed)
        else:
            found = node.op.pushforward(node.inputs, node.outputs, given)
    except MethodNotDefined as exc:
        raise MethodNotDefined(f"{exc}{_made_at(node)}") from None
    if not isinstance(found, list | tuple) or len(found) != len(variables):
        where = f"{node.op}.{rule}"
        got = f"{len(found)}" if isinstance(found, list | tuple) else repr(found)
        of = "input" if rule == "pullback" else "output"
        raise ValueError(
            f"{where} must return a list of one variable per {of} ({len(variables)}), not {got}."
            f"{_made_at(node)}"
        )
    results = list(found)
    for i, (g, v, used) in enumerate(zip(found, variables, needed)):
        if g is None and not used:
            continue
        if not isinstance(g, Variable) or g.type is not v.type:
            results[i] = _checked(node, rule, i, g, v)
    return results


def _checked(node: Apply, rule: str, i: int, g: Any, v: Any) -> Any:
    where = f"{node.op}.{rule}"
    if not isinstance(g, Variable):
        hint = "zeros, disconnected_type() or grad_undefined(...)"
        raise TypeError(
            f"{where} returned {g!r} at position {i}, not a variable. Where there is nothing to "
            f"return, return {hint}.{_made_at(node)}"
        )
    if isinstance(g.type, DisconnectedType):
        return None
    if isinstance(g.type, NullType):
        return g
    try:
        v.type.check_tangent(g)
        return v.type.cast_tangent(g)
    except (TypeError, ValueError) as exc:
        what = f"{where} returned a {_VERBS[rule]} of type {g.type} for {v} of type {v.type}"
        raise type(exc)(f"{what}: {exc}{_made_at(node)}") from None


def _made_at(node: Apply) -> str:
    """The last lines of a message, which say where the user made the node; empty if not known."""
    where = describe(node.origin)
    return f"\n{where}" if where else ""
