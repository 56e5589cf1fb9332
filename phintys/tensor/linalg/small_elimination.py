"""Elimination in small real matrices, in packs: of a group of matrices, or of rows of one.

The matrices of a group are stored by columns, each in a lane.  Notes follow: a flag, the numbers of
the rows, and of those that are exchanged with each row.
"""

from __future__ import annotations

from phintys.routines import Array, Pack, Packs, Positions, Real
from phintys.routines.language import LANES, PARTS, in_numbers, local, rounded, spread
from phintys.tensor.linalg.routine_parts import add_zeros, copy, load_adjacent, store_adjacent

#: the largest matrix for which the loops below are faster than LAPACK
SMALL = 24
#: packs that follow a group of such matrices, and packs for it, with as many right sides
NOTES = 2 * SMALL + 2
SCRATCH = 2 * SMALL * SMALL + NOTES
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
    numbers = local(SMALL * LANES)
    _number_in_numbers(stride if stride > LANES else LANES, numbers)
    for k in range(m if m < n else n):
        column = a[k * stride :]
        other = int(_search_in_numbers(m, k, column, numbers))
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
    if n < LANES:  # rows are shorter than the squares that are loaded at once
        rows = work[m * n :]
        load_adjacent(m * n, m * n, 1, a, rows)
        for i in range(m):
            for j in range(n):
                work[j * m + i] = rows[i * n + j]
    else:
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


def eliminate_together(keeps: int, m: int, n: int, columns: int, work: Array) -> None:
    """Eliminate in a group of matrices of ``n`` columns, which right sides may follow.

    Rows of factors are exchanged, too, if ``keeps``.
    """
    notes = work[m * columns * LANES :]
    add_zeros(m * n, work, notes)
    numbers = notes[LANES:]
    places = numbers[m * LANES :]
    _number(m, numbers)
    _search_first(m, work, numbers, places)
    steps = m if m < n else n
    waits = 0  # whether the step before is still to be done in the last columns
    for k in range(steps):
        column = work[k * m * LANES :]
        after = columns - k - 1
        first = _columns_before_fours(after)
        s = column[m * LANES :]
        stay = 0
        if keeps == 1 or first < after:
            stay = _is_pack(numbers[k * LANES], places[k * LANES :])
        if waits == 1 and stay == 0:
            _subtract_fours(first, after, m, k - 1, work[(k - 1) * m * LANES :], s)
            waits = 0
        if keeps == 1 and stay == 0:
            _exchange_in_lanes(m, k, k, work, numbers, places)
        _clear_first(first, m, k, column, s, numbers, places)
        if waits == 1:
            _subtract_two_steps(first, after, m, k, work[(k - 1) * m * LANES :], s)
            waits = 0
        elif stay == 1:
            waits = 1 if k + 1 < steps else 0
            stop = 1 + _columns_before_fours(after - 1) if waits == 1 else after
            _subtract_fours(first, stop, m, k, column, s)
        else:
            for c in range(first, after, 4):
                _clear_columns(0, 4, m, k, column, s[c * m * LANES :], numbers, places)


def _columns_before_fours(count: int) -> int:
    """How many columns after that of a pivot are cleared with it: then groups of four follow."""
    return (count + 3) % 4 + 1 if count > 0 else 0


def _subtract_fours(first: int, stop: int, m: int, k: int, column: Packs, s: Array) -> None:
    """Subtract row ``k`` from those below, in columns that are a multiple of four."""
    for c in range(first, stop, 4):
        _subtract_four(m, k, column, s[c * m * LANES :])


def _subtract_two_steps(first: int, stop: int, m: int, k: int, column: Packs, s: Array) -> None:
    """Subtract row ``k - 1`` and then row ``k``; ``column`` is that of the first one.

    Two steps at once store the elements once.
    """
    for c in range(first, stop, 4):
        _subtract_four_twice(m, k, column, column[m:], s[c * m * LANES :])


def _subtract_four_twice(m: int, k: int, before: Packs, column: Packs, s: Packs) -> None:
    """Subtract the products of two steps in four columns."""
    t = s[m:]
    u = s[2 * m :]
    v = s[3 * m :]
    x0 = s[k - 1]
    x1 = t[k - 1]
    x2 = u[k - 1]
    x3 = v[k - 1]
    factor = before[k]
    y0 = s[k] - rounded(factor * x0)
    y1 = t[k] - rounded(factor * x1)
    y2 = u[k] - rounded(factor * x2)
    y3 = v[k] - rounded(factor * x3)
    _store_row(4, k, y0, y1, y2, y3, s, t, u, v)
    for i in range(k + 1, m):
        factor = before[i]
        other = column[i]
        s[i] = s[i] - rounded(factor * x0) - rounded(other * y0)
        t[i] = t[i] - rounded(factor * x1) - rounded(other * y1)
        u[i] = u[i] - rounded(factor * x2) - rounded(other * y2)
        v[i] = v[i] - rounded(factor * x3) - rounded(other * y3)


