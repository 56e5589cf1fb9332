"""Eigenvalues and eigenvectors of a group of small symmetric matrices, each in a lane of packs.

A step in a lane that has nothing left to do changes no number of it, so results do not depend on
the matrices in other lanes.  The matrices ``s`` and eigenvectors ``q`` are stored by columns.
"""

from __future__ import annotations

from math import nan

from phintys.routines import Array, Pack, Packs
from phintys.routines.language import LANES, apart, local, rounded, spread, sqrt
from phintys.tensor.linalg.decomposition.eigen_steps import (
    BEFORE,
    FACTOR,
    FLAG,
    FRACTION,
    GAMMA,
    HIGH,
    INVERSE,
    LARGEST,
    LOW,
    MINOR,
    OFF,
    ORDER,
    PARTS_OF_STEP,
    QUOTIENT,
    ROTATIONS,
    SCALE,
    SECTION,
    SHIFT,
    SIGNS,
    SINE_SQUARE,
    STEPS,
    SUM,
    SUMS,
    TAUS,
    TIMES,
    begin,
    dot,
    kept,
    rescale,
    rotate,
    scale_numbers,
    set_limits,
    set_off,
    set_reflection,
    shift_along,
    wilkinson,
)
from phintys.tensor.linalg.routine_parts import load_adjacent

#: a row that does not exist
NONE = 64.0


@apart
def decompose_together(
    count: int, vectors: int, lower: int, n: int,
    a: Array, w: Array, v: Array, s: Array, q: Array, t: Array,
) -> None:  # fmt: skip
    """Write the eigenvalues of at most `LANES` matrices, and eigenvectors if ``vectors``.

    ``s``, ``q`` and ``t`` are workspaces.
    """
    set_limits(t)
    if count == LANES:
        _load(lower, n, a, s)
    else:
        _load_some(count, lower, n, a, s)
    _examine(n, s, t)
    for lane in range(LANES):
        scale_numbers(n * n, LANES, s[lane:], t[lane:])
    _reduce(n, s, t)
    if vectors == 1:
        _accumulate(n, s, q, t)
    _iterate(vectors, n, q, t, t)
    _sort(n, t)
    if vectors == 1:
        set_signs(n, q)
    for k in range(count):
        _store(vectors, n, q[k:], t[k:], w[k * n :], v[k * n * n * vectors :])


def _load(lower: int, n: int, a: Array, s: Array) -> None:
    """Load triangles, and more, by rows."""
    down = n if lower == 1 else 1
    right = 1 if lower == 1 else n
    for i in range(n):
        diagonal = i - i % LANES
        first = 0 if lower == 1 else diagonal
        stop = diagonal + LANES if lower == 1 and diagonal + LANES < n else n
        row = s[(i * down + first * right) * LANES :]
        load_adjacent(stop - first, n * n, right, a[i * n + first :], row)


def _load_some(count: int, lower: int, n: int, a: Array, s: Array) -> None:
    """Load triangles by rows; lanes without a matrix get the first one."""
    down = n if lower == 1 else 1
    right = 1 if lower == 1 else n
    for lane in range(LANES):
        x = a[(lane if lane < count else 0) * n * n :]
        for i in range(n):
            for j in range(i + 1):
                s[(i * n + j) * LANES + lane] = x[i * down + j * right]


def _examine(n: int, s: Packs, t: Packs) -> None:
    """Make matrices symmetric; write zero if they are finite, else NaN, and the largest element."""
    flag = spread(0.0)
    largest = flag
    for i in range(n):
        for j in range(i + 1):
            x = s[i * n + j]
            s[j * n + i] = x
            size = abs(x)
            flag += x - x
            largest = size if size > largest else largest
    t[FLAG] = flag
    t[LARGEST] = largest


# ---------------------------------------------------------------------------- the reduction


@apart
def _reduce(n: int, s: Packs, t: Packs) -> None:
    """Reduce matrices to tridiagonal form, written from its end; keep the reflections below it."""
    for k in range(n - 2):
        v = s[k * n :]
        place = n - 2 - k
        t[place + 1] = v[k]
        set_reflection(place, v[k + 1], dot(k + 2, n, v, v), t)
        _set_vectors(k + 1, n, v, s, t[SCALE], t[TAUS + place], t[SUMS:])
        _reflect_both_sides(k + 1, n, v, s, t[SUMS:])
    for k in range(n - 2 if n > 2 else 0, n):
        t[n - 1 - k] = s[k * n + k]
    t[OFF + n - 1] = spread(0.0)
    if n > 1:
        set_off(0, s[n * n - n - 1], t)


