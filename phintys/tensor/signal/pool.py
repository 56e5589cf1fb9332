"""Pooling: a maximum, sum or average of each window of an image."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Literal, NamedTuple, get_args

import numpy as np

from phintys.scalar import dtypes
from phintys.tensor.aliases import Length, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, dimshuffle, functions
from phintys.tensor.index import getitem
from phintys.tensor.pad import pad as padded
from phintys.tensor.ranges import arange
from phintys.tensor.reduce import max as max_over
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.repeat import repeat
from phintys.tensor.shape import shape_tuple, specify_shape
from phintys.tensor.signal.windows import positive, required, windows_along
from phintys.tensor.static import as_length
from phintys.tensor.variable import TensorVariable

__all__ = ["max_pool_2d_same_size", "pool_2d", "pool_3d"]

PoolMode = Literal["max", "sum", "average_inc_pad", "average_exc_pad"]
_POSITIVE = "ws and stride are positive."
_SHORT = "pad is not negative, and less than the length of windows."
#: one for each axis, or one for all
Sizes = Length | Sequence[Length] | np.ndarray | None


def pool_2d(
    input: TensorLike,
    ws: Sizes = None,
    ignore_border: bool | None = None,
    stride: Sizes = None,
    pad: Sizes = (0, 0),
    mode: PoolMode = "max",
) -> TensorVariable:
    """The maximum, sum or average of each window of the last two axes.

    Parameters
    ----------
    input : tensor with at least two axes
    ws : the lengths of windows, (rows, columns) or a vector, or one for both
    ignore_border : True: there are windows only where they fit in; False or None: windows at the
        end may have fewer elements
    stride : the distances of windows; None: their lengths
    pad : how many elements are added before and after each axis, fewer than a window has; only with
        ``ignore_border``
    mode : ``"max"``, ``"sum"``; ``"average_inc_pad"`` and ``"average_exc_pad"``: the average with,
        and without, the elements that were added

    Averages of integers are floats.  ValueError if a parameter is none of the above.

    >>> import phintys.tensor as pt
    >>> pt.signal.pool.pool_2d(pt.arange(9).reshape((3, 3)), (2, 2)).eval()
    array([[4, 5],
           [7, 8]])
    """
    return pool(input, 2, ws, ignore_border, stride, pad, mode)


def pool_3d(
    input: TensorLike,
    ws: Sizes = None,
    ignore_border: bool | None = None,
    stride: Sizes = None,
    pad: Sizes = (0, 0, 0),
    mode: PoolMode = "max",
) -> TensorVariable:
    """`pool_2d` over the last three axes."""
    return pool(input, 3, ws, ignore_border, stride, pad, mode)


def max_pool_2d_same_size(input: TensorLike, patch_size: Sequence[Length]) -> TensorVariable:
    """``input`` with zeros for all but the maximum of each patch of the last two axes.

    Elements that belong to no whole patch become zeros.

    >>> import phintys.tensor as pt
    >>> pt.signal.pool.max_pool_2d_same_size([[1.0, 2.0, 9.0], [4.0, 3.0, 9.0]], (2, 2)).eval()
    array([[0., 0., 0.],
           [4., 0., 0.]])
    """
    x = as_tensor_variable(input)
    top = pool_2d(x, patch_size, ignore_border=True)
    margins: list[tuple[Length, Length]] = [(0, 0)] * (x.type.ndim - 2)
    part: list[slice] = [slice(None)] * (x.type.ndim - 2)
    for k, (n, size) in enumerate(zip(_lengths(x, 2), patch_size)):
        top = repeat(top, as_length(size), axis=x.type.ndim - 2 + k)
        whole = n // as_length(size) * as_length(size)
        part.append(slice(0, whole))
        margins.append((0, n - whole))
    inner = getitem(x, tuple(part))
    return padded(functions.switch(functions.eq(inner, top), inner, cast(0, x.type.dtype)), margins)


def _lengths(x: TensorVariable, ndim: int) -> list[TensorVariable]:
    return [as_length(n) for n in shape_tuple(x)[x.type.ndim - ndim :]]


def _sizes(given: Sizes, ndim: int, name: str) -> list[TensorVariable]:
    """One length for each axis."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    elif isinstance(given, TensorVariable) and given.type.ndim == 1:
        vector = specify_shape(given, (ndim,))
        given = [vector[k] for k in range(ndim)]
    listed = list(given) if isinstance(given, Sequence) else [given] * ndim
    if len(listed) != ndim or any(n is None for n in listed):
        raise ValueError(f"{name} has {ndim} numbers, not {given!r}.")
    return [as_length(n) for n in listed if n is not None]


