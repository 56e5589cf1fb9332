"""Values that come from outside, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_array(x: Any) -> np.ndarray:
    """``x`` as an array of NumPy's own class; TypeError for masked arrays.

    >>> as_array(np.rec.fromarrays([[1, 2]]).f0)
    array([1, 2])
    """
    if type(x) is not np.ndarray and _is_masked(x):
        raise TypeError(
            "Masked arrays are not supported: the mask would be lost. Pass x.filled(value), or the "
            "data and the mask as two arrays (np.ma.getdata(x), np.ma.getmaskarray(x)) and combine "
            "them with where."
        )
    return np.asarray(x)


def _is_masked(x: Any) -> bool:
    """Whether ``x`` is a masked array, or a sequence of arrays with one among them."""
    if isinstance(x, np.ma.MaskedArray):
        return True
    if not isinstance(x, list | tuple) or not x:
        return False
    return isinstance(x[0], np.ndarray | list | tuple) and any(map(_is_masked, x))
