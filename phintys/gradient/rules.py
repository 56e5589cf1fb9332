"""Checks of what an op's derivative methods return; dtypes and zeros of derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.graph.origin import describe
from phintys.graph.type import DisconnectedType, NullType
from phintys.graph.variable import Apply, Variable

_VERBS = {"pullback": "gradient", "pushforward": "tangent"}


def is_disconnected(g: Any) -> bool:
    """Whether a derivative is of `DisconnectedType`: there is no influence."""
    return isinstance(g.type, DisconnectedType)


def is_null(g: Any) -> bool:
    """Whether a derivative is of `NullType`: it is not defined."""
    return isinstance(g.type, NullType)


def is_discrete(v: Any) -> bool:
    """Whether the values of a variable are integers or bools."""
    return getattr(v.type, "dtype", "float64")[0] in "iub"


def derivative_dtype(v: Any) -> str:
    """The dtype of a derivative with respect to ``v``: that of ``v``, floatX for discrete ones."""
    return "floatX" if is_discrete(v) else v.type.dtype


def zeros_like(v: Any) -> Any:
    """Zeros of the shape of ``v``, in the dtype of its derivatives."""
    return _filled(v, "zeros_like")


def ones_like(v: Any) -> Any:
    """Ones of the shape of ``v``, in the dtype of its derivatives."""
    return _filled(v, "ones_like")


def _filled(v: Any, method: str) -> Any:
    if not hasattr(v, method):
        raise TypeError(
            f"{v} is of type {v.type}, whose variables have no {method}: no gradient can start or "
            "end at it. Give known_grads, or use return_disconnected='none'."
        )
    return getattr(v, method)(dtype=derivative_dtype(v))


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


def checked(node: Apply, rule: str, found: Any, variables: Sequence[Variable]) -> list[Any]:
    """The results of ``op.pullback`` or ``op.pushforward``, cast to the dtypes of ``variables``.

    ``rule`` is the name of the method, ``variables`` the inputs or outputs that the results belong
    to.  TypeError or ValueError, naming the op, if a result cannot be a derivative of its variable.
    """
    if not isinstance(found, list | tuple) or len(found) != len(variables):
        where = f"{node.op}.{rule}"
        got = f"{len(found)}" if isinstance(found, list | tuple) else repr(found)
        of = "input" if rule == "pullback" else "output"
        raise ValueError(
            f"{where} must return a list of one variable per {of} ({len(variables)}), not {got}."
            f"{_made_at(node)}"
        )
    results = list(found)
    for i, (g, v) in enumerate(zip(found, variables)):
        if not isinstance(g, Variable) or g.type is not v.type:
            results[i] = _checked_one(node, rule, i, g, v)
    return results


def _checked_one(node: Apply, rule: str, i: int, g: Any, v: Any) -> Any:
    if isinstance(g, Variable) and isinstance(g.type, DisconnectedType | NullType):
        return g
    where = f"{node.op}.{rule}"
    if not isinstance(g, Variable):
        hint = "zeros, disconnected_type() or grad_undefined(...)"
        raise TypeError(
            f"{where} returned {g!r} at position {i}, not a variable. Where there is nothing to "
            f"return, return {hint}.{_made_at(node)}"
        )
    what = f"{where} returned a {_VERBS[rule]} of type {g.type} for {v} of type {v.type}"
    if is_discrete(g):
        raise TypeError(f"{what}: derivatives are never integers.{_made_at(node)}")
    if getattr(g.type, "ndim", None) != getattr(v.type, "ndim", None):
        raise ValueError(f"{what}: the ranks differ.{_made_at(node)}")
    lengths = zip(getattr(g.type, "shape", ()), getattr(v.type, "shape", ()))
    if any(a is not None and b is not None and a != b for a, b in lengths):
        raise ValueError(f"{what}: the shapes differ.{_made_at(node)}")
    return _in_dtype(g, v, what, node)


def _in_dtype(g: Any, v: Any, what: str, node: Apply) -> Any:
    """``g`` cast to the dtype of ``v``; TypeError for a complex derivative of a real variable."""
    have, want = getattr(g.type, "dtype", None), getattr(v.type, "dtype", None)
    if have is None or want is None or have == want or is_discrete(v):
        return g
    if have[0] == "c" and want[0] != "c":
        raise TypeError(f"{what}: for a real variable, return the real part.{_made_at(node)}")
    return g.astype(want)


def _made_at(node: Apply) -> str:
    """The last lines of a message, which say where the user made the node; empty if not known."""
    where = describe(node.origin)
    return f"\n{where}" if where else ""
