"""What a loop need not compute step by step is computed before it, or after it.

Whole subgraphs are moved; `vectorize_graph` makes the graphs for all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from phintys.conditional.regions import fallible, places_of
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.replace import graph_replace
from phintys.graph.variable import Apply, Constant
from phintys.graph.vectorize import vectorize_graph
from phintys.loop.parts import Part
from phintys.loop.rules.buffers import keeps_all_rows, rows_of_steps, traces
from phintys.loop.rules.reads import ResultLengths, needs_all_rows
from phintys.loop.step import is_draw
from phintys.loop.whole import Replacements, Whole, depending, nodes_of, taken_apart
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.creation import alloc
from phintys.tensor.dot import Dot
from phintys.tensor.elemwise import DimShuffle, Elemwise
from phintys.tensor.reduce import CAReduce
from phintys.tensor.shape import shape_tuple
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax

#: elementwise functions whose values are not worth storing for all steps
CHEAP = frozenset(
    (
        "add sub mul neg abs sqr second identity switch maximum minimum clip sign "
        "eq neq lt le gt ge and_ or_ xor invert isnan isinf"
    ).split()
)
#: ops that compute all steps by one node
AT_ONCE = (Elemwise, DimShuffle, CAReduce, Dot, Softmax, LogSoftmax, LogSumExp)


def push_out_invariant(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Compute before a loop what depends on its constants only.

    It is computed even if the loop makes no step; an error in it is raised then.  A draw from a
    generator that no step changes gives the same numbers in all steps.  What only a branch needs,
    and may fail, stays there.
    """
    loop = taken_apart(node)
    constants = {p.inputs[0]: p.outer for p in loop.of_kind("non_seq")}
    nodes = nodes_of(loop)
    inside = _computed_from(
        constants, nodes, lambda n: is_draw(n) or n.op.do_constant_folding(fgraph, n)
    )
    moved = _frontier(inside, loop, nodes, fallible(nodes))
    if not moved:
        return None
    _feed(loop, "non_seq", moved, graph_replace(moved, constants, strict=False))
    return loop.replacements()


