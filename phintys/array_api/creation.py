"""Arrays from Python objects, from NumPy's arrays and from those of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.array_api.array import Array
from phintys.array_api.evaluation import eager
from phintys.config import config
from phintys.scalar import dtypes
from phintys.scalar.conversion import converted
from phintys.tensor import standard
from phintys.tensor.standard.promotion import check_device, complex_of, default_dtype, is_number


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Array:
    """An array of a number, of nested sequences of numbers, or of another array.

    Parameters
    ----------
    obj
        a number, a nested sequence, an `Array`, or what ``numpy.asarray`` accepts
    dtype
        of the result; None: that of the numbers (bool, int64, ``config.floatX`` or its complex
        dtype), or of the array
    device
        None or ``"cpu"``
    copy
        True: always copy; False: never, ValueError if that is not possible; None: if needed

    >>> asarray([1, 2])
    Array([1, 2], dtype=int64)
    """
    check_device(device)
    if is_number(obj) or isinstance(obj, list | tuple):
        found = _from_numbers(obj, None if dtype is None else dtypes.as_dtype(dtype))
        if copy is False:
            raise ValueError("Python objects cannot become an array without a copy.")
        return Array.of(found)
    given = obj.value if isinstance(obj, Array) else np.asarray(obj)
    found = converted(given, dtypes.as_dtype(given.dtype if dtype is None else dtype))
    if copy is False and found is not given:
        raise ValueError(f"An array of {given.dtype} cannot become {found.dtype} without a copy.")
    return Array.of(found.copy() if copy and found is given else found)


def _from_numbers(obj: Any, dtype: str | None) -> np.ndarray:
    """A number or nested sequence as a NumPy array; floats have the dtype floatX by default."""
    if dtype is None and is_number(obj):
        dtype = default_dtype(obj)
    if dtype is not None:
        return np.asarray(obj, dtype)
    found = np.asarray(obj)
    default = {"f": config.floatX, "c": complex_of(config.floatX), "i": "int64"}
    if found.size == 0 and not _contains_arrays(obj):
        return found.astype(config.floatX)
    if not _contains_arrays(obj):
        return found.astype(default.get(found.dtype.kind, found.dtype.name), copy=False)
    return found


def _contains_arrays(obj: Any) -> bool:
    """Whether a nested sequence contains arrays or NumPy scalars, which have dtypes."""
    stack = [obj]
    while stack:
        item = stack.pop()
        if isinstance(item, list | tuple):
            stack.extend(item)
        elif not is_number(item):
            return True
    return False


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library, through DLPack; it shares memory unless ``copy`` is True."""
    check_device(device)
    return asarray(np.from_dlpack(x), copy=copy or None)


_full = eager(standard.full, ["shape"])
_full_like = eager(standard.full_like)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array filled with a number."""
    return _full(shape, asarray(fill_value, dtype=dtype), device=device)


def full_like(x: Array, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array in the shape of ``x`` filled with a number, in the dtype of ``x``."""
    wanted = x.dtype if dtype is None else dtype
    return _full_like(x, asarray(fill_value, dtype=wanted), dtype=wanted, device=device)