def _clear_first(
    count: int, m: int, k: int, column: Packs, s: Packs, numbers: Packs, places: Packs
) -> None:
    """Do step ``k`` in its column and in the ``count`` ones that follow, at most four."""
    if count == 4:
        _clear_columns(1, 4, m, k, column, s, numbers, places)
    elif count == 3:
        _clear_columns(1, 3, m, k, column, s, numbers, places)
    elif count == 2:
        _clear_columns(1, 2, m, k, column, s, numbers, places)
    elif count == 1:
        _clear_columns(1, 1, m, k, column, s, numbers, places)
    else:
        _clear_columns(1, 0, m, k, column, column, numbers, places)


def _is_pack(x: Real, a: Array) -> int:
    """1 if all numbers of a pack are ``x``, else 0."""
    found = 1
    for lane in range(LANES):
        found = found if a[lane] == x else 0
    return found


def _subtract_four(m: int, k: int, column: Packs, s: Packs) -> None:
    """Subtract row ``k`` of each lane from those below, in four columns."""
    t = s[m:]
    u = s[2 * m :]
    v = s[3 * m :]
    y0 = s[k]
    y1 = t[k]
    y2 = u[k]
    y3 = v[k]
    for i in range(k + 1, m):
        factor = column[i]
        s[i] -= rounded(factor * y0)
        t[i] -= rounded(factor * y1)
        u[i] -= rounded(factor * y2)
        v[i] -= rounded(factor * y3)


def take_pivots_together(n: int, s: Packs, notes: Packs) -> None:
    """Write pivots, with a negative sign where rows were exchanged, over the notes of a group."""
    flag = notes[0]
    for k in range(n):
        pivot = s[k * (n + 1)]
        here = notes[1 + n + k] == notes[1 + k]
        notes[k] = (pivot if here else -pivot) + flag


