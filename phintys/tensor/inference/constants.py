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


def _inside(first: int, last: int) -> Callable[[Values], bool]:
    """A predicate: whether elements outside of some diagonals are zero."""

    def holds(x: Values) -> bool:
        if x.ndim < 2:
            return False
        rows, columns = np.indices(x.shape[-2:], sparse=True)
        offset = columns - rows
        return not np.any(x[..., (offset < first) | (offset > last)])

    return holds


def _is_symmetric(x: Values) -> bool:
    return x.ndim >= 2 and np.array_equal(x, np.swapaxes(x, -1, -2), equal_nan=True)


def _is_selection(x: Values) -> bool:
    if x.ndim < 2:
        return False
    return bool(np.all((x == 0) | (x == 1)) and np.all((x == 1).sum(-1) == 1))


def _is_permutation(x: Values) -> bool:
    return _is_selection(x) and _is_selection(np.swapaxes(x, -1, -2))


def _has_unit_magnitude(x: Values) -> bool:
    return x.dtype.kind != "b" and bool(np.all(np.abs(x) == 1))


def _is_unique(x: Values) -> bool:
    if x.ndim < 1 or x.dtype.kind not in "iu":
        return False
    ordered = np.sort(x, axis=-1)
    return bool(np.all(ordered[..., 1:] != ordered[..., :-1]))


PREDICATES: dict[AssumptionKey, Callable[[Values], bool]] = {
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


def _by_predicate(predicate: Callable[[Values], bool]) -> Callable[[Any], FactState]:
    def infer(v: Any) -> FactState:
        if not isinstance(v.data, np.ndarray):
            return UNKNOWN
        return TRUE if predicate(v.data) else FALSE

    return infer


for _key, _predicate in PREDICATES.items():
    register_constant_inference(_key, _by_predicate(_predicate))


def _positive_definite(v: Any) -> FactState:
    """True of positive diagonals; false of what is not symmetric, or has no positive diagonal."""
    x = v.data
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiu":
        return UNKNOWN
    if x.ndim < 2 or not _is_symmetric(x) or not np.all(np.diagonal(x, 0, -2, -1) > 0):
        return FALSE
    return TRUE if PREDICATES[DIAGONAL](x) and np.all(np.isfinite(x)) else UNKNOWN


def _orthogonal(v: Any) -> FactState:
    """Up to rounding, of matrices of moderate size."""
    x = v.data
    if not isinstance(x, np.ndarray) or x.ndim < 2 or x.dtype.kind not in "fciu":
        return UNKNOWN
    if max(x.shape[-2:]) > LARGEST or not np.all(np.isfinite(x)):
        return UNKNOWN
    eps = np.finfo(x.dtype).eps if x.dtype.kind in "fc" else 0
    x = x.astype(np.result_type(x, "float64"), copy=False)
    error = np.swapaxes(x, -1, -2).conj() @ x - np.eye(x.shape[-1])
    largest = np.max(np.abs(error), initial=0)
    if largest <= 8 * eps * max(x.shape[-2:]):
        return TRUE
    return FALSE if largest > 1e-2 else UNKNOWN


register_constant_inference(POSITIVE_DEFINITE, _positive_definite)
register_constant_inference(ORTHOGONAL, _orthogonal)
