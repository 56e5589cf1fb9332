"""Eigenvalues and eigenvectors of small symmetric matrices: routines on packs, without LAPACK."""

from __future__ import annotations

from phintys.routines import Array
from phintys.routines.language import LANES, in_numbers, local
from phintys.tensor.linalg.decomposition.eigen_alone import decompose_alone
from phintys.tensor.linalg.decomposition.eigen_steps import ELEMENTS, FRACTION, NUMBERS, SMALL
from phintys.tensor.linalg.decomposition.eigen_together import decompose_together, set_signs

__all__ = ["FRACTION", "SMALL", "decompose_small", "set_signs_in_numbers"]

#: the shares of a group from which on its matrices are decomposed together
PARTS_OF_GROUP = 2


def decompose_small(
    count: int, vectors: int, lower: int, n: int, a: Array, w: Array, v: Array
) -> None:
    """Write the eigenvalues of matrices, and eigenvectors as columns if ``vectors``."""
    s = local(ELEMENTS * LANES)
    q = local(ELEMENTS * LANES)
    t = local(NUMBERS * LANES)
    for group in range((count + LANES - 1) // LANES):
        first = group * LANES
        left = count - first if count - first < LANES else LANES
        x = a[first * n * n :]
        y = v[first * n * n * vectors :]
        z = w[first * n :]
        if LANES > 1 and left * PARTS_OF_GROUP > LANES:
            decompose_together(left, vectors, lower, n, x, z, y, s, q, t)
        else:
            for k in range(left):
                at = k * n * n
                decompose_alone(vectors, lower, n, x[at:], z[k * n :], y[at * vectors :], s, q, t)


set_signs_in_numbers = in_numbers(set_signs)
