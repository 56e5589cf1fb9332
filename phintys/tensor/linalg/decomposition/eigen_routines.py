"""Eigenvalues and eigenvectors of Hermitian matrices, as routines: small real ones by
`eigen_small`, others by LAPACK."""

from __future__ import annotations

import numpy as np

from phintys.dims import Dim, dim_min
from phintys.routines import Array, Positions, Real, routine
from phintys.routines.language import PARTS, sqrt
from phintys.routines.libraries import LAPACK, LARGEST_INT, LOWER, PLAIN, UPPER, syevd, sygvd
from phintys.tensor.linalg.decomposition.eigen_small import (
    FRACTION,
    SMALL,
    decompose_small,
    set_signs_in_numbers,
)
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


def unless_small(n: Dim, size: Dim) -> Dim:
    """The length of a workspace that only matrices for LAPACK need: 1 for others."""
    return 1 + dim_min(n // (SMALL + 1), 1) * (size - 1)


@routine(LAPACK, _FAILURE, grouped=True)
def factor_hermitian(
    count: int, vectors: int, lower: int, n: int, lwork: int, lrwork: int, liwork: int,
    a: Array, w: Array, v: Array, work: Array, rwork: Array, iwork: Positions,
) -> int:  # fmt: skip
    """Store the eigenvalues of matrices, and eigenvectors as columns if ``vectors``.

    Without ``vectors``, ``v`` is a workspace for one matrix.
    """
    if lwork > LARGEST_INT:
        return 1
    if PARTS == 1 and n <= SMALL:
        decompose_small(count, vectors, lower, n, a, w, v)
        return 0
    size = n * n * PARTS
    for k in range(count):
        x = a[k * size :]
        y = v[k * size * vectors :]
        for i in range(n * n):  # the transpose of a Hermitian matrix is its conjugate
            y[i * PARTS + PARTS - 1] = -x[i * PARTS + PARTS - 1]
            y[i * PARTS] = x[i * PARTS]
        z = w[k * n :]
        _factor(vectors, 1 - lower, n, lwork, lrwork, liwork, y, z, work, rwork, iwork)
        if vectors == 1:
            _transpose(n, y)
    return 0


def _set_phases(n: int, v: Array) -> None:
    """Multiply vectors so that the first large component of each is positive."""
    if PARTS == 1:
        set_signs_in_numbers(n, v)
        return
    for j in range(n):
        column = v[j * n * PARTS :]
        largest = 0.0
        for i in range(n):
            size = _length(column[i * PARTS :])
            largest = size if size > largest else largest
        place = 0
        for m in range(n):
            i = n - 1 - m
            place = i if _length(column[i * PARTS :]) > FRACTION * largest else place
        chosen = column[place * PARTS :]
        size = _length(chosen)
        c = chosen[0] / size
        s = chosen[PARTS - 1] / size
        for i in range(n):
            x = column[i * PARTS]
            y = column[i * PARTS + PARTS - 1]
            column[i * PARTS] = c * x + s * y
            column[i * PARTS + PARTS - 1] = c * y - s * x
        chosen[0] = size
        chosen[PARTS - 1] = 0.0


def _length(x: Array) -> Real:
    """The absolute value of a complex number."""
    return sqrt(x[0] * x[0] + x[PARTS - 1] * x[PARTS - 1])


def _transpose(n: int, a: Array) -> None:
    """Exchange the triangles of a matrix."""
    for i in range(n):
        for j in range(i):
            for part in range(PARTS):
                here = (i * n + j) * PARTS + part
                there = (j * n + i) * PARTS + part
                x = a[here]
                a[here] = a[there]
                a[there] = x


def _factor(
    vectors: int, lower: int, n: int, lwork: int, lrwork: int, liwork: int,
    a: Array, w: Array, work: Array, rwork: Array, iwork: Positions,
) -> None:  # fmt: skip
    """Store the eigenvalues of a[n, n], stored by columns, and replace it by eigenvectors."""
    job = _VECTORS if vectors == 1 else _VALUES
    uplo = LOWER if lower == 1 else UPPER
    status = 1
    if n > 0 and triangle_is_finite(lower, n, a) == 1:
        status = syevd(job, uplo, n, a, n, w, work, lwork, rwork, lrwork, iwork, liwork)
    _finish(status, vectors, n, a, w)


def _finish(status: int, vectors: int, n: int, a: Array, w: Array) -> None:
    """Set the signs of eigenvectors; results are NaN if LAPACK has found none."""
    if status != 0:
        fill_nan_real(n, w)
        fill_nan(n * n, a)
    elif vectors == 1:
        _set_phases(n, a)


@routine(LAPACK, _FAILURE)
def factor_hermitian_pair(
    vectors: int, lower: int, n: int, lwork: int, lrwork: int, liwork: int,
    a: Array, b: Array, w: Array, work: Array, rwork: Array, iwork: Positions,
) -> int:  # fmt: skip
    """Store the eigenvalues of ``a v = b v diag(w)``, and replace ``a`` by eigenvectors.

    The matrices are stored column by column; ``b`` is overwritten.
    """
    if lwork > LARGEST_INT:
        return 1
    job = _VECTORS if vectors == 1 else _VALUES
    uplo = LOWER if lower == 1 else UPPER
    status = 1
    if n > 0 and triangle_is_finite(lower, n, a) * triangle_is_finite(lower, n, b) == 1:
        status = sygvd(1, job, uplo, n, a, n, b, n, w, work, lwork, rwork, lrwork, iwork, liwork)
    _finish(status, vectors, n, a, w)
    return 0