class _Windows(NamedTuple):
    """The windows along an axis of length ``n``, and how many there are."""

    n: TensorVariable
    size: TensorVariable
    step: TensorVariable
    pad: TensorVariable
    total: TensorVariable

    @property
    def is_exact(self) -> bool:
        """Whether windows without gaps are known to cover the axis."""
        n, size, step = (_known(v) for v in (self.n, self.size, self.step))
        return not _known(self.pad) and size == step and n % size == 0

    @property
    def after(self) -> TensorVariable:
        """How many elements are missing at the end, for the last window."""
        needed = (self.total - 1) * self.step + self.size
        return functions.maximum(needed - self.n - self.pad, as_length(0))

    def elements(self, border: TensorVariable) -> TensorVariable:
        """How many elements each window has, of which ``border`` count at each end."""
        first = arange(self.total) * self.step - self.pad
        last = functions.minimum(first + self.size, self.n + border)
        return last - functions.maximum(first, -border)


def pool(
    input: TensorLike, ndim: int, ws: Sizes, ignore_border: bool | None, stride: Sizes, pad: Sizes,
    mode: PoolMode,
) -> TensorVariable:  # fmt: skip
    """`pool_2d` over the last ``ndim`` axes."""
    x = as_tensor_variable(input)
    if x.type.ndim < ndim:
        raise ValueError(f"Pooling takes at least {ndim} axes; {x} has {x.type.ndim}.")
    if mode not in get_args(PoolMode):
        raise ValueError(f"The mode is one of {', '.join(get_args(PoolMode))}; not {mode!r}.")
    axes = _windows(x, ndim, ws, bool(ignore_border), stride, pad)
    if mode.startswith("average"):
        x = cast(x, dtypes.float_of(x.type.dtype))
    if (not ignore_border and not all(w.is_exact for w in axes)) or any(
        _known(w.pad) for w in axes
    ):
        widths = [*[(0, 0)] * (x.type.ndim - ndim), *[(w.pad, w.after) for w in axes]]
        x = padded(x, widths, constant_values=_neutral(x.type.dtype, mode))
    for axis, w in enumerate(axes, x.type.ndim - ndim):
        windows = windows_along(x, axis, w.total, w.size, w.step)
        x = (
            max_over(windows, axis + 1)
            if mode == "max"
            else sum_over(windows, axis + 1, dtype=x.type.dtype)
        )
    if not mode.startswith("average"):
        return x
    for k, w in enumerate(axes):
        number = w.elements(w.pad if mode == "average_inc_pad" else as_length(0))
        x = x / dimshuffle(cast(number, x.type.dtype), 0, *["x"] * (ndim - 1 - k))
    return x


def _windows(
    x: TensorVariable, ndim: int, ws: Sizes, ignore_border: bool, stride: Sizes, pad: Sizes
) -> list[_Windows]:
    """The windows along each of the last axes; ValueError if parameters do not go together."""
    sizes = _sizes(ws, ndim, "ws")
    steps = sizes if stride is None else _sizes(stride, ndim, "stride")
    pads = _sizes(0 if pad is None else pad, ndim, "pad")
    if any(_known(n) < 1 for n in (*sizes, *steps)):
        raise ValueError(_POSITIVE)
    sizes = [positive(n, _POSITIVE) for n in sizes]
    steps = sizes if stride is None else [positive(n, _POSITIVE) for n in steps]
    if not ignore_border and any(_known(p) for p in pads):
        raise ValueError("pad needs ignore_border=True.")
    if any(_known(p) < 0 or _known(k) <= _known(p) < inf for p, k in zip(pads, sizes)):
        raise ValueError(_SHORT)
    pads = [
        required(p, _SHORT, functions.ge(p, 0), functions.lt(p, k))
        if _known(p) and inf in (_known(p), _known(k))
        else p
        for p, k in zip(pads, sizes)
    ]
    return [
        _Windows(n, k, s, p, _count(n + 2 * p, k, s, ignore_border))
        for n, k, s, p in zip(_lengths(x, ndim), sizes, steps, pads)
    ]


def _known(n: TensorVariable) -> float:
    """A length if it is known, else infinity."""
    data = getattr(n, "data", None)
    return inf if data is None else int(data)


def _count(
    n: TensorVariable, size: TensorVariable, step: TensorVariable, ignore_border: bool
) -> TensorVariable:
    """The number of windows along an axis."""
    zero = as_length(0)
    if ignore_border:
        return functions.maximum((n - size) // step + 1, zero)
    apart = (n - 1) // step + 1
    overlapping = functions.maximum((n - 1 - size + step) // step, zero) + 1
    return functions.switch(functions.ge(step, size), apart, overlapping)


def _neutral(dtype: str, mode: PoolMode) -> complex:
    """What changes no maximum, or no sum."""
    if mode != "max":
        return 0
    if dtypes.is_discrete(dtype):
        return 0 if dtype == "bool" else int(np.iinfo(dtype).min)
    return -inf
