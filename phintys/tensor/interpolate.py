"""Interpolation between given points: `interp`, `interpolate1d`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from phintys.config import config
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.join import concatenate
from phintys.tensor.search import searchsorted
from phintys.tensor.shape import length, specify_shape
from phintys.tensor.sort import argsort
from phintys.tensor.static import as_length

__all__ = ["interp", "interpolate1d"]

InterpolationMethod = Literal["linear", "nearest", "first", "last", "mean"]
valid_methods = get_args(InterpolationMethod)


def _points(x: Any, y: Any) -> tuple[Any, Any]:
    """Points and values as vectors of a floating dtype and of one length (checked)."""
    found: list[Any] = []
    for v in map(as_tensor_variable, (x, y)):
        if v.type.ndim != 1:
            raise ValueError(f"Points and values are vectors; {v} has type {v.type}.")
        found.append(cast(v, dtypes.upcast(v.type.dtype, config.floatX)))
    return found[0], specify_shape(found[1], [length(found[0], 0)])


def _line(x: Any, xp: Any, fp: Any, left: Any) -> Any:
    """Values at ``x`` on the lines through the points ``left`` and the ones after them.

    The last point has a horizontal line.  Where infinities make the value NaN, it is that of the
    point ``left`` if ``x`` is there, else computed from the point on the right, as in NumPy.
    """
    right = functions.minimum(left + 1, length(xp, 0) - 1)
    (x0, f0), (x1, f1) = ((xp[k], fp[k]) for k in (left, right))
    gap = functions.switch(functions.eq(x0, x1), cast(1, xp.type.dtype), x1 - x0)
    slope = (f1 - f0) / gap
    from_left, from_right = f0 + slope * (x - x0), f1 + slope * (x - x1)
    is_flat = functions.and_(functions.isnan(from_right), functions.eq(f0, f1))
    limit = functions.switch(functions.or_(functions.eq(x, x0), is_flat), f0, from_right)
    undefined = functions.and_(functions.isnan(from_left), functions.eq(x, x))
    return functions.switch(undefined, limit, from_left)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Linear interpolation between points, like ``numpy.interp``.

    Parameters
    ----------
    x : tensor of the places
    xp, fp : vectors of points, ascending unless there is a period, and of the values there
    left, right : the values before the first and after the last point; None: those at these points
    period : the period of ``x``; ``left`` and ``right`` are not used then

    ValueError if ``xp`` or ``fp`` is not a vector; ShapeError if their lengths differ, at run time
    if they are not known before.  IndexError at run time for no points.

    The derivative with respect to ``x`` at a point is the slope of the line on its right.

    >>> import phintys.tensor as pt
    >>> pt.interp([0.5, 1.25, 3.0], [0.0, 1.0, 2.0], [3.0, 5.0, 4.0]).eval()
    array([4.  , 4.75, 4.  ])
    """
    x = as_tensor_variable(x)
    x = cast(x, dtypes.upcast(x.type.dtype, config.floatX))
    xp, fp = _points(xp, fp)
    if period is not None:
        period = functions.abs(cast(as_tensor_variable(period), xp.type.dtype))
        x, xp, left, right = functions.mod(x, period), functions.mod(xp, period), None, None
        order = argsort(xp, stable=True)
        xp, fp = xp[order], fp[order]
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    last = length(xp, 0) - 1
    place = functions.clip(searchsorted(xp, x, side="right") - 1, as_length(0), last)
    found = _line(x, xp, fp, place)
    before = fp[0] if left is None else as_tensor_variable(left)
    after = fp[-1] if right is None else as_tensor_variable(right)
    found = functions.switch(functions.gt(x, xp[-1]), after, found)
    return functions.switch(functions.lt(x, xp[0]), before, found)


def interpolate1d(
    x: Any,
    y: Any,
    method: InterpolationMethod = "linear",
    left_pad: Any = None,
    right_pad: Any = None,
    extrapolate: bool = True,
) -> Callable[[Any], Any]:
    """A function that interpolates between points.

    Parameters
    ----------
    x, y : vectors of ascending points and of the values there
    method : between two points: ``"linear"``, the value of the ``"nearest"`` (of the first one half
        way), of the ``"first"`` or the ``"last"`` of the two, or their ``"mean"``; a point belongs
        to the interval before it
    left_pad, right_pad : without extrapolation, the values up to the first (included) and after the
        last point; None: the values at these points
    extrapolate : outside the points, use the first or the last interval, for the methods
        ``"linear"`` and ``"mean"``, or the first or the last value

    ValueError for another method, or if the points are not vectors; ShapeError if there are more or
    fewer values than points, at run time if that is not known before.

    >>> import phintys.tensor as pt
    >>> f = pt.interpolate1d([0.0, 1.0, 2.0], [3.0, 5.0, 4.0])
    >>> f([-1.0, 0.5, 3.0]).eval()
    array([1., 4., 3.])
    """
    if method not in valid_methods:
        raise ValueError(f"There is no method {method!r} of interpolation: {valid_methods}.")
    xp, fp = _points(x, y)

    def interpolated(x_hat: Any) -> Any:
        x_hat = as_tensor_variable(x_hat)
        x_hat = cast(x_hat, dtypes.upcast(x_hat.type.dtype, config.floatX))
        place, count = searchsorted(xp, x_hat), length(xp, 0)
        found = _between(x_hat, xp, fp, place, method)
        if extrapolate:
            return found
        before = fp[0] if left_pad is None else as_tensor_variable(left_pad)
        after = fp[-1] if right_pad is None else as_tensor_variable(right_pad)
        found = functions.switch(functions.eq(place, count), after, found)
        return functions.switch(functions.eq(place, 0), before, found)

    return interpolated


def _between(x: Any, xp: Any, fp: Any, place: Any, method: str) -> Any:
    """The interpolated values; ``place`` is the position of the first point not less than ``x``."""
    zero, last = as_length(0), length(xp, 0) - 1
    first, second = functions.maximum(place - 1, zero), functions.minimum(place, last)
    if method in ("first", "last"):
        return fp[first if method == "first" else second]
    if method == "nearest":
        is_first = functions.le(x - xp[first], xp[second] - x)
        return fp[functions.switch(is_first, first, second)]
    first = functions.minimum(first, functions.maximum(last - 1, zero))
    if method == "linear":
        return _line(x, xp, fp, first)
    return (fp[first] + fp[functions.minimum(first + 1, last)]) / 2.0
