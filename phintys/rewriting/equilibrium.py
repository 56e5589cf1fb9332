"""`EquilibriumGraphRewriter`: rewriters applied until nothing changes.

`Rule`s run together in one sweep of the engine.  Other node rewriters, functions of (fgraph, node)
as in PyTensor, are applied node by node; they are called *foreign* here.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
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

#: The limit `max_use_ratio` treats smaller graphs as if they had this many nodes.
SMALL = 100


class ChangeTracker(Feature):
    """A feature that records whether the graph changed since `reset`."""

    def __init__(self) -> None:
        self.changed = False
        self.nb_imported = 0

    def clone(self) -> ChangeTracker:
        return type(self)()

    def reset(self) -> None:
        """Set `changed` to False."""
        self.changed = False

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        self.nb_imported += 1
        self.changed = True

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        self.changed = True


class EquilibriumGraphRewriter(NodeProcessingGraphRewriter):
    """A graph rewriter that applies several rewriters until nothing changes.

    In each round all `Rule`s run in one sweep of the engine, then graph rewriters, then the other
    node rewriters.  Rounds are repeated while a rewriter that is not a `Rule` changes something.

    Parameters
    ----------
    rewriters
        rules, graph rewriters and node rewriters
    failure_callback, ignore_newtrees
        see `NodeProcessingGraphRewriter`
    max_use_ratio
        the number of applications of one rewriter, per node of the graph at the start (at least
        `SMALL` nodes), after which it is stopped, with a warning; default: the setting
        ``optdb__max_use_ratio``
    final_rewriters
        graph rewriters to run at the end of each round
    cleanup_rewriters
        graph rewriters to run after every successful node rewrite and at the end of each round
    tracks_on_change_inputs
        whether nodes are visited again when one of their inputs changed

    >>> import phintys.tensor as pt
    >>> from phintys.rewriting.rewriter import RemovalNodeRewriter
    >>> x = pt.dvector("x")
    >>> fgraph = FunctionGraph([x], [pt.exp(pt.exp(x))], clone=False)
    >>> EquilibriumGraphRewriter([RemovalNodeRewriter(pt.exp)], max_use_ratio=10).rewrite(fgraph)
    >>> fgraph.outputs
    [x]
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
        self._with_requirements = [
            r for r in rewriters if type(r).add_requirements is not Rewriter.add_requirements
        ]
        self._index = TrackIndex[NodeRewriter]((r, r.tracks()) for r in self._foreign)
        self.final_rewriters = list(final_rewriters or ())
        self.cleanup_rewriters = list(cleanup_rewriters or ())

    def get_node_rewriters(self) -> list[NodeRewriter]:
        """The node rewriters, including rules."""
        return [*self.rules.rules, *self._foreign]

    @property
    def has_foreign(self) -> bool:
        """Whether there are node rewriters other than rules."""
        return bool(self._foreign)

    def parts(self) -> Sequence[Rewriter]:
        return [*self.rewriters, *self.final_rewriters, *self.cleanup_rewriters]

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        required = (*self._with_requirements, *self.final_rewriters, *self.cleanup_rewriters)
        for rewriter in required:
            rewriter.add_requirements(fgraph)

    def apply(self, fgraph: FunctionGraph, start_from: Sequence[Variable] | None = None) -> None:
        """Rewrite ``fgraph``.

        In the first round, foreign node rewriters visit only the nodes that ``start_from`` depends
        on; default: all nodes.
        """
        self.rules.name = str(self)
        if self.global_rewriters or self.has_foreign or self.final_rewriters:
            _Equilibrium(self, fgraph).run(start_from)
        elif self.rules.rules:
            self.rules.apply(fgraph)

    def __str__(self) -> str:
        return self.name or f"EquilibriumGraphRewriter({len(self.rewriters)} rewriters)"


class EquilibriumWhere(EquilibriumGraphRewriter):
    """Rewriting to equilibrium that is skipped for graphs without a node that it concerns.

    Subclasses say in ``concerns`` which nodes these are.
    """

    concerns: Callable[[Apply], bool]

    def apply(self, fgraph: FunctionGraph, start_from: Sequence[Variable] | None = None) -> None:
        if any(map(self.concerns, fgraph.apply_nodes)):
            super().apply(fgraph, start_from)


class _Equilibrium:
    """The state of one run of an `EquilibriumGraphRewriter`."""

    def __init__(self, rewriter: EquilibriumGraphRewriter, fgraph: FunctionGraph) -> None:
        self.rewriter = rewriter
        self.fgraph = fgraph
        # From the initial size: a limit that grows with the graph would not stop a rewrite that
        # adds nodes for ever.
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
        """Run one round; return whether a rewriter other than a rule changed something."""
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
