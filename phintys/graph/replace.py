"""New graphs from old ones, with some variables replaced.

Both functions replace simultaneously and work on the originals: ``{x: y, y: x}`` swaps, and a
variable may be replaced by an expression that contains it.  What lies behind a replaced variable
is not looked at, so of two keys where one is needed only by the other, the outer one counts.
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

    Every node is copied, those of the replacements too; only inputs, constants and shared
    variables are the same objects.

    Parameters
    ----------
    output
        a variable, or several
    replace
        the variables to replace, and by what.  A value becomes a constant; a key that is not in
        the graph is ignored.
    copy_inputs_over
        False: variables without an owner are copied as well
    rebuild_strict
        False: a replacement may have another type; the nodes that use it are made anew

    Raises
    ------
    TypeError
        if a replacement cannot be converted to the type of what it replaces
    """
    outputs = _as_list(output)
    pairs = _filtered(replace, rebuild_strict)
    copies = clone_get_equiv([], pairs.values(), copy_orphans=not copy_inputs_over)
    # only roots are common to the graph and the replacements: in these, keys are not replaced
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

    Only the nodes that depend on a replaced variable are made anew; the others, and the
    replacements, are shared with the graphs that were given.

    Parameters
    ----------
    outputs
        a variable, or several
    replace
        the variables to replace, and by what.  A value becomes a constant.
    strict
        ValueError if a key is not in the graph

    Raises
    ------
    ValueError
        see ``strict``
    TypeError
        if a replacement cannot be converted to the type of what it replaces
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
    """The replacements, each as a variable of the type of what it replaces."""
    pairs: dict[Variable, Any] = dict(replace or ())
    return {
        old: new if isinstance(new, Variable) and not strict else old.type.filter_variable(new)
        for old, new in pairs.items()
    }


def _check_used(pairs: Mapping[Variable, Variable], outputs: Sequence[Variable]) -> None:
    present = set(vars_between([], outputs))
    absent = [v for v in pairs if v not in present]
    if absent:
        names = ", ".join(f"{v} (type {v.type})" for v in absent)
        raise ValueError(
            f"These variables are to be replaced but are not in the graph: {names}. "
            "Use strict=False if that is intended."
        )
