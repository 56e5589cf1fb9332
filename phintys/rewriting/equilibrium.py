"""Apply rewriters until nothing changes: our rules in one sweep, foreign rewriters node by node."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

from phintys.config import config
from phintys.graph.features import Feature
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.traversal import io_toposort
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.index import TrackIndex
from phintys.rewriting.rewriter import FailureCallback, GraphRewriter, NodeRewriter, Rewriter
from phintys.rewriting.rule import Rule
from phintys.rewriting.walk import NodeProcessingGraphRewriter, NodeQueue

#: Graphs smaller than this may grow: `max_use_ratio` counts them as this large.
SMALL = 100


class ChangeTracker(Feature):
    """Knows whether the graph changed since `reset`."""

    def __init__(self) -> None:
        self.changed = False
        self.nb_imported = 0

    def clone(self) -> ChangeTracker:
        return type(self)()

    def reset(self) -> None:
        """Forget what happened."""
        self.changed = False

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        self.nb_imported += 1
        self.changed = True

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        self.changed = True


class EquilibriumGraphRewriter(NodeProcessingGraphRewriter):
    """Rewriters applied until nothing changes.

    `Rule`s run together, in one sweep of the engine that leaves nothing to do for them; graph and
    node rewriters run after them, and again as long as one of them changes something.

    Parameters
    ----------
    rewriters
        rules, graph rewriters and node rewriters
    max_use_ratio
        a rewriter that was used this often, per node of the graph at the start (a small graph
        counts as one of `SMALL` nodes), is stopped, with a warning
    final_rewriters
        graph rewriters run after each round
    cleanup_rewriters
        graph rewriters run after every successful node rewrite and after each round
    tracks_on_change_inputs
        whether nodes are visited again when one of their inputs changed
    """

    def __init__(
        self,
        rewriters: Sequence[Rewriter],
        failure_callback: FailureCallback | None = None,
        ignore_newtrees: bool = True,
        tracks_on_change_inputs: bool = False,
        max_use_ratio: float | None = None,
        final_rewriters: Sequence[GraphRewriter] | None = None,
        cleanup_rewriters: Sequence[GraphRewriter] | None = None,
    ) -> None:
        super().__init__(None, ignore_newtrees, failure_callback)
        ratio = config.optdb__max_use_ratio if max_use_ratio is None else max_use_ratio
        self.max_use_ratio: float = ratio
        self.tracks_on_change_inputs = tracks_on_change_inputs
        self.rewriters = list(rewriters)
        self.rules = RuleSet([r for r in rewriters if isinstance(r, Rule)])
        self.global_rewriters = [r for r in rewriters if isinstance(r, GraphRewriter)]
        self._foreign = [
            r for r in rewriters if isinstance(r, NodeRewriter) and not isinstance(r, Rule)
        ]
        self._demanding = [
            r for r in rewriters if type(r).add_requirements is not Rewriter.add_requirements
        ]
        self._index = TrackIndex[NodeRewriter]((r, r.tracks()) for r in self._foreign)
        self.final_rewriters = list(final_rewriters or ())
        self.cleanup_rewriters = list(cleanup_rewriters or ())

    def get_node_rewriters(self) -> list[NodeRewriter]:
        """The node rewriters, rules included."""
        return [*self.rules.rules, *self._foreign]

    @property
    def has_foreign(self) -> bool:
        """Whether there are node rewriters that are no rules."""
        return bool(self._foreign)

    def parts(self) -> Sequence[Rewriter]:
        return [*self.rewriters, *self.final_rewriters, *self.cleanup_rewriters]

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for rewriter in (*self._demanding, *self.final_rewriters, *self.cleanup_rewriters):
            rewriter.add_requirements(fgraph)

    def apply(self, fgraph: FunctionGraph, start_from: Sequence[Variable] | None = None) -> None:
        """Rewrite; the first round of node rewriters visits what ``start_from`` depends on."""
        self.rules.name = str(self)
        if self.global_rewriters or self.has_foreign or self.final_rewriters:
            _Equilibrium(self, fgraph).run(start_from)
        elif self.rules.rules:
            self.rules.apply(fgraph)

    def __str__(self) -> str:
        return self.name or f"EquilibriumGraphRewriter({len(self.rewriters)} rewriters)"


class _Equilibrium:
    """The state of one run of an `EquilibriumGraphRewriter`."""

    def __init__(self, rewriter: EquilibriumGraphRewriter, fgraph: FunctionGraph) -> None:
        self.rewriter = rewriter
        self.fgraph = fgraph
        # not the size it grows to: a rewrite that adds nodes for ever would never be stopped
        self.max_uses = rewriter.max_use_ratio * max(len(fgraph.apply_nodes), SMALL)
        self.uses: Counter[Rewriter] = Counter()
        self.stopped: set[Rewriter] = set()
        self.tracker = ChangeTracker()

    def run(self, start_from: Sequence[Variable] | None) -> None:
        fgraph = self.fgraph
        fgraph.attach_feature(self.tracker)
        try:
            while self._round(start_from):
                start_from = None
        finally:
            fgraph.remove_feature(self.tracker)

    def _round(self, start_from: Sequence[Variable] | None) -> bool:
        """One round; whether a rewriter that is not a rule changed something."""
        if self.rewriter.rules.rules:
            self.rewriter.rules.apply(self.fgraph)
        changed = False
        for graph_rewriter in self.rewriter.global_rewriters:
            changed = self._apply(graph_rewriter) or changed
        changed = self._node_rewriters(start_from) or changed
        for graph_rewriter in self.rewriter.final_rewriters:
            changed = self._apply(graph_rewriter) or changed
        self._clean_up()
        return changed

    def _apply(self, graph_rewriter: GraphRewriter) -> bool:
        if graph_rewriter in self.stopped:
            return False
        self.tracker.reset()
        graph_rewriter.apply(self.fgraph)
        if self.tracker.changed:
            self._count(graph_rewriter)
        return self.tracker.changed

    def _clean_up(self) -> None:
        for graph_rewriter in self.rewriter.cleanup_rewriters:
            graph_rewriter.apply(self.fgraph)

    def _node_rewriters(self, start_from: Sequence[Variable] | None) -> bool:
        rewriter, fgraph = self.rewriter, self.fgraph
        index = rewriter._index  # pyright: ignore[reportPrivateUsage]
        if not index:
            return False
        nodes = fgraph.toposort()
        if start_from is not None:
            nodes = io_toposort(fgraph.inputs, start_from)
        queue = NodeQueue(index, nodes, "out_to_in")
        chin = queue.add if rewriter.tracks_on_change_inputs else None
        updater = rewriter.attach_updater(fgraph, queue.add, None, chin, name=str(rewriter))
        changed = False
        try:
            node = queue.next(fgraph)
            while node is not None:
                changed = self._process(node, index[node.op]) or changed
                node = queue.next(fgraph)
        finally:
            rewriter.detach_updater(fgraph, updater)
        return changed

    def _process(self, node: Apply, candidates: Sequence[NodeRewriter]) -> bool:
        changed = False
        for candidate in candidates:
            if candidate in self.stopped:
                continue
            if not self.rewriter.process_node(self.fgraph, node, candidate, enforce_tracks=False):
                continue
            changed = True
            self._count(candidate)
            self._clean_up()
            if node not in self.fgraph.apply_nodes:
                break
        return changed

    def _count(self, rewriter: Rewriter) -> None:
        self.uses[rewriter] += 1
        if self.uses[rewriter] > self.max_uses:
            self.stopped.add(rewriter)
            warnings.warn(
                f"Rewrite {rewriter} was stopped after {self.uses[rewriter]} uses; the graph has "
                f"{len(self.fgraph.apply_nodes)} nodes: it may not terminate (max_use_ratio is "
                f"{self.rewriter.max_use_ratio}).",
                RuntimeWarning,
                stacklevel=2,
            )
