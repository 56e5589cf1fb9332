"""Conversion of a user's values to arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.graph.results import is_masked


def as_array(x: Any) -> np.ndarray:
    """``x`` as an array of class `numpy.ndarray`, not a subclass; TypeError for masked arrays.

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
    """Whether ``x`` is a masked array, or a sequence that contains one."""
    if is_masked(x):
        return True
    if not isinstance(x, list | tuple) or not x:
        return False
    return isinstance(x[0], np.ndarray | list | tuple) and any(map(_is_masked, x))
