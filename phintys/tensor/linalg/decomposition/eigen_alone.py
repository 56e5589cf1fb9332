"""Eigenvalues and eigenvectors of one small symmetric matrix; packs are parts of its columns.

Columns of the matrix and of the eigenvectors begin at full packs: ``rows`` is their length in
packs.  The numbers are those of `eigen_together`, to the bit.
"""

from __future__ import annotations

from math import nan

from phintys.routines import Array, Pack, Packs, Real
from phintys.routines.language import LANES, apart, load_square, local, rounded, spread, sqrt
from phintys.tensor.linalg.decomposition.eigen_steps import (
    FACTOR,
    FLAG,
    FRACTION,
    GAMMA,
    INVERSE,
    LARGEST,
    LEAST_SQUARE,
    MINOR,
    MOST_SQUARE,
    NUMBERED,
    OFF,
    ORDER,
    PARTS_OF_STEP,
    QUOTIENT,
    ROTATIONS,
    SCALE,
    SECTION,
    SIGNS,
    SINE_SQUARE,
    STEPS,
    SUM,
    SUMS,
    TAUS,
    TIMES,
    TURN,
    begin_in_numbers,
    dot_in_numbers,
    kept_in_numbers,
    rescale_in_numbers,
    rotate_in_numbers,
    scale_numbers,
    set_limits_in_numbers,
    set_off_in_numbers,
    set_reflection_in_numbers,
    shift_along_in_numbers,
    wilkinson_in_numbers,
)
from phintys.tensor.linalg.routine_parts import copy


@apart
def decompose_alone(
    vectors: int, lower: int, n: int, a: Array, w: Array, v: Array, s: Array, q: Array, t: Array
) -> None:
    """Write the eigenvalues of a matrix, and eigenvectors as columns if ``vectors``.

    ``s``, ``q`` and ``t`` are workspaces.
    """
    rows = (n + LANES - 1) // LANES
    set_limits_in_numbers(t)
    _load_alone(lower, n, rows * LANES, a, s, t)
    _examine_alone(n * rows, s, t)
    scale_numbers(n * rows * LANES, 1, s, t)
    if vectors == 1:
        _write_identity(n, rows, t[NUMBERED:], q)
    _reduce_alone(vectors, n, rows, s, q, t)
    _iterate_alone(vectors, n, rows, q, t)
    _rank(n, rows, t, t[NUMBERED:], t, t[ORDER:])
    _store_values(n, t, w)
    if vectors == 1:
        _arrange(n, rows, q, s, t[ORDER:])
        _set_signs(n, rows, spread(t[FLAG]), q)
        for i in range(n):
            copy(n, q[i * rows * LANES :], v[i * n :])


def _load_alone(lower: int, n: int, stride: int, a: Array, s: Array, t: Array) -> None:
    """Load a triangle as a symmetric matrix, with zeros after its columns; number the rows."""
    down = n if lower == 1 else 1
    right = 1 if lower == 1 else n
    number = 0.0
    for j in range(n):
        column = s[j * stride :]
        for i in range(n, stride):
            column[i] = 0.0
        for i in range(j, n):
            x = a[i * down + j * right]
            column[i] = x
            s[i * stride + j] = x
    for i in range(stride):
        t[NUMBERED + i] = number
        number += 1.0


def _examine_alone(count: int, s: Packs, t: Array) -> None:
    """Write zero if packs are finite, else NaN, and their largest element."""
    found = local(2 * LANES)
    _sum_up(count, s, found)
    flag = 0.0
    largest = 0.0
    for k in range(LANES):
        flag += found[k]
        size = found[LANES + k]
        largest = size if size > largest else largest
    t[FLAG] = flag
    t[LARGEST] = largest


def _sum_up(count: int, s: Packs, found: Packs) -> None:
    flag = spread(0.0)
    largest = flag
    for k in range(count):
        x = s[k]
        size = abs(x)
        flag += x - x
        largest = size if size > largest else largest
    found[0] = flag
    found[1] = largest


