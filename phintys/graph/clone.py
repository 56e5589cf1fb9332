"""Copying graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from phintys.graph.ignored import ignores
from phintys.graph.traversal import io_toposort
from phintys.graph.variable import Apply, AtomicVariable, Variable


@ignores("clone_inner_graphs")
def clone_get_equiv(
    inputs: Iterable[Variable],
    outputs: Iterable[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool = True,
    memo: dict[Any, Any] | None = None,
    clone_inner_graphs: Any = None,
    **kwargs: Any,
) -> dict[Any, Any]:
    """Copy the graph between ``inputs`` and ``outputs``; return a dict from old to new objects.

    Its keys are the variables and nodes of the graph.

    Parameters
    ----------
    copy_inputs, copy_orphans
        whether to copy inputs, and variables without an owner that are not inputs; otherwise both
        graphs share them.  Constants are always shared.
    memo
        a dict to start from: its keys are not copied again.  It is updated and returned.  If it has
        variables of other types than their keys, nodes that depend on these are made by
        ``make_node``, also those that depend on their lengths only.
    clone_inner_graphs
        ignored: inner graphs are immutable
    """
    inputs, outputs = list(inputs), list(outputs)
    if memo is None:
        memo = {}
    for v in inputs:
        if v not in memo:
            memo[v] = v.clone() if copy_inputs else v
    changed = {v for v, new in memo.items() if isinstance(v, Variable) and v.type != new.type}
    for node in io_toposort([*inputs, *memo], outputs):
        if node in memo:
            continue
        for v in node.inputs:
            if v not in memo:
                memo[v] = _copy_root(v, copy_orphans)
        is_other = not changed.isdisjoint(node.inputs)
        copy_node(node, memo, is_other)
        if is_other:
            changed.update(v for v in node.outputs if v.type != memo[v].type or _is_integer(v))
    for v in outputs:
        if v not in memo:
            memo[v] = _copy_root(v, copy_orphans)
    return memo


def _copy_root(v: Variable, copy_orphans: bool) -> Variable:
    return v.clone() if copy_orphans and not isinstance(v, AtomicVariable) else v


def _is_integer(v: Variable) -> bool:
    """Whether the type of a variable is one of integers: they may be lengths."""
    return getattr(v.type, "dtype", "").startswith(("int", "uint"))


def copy_node(node: Apply, memo: dict[Any, Any], anew: bool = False) -> Apply:
    """Copy one node, with inputs looked up in ``memo``; add it and its outputs to ``memo``.

    ``anew``: the node is made by ``make_node``.
    """
    inputs = [memo[v] for v in node.inputs]
    new = node.made_anew(inputs) if anew else node.clone_with_new_inputs(inputs, strict=False)
    memo[node] = new
    for old, fresh in zip(node.outputs, new.outputs):
        memo.setdefault(old, fresh)
    return new


def clone_node_and_cache(
    node: Apply, clone_d: dict[Any, Any], clone_inner_graphs: Any = None, **kwargs: Any
) -> Apply | None:
    """Copy a node by `copy_node`; None if ``clone_d`` maps its outputs already.

    Inputs that ``clone_d`` does not map are shared.
    """
    if all(o in clone_d for o in node.outputs):
        return None
    for v in node.inputs:
        clone_d.setdefault(v, v)
    return copy_node(node, clone_d)


@ignores("clone_inner_graphs")
def clone(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool | None = None,
    clone_inner_graphs: Any = None,
) -> tuple[list[Variable], list[Variable]]:
    """Copy the graph between ``inputs`` and ``outputs``; return the new inputs and outputs.

    Parameters
    ----------
    copy_inputs
        whether to copy the inputs; otherwise both graphs share them
    copy_orphans
        whether to copy variables without an owner that are not inputs; default: ``copy_inputs``.
        Constants are always shared.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> (x2,), (y2,) = clone([x], [x + 1])
    >>> x2 is x, y2.owner.inputs[0] is x2
    (False, True)
    """
    copy_orphans = copy_inputs if copy_orphans is None else copy_orphans
    memo = clone_get_equiv(inputs, outputs, copy_inputs, copy_orphans)
    return [memo[v] for v in inputs], [memo[v] for v in outputs]
