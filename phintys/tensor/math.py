"""Functions composed of elementwise functions: rounding, closeness, `where`, division."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from phintys.scalar import dtypes
from phintys.tensor import axes, convert, creation, quantiles, ranges, statistics, type_constructors
from phintys.tensor import dot as products
from phintys.tensor import join as joins
from phintys.tensor import reduce as reductions
from phintys.tensor import shape as shapes
from phintys.tensor import tensordot as contractions
from phintys.tensor.aliases import TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.nonzero import nonzero
from phintys.tensor.scalar_functions import FUNCTIONS
from phintys.tensor.variable import TensorVariable

__all__ = [
    "allclose",
    "ceil_intdiv",
    "conj",
    "conjugate",
    "divmod",
    "iround",
    "isclose",
    "isneginf",
    "isposinf",
    "kn",
    "largest",
    "logaddexp",
    "nan_to_num",
    "power",
    "round",
    "smallest",
    "where",
]

ROUNDING = {
    None: "round_half_to_even",
    "half_to_even": "round_half_to_even",
    "half_away_from_zero": "round_half_away_from_zero",
}


def round(a: TensorLike, mode: str | None = None) -> TensorVariable:
    """``a`` rounded: half to even, or with ``mode="half_away_from_zero"`` away from zero.

    >>> import phintys.tensor as pt
    >>> pt.round([0.5, 1.5, 2.5]).eval()
    array([0., 2., 2.])
    """
    if mode not in ROUNDING:
        raise ValueError(f"The mode of round is one of {list(ROUNDING)}, not {mode!r}.")
    return getattr(functions, ROUNDING[mode])(a)


def conj(x: TensorLike) -> TensorVariable:
    """The complex conjugate; real tensors are returned unchanged.

    >>> import phintys.tensor as pt
    >>> pt.conj([1 + 2j, 3j]).eval()
    array([1.-2.j, 0.-3.j])
    >>> x = pt.dvector()
    >>> pt.conj(x) is x
    True
    """
    x = as_tensor_variable(x)
    return functions.conj(x) if dtypes.is_complex(x.type.dtype) else x


conjugate = conj


def power(x: typing.Any, y: typing.Any) -> typing.Any:
    """``x**y``; of Python numbers a number, of arrays an array, as in PyTensor.

    >>> import phintys.tensor as pt
    >>> pt.power(10, 3), pt.power(pt.constant([1.0, 2.0]), 2).eval()
    (1000, array([1., 4.]))
    """
    return x**y


def logaddexp(*xs: TensorLike) -> TensorVariable:
    """``log(exp(x) + exp(y) + ...)`` of one or more tensors, elementwise and without overflow.

    TypeError without arguments.

    >>> import phintys.tensor as pt
    >>> pt.logaddexp([1000.0], [1000.0], [0.0]).eval()
    array([1000.69314718])
    """
    if not xs:
        raise TypeError("logaddexp takes one argument or more.")
    return as_tensor_variable(reduce(functions.logaddexp, xs))


def kn(n: TensorLike, x: TensorLike) -> TensorVariable:
    """The modified Bessel function of the second kind of order ``n`` at ``x``: `kv`.

    >>> import phintys.tensor as pt
    >>> pt.kn(2, [1.0, 2.0]).eval().round(6)
    array([1.624839, 0.25376 ])
    """
    return functions.kv(n, x)


def iround(a: TensorLike, mode: str | None = None) -> TensorVariable:
    """``a`` rounded as by `round`, and cast to int64."""
    return cast(round(a, mode), "int64")


def divmod(x: TensorLike, y: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """``x // y`` and ``x % y``."""
    return functions.int_div(x, y), functions.mod(x, y)


def ceil_intdiv(a: TensorLike, b: TensorLike) -> TensorVariable:
    """The quotient of integers, rounded up.

    >>> import phintys.tensor as pt
    >>> pt.ceil_intdiv([4, 5, -5], 2).eval()
    array([ 2,  3, -2])
    """
    return functions.int_div(a, b) + functions.neq(functions.mod(a, b), 0)


