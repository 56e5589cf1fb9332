"""Joins elementwise nodes of a graph: Numba then compiles one loop for many of them.

Each function that Numba compiles takes it tens of milliseconds, however short, and each loop reads
and writes memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.backends.numba.dispatch import numba_funcify
from phintys.backends.numba.elemwise import numba_funcify_elemwise
from phintys.backends.numba.scalar import has_source, is_built_in
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import inherit
from phintys.graph.variable import Apply, Constant, Variable
from phintys.scalar.composite import Composite
from phintys.scalar.type import constant, scalar_type
from phintys.tensor.elemwise import Elemwise

#: nodes that are this far apart in the order of execution are not joined
LONGEST = 256


def fused(fgraph: FunctionGraph) -> FunctionGraph:
    """The graph itself if nothing in it can be joined; else a copy with the same inputs."""
    groups = _groups(fgraph)
    if not groups:
        return fgraph
    copy, copy_of = fgraph.clone_get_equiv(check_integrity=False, copy_inputs=False)
    for group in groups:
        _join(copy, [copy_of[node] for node in group])
    return copy


def _groups(fgraph: FunctionGraph) -> list[list[Apply]]:
    """Groups of two or more nodes, each in the order of execution.

    A node is on the level of the nodes before it, or on a higher one than those of them that can be
    joined with others but not with it.  So no path that leaves a group returns to its level, where
    nodes are joined if they share a variable that has their lengths.
    """
    order = fgraph.toposort()
    level: dict[Apply, int] = {}
    pattern: dict[Apply, Any] = {}
    group_of: dict[Apply, list[Apply]] = {}
    first: dict[tuple[Variable, int], Apply] = {}  # that has a variable, on a level
    for number, node in enumerate(order):
        p = pattern[node] = _pattern(node)
        before = [v.owner for v in node.inputs if v.owner is not None]
        levels = [level[n] + (pattern[n] not in (None, p)) for n in before]
        level[node] = max([number // LONGEST * LONGEST, *levels])
        if p is None:
            continue
        group_of[node] = [node]
        for v in (*node.inputs, *node.outputs):
            if _lengths(v) == p:
                _merge(group_of, first.setdefault((v, level[node]), node), node)
    groups = {id(group): group for group in group_of.values() if len(group) > 1}
    place = {node: i for i, node in enumerate(order)}
    return [sorted(group, key=place.__getitem__) for group in groups.values()]


def _merge(group_of: dict[Apply, list[Apply]], one: Apply, other: Apply) -> None:
    """Make the groups of two nodes one group."""
    if group_of[one] is not group_of[other]:
        small, large = sorted((group_of[one], group_of[other]), key=len)
        large.extend(small)
        group_of.update(dict.fromkeys(small, large))


def _pattern(node: Apply) -> Any:
    """Which lengths of a node that can be joined are known to be 1; None if it cannot be joined."""
    op: Any = node.op
    if numba_funcify.dispatch(type(op)) is not numba_funcify_elemwise:
        return None
    dtypes = [v.type.dtype for v in node.inputs]
    if all(isinstance(v, Constant) for v in node.inputs):
        return None
    if not is_built_in(op.scalar_op) or not has_source(op.scalar_op, dtypes):
        return None
    return _lengths(node.outputs[0])


def _lengths(v: Any) -> tuple[bool, ...]:
    return tuple([n == 1 for n in v.type.shape])


def _join(fgraph: FunctionGraph, group: Sequence[Apply]) -> None:
    """Replace the nodes of a group by one."""
    inside = [v for node in group for v in node.outputs]
    members, made = {*group}, {*inside}
    used = dict.fromkeys(v for node in group for v in node.inputs if v not in made)
    scalars: dict[Variable, Any] = {v: _scalar(v) for v in used}
    for node in group:
        op: Any = node.op
        found = op.scalar_op.make_node(*(scalars[v] for v in node.inputs))
        scalars.update(zip(node.outputs, found.outputs))
    given = [v for v in used if not isinstance(scalars[v], Constant)]
    results = [v for v in inside if any(n not in members for n, _ in fgraph.clients[v])]
    op = Elemwise(Composite([scalars[v] for v in given], [scalars[v] for v in results]))
    with inherit(group[-1].origin):
        outputs = Apply(op, given, [v.type() for v in results]).outputs
    fgraph.replace_all(list(zip(results, outputs)), reason="fusion")


def _scalar(v: Any) -> Variable:
    """What stands for a tensor in the graph of scalars: a constant if it is one number."""
    if isinstance(v, Constant) and v.data.size == 1:
        return constant(v.data.reshape(()), dtype=v.type.dtype)
    return scalar_type(v.type.dtype)()
