"""`safe_asarray`, also under the name that Aesara gave it."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.scalar import dtypes

__all__ = ["safe_asarray"]


def safe_asarray(a: Any, dtype: Any = None, order: Any = None) -> np.ndarray:
    """``np.asarray`` with a dtype of this package's names: ``"floatX"`` is one of them.

    >>> safe_asarray([1, 2], dtype="floatX")
    array([1., 2.])
    """
    return np.asarray(a, dtype=None if dtype is None else dtypes.as_dtype(dtype), order=order)


_asarray = safe_asarray
