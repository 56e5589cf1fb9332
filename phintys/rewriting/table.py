"""Which rules of a set can apply at a node: found once for each op and for what its inputs are.

Most nodes cannot match most rules of their op, because no input is computed by the op that the
rule looks for.  That is decided here for all nodes that are alike, not at each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from phintys.graph.variable import Apply, Constant
from phintys.rewriting.index import TrackIndex
from phintys.rewriting.rewriter import rewrite_error
from phintys.rewriting.rule import Rule
from phintys.rewriting.unify import kinds_of

#: Nodes with more inputs are not looked up: every rule of their op is tried.
MAX_INPUTS = 8
#: What is known is forgotten when it is about more ops, or more kinds of nodes, than this.
MAX_KNOWN = 20_000

CONSTANT, ROOT = -1, -2


class OpEntry(NamedTuple):
    """What a run knows about an op."""

    number: int
    rules: tuple[Rule, ...]
    untried: tuple[Rule, ...]  # those that no earlier phase has tried at the nodes of the graph
    mergeable: bool
    op: Any  # keeps the op alive: runs find entries by id


class RuleTable:
    """The rules of a set by op, and by op and inputs."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._index = TrackIndex((r, r.tracks()) for r in rules)
        self._entries: dict[Any, OpEntry] = {}
        self._by_id: dict[int, OpEntry] = {}  # of the ops that the entries keep alive
        self._possible: dict[Any, tuple[Rule, ...]] = {}
        self._count = 0

    def entry(self, op: Any) -> OpEntry:
        """The entry of an op; equal ops have the same number."""
        known = self._by_id.get(id(op)) or self._entries.get(op)
        if known is None:
            known = self._entries[op] = self._by_id[id(op)] = self._make(op)
        return known

    def _make(self, op: Any) -> OpEntry:
        if max(len(self._entries), len(self._possible)) > MAX_KNOWN:
            for known in (self._entries, self._by_id, self._possible):
                known.clear()
        rules = self._index.find(op)
        untried = tuple(r for r in rules if not r.follow_up)
        self._count += 1
        return OpEntry(self._count, rules, untried, not op.destroy_map, op)

    def possible(
        self, node: Apply, entry: OpEntry, entries: Mapping[int, OpEntry], untried: bool
    ) -> tuple[Rule, ...]:
        """The rules to try at a node; ``entries`` are those of a run, by the id of the op."""
        rules = entry.untried if untried else entry.rules
        if not rules or len(node.inputs) > MAX_INPUTS:
            return rules
        key = [entry.number, untried]
        for v in node.inputs:
            owner = v.owner
            if owner is None:
                key.append(CONSTANT if isinstance(v, Constant) else ROOT)
            else:
                key.append((entries.get(id(owner.op)) or self.entry(owner.op)).number)
        found = self._possible.get(full := tuple(key))
        if found is None:
            found = self._possible[full] = self._find(node, rules)
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
