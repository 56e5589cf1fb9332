"""What rewriting does to a graph, recorded for `DebugMode`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from phintys.compile.debug.faults import StochasticOrder
from phintys.graph.features import Feature
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.traversal import sorted_nodes
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.rewriter import GraphRewriter, SequentialGraphRewriter
from phintys.rewriting.trace import Pairs, recording


class Replacement(NamedTuple):
    """One replacement by a rewrite: copies of the old and the new expression."""

    rewrite: Any
    old: Variable
    new: Variable


class Stage(NamedTuple):
    """One rewriter of the pipeline: the outputs of the graph after it, what it has replaced."""

    rewriter: Any
    outputs: list[Variable]
    replacements: list[Replacement]


class Snapshots:
    """Copies of expressions as they are at a time; rewriting changes the inputs of nodes in place.

    Parts that do not change between two copies are shared.
    """

    def __init__(self) -> None:
        self._copies: dict[tuple[Apply, tuple[Variable, ...]], Apply] = {}

    def take(self, variables: Sequence[Variable]) -> list[Variable]:
        """Copies of expressions, down to variables that no node computes."""
        now: dict[Variable, Variable] = {}
        for node in sorted_nodes([v.owner for v in variables]):
            inputs = tuple([now.get(v, v) for v in node.inputs])
            copy = self._copies.get((node, inputs))
            if copy is None:
                copy = self._copies[node, inputs] = Apply(
                    node.op, inputs, [v.clone() for v in node.outputs]
                )
                copy.origin = node.origin
            now.update(zip(node.outputs, copy.outputs))
        return [now.get(v, v) for v in variables]


class RewriteRecord(Feature):
    """The replacements that a pipeline has made in a graph, stage by stage.

    It is attached to the graph, for the linker of `DebugMode`.
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        self._snapshots = Snapshots()
        self._current: list[Replacement] = []
        self.inputs = list(fgraph.inputs)
        self.original = self._snapshots.take(fgraph.outputs)
        self.stages: list[Stage] = []

    def add(self, rewrite: Any, node: Apply, replacements: Pairs) -> None:
        """Record the replacements of one application of a rewrite; called by `recording`."""
        copies = self._snapshots.take([v for pair in replacements for v in pair])
        for old, new in zip(copies[::2], copies[1::2]):
            self._current.append(Replacement(rewrite, old, new))

    def finish_stage(self, rewriter: Any, fgraph: FunctionGraph) -> None:
        """Record the outputs of the graph after a rewriter of the pipeline."""
        outputs = self._snapshots.take(fgraph.outputs)
        before = self.stages[-1].outputs if self.stages else self.original
        if self._current or any(a is not b for a, b in zip(outputs, before)):
            self.stages.append(Stage(rewriter, outputs, self._current))
            self._current = []

    def __getstate__(self) -> dict[str, Any]:
        empty: dict[str, Any] = {"_snapshots": Snapshots(), "_current": [], "stages": []}
        return vars(self) | empty  # rules need not be picklable


class _RecordedStage(GraphRewriter):
    """A rewriter of the pipeline, with a record of its result."""

    def __init__(self, rewriter: Any, record: RewriteRecord) -> None:
        self.rewriter, self.record = rewriter, record
        self.name = str(rewriter)

    def apply(self, fgraph: FunctionGraph) -> None:
        self.rewriter.rewrite(fgraph)
        self.record.finish_stage(self.rewriter, fgraph)


class RecordingRewriter(GraphRewriter):
    """Rewrites like another rewriter, and attaches a `RewriteRecord` to the graph.

    It rewrites ``patience - 1`` copies too, and raises `StochasticOrder` if one ends differently.
    """

    def __init__(self, rewriter: Any, patience: int) -> None:
        self.rewriter, self.patience = rewriter, patience

    def apply(self, fgraph: FunctionGraph) -> None:
        copies = [fgraph.clone() for _ in range(self.patience - 1)]
        record, log = RewriteRecord(fgraph), _Sequence()
        with recording(record), recording(log):
            self._recorded(record).rewrite(fgraph)
        for copy in copies:
            again = _Sequence()
            with recording(again):
                self.rewriter.rewrite(copy)
            _require_same(fgraph, log, copy, again)
        fgraph.attach_feature(record)

    def _recorded(self, record: RewriteRecord) -> GraphRewriter:
        if not isinstance(self.rewriter, SequentialGraphRewriter):
            return _RecordedStage(self.rewriter, record)
        stages = [_RecordedStage(r, record) for r in self.rewriter]
        return SequentialGraphRewriter(stages, failure_callback=self.rewriter.failure_callback)


# ------------------------------------------------------------------- the same every time


class _Sequence:
    """The names of rewrites in the order in which they were applied, with the nodes' ops."""

    def __init__(self) -> None:
        self.applied: list[str] = []

    def add(self, rewrite: Any, node: Apply, replacements: Pairs) -> None:
        self.applied.append(f"{rewrite} at {node.op}")


def _require_same(a: FunctionGraph, log: _Sequence, b: FunctionGraph, again: _Sequence) -> None:
    """`StochasticOrder` if two copies of a graph have been rewritten differently."""
    steps = list(zip([*log.applied, "the end"], [*again.applied, "the end"]))
    for k, (one, other) in enumerate(steps):
        if one != other:
            raise StochasticOrder(
                "Rewriting the same graph twice applies different rewrites. "
                f"Application {k} is {one!r}, then {other!r}."
            )
    for one, other in zip(_structure(a), _structure(b), strict=False):
        if one != other:
            raise StochasticOrder(
                "Rewriting the same graph twice, by the same rewrites, gives different graphs: "
                f"{one[0]} where the other has {other[0]}."
            )


def _structure(fgraph: FunctionGraph) -> list[tuple[Any, ...]]:
    """The nodes and outputs of a graph, with numbers in place of variables."""
    number: dict[Any, int] = {}

    def of(v: Variable) -> int:
        key = v.merge_signature() if isinstance(v, Constant) else v
        return number.setdefault(key, len(number))

    for v in fgraph.inputs:
        of(v)
    found = [(node.op, *map(of, node.inputs), *map(of, node.outputs)) for node in fgraph.toposort()]
    return [*found, ("the outputs", *map(of, fgraph.outputs))]
