"""Rules for conditions that are checked when a function runs."""

from __future__ import annotations

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.rewriter import FromFunctionNodeRewriter
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.op import TABLE
from phintys.tensor.raise_op import CheckAndRaise
from phintys.tensor.shape import scalar_from_tensor

__all__ = ["local_remove_all_assert", "useless_check"]


@rule(
    "Assert(x, True) -> x",
    ops=[CheckAndRaise],
    law="exact",
    tags=("local_remove_useless_assert", "cleanup"),
    tested_on=("assert_op(v, true)", "assert_op(M, true, true)"),
)
def useless_check(ctx: Context, node: Apply) -> Replacement:
    """Conditions that are known to hold, or given twice, are left out."""
    value, *conds = node.inputs
    left = [c for c in dict.fromkeys(conds) if not _holds(c)]
    if len(left) == len(conds) > 0:
        return None
    return node.op.make_node(value, *left).outputs[0] if left else value


def _holds(condition: Variable) -> bool:
    """Whether a condition is a constant that is not 0, up to conversion to a scalar and to bool."""
    v = condition
    while v.owner is not None and v.owner.op in (scalar_from_tensor, TABLE["cast_bool"]):
        v = v.owner.inputs[0]
    return isinstance(v, Constant) and bool(v.data)


def _removed(fgraph: FunctionGraph, node: Apply) -> list[Variable]:
    """The value, unchecked."""
    return [node.inputs[0]]


#: not part of any mode: ``mode.including("local_remove_all_assert")``
local_remove_all_assert = FromFunctionNodeRewriter(_removed, [CheckAndRaise])
