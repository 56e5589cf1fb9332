"""Derivatives that are zero unless a condition has an outcome: those of branches.

Such a derivative is selected between a value and zeros.  What is linear in it is zero too unless
the condition has that outcome.  So the sweep takes the value alone through a node, and selects
between the result and zeros after it: the derivatives of a branch are computed if it is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from phintys.gradient.rules import is_null, zeros_like
from phintys.graph.variable import Variable


class Guard(NamedTuple):
    """An outcome of a condition; ``op`` selects by it."""

    condition: Variable
    side: bool
    op: Guarding


class Guarding:
    """Mixin of ops that select by a condition."""

    def guarded(self, v: Variable) -> tuple[Guard, Variable] | None:
        """The outcome without which an output is zero, and what it is otherwise; or None."""
        raise NotImplementedError

    def restricted(self, guard: Guard, value: Variable, zeros: Variable) -> Variable:
        """``value`` if the condition has the outcome of ``guard``, else ``zeros``."""
        raise NotImplementedError


def unguarded(derivatives: Sequence[Any]) -> tuple[list[Guard], list[Any]]:
    """What guards all of some derivatives, outermost first, and the derivatives without that.

    A derivative that is None is missing, and stays so.
    """
    guards: list[Guard] = []
    values = list(derivatives)
    while True:
        found = [None if g is None else _guarded(g) for g in values]
        present = [pair for g, pair in zip(values, found) if g is not None]
        if not present or None in present:
            return guards, values
        first = present[0][0]  # type: ignore[index]
        if any(guard != first for guard, _ in present):  # type: ignore[misc]
            return guards, values
        guards.append(first)
        values = [None if pair is None else pair[1] for pair in found]


def _guarded(g: Variable) -> tuple[Guard, Variable] | None:
    op = None if g.owner is None else g.owner.op
    return op.guarded(g) if isinstance(op, Guarding) else None


def guard_again(guards: Sequence[Guard], g: Any, like: Variable) -> Any:
    """A derivative of ``like``, zero unless all of ``guards`` hold; undefined ones stay."""
    if is_null(g):
        return g
    for guard in reversed(guards):
        g = guard.op.restricted(guard, g, zeros_like(like))
    return g
