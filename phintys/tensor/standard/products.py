"""The linear algebra functions of the main namespace of the array API."""

from __future__ import annotations

from typing import Any

import phintys.tensor as pt
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.standard.elementwise import conj


def matmul(x1: Any, x2: Any, /) -> Any:
    """Matrix products over the last two axes; leading axes are batches."""
    return pt.matmul(x1, x2)


def matrix_transpose(x: Any, /) -> Any:
    """``x`` with its last two axes exchanged."""
    return pt.matrix_transpose(x)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Sums of products over axes: the last and first ``axes``, or a pair of lists of axes."""
    return pt.tensordot(x1, x2, axes)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Sums of products along an axis of both; ``x1`` is conjugated."""
    x1, x2 = as_tensor_variable(x1), as_tensor_variable(x2)
    return pt.vecdot(conj(pt.moveaxis(x1, axis, -1)), pt.moveaxis(x2, axis, -1))


__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]
