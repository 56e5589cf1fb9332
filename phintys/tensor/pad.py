"""Padding: `pad`, in all of NumPy's modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from phintys.scalar import dtypes
from phintys.tensor.axes import expand_dims
from phintys.tensor.convert import as_tensor_variable, constant
from phintys.tensor.creation import alloc
from phintys.tensor.elemwise import cast, dimshuffle, functions
from phintys.tensor.grids import ix_
from phintys.tensor.index import getitem, set_subtensor
from phintys.tensor.join import concatenate
from phintys.tensor.lengths import checked_lengths
from phintys.tensor.quantiles import median
from phintys.tensor.ranges import arange
from phintys.tensor.reduce import max as max_over
from phintys.tensor.reduce import min as min_over
from phintys.tensor.shape import length, shape_tuple
from phintys.tensor.static import as_length, known_length
from phintys.tensor.statistics import mean
from phintys.tensor.variable import TensorVariable

__all__ = ["pad"]

PadMode = Literal[
    "constant", "edge", "linear_ramp", "maximum", "minimum", "mean", "median", "wrap",
    "symmetric", "reflect",
]  # fmt: skip
Pair = tuple[Any, Any]
#: the modes that pad with a statistic of the elements along an axis
STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": max_over, "minimum": min_over, "mean": mean, "median": median,
}  # fmt: skip


def pad(
    x: Any,
    pad_width: Any,
    mode: PadMode = "constant",
    *,
    constant_values: Any = None,
    end_values: Any = None,
    stat_length: Any = None,
    reflect_type: Literal["even", "odd"] | None = None,
) -> Any:
    """``x`` with elements added before and after those of each axis, like ``numpy.pad``.

    Parameters
    ----------
    x : tensor
    pad_width : the numbers of elements: one for all, ``(before, after)`` for all axes, or such a
        pair for each axis; integers, integer variables, or a tensor whose shape is known
    mode : what is added:

        ========================= ============================================================
        constant                  ``constant_values``, 0 by default
        edge                      the first and the last element
        linear_ramp               a ramp from ``end_values``, 0 by default, to the edge; integers
                                  are rounded down, bools are true where it is not 0
        maximum minimum mean      the statistic of all elements along the axis, or of the first and
        median                    the last ``stat_length``; rounded if the dtype is an integer, and
                                  for bools True unless it is 0
        wrap                      the elements from the other end
        symmetric                 the elements in reverse order
        reflect                   the same without the edge
        ========================= ============================================================
    constant_values, end_values, stat_length : in the forms of ``pad_width``
    reflect_type : ``"odd"``: twice the edge minus the mirrored elements

    Later axes are padded after earlier ones.

    Raises
    ------
    TypeError for widths or lengths that are no integers.  ValueError for another mode, arguments of
    other modes, negative widths, or wrong numbers of pairs.  ShapeError at run time for negative
    widths, IndexError if elements of an empty axis are needed.

    >>> import phintys.tensor as pt
    >>> pt.pad([1, 2, 3], (1, 2)).eval()
    array([0, 1, 2, 3, 0, 0])
    >>> pt.pad([1, 2, 3], 2, mode="reflect").eval()
    array([3, 2, 1, 2, 3, 2, 1])
    """
    if mode not in get_args(PadMode):
        raise ValueError(f"There is no mode {mode!r} of pad; choose from {get_args(PadMode)}.")
    given = {
        "constant_values": (constant_values, ("constant",)),
        "end_values": (end_values, ("linear_ramp",)),
        "stat_length": (stat_length, tuple(STATISTICS)),
        "reflect_type": (reflect_type, ("symmetric", "reflect")),
    }
    for name, (value, modes) in given.items():
        if value is not None and mode not in modes:
            raise ValueError(f"{name} is an argument of the modes {modes}, not of {mode!r}.")
    x = as_tensor_variable(x)
    widths = [_widths(p) for p in _pairs(pad_width, x.type.ndim, "pad_width")]
    if mode == "constant":
        return _constant(x, widths, constant_values)
    if mode == "linear_ramp":
        ends = _pairs(0 if end_values is None else end_values, x.type.ndim, "end_values")
        return _along_axes(x, widths, lambda x, axis, w: _ramp(x, axis, w, ends[axis]))
    if mode in STATISTICS:
        lengths = _pairs(stat_length, x.type.ndim, "stat_length")
        return _along_axes(x, widths, lambda x, axis, w: _flat(x, axis, w, mode, lengths[axis]))
    if reflect_type == "odd":
        return _along_axes(x, widths, lambda x, axis, w: _odd(x, axis, w, mode))
    if reflect_type not in (None, "even"):
        raise ValueError(f"reflect_type is 'even' or 'odd', not {reflect_type!r}.")
    if not x.type.ndim:
        return x
    ranges = [(_padded_range(x, axis, w), length(x, axis)) for axis, w in enumerate(widths)]
    return x[ix_(*(_positions(places, n, mode)[0] for places, n in ranges))]


# ============================================================================= arguments


def _pairs(value: Any, ndim: int, name: str) -> list[Pair]:
    """An argument as one pair for each axis."""
    rows = _listed(value)
    if rows is None:
        rows = [[value]]
    elif all(_listed(v) is None for v in rows):
        rows = [rows]
    else:
        rows = [_listed(row) or [row] for row in rows]
    if len(rows) not in (1, ndim) or any(len(row) not in (1, 2) for row in rows):
        raise ValueError(f"{name} is a number, a pair, or a pair for each of {ndim} axes: {value}.")
    rows = rows * ndim if len(rows) != ndim else rows
    return [(row[0], row[-1]) for row in rows]


def _listed(value: Any) -> list[Any] | None:
    """The items of a sequence, or of a tensor with at least one axis; else None."""
    if isinstance(value, TensorVariable):
        count = value.type.shape[0] if value.type.ndim else 0
        if count is None:
            raise ValueError(f"The shape of {value} must be known: {value.type}.")
        return [getitem(value, k) for k in range(count)] if value.type.ndim else None
    return list(value) if isinstance(value, Sequence) or np.ndim(value) else None


def _widths(pair: Pair) -> Pair:
    """The numbers of elements before and after, as int64 variables that are not negative."""
    for n in pair:
        known = known_length(as_length(n))
        if known is not None and known < 0:
            raise ValueError(f"pad_width has no negative numbers, got {known}.")
    before, after = (checked_lengths([as_length(n)])[0] for n in pair)
    return before, after


def _along_axes(x: Any, widths: Sequence[Pair], pad_axis: Callable[..., Any]) -> Any:
    for axis, pair in enumerate(widths):
        if any(known_length(n) != 0 for n in pair):
            x = pad_axis(x, axis, pair)
    return x


def _spread(values: Any, x: Any, axis: int, count: Any) -> Any:
    """``values`` broadcast to the shape of ``x`` with another length along an axis."""
    lengths = list(shape_tuple(x))
    lengths[axis] = count
    return alloc(values, *lengths)


def _within(x: Any, axis: int, part: slice) -> Any:
    """A part of ``x`` along an axis."""
    return x[(*[slice(None)] * axis, part)]


# ================================================================================= modes


def _constant(x: Any, widths: Sequence[Pair], constant_values: Any) -> Any:
    given = 0 if constant_values is None else constant_values
    numbers = _pairs(given, x.type.ndim, "constant_values")
    numbers = [tuple(cast(as_tensor_variable(v), x.type.dtype) for v in pair) for pair in numbers]
    if _listed(given) is None:
        shape = [n + before + after for n, (before, after) in zip(shape_tuple(x), widths)]
        inside = [slice(b, b + n) for n, (b, _) in zip(shape_tuple(x), widths)]
        value = cast(as_tensor_variable(given), x.type.dtype)
        return set_subtensor(alloc(value, *shape)[tuple(inside)], x) if inside else x

    def pad_axis(x: Any, axis: int, pair: Pair) -> Any:
        ones = ["x"] * x.type.ndim
        values = [dimshuffle(v, ones) for v in numbers[axis]]
        parts = [_spread(v, x, axis, n) for v, n in zip(values, pair)]
        return concatenate([parts[0], x, parts[1]], axis)

    return _along_axes(x, widths, pad_axis)


def _edges(x: Any, axis: int) -> Pair:
    """The first and the last element along an axis, which is dropped."""
    before = [slice(None)] * axis
    return x[(*before, 0)], x[(*before, -1)]


def _ramp(x: Any, axis: int, widths: Pair, ends: Pair) -> Any:
    parts: list[Any] = []
    for edge, end, count in zip(_edges(x, axis), map(as_tensor_variable, ends), widths):
        i = dimshuffle(arange(count), ["x"] * axis + [0] + ["x"] * (x.type.ndim - axis - 1))
        size = functions.maximum(count, as_length(1))
        ramp = _line(end, expand_dims(edge, axis), i, size, x.type.dtype)
        parts.append(cast(ramp, x.type.dtype))
    backwards = _within(parts[1], axis, slice(None, None, -1))
    return concatenate([parts[0], x, backwards], axis)


def _line(start: Any, stop: Any, i: Any, size: Any, dtype: str) -> Any:
    """Numbers on the line from ``start`` to ``stop``, after ``i`` of ``size`` steps.

    If the dtype is an integer they are rounded down; exactly, unless ``start`` and ``stop`` are too
    far apart for int64, or one of them is a float or uint64.
    """
    given = {dtype, start.type.dtype}
    is_integer = dtype in dtypes.INTEGER
    if not is_integer or "uint64" in given or not all(map(dtypes.is_discrete, given)):
        wide = dtypes.upcast(dtype, "float64")
        start, stop = cast(start, wide), cast(stop, wide)
        line = start + (stop - start) / size * i
        return functions.floor(line) if is_integer else line
    start, stop = cast(start, "int64"), cast(stop, "int64")
    whole, rest = (stop - start) // size, (stop - start) % size
    return start + whole * i + rest * i // size  # (stop - start) * i may overflow


def _flat(x: Any, axis: int, widths: Pair, mode: str, lengths: Pair) -> Any:
    n = length(x, axis)
    parts: list[Any] = []
    for count, taken, at_end in zip(widths, lengths, (False, True)):
        part = x
        if taken is not None:
            (taken,) = checked_lengths([as_length(taken)])
            taken = functions.minimum(taken, n)
            part = _within(x, axis, slice(n - taken, None) if at_end else slice(None, taken))
        found = STATISTICS[mode](part, axis=axis, keepdims=True)
        if x.type.dtype in dtypes.INTEGER and mode in ("mean", "median"):
            found = functions.round_half_to_even(found)
        parts.append(_spread(cast(found, x.type.dtype), x, axis, count))
    return concatenate([parts[0], x, parts[1]], axis)


def _padded_range(x: Any, axis: int, widths: Pair) -> Any:
    """The positions of the padded axis, counted from its first element in ``x``."""
    return arange(-widths[0], length(x, axis) + widths[1])


def _positions(places: Any, n: Any, mode: str) -> tuple[Any, Any, Any]:
    """The positions of elements of an axis of length ``n``, repeated in both directions.

    Also whether an element is mirrored, and the number of the period it is in.
    """
    if mode == "edge":
        return functions.clip(places, 0, n - 1), None, None
    if mode == "wrap":
        return functions.mod(places, n), None, None
    if mode == "symmetric":
        period, half, back = 2 * n, n, 2 * n - 1
    else:
        half = functions.maximum(n - 1, as_length(1))
        period = back = 2 * half
    rest = functions.mod(places, period)
    mirrored = functions.ge(rest, half) if mode == "symmetric" else functions.gt(rest, half)
    found = functions.switch(mirrored, back - rest, rest)
    return functions.minimum(found, n - 1), mirrored, functions.int_div(places, period)


def _odd(x: Any, axis: int, widths: Pair, mode: str) -> Any:
    """Elements mirrored in the point of the edge, so that slopes continue."""
    places = _padded_range(x, axis, widths)
    found, mirrored, number = _positions(places, length(x, axis), mode)
    order = ["x"] * axis + [0] + ["x"] * (x.type.ndim - axis - 1)
    mirrored, number = dimshuffle(mirrored, order), dimshuffle(number, order)
    values = x[(*[slice(None)] * axis, found)]
    first, last = (expand_dims(v, axis) for v in _edges(x, axis))
    two = constant(2, dtype=x.type.dtype)
    values = functions.switch(mirrored, two * last - values, values)
    rise = two * cast(number, x.type.dtype) * (last - first)
    return cast(functions.switch(functions.eq(number, 0), values, values + rise), x.type.dtype)
