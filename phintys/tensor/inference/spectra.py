"""Properties of orthogonal factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.assumptions import (
    ORTHOGONAL,
    SQUARE,
    UPPER_TRIANGULAR,
    AssumptionKey,
    FactState,
    register_universal_assumption,
)
from phintys.graph.variable import Apply
from phintys.tensor.linalg.decomposition.eigen import Eigh
from phintys.tensor.linalg.decomposition.qr import QR
from phintys.tensor.linalg.decomposition.svd import SVD

States = Sequence[FactState]


def _states(*found: bool) -> list[FactState]:
    return [FactState.TRUE if x else FactState.UNKNOWN for x in found]


@register_universal_assumption(Eigh)
def eigenvectors_have(
    key: AssumptionKey, op: Eigh, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """Orthonormal, for a single matrix; NaN if it is not finite."""
    orthogonal = key is ORTHOGONAL and len(node.inputs) == 1
    return _states(False, key is SQUARE or orthogonal)


@register_universal_assumption(SVD)
def singular_vectors_have(
    key: AssumptionKey, op: SVD, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """The columns of the left factor are orthonormal, of the right one only if it is square."""
    if not op.compute_uv:
        return _states(False)
    square = op.full_matrices and key in (SQUARE, ORTHOGONAL)
    return _states(square or key is ORTHOGONAL, False, square)


@register_universal_assumption(QR)
def orthogonal_factor_has(
    key: AssumptionKey, op: QR, feature: Any, fgraph: Any, node: Apply, input_states: States
) -> list[FactState]:
    """Orthonormal columns, and an upper triangle."""
    known = {
        "q": key is ORTHOGONAL or (key is SQUARE and op.mode == "full"),
        "r": key is UPPER_TRIANGULAR,
    }
    return _states(*(known.get(name, False) for name in op.results))
