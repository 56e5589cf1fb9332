"""Elimination in small real matrices, in packs: of a group of matrices, or of rows of one.

The matrices of a group are stored by columns, each in a lane; a pack for the numbers of pivots
follows, a flag, and the numbers of rows.
"""

from __future__ import annotations

from phintys.routines import Array, Pack, Packs, Positions
from phintys.routines.language import LANES, PARTS, in_numbers, local, rounded, spread
from phintys.tensor.linalg.routine_parts import load_adjacent, store_adjacent

#: the largest matrix for which the loops below are faster than LAPACK
SMALL = 24
#: packs for such a matrix, as many right sides, two numbers of each, and the numbers of its rows
SCRATCH = 2 * SMALL * SMALL + 2 + SMALL
#: a row, a flag, and the numbers of rows
ROWS = SMALL + 2
#: at least as many lanes as a pack has
MOST_LANES = 16
#: numbers of a matrix whose columns begin at full packs
ELEMENTS = SMALL * (SMALL + MOST_LANES)
#: rows and columns of one matrix that are not computed in packs
FEW = 4


def column_stride(m: int, n: int) -> int:
    """How far apart columns are in the factors of one matrix: small ones begin at full packs."""
    in_packs = PARTS == 1 and LANES > 1 and m > FEW and m <= SMALL and n <= SMALL
    return (m + LANES - 1) // LANES * LANES if in_packs else m


