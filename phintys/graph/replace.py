"""New graphs from old ones, with some variables replaced.

All replacements are simultaneous: ``{x: y, y: x}`` swaps two variables, and a variable may be
replaced by an expression that contains it.  The inputs of a replaced variable are not visited, so a
key that occurs only behind another key is not replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from phintys.graph.clone import clone_get_equiv
from phintys.graph.traversal import graph_inputs, toposort, vars_between
from phintys.graph.variable import Variable

Replacements = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


@overload
def clone_replace(
    output: Variable,
    replace: Replacements | None = None,
    *,
    copy_inputs_over: bool = True,
    rebuild_strict: bool = True,
) -> Variable: ...
@overload
def clone_replace(
    output: Sequence[Variable],
    replace: Replacements | None = None,
    *,
    copy_inputs_over: bool = True,
    rebuild_strict: bool = True,
) -> list[Variable]: ...


def clone_replace(
    output: Variable | Sequence[Variable],
    replace: Replacements | None = None,
    *,
    copy_inputs_over: bool = True,
    rebuild_strict: bool = True,
) -> Variable | list[Variable]:
    """A copy of the graph of ``output`` in which some variables are replaced.

    Every node is copied, also those of the replacements; inputs, constants and shared variables are
    shared between the graphs.

    Parameters
    ----------
    output
        a variable, or a list of variables; the result has the same form
    replace
        a dict from variables to their replacements, or (variable, replacement) pairs.  A value
        becomes a constant; a key that is not in the graph is ignored.
    copy_inputs_over
        False: variables without an owner are copied as well
    rebuild_strict
        False: a replacement may have another type; nodes that use it are made by ``make_node``

    Raises
    ------
    TypeError
        if a replacement cannot be converted to the type of the variable it replaces

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> z = phintys.clone_replace(x + y, {y: 2 * x})
    >>> z.eval({x: [1.0, 2.0]})
    array([3., 6.])
    """
    outputs = _as_list(output)
    pairs = _filtered(replace, rebuild_strict)
    copies = clone_get_equiv([], pairs.values(), copy_orphans=not copy_inputs_over)
    # The memo gets only the roots of the replacements: keys that occur inside of them stay.
    memo = {v: copies[v] for v in graph_inputs(pairs.values())}
    memo.update((old, copies[new]) for old, new in pairs.items())
    clone_get_equiv([], outputs, copy_orphans=not copy_inputs_over, memo=memo)
    results = [memo[v] for v in outputs]
    return results[0] if isinstance(output, Variable) else results


@overload
def graph_replace(outputs: Variable, replace: Replacements, strict: bool = True) -> Variable: ...
@overload
def graph_replace(
    outputs: Sequence[Variable], replace: Replacements, strict: bool = True
) -> list[Variable]: ...


def graph_replace(
    outputs: Variable | Sequence[Variable], replace: Replacements, strict: bool = True
) -> Variable | list[Variable]:
    """The graph of ``outputs`` with some variables replaced.

    Only the nodes that depend on a replaced variable are copied; the others, and the nodes of the
    replacements, are shared with the given graphs.

    Parameters
    ----------
    outputs
        a variable, or a list of variables; the result has the same form
    replace
        a dict from variables to their replacements, or (variable, replacement) pairs.  A value
        becomes a constant.
    strict
        whether a key that is not in the graph is an error

    Raises
    ------
    ValueError
        if a key is not in the graph, and ``strict``
    TypeError
        if a replacement cannot be converted to the type of the variable it replaces

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> z = phintys.graph_replace(x + y, {x: y, y: x})
    >>> z.owner.inputs
    [y, x]
    """
    roots = _as_list(outputs)
    pairs = _filtered(replace, True)
    if strict:
        _check_used(pairs, roots)
    memo: dict[Variable, Variable] = dict(pairs)
    for node in toposort(roots, memo):
        inputs = [memo.get(v, v) for v in node.inputs]
        if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
            continue
        copy = node.clone_with_new_inputs(inputs)
        for old, new in zip(node.outputs, copy.outputs, strict=True):
            memo.setdefault(old, new)
    results = [memo.get(v, v) for v in roots]
    return results[0] if isinstance(outputs, Variable) else results


def _as_list(outputs: Variable | Sequence[Variable]) -> list[Variable]:
    return [outputs] if isinstance(outputs, Variable) else list(outputs)


def _filtered(replace: Replacements | None, strict: bool) -> dict[Variable, Variable]:
    """The replacements as variables; with ``strict`` of the types of what they replace."""
    pairs: dict[Variable, Any] = dict(replace or ())
    return {
        old: new if isinstance(new, Variable) and not strict else old.type.filter_variable(new)
        for old, new in pairs.items()
    }


def _check_used(pairs: Mapping[Variable, Variable], outputs: Sequence[Variable]) -> None:
    """ValueError if a key is not in the graph of ``outputs``."""
    present = set(vars_between([], outputs))
    absent = [v for v in pairs if v not in present]
    if absent:
        names = ", ".join(f"{v} (type {v.type})" for v in absent)
        raise ValueError(
            f"These variables are to be replaced but are not in the graph: {names}. "
            "Use strict=False if that is intended."
        )
