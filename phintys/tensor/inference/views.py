"""Properties of transposes, of parts, and of ops that only change axes of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.assumptions import (
    LOWER_TRIANGULAR,
    MATRIX_KEYS,
    ORTHOGONAL,
    PERMUTATION,
    POSITIVE_DEFINITE,
    SELECTION,
    SQUARE,
    SYMMETRIC,
    UNIQUE_INDICES,
    UNIT_MAGNITUDE,
    UPPER_TRIANGULAR,
    AssumptionKey,
    FactState,
    infer_assumption_for_node,
    propagate_first,
    register_universal_assumption,
    true_if,
)
from phintys.gradient.barriers import ViewOp
from phintys.graph.variable import Apply
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.elemwise import DimShuffle
from phintys.tensor.index_list import FULL
from phintys.tensor.index_ops import AdvancedSubtensor, Subtensor
from phintys.tensor.inference.creation import PATTERNS
from phintys.tensor.inference.parts import rank, same_part
from phintys.tensor.reshape import JoinDims, SplitDims
from phintys.tensor.shape import SpecifyShape

States = Sequence[FactState]
TRUE = FactState.TRUE
TRANSPOSED = {LOWER_TRIANGULAR: UPPER_TRIANGULAR, UPPER_TRIANGULAR: LOWER_TRIANGULAR}
#: what is known of the transposes of some matrices
OF_TRANSPOSES = (*PATTERNS, SYMMETRIC, POSITIVE_DEFINITE, ORTHOGONAL, PERMUTATION, SQUARE)

register_universal_assumption(ViewOp, SpecifyShape, derived=True)(propagate_first)


@register_universal_assumption(Blockwise)
def batch_has(
    key: AssumptionKey, op: Blockwise, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """What the op of one item has."""
    return infer_assumption_for_node(key, op.core_op, feature, fgraph, node, input_states)


@register_universal_assumption(DimShuffle, derived=True)
def with_other_axes_has(
    key: AssumptionKey, op: DimShuffle, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """Matrices whose batch axes are permuted, and their transposes."""
    (x,) = node.inputs
    n, held = op.input_ndim, input_states[0] is TRUE
    if key is UNIT_MAGNITUDE:
        return true_if(held)
    if key is UNIQUE_INDICES:
        return true_if(held and op.new_order[-1:] == (n - 1,))
    if n < 2 or key not in MATRIX_KEYS:
        return true_if(False)
    if op.new_order[-2:] == (n - 2, n - 1):
        return true_if(held)
    if op.new_order[-2:] != (n - 1, n - 2) or key not in OF_TRANSPOSES:
        return true_if(False)
    if key is ORTHOGONAL:
        return true_if(held and feature.check(x, SQUARE))
    return true_if(feature.check(x, TRANSPOSED.get(key, key)))


@register_universal_assumption(Subtensor, derived=True)
def part_has(
    key: AssumptionKey, op: Subtensor, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """Whole matrices of a batch; parts of square matrices with the same rows and columns."""
    x, *indices = node.inputs
    held = input_states[0] is TRUE
    entries = [*op.key(indices), *[FULL] * (rank(x) - len(op.idx_list))]
    if key is UNIT_MAGNITUDE:
        return true_if(held)
    if key is UNIQUE_INDICES:
        return true_if(held and isinstance(entries[-1], slice))
    if rank(x) < 2 or not isinstance(entries[-1], slice) or not isinstance(entries[-2], slice):
        return true_if(False)
    if key not in MATRIX_KEYS:
        return true_if(False)
    if not same_part(entries[-2], entries[-1]):
        return true_if(False)
    if entries[-1] == FULL:
        return true_if(held)
    if not feature.check(x, SQUARE):
        return true_if(False)
    if key in (*PATTERNS, SYMMETRIC, SQUARE, POSITIVE_DEFINITE):
        forward = entries[-1].step is None or key not in (*TRANSPOSED, *PATTERNS)
        return true_if(held and forward)
    return true_if(False)


@register_universal_assumption(AdvancedSubtensor, derived=True)
def rows_have(
    key: AssumptionKey,
    op: AdvancedSubtensor,
    feature: Any,
    fgraph: Any,
    node: Apply,
    input_states: States,
) -> list[FactState]:
    """Rows of a selection are a selection."""
    x, *indices = node.inputs
    if key is UNIT_MAGNITUDE:
        return true_if(input_states[0] is TRUE)
    is_rows = rank(x) == 2 and op.idx_list[0] == 0 and all(e == FULL for e in op.idx_list[1:])
    chosen = is_rows and len(indices) == 1 and indices[0].type.dtype != "bool"
    return true_if(key is SELECTION and chosen and input_states[0] is TRUE)


@register_universal_assumption(JoinDims, SplitDims, derived=True)
def reshaped_has(
    key: AssumptionKey, op: Any, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """Matrices of a batch whose batch axes are joined or split."""
    stop = op.axis_range.stop if isinstance(op, JoinDims) else op.axis + 1
    batch_only = stop <= rank(node.inputs[0]) - 2 and rank(node.outputs[0]) >= 2
    kept = (batch_only and key in MATRIX_KEYS) or key is UNIT_MAGNITUDE
    return true_if(kept and input_states[0] is TRUE)
