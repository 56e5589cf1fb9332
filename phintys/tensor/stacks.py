"""Tensors side by side along the first, second or third axis, as NumPy's functions put them."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.tensor.aliases import TensorLike
from phintys.tensor.axes import atleast_1d, atleast_2d, expand_dims
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.join import join
from phintys.tensor.variable import TensorVariable

__all__ = ["column_stack", "dstack", "hstack", "vstack"]


def hstack(tup: Sequence[TensorLike]) -> TensorVariable:
    """Tensors concatenated along the second axis, vectors along the first.

    ShapeError if other lengths differ.

    >>> import phintys.tensor as pt
    >>> pt.hstack([[[1], [2]], [[3], [4]]]).eval(), pt.hstack([[1, 2], [3]]).eval()
    (array([[1, 3],
           [2, 4]]), array([1, 2, 3]))
    """
    tensors = [atleast_1d(x) for x in tup]
    return join(0 if tensors[0].type.ndim == 1 else 1, *tensors)


def vstack(tup: Sequence[TensorLike]) -> TensorVariable:
    """Tensors concatenated along the first axis; vectors are rows.

    ShapeError if other lengths differ.

    >>> import phintys.tensor as pt
    >>> pt.vstack([[1, 2], [3, 4]]).eval()
    array([[1, 2],
           [3, 4]])
    """
    return join(0, *(atleast_2d(x) for x in tup))


def dstack(tup: Sequence[TensorLike]) -> TensorVariable:
    """Tensors concatenated along the third axis.

    A vector is a tensor of shape ``(1, n, 1)``, a matrix one of shape ``(m, n, 1)``.  ShapeError if
    other lengths differ.

    >>> import phintys.tensor as pt
    >>> pt.dstack([[1, 2], [3, 4]]).eval()
    array([[[1, 3],
            [2, 4]]])
    """
    tensors = [atleast_2d(x) for x in tup]
    return join(2, *(expand_dims(x, 2) if x.type.ndim == 2 else x for x in tensors))


def column_stack(tup: Sequence[TensorLike]) -> TensorVariable:
    """Tensors concatenated along the second axis; vectors are columns.

    ShapeError if other lengths differ.

    >>> import phintys.tensor as pt
    >>> pt.column_stack([[1, 2], [3, 4]]).eval()
    array([[1, 3],
           [2, 4]])
    """
    tensors = [as_tensor_variable(x) for x in tup]
    return join(1, *(x if x.type.ndim > 1 else atleast_2d(x).T for x in tensors))
