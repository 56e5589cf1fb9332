"""Properties of factors, solutions and inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.assumptions import (
    LOWER_TRIANGULAR,
    SQUARE,
    UPPER_TRIANGULAR,
    AssumptionKey,
    FactState,
    register_universal_assumption,
    true_if,
)
from phintys.graph.variable import Apply
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.solvers.triangular import SolveTriangular

States = Sequence[FactState]
TRUE = FactState.TRUE


@register_universal_assumption(Cholesky)
def factor_has(
    key: AssumptionKey, op: Cholesky, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """A triangle.  It is all NaN where there is no factor."""
    return true_if(key in (SQUARE, LOWER_TRIANGULAR if op.lower else UPPER_TRIANGULAR))


@register_universal_assumption(SolveTriangular)
def solution_has(
    key: AssumptionKey,
    op: SolveTriangular,
    feature: Any,
    fgraph: Any,
    node: Apply,
    input_states: States,
) -> list[FactState]:
    """Triangular, if the right sides are a triangle of the same side."""
    side = LOWER_TRIANGULAR if op.lower else UPPER_TRIANGULAR
    return true_if(op.b_ndim == 2 and key in (SQUARE, side) and input_states[1] is TRUE)