def _set_vectors(
    start: int, n: int, v: Packs, s: Packs, scale: Pack, tau: Pack, sums: Packs
) -> None:
    """Make columns the vectors of reflections, and write what these subtract from matrices."""
    for i in range(start, n):
        total = spread(0.0)
        other = total
        rest = (n - start) % 2
        for j in range(start, n - rest, 2):
            total += s[j * n + i] * v[j]
            other += s[(j + 1) * n + i] * v[j + 1]
        if rest == 1:
            total += s[(n - 1) * n + i] * v[n - 1]
        sums[i] = total + other
    more = 1.0 - scale * v[start]
    column = s[start * n :]
    square = dot(start, n, sums, v)
    along = shift_along(tau, scale, more, square, sums[start], column[start])
    v[start] = spread(1.0)
    for i in range(start + 1, n):
        v[i] = v[i] * scale
    for i in range(start, n):
        sums[i] = tau * (rounded(scale * sums[i]) + more * column[i] - along * v[i])


def _reflect_both_sides(start: int, n: int, v: Packs, s: Packs, sums: Packs) -> None:
    """Replace the rest ``a`` of each matrix by ``h a h`` with ``h = 1 - tau v v^T``."""
    for j in range(start, n):
        column = s[j * n :]
        x = v[j]
        y = sums[j]
        for i in range(start, n):
            column[i] = column[i] - v[i] * y - sums[i] * x


def _accumulate(n: int, s: Packs, q: Packs, t: Packs) -> None:
    """Write the products of the reflections, the last column first."""
    for k in range(n * n):
        q[k] = spread(0.0)
    for k in range(n):
        q[(n - 1 - k) * n + k] = spread(1.0)
    for k in range(n - 2):
        v = s[k * n :]
        tau = t[TAUS + n - 2 - k]
        for i in range(1, n):
            row = q[i:]
            total = spread(0.0)
            for j in range(k + 1, n):
                total += row[(n - 1 - j) * n] * v[j]
            total = total * tau
            for j in range(k + 1, n):
                row[(n - 1 - j) * n] -= total * v[j]


# ---------------------------------------------------------------------------- the iteration


@apart
def _iterate(vectors: int, n: int, q: Packs, t: Packs, numbers: Array) -> None:
    """Make tridiagonal matrices diagonal; ``numbers`` is ``t``."""
    step = local(PARTS_OF_STEP * LANES)
    first = 0
    left = STEPS * n
    while first < n:
        _find_block(n, t)
        first = n
        last = 0
        top = 0.0
        for lane in range(LANES):
            low = int(numbers[LOW * LANES + lane])
            high = int(numbers[HIGH * LANES + lane])
            if low < n:
                first = low if low < first else first
                top = numbers[HIGH * LANES + lane] if high > last else top
                last = high if high > last else last
                start = numbers[low * LANES + lane :]
                shift = numbers[SHIFT * LANES + lane :]
                shift[0] = start[0]
                shift[LANES] = start[LANES]
                shift[2 * LANES] = start[OFF * LANES]
                shift[3 * LANES] = numbers[high * LANES + lane]
        left -= 1
        if left < 0 and first < n:
            _flag_rest(t)
            first = n
        if first < n:
            _step(vectors, first, last, spread(top), t, step)
            if vectors == 1:
                _turn(first, last, n, t[ROTATIONS:], t[ROTATIONS + SECTION :], q)


def _flag_rest(t: Packs) -> None:
    """Flag matrices that are not diagonal."""
    t[FLAG] = t[FLAG] if t[LOW] == NONE else nan


def _find_block(n: int, t: Packs) -> None:
    """Replace negligible numbers beside diagonals by zero; write where the first block is."""
    low = spread(NONE)
    high = low
    number = spread(0.0)
    for i in range(n - 1):
        following = number + 1.0
        x = kept(t[OFF + i], t[i], t[i + 1], t)
        t[OFF + i] = x
        stop = following if high == number else high
        stop = following if low == NONE else stop
        start = number if low == NONE else low
        high = high if x == 0.0 else stop
        low = low if x == 0.0 else start
        number = following
    t[LOW] = low
    t[HIGH] = high


