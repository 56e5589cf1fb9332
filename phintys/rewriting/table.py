"""`RuleTable`: the rules of a set that can apply at a node, cached by its op and its producers.

The *producer* of an input is the op that computes it.  Most nodes cannot match most rules of their
op, because no input has the producer that the rule's pattern needs.  That is decided once for all
nodes with the same op and producers, their *signature*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from phintys.graph.variable import Apply
from phintys.memo import Memo
from phintys.rewriting.index import TrackIndex
from phintys.rewriting.numbering import number_of
from phintys.rewriting.rewriter import rewrite_error
from phintys.rewriting.rule import Rule
from phintys.rewriting.unify import producers_of

#: For nodes with more inputs the table is not used: every rule of their op is tried.
MAX_INPUTS = 8
#: Capacity of the caches of ops and of signatures.
MAX_OPS, MAX_SIGNATURES = 256, 2000

#: Producers of variables without an owner: of constants, and of inputs.
CONSTANT, ROOT = -1, -2


class Candidates:
    """The rules to try at nodes with a certain op."""

    __slots__ = ("outermost", "rules")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self.outermost = frozenset(r for r in self.rules if r.outermost)


class OpEntry(NamedTuple):
    """The rules of an op, and properties of it that the engine needs."""

    number: int  # the producer of what the op computes
    every: Candidates
    untried: Candidates  # without `follow_up` rules, which an earlier phase has tried everywhere
    mergeable: bool  # whether equal nodes may be merged: not if they compute in place


class RuleTable:
    """The rules of a set by op, and by op and producers.

    A producer is the number of the op that computes an input, `CONSTANT` or `ROOT`.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._index = TrackIndex(((r, r.tracks()) for r in rules), by="key")
        self._entries: Memo[int, OpEntry] = Memo(MAX_OPS, "rules by op")
        self._possible: Memo[Any, tuple[Rule, ...]] = Memo(MAX_SIGNATURES, "rules by signature")

    def entry(self, op: Any) -> OpEntry:
        """The entry of an op; equal ops have the same number."""
        number = number_of(op)
        known = self._entries[number]
        return self._entries.keep(number, self._make(op, number)) if known is None else known

    def _make(self, op: Any, number: int) -> OpEntry:
        every = Candidates(self._index.find(op))
        is_partial = any(r.follow_up for r in every.rules)
        untried = Candidates(r for r in every.rules if not r.follow_up) if is_partial else every
        return OpEntry(number, every, untried, not op.destroy_map)

    def possible(
        self, node: Apply, candidates: Candidates, producers: Sequence[int]
    ) -> tuple[Rule, ...]:
        """The rules of ``candidates`` that can apply at a node with these producers of inputs."""
        if len(producers) > MAX_INPUTS:
            return candidates.rules
        found = self._possible[candidates, *producers]
        if found is None:
            key = (candidates, *producers)
            found = self._possible.keep(key, self._find(node, candidates.rules))
        return found

    def _find(self, node: Apply, rules: Sequence[Rule]) -> tuple[Rule, ...]:
        """`possible` without the cache; RewriteError if the condition of a rule raises."""
        producers = producers_of(node)
        found: list[Rule] = []
        for rule in rules:
            try:
                if rule.fits_op(node.op) and rule.may_apply(producers):
                    found.append(rule)
            except Exception as exc:
                raise rewrite_error(rule.name, node, f"raised {type(exc).__name__}: {exc}") from exc
        return tuple(found)
