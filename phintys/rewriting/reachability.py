"""Reachability between nodes as bitsets: integers whose bit ``k`` stands for the ``k``-th node."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply

Bits = dict[Apply | None, int]


def ancestor_bitsets(
    fgraph: FunctionGraph, toposorted_nodes: Sequence[Apply] | None = None
) -> tuple[Bits, Bits]:
    """Two dicts, ``(ancestors, bitflags)``: node c depends on a if ``ancestors[c] & bitflags[a]``.

    A node is its own ancestor.  None, the owner of variables without one, has no bit.  The `Output`
    nodes share one bit, which no other node has.
    """
    order = fgraph.toposort() if toposorted_nodes is None else toposorted_nodes
    ancestors: Bits = {None: 0}
    bitflags: Bits = {None: 0}
    for k, node in enumerate(order):
        bitflags[node] = reached = 1 << k
        for v in node.inputs:
            reached |= ancestors[v.owner]
        ancestors[node] = reached
    for k in range(len(fgraph.outputs)):
        marker, _ = fgraph.get_output_client(k)
        bitflags[marker] = 1 << len(order)
    return ancestors, bitflags


def greedy_independent_subset(
    ancestors: Bits, bitflags: Bits, candidates: Sequence[Apply]
) -> list[Apply]:
    """Candidates none of which depends on another, chosen greedily in the given order.

    Contracting them into one node creates no cycle.
    """
    kept: list[Apply] = []
    members = closure = 0
    for node in candidates:
        if ancestors[node] & members or bitflags[node] & closure:
            continue
        kept.append(node)
        members |= bitflags[node]
        closure |= ancestors[node]
    return kept


def update_ancestors_after_contraction(
    ancestors: Bits, bitflags: Bits, nodes: Sequence[Apply]
) -> None:
    """Update ``ancestors`` in place for a contraction of ``nodes`` into one.

    Every node that depends on one of them then depends on the ancestors of all of them.
    """
    members = closure = 0
    for node in nodes:
        members |= bitflags[node]
        closure |= ancestors[node]
    update_ancestors_after_contraction_bits(ancestors, members, closure)


def update_ancestors_after_contraction_bits(
    ancestors: Bits, member_bits: int, combined_ancestors: int
) -> None:
    """`update_ancestors_after_contraction`, for given bits of the nodes and of their ancestors."""
    for node, reached in ancestors.items():
        if reached & member_bits:
            ancestors[node] = reached | combined_ancestors
