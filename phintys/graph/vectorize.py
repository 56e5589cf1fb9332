"""Batching a graph: the same computation over additional leading dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phintys.errors import MethodNotDefined
from phintys.graph.origin import inherit
from phintys.graph.traversal import toposort
from phintys.graph.variable import Apply, Variable, late


def vectorize_graph(
    outputs: Variable | Sequence[Variable], replace: Mapping[Variable, Variable]
) -> Any:
    """``outputs`` as functions of batched variables.

    ``replace`` maps variables to variables with additional dimensions on the left.  Every node that
    depends on one is applied to the batched values, by its op's ``vectorize_node``; an op without
    one is applied to each item of the batch.  What depends on none of them is shared, not copied.

    >>> import phintys.tensor as pt
    >>> from phintys.graph.vectorize import vectorize_graph
    >>> x, xs = pt.dvector("x"), pt.dmatrix("xs")
    >>> vectorize_graph(x.sum(), {x: xs}).eval({xs: [[1.0, 2.0], [3.0, 4.0]]})
    array([3., 7.])
    """
    wanted = [outputs] if isinstance(outputs, Variable) else list(outputs)
    new: dict[Variable, Any] = dict(replace)
    for node in toposort(wanted, blockers=replace):
        inputs = [new.get(v, v) for v in node.inputs]
        if all(a is b for a, b in zip(inputs, node.inputs)):
            continue
        with inherit(node.origin):
            batched = vectorize_node(node, *inputs)
        for old, out in zip(node.outputs, batched.outputs):
            new.setdefault(old, out)
    found = [new.get(v, v) for v in wanted]
    return found[0] if isinstance(outputs, Variable) else found


def vectorize_node(node: Apply, *batched_inputs: Variable) -> Apply:
    """One node on inputs with additional leading dimensions."""
    try:
        return node.op.vectorize_node(node, *batched_inputs)
    except MethodNotDefined:
        return late["blockwise"](node, *batched_inputs)
