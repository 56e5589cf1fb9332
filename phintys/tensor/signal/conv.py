"""Convolutions of signals and images along the last one or two axes, with SciPy's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from phintys.errors import RaggedError
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, Packs, routine
from phintys.routines.language import LANES, PARTS, Real, local
from phintys.routines.libraries import LAPACK
from phintys.scalar import dtypes
from phintys.tensor import fourier
from phintys.tensor.aliases import Arrays, Length, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, conjugate, dimshuffle, functions, match_dtype, sum_to
from phintys.tensor.index import getitem
from phintys.tensor.pad import PadMode, pad
from phintys.tensor.raise_op import CheckAndRaise
from phintys.tensor.shape import shape_tuple, specify_shape
from phintys.tensor.static import as_length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["conv2d", "convolve1d", "convolve2d"]

Mode = Literal["full", "valid", "same"]
Boundary = Literal["fill", "wrap", "symm"]
Method = Literal["direct", "fft", "auto"]
#: how `convolve2d` pads at a boundary
PADDING: dict[Boundary, PadMode] = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}
#: how many results are computed at a time, so that they stay in the first cache
BLOCK = 1024
#: up to how many results of a row are computed as sums, from how many packs at a time
FEW, PIECE = 16, 32


class AbstractConvolveNd(Op):
    """A part of the convolution ``sum_c in2[c] in1[start + i - c]`` along the last axes.

    Inputs: two tensors of equal rank, whose leading axes broadcast as in `Elemwise`; for each axis
    the ``start`` of the part, which may be negative, and then for each axis its length.  Elements
    outside ``in1`` and ``in2`` are zeros.
    """

    # ----- class and static shape
    __props__ = ()
    handles_missing = False
    ndim: int

    def make_node(self, in1: TensorLike, in2: TensorLike, *region: Length) -> Apply:
        in1, in2 = as_tensor_variable(in1), as_tensor_variable(in2)
        if in1.type.ndim != in2.type.ndim or in1.type.ndim < self.ndim:
            raise ValueError(
                f"{self} takes two tensors of one rank, at least {self.ndim}; "
                f"{in1} and {in2} have {in1.type.ndim} and {in2.type.ndim} dimensions."
            )
        if len(region) != 2 * self.ndim:
            raise ValueError(f"{self} takes {self.ndim} starts and as many lengths.")
        dtype = dtypes.upcast(in1.type.dtype, in2.type.dtype)
        return typed_node(self, [in1, in2, *map(as_length, region)], dtype)

    def shape_rule(self, s: ShapeContext, in1: Shape, in2: Shape, *region: Shape) -> list[Shape]:
        batch = s.broadcast([in1[: -self.ndim], in2[: -self.ndim]])
        return [(*batch, *s.lengths(range(2 + self.ndim, 2 + 2 * self.ndim)))]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        dtype = node.outputs[0].type.dtype
        in1, in2 = (x.astype(dtype, copy=False) for x in inputs[:2])
        starts = [int(n) for n in inputs[2 : 2 + self.ndim]]
        lengths = [int(n) for n in inputs[2 + self.ndim :]]
        if np.prod(in1.shape[-self.ndim :]) < np.prod(in2.shape[-self.ndim :]):
            in1, in2 = in2, in1
        batch = np.broadcast_shapes(in1.shape[: -self.ndim], in2.shape[: -self.ndim])
        out = np.zeros((*batch, *lengths), dtype)
        with np.errstate(all="ignore"):
            for place in np.ndindex(in2.shape[-self.ndim :]):
                written, read = [], []
                for c, n, start, found in zip(
                    place, in1.shape[-self.ndim :], starts, lengths, strict=True
                ):
                    first = min(max(c - start, 0), found)
                    last = max(min(n + c - start, found), first)
                    written.append(slice(first, last))
                    read.append(slice(first + start - c, last + start - c))
                factor = in2[(..., *place)][(..., *[None] * self.ndim)]
                out[(..., *written)] += factor * in1[(..., *read)]
        output_storage[0][0] = out

    # ----- derivative: a part of the convolution with the other input, reversed
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [True], *[[False]] * (2 * self.ndim)]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        (in1, in2, *region), (g,) = inputs, cotangents
        starts = region[: self.ndim]
        found = [self._adjoint(g, x, y, starts) for x, y in ((in1, in2), (in2, in1))]
        return [*found, *[None] * (2 * self.ndim)]

    def _adjoint(
        self, g: TensorVariable, x: TensorVariable, other: TensorVariable, starts: Tensors
    ) -> TensorVariable:
        """The cotangent of ``x`` from ``g``, that of the result."""
        backwards = getitem(conjugate(other), (..., *[slice(None, None, -1)] * self.ndim))
        starts = [n - 1 - s for n, s in zip(lengths(other, self.ndim), starts)]
        back = type(self)()(g, backwards, *starts, *lengths(x, self.ndim))
        return sum_to(match_dtype(back, x), x)

    def pushforward(
        self, inputs: Tensors, outputs: Tensors, tangents: Tensors
    ) -> list[TensorVariable]:
        in1, in2, *region = inputs
        return [self(tangents[0], in2, *region) + self(in1, tangents[1], *region)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        in1, in2, *region = batched_inputs
        if any(n.type.ndim for n in region):
            raise RaggedError("The part of a convolution cannot differ within a batch.")
        counts = [x.type.ndim - v.type.ndim for x, v in zip((in1, in2), node.inputs)]
        most = max(counts)
        in1, in2 = (
            dimshuffle(x, *range(n), *["x"] * (most - n), *range(n, x.type.ndim))
            for x, n in zip((in1, in2), counts)
        )
        return self.make_node(in1, in2, *region)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        dtype, k = node.outputs[0].type.dtype, self.ndim
        (shape,) = b.result_shapes(node, *inputs)
        in1, in2 = (b.cast(x, dtype) for x in inputs[:2])
        batch = shape[:-k]
        lengths = [b.shape(in1)[-k:], b.shape(in2)[-k:]]
        lengths += [[b.item(n) for n in inputs[2 : 2 + k]], shape[-k:]]
        fill = [1, 1, 0, 1]
        integers = [
            n for given, x in zip(lengths, fill) for n in ([x, *given] if k == 1 else given)
        ]
        in1, in2 = (b.broadcast_to(x, (*batch, *b.shape(x)[-k:])) for x in (in1, in2))
        work = integers[6] * integers[7] * integers[2] * integers[3]
        (out,) = b.external(
            convolve, dtype, integers, [in1, in2], writes=[(dtype, shape[-k:])], batch=batch,
            work=work,
        )  # fmt: skip
        return out


def lengths(x: TensorVariable, ndim: int) -> list[TensorVariable]:
    """The lengths of the last axes."""
    return [as_length(n) for n in shape_tuple(x)[x.type.ndim - ndim :]]


class Convolve1d(AbstractConvolveNd):
    """A part of the convolution of vectors, the last axes of two tensors."""

    in_python = "integers: NumPy computes their convolutions"

    ndim = 1


class Convolve2d(AbstractConvolveNd):
    """A part of the convolution of matrices, the last two axes of two tensors."""

    in_python = "integers: NumPy computes their convolutions"

    ndim = 2


@routine(LAPACK, (ValueError, "The convolution failed"))
def convolve(
    n0: int, n1: int, k0: int, k1: int, s0: int, s1: int, m0: int, m1: int,
    a: Array, b: Array, out: Array,
) -> int:  # fmt: skip
    """Convolve a[n0, n1] with b[k0, k1]; write out[m0, m1], from the position s0, s1 on."""
    for i in range(m0 * m1 * PARTS):
        out[i] = 0.0
    for o in range(m0):
        top = o + s0 - n0 + 1
        stop = o + s0 + 1
        row = out[o * m1 * PARTS :]
        for c in range(top if top > 0 else 0, k0 if k0 < stop else stop):
            x = a[(o + s0 - c) * n1 * PARTS :]
            y = b[c * k1 * PARTS :]
            if PARTS == 1 and m1 <= FEW and k1 > FEW:
                _add_sums(n1, k1, s1, m1, x, y, row)
            elif n1 < k1:
                _add_row(k1, n1, s1, m1, y, x, row)
            else:
                _add_row(n1, k1, s1, m1, x, y, row)
    return 0


def _add_sums(n: int, k: int, s: int, m: int, a: Array, b: Array, out: Array) -> None:
    """`_add_row` for few results: products with pieces of b, reversed."""
    piece = local(PIECE * LANES)
    total = local(1 * LANES)
    for q in range((k + PIECE * LANES - 1) // (PIECE * LANES)):
        first = q * PIECE * LANES
        left = k - first
        count = PIECE * LANES if left > PIECE * LANES else left
        for j in range(count):
            piece[j] = b[first + count - 1 - j]
        for o in range(m):
            start = o + s - first - count + 1
            low = 0 - start if start < 0 else 0
            high = n - start if n - start < count else count
            if high > low:
                out[o] += _sum(high - low, piece[low:], a[start + low :], total)


def _sum(n: int, x: Array, y: Array, total: Array) -> Real:
    for lane in range(LANES):
        total[lane] = 0.0
    _sum_packs(n // LANES, x, y, total)
    found = 0.0
    for i in range(n // LANES * LANES, n):
        found += x[i] * y[i]
    for lane in range(LANES):
        found += total[lane]
    return found


def _sum_packs(n: int, x: Packs, y: Packs, total: Packs) -> None:
    t0 = total[0]
    t1 = total[0]
    for i in range(0, n - 1, 2):
        t0 += x[i] * y[i]
        t1 += x[i + 1] * y[i + 1]
    if n % 2 == 1:
        t0 += x[n - 1] * y[n - 1]
    total[0] = t0 + t1


def _add_row(n: int, k: int, s: int, m: int, a: Array, b: Array, out: Array) -> None:
    """Add ``sum_c b[c] a[s + i - c]`` to out[m], for vectors a[n] and b[k]."""
    for first in range(0, m, BLOCK):
        stop = first + BLOCK if first + BLOCK < m else m
        c = 0
        while c < k:
            inside = first + s - c >= 3 and stop + s - c <= n and c + 4 <= k
            if PARTS == 1 and inside:
                _add_four(stop - first, b[c:], a[first + s - c - 3 :], out[first:])
                c += 4
            else:
                low = c - s
                high = n + c - s
                low = low if low > first else first
                high = high if high < stop else stop
                if PARTS == 1:
                    _add_multiple(high - low, b[c], a[low + s - c :], out[low:])
                else:
                    re = b[2 * c]
                    im = b[2 * c + 1]
                    _add_complex(high - low, re, im, a[2 * (low + s - c) :], out[2 * low :])
                c += 1


def _add_four(n: int, b: Array, x: Array, out: Array) -> None:
    """Add the products with four elements of b to out[n]."""
    factors = local(4 * LANES)
    for k in range(4):
        for lane in range(LANES):
            factors[k * LANES + lane] = b[3 - k]
    _add_packs(n // LANES, factors, x, x[1:], x[2:], x[3:], out)
    for i in range(n // LANES * LANES, n):
        out[i] += b[3] * x[i] + b[2] * x[i + 1] + b[1] * x[i + 2] + b[0] * x[i + 3]


def _add_packs(n: int, b: Packs, x0: Packs, x1: Packs, x2: Packs, x3: Packs, out: Packs) -> None:
    b0 = b[0]
    b1 = b[1]
    b2 = b[2]
    b3 = b[3]
    for i in range(n):
        out[i] = ((out[i] + b0 * x0[i]) + b1 * x1[i]) + (b2 * x2[i] + b3 * x3[i])


def _add_multiple(n: int, x: Real, a: Array, out: Array) -> None:
    packs = n // LANES if n >= 2 * LANES else 0
    if packs > 0:
        factor = local(1 * LANES)
        for lane in range(LANES):
            factor[lane] = x
        _add_multiple_packs(packs, factor, a, out)
    for i in range(packs * LANES, n):
        out[i] += x * a[i]


def _add_multiple_packs(n: int, x: Packs, a: Packs, out: Packs) -> None:
    factor = x[0]
    for i in range(n):
        out[i] = out[i] + factor * a[i]


def _add_complex(n: int, re: Real, im: Real, a: Array, out: Array) -> None:
    for i in range(n):
        x = a[2 * i]
        y = a[2 * i + 1]
        out[2 * i] += re * x - im * y
        out[2 * i + 1] += re * y + im * x


# ----- user functions
def _region(
    n: TensorVariable, k: TensorVariable, mode: Mode
) -> tuple[TensorVariable, TensorVariable]:
    """The start and the length of the result of a mode, along an axis with lengths n and k."""
    if mode == "same":
        return (k - 1) // 2, n
    if mode == "full":
        return as_length(0), functions.maximum(n + k - 1, as_length(0))
    shorter = functions.minimum(n, k)
    return shorter - 1, functions.maximum(n, k) - shorter + 1


def _regions(in1: TensorVariable, in2: TensorVariable, ndim: int, mode: Mode) -> list[Tensors]:
    """The starts, and the lengths, for the last axes."""
    if mode not in get_args(Mode):
        raise ValueError(f"The mode is one of {', '.join(get_args(Mode))}; not {mode!r}.")
    pairs = zip(lengths(in1, ndim), lengths(in2, ndim))
    found = [_region(n, k, mode) for n, k in pairs]
    return [[start for start, _ in found], [n for _, n in found]]


def _equal_rank(in1: TensorLike, in2: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Both as tensors of equal rank; new axes come first."""
    given = as_tensor_variable(in1), as_tensor_variable(in2)
    most = max(x.type.ndim for x in given)
    in1, in2 = (dimshuffle(x, *["x"] * (most - x.type.ndim), *range(x.type.ndim)) for x in given)
    return in1, in2


