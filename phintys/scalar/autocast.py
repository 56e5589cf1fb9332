"""NumPy arrays from Python numbers, in the dtypes that the numbers get in expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.scalar.dtypes import (
    as_dtype,
    canonical,
    float_choices,
    integer_choices,
    is_discrete,
    is_float,
)
from phintys.scalar.type import constant


class NumpyAutocaster:
    """A function from a number to a 0-d array, in the first of some dtypes that holds it exactly.

    A float that none of them holds is rounded to the last, if that is a float or complex dtype.
    OverflowError if no dtype can hold the number, TypeError if it is not a number.

    >>> NumpyAutocaster(("int8", "int16"))(300)
    array(300, dtype=int16)
    >>> NumpyAutocaster(("float16", "float32"))(0.1)
    array(0.1, dtype=float32)
    """

    def __init__(self, dtypes: Sequence[str]) -> None:
        self._dtypes = tuple(map(canonical, dtypes))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes, in the order in which they are tried."""
        return self._dtypes

    def __call__(self, x: Any) -> np.ndarray:
        number = x.item() if isinstance(x, np.generic) else x
        if not isinstance(number, int | float | complex):
            raise TypeError(f"{x!r} is not a number.")
        last = self.dtypes[-1]
        found = next((dtype for dtype in self.dtypes if _holds(dtype, number)), None)
        misfit = is_discrete(last) or (is_float(last) and isinstance(number, complex))
        if found is None and misfit:
            raise OverflowError(f"{x!r} is a value of none of the dtypes {', '.join(self.dtypes)}.")
        with np.errstate(over="ignore"):
            return np.array(number, found or last)


def _holds(dtype: str, number: complex) -> bool:
    """Whether a dtype holds a number exactly; every float dtype holds NaN."""
    if is_discrete(dtype):
        limits = np.iinfo(dtype) if dtype != "bool" else None
        low, high = (limits.min, limits.max) if limits else (0, 1)
        return not isinstance(number, complex) and low <= number <= high and number == int(number)
    if is_float(dtype) and isinstance(number, complex):
        return False
    with np.errstate(over="ignore"):
        found = np.array(number, dtype).item()
    return number != number or found == number


class _Integers(NumpyAutocaster):
    """The autocaster of Python integers, with the dtypes that the settings give."""

    @property
    def dtypes(self) -> tuple[str, ...]:
        return integer_choices()


class _Floats(NumpyAutocaster):
    """The autocaster of Python floats, with the dtypes that the settings give."""

    @property
    def dtypes(self) -> tuple[str, ...]:
        return float_choices()


#: The dtypes of Python integers and floats: see `autocast_float_as` and
#: ``config.cast_policy``.
autocast_int, autocast_float = _Integers(()), _Floats(())


def convert(x: Any, dtype: Any = None) -> np.ndarray:
    """A number or an array as an array of the dtype that it has in expressions, or of ``dtype``.

    TypeError if ``x`` is not a number or an array, OverflowError for an integer beyond 64 bits.

    >>> convert(300), convert(1.5), convert(2, "float64")
    (array(300, dtype=int16), array(1.5, dtype=float32), array(2.))
    """
    if isinstance(x, np.ndarray):
        return x if dtype is None else x.astype(as_dtype(dtype))
    return np.asarray(constant(x, dtype=dtype).data)


__all__ = ["NumpyAutocaster", "autocast_float", "autocast_int", "convert"]
