"""Whether results are right: the error of a quantity, in units of what is allowed."""

from __future__ import annotations

import numpy as np
from density_truth import Truths

#: the error that is allowed, as a part of the condition
ALLOWED = {"float64": 1e-9, "float32": 1e-4}


def excess(results: np.ndarray, truths: Truths, dtype: str) -> np.ndarray:
    """The error of each result over what is allowed: above 1 it is wrong; NaN: it is not judged.

    A truth that is out of range must give that infinity, or zero.
    """
    info = np.finfo(dtype)
    largest, smallest = float(info.max), float(info.tiny)
    numbers = truths.numbers
    conditions = np.minimum(truths.conditions, np.finfo("float64").max)
    allowed = ALLOWED[dtype] * (conditions + smallest)
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.abs(results - numbers) / allowed
        infinite = np.isinf(results) & (np.sign(results) == np.sign(numbers))
        near_infinity = np.abs(numbers) > largest - allowed
    near_zero = (np.abs(numbers) < smallest) & (np.abs(results) < smallest)
    found[np.isnan(found)] = np.inf
    found[(infinite & near_infinity) | near_zero] = 0.0
    found[np.isnan(numbers) | np.isnan(truths.conditions)] = np.nan
    return found
