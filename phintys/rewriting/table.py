"""Which rules of a set can apply at a node: found once for each op and for what its inputs are.

Most nodes cannot match most rules of their op, because no input is computed by the op that the
rule looks for.  That is decided here for all nodes that are alike, not at each of them.
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
from phintys.rewriting.unify import kinds_of

#: Nodes with more inputs are not looked up: every rule of their op is tried.
MAX_INPUTS = 8
#: How many ops, and how many kinds of nodes, are remembered.
MAX_OPS, MAX_KINDS = 256, 2000

#: Kinds of variables that no op computes.
CONSTANT, ROOT = -1, -2


class Candidates:
    """The rules of an op."""

    __slots__ = ("outermost", "rules")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self.outermost = frozenset(r for r in self.rules if r.outermost)


class OpEntry(NamedTuple):
    """What is known about an op."""

    number: int  # the kind of what the op computes
    every: Candidates
    untried: Candidates  # those that no earlier phase has tried at the nodes of the graph
    mergeable: bool


class RuleTable:
    """The rules of a set by op, and by op and inputs.

    The kind of an input is the number of the op that computes it, `CONSTANT` or `ROOT`.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._index = TrackIndex((r, r.tracks()) for r in rules)
        self._entries: Memo[int, OpEntry] = Memo(MAX_OPS, "rules by op")
        self._possible: Memo[Any, tuple[Rule, ...]] = Memo(MAX_KINDS, "rules by kinds of nodes")

    def entry(self, op: Any) -> OpEntry:
        """The entry of an op; equal ops have the same number."""
        number = number_of(op)
        known = self._entries[number]
        return self._entries.keep(number, self._make(op, number)) if known is None else known

    def _make(self, op: Any, number: int) -> OpEntry:
        every = Candidates(self._index.find(op))
        untried = Candidates(r for r in every.rules if not r.follow_up)
        return OpEntry(number, every, untried, not op.destroy_map)

    def possible(
        self, node: Apply, candidates: Candidates, kinds: Sequence[int]
    ) -> tuple[Rule, ...]:
        """The rules that can apply at a node with inputs of these kinds."""
        if len(kinds) > MAX_INPUTS:
            return candidates.rules
        found = self._possible[candidates, *kinds]
        if found is None:
            key = (candidates, *kinds)
            found = self._possible.keep(key, self._find(node, candidates.rules))
        return found

    def _find(self, node: Apply, rules: Sequence[Rule]) -> tuple[Rule, ...]:
        kinds = kinds_of(node)
        found: list[Rule] = []
        for rule in rules:
            try:
                if rule.may_apply(kinds):
                    found.append(rule)
            except Exception as exc:
                raise rewrite_error(rule.name, node, f"raised {type(exc).__name__}: {exc}") from exc
        return tuple(found)
