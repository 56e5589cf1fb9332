"""dtypes: their names, promotion, and the dtypes of Python numbers.

Promotion is that of NumPy for arrays (``int64 + float32`` is float64, ``int8 + float32`` is
float32, ``uint64 + int64`` is float64).  A Python number gets the smallest dtype that holds its
value, so that ``float32_vector * 2.5`` stays float32; other policies are ``config.cast_policy``.

>>> upcast("int64", "float32"), upcast("uint64", "int64")
('float64', 'float64')
>>> literal_dtype(1), literal_dtype(300), literal_dtype(1.5), literal_dtype(0.1)
('int8', 'int16', 'float32', 'float64')
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from phintys.config import config

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOAT = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGER = SIGNED + UNSIGNED
DISCRETE = BOOL + INTEGER
CONTINUOUS = FLOAT + COMPLEX
ALL = DISCRETE + CONTINUOUS

_KIND = {name: np.dtype(name).kind for name in ALL}


@cache
def canonical(dtype: Any) -> str:
    """The name of a dtype that is given as a name, a NumPy dtype or a Python type.

    TypeError if it is not a dtype, or not one of tensors.
    """
    try:
        name = np.dtype(dtype).name
    except TypeError as exc:
        raise TypeError(f"{dtype!r} is not a dtype.") from exc
    if name not in _KIND:
        raise TypeError(f"Tensors of dtype {name} are not supported; they may be {', '.join(ALL)}.")
    return name


def as_dtype(dtype: Any) -> str:
    """`canonical`, with ``"floatX"`` replaced by the setting."""
    return config.floatX if isinstance(dtype, str) and dtype == "floatX" else canonical(dtype)


def kind(dtype: str) -> str:
    """The kind of a dtype: ``b`` bool, ``i`` signed, ``u`` unsigned, ``f`` float, ``c`` complex."""
    return _KIND[dtype]


def is_discrete(dtype: str) -> bool:
    """Whether the dtype is bool or an integer."""
    return _KIND[dtype] in "biu"


def is_float(dtype: str) -> bool:
    """Whether the dtype is a real floating-point one."""
    return _KIND[dtype] == "f"


def is_complex(dtype: str) -> bool:
    """Whether the dtype is complex."""
    return _KIND[dtype] == "c"


def upcast(*dtypes: str) -> str:
    """The dtype to which all ``dtypes`` are promoted.

    >>> upcast("int8", "uint8", "float32")
    'float32'
    """
    return _upcast(dtypes if len(dtypes) < 3 else tuple(sorted(set(dtypes))))


@cache
def _upcast(dtypes: tuple[str, ...]) -> str:
    first, *others = dtypes
    return np.result_type(first, *others).name if others else first


@cache
def float_of(dtype: str) -> str:
    """The float dtype in which functions of a discrete dtype are computed; floats are unchanged."""
    if not is_discrete(dtype):
        return dtype
    return "float32" if np.dtype(dtype).itemsize <= 2 else "float64"


def total_of(dtype: str) -> str:
    """The dtype of sums and products, as in NumPy: 64 bits for integers and bools."""
    if dtype in BOOL + SIGNED:
        return "int64"
    return "uint64" if dtype in UNSIGNED else dtype


def real_of(dtype: str) -> str:
    """The dtype of the real part; real dtypes are unchanged."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def literal_dtype(value: Any) -> str:
    """The dtype of a Python number under ``config.cast_policy``; TypeError for anything else."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return _integer_literal(value)
    if isinstance(value, float):
        return first_exact(value, float_choices())
    if isinstance(value, complex):
        return "complex128"
    raise TypeError(f"{value!r} is not a number.")


def _integer_literal(value: int) -> str:
    if config.cast_policy != "custom":
        return "int64"
    for dtype, bound in _BOUNDS:
        if -bound <= value < bound:
            return dtype
    if 0 <= value < 2**64:
        return "uint64"
    raise OverflowError(f"{value} does not fit into a 64-bit integer; write it as a float.")


_BOUNDS = (("int8", 2**7), ("int16", 2**15), ("int32", 2**31), ("int64", 2**63))


#: The dtypes that each open `autocast_float_as` of a context sets.
_FLOAT_CHOICES: ContextVar[tuple[tuple[str, ...], ...]] = ContextVar("floats", default=())


def first_exact(value: float, choices: tuple[str, ...]) -> str:
    """The first of the dtypes that holds the number exactly, else the last; any holds NaN."""
    for dtype in choices[:-1]:
        if value != value or _holds(dtype, value):
            return dtype
    return choices[-1]


#: Converters of single numbers, several times faster than NumPy.
_PACKED = {"float16": Struct("e"), "float32": Struct("f"), "float64": Struct("d")}


def _holds(dtype: str, value: float) -> bool:
    """Whether a dtype holds a number exactly."""
    packed = _PACKED.get(dtype)
    if packed is None:
        with np.errstate(over="ignore", under="ignore"):
            return complex(np.dtype(dtype).type(value)) == value
    try:
        return packed.unpack(packed.pack(value))[0] == value  # type: ignore[no-any-return]
    except OverflowError:
        return False


class autocast_float_as:
    """A context manager that sets the dtypes of Python floats, in this thread or asyncio task.

    A float gets the first of the given dtypes that holds it exactly, else the last.  The innermost
    one counts; ``config.cast_policy`` does not.

    >>> with autocast_float_as("float32"):
    ...     literal_dtype(0.1)
    'float32'
    """

    def __init__(self, *dtypes: str) -> None:
        self.dtypes = tuple(map(canonical, dtypes))

    def __enter__(self) -> None:
        _FLOAT_CHOICES.set((*_FLOAT_CHOICES.get(), self.dtypes))

    def __exit__(self, *exc: object) -> None:
        _FLOAT_CHOICES.set(_FLOAT_CHOICES.get()[:-1])


def float_choices() -> tuple[str, ...]:
    """The dtypes that a Python float may get, the first that holds it exactly, or the last."""
    if forced := _FLOAT_CHOICES.get():
        return forced[-1]
    if config.cast_policy == "numpy2":
        return ("float64",)
    if config.cast_policy == "numpy+floatX" or config.floatX == "float32":
        return (config.floatX,)
    return ("float32", "float64")


def integer_choices() -> tuple[str, ...]:
    """The dtypes that a Python integer may get: the first that holds it."""
    if config.cast_policy != "custom":
        return ("int64",)
    return (*SIGNED, "uint64")