def push_out_ahead(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Compute before a loop, for all steps at once, costly functions of its sequences.

    A while loop keeps them, since it may end after a few steps.
    """
    loop = taken_apart(node)
    if loop.condition is not None:
        return None
    nodes = nodes_of(loop)
    rows = {p.inputs[0]: rows_of_steps(p.outer, loop.steps) for p in loop.of_kind("seq")}
    constants = {p.inputs[0]: p.outer for p in loop.of_kind("non_seq")}
    inside = _computed_from([*rows, *constants], nodes, _is_computed_at_once)
    pays = _paying(nodes, rows)
    moved = [v for v in _frontier(inside, loop, nodes, set(nodes)) if pays(v)]
    if not moved:
        return None
    _feed(loop, "seq", moved, vectorize_graph(moved, {**constants, **rows}))
    return loop.replacements()


def push_out_behind(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Compute after a loop, for all steps at once, costly outputs that no step reads.

    What they need of each step are rows of sequences, and of states of which all rows are kept.  No
    rows of a state are kept for an output of lower rank alone, such as their sums.  A loop whose
    steps do not depend on each other vanishes.
    """
    loop = taken_apart(node)
    if loop.condition is not None:
        return None
    old = dict(zip(node.outputs, node.outputs))
    rows = traces(loop, old)
    constants = {p.inputs[0]: p.outer for p in loop.of_kind("non_seq")}
    outputs = [p for p in loop.of_kind("nit_sot") if keeps_all_rows(p, loop.steps)]
    for p in outputs:
        if p.outputs[0].owner is not None:
            del rows[p.outputs[0]]
    nodes = nodes_of(loop)
    inside = _computed_from([*rows, *constants], nodes, _is_computed_at_once)
    moved = [p for p in outputs if p.outputs[0] in inside or isinstance(p.outputs[0], Constant)]
    results = [p for p in loop.parts if p.result is not None]
    if len(moved) < len(results):
        pays, ranks = _paying(nodes, rows), _ranks_of_new_traces(fgraph, loop, nodes, rows)
        moved = [p for p in moved if p.outputs[0] in rows or pays(p.outputs[0])]
        moved = [p for p in moved if p.outputs[0].type.ndim >= ranks.get(p.outputs[0], 0)]
    if not moved:
        return None
    gone = {id(p) for p in moved}
    loop.parts = [p for p in loop.parts if id(p) not in gone]
    found = loop.replacements() if len(moved) < len(results) else {}
    values = [p.outputs[0] for p in moved]
    new = vectorize_graph(values, {**constants, **traces(loop, found)})
    varying = depending(nodes, rows)
    for p, v, x in zip(moved, values, new):
        x = x if v in varying else alloc(x, loop.steps, *shape_tuple(x))
        found[node.outputs[p.result]] = x  # type: ignore[index]
    return found


# ------------------------------------------------------------------------ what is moved


def _computed_from(
    known: Iterable[Any], nodes: Iterable[Any], is_movable: Callable[[Any], bool]
) -> set[Any]:
    """``known``, and what movable nodes compute from it and from constants."""
    found = set(known)
    for node in nodes:
        if all(v in found or isinstance(v, Constant) for v in node.inputs) and is_movable(node):
            found.update(node.outputs)
    return found


def _frontier(
    inside: set[Any], loop: Whole, nodes: Sequence[Any], bound: Collection[Any]
) -> list[Any]:
    """The computed variables of ``inside`` that nodes which stay use, or that are inner outputs.

    Nodes of ``bound`` that only a branch needs stay if the choice does.
    """
    results = loop.expressions()
    lazy, used = places_of(results, nodes), set(results)
    staying: list[Any] = []
    for node in reversed(nodes):
        is_lazy = node in bound and node in lazy and not used.isdisjoint(node.outputs)
        if is_lazy or node.outputs[0] not in inside:
            staying.append(node)
            used.update(node.inputs)
    stay = set(staying)
    found = dict.fromkeys([*(v for node in reversed(staying) for v in node.inputs), *results])
    return [v for v in found if v in inside and v.owner is not None and v.owner not in stay]


def _is_computed_at_once(node: Any) -> bool:
    op = node.op
    return isinstance(op.core_op if isinstance(op, Blockwise) else op, AT_ONCE)


def _paying(nodes: Sequence[Any], rows: Mapping[Any, Any]) -> Callable[[Any], bool]:
    """Whether a value is costly, no larger than the ``rows``, and differs between steps."""
    varying = depending(nodes, rows)
    costly = depending(nodes, [v for node in nodes if _is_costly(node) for v in node.outputs])
    rank = max((x.type.ndim for x in rows), default=0)
    return lambda v: v in varying and v in costly and v.type.ndim <= rank


def _ranks_of_new_traces(
    fgraph: FunctionGraph, loop: Whole, nodes: Sequence[Any], rows: Collection[Any]
) -> dict[Any, int]:
    """The largest rank of the states that a value depends on, all rows of which nothing else needs.

    ``rows`` are the inner variables whose values at all steps could be kept.
    """
    lengths = ResultLengths(loop)
    ranks: dict[Any, int] = {}
    for p in loop.of_kind("mit_sot", "sit_sot"):
        if not needs_all_rows(fgraph, loop.node.outputs[p.result], lengths, p):  # type: ignore[index]
            ranks.update((v, v.type.ndim) for v in (*p.inputs, *p.outputs) if v in rows)
    for node in nodes:
        most = max((ranks[v] for v in node.inputs if v in ranks), default=None)
        if most is not None:
            ranks.update((v, most) for v in node.outputs if v not in rows)
    return ranks


def _is_costly(node: Any) -> bool:
    if isinstance(node.op, DimShuffle):
        return False
    if not isinstance(node.op, Elemwise):
        return True
    name = node.op.scalar_op.name
    return name not in CHEAP and not name.startswith("cast_")


def _feed(loop: Whole, kind: str, moved: Sequence[Any], values: Sequence[Any]) -> None:
    """Give a loop values from outside in place of what it computes."""
    given = {v: v.type.make_variable() for v in moved}
    loop.replace(given)
    loop.parts += [Part(kind, x, [v]) for v, x in zip(given.values(), values, strict=True)]
