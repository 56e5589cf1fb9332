"""Norms of vectors and matrices, and what follows from singular values: rank and condition."""

from __future__ import annotations

from typing import Literal, cast

import numpy as np

from phintys.tensor import elemwise
from phintys.tensor.aliases import TensorLike
from phintys.tensor.axes import expand_dims, moveaxis
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.diagonal import trace as trace_of
from phintys.tensor.elemwise import functions
from phintys.tensor.linalg.decomposition.eigen import eigvalsh
from phintys.tensor.linalg.decomposition.svd import svd
from phintys.tensor.linalg.matrix_op import inexact
from phintys.tensor.linalg.solvers.general import solve
from phintys.tensor.raise_op import CheckAndRaise
from phintys.tensor.ranges import eye
from phintys.tensor.reduce import max as max_over
from phintys.tensor.reduce import min as min_over
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.shape import length, normalize_axis_tuple
from phintys.tensor.statistics import norm as power_norm
from phintys.tensor.variable import TensorVariable

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "trace", "vector_norm"]

Order = float | TensorVariable | Literal["fro", "f", "nuc", "inf", "-inf"] | None
VALID_ORD = Literal["fro", "f", "nuc", "inf", "-inf", 0, 1, -1, 2, -2]


def norm(
    x: TensorLike,
    ord: Order = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> TensorVariable:
    """The norms of vectors or of matrices.

    Parameters
    ----------
    x : tensor
    ord : the order, see `vector_norm` and `matrix_norm`; None: the square root of the sum of
        squares of absolute values
    axis : one axis: norms of vectors; two axes, those of rows and of columns: norms of matrices;
        None: the last two axes, or the only one
    keepdims : whether the result has these axes, with length 1

    The dtype is a real one: that of ``x`` if it is a float, that of its parts if it is complex.
    ValueError for an order that vectors, or matrices, do not have, and for other numbers of axes.
    `numpy.linalg.norm` differs for more than two axes, without ``axis`` and ``ord``: it is the norm
    of all elements.

    >>> import phintys.tensor as pt
    >>> pt.linalg.norm([[3.0, 0.0], [0.0, 4.0]], "nuc").eval()
    array(7.)
    """
    x = as_tensor_variable(x)
    if axis is None:
        axes = tuple(range(x.type.ndim))[-2:]
    else:
        axes = normalize_axis_tuple(axis, x.type.ndim)
    if len(axes) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, (axes[0], axes[1]), keepdims)
    if len(axes) > 2 or (x.type.ndim and not axes):
        raise ValueError(f"Norms are those of vectors and matrices, not of {len(axes)} axes.")
    return vector_norm(x, 2 if ord is None else ord, axes, keepdims)