def isclose(
    a: TensorLike,
    b: TensorLike,
    rtol: TensorLike = 1e-05,
    atol: TensorLike = 1e-08,
    equal_nan: bool = False,
) -> TensorVariable:
    """Whether ``|a - b| <= atol + rtol |b|``, or both are the same infinity.

    NaN is not close to anything, except to NaN with ``equal_nan``.

    >>> import phintys.tensor as pt
    >>> pt.isclose([1.0, float("inf")], [1.0 + 1e-9, float("inf")]).eval()
    array([ True,  True])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    near = functions.le(functions.abs(_signed(a) - _signed(b)), atol + rtol * functions.abs(b))
    finite = functions.and_(functions.isfinite(a), functions.isfinite(b))
    close = functions.or_(functions.and_(near, finite), functions.eq(a, b))
    if equal_nan:
        close = functions.or_(close, functions.and_(functions.isnan(a), functions.isnan(b)))
    return close


def _signed(x: TensorVariable) -> TensorVariable:
    """``x``, with integers and bools cast to float64, so that differences do not wrap around."""
    return cast(x, "float64") if dtypes.is_discrete(x.type.dtype) else x


def allclose(
    a: TensorLike,
    b: TensorLike,
    rtol: TensorLike = 1e-05,
    atol: TensorLike = 1e-08,
    equal_nan: bool = False,
) -> TensorVariable:
    """Whether `isclose` holds for all elements."""
    return reductions.all(isclose(a, b, rtol, atol, equal_nan))


def isposinf(x: TensorLike) -> TensorVariable:
    """Whether ``x`` is positive infinity."""
    return functions.eq(x, np.float32(np.inf))


def isneginf(x: TensorLike) -> TensorVariable:
    """Whether ``x`` is negative infinity."""
    return functions.eq(x, np.float32(-np.inf))


def nan_to_num(
    x: TensorLike,
    nan: TensorLike = 0.0,
    posinf: TensorLike | None = None,
    neginf: TensorLike | None = None,
) -> TensorVariable:
    """``x`` with NaN and infinities replaced, the latter by the largest numbers of the dtype.

    Real and imaginary parts of complex numbers are replaced separately.

    >>> import phintys.tensor as pt
    >>> pt.nan_to_num([1.0, float("nan")], nan=2.0).eval()
    array([1., 2.])
    """
    x = as_tensor_variable(x)
    if dtypes.is_discrete(x.type.dtype):
        return x
    if dtypes.is_complex(x.type.dtype):
        parts = functions.real(x), functions.imag(x)
        return functions.complex(*(nan_to_num(part, nan, posinf, neginf) for part in parts))
    limits = np.finfo(x.type.dtype)
    replaced = functions.switch(functions.isnan(x), _as(nan, x), x)
    greatest = limits.max if posinf is None else posinf
    replaced = functions.switch(isposinf(x), _as(greatest, x), replaced)
    least = limits.min if neginf is None else neginf
    return functions.switch(isneginf(x), _as(least, x), replaced)


def _as(value: TensorLike, x: TensorVariable) -> TensorVariable:
    return cast(as_tensor_variable(value), x.type.dtype)


def largest(*args: TensorLike) -> TensorVariable:
    """The elementwise maximum of any number of tensors."""
    return reduce(functions.maximum, map(as_tensor_variable, args))


def smallest(*args: TensorLike) -> TensorVariable:
    """The elementwise minimum of any number of tensors."""
    return reduce(functions.minimum, map(as_tensor_variable, args))


def variadic_add(*args: TensorLike) -> typing.Any:
    """The sum of any number of tensors: 0 of none, the tensor itself of one."""
    return _folded(functions.add, 0, args)


def variadic_mul(*args: TensorLike) -> typing.Any:
    """The product of any number of tensors: 1 of none, the tensor itself of one."""
    return _folded(functions.mul, 1, args)


def _folded(
    function: Callable[..., typing.Any], neutral: int, args: Sequence[TensorLike]
) -> typing.Any:
    if len(args) == 1:
        return args[0]
    return function(*args) if args else as_tensor_variable(neutral)


def where(
    cond: TensorLike, ift: TensorLike | None = None, iff: TensorLike | None = None
) -> TensorVariable | tuple[TensorVariable, ...]:
    """``ift`` where the condition holds, else ``iff``; without both, `nonzero` of the condition.

    >>> import phintys.tensor as pt
    >>> pt.where(np.array([True, False]), 1, 2).eval()
    array([1, 2], dtype=int8)
    """
    if ift is None and iff is None:
        return nonzero(as_tensor_variable(cond))
    if ift is None or iff is None:
        raise ValueError("where takes one argument, or three.")
    return functions.switch(cond, ift, iff)


# ------------------------------------------------------- names of PyTensor's tensor.math

Any = reductions.Any_

#: names that PyTensor has in its module, besides the elementwise functions, and where they are here
_ELSEWHERE: dict[str, typing.Any] = {
    name: module
    for module, names in (
        (axes, "expand_dims"),
        (convert, "as_tensor constant"),
        (creation, "alloc ones_like"),
        (joins, "concatenate join stack"),
        (ranges, "arange"),
        (shapes, "shape specify_shape"),
        (type_constructors, "tensor"),
        (products, "Dot _matmul dense_dot dot matmul matvec outer vecdot vecmat"),
        (contractions, "tensordot"),
        (quantiles, "cov median"),
        (statistics, "mean ptp std var"),
        (
            reductions,
            "All Argmax FixedOpCAReduce Max Min Prod ProdWithoutZeros Sum all any argmax argmin "
            "makeKeepDims max max_and_argmax min prod sum",
        ),
    )
    for name in names.split()
}


def __getattr__(name: str) -> typing.Any:
    """Elementwise functions, reductions and products; not attributes, to hide no builtins here."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_ELSEWHERE[name], name)
