"""Elimination with partial pivoting, which `lu`, `solve`, `inv`, `det` and `slogdet` share.

Its functions for `perform` (`factored`, `substituted`), its routines, and how they are lowered.
A matrix that contains NaN or infinity has factors of NaN, and its rows are not exchanged: LAPACK
says nothing about such matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np

from phintys.dims import Dim, DimLike, dim_min, product
from phintys.graph.builder import Builder, V
from phintys.routines import Array, Longs, Positions, Routine, routine
from phintys.routines.language import PARTS
from phintys.routines.libraries import LAPACK, LARGEST_INT, PLAIN, TRANSPOSED, getrf, getrs
from phintys.tensor.linalg.matrix_op import nan_like

SINGULAR = "Singular matrix"

# ---------------------------------------------------------------------- for `perform`


def factored(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The factors L (without its diagonal of ones) and U of one matrix, and the row (from 0) that
    was exchanged with each row."""
    from scipy.linalg import get_lapack_funcs

    count = min(x.shape)
    if count == 0 or not np.isfinite(x).all():
        return nan_like(x), np.arange(count, dtype="int32")
    (getrf,) = get_lapack_funcs(["getrf"], [x])
    factors, pivots, _ = getrf(x)
    return factors, pivots


def is_singular(factors: np.ndarray) -> bool:
    """Whether a factor has a zero on its diagonal."""
    return not np.all(factors.diagonal() != 0)


def substituted(
    factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, transposed: bool = False
) -> np.ndarray:
    """The solution of a system with a matrix that is `factored`; NaN if it is singular.

    ValueError if the pivots are none.
    """
    from scipy.linalg import get_lapack_funcs

    require_pivots(pivots, len(factors))
    if is_singular(factors):
        return nan_like(b)
    if b.size == 0:
        return b.copy()
    (getrs,) = get_lapack_funcs(["getrs"], [factors, b])
    found, _ = getrs(factors, pivots, b, trans=int(transposed))
    return found.reshape(b.shape)


def require_pivots(pivots: np.ndarray, n: int) -> None:
    """ValueError if the numbers are no rows of a matrix with ``n`` rows."""
    if pivots.size and not (pivots.min() >= 0 and pivots.max() < n):
        raise ValueError(f"Pivots are numbers from 0 to {n - 1}, not {pivots}.")


# -------------------------------------------------------------------------- routines


@routine(LAPACK, (np.linalg.LinAlgError, "The matrices are too large for LAPACK"), grouped=True)
def eliminate(count: int, m: int, n: int, a: Array, pivots: Positions) -> int:
    """Replace matrices, stored by columns, by their factors L and U; pivots count from 1."""
    if m > LARGEST_INT or n > LARGEST_INT:
        return 1
    steps = m if m < n else n
    for k in range(count):
        x = a[k * m * n * PARTS :]
        p = pivots[k * steps :]
        if steps > 0 and count_not_finite(m * n * PARTS, x) == 0:
            getrf(m, n, x, m, p)
        else:
            fill_with_nan(m * n * PARTS, x)
            for i in range(steps):
                p[i] = i + 1
    return 0


@routine(LAPACK, (np.linalg.LinAlgError, SINGULAR), grouped=True)
def substitute_in_factors(
    count: int, transposed: int, raises: int, n: int, m: int, a: Array, pivots: Positions, b: Array
) -> int:
    """Replace right sides, stored by columns, by solutions, or by NaN if a matrix is singular.

    Return 1 if one is singular and ``raises``, or if a pivot is none.
    """
    if n > LARGEST_INT or m > LARGEST_INT:
        return 1
    failed = 0
    for k in range(count):
        x = a[k * n * n * PARTS :]
        y = b[k * n * m * PARTS :]
        p = pivots[k * n :]
        for i in range(n):
            if p[i] < 1 or p[i] > n:
                return 1
        if has_zero(n, x, n + 1) == 1:
            failed = raises
            fill_with_nan(n * m * PARTS, y)
        elif n > 0 and m > 0:
            getrs(TRANSPOSED if transposed == 1 else PLAIN, n, m, x, n, p, y, n)
    return failed


def count_not_finite(n: int, x: Array) -> int:
    """How many of ``n`` numbers are NaN or infinite."""
    found = 0
    for i in range(n):
        found += 0 if x[i] - x[i] == 0.0 else 1
    return found


