"""What the routines for small symmetric eigenproblems share: numbers, and arithmetic on packs.

Householder reflections reduce a matrix to tridiagonal form (G. H. Golub, C. F. Van Loan, "Matrix
Computations", 4th edition, section 8.3.1).  The vector of a reflection is ``v = scale x + more e``,
where ``x`` is a column and ``e`` an axis: ``a v`` and ``v^T a v`` are computed from ``a x`` and
``x^T a x``, which need not wait for the square root and division in ``scale``.

The eigenvalues are found by QL steps with Wilkinson's shift.  A step with the shift ``x`` from the
last row of a block up, where ``d`` is the diagonal and ``e`` is beside it, computes the last
principal minors of ``T - x``, and sums::

    m[k+1] = (d - x) m[k] - e^2 m[k-1]        W[k] = m[k]^2 + e^2 W[k-1]

Squares of cosines are ``m[k]^2 / W[k]``, those of sines ``e^2 W[k-1] / W[k]``; the new diagonal and
squares beside it are quotients of these, too: no rotation waits for the division or square root
of another one.  This is the method of Pal, Walker and Kahan (B. N. Parlett, "The Symmetric
Eigenvalue Problem", section 8.15), whose pivots are ``m[k]^2 / W[k-1]``, without its divisions.
Rounding errors of ``m`` are those of a matrix with slightly different ``d - x`` and ``e``; sums of
squares lose no digits.  Minors are scaled by powers of 2, which rounds nothing.

The functions share arrays of numbers ``t``: from 0 on the diagonal, and from `OFF` on others.
"""

from __future__ import annotations

from phintys.routines import Array, Pack, Packs
from phintys.routines.language import in_numbers, rounded, spread, sqrt

#: the largest matrix for which these functions are faster than LAPACK
SMALL = 32
#: numbers of a matrix; numbers of a section of ``t``, a multiple of the length of packs
ELEMENTS, SECTION = SMALL * SMALL, 48
#: squares of the elements beside the diagonal, their signs, factors of reflections, sums, the order
#: of the eigenvalues, the numbers 0, 1, 2, ..., and the rotations of two steps, of `TURN` numbers
OFF, SIGNS, TAUS, SUMS, ORDER, NUMBERED, ROTATIONS = (k * SECTION for k in range(1, 8))
#: three sections: minors, which become cosines, squares of sines, which become sines, 1 / sums
TURN = 3 * SECTION
STATE = ROTATIONS + 2 * TURN
NUMBERS = STATE + 32
#: from STATE on: NaN if an element is not finite; the largest; how often eigenvalues are multiplied
#: by what; the first and last row of the block in which a step is done, what gives its shift (4)
FLAG, LARGEST, TIMES, FACTOR, LOW, HIGH, SHIFT = (STATE + k for k in range(7))
#: what is negligible in a matrix whose largest element is between 1/8 and 128, its reciprocal, and
#: their squares; the square of what is negligible beside 1; by what a reflection scales its vector
LEAST, MOST, LEAST_SQUARE, MOST_SQUARE, RATIO, SCALE = (STATE + k for k in range(11, 17))
#: a step: the last two minors, the last sum, its reciprocal; the square of the sine; the quotient
#: of the last two sums; what the last diagonal element would become, minus the shift
BEFORE, MINOR, SUM, INVERSE, SINE_SQUARE, QUOTIENT, GAMMA, PARTS_OF_STEP = range(8)
#: the first component of an eigenvector above this fraction of the largest one is positive
FRACTION = 0.375
#: steps of QL for an eigenvalue; two or three are usual
STEPS = 30


def set_limits(t: Packs) -> None:
    """Write what is negligible, which depends on the precision."""
    t[LEAST] = spread(4.0)
    eps = abs(1.0 - 3.0 * (t[LEAST] / 3.0 - 1.0))
    t[RATIO] = 0.25 * eps * eps
    least = 0.00390625 * eps
    t[LEAST] = least
    t[MOST] = 1.0 / least
    t[LEAST_SQUARE] = least * least
    t[MOST_SQUARE] = 1.0 / (least * least)


def scale_numbers(count: int, step: int, s: Array, t: Array) -> None:
    """Scale a matrix by a power of 2; one that is not finite becomes zero.

    Elements, and numbers of ``t``, are ``step`` apart.
    """
    size = t[LARGEST * step]
    up = size < 0.125
    factor = 1024.0 if up else 0.0009765625
    times = 0
    number = 0.0
    if t[FLAG * step] != 0.0:
        size = 1.0
        for k in range(count):
            s[k * step] = 0.0
    while size > 0.0 and (size < 0.125 or size > 128.0):
        size *= factor
        times += 1
        number += 1.0
    if times > 0:
        for k in range(count):
            x = s[k * step]
            for _ in range(times):
                x *= factor
            s[k * step] = x
    t[TIMES * step] = number
    t[FACTOR * step] = 0.0009765625 if up else 1024.0


