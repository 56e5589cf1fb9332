"""Properties of Kronecker products, block diagonal matrices and functions of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.assumptions import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    ORTHOGONAL,
    PERMUTATION,
    POSITIVE_DEFINITE,
    SELECTION,
    SQUARE,
    SYMMETRIC,
    TRIDIAGONAL,
    UNIT_MAGNITUDE,
    UPPER_TRIANGULAR,
    AssumptionFeature,
    AssumptionKey,
    FactState,
    register_universal_assumption,
    true_if,
)
from phintys.graph.variable import Apply
from phintys.tensor.linalg.constructors import BlockDiagonal
from phintys.tensor.linalg.matrix_functions import Expm
from phintys.tensor.linalg.products import KroneckerProduct

States = Sequence[FactState]
TRUE = FactState.TRUE
#: Kronecker products of matrices with the property have it
OF_PRODUCTS = (
    *(DIAGONAL, SYMMETRIC, POSITIVE_DEFINITE, ORTHOGONAL, PERMUTATION, SELECTION, SQUARE),
    UNIT_MAGNITUDE,
)
#: zero patterns that square blocks keep
PATTERNS = (DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR, TRIDIAGONAL)
#: matrices with such blocks have the property
OF_BLOCKS = (SYMMETRIC, POSITIVE_DEFINITE, ORTHOGONAL, PERMUTATION, SELECTION, SQUARE)


@register_universal_assumption(KroneckerProduct, derived=True)
def kronecker_product_has(
    key: AssumptionKey,
    op: KroneckerProduct,
    feature: AssumptionFeature,
    fgraph: Any,
    node: Apply,
    input_states: States,
) -> list[FactState]:
    """Zero patterns only of square matrices: else the diagonals do not meet."""
    both = all(s is TRUE for s in input_states)
    if key in (DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR):
        return true_if(both and all(feature.check(x, SQUARE) for x in node.inputs))
    return true_if(both and key in OF_PRODUCTS)


@register_universal_assumption(BlockDiagonal)
def blocks_have(
    key: AssumptionKey,
    op: BlockDiagonal,
    feature: AssumptionFeature,
    fgraph: Any,
    node: Apply,
    input_states: States,
) -> list[FactState]:
    every = all(s is TRUE for s in input_states)
    if key in PATTERNS:
        return true_if(every and all(feature.check(x, SQUARE) for x in node.inputs))
    return true_if(every and key in OF_BLOCKS)


@register_universal_assumption(Expm)
def exponential_has(
    key: AssumptionKey, op: Expm, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """It is positive definite in exact arithmetic only."""
    kept = (DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR, SYMMETRIC)
    return true_if(key is SQUARE or (key in kept and input_states[0] is TRUE))
