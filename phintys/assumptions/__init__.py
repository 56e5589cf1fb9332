"""Properties of values: declared with `assume`, inferred from ops, used by rewriting."""
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

from phintys.assumptions.core import (
    ALL_KEYS,
    ASSUMPTION_INFER_REGISTRY,
    CONSTANT_INFER_REGISTRY,
    IMPLIES,
    KEY_REGISTRY,
    UNIVERSAL_RULES,
    AssumptionFeature,
    AssumptionKey,
    FactState,
    all_inputs_have_key,
    check_assumption,
    infer_assumption_for_node,
    propagate_first,
    register_assumption,
    register_constant_inference,
    register_implies,
    register_type_inference,
    register_universal_assumption,
    true_if,
)
from phintys.assumptions.display import assumption_tags, summarize_assumptions
from phintys.assumptions.keys import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    MATRIX_KEYS,
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
    register_matrix_property_rules,
)
from phintys.assumptions.specify import (
    SpecifyAssumptions,
    assume,
    specify_assumption_rule,
)
from phintys.errors import ConflictingAssumptionsError
