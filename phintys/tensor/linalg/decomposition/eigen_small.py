"""Eigenvalues and eigenvectors of small symmetric matrices: routines on packs, without LAPACK.

Householder reflections reduce a matrix to tridiagonal form, whose eigenvalues are found by implicit
QL steps with Wilkinson's shift (G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th edition,
sections 8.3.1 to 8.3.3).  Each lane has a matrix of its own.  A step in a lane that has nothing
left to do changes no number of it, so results do not depend on the matrices in other lanes.

The functions share two arrays of packs: ``s``, matrices by columns, and ``t``: their diagonals, and
from ``OFF``, ``TAUS``, ``SUMS``, ``ORDER`` and ``STATE`` on other numbers.
"""

from __future__ import annotations

from math import nan

from phintys.routines import Array, Pack, Packs
from phintys.routines.language import LANES, in_numbers, local, rounded, spread, sqrt

#: the largest matrix for which these functions are faster than LAPACK
SMALL = 32
#: the numbers of a matrix, and other numbers
ELEMENTS, NUMBERS = SMALL * SMALL, 5 * (SMALL + 2) + 16
#: elements below the diagonal, factors of reflections, sums, the order of the eigenvalues, and more
OFF, TAUS, SUMS, ORDER, STATE = (k * (SMALL + 2) for k in range(1, 6))
#: from STATE on: NaN if an element is not finite; the largest; how often eigenvalues are multiplied
#: by what; the first and last row of the block in which a step is done, and what gives its shift
FLAG, LARGEST, TIMES, FACTOR, LOW, HIGH, SHIFT = (STATE + k for k in range(7))
#: a row that does not exist
NONE = 64.0
#: what is negligible in a matrix whose largest element is between 1/8 and 128
TINY = 1e-18
#: the first component of an eigenvector above this fraction of the largest one is positive
FRACTION = 0.375
#: steps of QL for an eigenvalue; fewer than two are usual
STEPS = 30


