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

#: the factors of the powers of a matrix in the approximation of its exponential
PADE = [factorial(26 - k) / (factorial(k) * factorial(13 - k)) for k in range(14)]
#: what the roots of the norms of powers may be, so that the approximation is exact
RADIUS = 5.371920351148152
#: the factor of the first term that is left out, and how large it may be beside the matrix
REST, NEGLIGIBLE = 8.829961602018678e-36, 2.0**-53
#: the largest matrix for which loops multiply faster than BLAS
SMALL = 4
#: the tenth power of a matrix with this norm is finite
LARGEST_NORM = 2.0**100
#: numbers so far below the largest double that the sum of a row of them is finite
TINY = 2.0**-32


@routine("float64 complex128", (np.linalg.LinAlgError, "The matrix is too large for LAPACK"))
def exponentiate(n: int, a: Array, work: Array, pivots: Positions, order: Positions) -> int:
    """Replace a[n, n] by its exponential: scaling, a Padé approximation of degree 13, squaring.

    Columns may be taken for rows: the exponential of the transpose is the transpose.
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
    is_triangle = _find_order(n, a, pivots, order)
    if is_triangle == 1:  # an elimination exchanges no rows of an upper triangle
        copy(n * n, a, u)
        for k in range(n * n):
            _copy_element(order[k // n] * n + order[k % n], k, u, a)
    halvings = _scale(n, a, work)
    for i in range(n):
        _copy_element(i * (n + 1), i, a, diagonal)
    _approximate(n, a, work, pivots)
    factor = 1.0
    for k in range(halvings + 1):
        if k > 0:
            _multiply(n, a, a, u)
            copy(n * n, u, a)
        if is_triangle == 1:
            _store_exponentials(n, factor, diagonal, a)
        factor = factor * 2.0
    if is_triangle == 1:
        copy(n * n, a, u)
        for k in range(n * n):
            _copy_element(k, order[k // n] * n + order[k % n], u, a)
    return 0


def _copy_element(source: int, target: int, a: Array, b: Array) -> None:
    """Copy an element of ``a`` to a place in ``b``."""
    b[target * PARTS + PARTS - 1] = a[source * PARTS + PARTS - 1]
    b[target * PARTS] = a[source * PARTS]


def _find_order(n: int, a: Array, depths: Positions, order: Positions) -> int:
    """Write an order of rows and columns in which a matrix is an upper triangle.

    Return 1, or 0 if there is none.  A row refers to those in whose columns it has numbers; its
    depth is the length of the longest chain of rows that begins with it.
    """
    for i in range(n):
        depths[i] = 0
    deepest = 0
    changes = 1
    while changes > 0 and deepest < n:
        changes = 0
        for t in range(n):
            i = n - 1 - t
            found = depths[i]
            for j in range(n):
                x = a[(j * n + i) * PARTS :]
                refers = i != j and (x[0] != 0.0 or x[PARTS - 1] != 0.0)
                found = depths[j] + 1 if refers and depths[j] >= found else found
            changes += found - depths[i]
            depths[i] = found
            deepest = found if found > deepest else deepest
    if deepest >= n:  # a chain that returns to a row
        return 0
    place = 0
    for t in range(n):
        for i in range(n):
            if depths[i] == n - 1 - t:
                order[place] = i
                place += 1
    return 1


def _store_exponentials(n: int, factor: Real, diagonal: Array, a: Array) -> None:
    """Store the exponentials of multiples of numbers on a diagonal."""
    for i in range(n):
        place = i * (n + 1) * PARTS
        size = exp(factor * diagonal[i * PARTS])
        if PARTS == 1:
            a[place] = size
        else:
            angle = factor * diagonal[i * PARTS + PARTS - 1]
            a[place] = size * cos(angle)
            a[place + PARTS - 1] = 0.0 if angle == 0.0 else size * sin(angle)


def _approximate(n: int, a: Array, work: Array, pivots: Positions) -> None:
    """Replace a matrix by the approximation; ``work`` begins with its even powers."""
    size = n * n * PARTS
    a6 = work[2 * size :]
    u = work[3 * size :]
    v = work[4 * size :]
    _combine(n, 1.0, 16380.0, 40840800.0, 0.0, work, v)
    _multiply(n, a6, v, u)
    _combine(n, 33522128640.0, 10559470521600.0, 1187353796428800.0, 32382376266240000.0, work, v)
    for k in range(size):
        u[k] += v[k]
    _multiply(n, a, u, v)  # the odd part
    _combine(n, 182.0, 960960.0, 1323241920.0, 0.0, work, u)
    _multiply(n, a6, u, a)
    _combine(n, 670442572800.0, 129060195264000.0, 7771770303897600.0, 64764752532480000.0, work, u)
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
    halvings = _reduce(n, a)
    _store_powers(n, a, work)
    more = _count_halvings(-halvings, n, a, work, work[3 * size :], work[4 * size :])
    factor = 1.0
    for _ in range(more):
        factor = factor * 0.5
    for _ in range(-more):
        factor = factor * 2.0
    _multiply_by(n, factor, a)
    if more < 0:  # not by factors, because powers of small elements may have become zero
        _store_powers(n, a, work)
    else:
        square = factor * factor
        _multiply_by(n, square, work)
        _multiply_by(n, square * square, work[size:])
        _multiply_by(n, square * square * square, work[2 * size :])
    return halvings + more


def _reduce(n: int, a: Array) -> int:
    """Halve a matrix until its tenth power cannot overflow; return how often."""
    norm = _norm(n, a, TINY)
    halvings = 0
    factor = 1.0
    while norm > TINY * LARGEST_NORM:
        norm = norm * 0.5
        factor = factor * 0.5
        halvings += 1
    _multiply_by(n, factor, a)
    return halvings


def _store_powers(n: int, a: Array, work: Array) -> None:
    """Store the second, the fourth and the sixth power of a matrix."""
    size = n * n * PARTS
    fourth = work[size:]
    _multiply(n, a, a, work)
    _multiply(n, work, work, fourth)
    _multiply(n, fourth, work, work[2 * size :])


def _count_halvings(least: int, n: int, a: Array, powers: Array, x: Array, y: Array) -> int:
    """How often to halve a matrix, so that the approximation is exact for it.

    It is if two even powers in succession, of the fourth to the tenth, have norms of at most that
    power of 5.37.  The power of absolute values in the first term that is left out must be small,
    too.  A negative number, not below ``least``: how often to double the matrix.
    """
    size = n * n * PARTS
    fourth = _count_one(least, 0.0625, 832.7569, _norm(n, powers[size:], 1.0))
    sixth = _count_one(least, 0.015625, 24031.306, _norm(n, powers[2 * size :], 1.0))
    count = fourth if fourth > sixth else sixth
    if count > least:
        _multiply(n, powers[size:], powers[size:], x)
        eighth = _count_one(least, 0.00390625, 693484.1, _norm(n, x, 1.0))
        _multiply(n, powers[size:], powers[2 * size :], x)
        tenth = _count_one(least, 0.0009765625, 20012237.0, _norm(n, x, 1.0))
        other = eighth if eighth > sixth else sixth
        count = other if other < count else count
        other = eighth if eighth > tenth else tenth
        count = other if other < count else count
    factor = 1.0
    for _ in range(count):
        factor = factor * 0.5
    for _ in range(-count):
        factor = factor * 2.0
    while _rest_is_small(n, factor, a, x, y) == 0:
        factor = factor * 0.5
        count += 1
    return count


def _count_one(least: int, factor: Real, limit: Real, norm: Real) -> int:
    """How often to multiply a norm by a factor, so that it is at most the limit."""
    count = 0
    while norm > limit:
        norm = norm * factor
        count += 1
    while count > least and norm <= limit * factor:
        norm = norm / factor
        count -= 1
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


def _multiply_by(n: int, factor: Real, a: Array) -> None:
    for k in range(n * n * PARTS):
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

#: a function of the values of a loop: ``repeat(count, step, x)`` does ``x = step(k, x)`` for k
#: below the count
Repeat = Callable[[Any, Callable[[Any, Any], Any], Any], Any]


def repeat(count: int, step: Callable[[int, Any], Any], x: Any) -> Any:
    """What becomes of ``x`` in a loop of Python."""
    for k in range(int(count)):
        x = step(k, x)
    return x


def exponential(x: Any, xp: Any = np, repeat: Repeat = repeat) -> Any:
    """The exponential of a finite matrix with double precision, by functions of a module ``xp``
    that is like NumPy."""
    identity = xp.eye(len(x), dtype=x.dtype)
    refers = identity.real + (x != 0)  # whether a row refers to another one
    for _ in range(len(x).bit_length()):  # also through others
        refers = xp.sign(refers @ refers)
    is_triangle = xp.all(refers * refers.T == identity)
    order = xp.argsort(xp.where(is_triangle, -xp.sum(refers, axis=1), 0.0), stable=True)
    x = x[order][:, order]
    halvings = _halvings(x, xp, repeat)
    x = x * 2.0**-halvings
    a2 = x @ x
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd, even = (
        a6 @ (PADE[k + 12] * a6 + PADE[k + 10] * a4 + PADE[k + 8] * a2)
        + (PADE[k + 6] * a6 + PADE[k + 4] * a4 + PADE[k + 2] * a2 + PADE[k] * identity)
        for k in (1, 0)
    )
    odd = x @ odd
    found = identity + 2.0 * xp.linalg.solve(even - odd, odd)

    def exact(k: Any, y: Any) -> Any:
        diagonal = xp.diag(xp.exp(xp.diagonal(x) * 2.0**k))
        return xp.where(is_triangle & (identity != 0), diagonal, y)

    found = repeat(halvings, lambda k, y: exact(k + 1.0, y @ y), exact(0.0, found))
    back = xp.argsort(order)
    return found[back][:, back]


def _halvings(x: Any, xp: Any, repeat: Repeat) -> Any:
    """How often to halve a matrix (see `_count_halvings`)."""
    size = xp.sum(xp.abs(x) * TINY, axis=0).max()
    least = xp.maximum(xp.ceil(xp.log2(size / (TINY * LARGEST_NORM))), 0.0)
    x = x * 2.0**-least
    square = x @ x
    powers = [square @ square]
    for _ in range(3):
        powers.append(powers[-1] @ square)
    fourth, sixth, eighth, tenth = (
        xp.log2(xp.sum(xp.abs(p), axis=0).max()) / k for k, p in zip((4, 6, 8, 10), powers)
    )
    both = xp.maximum(sixth, xp.minimum(fourth, eighth))
    root = xp.minimum(both, xp.maximum(eighth, tenth)) - np.log2(RADIUS)
    count = xp.maximum(xp.ceil(root), -least)
    x = xp.abs(x) * 2.0**-count

    def multiply(_: Any, state: Any) -> Any:
        v, total = state
        v = x @ v
        size = v.max()
        return v / xp.where(size > 0, size, 1.0), total + xp.log2(size)

    _, rest = repeat(27, multiply, (xp.ones(len(x)), np.log2(REST / NEGLIGIBLE)))
    rest = rest - xp.log2(xp.sum(x, axis=0).max())
    more = xp.maximum(xp.ceil(rest / 26.0), 0.0)
    return least + count + xp.where(rest > 0.0, more, 0.0)
