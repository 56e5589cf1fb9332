"""Scalar types by name, and the operators of scalar variables."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from phintys.graph.type import several
from phintys.scalar import dtypes
from phintys.scalar.op import TABLE, functions
from phintys.scalar.type import ScalarType, ScalarVariable, constant, scalar_type

cast = functions.cast


def _operator(name: str, swapped: builtins.bool = False) -> Any:
    """A method of `ScalarVariable` that applies an op; ``swapped`` for a reflected operator."""
    op = TABLE[name]

    def method(self: Any, *others: Any) -> Any:
        try:
            return op(*others, self) if swapped else op(self, *others)
        except TypeError:
            if any(isinstance(x, ScalarVariable) for x in others) or not others:
                raise
            return NotImplemented

    return method


_UNARY = {
    **{"neg": "neg", "abs": "abs", "invert": "invert", "pos": "identity"},
    **{"ceil": "ceil", "floor": "floor", "trunc": "trunc"},
}
_BINARY = {
    **{"add": "add", "sub": "sub", "mul": "mul", "truediv": "true_div"},
    **{"floordiv": "int_div", "mod": "mod", "pow": "pow", "and": "and_", "or": "or_"},
    **{"xor": "xor", "lshift": "left_shift", "rshift": "right_shift"},
}
_ORDER = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}

for _method, _name in (_UNARY | _BINARY | _ORDER).items():
    setattr(ScalarVariable, f"__{_method}__", _operator(_name))
for _method, _name in _BINARY.items():
    setattr(ScalarVariable, f"__r{_method}__", _operator(_name, swapped=True))


def _like(value: int) -> Any:
    """The method ``zeros_like`` or ``ones_like`` of `ScalarVariable`."""

    def method(self: Any, dtype: Any = None) -> Any:
        return constant(value, dtype=dtype or self.type.dtype)

    return method


ScalarVariable.astype = cast  # type: ignore[attr-defined]
ScalarVariable.zeros_like = _like(0)  # type: ignore[attr-defined]
ScalarVariable.ones_like = _like(1)  # type: ignore[attr-defined]
#: A NumPy scalar on the left of an operator then calls the reflected operator of the variable.
ScalarVariable.__array_ufunc__ = None  # type: ignore[attr-defined]


# -------------------------------------------------------------------------------- types

bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64 = map(scalar_type, dtypes.DISCRETE)
float16, float32, float64, complex64, complex128 = map(scalar_type, dtypes.CONTINUOUS)

int_types = (int8, int16, int32, int64)
uint_types = (uint8, uint16, uint32, uint64)
integer_types = int_types + uint_types
float_types = (float16, float32, float64)
complex_types = (complex64, complex128)
discrete_types = (bool, *integer_types)
continuous_types = float_types + complex_types
all_types = discrete_types + continuous_types
discrete_dtypes = dtypes.DISCRETE


def _variables(dtype: str) -> Callable[..., ScalarVariable | list[ScalarVariable]]:
    """A function that makes scalar variables of a dtype, see `several`.

    >>> ints("abc"), floats("x", "y"), floats("x")
    ([a, b, c], [x, y], x)
    """

    def make(*names: str | int | Sequence[str]) -> ScalarVariable | list[ScalarVariable]:
        return several(scalar_type(dtype), names)

    make.__doc__ = f"Scalar variables of dtype {dtype}, one per name, or per letter of one name."
    return make


ints, floats = _variables("int64"), _variables("float64")
complexs, complexs64, complexs128 = map(_variables, ("complex128", "complex64", "complex128"))

_TYPES = [name for name, value in list(globals().items()) if isinstance(value, ScalarType)]
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *_TYPES,
    *("all_types", "cast", "complex_types", "complexs", "complexs64", "complexs128"),
    *("continuous_types", "discrete_dtypes", "discrete_types", "float_types", "floats"),
    *("int_types", "integer_types", "ints", "uint_types"),
]