def eliminate_small(m: int, n: int, stride: int, a: Array, pivots: Positions) -> None:
    """Replace a small matrix by its factors."""
    largest = local(ROWS * LANES)
    numbers = largest[2:]
    _number_in_numbers(stride if stride > LANES else LANES, largest)
    for k in range(m if m < n else n):
        column = a[k * stride :]
        _search_in_numbers(m, k, column, largest)
        other = int(largest[0])
        pivots[k] = other + 1
        _exchange(n, stride, k, other, a)
        if LANES > 1 and m > FEW:
            for t in range((k + 1) // LANES, stride // LANES):
                i = t * LANES
                _clear_rows(n, stride // LANES, k, numbers[k:], numbers[i:], a[k:], a[i:])
        else:
            _divide_in_numbers(m, k, column)
            _clear_in_numbers(m, n, k, a)


def _clear_rows(
    n: int, stride: int, k: int, row: Array, rows: Packs, pivots: Array, s: Packs
) -> None:
    """Divide column ``k`` by the pivot and subtract row ``k``, in the rows of a pack below it.

    ``pivots`` and ``s`` are the matrix from row ``k`` and from the rows of the pack on, and
    ``stride`` is in packs.
    """
    below = rows[0] > spread(row[0])
    pivot = pivots[k * stride * LANES]
    factor = s[k * stride]
    factor = factor / spread(1.0 if pivot == 0.0 else pivot) if below else factor
    s[k * stride] = factor
    for c in range(k + 1, n):
        y = s[c * stride]
        x = spread(pivots[c * stride * LANES])
        s[c * stride] = y - rounded(factor * x) if below else y


def load_together(m: int, n: int, a: Array, work: Packs) -> None:
    """Load a group of matrices, by columns, each into a lane."""
    for i in range(m):
        load_adjacent(n, m * n, m, a[i * n :], work[i:])


def load_right_sides(by_rows: int, n: int, m: int, b: Array, right: Packs) -> None:
    """Load the right sides of a group, which are stored by rows or columns, as columns in lanes."""
    if by_rows == 1 and m > 1:
        for i in range(n):
            load_adjacent(m, n * m, n, b[i * m :], right[i:])
    else:
        load_adjacent(n * m, n * m, 1, b, right)


def store_right_sides(by_rows: int, n: int, m: int, right: Packs, b: Array) -> None:
    """Undo `load_right_sides`."""
    if by_rows == 1 and m > 1:
        for i in range(n):
            store_adjacent(m, n * m, n, right[i:], b[i * m :])
    else:
        store_adjacent(n * m, n * m, 1, right, b)


def load_identities(n: int, right: Packs) -> None:
    """Write the identity into each lane."""
    for k in range(n * n):
        right[k] = spread(0.0)
    for k in range(n):
        right[k * (n + 1)] = spread(1.0)


def eliminate_together(
    keeps: int, m: int, n: int, columns: int, work: Array, pivots: Positions
) -> None:
    """Eliminate in a group of matrices of ``n`` columns, which right sides may follow."""
    steps = m if m < n else n
    largest = work[m * columns * LANES :]
    _check(m * n, work, largest)
    _number(m, largest)
    for k in range(steps):
        _search(m, k, work[k * m * LANES :], largest)
        for lane in range(LANES):
            other = int(largest[lane])
            pivots[lane * steps + k] = other + 1
        if keeps == 1:
            _exchange_in_lanes(m, k, k, work, largest)
        _exchange_and_divide(m, k, work[k * m * LANES :], largest)
        rest = (columns - k - 1) % 4
        for c in range(k + 1, columns - rest, 4):
            _clear_four(m, k, work[k * m * LANES :], work[c * m * LANES :], largest)
        for c in range(columns - rest, columns):
            _clear_one(m, k, work[k * m * LANES :], work[c * m * LANES :], largest)


def _check(n: int, s: Packs, found: Packs) -> None:
    """Write zero into lanes of which all numbers are finite, else NaN, after the first pack."""
    a = spread(0.0)
    b = a
    c = a
    d = a
    for i in range(0, n - 3, 4):
        a += s[i] - s[i]
        b += s[i + 1] - s[i + 1]
        c += s[i + 2] - s[i + 2]
        d += s[i + 3] - s[i + 3]
    for i in range(n - n % 4, n):
        a += s[i] - s[i]
    found[1] = a + b + c + d


def substitute_back(n: int, m: int, s: Packs, right: Array) -> None:
    """Replace right sides by the solutions of systems with upper triangles."""
    rest = m % 4
    for j in range(0, m - rest, 4):
        _substitute_four(n, s, right[j * n * LANES :])
    for j in range(m - rest, m):
        y = right[j * n * LANES :]
        for t in range(n):
            k = n - 1 - t
            _substitute_row(k, s[k * n :], y)


def _substitute_row(k: int, column: Packs, y: Packs) -> None:
    """Compute element ``k`` of a solution, and subtract its part from the elements before it."""
    x = y[k] / column[k]
    y[k] = x
    for i in range(k):
        y[i] -= column[i] * x


def _substitute_four(n: int, s: Packs, a: Packs) -> None:
    """Replace four right sides by solutions."""
    b = a[n:]
    c = a[2 * n :]
    d = a[3 * n :]
    for t in range(n):
        k = n - 1 - t
        column = s[k * n :]
        pivot = column[k]
        x0 = a[k] / pivot
        x1 = b[k] / pivot
        x2 = c[k] / pivot
        x3 = d[k] / pivot
        a[k] = x0
        b[k] = x1
        c[k] = x2
        d[k] = x3
        for i in range(k):
            factor = column[i]
            a[i] -= factor * x0
            b[i] -= factor * x1
            c[i] -= factor * x2
            d[i] -= factor * x3


def _number(m: int, found: Packs) -> None:
    """Write the numbers of rows after the second pack."""
    number = spread(0.0)
    for i in range(m):
        found[2 + i] = number
        number += 1.0


_number_in_numbers = in_numbers(_number)


def _search(m: int, k: int, column: Packs, place: Packs) -> None:
    """Find the row, from ``k`` on, of the largest element of a column."""
    numbers = place[2:]
    best = abs(column[k])
    found = numbers[k]
    for i in range(k + 1, m):
        size = abs(column[i])
        larger = size > best
        best = size if larger else best
        found = numbers[i] if larger else found
    place[0] = found


_search_in_numbers = in_numbers(_search)


def _exchange(n: int, stride: int, k: int, other: int, a: Array) -> None:
    """Exchange two rows."""
    if other != k:
        for c in range(n):
            column = a[c * stride :]
            x = column[k]
            column[k] = column[other]
            column[other] = x


def _exchange_in_lanes(m: int, n: int, k: int, s: Packs, place: Packs) -> None:
    """Exchange row ``k`` of each lane with another one, in the first ``n`` columns."""
    for c in range(n):
        column = s[c * m :]
        x = column[k]
        column[k] = _row(m, k, column, place)
        for i in range(k + 1, m):
            y = column[i]
            here = place[0] == place[2 + i]
            column[i] = x if here else y


def _row(m: int, k: int, column: Packs, place: Packs) -> Pack:
    """The elements of a column in the rows that are exchanged with row ``k``."""
    numbers = place[2:]
    other = place[0]
    found = column[k]
    for i in range(k + 1, m):
        found = column[i] if other == numbers[i] else found
    return found


def _exchange_and_divide(m: int, k: int, column: Packs, place: Packs) -> None:
    """Exchange row ``k`` of a column with another one, and divide those below by it.

    See `_divide`.
    """
    numbers = place[2:]
    other = place[0]
    x = column[k]
    pivot = _row(m, k, column, place)
    column[k] = pivot
    divisor = 1.0 if pivot == 0.0 else pivot
    for i in range(k + 1, m):
        column[i] = (x if other == numbers[i] else column[i]) / divisor


def _clear_one(m: int, k: int, column: Packs, s: Packs, place: Packs) -> None:
    """Exchange row ``k`` of each lane with another one, and subtract it, in one column."""
    numbers = place[2:]
    other = place[0]
    x = s[k]
    y = _row(m, k, s, place)
    s[k] = y
    for i in range(k + 1, m):
        s[i] = (x if other == numbers[i] else s[i]) - rounded(column[i] * y)


def _divide(m: int, k: int, column: Packs) -> None:
    """Store the factors by which row ``k`` is subtracted from those below.

    If the pivot is zero, so are the elements below it.  They are divided by it, not multiplied by
    its reciprocal: then the rows of a matrix of equal numbers are subtracted without a remainder.
    """
    pivot = column[k]
    divisor = 1.0 if pivot == 0.0 else pivot
    for i in range(k + 1, m):
        column[i] = column[i] / divisor


def _clear(m: int, n: int, k: int, s: Packs) -> None:
    """Subtract row ``k`` from those below, in the columns after column ``k``."""
    column = s[k * m :]
    for c in range(k + 1, n):
        other = s[c * m :]
        x = other[k]
        for i in range(k + 1, m):
            other[i] -= rounded(column[i] * x)


def _clear_four(m: int, k: int, column: Packs, s: Packs, place: Packs) -> None:
    """Exchange row ``k`` of each lane with another one, and subtract it, in four columns."""
    numbers = place[2:]
    other = place[0]
    b = s[m:]
    c = s[2 * m :]
    d = s[3 * m :]
    x0 = s[k]
    x1 = b[k]
    x2 = c[k]
    x3 = d[k]
    y0 = x0
    y1 = x1
    y2 = x2
    y3 = x3
    for i in range(k + 1, m):
        here = other == numbers[i]
        y0 = s[i] if here else y0
        y1 = b[i] if here else y1
        y2 = c[i] if here else y2
        y3 = d[i] if here else y3
    s[k] = y0
    b[k] = y1
    c[k] = y2
    d[k] = y3
    for i in range(k + 1, m):
        here = other == numbers[i]
        factor = column[i]
        s[i] = (x0 if here else s[i]) - rounded(factor * y0)
        b[i] = (x1 if here else b[i]) - rounded(factor * y1)
        c[i] = (x2 if here else c[i]) - rounded(factor * y2)
        d[i] = (x3 if here else d[i]) - rounded(factor * y3)


_divide_in_numbers = in_numbers(_divide)
_clear_in_numbers = in_numbers(_clear)


def substitute_columns(
    count: int, transposed: int, n: int, stride: int, a: Array, pivots: Positions, b: Array
) -> None:
    """Replace at most `LANES` right sides by solutions, one in each lane."""
    work = local(SMALL * LANES)
    for lane in range(LANES):
        x = b[(lane if lane < count else 0) * n :]
        for i in range(n):
            work[i * LANES + lane] = x[i]
    if transposed == 1:
        _substitute_transposed_in_lanes(n, stride, a, pivots, work)
    else:
        _substitute_in_lanes(n, stride, a, pivots, work)
    for lane in range(count):
        x = b[lane * n :]
        for i in range(n):
            x[i] = work[i * LANES + lane]


def _substitute_in_lanes(n: int, stride: int, a: Array, pivots: Positions, y: Packs) -> None:
    """Replace a right side in each lane by the solution of one system."""
    for i in range(n):
        other = pivots[i] - 1
        x = y[i]
        y[i] = y[other]
        y[other] = x
    for k in range(n):
        column = a[k * stride :]
        x = y[k]
        for i in range(k + 1, n):
            y[i] -= rounded(spread(column[i]) * x)  # as in groups
    for t in range(n):
        k = n - 1 - t
        column = a[k * stride :]
        x = y[k] / spread(column[k])
        y[k] = x
        for i in range(k):
            y[i] -= spread(column[i]) * x


def _substitute_transposed_in_lanes(
    n: int, stride: int, a: Array, pivots: Positions, y: Packs
) -> None:
    """The same for the transposed matrix."""
    for k in range(n):
        x = y[k] / spread(a[k * stride + k])
        y[k] = x
        for i in range(k + 1, n):
            y[i] -= spread(a[i * stride + k]) * x
    for t in range(n):
        k = n - 1 - t
        x = y[k]
        for i in range(k):
            y[i] -= spread(a[i * stride + k]) * x
    for t in range(n):
        i = n - 1 - t
        other = pivots[i] - 1
        x = y[i]
        y[i] = y[other]
        y[other] = x


substitute_column = in_numbers(_substitute_in_lanes)
substitute_transposed = in_numbers(_substitute_transposed_in_lanes)
