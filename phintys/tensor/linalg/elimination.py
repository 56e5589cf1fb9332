"""Elimination with partial pivoting, which `lu`, `solve`, `inv`, `det` and `slogdet` share.

Its functions for `perform` (`factored`, `substituted`), its routines, and how they are lowered.
A matrix that contains NaN or infinity has factors of NaN, and its rows are not exchanged: LAPACK
says nothing about such matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.dims import Dim, DimLike, as_dim, dim_min, product
from phintys.graph.builder import Builder, V
from phintys.routines import Array, Longs, Positions, Routine, routine
from phintys.routines.language import LANES, PARTS, load_square, local
from phintys.routines.libraries import LAPACK, LARGEST_INT, PLAIN, TRANSPOSED, getrf, getrs
from phintys.tensor.linalg.matrix_op import columns_first, nan_like
from phintys.tensor.linalg.routine_parts import (
    add_multiple,
    copy,
    exchange,
    fill_nan,
    has_zero,
    is_finite,
    multiply_by,
    store_adjacent,
    store_identity,
    transpose,
)
from phintys.tensor.linalg.small_elimination import (
    ELEMENTS,
    FEW,
    MOST_LANES,
    SCRATCH,
    SMALL,
    column_stride,
    eliminate_small,
    eliminate_together,
    invert_small,
    load_identities,
    load_right_sides,
    load_together,
    store_right_sides,
    substitute_back,
    substitute_column,
    substitute_columns,
    substitute_transposed,
    take_pivots_together,
)

SINGULAR, WRONG_PIVOT = "Singular matrix", "A pivot is no row of the matrix"

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


def cofactors(x: np.ndarray) -> np.ndarray:
    """The matrix of cofactors of a square matrix, which may be singular.

    With ``x = P^T L U``, its transpose is ``adj(U) inv(L) P``, and the sign of ``P``.  No pivot is
    divided by: cofactors are polynomials.
    """
    factors, pivots = factored(x)
    with np.errstate(over="ignore", invalid="ignore"):
        found = _adjugate_of_upper(factors)
        for j in reversed(range(len(x))):
            found[:, j] -= found[:, j + 1 :] @ factors[j + 1 :, j]
    for j, other in reversed(list(enumerate(pivots))):
        found[:, [j, other]] = found[:, [other, j]]
    odd = np.count_nonzero(pivots != np.arange(len(x))) % 2
    return np.ascontiguousarray(-found.T if odd else found.T)


def _adjugate_of_upper(u: np.ndarray) -> np.ndarray:
    """The adjugate of an upper triangle, from those of its leading blocks."""
    found, product = np.zeros_like(u), u.dtype.type(1)
    for k in range(len(u)):
        found[:k, k] = -found[:k, :k] @ u[:k, k]
        found[k, k] = product
        found[:k, :k] *= u[k, k]
        product *= u[k, k]
    return found


# -------------------------------------------------------------------------- routines


@routine(LAPACK, (np.linalg.LinAlgError, "The matrices are too large for LAPACK"), grouped=True)
def eliminate(count: int, m: int, n: int, a: Array, factors: Array, pivots: Positions) -> int:
    """Write the factors L and U of matrices ``a`` by columns, and pivots that count from 1."""
    if m > LARGEST_INT or n > LARGEST_INT:
        return 1
    steps = m if m < n else n
    size = m * n * PARTS
    group = _group(m, n)
    for k in range((count + group - 1) // group):
        first = k * group
        left = count - first if count - first < group else group
        _eliminate(left, m, n, a[first * size :], factors[first * size :], pivots[first * steps :])
    return 0


@routine(LAPACK, (np.linalg.LinAlgError, "The matrices are too large for LAPACK"), grouped=True)
def find_pivots(
    count: int, n: int, a: Array, found: Array, factors: Array, pivots: Positions
) -> int:
    """Write numbers whose product is the determinant."""
    if n > LARGEST_INT:
        return 1
    size = n * n * PARTS
    stride = column_stride(n, n)
    group = _group(n, n)
    for k in range((count + group - 1) // group):
        first = k * group
        left = count - first if count - first < group else group
        x = a[first * size :]
        y = found[first * n * PARTS :]
        if left == LANES and LANES > 1 and group == LANES:
            _find_pivots_together(n, x, y)
        else:
            for item in range(left):
                _eliminate_one(n, n, stride, x[item * size :], factors, pivots)
                _take_pivots(n, stride, factors, pivots, y[item * n * PARTS :])
    return 0


def _take_pivots(n: int, stride: int, factors: Array, pivots: Positions, found: Array) -> None:
    """Write the diagonal, with a negative sign where rows were exchanged."""
    for i in range(n):
        sign = 1.0 if pivots[i] == i + 1 else -1.0
        place = i * (stride + 1) * PARTS
        found[i * PARTS + PARTS - 1] = sign * factors[place + PARTS - 1]
        found[i * PARTS] = sign * factors[place]


def _find_pivots_together(n: int, a: Array, found: Array) -> None:
    """The same for a group of matrices."""
    work = local(SCRATCH * LANES)
    load_together(n, n, a, work)
    eliminate_together(0, n, n, n, work)
    notes = work[n * n * LANES :]
    take_pivots_together(n, work, notes)
    store_adjacent(n, n, 1, notes, found)


@routine(LAPACK, (np.linalg.LinAlgError, SINGULAR), grouped=True)
def solve_by_elimination(
    count: int,
    by_rows: int,
    n: int,
    m: int,
    a: Array,
    b: Array,
    work: Array,
    pivots: Positions,
    columns: Array,
) -> int:
    """Replace right sides by solutions, or by NaN if a matrix is singular.

    Right sides are stored by rows if ``by_rows``, else by columns.
    """
    if n > LARGEST_INT or m > LARGEST_INT:
        return 1
    size = n * n * PARTS
    stride = column_stride(n, n)
    small = _group(n, n) == LANES and m <= SMALL
    group = LANES if small else 1
    for k in range((count + group - 1) // group):
        first = k * group
        left = count - first if count - first < group else group
        x = a[first * size :]
        y = b[first * n * m * PARTS :]
        if small and left == LANES and LANES > 1:
            _solve_together(0, by_rows, n, m, x, y)
        else:
            for i in range(left):
                right = y[i * n * m * PARTS :]
                _eliminate_one(n, n, stride, x[i * size :], work, pivots)
                if by_rows == 1 and m > 1:
                    transpose(n, m, right, columns)
                    _substitute(0, n, m, stride, work, pivots, columns)
                    transpose(m, n, columns, right)
                else:
                    _substitute(0, n, m, stride, work, pivots, right)
    return 0


@routine(LAPACK, (np.linalg.LinAlgError, SINGULAR), grouped=True)
def invert(
    count: int, n: int, a: Array, found: Array, work: Array, pivots: Positions, columns: Array
) -> int:
    """Write the inverses of matrices; return 1 if one is singular."""
    if n > LARGEST_INT:
        return 1
    size = n * n * PARTS
    stride = column_stride(n, n)
    group = _group(n, n)
    failed = 0
    for k in range((count + group - 1) // group):
        first = k * group
        left = count - first if count - first < group else group
        x = a[first * size :]
        y = found[first * size :]
        if left == LANES and LANES > 1 and group == LANES:
            failed += _solve_together(1, 1, n, n, x, y)
        else:
            for i in range(left):
                _eliminate_one(n, n, stride, x[i * size :], work, pivots)
                failed += _invert(n, stride, work, pivots, columns, y[i * size :])
    return 1 if failed > 0 else 0


def _invert(n: int, stride: int, a: Array, pivots: Positions, columns: Array, found: Array) -> int:
    """Write the inverse of one matrix, or NaN; return 1 if it is singular.

    The columns of its factors are ``stride`` apart.
    """
    if PARTS == 1 and n <= SMALL and n > FEW and LANES > 1 and has_zero(n, a, stride + 1) == 0:
        invert_small(n, stride, a, pivots, found)
        return 0
    store_identity(n, n, columns)
    failed = _substitute(0, n, n, stride, a, pivots, columns)
    transpose(n, n, columns, found)
    return failed


@routine(LAPACK, (ValueError, WRONG_PIVOT), grouped=True)
def substitute_in_factors(
    count: int, transposed: int, n: int, m: int, a: Array, pivots: Positions, b: Array
) -> int:
    """Replace right sides, stored by columns, by solutions, or by NaN if a matrix is singular.

    Return 1 if a pivot is no row.
    """
    if n > LARGEST_INT or m > LARGEST_INT:
        return 1
    for k in range(count):
        p = pivots[k * n :]
        for i in range(n):
            if p[i] < 1 or p[i] > n:
                return 1
        _substitute(transposed, n, m, n, a[k * n * n * PARTS :], p, b[k * n * m * PARTS :])
    return 0


def _group(m: int, n: int) -> int:
    """How many matrices are eliminated at once."""
    return LANES if PARTS == 1 and m <= SMALL and n <= SMALL else 1


def _eliminate(count: int, m: int, n: int, a: Array, factors: Array, pivots: Positions) -> None:
    """Write the factors of a group of matrices, or of a part of one."""
    size = m * n * PARTS
    if count == LANES and LANES > 1 and _group(m, n) == LANES:
        work = local(SCRATCH * LANES)
        load_together(m, n, a, work)
        eliminate_together(1, m, n, n, work)
        store_adjacent(size, size, 1, work, factors)
        for lane in range(LANES):
            notes = work[size * LANES + lane :]
            p = pivots[lane * (m if m < n else n) :]
            for i in range(m if m < n else n):
                p[i] = int(notes[(1 + m + i) * LANES]) + 1
            if notes[0] != 0.0:
                fill_nan(m * n, factors[lane * size :])
                _keep_order(m if m < n else n, p)
    else:
        work = local(ELEMENTS * LANES)
        for i in range(count):
            p = pivots[i * (m if m < n else n) :]
            y = factors[i * size :]
            stride = column_stride(m, n)
            if stride == m:
                _eliminate_one(m, n, m, a[i * size :], y, p)
            else:
                _eliminate_one(m, n, stride, a[i * size :], work, p)
                for j in range(n):
                    copy(m, work[j * stride :], y[j * m :])


def _eliminate_one(
    m: int, n: int, stride: int, a: Array, factors: Array, pivots: Positions
) -> None:
    """Write the factors of one matrix, whose columns are ``stride`` apart."""
    if is_finite(m * n, a) == 0:
        fill_nan(stride * n, factors)
        _keep_order(m if m < n else n, pivots)
        return
    _load_columns(m, n, stride, a, factors)
    if PARTS == 1 and m <= SMALL and n <= SMALL:
        eliminate_small(m, n, stride, factors, pivots)
    elif m > 0 and n > 0:
        getrf(m, n, factors, m, pivots)


def _load_columns(m: int, n: int, stride: int, a: Array, factors: Array) -> None:
    """Store a matrix by columns, which are ``stride`` apart."""
    squares = PARTS == 1 and LANES > 1 and stride % LANES == 0
    down = m // LANES if squares else 0
    right = n // LANES if squares else 0
    for i in range(down):
        for j in range(right):
            square = factors[(j * stride + i) * LANES :]
            load_square(a[(i * n + j) * LANES :], n, square, stride // LANES)
    for j in range(n):
        column = factors[j * stride * PARTS :]
        for i in range(down * LANES if j < right * LANES else 0, m):
            place = (i * n + j) * PARTS
            column[i * PARTS + PARTS - 1] = a[place + PARTS - 1]
            column[i * PARTS] = a[place]


def _keep_order(count: int, pivots: Positions) -> None:
    """Exchange no rows."""
    for i in range(count):
        pivots[i] = i + 1


def _solve_together(inverts: int, by_rows: int, n: int, m: int, a: Array, b: Array) -> int:
    """Solve the systems of a group; return how many are singular.

    If ``inverts``, the right sides are the identity.
    """
    work = local(SCRATCH * LANES)
    right = work[n * n * LANES :]
    load_together(n, n, a, work)
    if inverts == 1:
        load_identities(n, right)
    else:
        load_right_sides(by_rows, n, m, b, right)
    eliminate_together(0, n, n, n + m, work)
    substitute_back(n, m, work, right)
    store_right_sides(by_rows, n, m, right, b)
    failed = 0
    for lane in range(LANES):
        singular = has_zero(n, work[lane:], (n + 1) * LANES)
        finite = right[n * m * LANES + lane] == 0.0
        if singular == 1 or not finite:
            fill_nan(n * m, b[lane * n * m :])
            failed += singular if finite else 0
    return failed


def _substitute(
    transposed: int, n: int, m: int, stride: int, a: Array, pivots: Positions, b: Array
) -> int:
    """Replace the right sides of one system by solutions, or by NaN; return 1 if it is singular.

    The columns of the factors are ``stride`` apart.
    """
    if has_zero(n, a, stride + 1) == 1:
        fill_nan(n * m, b)
        return 1
    if PARTS == 1 and n <= SMALL and m > FEW and LANES > 1:
        for j in range((m + LANES - 1) // LANES):
            left = m - j * LANES
            count = left if left < LANES else LANES
            substitute_columns(count, transposed, n, stride, a, pivots, b[j * LANES * n :])
    elif PARTS == 1 and n <= SMALL and m <= SMALL:
        for j in range(m):
            if transposed == 1:
                substitute_transposed(n, stride, a, pivots, b[j * n :])
            else:
                substitute_column(n, stride, a, pivots, b[j * n :])
    elif n > 0 and m > 0:
        getrs(TRANSPOSED if transposed == 1 else PLAIN, n, m, a, stride, pivots, b, n)
    return 0


@routine(LAPACK, (np.linalg.LinAlgError, "The matrix is too large for LAPACK"))
def store_cofactors(
    n: int, a: Array, wanted: Array, found: Array, work: Array, pivots: Positions
) -> int:
    """Write the cofactors of a[n, n], or zeros if ``wanted`` is zero; see `cofactors`.

    By columns, ``found`` is their transpose.
    """
    if n > LARGEST_INT:
        return 1
    for k in range(n * n * PARTS):
        found[k] = 0.0
    if wanted[0] == 0.0:
        return 0
    stride = column_stride(n, n)
    _eliminate_one(n, n, stride, a, work, pivots)
    _store_adjugate(n, stride, work, found)
    sign = 1.0
    for t in range(n):
        j = n - 1 - t
        column = found[j * n * PARTS :]
        for i in range(j + 1, n):
            add_multiple(n, -1.0, work[(j * stride + i) * PARTS :], found[i * n * PARTS :], column)
    for t in range(n):
        j = n - 1 - t
        if pivots[j] != j + 1:
            sign = -sign
            exchange(n, found[j * n * PARTS :], found[(pivots[j] - 1) * n * PARTS :])
    for k in range(n * n * PARTS):
        found[k] *= sign
    return 0


def _store_adjugate(n: int, stride: int, u: Array, found: Array) -> None:
    """Write the adjugate of an upper triangle over zeros, from those of its leading blocks."""
    product = local(2 * LANES)
    product[PARTS - 1] = 0.0
    product[0] = 1.0
    for k in range(n):
        column = u[k * stride * PARTS :]
        pivot = column[k * PARTS :]
        new = found[k * n * PARTS :]
        for j in range(k):
            add_multiple(j + 1, -1.0, column[j * PARTS :], found[j * n * PARTS :], new)
        for j in range(k):
            multiply_by(j + 1, pivot, found[j * n * PARTS :])
        copy(1, product, new[k * PARTS :])
        multiply_by(1, pivot, product)


@routine("float64", (ValueError, WRONG_PIVOT))
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


def lower_elimination(b: Builder[V], x: V, dtype: str) -> tuple[V, V]:
    """Factors of matrices, stored by columns, and pivots that count from 1."""
    *batch, m, n = b.shape(x)
    count = dim_min(m, n)
    factors, pivots = b.external(
        eliminate,
        dtype,
        (m, n),
        reads=[b.cast(x, dtype)],
        writes=[(dtype, (n, m)), ("int32", (count,))],
        batch=batch,
        work=m * n * count,
    )
    return factors, pivots


def lower_pivots(b: Builder[V], x: V, dtype: str) -> V:
    """Numbers whose product is the determinant."""
    return _lower_factored(b, find_pivots, x, dtype, 1, 0)


def lower_cofactors(b: Builder[V], x: V, wanted: V, dtype: str) -> V:
    """Cofactors of the matrices of which they are wanted, else zeros."""
    *batch, n, _ = b.shape(x)
    (found,) = b.external(
        store_cofactors,
        dtype,
        (n,),
        reads=[b.cast(x, dtype), b.cast(wanted, dtype)],
        writes=[(dtype, (n, n))],
        batch=batch,
        work=n * n,
        scratch=_scratch(n, dtype),
    )
    return found


def lower_inverse(b: Builder[V], x: V, dtype: str) -> V:
    """Inverses of matrices."""
    return _lower_factored(b, invert, x, dtype, 2, 1)


def _lower_factored(
    b: Builder[V], routine: Routine, x: V, dtype: str, ndim: int, matrices: int
) -> V:
    """What a routine computes of the factors of square matrices: vectors or matrices (``ndim``).

    It needs memory for so many ``matrices`` besides that of the factors.
    """
    *batch, n, _ = b.shape(x)
    (found,) = b.external(
        routine,
        dtype,
        (n,),
        reads=[b.cast(x, dtype)],
        writes=[(dtype, (n,) * ndim)],
        batch=batch,
        work=n * n * n,
        scratch=[*_scratch(n, dtype), *[(dtype, n * n)] * matrices],
    )
    return found


def lower_solution(b: Builder[V], a: V, right: V, dtype: str, b_ndim: int) -> V:
    """Solutions of systems with any matrices."""
    *own, n, _ = b.shape(a)
    a, scratch = b.cast(a, dtype), _scratch(n, dtype)
    if b_ndim == 1 or all(d.value == 1 for d in own):
        scratch.append((dtype, as_dim(1)))
        return lower_columns(b, solve_by_elimination, (0,), [a], right, dtype, b_ndim, scratch)
    *outer, _, m = b.shape(right)
    batch = b.broadcast_shape([own, outer])
    (found,) = b.external(
        solve_by_elimination,
        dtype,
        (1, n, m),
        [b.broadcast_to(a, (*batch, n, n))],
        [b.broadcast_to(b.cast(right, dtype), (*batch, n, m))],
        batch=batch,
        work=n * n * m,
        scratch=[*scratch, (dtype, n * m)],
    )
    return found


def _scratch(n: Dim, dtype: str) -> list[tuple[str, Dim]]:
    """Workspaces for the factors of a matrix, and for the pivots of a group of them."""
    small = dim_min(n, SMALL)
    return [(dtype, n * n + MOST_LANES * small), ("int32", n + MOST_LANES * small)]


def lower_substitution(
    b: Builder[V],
    factors: V,
    pivots: V,
    right: V,
    dtype: str,
    b_ndim: int,
    transposed: bool = False,
) -> V:
    """Solutions for what `lower_elimination` returns."""
    reads, flags = [factors, pivots], (int(transposed),)
    return lower_columns(b, substitute_in_factors, flags, reads, right, dtype, b_ndim)


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
    columns = columns_first(b, right) if b_ndim == 2 else b.expand(right, right.ndim - 1)
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
    return columns_first(b, found) if b_ndim == 2 else b.squeeze(found, found.ndim - 2)


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
