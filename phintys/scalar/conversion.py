"""Conversion between dtypes, defined for every value and equal on all machines.

A float is converted to an integer by truncation.  For NaN and for values out of range the result is
undefined in C; here it is that of NumPy on x86-64:

    int64, int32        the least integer
    8 and 16 bits       the lowest bits of the value converted to int32
    uint32              the lowest bits of the value converted to int64
    uint64              the bits of the value converted to int64; from 2**63 on, the bits of
                        x - 2**63 converted to int64, with the highest bit inverted
    bool                whether the value is not 0

An integer is converted to a smaller one by its lowest bits, a complex number to a real one by its
real part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.scalar.dtypes import ALL
from phintys.scalar.native import VIA

_DTYPES = {name: np.dtype(name) for name in ALL}


def converted(x: np.ndarray, dtype: str) -> np.ndarray:
    """``x`` converted to a dtype; itself if it has that dtype.

    >>> converted(np.array([float("nan"), -1.5, 300.0]), "uint8")
    array([  0, 255,  44], dtype=uint8)
    """
    wanted = _DTYPES.get(dtype) or np.dtype(dtype)
    if x.dtype is wanted:
        return x
    if x.dtype == wanted:  # an equal dtype, such as long long for long
        return x.view(wanted)
    source, target = x.dtype.kind, wanted.kind
    if source == "c" and target not in "cb":
        x = np.real(x)
    with np.errstate(all="ignore"):
        if source in "fc" and target in "iu":
            return _to_integer(x, dtype)
        return x.astype(wanted, copy=False)


def _to_integer(x: np.ndarray, dtype: str) -> np.ndarray:
    """A float array as integers."""
    x = x.astype(np.result_type(x.dtype, np.float32), copy=False)
    if dtype != "uint64":
        return _to_signed(x, VIA[dtype]).astype(dtype, copy=False)
    half = x.dtype.type(2.0**63)
    high = x >= half
    low = _to_signed(np.where(high, x - half, x), "int64").view("uint64")
    return np.where(high, low ^ np.uint64(2**63), low).view("uint64")


def _to_signed(x: np.ndarray, dtype: str) -> np.ndarray:
    """A float array as int32 or int64; the least integer for NaN and values out of range."""
    limit = x.dtype.type(-float(np.iinfo(dtype).min))
    return np.where(np.abs(x) < limit, x, -limit).astype(dtype)


def convert_number(value: Any, dtype: str) -> Any:
    """A number as a NumPy scalar of a dtype."""
    return converted(np.asarray(value), dtype)[()]
