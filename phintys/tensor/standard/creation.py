"""The creation functions of the array API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

import phintys.tensor as pt
from phintys.config import config
from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast
from phintys.tensor.standard.promotion import (
    as_array,
    check_device,
    complex_of,
    default_dtype,
    is_number,
)


def _own_or(dtype: Any, default: str) -> str:
    return default if dtype is None else dtypes.as_dtype(dtype)


def _typed(value: Any, dtype: str) -> Any:
    """A number as a tensor of a dtype; OverflowError for an integer that does not fit."""
    if isinstance(value, Variable):
        return cast(value, dtype)
    return as_tensor_variable(np.asarray(value, dtype))


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    """A variable, or nested sequences of numbers, as a tensor.

    Python floats have the dtype ``config.floatX``, integers int64.
    """
    check_device(device)
    if is_number(obj):
        return _typed(obj, _own_or(dtype, default_dtype(obj)))
    if isinstance(obj, Variable):
        return obj if dtype is None else cast(obj, dtype)
    found = as_tensor_variable(obj)
    if dtype is None and isinstance(obj, Sequence) and dtypes.is_float(found.type.dtype):
        dtype = config.floatX
    return found if dtype is None else cast(found, dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """An array of another library as a constant."""
    check_device(device)
    return as_tensor_variable(np.from_dlpack(x))


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Any:
    """``start, start + step, ...`` up to but not including ``stop``."""
    check_device(device)
    if stop is None:
        start, stop = 0, start
    given = [as_array(x) for x in (start, stop, step)]
    if dtype is None:
        discrete = all(dtypes.is_discrete(x.type.dtype) for x in given)
        dtype = "int64" if discrete else config.floatX
    return pt.arange(*given, dtype=dtype)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor whose elements are not initialised."""
    check_device(device)
    return pt.empty(shape, _own_or(dtype, config.floatX))


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor in the shape of ``x`` whose elements are not initialised."""
    check_device(device)
    return pt.empty_like(x, dtype)


def eye(
    n_rows: Any,
    n_cols: Any = None,
    /,
    *,
    k: Any = 0,
    dtype: Any = None,
    device: Any = None,
) -> Any:
    """A matrix with ones on the diagonal with offset ``k``."""
    check_device(device)
    return pt.eye(n_rows, n_cols, k, _own_or(dtype, config.floatX))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor filled with a value."""
    check_device(device)
    value = as_array(fill_value) if dtype is None else _typed(fill_value, dtypes.as_dtype(dtype))
    return pt.full(shape, value)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor in the shape of ``x`` filled with a value, in the dtype of ``x``."""
    check_device(device)
    x = as_tensor_variable(x)
    return pt.full_like(x, _typed(fill_value, _own_or(dtype, x.type.dtype)))


def linspace(
    start: Any,
    stop: Any,
    /,
    num: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Any:
    """``num`` evenly spaced numbers from ``start`` to ``stop``."""
    check_device(device)
    first, last = as_array(start), as_array(stop)
    is_complex = any(dtypes.is_complex(x.type.dtype) for x in (first, last))
    default = complex_of(config.floatX) if is_complex else config.floatX
    return pt.linspace(first, last, num, endpoint, dtype=_own_or(dtype, default))


def meshgrid(*arrays: Any, indexing: Literal["xy", "ij"] = "xy") -> list[Any]:
    """Coordinates of the points of a grid, one array for each vector.

    ValueError if the dtypes differ, or ``indexing`` is not "xy" or "ij".
    """
    vectors = [as_tensor_variable(x) for x in arrays]
    if len({x.type.dtype for x in vectors}) > 1:
        raise ValueError("The arrays of meshgrid have one dtype.")
    return pt.meshgrid(*vectors, indexing=indexing)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of ones."""
    check_device(device)
    return pt.ones(shape, _own_or(dtype, config.floatX))


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones in the shape of ``x``."""
    check_device(device)
    return pt.ones_like(x, dtype)


def tril(x: Any, /, *, k: Any = 0) -> Any:
    """The matrices ``x`` with zeros above the diagonal with offset ``k``."""
    return pt.tril(x, k)


def triu(x: Any, /, *, k: Any = 0) -> Any:
    """The matrices ``x`` with zeros below the diagonal with offset ``k``."""
    return pt.triu(x, k)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of zeros."""
    check_device(device)
    return pt.zeros(shape, _own_or(dtype, config.floatX))


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros in the shape of ``x``."""
    check_device(device)
    return pt.zeros_like(x, dtype)


__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip
