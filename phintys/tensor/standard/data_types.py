"""dtypes of the array API, their limits and promotion, and functions that cast and broadcast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from phintys.config import config
from phintys.scalar import dtypes
from phintys.tensor import creation
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.standard.promotion import check_device, complex_of, is_number, number_dtype

#: The dtypes of the standard: NumPy's dtype objects, which equal their names.
bool, int8, int16, int32, int64 = map(np.dtype, ("bool", *dtypes.SIGNED))
uint8, uint16, uint32, uint64 = map(np.dtype, dtypes.UNSIGNED)
float32, float64, complex64, complex128 = map(
    np.dtype, ("float32", "float64", "complex64", "complex128")
)
DTypes = dict[str, np.dtype[Any]]

#: The kinds of dtypes, and the dtypes of each.
KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": dtypes.SIGNED,
    "unsigned integer": dtypes.UNSIGNED,
    "integral": dtypes.INTEGER,
    "real floating": dtypes.FLOAT,
    "complex floating": dtypes.COMPLEX,
    "numeric": dtypes.INTEGER + dtypes.CONTINUOUS,
}


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating-point dtype; those of a complex one are of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def _dtype_of(x: Any) -> str:
    """The dtype of an array, or the dtype itself, by name."""
    return dtypes.as_dtype(x if isinstance(x, type | str) else getattr(x, "dtype", x))


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating-point dtype, given itself or as that of an array."""
    dtype = np.dtype(dtypes.real_of(_dtype_of(type)))
    info = np.finfo(dtype)
    return FloatInfo(
        bits=info.bits,
        eps=float(info.eps),
        max=float(info.max),
        min=float(info.min),
        smallest_normal=float(info.smallest_normal),
        dtype=dtype,
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype, given itself or as that of an array."""
    dtype = np.dtype(_dtype_of(type))
    info = np.iinfo(dtype)
    return IntegerInfo(info.bits, int(info.max), int(info.min), dtype)


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether a dtype is of a kind: a dtype, the name of a kind, or a tuple of such.

    >>> isdtype("float32", "real floating"), isdtype("float32", ("integral", "bool"))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if not isinstance(kind, str):
        return np.dtype(dtype) == np.dtype(kind)
    if kind not in KINDS:
        raise ValueError(f"The kinds of dtypes are {', '.join(KINDS)}; not {kind!r}.")
    return dtypes.canonical(dtype) in KINDS[kind]


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype to which arrays, dtypes and Python numbers are promoted."""
    if not arrays_and_dtypes:
        raise ValueError("result_type needs at least one argument.")
    given = [_dtype_of(x) for x in arrays_and_dtypes if not is_number(x)]
    if not given:
        raise ValueError("result_type needs an array or a dtype, not numbers alone.")
    common = dtypes.upcast(*given)
    numbers = [number_dtype(x, common) for x in arrays_and_dtypes if is_number(x)]
    return np.dtype(dtypes.upcast(common, *numbers))


def can_cast(from_: Any, to: Any, /) -> Any:
    """Whether a dtype, or that of an array, is promoted to ``to`` without loss."""
    return np.can_cast(_dtype_of(from_), dtypes.as_dtype(to))


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    """``x`` in another dtype.  TypeError for complex to real; ``copy`` is not needed here."""
    check_device(device)
    x = as_tensor_variable(x)
    if copy and x.type.dtype == dtypes.as_dtype(dtype):
        return functions.identity(x)
    return cast(x, dtype)


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """``x`` broadcast to a shape."""
    return creation.broadcast_to(x, shape)


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """Arrays broadcast against each other."""
    return list(creation.broadcast_arrays(*arrays))


# ---------------------------------------------------------------------------- inspection

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def check_version(version: str | None) -> None:
    """ValueError for versions of the standard whose functions are not all here."""
    if version is not None and version not in VERSIONS:
        raise ValueError(
            f"The versions of the array API are {', '.join(VERSIONS)}; not {version!r}."
        )


class Info:
    """What ``__array_namespace_info__`` returns: devices, dtypes and abilities."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and results whose shapes depend on values work; there are 64 axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The only device, ``"cpu"``."""
        return "cpu"

    def devices(self) -> list[str]:
        """The only device, ``"cpu"``."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> DTypes:
        """The default dtypes; that of floats is ``config.floatX``."""
        check_device(device)
        real = config.floatX
        return {
            "real floating": np.dtype(real),
            "complex floating": np.dtype(complex_of(real)),
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> DTypes:
        """The dtypes of a kind, by name; float16, which is not in the standard, is left out."""
        check_device(device)
        kinds = (*KINDS,) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        names = [name for name in dtypes.ALL if name != "float16" and isdtype(name, kinds)]
        return {name: np.dtype(name) for name in names}


def __array_namespace_info__() -> Info:
    """Devices, dtypes and abilities of this namespace."""
    return Info()


__all__ = [
    "__array_namespace_info__", "astype", "bool", "broadcast_arrays", "broadcast_to", "can_cast",
    "complex64", "complex128", "finfo", "float32", "float64", "iinfo", "int8", "int16", "int32",
    "int64", "isdtype", "result_type", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip
