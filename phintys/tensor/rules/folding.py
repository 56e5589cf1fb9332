"""Constant folding: nodes whose inputs are all constants are evaluated during rewriting."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from phintys.graph.op import Storage
from phintys.graph.variable import Apply, Constant
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.type import ScalarType
from phintys.tensor.rules.match import every_constant
from phintys.tensor.type import TensorType

#: Larger results are not folded: the constant would take memory for as long as the graph lives.
MAX_SIZE = 10_000


@rule(
    "op(constants) -> constant",
    ops=None,
    where=every_constant,
    law="exact",
    tags=("topo_constant_folding", "constant_folding", "cleanup"),
    tested_on=(
        "exp(constant(2.0))",
        "constant([1.0, 2.0]) + 1",
        "constant([1, 2, 3])[1:]",
        "v[:ScalarFromTensor()(constant(2))]",
    ),
)
def fold_constants(ctx: Context, node: Apply) -> Replacement:
    inputs, op = node.inputs, node.op
    constants = [v for v in inputs if isinstance(v, Constant)]
    # `where` does not see all inputs of a long node
    if not inputs or len(constants) < len(inputs):
        return None
    if op.destroy_map or not all(isinstance(o.type, TensorType | ScalarType) for o in node.outputs):
        return None
    if not op.do_constant_folding(ctx.fgraph, node) or _grows(node, constants):
        return None
    storage: Storage = [[None] for _ in node.outputs]
    try:
        op.perform(node, [v.data for v in constants], storage)
    except Exception:
        # the error is one of the user's program, and is raised when the function is called
        return None
    return [o.type.make_constant(np.asarray(cell[0])) for o, cell in zip(node.outputs, storage)]


def _grows(node: Apply, inputs: Sequence[Constant]) -> bool:
    """Whether the result has more than `MAX_SIZE` elements, and more than all inputs together."""
    known = [prod(o.type.shape) for o in node.outputs if o.type.ndim and None not in o.type.shape]
    size = max(known, default=0)
    return size > MAX_SIZE and size > sum(getattr(v.data, "size", 1) for v in inputs)