def decompose_small(
    count: int, vectors: int, lower: int, n: int, a: Array, w: Array, v: Array
) -> None:
    """Write the eigenvalues of matrices, and eigenvectors as columns if ``vectors``."""
    for group in range((count + LANES - 1) // LANES):
        first = group * LANES
        left = count - first
        x = a[first * n * n :]
        y = v[first * n * n * vectors :]
        if left == 1:
            _decompose_one(vectors, lower, n, x, w[first * n :], y)
        else:
            left = left if left < LANES else LANES
            _decompose_together(left, vectors, lower, n, x, w[first * n :], y)


def _decompose_one(vectors: int, lower: int, n: int, a: Array, w: Array, v: Array) -> None:
    s = local(ELEMENTS * LANES)
    t = local(NUMBERS * LANES)
    _load(1, 1, lower, n, a, s)
    _decompose_in_numbers(1, vectors, n, s, t, s, t)
    _store(1, vectors, n, s, t, w, v)


def _decompose_together(
    count: int, vectors: int, lower: int, n: int, a: Array, w: Array, v: Array
) -> None:
    """Decompose at most `LANES` matrices."""
    s = local(ELEMENTS * LANES)
    t = local(NUMBERS * LANES)
    _load(count, LANES, lower, n, a, s)
    _decompose(LANES, vectors, n, s, t, s, t)
    for k in range(count):
        _store(LANES, vectors, n, s[k:], t[k:], w[k * n :], v[k * n * n :])


def _load(count: int, lanes: int, lower: int, n: int, a: Array, s: Array) -> None:
    """Load lower triangles, each into a lane; lanes without a matrix get the first one."""
    down = n if lower == 1 else 1
    right = 1 if lower == 1 else n
    for lane in range(lanes):
        x = a[(lane if lane < count else 0) * n * n :]
        for j in range(n):
            for i in range(j, n):
                s[(j * n + i) * lanes + lane] = x[i * down + j * right]


def _store(lanes: int, vectors: int, n: int, s: Array, t: Array, w: Array, v: Array) -> None:
    """Store the results of the first lane in order."""
    times = int(t[TIMES * lanes])
    for j in range(n):
        x = t[j * lanes] + t[FLAG * lanes]
        for _ in range(times):
            x *= t[FACTOR * lanes]
        w[j] = x
    if vectors == 1:
        for j in range(n):
            column = s[int(t[(ORDER + j) * lanes]) * n * lanes :]
            for i in range(n):
                v[i * n + j] = column[i * lanes] + t[FLAG * lanes]


# -------------------------------------------------------------- what is done in packs or numbers


def _decompose(
    lanes: int, vectors: int, n: int, s: Packs, t: Packs, elements: Array, numbers: Array
) -> None:
    """Replace matrices by their eigenvectors; write the eigenvalues and their order.

    ``elements`` and ``numbers`` are ``s`` and ``t``.
    """
    _examine(n, s, t)
    for lane in range(lanes):
        _scale(lanes, n, elements[lane:], numbers[lane:])
    _reduce(n, s, t)
    if vectors == 1:
        _accumulate(n, s, t)
    _iterate(lanes, vectors, n, s, t, numbers)
    _sort(n, t)
    if vectors == 1:
        set_signs(n, s)


def _examine(n: int, s: Packs, t: Packs) -> None:
    """Write zero if a lower triangle is finite, else NaN, and its largest element."""
    flag = spread(0.0)
    largest = flag
    for j in range(n):
        for i in range(j, n):
            x = s[j * n + i]
            size = abs(x)
            flag += x - x
            largest = size if size > largest else largest
    t[FLAG] = flag
    t[LARGEST] = largest


def _scale(lanes: int, n: int, s: Array, t: Array) -> None:
    """Scale the matrix in one lane by a power of 2; one that is not finite becomes zero."""
    size = t[LARGEST * lanes]
    up = size < 0.125
    factor = 1024.0 if up else 0.0009765625
    times = 0
    count = 0.0
    if t[FLAG * lanes] != 0.0:
        size = 1.0
        for k in range(n * n):
            s[k * lanes] = 0.0
    while size > 0.0 and (size < 0.125 or size > 128.0):
        size *= factor
        times += 1
        count += 1.0
    if times > 0:
        for j in range(n):
            for i in range(j, n):
                x = s[(j * n + i) * lanes]
                for _ in range(times):
                    x *= factor
                s[(j * n + i) * lanes] = x
    t[TIMES * lanes] = count
    t[FACTOR * lanes] = 0.0009765625 if up else 1024.0


def _reduce(n: int, s: Packs, t: Packs) -> None:
    """Reduce lower triangles to tridiagonal form; keep the reflections below it."""
    for k in range(n - 2):
        v = s[k * n :]
        rest = spread(0.0)
        for i in range(k + 2, n):
            rest += v[i] * v[i]
        first = v[k + 1]
        length = sqrt(first * first + rest)
        beta = -length if first > 0.0 else length
        reflects = rest > 1e-36
        scale = 1.0 / (first - beta if reflects else 1.0)
        scale = scale if reflects else 0.0
        tau = (beta - first) / (beta if reflects else 1.0)
        tau = tau if reflects else 0.0
        t[k] = v[k]
        t[OFF + k] = beta if reflects else first
        t[TAUS + k] = tau
        v[k + 1] = spread(1.0)
        for i in range(k + 2, n):
            v[i] = v[i] * scale
        _reflect_both_sides(k + 1, n, tau, v, s, t[SUMS:])
    for k in range(n - 2 if n > 2 else 0, n):
        t[k] = s[k * n + k]
        t[OFF + k] = spread(0.0)
    if n > 1:
        t[OFF + n - 2] = s[n * n - n - 1]


def _reflect_both_sides(start: int, n: int, tau: Pack, v: Packs, s: Packs, sums: Packs) -> None:
    """Replace the rest ``a`` of each matrix by ``h a h`` with ``h = 1 - tau v v^T``."""
    for i in range(start, n):
        sums[i] = spread(0.0)
    for j in range(start, n):
        column = s[j * n :]
        x = v[j]
        total = sums[j] + column[j] * x
        for i in range(j + 1, n):
            y = column[i]
            total += y * v[i]
            sums[i] += y * x
        sums[j] = total
    along = spread(0.0)
    for i in range(start, n):
        along += sums[i] * v[i]
    along = 0.5 * tau * along
    for i in range(start, n):
        sums[i] = tau * (sums[i] - along * v[i])
    for j in range(start, n):
        column = s[j * n :]
        x = v[j]
        y = sums[j]
        for i in range(j, n):
            column[i] = column[i] - v[i] * y - sums[i] * x


def _accumulate(n: int, s: Packs, t: Packs) -> None:
    """Replace the reflections by their product."""
    for m in range(n):
        k = n - 1 - m
        own = s[k * n :]
        if k < n - 2:  # the reflection is in the column before
            _reflect(k + 1, n, t[TAUS + k], own, s)
        for i in range(k, n):
            own[i] = spread(0.0)
            s[i * n + k] = spread(0.0)
        own[k] = spread(1.0)


def _reflect(start: int, n: int, tau: Pack, v: Packs, s: Packs) -> None:
    """Multiply the rest of each matrix by ``1 - tau v v^T``."""
    for j in range(start, n):
        column = s[j * n :]
        total = spread(0.0)
        for i in range(start, n):
            total += column[i] * v[i]
        total = total * tau
        for i in range(start, n):
            column[i] -= total * v[i]


def _iterate(lanes: int, vectors: int, n: int, s: Packs, t: Packs, numbers: Array) -> None:
    """Make tridiagonal matrices diagonal; rows of ``t`` that are left are flagged."""
    first = 0
    left = STEPS * n
    while first < n:
        _find_block(n, t)
        first = n
        last = 0
        top = 0.0
        for lane in range(lanes):
            low = int(numbers[LOW * lanes + lane])
            high = int(numbers[HIGH * lanes + lane])
            if low < n:
                first = low if low < first else first
                top = numbers[HIGH * lanes + lane] if high > last else top
                last = high if high > last else last
                start = numbers[low * lanes + lane :]
                shift = numbers[SHIFT * lanes + lane :]
                shift[0] = start[0]
                shift[lanes] = start[lanes]
                shift[2 * lanes] = start[OFF * lanes]
                shift[3 * lanes] = numbers[high * lanes + lane]
        left -= 1
        if left < 0 and first < n:
            _flag_rest(t)
            first = n
        if first < n:
            _step(vectors, n, first, last, spread(top), s, t)


def _flag_rest(t: Packs) -> None:
    """Flag matrices that are not diagonal."""
    t[FLAG] = t[FLAG] if t[LOW] == NONE else nan


def _find_block(n: int, t: Packs) -> None:
    """Replace negligible numbers beside diagonals by zero; write where the first block is."""
    e = t[OFF:]
    low = spread(NONE)
    high = low
    number = spread(0.0)
    for i in range(n - 1):
        following = number + 1.0
        size = abs(t[i]) + abs(t[i + 1])
        x = e[i]
        y = abs(x)
        x = x if size + y > size else 0.0
        x = x if y > TINY else 0.0
        e[i] = x
        stop = following if high == number else high
        stop = following if low == NONE else stop
        start = number if low == NONE else low
        high = high if x == 0.0 else stop
        low = low if x == 0.0 else start
        number = following
    t[LOW] = low
    t[HIGH] = high


def _step(vectors: int, n: int, first: int, last: int, number: Pack, s: Packs, t: Packs) -> None:
    """Do a QL step in a block of each matrix, which are between the rows first and last."""
    e = t[OFF:]
    low = t[LOW]
    high = t[HIGH]
    middle = 0.5 * (low + high) - 0.5
    half = 0.5 * (high - low)
    g = _shifted(t[SHIFT:])
    sine = spread(1.0)
    cosine = sine
    p = spread(0.0)
    for m in range(last - first):
        i = last - 1 - m
        above = abs(number - middle) < half  # in packs, number is that of row i + 1
        number -= 1.0
        active = abs(number - middle) < half
        x = e[i]
        d = t[i + 1] - p
        f = sine * x
        b = rounded(cosine * x)
        square = f * f + rounded(g * g)
        turns = square > 1e-36
        r = sqrt(square)
        inverse = 1.0 / (r if turns else 1.0)
        new_sine = f * inverse if turns else 0.0
        new_cosine = g * inverse if turns else 1.0
        r = r if turns else 0.0
        twice = rounded(new_cosine * b)
        y = (t[i] - d) * new_sine + (twice + twice)
        new_p = rounded(new_sine * y)
        e[i + 1] = (r if active else g) if above else e[i + 1]
        t[i + 1] = d + new_p if active else (d if above else t[i + 1])
        g = new_cosine * y - b if active else g
        p = new_p if active else p
        sine = new_sine if active else sine
        cosine = new_cosine if active else cosine
        if vectors == 1:
            _turn(n, sine if active else 0.0, cosine if active else 1.0, s[i * n :])
    here = low == number
    t[first] = t[first] - p if here else t[first]
    e[first] = g if here else e[first]


def _shifted(shift: Packs) -> Pack:
    """The last diagonal element of a block minus Wilkinson's shift, from its first two rows."""
    x = shift[2]
    x = 1.0 if x == 0.0 else x
    ratio = (shift[1] - shift[0]) / (2.0 * x)
    root = sqrt(ratio * ratio + 1.0)
    root = ratio + root if ratio > 0.0 else ratio - root
    return shift[3] - shift[0] + x / root


def _turn(n: int, sine: Pack, cosine: Pack, v: Packs) -> None:
    """Rotate two columns of each matrix."""
    other = v[n:]
    for k in range(n):
        x = v[k]
        y = other[k]
        other[k] = sine * x + rounded(cosine * y)
        v[k] = cosine * x - rounded(sine * y)


def _sort(n: int, t: Packs) -> None:
    """Sort eigenvalues, and write their order."""
    order = t[ORDER:]
    number = spread(0.0)
    for i in range(n):
        order[i] = number
        number += 1.0
    for m in range(n):
        for i in range(n - 1 - m):
            x = t[i]
            y = t[i + 1]
            swaps = y < x
            t[i] = y if swaps else x
            t[i + 1] = x if swaps else y
            x = order[i]
            y = order[i + 1]
            order[i] = y if swaps else x
            order[i + 1] = x if swaps else y


def set_signs(n: int, s: Packs) -> None:
    """Multiply eigenvectors by 1 or -1, so that the first large component is positive."""
    for j in range(n):
        column = s[j * n :]
        limit = spread(0.0)
        for i in range(n):
            size = abs(column[i])
            limit = size if size > limit else limit
        limit *= FRACTION
        sign = spread(1.0)
        for m in range(n):
            x = column[n - 1 - m]
            own = -1.0 if x < 0.0 else 1.0
            sign = own if abs(x) > limit else sign
        for i in range(n):
            column[i] = column[i] * sign + 0.0


_decompose_in_numbers = in_numbers(_decompose)
set_signs_in_numbers = in_numbers(set_signs)
