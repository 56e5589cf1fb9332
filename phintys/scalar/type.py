"""`ScalarType`: the type of variables whose values are NumPy scalars.

Scalars are not 0-d tensors.  They are the index variables of `Subtensor`, and the variables inside
`Composite`.  ``tensor_from_scalar`` and ``scalar_from_tensor`` convert between both.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from phintys.graph.type import HasDataType, HasShape, Type
from phintys.graph.variable import Constant, Variable
from phintys.scalar import dtypes
from phintys.scalar.arrays import as_array
from phintys.scalar.conversion import converted


class ScalarVariable(Variable):
    """A variable whose values are NumPy scalars.  It has Python's arithmetic operators.

    >>> from phintys.scalar import float64
    >>> x = float64("x")
    >>> (2 * x).owner
    mul(2, x)
    """

    __slots__ = ()

    @property
    def dtype(self) -> str:
        """The name of the dtype."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The rank, 0."""
        return 0


class ScalarConstant(Constant, ScalarVariable):
    """A constant whose value is a NumPy scalar; made by `constant`."""

    __slots__ = ()

    def signature(self) -> Any:
        return self.type, np.asarray(self.data, self.type.dtype).tobytes()


class NumberType(Type[Any], HasDataType, HasShape):
    """Base of types of numbers: the derivatives of variables of one dtype and rank.

    Derivatives have the dtype of the variable; those of integers and bools have floatX.  Subclasses
    call `set_dtype`.
    """

    def set_dtype(self, dtype: str) -> None:
        """Set ``dtype``, and what follows from it."""
        self.dtype = dtype
        self.is_discrete = dtypes.is_discrete(dtype)
        self.is_complex = dtypes.is_complex(dtype)

    @property
    def tangent_type(self) -> Type[Any]:
        return self.clone(dtype="floatX") if self.is_discrete else self

    def tangent_zeros(self, v: Any) -> Any:
        return v.zeros_like(dtype="floatX" if self.is_discrete else self.dtype)

    def tangent_ones(self, v: Any) -> Any:
        return v.ones_like(dtype="floatX" if self.is_discrete else self.dtype)

    def check_tangent(self, g: Any) -> None:
        if g.type.is_discrete:
            raise TypeError("derivatives are never integers.")
        if getattr(g.type, "ndim", None) != self.ndim:
            raise ValueError("the ranks differ.")

    def cast_tangent(self, g: Any) -> Any:
        if self.is_discrete or g.type.dtype == self.dtype:
            return g
        if g.type.is_complex and not self.is_complex:
            raise TypeError("of a real variable, return the real part.")
        return g.astype(self.dtype)


class ScalarType(NumberType):
    """NumPy scalars of one dtype.

    >>> int64 = ScalarType("int64")
    >>> int64.filter(3)
    np.int64(3)
    """

    __props__ = ("dtype",)
    variable_type = ScalarVariable
    constant_type = ScalarConstant
    ndim = 0
    shape = ()

    def __init__(self, dtype: str) -> None:
        self.set_dtype(dtypes.as_dtype(dtype))
        self._scalar: Any = np.dtype(self.dtype).type

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, ScalarType) or type(self) is not type(other):
            return False
        return self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def dtype_specs(self) -> tuple[type, str, str]:
        """The class of the numbers, and the names of their type in C and of the class in NumPy's C
        interface."""
        name = {"float": "Float", "int": "Int", "uint": "UInt", "complex": "Complex"}
        kind = self.dtype.rstrip("0123456789")
        text = self.dtype.replace(kind, name.get(kind, "Bool"))
        return self._scalar, f"npy_{self.dtype}", text

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        if isinstance(data, self._scalar):
            return data
        if strict:
            raise TypeError(f"{self} needs a {self._scalar.__name__}, not {data!r}.")
        array = as_array(data)
        if array.ndim != 0 or array.dtype.kind not in "biufc":
            raise TypeError(f"{self} needs a number, not {data!r}.")
        number = converted(array, self.dtype)
        lossless = np.can_cast(array.dtype, self.dtype) or bool(number == array)
        if allow_downcast or lossless:
            return number[()]
        if (
            allow_downcast is None
            and isinstance(data, float)
            and self.dtype == dtypes.as_dtype("floatX")
        ):
            return number[()]
        raise TypeError(f"{data!r} cannot be converted to {self.dtype} without loss.")

    @classmethod
    def values_eq_approx(cls, a: Any, b: Any, tolerance: float = 1e-4) -> bool:
        return bool(abs(a - b) <= (abs(a) + abs(b)) * tolerance) or bool(a != a and b != b)

    def __str__(self) -> str:
        return self.dtype

    def __repr__(self) -> str:
        return f"Scalar({self.dtype})"


@cache
def scalar_type(dtype: str) -> ScalarType:
    """The scalar type of a dtype; always the same object for a dtype.

    >>> scalar_type("int8")
    Scalar(int8)
    """
    return ScalarType(dtype)


def as_scalar(x: Any, name: str | None = None) -> Any:
    """A scalar variable from a scalar or 0-d tensor variable, a NumPy scalar or a Python number.

    A number becomes a constant (see `constant`) with this name.  TypeError for anything else.

    >>> as_scalar(2.5).type
    Scalar(float32)
    """
    if isinstance(x, Variable):
        if isinstance(x.type, ScalarType):
            return x
        if isinstance(x.type, HasShape) and x.type.ndim == 0:
            return from_tensor[0](x)
        raise TypeError(f"{x} of type {x.type} is not a scalar.")
    return constant(x, name)


def constant(x: Any, name: str | None = None, dtype: Any = None) -> ScalarConstant:
    """A scalar constant from a NumPy scalar, a 0-d array or a Python number.

    Without ``dtype``, a Python number gets the dtype of `dtypes.literal_dtype`, by default the
    smallest that holds it.  TypeError if ``x`` is not a number, OverflowError for an integer beyond
    64 bits.

    >>> constant(300).type, constant(300, dtype="float64").data
    (Scalar(int16), np.float64(300.0))
    """
    if dtype is not None:
        data = converted(as_array(x), dtypes.as_dtype(dtype))[()]
    elif isinstance(x, np.generic | np.ndarray):
        data = as_array(x)[()]
    else:
        data = np.dtype(dtypes.literal_dtype(x)).type(x)
    return ScalarConstant(scalar_type(dtypes.canonical(data.dtype)), data, name)


def _no_tensors(x: Any) -> Any:
    raise TypeError(f"{x} is a tensor; convert it with scalar_from_tensor.")


#: The function that converts a 0-d tensor to a scalar; the tensor layer writes its op here.
from_tensor: list[Any] = [_no_tensors]
