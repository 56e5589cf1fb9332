"""Which nodes depend on which, as one integer per node: bit ``k`` stands for the ``k``-th node."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply

Bits = dict[Apply | None, int]


def ancestor_bitsets(
    fgraph: FunctionGraph, toposorted_nodes: Sequence[Apply] | None = None
) -> tuple[Bits, Bits]:
    """``(ancestors, bitflags)``: ``a`` is an ancestor of ``c`` if ``ancestors[c] & bitflags[a]``.

    A node is its own ancestor.  None, the "owner" of roots, has no bit; the nodes that mark outputs
    share one that belongs to no other node.
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
    """Candidates none of which depends on another, kept in order, as long as each is independent.

    Contracting them into one node makes no cycle.
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
    """Let what depends on one of ``nodes`` depend on what any of them depends on, in place."""
    members = closure = 0
    for node in nodes:
        members |= bitflags[node]
        closure |= ancestors[node]
    update_ancestors_after_contraction_bits(ancestors, members, closure)


def update_ancestors_after_contraction_bits(
    ancestors: Bits, member_bits: int, combined_ancestors: int
) -> None:
    """`update_ancestors_after_contraction`, given the bits of the nodes and of their ancestors."""
    for node, reached in ancestors.items():
        if reached & member_bits:
            ancestors[node] = reached | combined_ancestors