def convolve1d(in1: TensorLike, in2: TensorLike, mode: Mode = "full") -> TensorVariable:
    """The convolution of vectors, the last axes of two tensors; other axes broadcast.

    Parameters
    ----------
    in1, in2 : tensors with at least one axis
    mode : ``"full"``: all ``n + k - 1`` numbers; ``"valid"``: the ``abs(n - k) + 1`` numbers that
        do not depend on what is outside; ``"same"``: of the full result, as many numbers as
        ``in1`` has, from its middle

    Outside of the vectors are zeros.  A vector without elements gives zeros.  ValueError for other
    modes, ShapeError if batches do not fit.

    >>> import phintys.tensor as pt
    >>> pt.signal.convolve1d([1.0, 2.0, 3.0], [0.0, 1.0], mode="same").eval()
    array([0., 1., 2.])
    """
    x, y = _equal_rank(in1, in2)
    starts, counts = _regions(x, y, 1, mode)
    return Convolve1d()(x, y, *starts, *counts)


def convolve2d(
    in1: TensorLike,
    in2: TensorLike,
    mode: Mode = "full",
    boundary: Boundary = "fill",
    fillvalue: float = 0,
    method: Method = "auto",
) -> TensorVariable:
    """The convolution of matrices, the last two axes of two tensors; other axes broadcast.

    Parameters
    ----------
    in1, in2 : tensors with at least two axes
    mode : as for `convolve1d`, along both axes
    boundary : what is outside of ``in1``: ``"fill"``: ``fillvalue``; ``"wrap"``: ``in1`` again;
        ``"symm"``: its reflection
    fillvalue : a number
    method : ``"fft"`` multiplies Fourier transforms, which is faster for large ``in2``;
        ``"direct"`` and ``"auto"`` sum products

    ValueError if an argument is none of the above, ShapeError if batches do not fit.

    >>> import phintys.tensor as pt
    >>> pt.signal.convolve2d(pt.ones((2, 2)), [[1.0, 1.0]], boundary="wrap").eval()
    array([[2., 2., 2.],
           [2., 2., 2.]])
    """
    if boundary not in PADDING:
        raise ValueError(f"The boundary is one of {', '.join(PADDING)}; not {boundary!r}.")
    if method not in get_args(Method):
        raise ValueError(f"The method is one of {', '.join(get_args(Method))}; not {method!r}.")
    x, y = _equal_rank(in1, in2)
    starts, counts = _regions(x, y, 2, mode)
    if mode != "valid" and (boundary != "fill" or fillvalue != 0):
        margins = [functions.maximum(n - 1, as_length(0)) for n in lengths(y, 2)]
        widths = [(0, 0)] * (x.type.ndim - 2) + [(n, n) for n in margins]
        constant = fillvalue if boundary == "fill" else None
        x = pad(x, widths, PADDING[boundary], constant_values=constant)
        starts = [s + n for s, n in zip(starts, margins)]
    if method == "fft":
        return _by_transforms(x, y, starts, counts)
    return Convolve2d()(x, y, *starts, *counts)


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    image_shape: Sequence[Length | None] | None = None,
    filter_shape: Sequence[Length | None] | None = None,
    border_mode: Literal["valid", "full"] = "valid",
    subsample: Sequence[int] = (1, 1),
) -> TensorVariable:
    """The convolution of each of some images with each of some filters, as Aesara's.

    Parameters
    ----------
    input : an image, or images (images, rows, columns)
    filters : a filter, or filters (filters, rows, columns)
    image_shape, filter_shape : lengths that are known, None for others
    border_mode : ``"valid"``: where filters fit in; ``"full"``: where they meet the image
    subsample : the distances of the positions of results

    The result has the axes (images, filters, rows, columns); those of a single image or filter are
    left out.  ValueError for other modes and ranks, and in the mode ``"valid"`` for filters that
    are longer than images.

    >>> import phintys.tensor as pt
    >>> pt.signal.conv.conv2d([[1.0, 2.0, 4.0]], [[[1.0, -1.0]], [[1.0, 1.0]]]).eval()
    array([[[1., 2.]],
    <BLANKLINE>
           [[3., 6.]]])
    """
    if border_mode not in ("valid", "full"):
        raise ValueError(f"border_mode is 'valid' or 'full', not {border_mode!r}.")
    x, w = as_tensor_variable(input), as_tensor_variable(filters)
    for v in (x, w):
        if v.type.ndim not in (2, 3):
            raise ValueError(f"Images and filters have 2 or 3 axes; {v} has {v.type.ndim}.")
    x = x if image_shape is None else specify_shape(x, list(image_shape))
    w = w if filter_shape is None else specify_shape(w, list(filter_shape))
    if border_mode == "valid":
        fits = [functions.ge(n, k) for n, k in zip(lengths(x, 2), lengths(w, 2))]
        x = CheckAndRaise(ValueError, "Filters are longer than images.")(x, *fits)
    if x.type.ndim == w.type.ndim == 3:
        x = dimshuffle(x, 0, "x", 1, 2)
    found = convolve2d(x, w, border_mode)
    return getitem(found, (..., *[slice(None, None, step) for step in subsample]))


def _by_transforms(
    in1: TensorVariable, in2: TensorVariable, starts: Tensors, counts: Tensors
) -> TensorVariable:
    """A part of the convolution of matrices, by Fourier transforms."""
    dtype = dtypes.upcast(in1.type.dtype, in2.type.dtype)
    real = not dtypes.is_complex(dtype)
    if not dtypes.is_discrete(dtype):
        in1, in2 = cast(in1, dtype), cast(in2, dtype)
    sizes = [
        functions.maximum(n + k - 1, as_length(1)) for n, k in zip(lengths(in1, 2), lengths(in2, 2))
    ]
    last = fourier.rfft if real else fourier.fft
    first, second = (fourier.fft(last(x, sizes[1]), sizes[0], -2) for x in (in1, in2))
    back = fourier.ifft(first * second, sizes[0], -2)
    full = fourier.irfft(back, sizes[1]) if real else fourier.ifft(back, sizes[1])
    part = [slice(s, s + n) for s, n in zip(starts, counts)]
    found = getitem(full, (..., *part))
    if dtypes.is_discrete(dtype):
        found = cast(functions.round_half_to_even(found), "int64")
    return cast(found, dtype)
