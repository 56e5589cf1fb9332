"""What routines on matrices share."""

from __future__ import annotations

from math import nan

from phintys.routines import Array, Packs, Real
from phintys.routines.language import (
    LANES,
    PARTS,
    across,
    load_square,
    local,
    scatter,
    spread,
    store_square,
)

#: rows and columns of a block that is transposed at once
BLOCK = 8


def is_finite(count: int, a: Array) -> int:
    """1 if all of the first ``count`` elements are finite, else 0."""
    n = count * PARTS
    sums = local(1 * LANES)
    add_zeros(n // LANES, a, sums)
    total = 0.0
    for lane in range(LANES):
        total += sums[lane]
    for k in range(n - n % LANES, n):
        total += a[k] * 0.0
    return 1 if total == 0.0 else 0


def add_zeros(n: int, s: Packs, total: Packs) -> None:
    """Write zero into lanes of which the numbers in ``n`` packs are finite, else NaN."""
    a = spread(0.0)
    b = a  # sums do not wait for each other
    c = a
    d = a
    for i in range(0, n - 3, 4):
        a += s[i] * 0.0
        b += s[i + 1] * 0.0
        c += s[i + 2] * 0.0
        d += s[i + 3] * 0.0
    for i in range(n - n % 4, n):
        a += s[i] * 0.0
    total[0] = a + b + c + d


def triangle_is_finite(lower: int, n: int, a: Array) -> int:
    """1 if one triangle of a[n, n], stored column by column, is finite, else 0."""
    found = 1
    for j in range(n):
        start = j * n + j if lower == 1 else j * n
        count = n - j if lower == 1 else j + 1
        found *= is_finite(count, a[start * PARTS :])
    return found


def has_zero(count: int, a: Array, step: int) -> int:
    """1 if one of ``count`` elements, each ``step`` after the one before, is zero, else 0."""
    found = 0
    for i in range(count):
        place = i * step * PARTS
        zero = a[place] == 0.0 and a[place + PARTS - 1] == 0.0
        found = 1 if zero else found
    return found


def fill_nan(count: int, a: Array) -> int:
    """Replace the first ``count`` elements by NaN."""
    return fill_nan_real(count * PARTS, a)


def copy(count: int, source: Array, target: Array) -> int:
    """Copy the first ``count`` elements."""
    n = count * PARTS
    _copy_packs(n // LANES, source, target)
    for k in range(n - n % LANES, n):
        target[k] = source[k]
    return 0


def _copy_packs(n: int, source: Packs, target: Packs) -> None:
    for k in range(n):
        target[k] = source[k]


def add_multiple(count: int, sign: Real, factor: Array, x: Array, y: Array) -> None:
    """Add to ``y`` the product of ``x`` and the element ``factor``, with a sign."""
    re = sign * factor[0]
    im = 0.0 if PARTS == 1 else sign * factor[PARTS - 1]
    for k in range(count):
        u = x[k * PARTS]
        v = 0.0 if PARTS == 1 else x[k * PARTS + PARTS - 1]
        s = y[k * PARTS]
        t = y[k * PARTS + PARTS - 1]
        y[k * PARTS + PARTS - 1] = t + (re * v + im * u)
        y[k * PARTS] = s + (re * u - im * v)


def multiply_by(count: int, factor: Array, x: Array) -> None:
    """Multiply ``x`` by the element ``factor``."""
    re = factor[0]
    im = 0.0 if PARTS == 1 else factor[PARTS - 1]
    for k in range(count):
        u = x[k * PARTS]
        v = 0.0 if PARTS == 1 else x[k * PARTS + PARTS - 1]
        x[k * PARTS + PARTS - 1] = re * v + im * u
        x[k * PARTS] = re * u - im * v


def exchange(count: int, x: Array, y: Array) -> None:
    """Exchange the first ``count`` elements of two arrays."""
    for k in range(count * PARTS):
        u = x[k]
        x[k] = y[k]
        y[k] = u


def transpose(rows: int, columns: int, source: Array, target: Array) -> int:
    """Write the transpose of a matrix, in blocks of `BLOCK` rows and columns."""
    for top in range(0, rows, BLOCK):
        bottom = rows if rows < top + BLOCK else top + BLOCK
        for left in range(0, columns, BLOCK):
            right = columns if columns < left + BLOCK else left + BLOCK
            for i in range(top, bottom):
                for j in range(left, right):
                    x = source[(i * columns + j) * PARTS :]
                    y = target[(j * rows + i) * PARTS :]
                    y[PARTS - 1] = x[PARTS - 1]
                    y[0] = x[0]
    return 0


def fill_nan_real(count: int, a: Array) -> int:
    """Replace the first ``count`` numbers, parts of elements, by NaN."""
    for k in range(count):
        a[k] = nan
    return 0


def store_identity(m: int, n: int, a: Array) -> int:
    """Store the first columns of the identity, column by column."""
    for k in range(m * n * PARTS):
        a[k] = 0.0
    for j in range(n if n < m else m):
        a[(j * m + j) * PARTS] = 1.0
    return 0


def load_adjacent(n: int, step: int, along: int, a: Array, s: Packs) -> None:
    """Load ``n`` adjacent elements of each matrix of a group into packs that are ``along`` apart.

    The matrices are ``step`` apart.
    """
    for k in range(n // LANES):
        load_square(a[k * LANES :], step, s[k * LANES * along :], along)
    for k in range(n - n % LANES, n):
        s[k * along] = across(a[k:], step)


def store_adjacent(n: int, step: int, along: int, s: Packs, a: Array) -> None:
    """Undo `load_adjacent`."""
    for k in range(n // LANES):
        store_square(s[k * LANES * along :], along, a[k * LANES :], step)
    for k in range(n - n % LANES, n):
        scatter(s[k * along], a[k:], step)