def _write_identity(n: int, rows: int, numbers: Packs, q: Packs) -> None:
    """Write the columns of the identity, the last one first."""
    number = spread(0.0)
    for j in range(n):
        column = q[(n - 1 - j) * rows :]
        for p in range(rows):
            column[p] = 1.0 if numbers[p] == number else 0.0
        number += 1.0


# ---------------------------------------------------------------------------- the reduction


@apart
def _reduce_alone(vectors: int, n: int, rows: int, s: Array, q: Array, t: Array) -> None:
    """Reduce a matrix to tridiagonal form, and write the product of the reflections.

    Both are written from the end: from there, QL steps are fewer.
    """
    stride = rows * LANES
    for k in range(n - 2):
        v = s[k * stride :]
        top = (k + 1) // LANES
        place = n - 2 - k
        t[place + 1] = v[k]
        first = v[k + 1]
        set_reflection_in_numbers(place, first, dot_in_numbers(k + 2, n, v, v), t)
        scale = t[SCALE]
        tau = t[TAUS + place]
        more = 1.0 - scale * first
        sums = t[SUMS:]
        column = s[(k + 1) * stride :]
        _multiply(top, k + 1, n, rows, v, s, sums)
        square = dot_in_numbers(k + 1, n, sums, v)
        along = shift_along_in_numbers(tau, scale, more, square, sums[k + 1], column[k + 1])
        number = t[NUMBERED + k + 1]
        _set_vector(top, rows, number, scale, more, tau, along, column, t[NUMBERED:], v, sums)
        _subtract(top, k + 1, n, rows, v, sums, v, s, sums)
        if vectors == 1:
            _reflect_alone(n - 1 - k, n, rows, tau, v, q)
    for k in range(n - 2 if n > 2 else 0, n):
        t[n - 1 - k] = s[k * stride + k]
    t[OFF + n - 1] = 0.0
    t[n] = 0.0
    if n > 1:
        set_off_in_numbers(0, s[(n - 2) * stride + n - 1], t)


def _multiply(top: int, start: int, n: int, rows: int, v: Array, s: Packs, sums: Packs) -> None:
    """Write the product of a matrix and a vector, for two packs of rows at once."""
    rest = (n - start) % 2
    for p in range(top, rows, 2):
        next = 1 if p + 1 < rows else 0
        total = spread(0.0)
        other = total
        below = total
        other_below = total
        for j in range(start, n - rest, 2):
            here = s[j * rows + p :]
            x = spread(v[j])
            y = spread(v[j + 1])
            total += here[0] * x
            other += here[rows] * y
            below += here[next] * x
            other_below += here[rows + next] * y
        if rest == 1:
            here = s[(n - 1) * rows + p :]
            x = spread(v[n - 1])
            total += here[0] * x
            below += here[next] * x
        sums[p + next] = below + other_below
        sums[p] = total + other


def _set_vector(
    top: int, rows: int, first: Real, scale: Real, more: Real, tau: Real, along: Real,
    column: Packs, numbers: Packs, v: Packs, sums: Packs,
) -> None:  # fmt: skip
    """Make a column the vector of a reflection, and write what that subtracts from the matrix.

    The vector is 1 in the row ``first``, and zero before it.
    """
    for p in range(top, rows):
        here = numbers[p]
        x = v[p] * spread(scale)
        x = x if here > spread(first) else 1.0
        x = x if here >= spread(first) else 0.0
        v[p] = x
        total = rounded(spread(scale) * sums[p]) + spread(more) * column[p]
        sums[p] = spread(tau) * (total - spread(along) * x)


