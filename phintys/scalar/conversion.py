"""Conversion between dtypes, defined for every number and the same on every machine.

A float becomes an integer by truncation.  For NaN and for what does not fit, C leaves the result to
the processor; here it is what NumPy gives on x86-64:

    int64, int32        the least integer
    8 and 16 bits       the int32 of the number, and of it the lowest bits
    uint32              the int64 of the number, and of it the lowest bits
    uint64              the bits of the int64; from 2**63 on, those of x - 2**63 with the highest
                        bit inverted
    bool                whether the number is not 0

Integers keep their lowest bits.  A complex number becomes a real one by its real part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.scalar.dtypes import ALL
from phintys.scalar.native import VIA

_DTYPES = {name: np.dtype(name) for name in ALL}


def converted(x: np.ndarray, dtype: str) -> np.ndarray:
    """``x`` in another dtype; itself if it has that dtype.

    >>> converted(np.array([float("nan"), -1.5, 300.0]), "uint8")
    array([  0, 255,  44], dtype=uint8)
    """
    wanted = _DTYPES.get(dtype) or np.dtype(dtype)
    if x.dtype is wanted:
        return x
    if x.dtype == wanted:  # long long, for instance
        return x.view(wanted)
    source, target = x.dtype.kind, wanted.kind
    if source == "c" and target not in "cb":
        x = x.real
    with np.errstate(all="ignore"):
        if source in "fc" and target in "iu":
            return _to_integer(x, dtype)
        return x.astype(wanted, copy=False)


def _to_integer(x: np.ndarray, dtype: str) -> np.ndarray:
    x = x.astype(np.result_type(x.dtype, np.float32), copy=False)
    if dtype != "uint64":
        return _to_signed(x, VIA[dtype]).astype(dtype, copy=False)
    half = x.dtype.type(2.0**63)
    high = x >= half
    low = _to_signed(np.where(high, x - half, x), "int64").view("uint64")
    return np.where(high, low ^ np.uint64(2**63), low).view("uint64")


def _to_signed(x: np.ndarray, dtype: str) -> np.ndarray:
    """Truncated; the least integer for NaN and what does not fit."""
    limit = x.dtype.type(-float(np.iinfo(dtype).min))
    return np.where(np.abs(x) < limit, x, -limit).astype(dtype)


def convert_number(value: Any, dtype: str) -> Any:
    """A NumPy number in another dtype."""
    return converted(np.asarray(value), dtype)[()]