def _step(vectors: int, first: int, last: int, number: Pack, t: Packs, step: Packs) -> None:
    """Do a QL step in a block of each matrix, which are between the rows first and last."""
    e = t[OFF:]
    low = t[LOW]
    high = t[HIGH]
    middle = 0.5 * (low + high) - 0.5
    half = 0.5 * (high - low)
    shift = wilkinson(t[SHIFT], t[SHIFT + 1], t[SHIFT + 2])
    begin(t[SHIFT + 3] - shift, step)
    before = step[BEFORE]
    minor = step[MINOR]
    total = step[SUM]
    inverse = step[INVERSE]
    square = step[SINE_SQUARE]
    gamma = step[GAMMA]
    for m in range(last - first):
        i = last - 1 - m
        above = abs(number - middle) < half  # the rotation of the rows i + 1 and i + 2 was done
        number -= 1.0
        active = abs(number - middle) < half
        x = t[i]
        rotate(x, e[i], shift, step)
        ended = shift + gamma if above else t[i + 1]
        t[i + 1] = gamma + (x - step[GAMMA]) if active else ended
        # above a block e is zero: this is what `_step_alone` does after its last rotation
        e[i + 1] = rounded(square * step[QUOTIENT]) if above else e[i + 1]
        if vectors == 1:
            cosine = minor * sqrt(step[INVERSE])
            sine = sqrt(step[SINE_SQUARE]) * t[SIGNS + i]
            t[ROTATIONS + i] = cosine if active else 1.0
            t[ROTATIONS + SECTION + i] = sine if active else 0.0
            turned = -t[SIGNS + i + 1] if minor < 0.0 else t[SIGNS + i + 1]
            turned = t[SIGNS + i + 1] if active else turned
            t[SIGNS + i + 1] = turned if above else t[SIGNS + i + 1]
        square = step[SINE_SQUARE] if active else square
        gamma = step[GAMMA] if active else gamma
        rescale(t, step)
        before = step[BEFORE] if active else before
        minor = step[MINOR] if active else minor
        total = step[SUM] if active else total
        inverse = step[INVERSE] if active else inverse
        step[BEFORE] = before
        step[MINOR] = minor
        step[SUM] = total
        step[INVERSE] = inverse
    here = low == number
    quotient = rounded(rounded(minor * minor) * inverse)
    t[first] = shift + gamma if here else t[first]
    e[first] = rounded(square * quotient) if here else e[first]
    if vectors == 1:
        turned = -t[SIGNS + first] if minor < 0.0 else t[SIGNS + first]
        t[SIGNS + first] = turned if here else t[SIGNS + first]


def _turn(first: int, last: int, n: int, cosines: Packs, sines: Packs, q: Packs) -> None:
    """Apply the rotations of a step to the columns of each matrix, two at a time."""
    odd = (last - first) % 2
    for m in range(0, last - first - odd, 2):
        i = last - 2 - m
        c = cosines[i + 1]
        s = sines[i + 1]
        d = cosines[i]
        t = sines[i]
        top = q[i * n :]
        middle = q[(i + 1) * n :]
        below = q[(i + 2) * n :]
        for k in range(n):
            x = below[k]
            y = middle[k]
            z = top[k]
            below[k] = c * x + rounded(s * y)
            x = rounded(c * y) - s * x
            middle[k] = d * x + rounded(t * z)
            top[k] = rounded(d * z) - t * x
    if odd == 1:
        c = cosines[first]
        s = sines[first]
        top = q[first * n :]
        below = q[(first + 1) * n :]
        for k in range(n):
            x = below[k]
            y = top[k]
            below[k] = c * x + rounded(s * y)
            top[k] = rounded(c * y) - s * x


# -------------------------------------------------------------------------------- the order


def _sort(n: int, t: Packs) -> None:
    """Sort eigenvalues, and write their order; of equal ones, the last one is the first."""
    order = t[ORDER:]
    number = spread(0.0)
    for m in range(n):
        order[n - 1 - m] = number
        number += 1.0
    for i in range(n // 2):
        x = t[i]
        t[i] = t[n - 1 - i]
        t[n - 1 - i] = x
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


def _store(vectors: int, n: int, q: Array, t: Array, w: Array, v: Array) -> None:
    """Store the results of the first lane in order."""
    times = int(t[TIMES * LANES])
    for j in range(n):
        x = t[j * LANES] + t[FLAG * LANES]
        for _ in range(times):
            x *= t[FACTOR * LANES]
        w[j] = x
    if vectors == 1:
        for j in range(n):
            column = q[int(t[(ORDER + j) * LANES]) * n * LANES :]
            for i in range(n):
                v[i * n + j] = column[i * LANES] + t[FLAG * LANES]
