"""Conversion of numbers, arrays and other values to tensor variables and constants."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from functools import cache, singledispatch
from typing import Any

import numpy as np

from phintys.errors import UnconvertibleError
from phintys.graph.ignored import ignores
from phintys.graph.op import Op
from phintys.graph.variable import Apply, Variable, late_bound
from phintys.scalar import dtypes
from phintys.scalar.arrays import as_array
from phintys.scalar.conversion import converted
from phintys.scalar.type import ScalarType
from phintys.tensor.aliases import DTypeLike, TensorLike
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorConstant, TensorVariable

#: A tuple, because a union type would be built in each isinstance call.
_NUMBERS = (bool, int, float, complex)


def constant(
    x: TensorLike,
    name: str | None = None,
    ndim: int | None = None,
    dtype: DTypeLike | None = None,
) -> TensorConstant:
    """A constant tensor.

    Python numbers get the smallest dtype that holds them, arrays keep theirs, lists get NumPy's.
    ``ndim`` adds axes of length 1 on the left, or drops them.  TypeError for symbolic values.

    >>> constant(1.5).type
    TensorType(float32, shape=())
    """
    if isinstance(x, Variable):
        if isinstance(x, TensorConstant) and ndim in (None, x.ndim) and dtype in (None, x.dtype):
            return x
        raise TypeError(f"{x} is symbolic: it cannot be made a constant.")
    is_number = isinstance(x, _NUMBERS) and not isinstance(x, np.generic)
    if is_number and dtype is None:
        typ = literal_type(dtypes.literal_dtype(x), ndim or 0)
        return TensorConstant(typ, np.array(x, typ.numpy_dtype, ndmin=typ.ndim), name=name)
    array = as_array(x)
    if array.dtype.kind == "O":
        raise TypeError(f"{x!r} is not an array of numbers.")
    # a copy, so that the constant does not change if the caller writes to the array
    target = dtypes.as_dtype(array.dtype if dtype is None else dtype)
    data = np.array(converted(array, target), target, order="C")
    if ndim is not None and data.ndim != ndim:
        _check_rank("A value", data.shape, ndim)
        data = data.reshape((1,) * (ndim - data.ndim) + data.shape[max(data.ndim - ndim, 0) :])
    return TensorConstant(TensorType(target, data.shape), data, name=name)


@cache
def literal_type(dtype: str, ndim: int) -> TensorType:
    """The type of a number with ``ndim`` axes of length 1."""
    return TensorType(dtype, (1,) * ndim)


@singledispatch
def tensor_variable_of(
    x: TensorLike, name: str | None = None, ndim: int | None = None, **kwargs: Any
) -> TensorVariable:
    """Convert ``x``; functions can be registered for further classes of values.

    UnconvertibleError if ``x`` is neither numbers nor a list, TypeError if it has a wrong dtype.
    """
    if isinstance(x, bool):
        raise TypeError(
            f"{x} is a Python bool: write np.array({x}) for a boolean tensor, or 0 / 1 for a "
            "number."
        )
    try:
        return constant(x, name=name, ndim=ndim, **kwargs)
    except TypeError as exc:
        if isinstance(x, list | tuple | np.ndarray):
            raise
        raise UnconvertibleError(str(exc)) from None


@tensor_variable_of.register(Variable)
def _from_variable(
    x: Any, name: str | None = None, ndim: int | None = None, **kw: Any
) -> TensorVariable:
    if isinstance(x.type, ScalarType):
        from_scalar, _ = scalar_conversions
        x = from_scalar(x)
    if not isinstance(x.type, TensorType):
        raise TypeError(f"{x} of type {x.type} cannot be used as a tensor.")
    if ndim is None or x.ndim == ndim:
        return x
    _check_rank(x, x.type.shape, ndim)
    return pad_left[0](x, ndim)


def _check_rank(x: object, shape: Sequence[int | None], ndim: int) -> None:
    """ValueError if a tensor of this shape cannot get another rank: its first axes are not 1."""
    if ndim < 0 or any(length != 1 for length in shape[: max(len(shape) - ndim, 0)]):
        raise ValueError(f"{x} has {len(shape)} dimensions; it cannot be given ndim={ndim}.")


@tensor_variable_of.register(Apply)
def _from_apply(
    x: Apply, name: str | None = None, ndim: int | None = None, **kwargs: Any
) -> TensorVariable:
    return as_tensor_variable(x.default_output(), name=name, ndim=ndim, **kwargs)


@ignores("allow_xtensor_conversion")
def as_tensor_variable(
    x: TensorLike,
    name: str | None = None,
    ndim: int | None = None,
    *,
    allow_xtensor_conversion: bool = False,
    **kwargs: Any,
) -> TensorVariable:
    """``x`` as a tensor variable: variables stay, numbers and arrays become constants.

    ``ndim`` adds axes on the left, or drops axes there that are known to be 1.  TypeError if ``x``
    cannot be a tensor.  ``allow_xtensor_conversion`` has no effect: it is about variables with
    named dimensions, which do not exist here.
    """
    if ndim is None and isinstance(x, TensorVariable):
        return x
    return tensor_variable_of(x, name=name, ndim=ndim, **kwargs)


def as_argument(x: TensorLike, what: str) -> TensorVariable:
    """``x`` as a tensor variable; the TypeError for one that is no tensor calls it ``what``."""
    try:
        return as_tensor_variable(x)
    except TypeError as exc:
        raise TypeError(f"{what}, {reprlib.repr(x)}, is no tensor: {exc}") from None


as_tensor = as_tensor_variable
late_bound["as_tensor_variable"] = as_tensor_variable

#: Set by `phintys.tensor.shape`: functions (scalar -> tensor, tensor -> scalar), and left padding.
scalar_conversions: list[Op] = []
pad_left: list[Callable[[TensorVariable, int], TensorVariable]] = []
