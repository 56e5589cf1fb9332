"""`Array`: an array of the array API, whose operators evaluate at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phintys.tensor.standard.data_types import check_version
from phintys.tensor.standard.promotion import check_device, check_element, is_number

#: Operators of two arrays, and their functions.
BINARY = {
    "add": "add", "and": "bitwise_and", "eq": "equal", "floordiv": "floor_divide",
    "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lshift": "bitwise_left_shift",
    "lt": "less", "matmul": "matmul", "mod": "remainder", "mul": "multiply", "ne": "not_equal",
    "or": "bitwise_or", "pow": "pow", "rshift": "bitwise_right_shift", "sub": "subtract",
    "truediv": "divide", "xor": "bitwise_xor",
}  # fmt: skip
COMPARISONS = {"eq", "ge", "gt", "le", "lt", "ne"}
UNARY = {"abs": "abs", "invert": "bitwise_invert", "neg": "negative", "pos": "positive"}


class Array:
    """An array on the device "cpu"; made by `asarray` and the other functions of the namespace.

    It wraps a NumPy array, which `value` returns.  Items can be set; operators with ``=`` (``+=``)
    give a new array, in the dtype to which both sides are promoted.

    >>> import phintys.array_api as xp
    >>> x = xp.asarray([1, 2, 3])
    >>> x + 1
    Array([2, 3, 4], dtype=int64)
    >>> x[0] = 7
    >>> int(xp.max(x))
    7
    """

    __slots__ = ("_value",)
    _value: np.ndarray
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # operators with a NumPy array are not defined

    def __init__(self) -> None:
        raise TypeError("Arrays are made by asarray and other functions of phintys.array_api.")

    @classmethod
    def of(cls, value: np.ndarray) -> Array:
        """The array that wraps a NumPy array, of a dtype that is known to be one of tensors."""
        new = object.__new__(cls)
        new._value = value
        return new

    # ----- attributes
    @property
    def value(self) -> np.ndarray:
        """The NumPy array, which shares memory with this one."""
        return self._value

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self._value.dtype

    @property
    def device(self) -> str:
        """The device, ``"cpu"``."""
        return "cpu"

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._value.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self._value.shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._value.size

    @property
    def T(self) -> Array:
        """A matrix with its axes exchanged; ValueError for other ranks."""
        if self.ndim != 2:
            raise ValueError(f"T is for arrays with two axes, not {self.ndim}: use permute_dims.")
        return self._apply("matrix_transpose")

    @property
    def mT(self) -> Array:
        """The array with its last two axes exchanged."""
        return self._apply("matrix_transpose")

    def _apply(self, name: str, *args: Any) -> Any:
        return NAMESPACE[name](self, *args)

    # ----- the namespace, devices, other libraries
    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The module `phintys.array_api`; ValueError for versions that it does not have."""
        check_version(api_version)
        return NAMESPACE["module"]

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """This array; ValueError if the device is not ``"cpu"``."""
        check_device(device)
        if stream is not None:
            raise ValueError("The device 'cpu' has no streams.")
        return self

    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule, made by NumPy."""
        given: dict[str, Any] = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        named: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        return self._value.__dlpack__(stream=stream, **named)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's name of the device."""
        return self._value.__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The NumPy array, for ``np.asarray``."""
        found = self._value if dtype is None else self._value.astype(dtype, copy=False)
        return found.copy() if copy and found is self._value else found

    # ----- conversion of 0-d arrays
    def _item(self, kind: str) -> Any:
        if self.ndim:
            raise TypeError(
                f"Only 0-d arrays can become a Python {kind}, not one of shape {self.shape}."
            )
        return self._value.item()

    def __bool__(self) -> bool:
        return bool(self._item("bool"))

    def __int__(self) -> int:
        return int(self._item("integer"))

    def __float__(self) -> float:
        return float(self._item("float"))

    def __complex__(self) -> complex:
        return complex(self._item("complex number"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"Only arrays of integers are indices, not of dtype {self.dtype}.")
        return int(self._item("integer"))

    # ----- items
    def __getitem__(self, key: Any, /) -> Array:
        return self._apply("get_items", _as_key(key))

    def __setitem__(self, key: Any, value: Any, /) -> None:
        if is_number(value):
            check_element(value, self.dtype.name)
            value = Array.of(np.asarray(value, self.dtype))
        self._value = self._apply("with_items", _as_key(key), value)._value

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("A 0-d array has no len().")
        return self.shape[0]

    def __repr__(self) -> str:
        text = np.array2string(self._value, separator=", ", prefix="Array(")
        return f"Array({text}, dtype={self.dtype})"


def _as_key(key: Any) -> Any:
    """An index in which integers are 0-d arrays, so that they are not compiled into the code."""
    if isinstance(key, tuple):
        return tuple(map(_as_key, key))
    if isinstance(key, slice):
        return slice(_as_key(key.start), _as_key(key.stop), key.step)
    return Array.of(np.asarray(key)) if isinstance(key, int) else key


#: The namespace, which fills it: functions by name, and the module itself.
NAMESPACE: dict[str, Any] = {}


def _is_operand(x: Any) -> bool:
    return isinstance(x, Array) or is_number(x)


def _binary(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Array, other: Any, /) -> Any:
        return NAMESPACE[name](self, other) if _is_operand(other) else NotImplemented

    def reflected(self: Array, other: Any, /) -> Any:
        return NAMESPACE[name](other, self) if _is_operand(other) else NotImplemented

    return forward, reflected


def _unary(name: str) -> Callable[..., Any]:
    def method(self: Array, /) -> Any:
        return NAMESPACE[name](self)

    return method


def _attach_operators() -> None:
    for operator, name in BINARY.items():
        forward, reflected = _binary(name)
        setattr(Array, f"__{operator}__", forward)
        if operator not in COMPARISONS:
            setattr(Array, f"__r{operator}__", reflected)
    for operator, name in UNARY.items():
        setattr(Array, f"__{operator}__", _unary(name))


_attach_operators()