def _subtract(
    top: int, start: int, n: int, rows: int,
    v: Array, sums: Array, v_packs: Packs, s: Packs, sum_packs: Packs,
) -> None:  # fmt: skip
    """Complete the reflection of a matrix from both sides, in two packs of rows at once."""
    for p in range(top, rows - 1, 2):
        x = v_packs[p]
        y = sum_packs[p]
        x_below = v_packs[p + 1]
        y_below = sum_packs[p + 1]
        for j in range(start, n):
            here = s[j * rows + p :]
            factor = spread(sums[j])
            other = spread(v[j])
            here[0] = here[0] - x * factor - y * other
            here[1] = here[1] - x_below * factor - y_below * other
    for p in range(rows - (rows - top) % 2, rows):
        x = v_packs[p]
        y = sum_packs[p]
        for j in range(start, n):
            s[j * rows + p] = s[j * rows + p] - x * spread(sums[j]) - y * spread(v[j])


def _reflect_alone(count: int, n: int, rows: int, tau: Real, v: Array, q: Packs) -> None:
    """Multiply the first columns, which are the last ones of a matrix, by a reflection.

    Two packs of rows are computed at once.
    """
    for p in range(0, rows, 2):
        next = 1 if p + 1 < rows else 0
        total = spread(0.0)
        below = total
        for m in range(count):
            column = q[(count - 1 - m) * rows + p :]
            x = spread(v[n - count + m])
            total += column[0] * x
            below += column[next] * x
        total = total * spread(tau)
        below = below * spread(tau)
        for j in range(count):
            column = q[j * rows + p :]
            x = spread(v[n - 1 - j])
            z = column[next] - below * x
            column[0] -= total * x
            column[next] = z


# ---------------------------------------------------------------------------- the iteration


@apart
def _iterate_alone(vectors: int, n: int, rows: int, q: Array, t: Array) -> None:
    """Make a tridiagonal matrix diagonal.

    The rotations of a step are applied to vectors after the next step has been done: then they are
    in memory, and can be read in packs at once.
    """
    e = t[OFF:]
    low = 0
    top = 0
    bottom = 0  # of the block of the step before
    left = STEPS * n
    while low < n - 1 or bottom > 0:
        while low < n - 1 and kept_in_numbers(e[low], t[low], t[low + 1], t) == 0.0:
            low += 1
        high = low
        while kept_in_numbers(e[high], t[high], t[high + 1], t) > 0.0:
            high += 1
        e[high] = 0.0
        here = t[ROTATIONS + left % 2 * TURN :]
        if high > low:
            _step_alone(low, high, t, here)
        if vectors == 1 and bottom > 0:
            before = t[ROTATIONS + (left + 1) % 2 * TURN :]
            _set_rotations(top, bottom, before[2 * SECTION :], t[SIGNS:], before, before[SECTION:])
            t[SIGNS + top] = t[SIGNS + top] * before[2 * SECTION - 1]
            _rotate_alone(top, bottom, rows, before, before[SECTION:], q)
        top = low
        bottom = high if high > low else 0
        left -= 1
        if left < 0:
            t[FLAG] = nan
            low = n
            bottom = 0


def _step_alone(low: int, high: int, t: Array, turns: Array) -> None:
    """Do a QL step in a block, and write its rotations."""
    step = local(PARTS_OF_STEP * LANES)
    e = t[OFF:]
    least = t[LEAST_SQUARE]
    most = t[MOST_SQUARE]
    shift = wilkinson_in_numbers(t[low], t[low + 1], e[low])
    begin_in_numbers(t[high] - shift, step)
    for m in range(high - low):
        i = high - 1 - m
        x = t[i]
        gamma = step[GAMMA]
        square = step[SINE_SQUARE]
        turns[i] = step[MINOR]
        rotate_in_numbers(x, e[i], shift, step)
        e[i + 1] = rounded(square * step[QUOTIENT])
        t[i + 1] = gamma + (x - step[GAMMA])
        turns[SECTION + i] = step[SINE_SQUARE]
        turns[2 * SECTION + i] = step[INVERSE]
        while step[SUM] < least or step[SUM] > most:
            rescale_in_numbers(t, step)
    quotient = rounded(rounded(step[MINOR] * step[MINOR]) * step[INVERSE])
    e[low] = rounded(step[SINE_SQUARE] * quotient)
    t[low] = shift + step[GAMMA]
    turns[2 * SECTION - 1] = -1.0 if step[MINOR] < 0.0 else 1.0


