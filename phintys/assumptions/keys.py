"""The properties that this package knows, and what they imply.

==================  ===============================================================================
diagonal            a matrix that is zero off its main diagonal; it need not be square
lower_triangular    zero above the main diagonal
upper_triangular    zero below the main diagonal
tridiagonal         zero outside of the main diagonal and the two beside it
symmetric           equal to its transpose
positive_definite   symmetric (complex: Hermitian), and ``v^H x v > 0`` for all nonzero ``v``
orthogonal          its columns are orthonormal: ``x^H x`` is the identity matrix
selection           each row is a row of the identity matrix
permutation         the rows of the identity matrix in some order
square              as many rows as columns
unique_indices      integers, each of which occurs once along the last axis
unit_magnitude      all elements have absolute value 1
==================  ===============================================================================

Properties of matrices are those of the last two axes, for every item of a batch.
"""

from __future__ import annotations

from phintys.assumptions.core import (
    TRUE,
    UNKNOWN,
    AssumptionKey,
    FactState,
    register_implies,
    register_type_inference,
)
from phintys.graph.variable import Variable

# first, because inference rules of other keys ask for it
SQUARE = AssumptionKey("square", None)
DIAGONAL = AssumptionKey("diagonal", "diag")
LOWER_TRIANGULAR = AssumptionKey("lower_triangular", "tril")
UPPER_TRIANGULAR = AssumptionKey("upper_triangular", "triu")
SYMMETRIC = AssumptionKey("symmetric", "sym")
POSITIVE_DEFINITE = AssumptionKey("positive_definite", "pd")
ORTHOGONAL = AssumptionKey("orthogonal", "orth")
SELECTION = AssumptionKey("selection", "sel")
PERMUTATION = AssumptionKey("permutation", "perm")
UNIQUE_INDICES = AssumptionKey("unique_indices", "uniq")
TRIDIAGONAL = AssumptionKey("tridiagonal", "trid")
UNIT_MAGNITUDE = AssumptionKey("unit_magnitude", "unit")


def is_real(v: Variable) -> bool:
    """Whether the dtype of a variable is real."""
    return not str(getattr(v.type, "dtype", "")).startswith("complex")


def _square_by_type(v: Variable) -> FactState:
    shape = getattr(v.type, "shape", ())
    if len(shape) < 2 or shape[-1] is None or shape[-1] != shape[-2]:
        return UNKNOWN
    return TRUE


register_type_inference(SQUARE, _square_by_type)
register_implies(DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR, TRIDIAGONAL)
register_implies((LOWER_TRIANGULAR, UPPER_TRIANGULAR), DIAGONAL)
register_implies((DIAGONAL, SQUARE), SYMMETRIC)
register_implies((LOWER_TRIANGULAR, SYMMETRIC), DIAGONAL)
register_implies((UPPER_TRIANGULAR, SYMMETRIC), DIAGONAL)
register_implies(SYMMETRIC, SQUARE)
register_implies(POSITIVE_DEFINITE, SQUARE)
register_implies(POSITIVE_DEFINITE, SYMMETRIC, when=is_real)
register_implies(PERMUTATION, SELECTION, ORTHOGONAL, SQUARE)

#: Properties of matrices that hold for a batch if they hold for every matrix in it.
MATRIX_KEYS: list[AssumptionKey] = [
    *(SQUARE, DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR, SYMMETRIC, POSITIVE_DEFINITE),
    *(ORTHOGONAL, SELECTION, PERMUTATION, TRIDIAGONAL),
]


def register_matrix_property_rules(key: AssumptionKey) -> None:
    """State that a key is a property of the last two axes.

    Then what is known of matrices is known of batches of them, and of the items of a batch; without
    it, a new key is inferred by the rules that are registered for it only.
    """
    MATRIX_KEYS.append(key)
