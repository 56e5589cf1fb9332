"""`OnDemand`: a graph of which a node is computed when another node asks for it.

An op of a user may have a thunk of its own that is lazy: it asks for one input after the other
(`phintys.graph.perform.is_lazy`).  Such nodes, and those that only they use, become nodes of
`OnDemand` before a function is compiled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from phintys.conditional.op import IfElse
from phintys.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from phintys.graph.op import HasInnerGraph, Op, Storage
from phintys.graph.origin import annotate, locate
from phintys.graph.perform import Attempt, is_lazy, prepare, run_lazily, run_node
from phintys.graph.variable import Apply, Constant, Variable
from phintys.inner.shapes import infer_shape
from phintys.rewriting.database import optdb
from phintys.rewriting.rewriter import GraphRewriter


class OnDemand(HasInnerGraph, Op):
    """The outputs of a graph whose nodes are computed one by one, in Python, when they are needed.

    Parameters
    ----------
    fgraph
        the graph
    origins
        for each node of the graph, in topological order, the user's line that made it; equality
        ignores them
    """

    # ----- class and static shape
    __props__ = ("fgraph",)
    not_differentiable = "functions are differentiated before it is introduced"
    in_python = "it is computed when a lazy op asks for it"

    def __init__(self, fgraph: FrozenFunctionGraph, origins: Sequence[Any] = ()) -> None:
        self.fgraph, self.origins = fgraph, origins

    def make_node(self, *inputs: Any) -> Apply:
        outputs = [v.type.make_variable() for v in self.fgraph.outputs]
        return Apply(self, list(inputs), outputs)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return infer_shape(self.fgraph.bind(node.inputs), node.inputs, shapes)

    def __getstate__(self) -> dict[str, Any]:
        """What the constructor sets, with the user's lines as text."""
        lines = tuple([locate(line) for line in self.origins])
        return {"fgraph": self.fgraph, "origins": lines}

    # ----- perform
    @cached_property
    def _graph(self) -> FunctionGraph:
        """The graph with the user's lines."""
        graph, memo = self.fgraph.unfreeze(return_memo=True)
        for node, origin in zip(self.fgraph.toposort(), self.origins):
            memo[node].origin = origin
        for node in graph.toposort():
            prepare(node)
        return graph

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        graph = self._graph
        values: dict[Variable, Any] = dict(zip(graph.inputs, inputs))
        stack = [v.owner for v in reversed(graph.outputs)]
        while stack:
            owner = stack.pop()
            if owner is None or owner.outputs[0] in values:
                continue
            missing, results = _attempt(owner, values)
            values.update(zip(owner.outputs, results))
            if missing:
                stack += [owner, *(owner.inputs[k].owner for k in missing)]
        for cell, v in zip(output_storage, graph.outputs):
            cell[0] = values[v]

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        return False

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * len(node.outputs) for _ in node.inputs]

    def __str__(self) -> str:
        return "OnDemand"


def _attempt(node: Apply, values: Mapping[Variable, Any]) -> Attempt:
    """The positions of inputs without values that a node needs next, or its results."""
    known = [isinstance(v, Constant) or v in values for v in node.inputs]
    given = [v.data if isinstance(v, Constant) else values.get(v) for v in node.inputs]
    asks_itself = is_lazy(node)
    missing = [] if asks_itself else [k for k in _needed(node, known, given) if not known[k]]
    if missing:
        return missing, []
    try:
        return run_lazily(node, given, known) if asks_itself else ([], run_node(node, given))
    except Exception as exc:
        annotate(exc, node, given)
        raise


def _needed(node: Apply, known: Sequence[bool], given: Sequence[Any]) -> Sequence[int]:
    """The positions of the inputs that a node needs, as far as that is known: `IfElse` has two."""
    if not isinstance(node.op, IfElse):
        return range(len(known))
    if not known[0]:
        return [0]
    start, count = (1 if given[0] else 1 + node.op.n_outs), node.op.n_outs
    return range(start, start + count)


class IntroduceOnDemand(GraphRewriter):
    """Moves lazy nodes of users' ops, and what only they use, into nodes of `OnDemand`."""

    def apply(self, fgraph: FunctionGraph) -> bool:
        lazy = {node for node in fgraph.apply_nodes if is_lazy(node)}
        if not lazy:
            return False
        region = _region(fgraph, lazy)
        for nodes in _components(fgraph, [node for node in fgraph.toposort() if node in region]):
            self._introduce(fgraph, nodes)
        return True

    @staticmethod
    def _introduce(fgraph: FunctionGraph, nodes: Sequence[Apply]) -> None:
        """Replace nodes, which are in topological order, by one of `OnDemand`."""
        inside = set(nodes)
        used = dict.fromkeys(v for node in nodes for v in node.inputs)
        inputs = [v for v in used if v.owner not in inside and not isinstance(v, Constant)]
        outputs = [v for node in nodes for v in node.outputs if _users(fgraph, [v]) - inside]
        graph = FrozenFunctionGraph.from_toposort(inputs, outputs, nodes)
        new = OnDemand(graph, tuple([node.origin for node in nodes])).make_node(*inputs)
        fgraph.replace_all(list(zip(outputs, new.outputs)), reason="introduce_on_demand")


def _components(fgraph: FunctionGraph, region: Sequence[Apply]) -> list[list[Apply]]:
    """The nodes of a region, in their order, in parts that are not connected in it."""
    inside, number = set(region), dict[Apply, int]()
    for k, first in enumerate(region):
        stack = [first]
        while stack:
            node = stack.pop()
            if node not in number:
                number[node] = k
                near = _users(fgraph, node.outputs) | {v.owner for v in node.inputs}
                stack += inside & near
    found: dict[int, list[Apply]] = {}
    for node in region:
        found.setdefault(number[node], []).append(node)
    return list(found.values())


def _region(fgraph: FunctionGraph, lazy: Collection[Apply]) -> set[Apply]:
    """Lazy nodes, those that only they use, and those between them."""
    order = fgraph.toposort()
    inside = set(lazy)
    for node in reversed(order):
        if _users(fgraph, node.outputs) <= inside:
            inside.add(node)
    after, before = set(inside), set(inside)
    for node in order:
        if any(v.owner in after for v in node.inputs):
            after.add(node)
    for node in reversed(order):
        if not before.isdisjoint(_users(fgraph, node.outputs)):
            before.add(node)
    return after & before


def _users(fgraph: FunctionGraph, variables: Sequence[Variable]) -> set[Apply]:
    """The nodes that use variables; those of outputs of the graph are in no graph."""
    return {node for v in variables for node, _ in fgraph.clients.get(v, ())}


def _register_phase() -> None:
    optdb.register("introduce_on_demand", IntroduceOnDemand(), "minimum_compile", position=3.65)
    optdb.mark_own()


optdb.fill_later(_register_phase)
