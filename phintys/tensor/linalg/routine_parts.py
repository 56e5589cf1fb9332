"""What routines on matrices share."""

from __future__ import annotations

from math import nan

from phintys.routines import Array
from phintys.routines.language import PARTS


def is_finite(count: int, a: Array) -> int:
    """1 if all of the first ``count`` elements are finite, else 0."""
    total = 0.0
    for k in range(count * PARTS):
        total += a[k] * 0.0
    return 1 if total == 0.0 else 0


def fill_nan(count: int, a: Array) -> int:
    """Replace the first ``count`` elements by NaN."""
    return fill_nan_real(count * PARTS, a)


def copy(count: int, source: Array, target: Array) -> int:
    """Copy the first ``count`` elements."""
    for k in range(count * PARTS):
        target[k] = source[k]
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
