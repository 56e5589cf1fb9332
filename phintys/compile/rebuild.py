"""`rebuild_collect_shared`: outputs with givens substituted, and the shared variables they use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.compile.inputs import Expressions, checked_givens, specify, update_pairs
from phintys.compile.io import SymbolicOutput
from phintys.errors import UnusedInputError
from phintys.graph.clone import clone_get_equiv
from phintys.graph.ignored import ignores
from phintys.graph.variable import Variable

__all__ = ["UnusedInputError", "rebuild_collect_shared", "specify"]


@ignores("clone_inner_graphs")
def rebuild_collect_shared(
    outputs: Any,
    inputs: Sequence[Variable] | None = None,
    replace: Any = None,
    updates: Any = None,
    rebuild_strict: bool = True,
    copy_inputs_over: bool = True,
    no_default_updates: Any = False,
    clone_inner_graphs: bool | None = None,
) -> tuple[list[Variable], Any, list[Any]]:
    """A copy of a graph with variables replaced, and the updates that belong to it.

    Returns the inputs, the outputs (in the form in which they were given: one or a list, variables
    or `Out`), and a list of four: dict from variables and nodes to their copies; dict from shared
    variables to updates; list of the same as pairs; list of the shared variables.

    Parameters
    ----------
    outputs
        a variable, an `Out`, or a list of these
    inputs
        the inputs of the graph
    replace, updates, rebuild_strict, no_default_updates
        ``givens`` and others of `function`
    copy_inputs_over
        False: the inputs that are returned are copies too
    clone_inner_graphs
        without effect: graphs inside ops do not change

    >>> import phintys, phintys.tensor as pt
    >>> x, s = pt.dscalar("x"), phintys.shared(1.0, "s")
    >>> ins, out, (_, updates, _, shared) = rebuild_collect_shared(x * s, [x], updates={s: s + x})
    >>> ins, out, updates, shared
    ([x], Mul.0, {s: Add.0}, [s])
    """
    given = list(inputs or [])
    single = isinstance(outputs, Variable | SymbolicOutput)
    items: list[Any] = [outputs] if single else list(outputs)
    variables = [o.variable if isinstance(o, SymbolicOutput) else o for o in items]
    expressions = Expressions(
        given, checked_givens(replace, given, rebuild_strict), no_default_updates
    )
    results = expressions.collect(variables, update_pairs(updates))
    ordered = {s: expressions.updates[s] for s in expressions.shared if s in expressions.updates}
    memo: dict[Any, Any] = {v: v for v in expressions.shared}
    graph = [*results, *ordered.values()]
    clone_get_equiv(given, graph, copy_inputs=not copy_inputs_over, copy_orphans=False, memo=memo)
    memo.update((v, memo[r]) for v, r in zip(variables, results))
    new_updates = {s: memo[v] for s, v in ordered.items()}
    clones = [
        SymbolicOutput(memo[r], o.borrow) if isinstance(o, SymbolicOutput) else memo[r]
        for o, r in zip(items, results)
    ]
    collected = [memo, new_updates, list(new_updates.items()), list(expressions.shared)]
    return [memo[v] for v in given], clones[0] if single else clones, collected
