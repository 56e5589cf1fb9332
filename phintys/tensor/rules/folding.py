"""Constant folding: nodes whose inputs are all constants are evaluated during rewriting."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Storage
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.rewriter import FromFunctionNodeRewriter
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.rewriting.walk import in2out
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
    constants = _constants(node)
    if not constants or not node.op.do_constant_folding(ctx.fgraph, node):
        return None
    return None if _grows(node, constants) else _computed(node, constants)


def _constants(node: Apply) -> list[Constant]:
    """The inputs of a node that can be computed now: all are constants; else none."""
    constants = [v for v in node.inputs if isinstance(v, Constant)]
    # `where` does not see all inputs of a long node
    if len(constants) < len(node.inputs) or node.op.destroy_map:
        return []
    foldable = all(isinstance(o.type, TensorType | ScalarType) for o in node.outputs)
    return constants if foldable else []


def _computed(node: Apply, constants: Sequence[Constant]) -> list[Variable] | None:
    """The outputs of a node as constants; None if it fails."""
    storage: Storage = [[None] for _ in node.outputs]
    try:
        node.op.perform(node, [v.data for v in constants], storage)
    except Exception:
        # the error is one of the user's program, and is raised when the function is called
        return None
    return [o.type.make_constant(np.asarray(cell[0])) for o, cell in zip(node.outputs, storage)]


def _grows(node: Apply, inputs: Sequence[Constant]) -> bool:
    """Whether the result has more than `MAX_SIZE` elements, and more than all inputs together."""
    known = [prod(o.type.shape) for o in node.outputs if o.type.ndim and None not in o.type.shape]
    size = max(known, default=0)
    return size > MAX_SIZE and size > sum(getattr(v.data, "size", 1) for v in inputs)


def _unconditional(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    constants = _constants(node)
    return _computed(node, constants) if constants else None


#: A graph rewriter that folds all nodes of constants: those whose op, or the size of whose result,
#: says not to, too.  Nodes that fail stay.
topo_unconditional_constant_folding = in2out(
    FromFunctionNodeRewriter(_unconditional),
    ignore_newtrees=True,
    name="topo_unconditional_constant_folding",
)
