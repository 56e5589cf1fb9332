"""The elementwise functions of the array API, most of them rows of the scalar table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phintys.scalar import dtypes
from phintys.scalar.op import TABLE
from phintys.tensor import math, numpy_functions
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, elementwise, functions
from phintys.tensor.standard.promotion import operands

#: Functions of one array, and their rows.
UNARY = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atanh": "arctanh", "bitwise_invert": "invert", "cos": "cos",
    "cosh": "cosh", "exp": "exp", "expm1": "expm1", "isfinite": "isfinite", "isinf": "isinf",
    "isnan": "isnan", "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2",
    "logical_not": "logical_not", "negative": "neg", "reciprocal": "reciprocal", "sign": "sign",
    "signbit": "signbit", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "sqr",
    "tan": "tan", "tanh": "tanh",
}  # fmt: skip
#: Functions that leave integers unchanged, and their rows.
ROUNDING = {"ceil": "ceil", "floor": "floor", "trunc": "trunc"}
#: Functions of two arrays, one of which may be a Python number, and their rows.
BINARY = {
    "add": "add", "atan2": "arctan2", "bitwise_and": "and_", "bitwise_left_shift": "left_shift",
    "bitwise_or": "or_", "bitwise_right_shift": "right_shift", "bitwise_xor": "xor",
    "copysign": "copysign", "divide": "true_div", "equal": "eq", "greater": "gt",
    "greater_equal": "ge", "hypot": "hypot", "less": "lt", "less_equal": "le",
    "logaddexp": "logaddexp", "logical_and": "logical_and", "logical_or": "logical_or",
    "logical_xor": "logical_xor", "maximum": "maximum", "minimum": "minimum", "multiply": "mul",
    "nextafter": "nextafter", "not_equal": "neq", "pow": "pow", "remainder": "mod",
    "subtract": "sub",
}  # fmt: skip


def _unary(name: str, row: str) -> Callable[..., Any]:
    op = elementwise(row)

    def function(x: Any, /) -> Any:
        return op(x)

    return _named(function, name, row)


def _rounding(name: str, row: str) -> Callable[..., Any]:
    op = elementwise(row)

    def function(x: Any, /) -> Any:
        x = as_tensor_variable(x)
        return x if dtypes.is_discrete(x.type.dtype) else op(x)

    return _named(function, name, row)


def _binary(name: str, row: str) -> Callable[..., Any]:
    op = elementwise(row)

    def function(x1: Any, x2: Any, /) -> Any:
        return op(*operands(x1, x2))

    return _named(function, name, row)


def _named(function: Any, name: str, row: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = TABLE[row].doc
    return function


for _make, _table in ((_unary, UNARY), (_rounding, ROUNDING), (_binary, BINARY)):
    globals().update({_name: _make(_name, _row) for _name, _row in _table.items()})


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """``x`` limited to a range, in its own dtype; a limit that is None does not apply."""
    x = as_tensor_variable(x)
    if min is not None:
        x = cast(functions.maximum(*operands(x, min)), x.type.dtype)
    if max is not None:
        x = cast(functions.minimum(*operands(x, max)), x.type.dtype)
    return x


def conj(x: Any, /) -> Any:
    """The complex conjugate; real arrays are returned unchanged."""
    return math.conj(x)


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """The floor of the quotient; infinite for an infinite dividend, where NumPy gives NaN.

    If the divisor is infinite the result is 0 with the sign of the quotient.
    """
    x1, x2 = operands(x1, x2)
    found = functions.int_div(x1, x2)
    if dtypes.is_discrete(found.type.dtype):
        return found
    infinite = functions.or_(functions.isinf(x1), functions.isinf(x2))
    return functions.switch(infinite, functions.floor(functions.true_div(x1, x2)), found)


def imag(x: Any, /) -> Any:
    """The imaginary part; zeros for real arrays."""
    return functions.imag(x)


def positive(x: Any, /) -> Any:
    """``x`` itself."""
    return as_tensor_variable(x)


def round(x: Any, /) -> Any:
    """The nearest integers, half to even; of complex numbers, of both parts."""
    return numpy_functions.round(x)


def real(x: Any, /) -> Any:
    """The real part; real arrays are returned unchanged."""
    return functions.real(x)


_OTHERS = ("clip", "conj", "floor_divide", "imag", "positive", "real", "round")
__all__ = sorted([*UNARY, *ROUNDING, *BINARY, *_OTHERS])  # pyright: ignore[reportUnsupportedDunderAll]
