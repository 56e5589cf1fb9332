"""Rules for functions that are computed by quadrature: compiled code sums over the nodes."""

from __future__ import annotations

from typing import Any

from phintys.graph.variable import Apply
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.op import TABLE
from phintys.scalar.quadrature import DERIVATIVES, NODES, WEIGHTS, Integrand
from phintys.tensor.axes import expand_dims, squeeze
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.reduce import sum as sum_over


@rule(
    "gammainc_der(k, x), betainc_der_a(a, b, x), and others -> sums over the nodes of a quadrature",
    ops=[TABLE[name] for name in DERIVATIVES],
    phase="specialize",
    law="rounding",
    tested_on=(
        "gammainc_der(exp(v), exp(w))",
        "gammainc_der2(exp(v), exp(w))",
        "betainc_der_a(exp(v), exp(w), sigmoid(v + w))",
        "betainc_der_b(exp(v), exp(w), sigmoid(v + w))",
        "betainc_der_aa(exp(v), exp(w), sigmoid(v + w))",
        "betainc_der_ab(exp(v), exp(w), sigmoid(v + w))",
        "betainc_der_bb(exp(v), exp(w), sigmoid(v + w))",
    ),
)
def sum_over_nodes(ctx: Context, node: Apply) -> Replacement:
    """The nodes are a new last axis."""
    formula, moment = DERIVATIVES[node.op.scalar_op.name]
    given = [expand_dims(cast(x, "float64"), -1) for x in node.inputs]
    found = squeeze(formula(functions, _half_line, moment, *given), -1)
    return cast(found, node.outputs[0].type.dtype)


def _half_line(length: Any, side: Any, integrand: Integrand) -> Any:
    """The integral, with all nodes along the last axis."""
    term = integrand(side * length * as_tensor_variable(NODES))
    term = functions.switch(abs(term) < float("inf"), term, 0.0)
    return sum_over(as_tensor_variable(WEIGHTS) * term, axis=-1, keepdims=True) * length
