"""Constant folding: what depends on constants only is evaluated during rewriting.

A rule folds node by node.  It leaves nodes whose results are large, as most of them are cheaper to
compute than to keep.  What is computed of such results may be small: `fold_regions` computes whole
subgraphs, and keeps their small results only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from math import prod
from typing import Any

import numpy as np

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Storage
from phintys.graph.results import declared_result
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.equilibrium import EquilibriumGraphRewriter
from phintys.rewriting.rewriter import FromFunctionNodeRewriter
from phintys.rewriting.rule import Context, Replacement, Rule, rule
from phintys.rewriting.walk import in2out
from phintys.scalar.type import ScalarType
from phintys.tensor.rules.match import every_constant
from phintys.tensor.type import TensorType

#: Larger results are not folded: the constant would take memory for as long as the graph lives.
MAX_SIZE = 10_000
#: Nodes with larger results are not computed during rewriting, even if little of them is kept.
MAX_INTERMEDIATE = 10_000_000


@rule(
    "op(constants) -> constant",
    ops=None,
    where=every_constant,
    law="exact",
    tags=("topo_constant_folding", "constant_folding", "cleanup"),
    tested_on=(
        "exp(constant(2.0))",
        "constant([1.0, 2.0]) + 1",
        "constant([1, 2, 3])[1:]",
        "v[:ScalarFromTensor()(constant(2))]",
    ),
)
def fold_constants(ctx: Context, node: Apply) -> Replacement:
    constants = _constants(node)
    if not constants or not node.op.do_constant_folding(ctx.fgraph, node):
        return None
    if _grows(node, sum(map(_size, constants))):
        return None
    values = _performed(node, [v.data for v in constants])
    return None if values is None else _as_constants(node, values)


def _constants(node: Apply) -> list[Constant]:
    """The inputs of a node that can be computed now: all are constants; else none."""
    constants = [v for v in node.inputs if isinstance(v, Constant)]
    # `where` does not see all inputs of a long node
    return constants if len(constants) == len(node.inputs) and _has_arrays(node) else []


def _has_arrays(node: Apply) -> bool:
    """Whether the results of a node are new arrays and numbers."""
    if node.op.destroy_map:
        return False
    return all(isinstance(o.type, TensorType | ScalarType) for o in node.outputs)


def _performed(node: Apply, inputs: Sequence[Any]) -> list[Any] | None:
    """The values that a node computes; None if it fails, or they are not of the declared types."""
    storage: Storage = [[None] for _ in node.outputs]
    try:
        node.op.perform(node, inputs, storage)
        return [declared_result(node, k, cell[0]) for k, cell in enumerate(storage)]
    except Exception:
        # the error is one of the user's program, and is raised when the function is called
        return None


def _as_constants(node: Apply, values: Sequence[Any]) -> list[Variable]:
    return [o.type.make_constant(value) for o, value in zip(node.outputs, values)]


def _size(v: Constant) -> int:
    return int(getattr(v.data, "size", 1))


def _known_size(node: Apply) -> int:
    """The number of elements of the largest result whose shape is known."""
    known = [prod(o.type.shape) for o in node.outputs if o.type.ndim and None not in o.type.shape]
    return max(known, default=0)


def _grows(node: Apply, given: int) -> bool:
    """Whether the result has more than `MAX_SIZE` elements, and more than ``given``."""
    return _known_size(node) > max(MAX_SIZE, given)


# ------------------------------------------------------------------------------- regions


class FoldsRegions(EquilibriumGraphRewriter):
    """The phase ``canonicalize``: its rules, and again if `fold_regions` has changed the graph."""

    def apply(self, fgraph: FunctionGraph, start_from: Sequence[Variable] | None = None) -> None:
        super().apply(fgraph, start_from)
        if fold_constants in self.rules.rules and fold_regions(fgraph):
            super().apply(fgraph, start_from)


def fold_regions(fgraph: FunctionGraph) -> bool:
    """Replace small results of what depends on constants only; return whether there were any.

    Each node is computed once at most, and a value is dropped when no other node needs it.
    """
    if not any(_constants(node) for node in fgraph.apply_nodes):
        return False
    closed = _closed_nodes(fgraph)
    wanted, needed = _frontier(fgraph, closed)
    folded = _folded(fgraph, [n for n in closed if n in needed], {n: closed[n] for n in wanted})
    if not folded:
        return False
    replace = Rule("constant subgraph -> constant", lambda ctx, node: folded.get(node))
    return RuleSet([replace], name="fold_regions").apply(fgraph)


def _closed_nodes(fgraph: FunctionGraph) -> dict[Apply, int]:
    """The nodes that depend on constants only and can be computed now, in topological order.

    Each with the number of elements of the largest of these constants.
    """
    found: dict[Apply, int] = {}
    for node in fgraph.toposort():
        constants = [_size(v) for v in node.inputs if isinstance(v, Constant)]
        computed = [found[v.owner] for v in node.inputs if v.owner is not None and v.owner in found]
        known = [*constants, *computed]
        if not known or len(known) < len(node.inputs) or not _has_arrays(node):
            continue
        if _known_size(node) <= MAX_INTERMEDIATE and node.op.do_constant_folding(fgraph, node):
            found[node] = max(known)
    return found


def _frontier(fgraph: FunctionGraph, closed: dict[Apply, int]) -> tuple[set[Apply], set[Apply]]:
    """The closed nodes to replace, and those to compute.

    Nodes are replaced that are not known to be large, and are used by others than those to compute.
    """
    wanted: set[Apply] = set()
    needed: set[Apply] = set()
    for node in reversed(closed):
        users = {user for o in node.outputs for user, _ in fgraph.clients[o]}
        if not users <= needed and not _grows(node, closed[node]):
            wanted.add(node)
        if node in wanted or not users.isdisjoint(needed):
            needed.add(node)
    return wanted, needed


def _folded(
    fgraph: FunctionGraph, nodes: Sequence[Apply], wanted: dict[Apply, int]
) -> dict[Apply, list[Variable | None]]:
    """For nodes to replace their results as constants, None for those that nothing uses.

    ``nodes`` are computed in their order.  Those that fail, or whose results are larger than
    `MAX_SIZE` and than their number in ``wanted``, are left out.
    """
    uses = Counter(v for node in nodes for v in node.inputs)
    values: dict[Variable, Any] = {}
    folded: dict[Apply, list[Variable | None]] = {}
    for node in nodes:
        computed = None
        if all(isinstance(v, Constant) or v in values for v in node.inputs):
            given = [v.data if isinstance(v, Constant) else values[v] for v in node.inputs]
            computed = _performed(node, given)
        for v in node.inputs:
            uses[v] -= 1
            if not uses[v]:
                values.pop(v, None)
        if computed is None:
            continue
        if node in wanted and _are_small(computed, wanted[node]):
            # copies: a view would keep a larger array alive
            constants = _as_constants(node, [np.array(x) for x in computed])
            folded[node] = [
                c if fgraph.clients[o] else None for o, c in zip(node.outputs, constants)
            ]
        values.update((o, x) for o, x in zip(node.outputs, computed) if uses[o])
    return folded


def _are_small(values: Collection[Any], given: int) -> bool:
    return max(x.size for x in values) <= max(MAX_SIZE, given)


def _unconditional(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    constants = _constants(node)
    values = _performed(node, [v.data for v in constants]) if constants else None
    return None if values is None else _as_constants(node, values)


#: A graph rewriter that folds all nodes of constants: those whose op, or the size of whose result,
#: says not to, too.  Nodes that fail stay.
topo_unconditional_constant_folding = in2out(
    FromFunctionNodeRewriter(_unconditional),
    ignore_newtrees=True,
    name="topo_unconditional_constant_folding",
)
