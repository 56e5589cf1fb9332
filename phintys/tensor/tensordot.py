"""Products of tensors that are summed over several axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.errors import ShapeError
from phintys.tensor.aliases import Axes, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.dot import Pairs, contracted
from phintys.tensor.elemwise import functions
from phintys.tensor.shape import normalize_axis_tuple
from phintys.tensor.variable import TensorVariable

__all__ = ["batched_tensordot", "inner", "tensordot"]


def inner(a: TensorLike, b: TensorLike) -> TensorVariable:
    """The sums of products over the last axes, as ``numpy.inner``; the product with a 0-d operand.

    >>> import phintys.tensor as pt
    >>> pt.inner(pt.ones((2, 3)), pt.ones((4, 3))).type.shape
    (2, 4)
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if not a.type.ndim or not b.type.ndim:
        return functions.mul(a, b)
    return tensordot(a, b, ([-1], [-1]))


def tensordot(a: TensorLike, b: TensorLike, axes: int | Sequence[Axes] = 2) -> TensorVariable:
    """The sum of products over pairs of axes, as ``numpy.tensordot``.

    Parameters
    ----------
    a, b : tensors
    axes : the axes of ``a`` and those of ``b``, in pairs; or a number n: the last n axes of ``a``
        and the first n of ``b``

    ValueError if the axes do not pair up, ShapeError if their lengths differ.

    >>> import phintys.tensor as pt
    >>> pt.tensordot(pt.ones((2, 3, 4)), pt.ones((4, 3, 5)), axes=[[1, 2], [1, 0]]).type.shape
    (2, 5)
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    return contracted(a, b, Pairs((), ()), _paired(a, b, axes, 0))


def batched_tensordot(
    x: TensorLike, y: TensorLike, axes: int | Sequence[Axes] = 2
) -> TensorVariable:
    """`tensordot` of the items of two batches along their first axes, which have equal length.

    ``axes`` are as for `tensordot`: axes of ``x`` and ``y``, not of their items; a number n stands
    for the last n axes of ``x`` and the n after the first of ``y``.  ValueError if the axes do not
    pair up or are first ones, ShapeError if lengths differ.

    >>> import phintys.tensor as pt
    >>> pt.batched_tensordot(pt.ones((5, 2, 3)), pt.ones((5, 3, 4)), axes=1).type.shape
    (5, 2, 4)
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if not x.type.ndim or not y.type.ndim:
        raise ValueError(f"batched_tensordot takes batches; {x} and {y} need a first axis.")
    pairs = _paired(x, y, axes, 1)
    if 0 in (*pairs.left, *pairs.right):
        raise ValueError(f"The first axes of {x} and {y} are those of the batch: {axes}.")
    return contracted(x, y, Pairs((0,), (0,)), pairs)


def _paired(a: TensorVariable, b: TensorVariable, axes: int | Sequence[Axes], first: int) -> Pairs:
    """The axes to sum over; items of ``b`` begin at its axis ``first``."""
    if isinstance(axes, int | np.integer):
        n = int(axes)
        if not 0 <= n <= min(a.type.ndim, b.type.ndim) - first:
            raise ValueError(f"Cannot sum over {n} axes of {a} ({a.type}) and {b} ({b.type}).")
        axes = [range(a.type.ndim - n, a.type.ndim), range(first, first + n)]
    if len(axes) != 2:
        raise ValueError(f"axes are a number or two lists of axes, not {axes}.")
    left, right = (normalize_axis_tuple(k, x.type.ndim) for k, x in zip(axes, (a, b)))
    if len(left) != len(right):
        raise ValueError(f"tensordot needs as many axes of {a} as of {b}: {axes}.")
    for i, j in zip(left, right):
        n, m = a.type.shape[i], b.type.shape[j]
        if n is not None and m is not None and n != m:
            raise ShapeError(f"Axis {i} of {a} has length {n}, axis {j} of {b} length {m}.")
    return Pairs(left, right)
