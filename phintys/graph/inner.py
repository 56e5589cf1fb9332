"""Inner graphs of ops, found and expanded without recursion."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import HasMultipleInnerGraph
from phintys.graph.origin import inherit
from phintys.graph.traversal import toposort

Wanted = Callable[[Any], bool]


def _any(op: Any) -> bool:
    return True


def nested_ops(ops: Iterable[Any], known: Container[int] = ()) -> list[HasMultipleInnerGraph]:
    """The distinct ops with inner graphs among ``ops`` and inside of them, deepest first.

    Every op comes after those that its inner graphs contain.  Ops whose ``id`` is in ``known`` are
    left out, with what is inside of them.
    """
    order: list[HasMultipleInnerGraph] = []
    seen: set[HasMultipleInnerGraph] = set()
    stack: list[tuple[Any, Iterator[Any]]] = [(None, iter(ops))]
    while stack:
        op, inside = stack[-1]
        for nested in inside:
            if not isinstance(nested, HasMultipleInnerGraph):
                continue
            if nested not in seen and id(nested) not in known:
                seen.add(nested)
                graphs = nested.inner_graphs.values()
                stack.append((nested, iter([n.op for g in graphs for n in g.toposort()])))
                break
        else:
            stack.pop()
            if op is not None:
                order.append(op)
    return order


def has_inner_graphs(fgraph: FunctionGraph) -> bool:
    """Whether an op of the graph contains a graph."""
    for node in fgraph.apply_nodes:  # noqa: SIM110 - a generator takes twice as long
        if isinstance(node.op, HasMultipleInnerGraph):
            return True
    return False


def expand(fgraph: FunctionGraph, wanted: Wanted = _any) -> bool:
    """Replace the nodes of expandable ops that are ``wanted``; return whether there were any.

    The nodes of inner graphs are replaced as well.
    """
    pending = [node for node in fgraph.apply_nodes if _is_expandable(node.op, wanted)]
    changed = False
    while pending:
        node = pending.pop()
        if node not in fgraph.apply_nodes:
            continue
        with inherit(node.origin):
            outputs = node.op.inline_node(node)
        changed = True
        new = list(toposort(outputs, blockers=node.inputs))
        fgraph.replace_all(list(zip(node.outputs, outputs, strict=True)), reason="inline")
        pending.extend(n for n in new if _is_expandable(n.op, wanted))
    return changed


def _is_expandable(op: Any, wanted: Wanted = _any) -> bool:
    return isinstance(op, HasMultipleInnerGraph) and op.is_expandable and wanted(op)


def expanded(fgraph: FunctionGraph) -> FunctionGraph:
    """The graph itself if no op in it can be expanded; else a copy with these expanded."""
    if not any(_is_expandable(node.op) for node in fgraph.toposort()):
        return fgraph
    copy = fgraph.clone(check_integrity=False)
    expand(copy)
    return copy