def fill_with_nan(n: int, x: Array) -> None:
    """Replace ``n`` numbers by NaN."""
    for i in range(n):
        x[i] = nan


def has_zero(n: int, a: Array, step: int) -> int:
    """Whether one of ``n`` elements, each ``step`` after the one before, is zero: 1 or 0."""
    found = 0
    for i in range(n):
        place = i * step * PARTS
        zero = a[place] == 0.0 and a[place + PARTS - 1] == 0.0
        found = 1 if zero else found
    return found


@routine("float64", (ValueError, "A pivot is no row of the matrix"))
def order_rows(inverse: int, m: int, n: int, pivots: Positions, order: Longs) -> int:
    """Write the order of ``m`` rows after ``n`` exchanges, or its inverse; return 1 for a pivot
    that is no row."""
    for i in range(m):
        order[i] = i
    for s in range(n):
        i = n - 1 - s if inverse == 1 else s
        other = pivots[i]
        if other < 0 or other >= m:
            return 1
        row = order[i]
        order[i] = order[other]
        order[other] = row
    return 0


# -------------------------------------------------------------------------- lowering


def by_columns(b: Builder[V], x: V) -> V:
    """A view whose last two axes are exchanged."""
    axes = range(x.ndim)
    return b.permute(x, [*axes[:-2], x.ndim - 1, x.ndim - 2])


def lower_elimination(b: Builder[V], x: V, dtype: str) -> tuple[V, V]:
    """Factors of matrices, stored by columns, and pivots that count from 1."""
    *batch, m, n = b.shape(x)
    columns, count = by_columns(b, b.cast(x, dtype)), dim_min(m, n)
    factors, pivots = b.external(
        eliminate,
        dtype,
        (m, n),
        updates=[columns],
        writes=[("int32", (count,))],
        batch=batch,
        work=m * n * count,
    )
    return factors, pivots


def lower_substitution(
    b: Builder[V],
    factors: V,
    pivots: V,
    right: V,
    dtype: str,
    b_ndim: int,
    transposed: bool = False,
    raises: bool = False,
) -> V:
    """Solutions for what `lower_elimination` returns."""
    flags = int(transposed), int(raises)
    return lower_columns(b, substitute_in_factors, flags, [factors, pivots], right, dtype, b_ndim)


def lower_columns(
    b: Builder[V],
    solver: Routine,
    flags: tuple[int, ...],
    reads: Sequence[V],
    right: V,
    dtype: str,
    b_ndim: int,
    scratch: Sequence[tuple[str, DimLike]] = (),
) -> V:
    """Solutions by a routine that takes flags, the numbers of rows and of columns, what it reads,
    and right sides stored by columns, which it replaces.

    ``reads`` have one batch.  If that is one matrix, all right sides of a batch are its columns.
    """
    core = reads[0].ndim - (right.ndim - b_ndim)
    own = b.shape(reads[0])[:-core]
    columns = by_columns(b, right) if b_ndim == 2 else b.expand(right, right.ndim - 1)
    columns = b.cast(columns, dtype)
    *outer, m, n = b.shape(columns)
    batch = b.broadcast_shape([own, outer])
    if all(d.value == 1 for d in own):
        batch, m = own, product([*outer, m])
        given = b.reshape(columns, (*batch, m, n))
    else:
        given = b.broadcast_to(columns, (*batch, m, n))
        reads = [b.broadcast_to(x, (*batch, *b.shape(x)[len(own) :])) for x in reads]
    (found,) = b.external(
        solver, dtype, (*flags, n, m), reads, [given], batch=batch, work=n * n * m, scratch=scratch
    )
    if all(d.value == 1 for d in own):
        found = b.reshape(found, b.shape(columns))
    return by_columns(b, found) if b_ndim == 2 else b.squeeze(found, found.ndim - 2)


def lower_order(b: Builder[V], pivots: V, m: Dim, inverse: bool) -> V:
    """The order of rows after exchanges with ``pivots``, which count from 0."""
    *batch, n = b.shape(pivots)
    (order,) = b.external(
        order_rows,
        "float64",
        (int(inverse), m, n),
        [b.cast(pivots, "int32")],
        writes=[("int64", (m,))],
        batch=batch,
        work=m,
    )
    return order


def counted_from(b: Builder[V], pivots: V, first: int, other: int) -> V:
    """Pivots that count from ``first``, as such that count from ``other``."""
    return b.map(lambda n, p: n.add(p, n.const(other - first, p)), pivots)
