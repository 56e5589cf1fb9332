"""dtypes in the array API: Python numbers take those of the arrays that they are combined with."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.config import config
from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable, constant

Number = bool | int | float | complex
#: A tuple, because a union type would be built in each isinstance call.
NUMBERS = (bool, int, float, complex)


def is_number(x: Any) -> bool:
    """Whether ``x`` is a Python number, and not one of NumPy."""
    return isinstance(x, NUMBERS) and not isinstance(x, np.generic)


def default_dtype(value: Number) -> str:
    """The dtype of an array made of a Python number: bool, int64, floatX, or its complex dtype."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "uint64" if value >= 2**63 else "int64"
    return config.floatX if isinstance(value, float) else complex_of(config.floatX)


def complex_of(dtype: str) -> str:
    """The complex dtype whose parts have the precision of ``dtype``."""
    if dtypes.is_complex(dtype):
        return dtype
    return "complex64" if dtype in ("float16", "float32") else "complex128"


def number_dtype(value: Number, dtype: str) -> str:
    """The dtype of a Python number that is combined with an array of ``dtype``.

    It is ``dtype`` itself, if that holds numbers of this kind.  TypeError for numbers with a bool.

    >>> number_dtype(2, "float32"), number_dtype(2.5, "int8"), number_dtype(1j, "float32")
    ('float32', 'float64', 'complex64')
    """
    if isinstance(value, bool) or (isinstance(value, int) and dtype != "bool"):
        return dtype
    if dtypes.is_discrete(dtype):
        return default_dtype(value)
    return complex_of(dtype) if isinstance(value, complex) else dtype


def check_element(value: Number, dtype: str) -> None:
    """TypeError if a Python number is of a kind that a dtype does not hold: 0.5 for integers."""
    order = ("b", "i", "f", "c")
    kinds = ((bool, "b"), (int, "i"), (float, "f"), (complex, "c"))
    kind = next(kind for cls, kind in kinds if isinstance(value, cls))
    if order.index(kind) > order.index(dtypes.kind(dtype).replace("u", "i")):
        raise TypeError(f"{value!r} cannot be an element of an array of dtype {dtype}.")


def as_array(x: Any) -> Any:
    """``x`` as a tensor variable; a Python number gets its default dtype."""
    return constant(x, dtype=default_dtype(x)) if is_number(x) else as_tensor_variable(x)


def operands(*xs: Any) -> list[Any]:
    """Tensors and Python numbers as tensor variables; the numbers take the dtype of the tensors.

    TypeError if all are numbers, OverflowError for an integer that the dtype cannot hold.
    """
    given = [x if is_number(x) else as_tensor_variable(x) for x in xs]
    arrays = [x.type.dtype for x in given if isinstance(x, Variable)]
    if not arrays:
        raise TypeError(f"One of the arguments {xs} must be an array.")
    common = dtypes.upcast(*arrays)
    return [
        x if isinstance(x, Variable) else constant(x, dtype=number_dtype(x, common)) for x in given
    ]


def check_device(device: Any) -> None:
    """ValueError if ``device`` is not the only one, ``"cpu"``, or None."""
    if device not in (None, "cpu"):
        raise ValueError(f"There is one device, 'cpu', not {device!r}.")
