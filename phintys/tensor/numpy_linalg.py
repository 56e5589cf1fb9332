"""The functions of ``numpy.linalg`` on variables: those of the array API, and more.

They are called when a function of NumPy has a symbolic variable as an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import phintys.tensor as pt
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.standard import linalg


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """``numpy.linalg.norm``: of vectors or matrices; of all elements without axis and order."""
    x = as_tensor_variable(x)
    if axis is None and ord is None:
        return pt.linalg.vector_norm(x, keepdims=keepdims)
    if axis is None and x.type.ndim > 2:
        raise ValueError(f"Norms are those of vectors and matrices; {x} has {x.type.ndim} axes.")
    return pt.linalg.norm(x, ord, axis, keepdims)


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """``numpy.linalg.pinv``, with the default of ``rtol`` of the array API."""
    return pt.linalg.pinv(a, hermitian, rtol=rtol if rcond is None else rcond)


#: by name
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(linalg, name) for name in linalg.__all__},
    **{name: getattr(pt.linalg, name) for name in ("cond", "lstsq", "matrix_rank", "multi_dot")},
    "norm": norm,
    "pinv": pinv,
    "tensorinv": pt.linalg.tensorinv,
    "tensorsolve": pt.linalg.tensorsolve,
}
