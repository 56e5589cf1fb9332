"""Scalar types by name, and the operators of scalar variables."""

from __future__ import annotations

from typing import Any

from phintys.scalar import dtypes
from phintys.scalar.op import TABLE
from phintys.scalar.type import ScalarVariable, as_scalar, scalar_type


class _Functions:
    """``functions.exp(x)``: the scalar ops by name, as derivatives use them."""

    def __getattr__(self, name: str) -> Any:
        if name not in TABLE:
            raise AttributeError(name)
        return TABLE[name]

    @staticmethod
    def cast(x: Any, dtype: str) -> Any:
        """``x`` with another dtype; ``x`` itself if it has that dtype."""
        x = as_scalar(x)
        dtype = dtypes.as_dtype(dtype)
        return x if x.type.dtype == dtype else TABLE[f"cast_{dtype}"](x)


functions = _Functions()
cast = functions.cast


def _operator(name: str, swapped: bool = False) -> Any:
    op = TABLE[name]

    def method(self: Any, *others: Any) -> Any:
        try:
            return op(*others, self) if swapped else op(self, *others)
        except TypeError:
            if any(isinstance(x, ScalarVariable) for x in others) or not others:
                raise
            return NotImplemented

    return method


_UNARY = {"neg": "neg", "abs": "abs", "invert": "invert", "pos": "identity"}
_UNARY |= {"ceil": "ceil", "floor": "floor", "trunc": "trunc"}
_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "true_div"}
_BINARY |= {"floordiv": "int_div", "mod": "mod", "pow": "pow", "and": "and_", "or": "or_"}
_BINARY |= {"xor": "xor", "lshift": "left_shift", "rshift": "right_shift"}
_ORDER = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}

for _method, _name in (_UNARY | _BINARY | _ORDER).items():
    setattr(ScalarVariable, f"__{_method}__", _operator(_name))
for _method, _name in _BINARY.items():
    setattr(ScalarVariable, f"__r{_method}__", _operator(_name, swapped=True))
ScalarVariable.astype = cast  # type: ignore[attr-defined]
#: NumPy scalars on the left of an operator leave it to the variable
ScalarVariable.__array_ufunc__ = None  # type: ignore[attr-defined]

#: the type of each dtype
TYPES = {dtype: scalar_type(dtype) for dtype in dtypes.ALL}
