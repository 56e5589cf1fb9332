"""Mean, variance, norm and other statistics, composed of reductions."""

from __future__ import annotations

import numpy as np

from phintys.scalar import dtypes
from phintys.tensor.aliases import Axis, DTypeLike, Length, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.reduce import max as max_over
from phintys.tensor.reduce import min as min_over
from phintys.tensor.reduce import normalize_axes
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.shape import length, product
from phintys.tensor.variable import TensorVariable

__all__ = ["mean", "ptp", "std", "var"]


def _count(x: TensorVariable, axis: Axis) -> TensorVariable:
    """The number of elements per result of a reduction over ``axis``, as float64."""
    axes = normalize_axes(axis, x.type.ndim)
    return cast(product([length(x, i) for i in axes]), "float64")


def mean(
    input: TensorLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    acc_dtype: DTypeLike | None = None,
) -> TensorVariable:
    """The mean over axes.

    Parameters
    ----------
    input : tensor; integers are cast to float64 and have a float64 mean; float16 sums as float32
    axis : axes to reduce over; None means all
    dtype : in which the sum is computed, see `sum`
    keepdims : keep the axes with length 1
    acc_dtype : of the accumulator

    >>> import phintys.tensor as pt
    >>> pt.mean([[1.0, 2.0], [3.0, 4.0]], axis=0).eval()
    array([2., 3.])
    """
    x = as_tensor_variable(input)
    if dtype is None and acc_dtype is None and dtypes.is_discrete(x.type.dtype):
        x = cast(x, "float64")  # a sum of integers may wrap around where the mean fits
    wide = "float32" if x.type.dtype == "float16" else None
    total = sum_over(x, axis, dtype or wide, keepdims, acc_dtype)
    result = x.type.dtype if dtype is None and wide else dtypes.float_of(total.type.dtype)
    return cast(total / _count(x, axis), result)


def var(
    input: TensorLike,
    axis: Axis = None,
    ddof: Length = 0,
    keepdims: bool = False,
    corrected: bool = False,
) -> TensorVariable:
    """The variance over axes, computed from the differences to the mean.

    Parameters
    ----------
    input : tensor; complex tensors have a real variance
    axis : axes to reduce over; None means all
    ddof : the divisor is the number of elements minus ``ddof``
    keepdims : keep the axes with length 1
    corrected : subtract the squared mean of the differences, which is not 0 because of rounding

    >>> import phintys.tensor as pt
    >>> pt.var([1.0, 2.0, 3.0], ddof=1).eval()
    array(1.)
    """
    x = as_tensor_variable(input)
    centred = x - mean(x, axis, keepdims=True)
    count = _count(x, axis)
    divisor = count - cast(as_tensor_variable(ddof), "float64")
    squares = functions.sqr(functions.abs(centred)) if _is_complex(x) else functions.sqr(centred)
    total = sum_over(squares, axis, keepdims=keepdims)
    if corrected:
        rest = sum_over(centred, axis, keepdims=keepdims)
        rest = functions.sqr(functions.abs(rest)) if _is_complex(x) else functions.sqr(rest)
        total = functions.maximum(total - cast(rest / count, total.type.dtype), 0)
    return cast(total / divisor, total.type.dtype)


def _is_complex(x: TensorVariable) -> bool:
    return dtypes.is_complex(x.type.dtype)


def std(
    input: TensorLike,
    axis: Axis = None,
    ddof: Length = 0,
    keepdims: bool = False,
    corrected: bool = False,
) -> TensorVariable:
    """The standard deviation over axes; parameters as of `var`."""
    return functions.sqrt(var(input, axis, ddof, keepdims, corrected))


def ptp(a: TensorLike, axis: Axis = None) -> TensorVariable:
    """The range over axes: the greatest element minus the smallest."""
    a = as_tensor_variable(a)
    return max_over(a, axis) - min_over(a, axis)


def norm(
    x: TensorLike, L: float | TensorVariable, axis: Axis = None, keepdims: bool = False
) -> TensorVariable:
    """The norm over axes: ``(sum |x|^L)^(1/L)``.

    ``L`` may be inf (the greatest absolute value) and 0 (the number of nonzero elements).

    >>> import phintys.tensor as pt
    >>> pt.as_tensor([3.0, 4.0]).norm(2).eval()
    array(5.)
    """
    x = as_tensor_variable(x)
    if isinstance(L, int | float | np.number):
        if L == 0:
            dtype = dtypes.real_of(dtypes.float_of(x.type.dtype))
            return sum_over(cast(functions.neq(x, 0), dtype), axis, keepdims=keepdims)
        if np.inf == L:
            return max_over(functions.abs(x), axis, keepdims, initial=0)
        if -np.inf == L:
            return min_over(functions.abs(x), axis, keepdims)
        if L == 1:
            return sum_over(functions.abs(x), axis, keepdims=keepdims)
        if L == 2 and dtypes.is_float(x.type.dtype):
            return functions.sqrt(sum_over(functions.sqr(x), axis, keepdims=keepdims))
    powers = sum_over(functions.pow(functions.abs(x), L), axis, keepdims=keepdims)
    if isinstance(L, int | float | np.number):
        return functions.pow(powers, np.asarray(1.0 / L, dtypes.float_of(powers.type.dtype)))
    return functions.pow(powers, 1.0 / L)
