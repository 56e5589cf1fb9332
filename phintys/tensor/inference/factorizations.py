"""Properties of factors, solutions and inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.assumptions import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    ORTHOGONAL,
    PERMUTATION,
    SQUARE,
    SYMMETRIC,
    UPPER_TRIANGULAR,
    AssumptionFeature,
    AssumptionKey,
    FactState,
    register_universal_assumption,
    true_if,
)
from phintys.graph.variable import Apply
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.decomposition.lu import LU
from phintys.tensor.linalg.inverse import MatrixInverse
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.linalg.solvers.triangular import SolveTriangular

States = Sequence[FactState]
UNKNOWN, TRUE = FactState.UNKNOWN, FactState.TRUE
#: inverses of matrices with the property have it; of definite ones in exact arithmetic only
OF_INVERSES = (*(DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR, SYMMETRIC, ORTHOGONAL, PERMUTATION),)


@register_universal_assumption(Cholesky)
def factor_has(
    key: AssumptionKey, op: Cholesky, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """A triangle.  It is all NaN where there is no factor."""
    return true_if(key in (SQUARE, LOWER_TRIANGULAR if op.lower else UPPER_TRIANGULAR))


@register_universal_assumption(LU)
def factors_have(
    key: AssumptionKey, op: LU, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """A permutation, a lower and an upper triangle; or the product of the first two."""
    first = [] if op.permute_l else [key is PERMUTATION and not op.p_indices]
    lower = key is LOWER_TRIANGULAR and not op.permute_l
    return [TRUE if found else UNKNOWN for found in (*first, lower, key is UPPER_TRIANGULAR)]


@register_universal_assumption(MatrixInverse)
def inverse_has(
    key: AssumptionKey,
    op: MatrixInverse,
    feature: Any,
    fgraph: Any,
    node: Apply,
    input_states: States,
) -> list[FactState]:
    return true_if(key is SQUARE or (key in OF_INVERSES and input_states[0] is TRUE))


@register_universal_assumption(Solve, SolveTriangular)
def solution_has(
    key: AssumptionKey,
    op: Solve | SolveTriangular,
    feature: AssumptionFeature,
    fgraph: Any,
    node: Apply,
    input_states: States,
) -> list[FactState]:
    """Triangular, if the matrix and the right sides are triangles of the same side.

    A matrix of which one triangle is read is meant to be symmetric: it has no zeros on one side.
    """
    if op.b_ndim != 2:
        return true_if(False)
    if key is SQUARE:
        return true_if(input_states[1] is TRUE)
    if isinstance(op, SolveTriangular):
        side = LOWER_TRIANGULAR if op.lower else UPPER_TRIANGULAR
        return true_if(key is side and input_states[1] is TRUE)
    triangles = () if op.assume_a in ("sym", "her", "pos") else (LOWER_TRIANGULAR, UPPER_TRIANGULAR)
    is_pattern = key in (DIAGONAL, *triangles)
    return true_if(is_pattern and all(s is TRUE for s in input_states))
