"""Eigenvalues and eigenvectors of Hermitian matrices by LAPACK, as routines."""

from __future__ import annotations

import numpy as np

from phintys.dims import Dim
from phintys.routines import Array, Positions, routine
from phintys.routines.libraries import LAPACK, LARGEST_INT, LOWER, PLAIN, UPPER, syevd, sygvd
from phintys.tensor.linalg.matrix_op import BLOCK
from phintys.tensor.linalg.routine_parts import fill_nan, fill_nan_real, triangle_is_finite

#: codes of LAPACK: with eigenvectors, without
_VECTORS, _VALUES = ord("V"), PLAIN
_FAILURE = np.linalg.LinAlgError, "The matrix is too large for LAPACK"


def work_sizes(n: Dim, vectors: bool) -> tuple[Dim, Dim, Dim]:
    """The lengths of workspaces: of the dtype, of real numbers for complex dtypes, of integers."""
    if not vectors:
        return 2 * n + BLOCK * n + 1, n + 1, Dim.const(1)
    return 2 * n * n + (6 + BLOCK) * n + 1, 2 * n * n + 5 * n + 1, 5 * n + 3


@routine(LAPACK, _FAILURE)
def factor_hermitian(
    vectors: int, lower: int, n: int, lwork: int, lrwork: int, liwork: int,
    a: Array, w: Array, work: Array, rwork: Array, iwork: Positions,
) -> int:  # fmt: skip
    """Store the eigenvalues of a[n, n], and replace it by eigenvectors, column by column."""
    if lwork > LARGEST_INT:
        return 1
    job = _VECTORS if vectors == 1 else _VALUES
    uplo = LOWER if lower == 1 else UPPER
    status = 1
    if n > 0 and triangle_is_finite(lower, n, a) == 1:
        status = syevd(job, uplo, n, a, n, w, work, lwork, rwork, lrwork, iwork, liwork)
    if status != 0:
        fill_nan_real(n, w)
        fill_nan(n * n, a)
    return 0


@routine(LAPACK, _FAILURE)
def factor_hermitian_pair(
    vectors: int, lower: int, n: int, lwork: int, lrwork: int, liwork: int,
    a: Array, b: Array, w: Array, work: Array, rwork: Array, iwork: Positions,
) -> int:  # fmt: skip
    """The same for ``a v = b v diag(w)``; b is overwritten."""
    if lwork > LARGEST_INT:
        return 1
    job = _VECTORS if vectors == 1 else _VALUES
    uplo = LOWER if lower == 1 else UPPER
    status = 1
    if n > 0 and triangle_is_finite(lower, n, a) * triangle_is_finite(lower, n, b) == 1:
        status = sygvd(1, job, uplo, n, a, n, b, n, w, work, lwork, rwork, lrwork, iwork, liwork)
    if status != 0:
        fill_nan_real(n, w)
        fill_nan(n * n, a)
    return 0
