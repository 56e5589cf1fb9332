"""Properties of elementwise functions of matrices."""

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
    UNIQUE_INDICES,
    UNIT_MAGNITUDE,
    UPPER_TRIANGULAR,
    AssumptionKey,
    FactState,
    register_assumption,
    register_universal_assumption,
    true_if,
)
from phintys.graph.variable import Apply
from phintys.scalar import dtypes
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.inference.creation import PATTERNS
from phintys.tensor.inference.parts import (
    are_transposes,
    fills_matrix,
    is_zero,
    mask_band,
    same_axes,
)
from phintys.tensor.static import known_constant

States = Sequence[FactState]
TRUE = FactState.TRUE
SWITCH = type(TABLE["switch"])
#: functions that keep absolute values at 1
OF_UNIT_MAGNITUDE = ("mul", "true_div", "neg", "abs", "conj", "reciprocal", "sqr", "sqrt", "sign")


@register_universal_assumption(Elemwise, derived=True)
def elementwise_has(
    key: AssumptionKey, op: Elemwise, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    if len(node.outputs) != 1:
        return [FactState.UNKNOWN] * len(node.outputs)
    (out,), name = node.outputs, op.scalar_op.name
    # an operand that is repeated along the axes of the matrix is a number, a row or a column
    held = [s is TRUE and same_axes(v, out) for v, s in zip(node.inputs, input_states, strict=True)]
    if name == "second":
        return true_if(held[1])
    if name == "switch":
        return true_if(_choice_keeps(key, node, held))
    if name.startswith("cast_"):
        return true_if(held[0] and _cast_keeps(key, node))
    if key is SQUARE:
        return true_if(any(held))
    if key in PATTERNS:
        return true_if(_is_zero_where(op, name, node, held))
    if key is SYMMETRIC:
        return true_if(_is_symmetric(name, node, held))
    if key is UNIT_MAGNITUDE:
        numbers = [s is TRUE for s in input_states]
        return true_if(name in OF_UNIT_MAGNITUDE and all(numbers))
    if key is POSITIVE_DEFINITE:
        return true_if(_is_positive(name, node, held))
    if key is ORTHOGONAL:
        signs = name == "conj" or name == "neg" or _is_scaled(name, node, held, (1, -1))
        return true_if(any(held) and signs)
    kept = key in (SELECTION, PERMUTATION) and name in ("conj", "abs", "sqr", "identity")
    return true_if((kept and held[0]) or (key is UNIQUE_INDICES and name == "identity" and held[0]))


def _is_zero_where(op: Elemwise, name: str, node: Apply, held: Sequence[bool]) -> bool:
    """Whether the function is zero where the operands that have a zero pattern are."""
    if name == "mul":
        return any(held)
    if name == "true_div":  # by a number, a row or a column: a matrix may have zeros there too
        return held[0] and not same_axes(node.inputs[1], node.outputs[0])
    if len(held) == 1:
        return held[0] and bool(op.scalar_op.facts.get("zero_at_zero"))
    return name in ("add", "sub", "maximum", "minimum") and all(held)


def _choice_keeps(key: AssumptionKey, node: Apply, held: Sequence[bool]) -> bool:
    """Whether both branches of a ``switch`` have a property, or one has zeros and one is zero."""
    mask, x, other = node.inputs
    if key is SQUARE:
        return any(held)
    if key in PATTERNS:
        return (held[1] or is_zero(x)) and (held[2] or is_zero(other))
    return held[1] and held[2] and (fills_matrix(mask) or (key is SYMMETRIC and held[0]))


@register_assumption(DIAGONAL, SWITCH)
@register_assumption(LOWER_TRIANGULAR, SWITCH)
@register_assumption(UPPER_TRIANGULAR, SWITCH)
@register_assumption(TRIDIAGONAL, SWITCH)
def masked_has(
    key: AssumptionKey, op: Elemwise, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """``switch(mask, x, 0)`` is zero outside of the band of the mask."""
    mask, x, other = node.inputs
    if not is_zero(other) or not same_axes(x, node.outputs[0]):
        return true_if(False)
    first, last = PATTERNS[key]
    band = mask_band(mask)
    return true_if(band is not None and first <= band[0] and band[1] <= last)


@register_assumption(SYMMETRIC, type(TABLE["add"]), type(TABLE["mul"]))
def sum_with_transpose_has(
    key: AssumptionKey, op: Elemwise, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """``x + x.T`` and ``x * x.T``."""
    return true_if(_is_symmetric(op.scalar_op.name, node, [False] * len(node.inputs)))


def _cast_keeps(key: AssumptionKey, node: Apply) -> bool:
    """Whether a conversion of dtypes keeps a property; rounding may end being definite."""
    before, after = node.inputs[0].type.dtype, node.outputs[0].type.dtype
    if key in (POSITIVE_DEFINITE, ORTHOGONAL, UNIT_MAGNITUDE, UNIQUE_INDICES):
        return dtypes.upcast(before, after) == after
    return key in (*PATTERNS, SYMMETRIC, SQUARE, SELECTION, PERMUTATION)


def _is_symmetric(name: str, node: Apply, held: Sequence[bool]) -> bool:
    """A function of symmetric matrices and numbers; a sum or product with all transposes."""
    others = [v for v, h in zip(node.inputs, held, strict=True) if not h and not fills_matrix(v)]
    if len(others) == 2 and name in ("add", "mul"):
        return are_transposes(*others)
    return not others and any(held)


def _is_positive(name: str, node: Apply, held: Sequence[bool]) -> bool:
    """A sum of positive definite matrices; a product of one with a positive number."""
    if name == "add":
        return all(held)
    return _is_scaled(name, node, held, None)


def _is_scaled(
    name: str, node: Apply, held: Sequence[bool], factors: tuple[int, ...] | None
) -> bool:
    """Whether the first matrix is multiplied, or divided, by some of the factors (None: > 0)."""
    if name not in ("mul", "true_div") or sum(held) != 1 or (name == "true_div" and not held[0]):
        return False
    numbers = [known_constant(v) for v, h in zip(node.inputs, held, strict=True) if not h]
    if factors is not None:
        return all(c in factors for c in numbers)
    return all(c is not None and c.imag == 0 and 0 < c.real < float("inf") for c in numbers)
