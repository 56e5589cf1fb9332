"""DimShuffles inside each other, with elementwise functions between: moved to the inputs at once.

The rule ``dimshuffle(f(x, y)) -> f(dimshuffle(x), dimshuffle(y))`` is applied to inner nodes first.
A DimShuffle above others moves again what they have moved, so a chain like ``exp(exp(x.T).T).T``
would take quadratic time.  `NestedAxes` starts at the outermost ones, and makes each node once.
"""

from __future__ import annotations

from collections.abc import Mapping

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import inherit
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.merge import MergeOptimizer
from phintys.rewriting.rewriter import GraphRewriter
from phintys.tensor.aliases import Place
from phintys.tensor.elemwise import DimShuffle, Elemwise, dimshuffle

#: A variable, and the order in which its axes are wanted.
Shuffled = tuple[Variable, tuple[Place, ...]]
#: The number of uses of each variable.
Uses = Mapping[Variable, int]


class NestedAxes(GraphRewriter):
    """A graph rewriter that moves DimShuffles that are inside each other to the inputs."""

    def __init__(self) -> None:
        self._merge = MergeOptimizer()

    def apply(self, fgraph: FunctionGraph) -> bool:
        if not any(type(node.op) is DimShuffle for node in fgraph.apply_nodes):
            return False
        if not _outermost(fgraph, fgraph.use_counts()):
            return False
        self._merge.rewrite(fgraph)  # what is used in several places stays
        uses = fgraph.use_counts()
        pairs = [(n.outputs[0], _moved(uses, n)) for n in _outermost(fgraph, uses)]
        fgraph.replace_all(pairs, reason="nested axes")
        return bool(pairs)


def _outermost(fgraph: FunctionGraph, uses: Uses) -> list[Apply]:
    """The DimShuffles at the top of trees of functions that contain more to be moved."""
    root: dict[Variable, Apply] = {}  # variable inside a tree -> the node at its top
    found: dict[Apply, None] = {}
    for node in reversed(fgraph.toposort()):
        top = root.get(node.outputs[0])
        if type(node.op) is DimShuffle and not node.op.drop and _inner(uses, node.inputs[0]):
            if top is not None:
                found[top] = None
            root[node.inputs[0]] = top or node
        elif type(node.op) is Elemwise and top is not None:
            root.update((x, top) for x in node.inputs if _inner(uses, x))
    return list(found)


def _inner(uses: Uses, v: Variable) -> Apply | None:
    """The function or DimShuffle that computes ``v``, if ``v`` has a single use; else None."""
    node = v.owner
    if node is None or type(node.op) not in (Elemwise, DimShuffle) or len(node.outputs) > 1:
        return None
    return node if uses[v] == 1 else None


def _moved(uses: Uses, top: Apply) -> Variable:
    """The result of the node, computed by DimShuffles of the inputs of its tree only."""
    result = top.outputs[0]
    start: Shuffled = (result, tuple(range(result.type.ndim)))
    below: dict[Shuffled, list[Shuffled]] = {}
    stack = [start]
    while stack:
        key = stack.pop()
        if key not in below:
            node = top if key is start else _inner(uses, key[0])
            below[key] = [] if node is None else _below(node, key[1])
            stack += below[key]
    with inherit(top.origin):
        leaves = [key for key, parts in below.items() if not parts]
        found: dict[Shuffled, Variable] = {key: dimshuffle(*key) for key in leaves}
        for key, parts in reversed(below.items()):  # the rest is a tree, in the order of its nodes
            if parts:
                found[key] = _applied(key[0], [found[part] for part in parts])
    return result.type.filter_variable(found[start])


def _below(node: Apply, order: tuple[Place, ...]) -> list[Shuffled]:
    """What a node inside a tree computes its result of, in another order of axes."""
    if type(node.op) is Elemwise:
        return [(x, order) for x in node.inputs]
    if node.op.drop:
        return []
    inner = node.op.new_order
    return [(node.inputs[0], tuple(["x" if o == "x" else inner[o] for o in order]))]


def _applied(v: Variable, inputs: list[Variable]) -> Variable:
    """The function that computes ``v``, of other inputs; the input itself for a DimShuffle."""
    assert v.owner is not None
    return inputs[0] if type(v.owner.op) is DimShuffle else v.owner.op(*inputs)
