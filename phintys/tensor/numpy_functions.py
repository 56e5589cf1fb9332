"""Functions that are composed for `numpy_protocols`, with NumPy's names and parameters.

They are called when a function of NumPy has a symbolic variable as an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import phintys.tensor as pt
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import axis_of, cast, conjugate, functions
from phintys.tensor.shape import length, product, shape_tuple
from phintys.tensor.stacks import column_stack, dstack, hstack, vstack
from phintys.tensor.variable import TensorVariable

__all__ = [
    "append",
    "argwhere",
    "astype",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "clip",
    "column_stack",
    "concatenate",
    "copy",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "dstack",
    "einsum",
    "fliplr",
    "flipud",
    "full_like",
    "hstack",
    "iscomplex",
    "iscomplexobj",
    "isreal",
    "isrealobj",
    "kron",
    "ndim",
    "result_type",
    "roll",
    "round",
    "shape",
    "size",
    "split",
    "unique",
    "vdot",
    "vstack",
]

# ------------------------------------------------------------------------------- ufuncs

#: Functions of this module that take the place of ufuncs which are no rows of the scalar table.
UFUNCS = (
    "degrees", "divmod", "fabs", "float_power", "logaddexp2", "positive", "radians", "vecdot",
    "vecmat",
)  # fmt: skip


def positive(x: Any) -> Any:
    """``x`` itself."""
    return as_tensor_variable(x)


def degrees(x: Any) -> Any:
    """Radians as degrees."""
    return functions.rad2deg(x)


def radians(x: Any) -> Any:
    """Degrees as radians."""
    return functions.deg2rad(x)


def divmod(x1: Any, x2: Any) -> tuple[Any, Any]:
    """The floor of the quotient, and the remainder."""
    return pt.divmod(x1, x2)


def fabs(x: Any) -> Any:
    """The magnitude as a float."""
    x = as_tensor_variable(x)
    return functions.abs(cast(x, dtypes.float_of(x.type.dtype)))


def float_power(x1: Any, x2: Any) -> Any:
    """``x1`` to the power ``x2``, in double precision."""
    x1, x2 = as_tensor_variable(x1), as_tensor_variable(x2)
    dtype = dtypes.upcast(x1.type.dtype, x2.type.dtype, "float64")
    return functions.pow(cast(x1, dtype), cast(x2, dtype))


def logaddexp2(x1: Any, x2: Any) -> Any:
    """``log2(2**x1 + 2**x2)`` without overflow."""
    x1, x2 = as_tensor_variable(x1), as_tensor_variable(x2)
    dtype = dtypes.float_of(dtypes.upcast(x1.type.dtype, x2.type.dtype))
    scale = np.log(2).astype(dtype)
    return functions.logaddexp(cast(x1, dtype) * scale, cast(x2, dtype) * scale) / scale


# -------------------------------------------------------------------------------- types


def ndim(a: Any) -> int:
    """The number of dimensions."""
    return int(as_tensor_variable(a).type.ndim)


def shape(a: Any) -> Any:
    """The shape, a symbolic vector."""
    return pt.shape(a)


def size(a: Any, axis: int | None = None) -> Any:
    """The number of elements, or the length of an axis, a symbolic integer."""
    a = as_tensor_variable(a)
    return product(shape_tuple(a)) if axis is None else length(a, axis_of(axis, a.type.ndim))


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype to which the arguments are promoted by NumPy's rules."""
    return np.result_type(
        *(np.dtype(x.type.dtype) if isinstance(x, TensorVariable) else x for x in arrays_and_dtypes)
    )


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return dtypes.is_complex(as_tensor_variable(x).type.dtype)


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


def iscomplex(x: Any) -> Any:
    """Whether the imaginary parts are not 0."""
    return functions.neq(functions.imag(x), 0)


def isreal(x: Any) -> Any:
    """Whether the imaginary parts are 0."""
    return functions.eq(functions.imag(x), 0)


def astype(x: Any, dtype: Any) -> Any:
    """``x`` cast to a dtype."""
    return cast(x, dtype)


def copy(a: Any) -> Any:
    """A copy of ``a``."""
    return functions.identity(a)


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Any:
    """``fill_value`` in the shape of ``a``, and in its dtype unless another is given."""
    a = as_tensor_variable(a)
    return pt.full_like(a, fill_value, a.type.dtype if dtype is None else dtype)


# ------------------------------------------------------------------------------- values


def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """``a`` limited to a range; None: no limit."""
    a = as_tensor_variable(a)
    low, high = (x if x is not None else y for x, y in ((a_min, min), (a_max, max)))
    if low is not None and high is not None:
        return functions.clip(a, low, high)
    if low is not None:
        return functions.maximum(a, low)
    return a if high is None else functions.minimum(a, high)


