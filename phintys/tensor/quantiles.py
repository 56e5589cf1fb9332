"""Statistics of sorted elements, covariance, and sums over grids: `median`, `quantile`, `cov`."""

from __future__ import annotations

from typing import Any, Literal

from phintys.config import config
from phintys.scalar import dtypes
from phintys.tensor.axes import expand_dims, moveaxis, transpose
from phintys.tensor.convert import as_tensor_variable, constant
from phintys.tensor.dot import dot
from phintys.tensor.elemwise import cast, conjugate, functions
from phintys.tensor.index import take
from phintys.tensor.join import concatenate
from phintys.tensor.ranges import arange
from phintys.tensor.reduce import keep_dims, normalize_axes
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.reshape import join_dims
from phintys.tensor.shape import length, normalize_axis_tuple
from phintys.tensor.sort import sort
from phintys.tensor.static import as_length
from phintys.tensor.variable import TensorConstant

__all__ = ["bartlett", "cov", "median", "percentile", "quantile", "trapezoid"]

Method = Literal["linear", "lower", "higher", "midpoint", "nearest"]

# ============================================================================= quantiles


def _sorted(x: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """``x`` as floats, the reduced axes joined into the last one and sorted; and these axes."""
    x = as_tensor_variable(x)
    if dtypes.is_complex(x.type.dtype):
        raise TypeError(f"Quantiles are not defined for complex numbers: {x} is {x.type}.")
    x = _as_floats(x)
    axes = normalize_axes(axis, x.type.ndim)
    last = moveaxis(x, axes, range(x.type.ndim - len(axes), x.type.ndim))
    return sort(join_dims(last, x.type.ndim - len(axes), len(axes)), -1), axes


def _as_floats(x: Any) -> Any:
    """``x``; integers and bools are converted to floatX, or to float64 where it is needed."""
    x = as_tensor_variable(x)
    if not dtypes.is_discrete(x.type.dtype):
        return x
    return cast(x, dtypes.upcast(x.type.dtype, config.floatX))


def median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The median over axes: the middle element, or the mean of the two in the middle.

    Parameters
    ----------
    x : real tensor; integers have a median of dtype floatX, or float64 where it is needed
    axis : axes to reduce over; None means all
    keepdims : keep the axes with length 1

    NaN if any element is NaN.  IndexError at run time for no elements.  The derivative with respect
    to two middle elements is 1/2 each, also if they are equal.

    >>> import phintys.tensor as pt
    >>> pt.median([[1.0, 5.0, 2.0], [4.0, 3.0, 9.0]], axis=1).eval()
    array([2., 4.])
    """
    ordered, axes = _sorted(x, axis)
    count = length(ordered, ordered.type.ndim - 1)
    high = count // 2
    low = functions.maximum(as_length(0), (count - 1) // 2)
    first, second = ordered[..., low], ordered[..., high]
    total = first + second  # the sum of two large numbers overflows
    middle = functions.switch(functions.isinf(total), first * 0.5 + second * 0.5, total * 0.5)
    found = _or_nan(cast(middle, ordered.type.dtype), ordered)
    return keep_dims(found, axes) if keepdims else found


def _or_nan(found: Any, ordered: Any) -> Any:
    """``found``, or NaN where the last of the sorted elements is NaN."""
    last = ordered[..., -1]
    return functions.switch(functions.isnan(last), last, found)


def quantile(
    a: Any, q: Any, axis: Any = None, method: Method = "linear", keepdims: bool = False
) -> Any:
    """The quantiles over axes: numbers that a fraction ``q`` of the elements does not exceed.

    Parameters
    ----------
    a : real tensor; integers are converted to floatX, or float64 where it is needed
    q : tensor of numbers between 0 and 1, whose axes come first in the result
    axis : axes to reduce over; None means all
    method : what is taken between two elements: ``"linear"`` interpolates, ``"lower"``,
        ``"higher"``, ``"midpoint"``, ``"nearest"`` (half way the one at an even position)
    keepdims : keep the axes with length 1

    NaN if any element is NaN.  ValueError for a constant ``q`` out of range; IndexError at run time
    for another one, and for no elements.

    >>> import phintys.tensor as pt
    >>> pt.quantile([1.0, 2.0, 4.0], [0.5, 0.75]).eval()
    array([2., 3.])
    """
    ordered, axes = _sorted(a, axis)
    last, q = ordered.type.ndim - 1, as_tensor_variable(q)
    if isinstance(q, TensorConstant) and not ((q.data >= 0) & (q.data <= 1)).all():
        raise ValueError(f"The fractions of quantiles are between 0 and 1, not {q.data.tolist()}.")
    q = cast(q, "float64")
    place = q * cast(length(ordered, last) - 1, "float64")
    low, high = functions.floor(place), functions.ceil(place)
    part = place - low
    if method == "nearest":
        low = high = functions.round_half_to_even(place)
    elif method in ("lower", "higher"):
        low, high = (low, low) if method == "lower" else (high, high)
    elif method == "midpoint":
        part = functions.switch(functions.eq(low, high), part, 0.5)
    elif method != "linear":
        raise ValueError(f"There is no method {method!r} of quantiles.")
    below, above = (take(ordered, _position(p, q), axis=last) for p in (low, high))
    # from the nearer end, as NumPy does, so that both ends are exact
    part, step = cast(part, ordered.type.dtype), above - below
    near = functions.switch(functions.ge(part, 0.5), above - step * (1 - part), below + step * part)
    # the difference of equal infinities is NaN
    is_infinite = functions.and_(functions.eq(below, above), functions.isinf(below))
    found = functions.switch(is_infinite, below, near)
    found = _or_nan_along(found, ordered, q.type.ndim)
    axes_of_q = range(last, last + q.type.ndim)
    found = moveaxis(found, tuple(axes_of_q), tuple(range(q.type.ndim)))
    return expand_dims(found, [q.type.ndim + k for k in axes]) if keepdims else found


def _position(place: Any, q: Any) -> Any:
    """A position as int64; one beyond all elements for a fraction that is negative or above 1."""
    valid = functions.and_(functions.ge(q, 0), functions.le(q, 1))
    return functions.switch(valid, cast(place, "int64"), constant(2**62, dtype="int64"))


def _or_nan_along(found: Any, ordered: Any, count: int) -> Any:
    """`_or_nan` for a result with ``count`` more axes."""
    last = ordered[..., -1]
    last = expand_dims(last, list(range(last.type.ndim, last.type.ndim + count)))
    return functions.switch(functions.isnan(last), last, found)


def percentile(
    a: Any, q: Any, axis: Any = None, method: Method = "linear", keepdims: bool = False
) -> Any:
    """`quantile` of ``q / 100``.

    >>> import phintys.tensor as pt
    >>> pt.percentile([1.0, 2.0, 4.0], 75).eval()
    array(3.)
    """
    q = as_tensor_variable(q)
    if isinstance(q, TensorConstant):
        return quantile(a, constant(q.data.astype("float64") / 100.0), axis, method, keepdims)
    return quantile(a, cast(q, "float64") / 100.0, axis, method, keepdims)


# ============================================================================ covariance


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    """The covariance matrix of variables, from observations.

    Parameters
    ----------
    m : matrix with one row for each variable and one column for each observation, or a vector of
        observations of one variable; if there is known to be only one variable, its variance is
        returned, a number
    y : more variables, in the form of ``m``
    rowvar : False: one column for each variable, one row for each observation
    bias : divide by the number of observations, not by that minus 1
    ddof : divide by the number minus ``ddof``; overrides ``bias``
    fweights : integer vector: how often each observation is repeated
    aweights : vector: relative weights of the observations

    ValueError for more than two dimensions, TypeError for repeats that are not integers.

    >>> import phintys.tensor as pt
    >>> pt.cov([[1.0, 2.0, 3.0], [2.0, 4.0, 0.0]]).eval()
    array([[ 1., -1.],
           [-1.,  4.]])
    """
    x = _observations(m, rowvar)
    if y is not None:
        x = concatenate([x, _observations(y, rowvar)], axis=0)
    dtype = dtypes.upcast(x.type.dtype, "float64")
    x = cast(x, dtype)
    if ddof is None:
        ddof = 0 if bias else 1
    ddof, weights = cast(as_length(ddof), "float64"), _weights(fweights, aweights)
    if weights is None:
        count = cast(length(x, 1), "float64")
        centred = weighted = x - sum_over(x, 1, keepdims=True) / count
        divisor = count - ddof
    else:
        total = sum_over(weights)
        centred = x - sum_over(x * weights, 1, keepdims=True) / total
        weighted = centred * weights
        lost = 1.0 if aweights is None else sum_over(weights * as_tensor_variable(aweights)) / total
        divisor = total - ddof * lost
    found = dot(centred, conjugate(transpose(weighted))) / functions.maximum(divisor, 0.0)
    return found[0, 0] if x.type.shape[0] == 1 else found


def _observations(m: Any, rowvar: bool) -> Any:
    """A matrix with one row for each variable."""
    m = as_tensor_variable(m)
    if m.type.ndim > 2:
        raise ValueError(f"cov takes vectors and matrices; {m} has {m.type.ndim} dimensions.")
    if m.type.ndim < 2:
        return expand_dims(m, list(range(2 - m.type.ndim)))
    return m if rowvar else transpose(m)


def _weights(fweights: Any, aweights: Any) -> Any:
    """The weights of observations as float64, or None."""
    given: list[Any] = []
    for w, discrete in ((fweights, True), (aweights, False)):
        if w is None:
            continue
        w = as_tensor_variable(w)
        if w.type.ndim != 1 or (discrete and w.type.dtype not in dtypes.INTEGER):
            kind = "an integer vector" if discrete else "a vector"
            raise TypeError(f"The weights of observations are {kind}; {w} is {w.type}.")
        given.append(cast(w, "float64"))
    return functions.mul(*given) if len(given) > 1 else given[0] if given else None


# ========================================================================= other weights


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : tensor of values of the function
    x : the points, a vector or a tensor that broadcasts against ``y`` along the other axes; None:
        evenly spaced
    dx : the distance of points that are evenly spaced
    axis : along which to integrate

    >>> import phintys.tensor as pt
    >>> pt.trapezoid([1.0, 2.0, 3.0], [0.0, 1.0, 3.0]).eval()
    array(6.5)
    """
    y = _as_floats(y)
    (axis,) = normalize_axis_tuple(axis, y.type.ndim)
    before = [slice(None)] * axis
    after, ahead = (*before, slice(None, -1)), (*before, slice(1, None))
    step = as_tensor_variable(dx) if x is None else _steps(_as_floats(x), y.type.ndim - axis)
    return sum_over(step * (y[ahead] + y[after]) / 2.0, axis)


def _steps(x: Any, place: int) -> Any:
    """The distances of points along the axis at ``place`` from the end; a vector lies along it."""
    if x.type.ndim == 1:
        return expand_dims(x[1:] - x[:-1], [*range(1, place)])
    (axis,) = normalize_axis_tuple(-place, x.type.ndim)
    before = [slice(None)] * axis
    return x[(*before, slice(1, None))] - x[(*before, slice(None, -1))]


def bartlett(M: Any) -> Any:
    """The Bartlett window of ``M`` points: a triangle with zeros at the ends, dtype float64.

    ``M`` is an integer; the window is empty if it is not positive, and ``[1.]`` for 1.  TypeError
    for other arguments.

    >>> import phintys.tensor as pt
    >>> pt.bartlett(5).eval()
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    points = as_tensor_variable(M)
    if points.type.ndim != 0 or points.type.dtype not in dtypes.INTEGER:
        raise TypeError(f"The number of points is an integer; {points} is {points.type}.")
    count = functions.maximum(as_length(points), 0)
    n, last = cast(arange(count), "float64"), cast(count - 1, "float64")
    half = functions.switch(functions.eq(count, 1), 1.0, last / 2.0)
    rising = functions.le(n, half)
    window = functions.switch(rising, n, last - n) / half
    return functions.switch(functions.eq(count, 1), cast(1.0, "float64"), window)