def vector_norm(
    x: TensorLike,
    ord: Order = 2,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> TensorVariable:
    """``(sum |x|^ord)^(1/ord)`` over axes.

    Parameters
    ----------
    x : tensor
    ord : a number; 0: how many elements are not 0; inf or -inf: the greatest or the smallest
        absolute value
    axis : axes of the elements of a vector; None means all
    keepdims : whether the result has these axes, with length 1

    ValueError for other orders.

    >>> import phintys.tensor as pt
    >>> pt.linalg.vector_norm([[3.0, 4.0], [1.0, 0.0]], axis=1).eval()
    array([5., 1.])
    """
    x = _floating(x)
    axes = normalize_axis_tuple(range(x.type.ndim) if axis is None else axis, x.type.ndim)
    if isinstance(ord, str):
        if ord not in ("inf", "-inf"):
            raise ValueError(f"Vectors have no norm of the order {ord!r}.")
        ord = float(ord)
    return power_norm(x, 2 if ord is None else ord, axes, keepdims)


def matrix_norm(x: TensorLike, ord: Order = "fro", keepdims: bool = False) -> TensorVariable:
    """The norms of matrices, the last two axes of ``x``.

    Parameters
    ----------
    x : tensor with at least two axes
    ord : ``"fro"``: the square root of the sum of squares of absolute values; ``"nuc"``, 2 and -2:
        the sum of the singular values, the greatest and the smallest; 1 and -1: the greatest and
        the smallest sum of absolute values of a column; inf and -inf: of a row
    keepdims : whether the result has these axes, with length 1

    ValueError for other orders.

    >>> import phintys.tensor as pt
    >>> pt.linalg.matrix_norm([[1.0, -2.0], [3.0, 4.0]], float("inf")).eval()
    array(7.)
    """
    x = as_tensor_variable(x)
    if x.type.ndim < 2:
        raise ValueError(f"A matrix has two axes; {x} has {x.type.ndim}.")
    return _matrix_norm(x, ord, (x.type.ndim - 2, x.type.ndim - 1), keepdims)


def _matrix_norm(
    x: TensorVariable, ord: Order, axes: tuple[int, int], keepdims: bool
) -> TensorVariable:
    x = _floating(x)
    if ord in ("fro", "f"):
        return power_norm(x, 2, axes, keepdims)
    x = moveaxis(x, axes, (-2, -1))
    if ord in ("nuc", 2, -2):
        found = _of_singular_values(x, ord)
    elif ord in (1, -1, np.inf, -np.inf, "inf", "-inf"):
        order = float(cast(float, ord))
        sums = sum_over(functions.abs(x), axis=-2 if abs(order) == 1 else -1)
        found = max_over(sums, -1, initial=0) if order > 0 else min_over(sums, -1)
    else:
        raise ValueError(f"Matrices have no norm of the order {ord!r}.")
    return expand_dims(found, axes) if keepdims else found


def _of_singular_values(x: TensorVariable, ord: Order) -> TensorVariable:
    """The norm "nuc", 2 or -2 of matrices."""
    values = singular_values(x)
    if ord == "nuc":
        return sum_over(values, axis=-1)
    return max_over(values, -1, initial=0) if ord == 2 else min_over(values, -1)


def singular_values(x: TensorLike) -> TensorVariable:
    """The singular values of matrices, the greatest first."""
    found = svd(x, compute_uv=False)
    assert isinstance(found, TensorVariable)
    return found


def _floating(x: TensorLike) -> TensorVariable:
    """A tensor of floats or complex numbers, of at least float32 if made of integers."""
    x = as_tensor_variable(x)
    return elemwise.cast(x, inexact(x.type.dtype)) if x.type.is_discrete else x


# ----------------------------------------------------------------- rank, condition, trace


def matrix_rank(
    A: TensorLike,
    tol: TensorLike | None = None,
    hermitian: bool = False,
    *,
    rtol: TensorLike | None = None,
) -> TensorVariable:
    """The number of singular values of matrices that are greater than a tolerance, as int64.

    Parameters
    ----------
    A : tensor; its last two axes are matrices, with fewer axes it is one row
    tol : the tolerance, one for each matrix
    hermitian : whether the matrices are Hermitian; then only their lower triangle is read
    rtol : a tolerance relative to the greatest singular value; by default the precision of the
        dtype times the greater length

    ValueError if ``tol`` and ``rtol`` are given.

    >>> import phintys.tensor as pt
    >>> pt.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).eval()
    array(1)
    """
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank takes tol or rtol, not both.")
    x = _floating(A)
    if x.type.ndim < 2:
        return elemwise.cast(max_over(functions.neq(x, 0)), "int64")
    values = functions.abs(eigvalsh(x)) if hermitian else singular_values(x)
    limit = relative_limit(x, values, rtol) if tol is None else expand_dims(tol, -1)
    return sum_over(elemwise.cast(functions.gt(values, limit), "int64"), axis=-1)


def relative_limit(
    x: TensorVariable, values: TensorVariable, rtol: TensorLike | None
) -> TensorVariable:
    """``rtol`` times the greatest of the singular values of ``x``, with an axis of length 1."""
    if rtol is None:
        rows, columns = x.shape[-2], x.shape[-1]
        rtol = functions.maximum(rows, columns) * float(np.finfo(values.type.dtype).eps)
    greatest = max_over(values, -1, keepdims=True, initial=0)
    return elemwise.cast(greatest * expand_dims(rtol, -1), values.type.dtype)


def cond(x: TensorLike, p: Order = None) -> TensorVariable:
    """The condition numbers of matrices, the last two axes of ``x``: ``norm(x) norm(inv(x))``.

    Parameters
    ----------
    x : tensor with at least two axes
    p : the order of the norms, see `matrix_norm`; None means 2.  For 2 and -2 the matrices need not
        be square

    It is infinite, or very large, for singular matrices, and NaN for those that contain NaN.
    LinAlgError for matrices without elements.

    >>> import phintys.tensor as pt
    >>> pt.linalg.cond([[2.0, 0.0], [0.0, 0.5]]).eval()
    array(4.)
    """
    x = as_tensor_variable(x)
    if x.type.ndim < 2:
        raise ValueError(f"cond takes matrices, at least two axes; {x} has type {x.type}.")
    message = f"cond is not defined for matrices without elements: {x} of type {x.type}."
    if 0 in x.type.shape[-2:]:
        raise np.linalg.LinAlgError(message)
    has_elements = [length(x, x.type.ndim - axis) > 0 for axis in (2, 1)]
    x = _floating(CheckAndRaise(np.linalg.LinAlgError, message)(x, *has_elements))
    if p in (None, 2, -2):
        values = singular_values(x)
        first, last = values[..., 0], values[..., -1]
        found = last / first if p == -2 else first / last
    else:
        inverse = solve(x, eye(x.shape[-1], dtype=x.type.dtype), b_ndim=2)
        found = matrix_norm(x, p) * matrix_norm(inverse, p)
    without = functions.isnan(found) & ~functions.isnan(sum_over(functions.abs(x), axis=(-2, -1)))
    return functions.switch(without, np.inf, found)


def trace(X: TensorLike) -> TensorVariable:
    """The sums of the diagonals of matrices, the last two axes of ``X``.

    >>> import phintys.tensor as pt
    >>> pt.linalg.trace([[1.0, 2.0], [3.0, 4.0]]).eval()
    array(5.)
    """
    return trace_of(X, axis1=-2, axis2=-1)
