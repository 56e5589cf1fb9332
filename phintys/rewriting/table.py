"""Which rules of a set can apply at a node: found once for each op and for what its inputs are.

Most nodes cannot match most rules of their op, because no input is computed by the op that the
rule looks for.  That is decided here for all nodes that are alike, not at each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from phintys.graph.variable import Apply
from phintys.rewriting.index import TrackIndex
from phintys.rewriting.rewriter import rewrite_error
from phintys.rewriting.rule import Rule
from phintys.rewriting.unify import kinds_of

#: Nodes with more inputs are not looked up: every rule of their op is tried.
MAX_INPUTS = 8
#: What is known is forgotten when it is about more ops and kinds of nodes than this.
MAX_KNOWN = 20_000

#: Kinds of variables that no op computes.
CONSTANT, ROOT = -1, -2


class Candidates:
    """The rules of an op, and those of them that can apply, by the kinds of the inputs."""

    __slots__ = ("by_kinds", "outermost", "rules")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self.outermost = frozenset(r for r in self.rules if r.outermost)
        self.by_kinds: dict[tuple[int, ...], tuple[Rule, ...]] = {}


class OpEntry(NamedTuple):
    """What a run knows about an op."""

    number: int  # the kind of what the op computes
    every: Candidates
    untried: Candidates  # those that no earlier phase has tried at the nodes of the graph
    mergeable: bool
    op: Any  # keeps the op alive: entries are found by id


class RuleTable:
    """The rules of a set by op, and by op and inputs.

    The kind of an input is the number of the op that computes it, `CONSTANT` or `ROOT`.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._index = TrackIndex((r, r.tracks()) for r in rules)
        self._entries: dict[Any, OpEntry] = {}
        self.by_id: dict[int, OpEntry] = {}  # of the ops that the entries keep alive
        self._count = 0
        self._known = 0  # entries, and kinds of nodes, that are kept

    def entry(self, op: Any) -> OpEntry:
        """The entry of an op; equal ops have the same number."""
        known = self._entries.get(op)
        if known is None:
            self._known += 1
            known = self._entries[op] = self.by_id[id(op)] = self._make(op)
        return known

    def _make(self, op: Any) -> OpEntry:
        every = Candidates(self._index.find(op))
        untried = Candidates(r for r in every.rules if not r.follow_up)
        self._count += 1
        return OpEntry(self._count, every, untried, not op.destroy_map, op)

    def make_room(self) -> None:
        """Forget everything if it is too much: before a run, which relies on the numbers."""
        if self._known > MAX_KNOWN:
            self._entries.clear()
            self.by_id.clear()
            self._known = 0

    def possible(
        self, node: Apply, candidates: Candidates, kinds: Sequence[int]
    ) -> tuple[Rule, ...]:
        """The rules that can apply at a node with inputs of these kinds."""
        if len(kinds) > MAX_INPUTS:
            return candidates.rules
        found = candidates.by_kinds.get(full := tuple(kinds))
        if found is None:
            self._known += 1
            found = candidates.by_kinds[full] = self._find(node, candidates.rules)
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
