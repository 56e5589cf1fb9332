"""The exponential of a matrix: a routine, and functions on arrays for backends without routines.

See A. H. Al-Mohy, N. J. Higham, "A new scaling and squaring algorithm for the matrix exponential",
2009.  Powers of a matrix may have norms that are much smaller than the powers of its norm.  The
matrix is halved only as often as those norms require: each squaring that follows doubles errors.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np

from phintys.routines import Array, Positions, routine
from phintys.routines.language import PARTS, Real, cos, exp, sin
from phintys.routines.libraries import LARGEST_INT, PLAIN, gemm, getrf, getrs
from phintys.tensor.linalg.routine_parts import copy, fill_nan, is_finite

#: the factors of the powers of a matrix in the approximation of its exponential, times a power of
#: two with which products of finite numbers by them are finite
P0, P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12, P13 = PADE = [
    2.0**-56 * factorial(26 - k) / (factorial(k) * factorial(13 - k)) for k in range(14)
]
#: what the roots of the norms of powers may be, so that the approximation is exact
RADIUS = 5.371920351148152
#: the powers of that for the fourth, sixth, eighth and tenth power of a matrix
RADIUS4, RADIUS6, RADIUS8, RADIUS10 = (RADIUS**k for k in (4, 6, 8, 10))
#: the factor of the first term that is left out, and how large it may be beside the matrix
REST, NEGLIGIBLE = 8.829961602018678e-36, 2.0**-53
#: the largest matrix for which loops multiply faster than BLAS
SMALL = 4
#: the largest norm of the fourth and the sixth power of a matrix whose norms are computed
LARGEST_NORM = 2.0**1000
#: how often a matrix is halved, for a power that is not finite: more often than for any other one
MANY = 2000
#: how often a matrix is halved at once while its powers are larger
STEP = 32
#: the factor that halves so often
SHRINK = 2.0**-STEP


@routine("float64 complex128", (np.linalg.LinAlgError, "The matrix is too large for LAPACK"))
def exponentiate(n: int, a: Array, work: Array, pivots: Positions, order: Positions) -> int:
    """Replace a[n, n] by its exponential: scaling, a Padé approximation of degree 13, squaring.

    Columns may be taken for rows: the exponential of the transpose is the transpose.  The diagonal
    of a triangle, and the zeros below it, are exact; where others overflow, there may be NaN.
    """
    if n > LARGEST_INT:
        return 1
    if is_finite(n * n, a) == 0:
        fill_nan(n * n, a)
        return 0
    if n == 0:
        return 0
    u = work[3 * n * n * PARTS :]
    diagonal = work[5 * n * n * PARTS :]
    _copy_diagonal(n, a, diagonal)
    if _is_diagonal(n, a) == 1:
        _store_exponentials(n, diagonal, a)
        return 0
    is_triangle = _find_order(n, a, pivots, order)
    if is_triangle == 1:  # an elimination exchanges no rows of an upper triangle
        _put_in_order(n, order, a, u)
    halvings = _scale(n, a, work)
    _copy_diagonal(n, a, diagonal)
    _approximate(n, a, work, pivots)
    for k in range(halvings + 1):
        if k > 0:
            _multiply(n, a, a, u)
            copy(n * n, u, a)
        if is_triangle == 1:
            _store_exponentials(n, diagonal, a)
            _multiply_by(n, 2.0, diagonal)
    if is_triangle == 1:
        _put_back(n, order, a, u)
    return 0


def _put_in_order(n: int, order: Positions, a: Array, copied: Array) -> None:
    """Exchange rows, and columns alike, so that they have an order."""
    copy(n * n, a, copied)
    for j in range(n):
        for i in range(n):
            _copy_element(order[j] * n + order[i], j * n + i, copied, a)


def _put_back(n: int, order: Positions, a: Array, copied: Array) -> None:
    """Undo `_put_in_order`."""
    copy(n * n, a, copied)
    for j in range(n):
        for i in range(n):
            _copy_element(j * n + i, order[j] * n + order[i], copied, a)


def _copy_element(source: int, target: int, a: Array, b: Array) -> None:
    """Copy an element of ``a`` to a place in ``b``."""
    b[target * PARTS + PARTS - 1] = a[source * PARTS + PARTS - 1]
    b[target * PARTS] = a[source * PARTS]


def _copy_diagonal(n: int, a: Array, diagonal: Array) -> None:
    """Copy the diagonal of a matrix to a vector."""
    for i in range(n):
        _copy_element(i * (n + 1), i, a, diagonal)


def _has_number(place: int, a: Array) -> int:
    """1 if an element is not zero, else 0."""
    return 1 if a[place * PARTS] != 0.0 or a[place * PARTS + PARTS - 1] != 0.0 else 0


def _is_diagonal(n: int, a: Array) -> int:
    """1 if all elements next to the diagonal of a matrix are zero, else 0."""
    others = 0
    for j in range(n):
        for i in range(n):
            others += 0 if i == j else _has_number(j * n + i, a)
    return 1 if others == 0 else 0


def _find_order(n: int, a: Array, counts: Positions, order: Positions) -> int:
    """Write an order of rows and columns in which a matrix is an upper triangle.

    Return 1, or 0 if there is none.  A row refers to those in whose columns it has numbers.  A row
    gets its place, from the last one to the first, after all rows that it refers to.
    """
    for i in range(n):
        counts[i] = 0
    for j in range(n):
        for i in range(n):
            counts[i] += 0 if i == j else _has_number(j * n + i, a)
    first = n
    for i in range(n):
        if counts[i] == 0:
            first -= 1
            order[first] = i
    place = n - 1
    while place >= first:
        j = order[place]
        for i in range(n):
            if i != j and _has_number(j * n + i, a) == 1:
                counts[i] -= 1
                if counts[i] == 0:
                    first -= 1
                    order[first] = i
        place -= 1
    return 1 if first == 0 else 0


def _store_exponentials(n: int, diagonal: Array, a: Array) -> None:
    """Store the exponentials of numbers on the diagonal of a matrix, and zeros below it."""
    for i in range(n):
        for k in range((i * n + i) * PARTS, (i * n + n) * PARTS):
            a[k] = 0.0
        place = i * (n + 1) * PARTS
        size = exp(diagonal[i * PARTS])
        if PARTS == 1:
            a[place] = size
        else:
            angle = diagonal[i * PARTS + PARTS - 1]
            a[place] = size * cos(angle)
            a[place + PARTS - 1] = 0.0 if angle == 0.0 else size * sin(angle)


def _approximate(n: int, a: Array, work: Array, pivots: Positions) -> None:
    """Replace a matrix by the approximation; ``work`` begins with its even powers."""
    size = n * n * PARTS
    a6 = work[2 * size :]
    u = work[3 * size :]
    v = work[4 * size :]
    _combine(n, P13, P11, P9, 0.0, work, v)
    _multiply(n, a6, v, u)
    _combine(n, P7, P5, P3, P1, work, v)
    for k in range(size):
        u[k] += v[k]
    _multiply(n, a, u, v)  # the odd part
    _combine(n, P12, P10, P8, 0.0, work, u)
    _multiply(n, a6, u, a)
    _combine(n, P6, P4, P2, P0, work, u)
    for k in range(size):
        u[k] = a[k] + u[k] - v[k]
        a[k] = 2.0 * v[k]
    getrf(n, n, u, n, pivots)
    getrs(PLAIN, n, n, u, n, pivots, a, n)
    for i in range(n):
        a[i * (n + 1) * PARTS] += 1.0


def _scale(n: int, a: Array, work: Array) -> int:
    """Halve a matrix until the approximation is exact for it, and store its even powers.

    Return how often it is halved.
    """
    size = n * n * PARTS
    halvings = 0
    _store_powers(n, a, work)
    while _are_large(n, work) == 1:
        halvings += STEP
        _multiply_by(n * n, SHRINK, a)
        _store_powers(n, a, work)
    more = _count_halvings(n, a, work, work[3 * size :], work[4 * size :])
    factor = 1.0
    for _ in range(more):
        factor = factor * 0.5
    square = factor * factor
    _multiply_by(n * n, factor, a)
    _multiply_by(n * n, square, work)
    _multiply_by(n * n, square * square, work[size:])
    _multiply_by(n * n, square * square * square, work[2 * size :])
    return halvings + more


def _are_large(n: int, powers: Array) -> int:
    """1 if even powers of a matrix, or the sums of their rows, are not finite, else 0."""
    size = n * n * PARTS
    fourth = _norm(n, powers[size:], 1.0)
    sixth = _norm(n, powers[2 * size :], 1.0)
    fit = fourth <= LARGEST_NORM and sixth <= LARGEST_NORM
    return 0 if fit and is_finite(3 * n * n, powers) == 1 else 1


def _store_powers(n: int, a: Array, work: Array) -> None:
    """Store the second, the fourth and the sixth power of a matrix."""
    size = n * n * PARTS
    fourth = work[size:]
    _multiply(n, a, a, work)
    _multiply(n, work, work, fourth)
    _multiply(n, fourth, work, work[2 * size :])


def _count_halvings(n: int, a: Array, powers: Array, x: Array, y: Array) -> int:
    """How often to halve a matrix, so that the approximation is exact for it.

    It is if two even powers in succession, of the fourth to the tenth, have norms of at most that
    power of `RADIUS`.  The power of absolute values in the first term that is left out must be
    small, too.
    """
    size = n * n * PARTS
    fourth = _count_one(n, powers[size:], 0.0625, RADIUS4)
    sixth = _count_one(n, powers[2 * size :], 0.015625, RADIUS6)
    count = fourth if fourth > sixth else sixth
    if count > 0:
        _multiply(n, powers[size:], powers[size:], x)
        eighth = _count_one(n, x, 0.00390625, RADIUS8)
        _multiply(n, powers[size:], powers[2 * size :], x)
        tenth = _count_one(n, x, 0.0009765625, RADIUS10)
        other = eighth if eighth > sixth else sixth
        count = other if other < count else count
        other = eighth if eighth > tenth else tenth
        count = other if other < count else count
    factor = 1.0
    for _ in range(count):
        factor = factor * 0.5
    while _rest_is_small(n, factor, a, x, y) == 0:
        factor = factor * 0.5
        count += 1
    return count


def _count_one(n: int, power: Array, factor: Real, limit: Real) -> int:
    """How often to multiply a power of a matrix by a factor, so that its norm is at most a limit.

    `MANY` if it is not finite.
    """
    norm = _norm(n, power, 1.0)
    count = 0 if is_finite(n * n, power) == 1 else MANY
    while norm > limit and count < MANY:
        norm = norm * factor
        count += 1
    return count


def _rest_is_small(n: int, factor: Real, a: Array, x: Array, y: Array) -> int:
    """1 if the norm of the 27th power of absolute values of a multiple of a matrix is small beside
    that of the multiple, else 0."""
    for i in range(n):
        x[i] = 1.0
    for _ in range(27):
        for i in range(n):
            total = 0.0
            for j in range(n):
                element = a[(i * n + j) * PARTS :]
                size = abs(element[0])
                size += 0.0 if PARTS == 1 else abs(element[PARTS - 1])
                total += size * factor * x[j]
            y[i] = total
        for i in range(n):
            x[i] = y[i]
    norm = _norm(n, a, factor)
    is_small = True
    for i in range(n):  # an overflow may have become NaN
        is_small = is_small and REST * x[i] <= NEGLIGIBLE * norm
    return 1 if is_small else 0


def _multiply_by(count: int, factor: Real, a: Array) -> None:
    """Multiply the first ``count`` elements by a number."""
    for k in range(count * PARTS):
        a[k] = a[k] * factor


def _norm(n: int, a: Array, factor: Real) -> Real:
    """The norm of a matrix times a factor."""
    norm = 0.0
    for i in range(n):
        total = 0.0
        for k in range(i * n * PARTS, (i * n + n) * PARTS):
            total += abs(a[k] * factor)
        norm = total if total > norm else norm
    return norm


def _multiply(n: int, x: Array, y: Array, out: Array) -> None:
    """Store the product of two matrices, stored column by column."""
    if n <= SMALL and PARTS == 1:
        for j in range(n):
            for i in range(n):
                total = 0.0
                for k in range(n):
                    total += x[k * n + i] * y[j * n + k]
                out[j * n + i] = total
        return
    gemm(PLAIN, PLAIN, n, n, n, 1.0, x, n, y, n, 0.0, out, n)


def _combine(
    n: int, sixth: Real, fourth: Real, second: Real, constant: Real, powers: Array, out: Array
) -> None:
    """Store a sum of multiples of powers of a matrix, of which the second is the first stored."""
    size = n * n * PARTS
    for k in range(size):
        high = sixth * powers[2 * size + k] + fourth * powers[size + k]
        out[k] = high + second * powers[k]
    for i in range(n):
        out[i * (n + 1) * PARTS] += constant


# ---------------------------------------------------------------- without routines

#: a loop: ``loop(condition, step, x)`` does ``x = step(x)`` while ``condition(x)``
Loop = Callable[[Callable[[Any], Any], Callable[[Any], Any], Any], Any]


def loop(condition: Callable[[Any], Any], step: Callable[[Any], Any], x: Any) -> Any:
    """What becomes of ``x`` in a loop of Python."""
    while condition(x):
        x = step(x)
    return x


def exponential(x: Any, xp: Any = np, loop: Loop = loop) -> Any:
    """The exponential of a finite matrix with double precision, by functions of a module ``xp``
    that is like NumPy."""
    identity = xp.eye(len(x), dtype=x.dtype)
    refers = identity.real + (x != 0)  # whether a row refers to another one
    is_diagonal = xp.all((refers != 0) == (identity != 0))
    for _ in range(len(x).bit_length()):  # also through others
        refers = xp.sign(refers @ refers)
    is_triangle = xp.all(refers * refers.T == identity)
    is_known = is_triangle & ((xp.tri(len(x)) != 0) | is_diagonal)
    order = xp.argsort(xp.where(is_triangle, -xp.sum(refers, axis=1), 0.0), stable=True)
    x = x[order][:, order]
    halvings, x, a2, a4, a6 = _scaled(x, xp, loop)
    odd, even = (
        a6 @ (PADE[k + 12] * a6 + PADE[k + 10] * a4 + PADE[k + 8] * a2)
        + (PADE[k + 6] * a6 + PADE[k + 4] * a4 + PADE[k + 2] * a2 + PADE[k] * identity)
        for k in (1, 0)
    )
    odd = x @ odd
    found = identity + 2.0 * xp.linalg.solve(even - odd, odd)

    def exact(diagonal: Any, y: Any) -> Any:
        return xp.where(is_known, xp.diag(xp.exp(diagonal)), y)

    def square(state: Any) -> Any:
        k, diagonal, y = state
        return k + 1.0, 2.0 * diagonal, exact(2.0 * diagonal, y @ y)

    diagonal = xp.diagonal(x)
    state = 0.0, diagonal, exact(diagonal, found)
    _, _, found = loop(lambda state: state[0] < halvings, square, state)
    back = xp.argsort(order)
    return found[back][:, back]


def _scaled(x: Any, xp: Any, loop: Loop) -> tuple[Any, ...]:
    """How often to halve a matrix (see `_scale`); the halved matrix and its even powers."""

    def norm(x: Any) -> Any:
        return xp.sum(xp.abs(x), axis=0).max()

    def powers(x: Any) -> tuple[Any, ...]:
        a2 = x @ x
        a4 = a2 @ a2
        return x, a2, a4, a4 @ a2

    def are_large(state: Any) -> Any:
        _, (_, a2, a4, a6) = state
        fit = (norm(a4) <= LARGEST_NORM) & (norm(a6) <= LARGEST_NORM)
        return ~(fit & xp.isfinite(norm(a2)))

    def shrink(state: Any) -> Any:
        count, (x, *_) = state
        return count + STEP, powers(x * SHRINK)

    count, (x, a2, a4, a6) = loop(are_large, shrink, (0.0, powers(x)))
    fourth, sixth, eighth, tenth = (
        xp.log2(xp.nan_to_num(norm(p), nan=np.inf, posinf=np.inf)) / k
        for k, p in zip((4, 6, 8, 10), (a4, a6, a4 @ a4, a4 @ a6))
    )
    both = xp.maximum(sixth, xp.minimum(fourth, eighth))
    root = xp.minimum(both, xp.maximum(eighth, tenth)) - np.log2(RADIUS)
    more = xp.maximum(xp.ceil(root), 0.0)
    size = xp.abs(x * 2.0**-more)

    def multiply(state: Any) -> Any:
        k, v, total = state
        v = size @ v
        largest = v.max()
        return k + 1.0, v / xp.where(largest > 0, largest, 1.0), total + xp.log2(largest)

    state = 0.0, xp.ones(len(x)), np.log2(REST / NEGLIGIBLE)
    _, _, rest = loop(lambda state: state[0] < 27.0, multiply, state)
    rest = rest - xp.log2(norm(size))
    more = more + xp.where(rest > 0.0, xp.maximum(xp.ceil(rest / 26.0), 0.0), 0.0)
    factor = 2.0**-more
    return count + more, x * factor, a2 * factor**2, a4 * factor**4, a6 * factor**6