def substitute_back(n: int, m: int, s: Packs, right: Array) -> None:
    """Replace right sides by the solutions of systems with upper triangles."""
    rest = m % 4
    odd = n % 2
    for j in range(0, m - rest, 4):
        y = right[j * n * LANES :]
        if odd == 1:
            _divide_row(n - 1, n, s[n * n - 1], y)
        for t in range(n // 2):
            i = n - odd - 2 - 2 * t
            _subtract_solved(i, n, s[i:], y)
            _solve_two_rows(i, n, s[i * (n + 1) :], y)
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


def _divide_row(i: int, n: int, divisor: Pack, a: Packs) -> None:
    """Divide a row of four right sides."""
    for k in range(4):
        a[k * n + i] = a[k * n + i] / divisor


def _subtract_solved(i: int, n: int, s: Packs, a: Packs) -> None:
    """Subtract the later rows of four solutions from rows ``i`` and ``i + 1`` of right sides.

    ``s`` is the matrix from row ``i`` on.  Sums stay in registers.
    """
    b = a[n:]
    c = a[2 * n :]
    d = a[3 * n :]
    a0 = a[i]
    b0 = b[i]
    c0 = c[i]
    d0 = d[i]
    a1 = a[i + 1]
    b1 = b[i + 1]
    c1 = c[i + 1]
    d1 = d[i + 1]
    for m in range(n - 2 - i):
        k = n - 1 - m
        x = s[k * n]
        y = s[k * n + 1]
        a0 -= x * a[k]
        b0 -= x * b[k]
        c0 -= x * c[k]
        d0 -= x * d[k]
        a1 -= y * a[k]
        b1 -= y * b[k]
        c1 -= y * c[k]
        d1 -= y * d[k]
    a[i] = a0
    b[i] = b0
    c[i] = c0
    d[i] = d0
    a[i + 1] = a1
    b[i + 1] = b1
    c[i + 1] = c1
    d[i + 1] = d1


def _solve_two_rows(i: int, n: int, s: Packs, a: Packs) -> None:
    """Complete rows ``i`` and ``i + 1`` of four solutions; ``s`` is the matrix from there on."""
    pivot = s[0]
    factor = s[n]
    below = s[n + 1]
    for k in range(4):
        y = a[k * n + i :]
        x = y[1] / below
        y[1] = x
        y[0] = (y[0] - factor * x) / pivot


def _number(m: int, numbers: Packs) -> None:
    """Write the numbers of rows."""
    number = spread(0.0)
    for i in range(m):
        numbers[i] = number
        number += 1.0


_number_in_numbers = in_numbers(_number)


def _search(m: int, k: int, column: Packs, numbers: Packs) -> Pack:
    """The row, from ``k`` on, of the largest element of a column."""
    best = spread(-1.0)
    found = numbers[k]
    for i in range(k, m):
        size = abs(column[i])
        larger = size > best
        best = size if larger else best
        found = numbers[i] if larger else found
    return found


_search_in_numbers = in_numbers(_search)


def _search_first(m: int, column: Packs, numbers: Packs, places: Packs) -> None:
    places[0] = _search(m, 0, column, numbers)


def _exchange(n: int, stride: int, k: int, other: int, a: Array) -> None:
    """Exchange two rows."""
    if other != k:
        for c in range(n):
            column = a[c * stride :]
            x = column[k]
            column[k] = column[other]
            column[other] = x


def _exchange_in_lanes(m: int, n: int, k: int, s: Packs, numbers: Packs, places: Packs) -> None:
    """Exchange row ``k`` of each lane with another one, in the first ``n`` columns."""
    other = places[k]
    for c in range(n):
        column = s[c * m :]
        x = column[k]
        y = x
        for i in range(k + 1, m):
            z = column[i]
            here = other == numbers[i]
            y = z if here else y
            column[i] = x if here else z
        column[k] = y


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


def _clear_columns(
    first: int, n: int, m: int, k: int, column: Packs, s: Packs, numbers: Packs, places: Packs
) -> None:
    """Exchange row ``k`` of each lane with another one, and subtract it, in ``n`` columns.

    If they are the first ones, also exchange and divide in ``column``, see `_divide`, and find the
    next pivot.  ``first`` and ``n``, at most 4, are constants: what is not stored is not computed.
    """
    t = s[m if n > 1 else 0 :]
    u = s[2 * m if n > 2 else 0 :]
    v = s[3 * m if n > 3 else 0 :]
    other = places[k]
    x = column[k]
    x0 = s[k]
    x1 = t[k]
    x2 = u[k]
    x3 = v[k]
    pivot = x
    y0 = x0
    y1 = x1
    y2 = x2
    y3 = x3
    for i in range(k + 1, m):
        here = other == numbers[i]
        pivot = column[i] if here else pivot
        y0 = s[i] if here else y0
        y1 = t[i] if here else y1
        y2 = u[i] if here else y2
        y3 = v[i] if here else y3
    _store_row(n, k, y0, y1, y2, y3, s, t, u, v)
    if first == 1:
        column[k] = pivot
    divisor = 1.0 if pivot == 0.0 else pivot
    best = spread(-1.0)
    found = numbers[k + 1]
    for i in range(k + 1, m):
        here = other == numbers[i]
        factor = column[i]
        if first == 1:
            factor = (x if here else factor) / divisor
            column[i] = factor
        z = (x0 if here else s[i]) - rounded(factor * y0)
        larger = abs(z) > best
        best = abs(z) if larger else best
        found = numbers[i] if larger else found
        if n > 0:
            s[i] = z
        if n > 1:
            t[i] = (x1 if here else t[i]) - rounded(factor * y1)
        if n > 2:
            u[i] = (x2 if here else u[i]) - rounded(factor * y2)
        if n > 3:
            v[i] = (x3 if here else v[i]) - rounded(factor * y3)
    if first == 1:
        places[k + 1] = found


def _store_row(
    n: int, k: int, y0: Pack, y1: Pack, y2: Pack, y3: Pack, s: Packs, t: Packs, u: Packs, v: Packs
) -> None:
    """Store element ``k`` of the first ``n`` of four columns."""
    if n > 0:
        s[k] = y0
    if n > 1:
        t[k] = y1
    if n > 2:
        u[k] = y2
    if n > 3:
        v[k] = y3


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


def invert_small(n: int, stride: int, a: Array, pivots: Positions, found: Array) -> None:
    """Write the inverse of one matrix, from its factors; columns are computed in lanes."""
    work = local(SMALL * LANES)
    for j in range((n + LANES - 1) // LANES):
        first = j * LANES
        count = n - first if n - first < LANES else LANES
        for k in range(n * LANES):
            work[k] = 0.0
        for lane in range(count):
            work[(first + lane) * LANES + lane] = 1.0
        _substitute_in_lanes(n, stride, a, pivots, work)
        for i in range(n):
            copy(count, work[i * LANES :], found[i * n + first :])


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
