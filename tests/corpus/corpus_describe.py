"""What a program's results are, as JSON: the same description for PyTensor and for this package.

Imports neither of them, so it runs where only one of them is.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import TypeAlias

import numpy as np

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

#: an address in memory, which differs from run to run
ADDRESS = re.compile("0x[0-9a-f]+")
#: arrays of more elements are described by their first ones
MOST_ELEMENTS = 60


def described(value: object) -> Json:
    """The description of one result.

    Of a variable its dtype and static shape; of an array its dtype, shape and elements; of a
    function without arguments what it returns, or the classes of what it raises; of another object
    the name of its class.
    """
    match value:
        case None | bool() | int():
            return value
        case str():
            return ADDRESS.sub("0x...", value)
        case np.bool_():
            return bool(value)
        case float() if not isinstance(value, np.generic):
            return number(value)
        case np.ndarray() | np.generic():
            return of_array(np.asarray(value))
        case BaseException():
            return {"raises": [c.__name__ for c in type(value).__mro__]}
        case FunctionType():
            return attempted(value)
        case type():
            return {"class": value.__name__}
        case Mapping():
            return {"dict": [[described(k), described(v)] for k, v in value.items()]}
        case list() | tuple():
            return [described(v) for v in value]
    if hasattr(value, "type") and hasattr(value, "owner"):
        return of_variable(value)
    return {"instance": type(value).__name__}


def attempted(call: Callable[[], object]) -> Json:
    """What ``call()`` returns, or the classes of the exception that it raises."""
    try:
        return described(call())
    except Exception as raised:
        return described(raised)


def of_variable(variable: object) -> Json:
    """``["float64", [3, None]]`` of a tensor variable; the class of another one's type."""
    of = getattr(variable, "type", None)
    dtype = getattr(of, "dtype", None)
    if dtype is None:
        return {"variable": type(of).__name__}
    return {"variable": [str(dtype), list(getattr(of, "shape", ()))]}


def of_array(array: np.ndarray) -> Json:
    """The dtype, the shape and the first elements."""
    elements = [number(v) for v in itertools.islice(array.ravel().tolist(), MOST_ELEMENTS)]
    return {"array": [str(array.dtype), list(array.shape), elements]}


def number(value: object) -> Json:
    """A number to 9 digits; those that JSON has not as text."""
    if isinstance(value, complex):
        return [number(value.real), number(value.imag)]
    if not isinstance(value, float):
        return value if isinstance(value, bool | int | str) else type(value).__name__
    return float(f"{value:.9g}") if np.isfinite(value) else str(value)


def outcome(results: Callable[[], Iterable[object]]) -> list[Json]:
    """The descriptions of what a program yields; an exception that ends it is the last one."""
    found: list[Json] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found.extend(described(value) for value in results())
        except Exception as raised:
            found.append({"ended": f"{type(raised).__name__}: {raised}"})
    return found
