"""Properties of products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.assumptions import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    ORTHOGONAL,
    PERMUTATION,
    SELECTION,
    SQUARE,
    SYMMETRIC,
    TRIDIAGONAL,
    UPPER_TRIANGULAR,
    AssumptionFeature,
    AssumptionKey,
    FactState,
    register_assumption,
    register_universal_assumption,
    true_if,
)
from phintys.graph.variable import Apply, Variable
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.dot import Dot
from phintys.tensor.inference.parts import are_transposes, rank

States = Sequence[FactState]
#: products of two matrices with the property have it
CLOSED = (DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR, ORTHOGONAL, PERMUTATION, SELECTION, SQUARE)


def factors(v: Variable) -> tuple[Variable, Variable] | None:
    """Both factors if ``v`` is a product of two matrices, or of batches of them; else None."""
    node = v.owner
    if node is None:
        return None
    if isinstance(node.op, Blockwise):
        is_product = type(node.op.core_op) is Dot and all(len(s) == 2 for s in node.op.inputs_sig)
    else:
        is_product = type(node.op) is Dot and all(rank(x) == 2 for x in node.inputs)
    return (node.inputs[0], node.inputs[1]) if is_product else None


@register_universal_assumption(Dot, derived=True)
def product_has(
    key: AssumptionKey,
    op: Dot,
    feature: AssumptionFeature,
    fgraph: Any,
    node: Apply,
    input_states: States,
) -> list[FactState]:
    (out,) = node.outputs
    if factors(out) is None:
        return true_if(False)
    if key in CLOSED and all(s is FactState.TRUE for s in input_states):
        return true_if(True)
    x, y = node.inputs
    if key is TRIDIAGONAL:
        pairs = [(x, y), (y, x)]
        return true_if(any(feature.check(a, DIAGONAL) and feature.check(b, key) for a, b in pairs))
    return true_if(False)


@register_assumption(SYMMETRIC, Dot)
@register_assumption(SQUARE, Dot)
def congruence_has(
    key: AssumptionKey,
    op: Dot,
    feature: AssumptionFeature,
    fgraph: Any,
    node: Apply,
    input_states: States,
) -> list[FactState]:
    """``x x^T`` and ``x s x^T``."""
    is_product = factors(node.outputs[0]) is not None
    return true_if(is_product and is_congruence(feature, *node.inputs))


def is_congruence(feature: AssumptionFeature, x: Variable, y: Variable) -> bool:
    """Whether ``x y`` is ``a a^T``, or ``a s a^T`` with a symmetric matrix ``s``."""
    if are_transposes(x, y):
        return True
    left, right = factors(x), factors(y)
    if left is not None and are_transposes(left[0], y):
        return feature.check(left[1], SYMMETRIC)
    if right is not None and are_transposes(x, right[1]):
        return feature.check(right[0], SYMMETRIC)
    return False
