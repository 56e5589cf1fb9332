"""Constant folding: what depends on constants only is computed while rewriting."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from phintys.graph.variable import Apply, Constant
from phintys.rewriting.rule import rule
from phintys.tensor.rules.match import every_constant
from phintys.tensor.type import TensorType

#: Results with more elements stay computations: folding them would only move memory into the graph.
MAX_SIZE = 10_000


@rule(
    "op(constants) -> constant",
    ops=None,
    where=every_constant,
    law="exact",
    tags=("topo_constant_folding", "constant_folding", "cleanup"),
    tested_on=("exp(constant(2.0))", "constant([1.0, 2.0]) + 1", "constant([1, 2, 3])[1:]"),
)
def fold_constants(ctx: Any, node: Apply) -> Any:
    inputs, op = node.inputs, node.op
    for v in inputs:  # those of long nodes have not been looked at
        if not isinstance(v, Constant):
            return None
    if not inputs:
        return None
    if op.destroy_map or not all(isinstance(o.type, TensorType) for o in node.outputs):
        return None
    if not op.do_constant_folding(ctx.fgraph, node) or _grows(node):
        return None
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    try:
        op.perform(node, [v.data for v in inputs], storage)
    except Exception:
        # the error belongs to the user's program: it is raised when the function is called
        return None
    return [o.type.make_constant(np.asarray(cell[0])) for o, cell in zip(node.outputs, storage)]


def _grows(node: Apply) -> bool:
    """Whether the result would be large, and larger than what it is made from."""
    known = [prod(o.type.shape) for o in node.outputs if o.type.ndim and None not in o.type.shape]
    size = max(known, default=0)
    return size > MAX_SIZE and size > sum(getattr(v.data, "size", 1) for v in node.inputs)