def dot(start: int, n: int, x: Packs, y: Packs) -> Pack:
    """The sum of products of the elements from ``start`` to ``n``, in four parts."""
    a = spread(0.0)
    b = a
    c = a
    d = a
    rest = (n - start) % 4 if n > start else 0
    for i in range(start, n - rest, 4):
        a += x[i] * y[i]
        b += x[i + 1] * y[i + 1]
        c += x[i + 2] * y[i + 2]
        d += x[i + 3] * y[i + 3]
    for i in range(n - rest, n):
        a += x[i] * y[i]
    return (a + b) + (c + d)


def set_reflection(k: int, first: Pack, rest: Pack, t: Packs) -> None:
    """Write the reflection of a vector on its first axis, and what it becomes.

    ``rest`` is the square of the length of the other components.
    """
    square = first * first + rest
    length = sqrt(square)
    beta = -length if first > 0.0 else length
    reflects = rest > 1e-36
    scale = 1.0 / (first - beta if reflects else 1.0)
    tau = (beta - first) / (beta if reflects else 1.0)
    t[SCALE] = scale if reflects else 0.0
    t[TAUS + k] = tau if reflects else 0.0
    set_off(k, beta if reflects else first, t)


def shift_along(
    tau: Pack, scale: Pack, more: Pack, square: Pack, first: Pack, corner: Pack
) -> Pack:
    """``tau / 2 v^T a v`` for the vector ``v`` of a reflection, which is ``scale x + more e``.

    ``square`` is ``x^T a x``, ``first`` is ``e^T a x``, and ``corner`` is ``e^T a e``, where ``e``
    is the first axis.
    """
    part = rounded(2.0 * scale * first) + more * corner
    return 0.5 * tau * (rounded(more * part) + scale * scale * square)


def set_off(k: int, x: Pack, t: Packs) -> None:
    """Write element ``k`` beside the diagonal."""
    t[OFF + k] = rounded(x * x)
    t[SIGNS + k] = -1.0 if x < 0.0 else 1.0


def kept(square: Pack, above: Pack, below: Pack, t: Packs) -> Pack:
    """The square of an element beside diagonal elements; zero if it is negligible."""
    size = abs(above) + abs(below)
    limit = size * size * t[RATIO]
    limit = limit if limit > t[LEAST_SQUARE] else t[LEAST_SQUARE]
    return square if square > limit else 0.0


def wilkinson(first: Pack, second: Pack, square: Pack) -> Pack:
    """The eigenvalue of the first two rows of a block that is closer to its first element."""
    half = 0.5 * (second - first)
    root = sqrt(half * half + square)
    return first + (half - root if half > 0.0 else half + root)


def begin(pivot: Pack, step: Packs) -> None:
    """Begin a QL step with the last diagonal element minus the shift."""
    step[BEFORE] = spread(1.0)
    step[MINOR] = pivot
    step[GAMMA] = pivot
    step[SUM] = spread(1.0)
    step[INVERSE] = spread(1.0)
    step[SINE_SQUARE] = spread(0.0)


def rotate(element: Pack, square: Pack, shift: Pack, step: Packs) -> None:
    """Continue a QL step with the rotation of a row of two elements and the one below it.

    Products are rounded: it must not matter whether the compiler sees the sums that they are in.
    """
    minor = step[MINOR]
    before = step[SUM]
    total = rounded(minor * minor) + square * before
    inverse = 1.0 / total
    following = (element - shift) * minor - rounded(square * step[BEFORE])
    step[QUOTIENT] = rounded(total * step[INVERSE])
    step[SINE_SQUARE] = rounded(square * rounded(before * inverse))
    step[GAMMA] = rounded(following * rounded(minor * inverse))
    step[BEFORE] = minor
    step[MINOR] = following
    step[SUM] = total
    step[INVERSE] = inverse


def rescale(t: Packs, step: Packs) -> None:
    """Multiply minors by a power of 2 where they come near the limits of numbers."""
    total = step[SUM]
    small = total < t[LEAST_SQUARE]
    large = total > t[MOST_SQUARE]
    factor = t[MOST] if small else 1.0
    factor = t[LEAST] if large else factor
    square = t[MOST_SQUARE] if small else 1.0
    square = t[LEAST_SQUARE] if large else square
    inverse = t[LEAST_SQUARE] if small else 1.0
    inverse = t[MOST_SQUARE] if large else inverse
    step[BEFORE] = step[BEFORE] * factor
    step[MINOR] = step[MINOR] * factor
    step[SUM] = total * square
    step[INVERSE] = step[INVERSE] * inverse


dot_in_numbers = in_numbers(dot)
set_limits_in_numbers = in_numbers(set_limits)
set_reflection_in_numbers = in_numbers(set_reflection)
set_off_in_numbers = in_numbers(set_off)
shift_along_in_numbers = in_numbers(shift_along)
kept_in_numbers = in_numbers(kept)
wilkinson_in_numbers = in_numbers(wilkinson)
begin_in_numbers = in_numbers(begin)
rotate_in_numbers = in_numbers(rotate)
rescale_in_numbers = in_numbers(rescale)
