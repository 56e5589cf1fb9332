"""The cost of a node: that of the Program that computes it alone, without its memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any

from phintys.errors import PhintysError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.traversal import apply_ancestors
from phintys.graph.variable import Apply, Constant, Variable
from phintys.lowering.costs import cost
from phintys.lowering.from_graph import lower_graph
from phintys.lowering.program import Call, External, Kernel, Python, Scan
from phintys.tensor.contraction_path import TYPICAL_LENGTH

#: what a node costs besides its work, relative to an addition
OVERHEAD = 1
#: what a call of a Python function costs, whose work is not known
PYTHON = 100 * TYPICAL_LENGTH**2


def graph_cost(outputs: Sequence[Variable]) -> float:
    """The work of all nodes that compute some variables."""
    return sum(map(node_cost, apply_ancestors(outputs)))


def node_cost(node: Apply) -> float:
    """The work of a node, relative to an addition; ``inf`` if it is not known.

    Lengths that are not known count as `TYPICAL_LENGTH`.  Copies are not counted: views and
    intermediate results are mostly read in place.
    """
    inputs = [v if isinstance(v, Constant) else v.type.make_variable() for v in node.inputs]
    free = [v for v in inputs if not isinstance(v, Constant)]
    outputs = node.clone_with_new_inputs(inputs).outputs
    try:
        program = lower_graph(FunctionGraph(free, outputs, clone=False))
    except PhintysError:
        return inf
    return OVERHEAD + sum(map(_work, program.steps))


def _work(step: Any) -> float:
    match step:
        case Kernel():
            sums = sum(i.op in ("reduce", "accumulate") for i in step.body)
            others = [i for i in step.body if i.op not in ("reduce", "accumulate")]
            return _size(step.dims) * (sums + sum(map(cost, others)))
        case Call():
            return _size((*step.batch, *step.sizes))
        case External():
            return _size((*step.batch, step.work))
        case Scan():
            return _size(step.dims)
        case _:
            return PYTHON if isinstance(step, Python) else 0


def _size(dims: Any) -> int:
    """The product of lengths."""
    return prod([d.evaluate(dict.fromkeys(d.symbols(), TYPICAL_LENGTH)) for d in dims])
