"""Batching: a graph applied to variables with additional leading dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import singledispatch
from typing import Any

from phintys.errors import MethodNotDefined, RaggedError
from phintys.graph.op import Op
from phintys.graph.origin import inherit
from phintys.graph.traversal import ancestors, toposort
from phintys.graph.variable import Apply, Constant, Variable, late_bound


def vectorize_graph(
    outputs: Variable | Sequence[Variable], replace: Mapping[Variable, Variable]
) -> Any:
    """``outputs`` computed for each item of a batch.

    Parameters
    ----------
    outputs
        a variable, or a list of variables; the result has the same form
    replace
        a dict from variables to batched variables, which have the same dtype and additional leading
        dimensions; these are broadcast as those of the operands of an elementwise function

    The results have these leading dimensions, if they depend on a replaced variable.  Nodes that do
    not depend on one are shared, not copied.  An op without a ``vectorize_node`` is applied to the
    items of the batch one by one.  So is the part of the graph between variables that differ in
    shape from item to item, as ``x[:n]`` for several ``n`` does, and what is computed of them: a
    sum, or a result.  ShapeError when it is computed, if results of items differ in shape.

    >>> import phintys.tensor as pt
    >>> from phintys.graph.vectorize import vectorize_graph
    >>> x, xs = pt.dvector("x"), pt.dmatrix("xs")
    >>> vectorize_graph(x.sum(), {x: xs}).eval({xs: [[1.0, 2.0], [3.0, 4.0]]})
    array([3., 7.])
    """
    wanted = [outputs] if isinstance(outputs, Variable) else list(outputs)
    new: dict[Variable, Any] = dict(replace)
    ragged: set[Variable] = set()  # variables that differ in shape from item to item
    for node in toposort(wanted, blockers=replace):
        found = None
        if ragged.isdisjoint(node.inputs):
            inputs = [new.get(v, v) for v in node.inputs]
            if all(a is b for a, b in zip(inputs, node.inputs)):
                continue
            found = _batched_outputs(node, inputs)
        if found is None:
            ragged.update(v for v in node.outputs if v not in new)
            known = [v for v in node.outputs if None not in getattr(v.type, "shape", (None,))]
            found = [_by_items(v, ragged, new) if v in known else None for v in node.outputs]
            ragged.difference_update(known)
        for old, out in zip(node.outputs, found, strict=True):
            if out is not None:
                new.setdefault(old, out)
    new.update((v, _by_items(v, ragged, new)) for v in wanted if v in ragged)
    results = [_with_batch_axes(v, new.get(v, v), replace) for v in wanted]
    return results[0] if isinstance(outputs, Variable) else results


def _batched_outputs(node: Apply, inputs: Sequence[Variable]) -> Sequence[Variable] | None:
    """The outputs of a node for batched inputs; None if they differ in shape from item to item."""
    try:
        with inherit(node.origin):
            batched = vectorize_node(node, *inputs)
    except RaggedError:
        return None
    if isinstance(batched, Apply) and late_bound["has_ragged_items"](node, inputs, batched):
        return None
    return batched.outputs if isinstance(batched, Apply) else batched


def _by_items(out: Variable, ragged: Set[Variable], new: Mapping[Variable, Any]) -> Variable:
    """The batch of a result of ``ragged`` variables, computed item by item.

    ``new`` has the batches of what these are computed from.
    """
    roots: dict[Variable, None] = {}
    reached = {out: None}
    queue = [out]
    for reader in queue:
        for v in () if reader.owner is None else reader.owner.inputs:
            if v not in ragged:
                roots[v] = None
            elif v not in reached:
                reached[v] = None
                queue.append(v)
    given = [v for v in roots if v in new or not isinstance(v, Constant)]
    return late_bound["by_items"](out, given, [new.get(v, v) for v in given])


def _with_batch_axes(
    old: Variable, new: Variable, replace: Mapping[Variable, Variable]
) -> Variable:
    """The batch of a result, repeated where only its shape depends on replaced variables."""
    count = _batch_ndim(old, new)
    most = max((_batch_ndim(*pair) for pair in replace.items()), default=0)
    if new is old or old in replace or _ndim(new) is None:
        return new
    if count == most and 1 not in new.type.shape[:count]:
        return new
    found = [v for v in ancestors([old], blockers=replace) if v in replace]
    counts = [_batch_ndim(v, replace[v]) for v in found]
    pairs = [(replace[v], n) for v, n in zip(found, counts) if n]
    return late_bound["repeated_for_batch"](new, count, pairs)


def _batch_ndim(old: Variable, new: Variable) -> int:
    """The number of additional leading dimensions."""
    return (_ndim(new) or 0) - (_ndim(old) or 0)


def vectorize_node(node: Apply, *batched_inputs: Variable) -> Apply | Sequence[Variable]:
    """The node that applies the op of ``node`` to inputs with additional leading dimensions.

    Without such dimensions it is an ordinary node of the op.  A function that is registered with
    `_vectorize_node` may return the results instead of a node.
    """
    if all(_ndim(new) == _ndim(old) for new, old in zip(batched_inputs, node.inputs, strict=True)):
        return node.op.make_node(*batched_inputs)
    return _vectorize_node(node.op, node, *batched_inputs)


@singledispatch
def _vectorize_node(op: Any, node: Apply, *batched_inputs: Variable) -> Apply | Sequence[Variable]:
    """What `vectorize_node` returns for an op: of the function that is registered for its class.

    Without one it is that of the op's method ``vectorize_node``, or of `Blockwise`.
    """
    try:
        return op.vectorize_node(node, *batched_inputs)
    except MethodNotDefined:
        return late_bound["blockwise"](node, *batched_inputs)


def _vectorize_not_needed(  # pyright: ignore[reportUnusedFunction]
    op: Op, node: Apply, *batched_inputs: Variable
) -> list[Variable]:
    """The results of ``op`` for the batched inputs: what programs register with `_vectorize_node`
    for ops that do the same to arrays of any rank.
    """
    return list(op.make_node(*batched_inputs).outputs)


def _ndim(v: Variable) -> int | None:
    return getattr(v.type, "ndim", None)
