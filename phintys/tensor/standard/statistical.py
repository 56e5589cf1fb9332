"""The statistical and utility functions of the array API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import phintys.tensor as pt
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast
from phintys.tensor.reduce import minimum_node
from phintys.tensor.shape import shape_tuple
from phintys.tensor.standard.manipulation import concat


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether all elements over axes are true."""
    return pt.all(x, axis, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether any element over axes is true."""
    return pt.any(x, axis, keepdims)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The greatest element over axes."""
    return pt.max(x, axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The smallest element over axes."""
    return minimum_node(x, axis, keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean over axes."""
    return pt.mean(x, axis, keepdims=keepdims)


def var(x: Any, /, *, axis: Any = None, correction: Any = 0.0, keepdims: bool = False) -> Any:
    """The variance over axes; the divisor is the number of elements minus ``correction``."""
    return pt.var(x, axis, correction, keepdims)


def std(x: Any, /, *, axis: Any = None, correction: Any = 0.0, keepdims: bool = False) -> Any:
    """The standard deviation over axes; the divisor is as of `var`."""
    return pt.std(x, axis, correction, keepdims)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum over axes; 64 bit for integers, unless a dtype is given."""
    x = as_tensor_variable(x)
    wanted = dtypes.total_of(x.type.dtype) if dtype is None else dtype
    return pt.sum(cast(x, wanted), axis, wanted, keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product over axes; 64 bit for integers, unless a dtype is given."""
    x = as_tensor_variable(x)
    wanted = dtypes.total_of(x.type.dtype) if dtype is None else dtype
    return pt.prod(cast(x, wanted), axis, wanted, keepdims)


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Sums of the first elements along an axis; from 0 on, if ``include_initial``."""
    return _cumulative(pt.cumsum, pt.zeros, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Products of the first elements along an axis; from 1 on, if ``include_initial``."""
    return _cumulative(pt.cumprod, pt.ones, x, axis, dtype, include_initial)


def _cumulative(
    function: Callable[..., Any],
    initial: Callable[..., Any],
    x: Any,
    axis: Any,
    dtype: Any,
    include_initial: bool,
) -> Any:
    x = as_tensor_variable(x)
    if axis is None:
        if x.type.ndim != 1:
            raise ValueError(f"{x} has {x.type.ndim} axes: the argument axis is needed.")
        axis = 0
    x = cast(x, dtypes.total_of(x.type.dtype) if dtype is None else dtype)
    found = cast(function(x, axis), x.type.dtype)
    if not include_initial:
        return found
    first = [1 if a == axis % x.type.ndim else n for a, n in enumerate(shape_tuple(x))]
    return concat([initial(first, x.type.dtype), found], axis=axis)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of adjacent elements along an axis, ``n`` times.

    ``prepend`` and ``append`` are joined to ``x`` first.
    """
    parts = [part for part in (prepend, x, append) if part is not None]
    return pt.diff(concat(parts, axis=axis) if len(parts) > 1 else x, n, axis)


__all__ = [
    "all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std",
    "sum", "var",
]  # fmt: skip
