"""Update a FunctionGraph in one step after the inputs of nodes and its outputs were replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phintys.config import config
from phintys.graph.clients import Client, Clients, OrderedSet
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.traversal import sorted_nodes
from phintys.graph.variable import Apply, Variable

Change = tuple[Apply, int, Variable, Variable]  # node, input, old, new


def install(
    fgraph: FunctionGraph,
    outputs: Sequence[Variable],
    original: Mapping[Apply, Sequence[Variable]],
    old_order: Sequence[Apply],
    reason: Any,
) -> bool:
    """Make ``outputs`` the outputs of ``fgraph`` and update its tables; return whether it changed.

    ``old_order`` are the nodes before the change, in topological order; ``original`` maps those
    whose inputs were changed to their old inputs.  The features get ``on_import`` for every new
    node, ``on_prune`` for every removed node, and ``on_change_input`` for every changed input.  If
    the result does not validate, everything is undone and `InconsistencyError` is raised.
    """
    if not original and all(new is old for new, old in zip(outputs, fgraph.outputs)):
        return False
    new_order = sorted_nodes([v.owner for v in outputs])
    alive, known = set(new_order), set(old_order)
    imported = [n for n in new_order if n not in known]
    removed = [n for n in reversed(old_order) if n not in alive]
    changes = _changes_of_nodes(original, alive)
    changes += _changes_of_outputs(fgraph, outputs)
    mark = fgraph.checkpoint()
    if fgraph.has_clients:
        _import(fgraph.clients, imported)
        _exchange(fgraph, changes)
        _remove(fgraph, removed)
    fgraph.apply_nodes = OrderedSet(new_order)
    fgraph.note_change(new_order)
    for name, nodes in (("on_import", imported), ("on_prune", removed)):
        if fgraph.listens(name):
            for node in nodes:
                fgraph.execute_callbacks(name, node, reason)
    for node, i, old, new in changes:
        fgraph.execute_callbacks("on_change_input", node, i, old, new, reason=reason)
    _validate(fgraph, mark)
    return bool(changes)


def _changes_of_nodes(
    original: Mapping[Apply, Sequence[Variable]], alive: set[Apply]
) -> list[Change]:
    """The changed inputs of nodes that stay; removed nodes get their old inputs back.

    The tables of the graph refer to the old inputs, which are needed to remove a node.
    """
    changes: list[Change] = []
    for node, inputs in original.items():
        if node in alive:
            pairs = enumerate(zip(inputs, node.inputs))
            changes += [(node, i, old, new) for i, (old, new) in pairs if old is not new]
        else:
            node.inputs[:] = inputs
    return changes


def _changes_of_outputs(fgraph: FunctionGraph, outputs: Sequence[Variable]) -> list[Change]:
    """Set the outputs of the graph; return the changes, as inputs of `Output` nodes."""
    changes: list[Change] = []
    for k, (old, new) in enumerate(zip(fgraph.outputs, outputs)):
        if old is not new:
            node, _ = fgraph.get_output_client(k)
            node.inputs[0] = new
            changes.append((node, 0, old, new))
    fgraph.outputs[:] = outputs
    return changes


def _import(clients: dict[Variable, Clients], nodes: Sequence[Apply]) -> None:
    """Add new nodes to the table of uses."""
    for node in nodes:
        for v in node.outputs:
            if v not in clients:
                clients[v] = Clients()
        for i, v in enumerate(node.inputs):
            if v not in clients:
                clients[v] = Clients()
            clients[v][node, i] = None


def _exchange(fgraph: FunctionGraph, changes: Sequence[Change]) -> None:
    """Update the uses of the old and new inputs of ``changes``."""
    clients = fgraph.clients
    for node, i, _, new in changes:
        if new not in clients:
            clients[new] = Clients()
        clients[new][node, i] = None
    for node, i, old, _ in changes:
        _remove_use(fgraph, old, (node, i))


def _remove(fgraph: FunctionGraph, nodes: Sequence[Apply]) -> None:
    """Remove nodes from the table of uses, given users first.

    Faster than `FunctionGraph.remove_client`, which has to find out which nodes are not used.
    """
    clients = fgraph.clients
    for node in nodes:
        for v in node.outputs:
            clients.pop(v, None)
    for node in nodes:
        for i, v in enumerate(node.inputs):
            if v in clients:  # the loop above has removed most of them
                _remove_use(fgraph, v, (node, i))


def _remove_use(fgraph: FunctionGraph, v: Variable, client: Client) -> None:
    clients = fgraph.clients[v]
    clients.pop(client, None)
    if not clients and v.owner is None:
        fgraph.remove_client(v, client)  # removes an unused constant


def _validate(fgraph: FunctionGraph, mark: int) -> None:
    """Validate the graph; on any exception, revert it to the checkpoint ``mark``."""
    if config.check_rewrites:
        fgraph.check_integrity()
    try:
        fgraph.validate()
    except Exception:
        fgraph.revert(mark)
        raise