def round(a: Any) -> Any:
    """The nearest integers, half to even; of complex numbers, of both parts."""
    a = as_tensor_variable(a)
    if dtypes.is_discrete(a.type.dtype):
        return a
    if not dtypes.is_complex(a.type.dtype):
        return functions.round_half_to_even(a)
    parts = functions.real(a), functions.imag(a)
    return cast(functions.complex(*map(functions.round_half_to_even, parts)), a.type.dtype)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The number of elements that are not 0, over axes."""
    return pt.sum(functions.neq(a, 0), axis, dtype="int64", keepdims=keepdims)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Cumulative sums; 64 bit for integers and bools, unless a dtype is given."""
    return _running(pt.cumsum, a, axis, dtype)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Cumulative products; 64 bit for integers and bools, unless a dtype is given."""
    return _running(pt.cumprod, a, axis, dtype)


def _running(build: Any, a: Any, axis: int | None, dtype: Any) -> Any:
    return build(a, axis) if dtype is None else cast(build(cast(a, dtype), axis), dtype)


def einsum(*operands: Any, optimize: Any = False) -> Any:
    """Sums of products; their order is decided here also without ``optimize``."""
    return pt.einsum(*operands, optimize=optimize or None)


def kron(a: Any, b: Any) -> Any:
    """The Kronecker product."""
    return pt.linalg.kron(a, b)


def vdot(a: Any, b: Any) -> Any:
    """The sum of products of the elements; those of ``a`` are conjugated."""
    a, b = pt.flatten(as_tensor_variable(a)), pt.flatten(as_tensor_variable(b))
    return pt.tensordot(conjugate(a), b, 1)


def vecdot(x1: Any, x2: Any) -> Any:
    """Inner products over the last axis; the elements of ``x1`` are conjugated."""
    return pt.vecdot(conjugate(as_tensor_variable(x1)), x2)


def vecmat(x1: Any, x2: Any) -> Any:
    """Products of vectors, whose elements are conjugated, and matrices."""
    return pt.vecmat(conjugate(as_tensor_variable(x1)), x2)


def argwhere(a: Any) -> Any:
    """The positions of the elements that are not 0, as rows of a matrix."""
    return pt.transpose(pt.nonzero(a, return_matrix=True))


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """The distinct elements; positions in their order have the shape of ``ar``, as in NumPy 2."""
    ar = as_tensor_variable(ar)
    found = pt.unique(ar, return_index, return_inverse, return_counts, axis)
    if return_inverse and axis is None:
        at = 1 + return_index
        found[at] = pt.reshape(found[at], shape_tuple(ar), ndim=ar.type.ndim)
    return tuple(found) if isinstance(found, list) else found


# -------------------------------------------------------------------------------- joins


def concatenate(arrays: Any, axis: int | None = 0) -> Any:
    """Tensors concatenated along an axis; flattened if it is None."""
    tensors = [as_tensor_variable(x) for x in arrays]
    if axis is None:
        return pt.join(0, *map(pt.flatten, tensors))
    return pt.join(axis, *tensors)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """``arr`` followed by ``values``."""
    return concatenate([arr, values], axis)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The parts of a tensor: as many of equal length, or those between positions."""
    ary = as_tensor_variable(ary)
    if isinstance(indices_or_sections, int | np.integer):
        count = int(indices_or_sections)
        size = length(ary, axis_of(axis, ary.type.ndim)) // count
        return pt.split(ary, [size] * count, n_splits=count, axis=axis)
    bounds = [None, *indices_or_sections, None]
    return [ary[pt.slice_at_axis(slice(start, stop), axis)] for start, stop in pairwise(bounds)]


# --------------------------------------------------------------------------------- axes


def atleast_1d(*arys: Any) -> Any:
    """Tensors with at least one axis."""
    return _each(pt.atleast_1d, arys)


def atleast_2d(*arys: Any) -> Any:
    """Tensors with at least two axes; vectors are rows."""
    return _each(pt.atleast_2d, arys)


def atleast_3d(*arys: Any) -> Any:
    """Tensors with at least three axes: a vector is ``(1, n, 1)``, a matrix ``(m, n, 1)``."""

    def widened(x: Any) -> Any:
        x = pt.atleast_2d(x)
        return pt.expand_dims(x, 2) if x.type.ndim == 2 else x

    return _each(widened, arys)


def _each(function: Any, tensors: Sequence[Any]) -> Any:
    found = tuple(map(function, tensors))
    return found[0] if len(found) == 1 else found


def fliplr(m: Any) -> Any:
    """The elements in reverse order along the second axis."""
    return pt.flip(m, 1)


def flipud(m: Any) -> Any:
    """The elements in reverse order along the first axis."""
    return pt.flip(m, 0)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Elements shifted along one axis or several, wrapping around; see `phintys.tensor.roll`."""
    return pt.roll(a, shift, axis)