def _set_rotations(
    low: int, high: int, inverses: Packs, signs: Packs, cosines: Packs, sines: Packs
) -> None:
    """Replace minors by cosines and squares of sines by sines, in the packs of a block."""
    for p in range(low // LANES, (high + LANES - 1) // LANES):
        cosines[p] = cosines[p] * sqrt(inverses[p])
        sines[p] = sqrt(sines[p]) * signs[p]


def _rotate_alone(low: int, high: int, rows: int, cosines: Array, sines: Array, q: Packs) -> None:
    """Apply the rotations of a step to vectors."""
    for p in range(0, rows - 1, 2):
        x = q[high * rows + p]
        z = q[high * rows + p + 1]
        for m in range(high - low):
            i = high - 1 - m
            c = spread(cosines[i])
            s = spread(sines[i])
            here = q[i * rows + p :]
            next = here[rows:]
            y = here[0]
            next[0] = c * x + rounded(s * y)
            x = rounded(c * y) - s * x
            y = here[1]
            next[1] = c * z + rounded(s * y)
            z = rounded(c * y) - s * z
        q[low * rows + p] = x
        q[low * rows + p + 1] = z
    for p in range(rows - rows % 2, rows):
        x = q[high * rows + p]
        for m in range(high - low):
            i = high - 1 - m
            c = spread(cosines[i])
            s = spread(sines[i])
            y = q[i * rows + p]
            q[(i + 1) * rows + p] = c * x + rounded(s * y)
            x = rounded(c * y) - s * x
        q[low * rows + p] = x


# -------------------------------------------------------------------------------- the order


def _rank(n: int, rows: int, d: Array, numbers: Packs, own: Packs, ranks: Packs) -> None:
    """Write the places of eigenvalues in their order; of equal ones, the last one is the first."""
    for p in range(rows):
        x = own[p]
        here = numbers[p]
        rank = spread(0.0)
        number = spread(0.0)
        for j in range(n):
            y = spread(d[j])
            less = spread(0.0)
            less = 1.0 if y < x else less
            equal = 1.0 if y == x else less
            rank += equal if number > here else less
            number += 1.0
        ranks[p] = rank


def _store_values(n: int, t: Array, w: Array) -> None:
    """Store the eigenvalues in order."""
    times = int(t[TIMES])
    for i in range(n):
        x = t[i] + t[FLAG]
        for _ in range(times):
            x *= t[FACTOR]
        w[int(t[ORDER + i])] = x


def _arrange(n: int, rows: int, q: Array, s: Array, ranks: Array) -> None:
    """Write columns in order to ``s``, and its transpose to ``q``."""
    stride = rows * LANES
    for j in range(n):
        _copy_column(rows, q[j * stride :], s[int(ranks[j]) * stride :])
    for i in range(rows):
        for j in range(rows):
            source = s[(j * stride + i) * LANES :]
            load_square(source, stride, q[(i * stride + j) * LANES :], rows)


def _copy_column(rows: int, source: Packs, target: Packs) -> None:
    """Copy packs."""
    for p in range(rows):
        target[p] = source[p]


def _set_signs(n: int, rows: int, flag: Pack, q: Packs) -> None:
    """Multiply eigenvectors by 1 or -1, so that the first large component is positive."""
    for p in range(rows):
        limit = spread(0.0)
        for i in range(n):
            size = abs(q[i * rows + p])
            limit = size if size > limit else limit
        limit *= FRACTION
        sign = spread(1.0)
        for m in range(n):
            x = q[(n - 1 - m) * rows + p]
            own = spread(1.0)
            own = -1.0 if x < 0.0 else own
            sign = own if abs(x) > limit else sign
        for i in range(n):
            q[i * rows + p] = q[i * rows + p] * sign + flag
