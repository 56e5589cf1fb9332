"""Invariants of the tables of the rewriting engine, which hold between any two of its steps."""

from __future__ import annotations

from typing import Any

from phintys.graph.variable import Apply, Variable


def check_tables(run: Any) -> None:
    """Raise ValueError, naming the contradiction, if the tables of a `Normalizer` are inconsistent.

    For tests (``config.check_rewrites``): it takes time linear in the size of the graph.
    """
    _check_states(run)
    _check_interned(run)
    _check_in_progress(run)
    _check_uses(run)


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"The tables of the rewriting engine do not agree: {what}.")


def _check_states(run: Any) -> None:
    """No variable is in normal form and replaced; the outputs of nodes that are done are either."""
    done, producers, forward = run._done, run._producers, run._forward
    for v in producers:
        _expect(v not in forward, f"{v} is replaced and in normal form")
        _expect(v.owner is None or v.owner in done, f"{v} is in normal form, its node is not done")
    for node in done:
        states = {o in producers for o in node.outputs}
        _expect(len(states) == 1, f"only some outputs of {node} are in normal form")
        replaced = [o for o in node.outputs if o in forward]
        _expect(states == {True} or bool(replaced), f"{node} is done, but not its outputs")
    for node in run._deferred:
        _expect(node in done, f"{node} is deferred and not done")
        _expect(node not in run._forced, f"{node} is deferred after it was forced")
        _expect(all(o in producers for o in node.outputs), f"{node} is deferred and not normal")


def _check_interned(run: Any) -> None:
    """Nodes in the hash-consing table are done, have the inputs of their key, and occur once."""
    seen: set[Apply] = set()
    for key, node in run._interned.items():
        _expect(node in run._done or node in run._forced, f"{node} is interned and not done")
        if any(v in run._forward for v in key[1:]) or any(
            o not in run._producers for o in node.outputs
        ):
            continue  # an obsolete key, or that of a replaced node
        _expect(key[1:] == tuple(node.inputs), f"{node} is interned with other inputs")
        _expect(node not in seen, f"{node} is interned twice")
        seen.add(node)


def _check_in_progress(run: Any) -> None:
    """The two tables of pending replacements agree."""
    keys = {key for key, _ in run._pending.values()}
    _expect(keys == set(run._in_progress), "replacements in progress differ from those pending")
    for node in run._pending:
        _expect(node not in run._done, f"{node} is pending and done")


def _check_uses(run: Any) -> None:
    """The numbers of uses are those of the graph that the replacements lead to."""
    counted: dict[Variable, int] = {}
    seen: set[Apply] = set()
    work: list[Variable] = []
    for v in run.fgraph.outputs:
        v = run._current(v)
        counted[v] = counted.get(v, 0) + 1
        work.append(v)
    while work:
        node = work.pop().owner
        if node is None or node in seen:
            continue
        seen.add(node)
        for v in node.inputs:
            v = run._current(v)
            counted[v] = counted.get(v, 0) + 1
            work.append(v)
    for v, n in counted.items():
        _expect(run.uses(v) == n, f"{v} has {n} uses, not {run.uses(v)}")
