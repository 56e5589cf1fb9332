"""Properties of constants, from their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phintys.assumptions import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    ORTHOGONAL,
    PERMUTATION,
    POSITIVE_DEFINITE,
    SELECTION,
    SYMMETRIC,
    TRIDIAGONAL,
    UNIQUE_INDICES,
    UNIT_MAGNITUDE,
    UPPER_TRIANGULAR,
    FactState,
    register_constant_inference,
)
from phintys.assumptions.core import FALSE, TRUE, UNKNOWN, AssumptionKey

#: the largest number of rows of matrices whose products are computed to know a property
LARGEST = 128
Values = np.ndarray[Any, Any]
#: ``predicate(x, error)``: whether values have a property, up to errors of this size
Predicate = Callable[[Values, float], bool]


def _inside(first: int, last: int) -> Predicate:
    """A predicate: whether elements outside of some diagonals are zero."""

    def holds(x: Values, error: float) -> bool:
        if x.ndim < 2:
            return False
        rows, columns = np.indices(x.shape[-2:], sparse=True)
        offset = columns - rows
        return bool(_near(x[..., (offset < first) | (offset > last)], 0, error).all())

    return holds


def _near(x: Values, value: Any, error: float) -> Values:
    """Where elements are ``value``, up to an error; NaN is NaN."""
    if error:
        return np.isclose(x, value, rtol=0, atol=error, equal_nan=True)
    return (x == value) | ((x != x) & (value != value))


def _is_symmetric(x: Values, error: float) -> bool:
    square = x.ndim >= 2 and x.shape[-1] == x.shape[-2]
    return square and bool(_near(x, np.swapaxes(x, -1, -2), error).all())


def _is_selection(x: Values, error: float) -> bool:
    if x.ndim < 2:
        return False
    zeros, ones = _near(x, 0, error), _near(x, 1, error)
    return bool(np.all(zeros | ones) and np.all(ones.sum(-1) == 1))


def _is_permutation(x: Values, error: float) -> bool:
    return _is_selection(x, error) and _is_selection(np.swapaxes(x, -1, -2), error)


def _has_unit_magnitude(x: Values, error: float) -> bool:
    return x.dtype.kind != "b" and bool(_near(np.abs(x), 1, error).all())


def _is_unique(x: Values, error: float) -> bool:
    if x.ndim < 1 or x.dtype.kind not in "iu":
        return False
    ordered = np.sort(x, axis=-1)
    return bool(np.all(ordered[..., 1:] != ordered[..., :-1]))


PREDICATES: dict[AssumptionKey, Predicate] = {
    DIAGONAL: _inside(0, 0),
    LOWER_TRIANGULAR: _inside(-(2**62), 0),
    UPPER_TRIANGULAR: _inside(0, 2**62),
    TRIDIAGONAL: _inside(-1, 1),
    SYMMETRIC: _is_symmetric,
    SELECTION: _is_selection,
    PERMUTATION: _is_permutation,
    UNIT_MAGNITUDE: _has_unit_magnitude,
    UNIQUE_INDICES: _is_unique,
}


def _by_predicate(predicate: Predicate) -> Callable[[Any], FactState]:
    def infer(v: Any) -> FactState:
        if not isinstance(v.data, np.ndarray):
            return UNKNOWN
        if predicate(v.data, 0.0):
            return TRUE
        return UNKNOWN if predicate(v.data, _rounding_error(v.data)) else FALSE

    return infer


def _rounding_error(x: Values) -> float:
    """The size of differences that may come from rounding, as in constants that were computed."""
    if x.dtype.kind not in "fc":
        return 0.0
    size = np.abs(x)
    return float(np.finfo(x.dtype).eps ** 0.5 * np.max(size, initial=0, where=np.isfinite(size)))


for _key, _predicate in PREDICATES.items():
    register_constant_inference(_key, _by_predicate(_predicate))


def _positive_definite(v: Any) -> FactState:
    """True of positive diagonals; false of what is not symmetric, or has no positive diagonal."""
    x = v.data
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiu":
        return UNKNOWN
    if x.ndim < 2 or not _is_symmetric(x, _rounding_error(x)):
        return FALSE
    if np.any(np.diagonal(x, 0, -2, -1) <= 0):
        return FALSE
    return TRUE if PREDICATES[DIAGONAL](x, 0.0) and np.all(np.isfinite(x)) else UNKNOWN


def _orthogonal(v: Any) -> FactState:
    """Up to rounding, of matrices of moderate size."""
    x = v.data
    if not isinstance(x, np.ndarray) or x.ndim < 2 or x.dtype.kind not in "fciu":
        return UNKNOWN
    if max(x.shape[-2:]) > LARGEST or not np.all(np.isfinite(x)):
        return UNKNOWN
    eps = np.finfo(x.dtype).eps if x.dtype.kind in "fc" else 0
    x = x.astype(np.result_type(x, "float64"), copy=False)
    with np.errstate(all="ignore"):
        error = np.swapaxes(x, -1, -2).conj() @ x - np.eye(x.shape[-1])
    largest = np.max(np.abs(error), initial=0)
    if largest <= 8 * eps * max(x.shape[-2:]):
        return TRUE
    return FALSE if largest > 1e-2 else UNKNOWN


register_constant_inference(POSITIVE_DEFINITE, _positive_definite)
register_constant_inference(ORTHOGONAL, _orthogonal)
