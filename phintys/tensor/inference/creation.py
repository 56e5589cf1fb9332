"""Properties of matrices that are made: identity, fills, written diagonals, ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.assumptions import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    MATRIX_KEYS,
    PERMUTATION,
    POSITIVE_DEFINITE,
    SQUARE,
    SYMMETRIC,
    TRIDIAGONAL,
    UNIQUE_INDICES,
    UPPER_TRIANGULAR,
    AssumptionFeature,
    AssumptionKey,
    FactState,
    register_assumption,
    register_universal_assumption,
    true_if,
)
from phintys.graph.variable import Apply
from phintys.tensor.creation import Alloc
from phintys.tensor.index_ops import AdvancedIncSubtensor
from phintys.tensor.inference.parts import (
    diagonal_values,
    fills_matrix,
    is_zero,
    rank,
    same_length,
    written_diagonal,
)
from phintys.tensor.ranges import ARange, Eye
from phintys.tensor.sort import ArgSortOp
from phintys.tensor.static import known_constant

States = Sequence[FactState]
#: zero patterns, and the diagonals that may be written in such a matrix: from, to
PATTERNS: dict[AssumptionKey, tuple[float, float]] = {
    DIAGONAL: (0, 0),
    LOWER_TRIANGULAR: (float("-inf"), 0),
    UPPER_TRIANGULAR: (0, float("inf")),
    TRIDIAGONAL: (-1, 1),
}


@register_universal_assumption(Eye)
def eye_has(
    key: AssumptionKey, op: Eye, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    rows, columns, k = node.inputs
    offset = known_constant(k)
    if offset is None:
        return true_if(False)
    if key in PATTERNS:
        first, last = PATTERNS[key]
        return true_if(first <= offset.real <= last)
    if key is SQUARE:
        return true_if(same_length(rows, columns))
    identity = offset == 0 and feature.check(node.outputs[0], SQUARE)
    return true_if(identity and key in (PERMUTATION, POSITIVE_DEFINITE))


@register_universal_assumption(Alloc)
def fill_has(
    key: AssumptionKey, op: Alloc, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """A fill of zeros, of one number, or of matrices."""
    (out,), value = node.outputs, node.inputs[0]
    if rank(out) < 2:
        return true_if(False)
    if key is SQUARE:
        return true_if(same_length(*node.inputs[-2:]))
    if key in PATTERNS and is_zero(value):
        return true_if(True)
    if key is SYMMETRIC and fills_matrix(value):
        return true_if(feature.check(out, SQUARE))
    whole = (
        key in MATRIX_KEYS
        and rank(value) >= 2
        and value.type.broadcastable[-2:] == out.type.broadcastable[-2:]
    )
    return true_if(whole and input_states[0] is FactState.TRUE)


@register_universal_assumption(AdvancedIncSubtensor)
def written_diagonal_has(
    key: AssumptionKey,
    op: AdvancedIncSubtensor,
    feature: Any,
    fgraph: Any,
    node: Apply,
    input_states: States,
) -> list[FactState]:
    """A diagonal that is written in a matrix with zeros keeps the others at zero."""
    (out,) = node.outputs
    if key is SQUARE:
        return true_if(input_states[0] is FactState.TRUE)
    found = written_diagonal(out)
    if found is None:
        return true_if(False)
    if key in PATTERNS:
        first, last = PATTERNS[key]
        return true_if(input_states[0] is FactState.TRUE and first <= found.offset <= last)
    if key is POSITIVE_DEFINITE:
        values = diagonal_values(out)
        number = None if values is None else known_constant(values)
        return true_if(number is not None and number.imag == 0 and number.real > 0)
    keeps = key is SYMMETRIC and found.offset == 0 and input_states[0] is FactState.TRUE
    return true_if(keeps)


@register_assumption(UNIQUE_INDICES, ARange)
def range_is_unique(
    key: AssumptionKey, op: ARange, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    return true_if(op.dtype in ("int64", "int32") and known_constant(node.inputs[2]) == 1)


@register_assumption(UNIQUE_INDICES, ArgSortOp)
def order_is_unique(
    key: AssumptionKey,
    op: ArgSortOp,
    feature: AssumptionFeature,
    fgraph: Any,
    node: Apply,
    input_states: States,
) -> list[FactState]:
    return true_if(op.axis in (-1, rank(node.outputs[0]) - 1))
