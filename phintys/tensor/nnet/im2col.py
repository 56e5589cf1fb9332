"""The routines of correlations of images: products of filters with matrices of images (im2col).

Such a matrix has a row for each channel of a group and element of a filter, and a column for each
position of the result: the element of the image that meets that element of the filter there
(K. Chellapilla, S. Puri, P. Simard, "High performance convolutional neural networks for document
processing", 2006).

The shape of a correlation is a vector: for each of three axes the lengths of image, filter and
result, the distances of results and of elements that a filter meets, and the number of zeros before
the image.  A line is a part of a matrix: the columns for positions along the last axis.
``block`` is the number of lines that are made at a time, ``rows`` that of the rows of a matrix,
``pixels`` the size of a channel; ``filters`` and ``channels`` are the numbers of a group.
"""

from __future__ import annotations

from phintys.routines import Array, Longs, Packs, routine
from phintys.routines.language import LANES, PARTS
from phintys.routines.libraries import LAPACK, LARGEST_INT, PLAIN, TRANSPOSED, gemm

_correlation = routine(LAPACK, (MemoryError, "The images are too large for BLAS"))


@_correlation
def correlate_images(
    images: int, groups: int, channels: int, filters: int, rows: int, block: int, pixels: int,
    shape: Longs, x: Array, w: Array, out: Array, columns: Array,
) -> int:  # fmt: skip
    """Write the correlations of images x with filters w; ``columns`` is room for a block."""
    line = shape[14]
    lines = shape[2] * shape[8]
    width = lines * line
    if rows > LARGEST_INT or width > LARGEST_INT:
        return 1
    if rows == 0:
        _clear(images * groups * filters * width, out)
    elif filters > 0 and width > 0:
        for i in range(images * groups):
            image = x[i * channels * pixels * PARTS :]
            filter = w[i % groups * filters * rows * PARTS :]
            result = out[i * filters * width * PARTS :]
            if _is_unfolded(shape) == 1:
                _multiply(filters, rows, width, filter, image, width, result)
            else:
                for k in range((lines + block - 1) // block):
                    first = k * block
                    count = block if block < lines - first else lines - first
                    _move(0, channels, first, count, shape, image, columns)
                    part = result[first * line * PARTS :]
                    _multiply(filters, rows, count * line, filter, columns, width, part)
    return 0


@_correlation
def pull_back_to_filters(
    images: int, groups: int, channels: int, filters: int, rows: int, block: int, pixels: int,
    shape: Longs, x: Array, g: Array, w: Array, columns: Array,
) -> int:  # fmt: skip
    """Write the cotangents of filters, from images and the cotangents of their correlations."""
    line = shape[14]
    lines = shape[2] * shape[8]
    width = lines * line
    if rows > LARGEST_INT or width > LARGEST_INT:
        return 1
    _clear(groups * filters * rows, w)
    if filters > 0 and width > 0 and rows > 0:
        for i in range(images * groups):
            image = x[i * channels * pixels * PARTS :]
            result = w[i % groups * filters * rows * PARTS :]
            for k in range((lines + block - 1) // block):
                first = k * block
                count = block if block < lines - first else lines - first
                m = count * line
                _move(0, channels, first, count, shape, image, columns)
                given = g[(i * filters * width + first * line) * PARTS :]
                gemm(
                    TRANSPOSED, PLAIN, rows, filters, m, 1.0, columns, m, given, width, 1.0,
                    result, rows,
                )  # fmt: skip
    return 0


@_correlation
def pull_back_to_images(
    images: int, groups: int, channels: int, filters: int, rows: int, block: int, pixels: int,
    shape: Longs, w: Array, g: Array, x: Array, columns: Array,
) -> int:  # fmt: skip
    """Write the cotangents of images, from filters and the cotangents of their correlations."""
    line = shape[14]
    lines = shape[2] * shape[8]
    width = lines * line
    if rows > LARGEST_INT or width > LARGEST_INT:
        return 1
    _clear(images * groups * channels * pixels, x)
    if filters > 0 and width > 0 and rows > 0:
        for i in range(images * groups):
            image = x[i * channels * pixels * PARTS :]
            filter = w[i % groups * filters * rows * PARTS :]
            for k in range((lines + block - 1) // block):
                first = k * block
                count = block if block < lines - first else lines - first
                m = count * line
                given = g[(i * filters * width + first * line) * PARTS :]
                gemm(
                    PLAIN, TRANSPOSED, m, rows, filters, 1.0, given, width, filter, rows, 0.0,
                    columns, m,
                )  # fmt: skip
                _move(1, channels, first, count, shape, image, columns)
    return 0


def _clear(n: int, x: Array) -> None:
    for k in range(n * PARTS):
        x[k] = 0.0


def _multiply(n: int, k: int, m: int, a: Array, b: Array, width: int, out: Array) -> None:
    """Write the product of a[n, k] and b[k, m] to the first m columns of out[n, width]."""
    # to BLAS, the columns of a matrix are its rows
    gemm(PLAIN, PLAIN, m, n, k, 1.0, b, m, a, k, 0.0, out, width)


def _is_unfolded(shape: Longs) -> int:
    """1 if the channels of an image are the rows of its matrix: filters have one element."""
    found = 1
    for axis in range(3):
        s = shape[axis * 6 :]
        plain = s[1] == 1 and s[0] == s[2] and s[3] == 1 and s[5] == 0
        found = found if plain else 0
    return found


def _move(
    add: int, channels: int, first: int, count: int, shape: Longs, x: Array, columns: Array
) -> None:
    """Write lines of the matrix of an image; if ``add`` is 1, add them to the image."""
    width = count * shape[14] * PARTS
    row = 0
    for c in range(channels):
        image = x[c * shape[0] * shape[6] * shape[12] * PARTS :]
        for c0 in range(shape[1]):
            for c1 in range(shape[7]):
                for c2 in range(shape[13]):
                    part = columns[row * width :]
                    _move_row(add, c0, c1, c2, first, count, shape, image, part)
                    row += 1


def _move_row(
    add: int, c0: int, c1: int, c2: int, begin: int, count: int, shape: Longs,
    x: Array, columns: Array,
) -> None:  # fmt: skip
    """Lines of a row of the matrix: that of the element c0, c1, c2 of a filter."""
    n1 = shape[6]
    n2 = shape[12]
    m1 = shape[8]
    m2 = shape[14]
    step = shape[15]
    first = c2 * shape[16] - shape[17]
    low = 0 if first >= 0 else (step - 1 - first) // step
    low = low if low < m2 else m2
    last = n2 - 1 - first
    high = last // step + 1 if last >= 0 else 0
    high = high if high < m2 else m2
    high = high if high > low else low
    for k in range(count):
        y0 = (begin + k) // m1 * shape[3] + c0 * shape[4] - shape[5]
        y1 = (begin + k) % m1 * shape[9] + c1 * shape[10] - shape[11]
        row = columns[k * m2 * PARTS :]
        inside = y0 >= 0 and y0 < shape[0] and y1 >= 0 and y1 < n1
        if inside:
            start = ((y0 * n1 + y1) * n2 + low * step + first) * PARTS
            if add == 1:
                _add_to(high - low, step, row[low * PARTS :], x[start:])
            else:
                _clear(low, row)
                _copy(high - low, step, x[start:], row[low * PARTS :])
                _clear(m2 - high, row[high * PARTS :])
        elif add == 0:
            _clear(m2, row)


def _copy(n: int, step: int, x: Array, out: Array) -> None:
    """Write every ``step``-th element of x."""
    if step == 1:
        packs = n * PARTS // LANES
        _copy_packs(packs, x, out)
        for i in range(packs * LANES, n * PARTS):
            out[i] = x[i]
    else:
        for i in range(n):
            for part in range(PARTS):
                out[i * PARTS + part] = x[i * step * PARTS + part]


def _add_to(n: int, step: int, x: Array, out: Array) -> None:
    """Add x to every ``step``-th element of out."""
    if step == 1:
        packs = n * PARTS // LANES
        _add_packs_to(packs, x, out)
        for i in range(packs * LANES, n * PARTS):
            out[i] += x[i]
    else:
        for i in range(n):
            for part in range(PARTS):
                out[i * step * PARTS + part] += x[i * PARTS + part]


def _copy_packs(n: int, x: Packs, out: Packs) -> None:
    for i in range(n):
        out[i] = x[i]


def _add_packs_to(n: int, x: Packs, out: Packs) -> None:
    for i in range(n):
        out[i] = out[i] + x[i]
