"""Derivatives of an op that its user gives, in place of those of its inner graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from phintys.graph.op import Op
from phintys.graph.replace import graph_replace
from phintys.graph.type import DisconnectedType, NullType, disconnected_type
from phintys.graph.variable import Apply, Variable, late_bound

#: from arguments of a derivative to its result: an op, a function, or one of these for each result
#: (a list; None: the derivative of the inner graph; a variable of DisconnectedType or NullType)
Override = Any


@dataclass(frozen=True)
class WithoutOutputs:
    """A function of (inputs, cotangents) as one of (inputs, outputs, cotangents)."""

    function: Any

    def __call__(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        return results(self.function, (inputs, cotangents))


def as_override(given: Override, what: str, count: int | None = None) -> Override:
    """An override in immutable form; TypeError or ValueError, naming ``what``, if it is none.

    ``count`` is the number of entries of a list; None for the entries themselves.
    """
    if isinstance(given, list | tuple):
        if count is not None and len(given) != count:
            raise ValueError(f"{what} has {len(given)} entries; there must be {count}.")
        return tuple(as_override(entry, what) for entry in given)
    if given is None or callable(given) or (count is None and isinstance(given, Variable)):
        return given
    raise TypeError(
        f"{what} must be None, a function, an OpFromGraph, or a list of these, not {given!r}."
    )


def results(function: Any, arguments: Sequence[Sequence[Variable]]) -> list[Any]:
    """What a function or an op returns, as a list; an op takes all arguments one after the other.

    A result None stands for "no influence".
    """
    if isinstance(function, Op):
        flat = [v for group in arguments for v in group]
        return list(function.make_node(*flat).outputs)
    found = function(*[list(group) for group in arguments])
    return list(found) if isinstance(found, list | tuple) else [found]


def derivatives(
    name: str, override: Override, arguments: Sequence[Sequence[Variable]], count: int
) -> list[Any]:
    """The ``count`` derivatives that an override gives; None where it is that of the graph.

    ValueError, with ``name``, if a function returns another number of them.
    """
    if not isinstance(override, tuple):
        return _results(name, override, arguments, count)
    given = [e is None or isinstance(e, Variable) for e in override]
    return [
        e if g else _results(name, e, arguments, 1)[0] for e, g in zip(override, given, strict=True)
    ]


def _results(
    name: str, function: Any, arguments: Sequence[Sequence[Variable]], count: int
) -> list[Any]:
    """The ``count`` results of a function; None in them becomes a variable of DisconnectedType."""
    found = results(function, arguments)
    if len(found) != count:
        raise ValueError(f"{name} must return {count} derivatives, not {len(found)}.")
    return [disconnected_type() if g is None else g for g in found]


def or_zeros(given: Sequence[Variable], like: Sequence[Any]) -> list[Variable]:
    """Derivatives, with zeros for those that are missing.

    Those of variables that have none, such as random generators, keep `DisconnectedType`.
    """
    return [_or_zeros(g, v) for g, v in zip(given, like, strict=True)]


def _or_zeros(g: Variable, v: Any) -> Variable:
    if not isinstance(g.type, DisconnectedType):
        return g
    try:
        return v.type.tangent_zeros(v)  # type: ignore[no-any-return]
    except TypeError:
        return g


# --------------------------------------------------------------------------- batches


@dataclass(frozen=True)
class _BatchedOverride:
    """An override of an op for a batch: that of one item, applied to every item.

    ``types`` are those of the inputs of one item.
    """

    op: Op
    types: tuple[Any, ...]

    def by_items(self, inputs: Sequence[Variable]) -> Apply:
        """The node that applies the op to every item."""
        core = self.op.make_node(*[t.make_variable() for t in self.types])
        return late_bound["blockwise"](core, *inputs)  # type: ignore[no-any-return]


class BatchedPullback(_BatchedOverride):
    """The pullback of a batch."""

    def __call__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]
    ) -> list[Any]:
        node = self.by_items(inputs)
        found = node.op.pullback(node.inputs, node.outputs, cotangents)
        replace = dict(zip(node.outputs, outputs, strict=True))
        found = graph_replace(list(found), replace, strict=False)
        return [_unpadded(g, x) for g, x in zip(found, inputs, strict=True)]


class BatchedPushforward(_BatchedOverride):
    """The pushforward of a batch."""

    def __call__(self, inputs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        node = self.by_items(inputs)
        given = [_padded(t, x) for t, x in zip(tangents, node.inputs, strict=True)]
        return list(node.op.pushforward(node.inputs, node.outputs, given))


def _padded(t: Any, like: Any) -> Any:
    """``t`` with new leading axes of length 1, up to the rank of ``like``."""
    count = like.type.ndim - t.type.ndim
    return t.dimshuffle(*["x"] * count, *range(t.type.ndim)) if count else t


def _unpadded(g: Any, like: Any) -> Any:
    """``g`` without its first axes, which have length 1, down to the rank of ``like``."""
    if isinstance(g.type, DisconnectedType | NullType) or g.type.ndim == like.type.ndim:
        return g
    return g.sum(axis=tuple(range(g.type.ndim - like.type.ndim)))
