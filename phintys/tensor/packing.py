"""Several tensors in one, and back: `pack`, `unpack`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.join import concatenate, split
from phintys.tensor.reshape import as_lengths, join_dims, split_dims
from phintys.tensor.shape import product, shape
from phintys.tensor.static import as_length, entries

__all__ = ["pack", "unpack"]


def _kept_axes(keep_axes: Sequence[int] | int | None) -> tuple[int, int]:
    """The numbers of axes that are kept on the left and on the right."""
    axes = [keep_axes] if isinstance(keep_axes, int | np.integer) else list(keep_axes or ())
    left, right = sorted(a for a in axes if a >= 0), sorted(a for a in axes if a < 0)
    if left != list(range(len(left))) or right != list(range(-len(right), 0)):
        raise ValueError(
            f"The axes that are kept are the first ones (0, 1, ...), the last ones (-1, -2, ...), "
            f"or both, not {axes}."
        )
    return len(left), len(right)


def pack(*tensors: Any, keep_axes: Sequence[int] | int | None = None) -> tuple[Any, list[Any]]:
    """Several tensors in one, each flattened but for axes that are kept, and their shapes.

    Parameters
    ----------
    tensors : one or more tensors; dtypes are upcast
    keep_axes : axes that are not flattened, whose lengths agree: some of the first (0, 1, ...), of
        the last (-1, -2, ...), or both; None: none

    Returns
    -------
    packed : tensor with the kept axes, and one with all other elements between them
    shapes : for each tensor the lengths of the axes that were flattened, an int64 vector

    ValueError for other axes, or tensors with fewer axes than are kept.

    >>> import phintys.tensor as pt
    >>> packed, shapes = pt.pack(pt.zeros((2, 2)), [1.0, 2.0, 3.0])
    >>> packed.eval()
    array([0., 0., 0., 0., 1., 2., 3.])
    >>> [pt.sum(x).eval().item() for x in pt.unpack(packed, shapes)]
    [0.0, 6.0]
    """
    if not tensors:
        raise ValueError("pack needs at least one tensor.")
    left, right = _kept_axes(keep_axes)
    flat: list[Any] = []
    shapes: list[Any] = []
    for x in map(as_tensor_variable, tensors):
        count = x.type.ndim - left - right
        if count < 0:
            raise ValueError(f"{left + right} axes are kept; {x} has {x.type.ndim} dimensions.")
        shapes.append(shape(x)[left : left + count])
        flat.append(join_dims(x, left, count))
    return concatenate(flat, axis=left), shapes


def unpack(
    packed_input: Any, packed_shapes: Sequence[Any], keep_axes: Sequence[int] | int | None = None
) -> list[Any]:
    """The tensors that `pack` has packed.

    Parameters
    ----------
    packed_input : tensor with the kept axes, and one more
    packed_shapes : for each tensor the lengths of the axes that were flattened: sequences or
        integer vectors of known length
    keep_axes : as for `pack`

    ValueError for a tensor of another rank; ShapeError at run time if the lengths do not add up.

    >>> import phintys.tensor as pt
    >>> [x.eval() for x in pt.unpack(pt.arange(5), [(2, 2), ()])]
    [array([[0, 1],
           [2, 3]]), array(4)]
    """
    left, right = _kept_axes(keep_axes)
    x = as_tensor_variable(packed_input)
    if x.type.ndim != left + right + 1:
        raise ValueError(f"A packed tensor has {left + right + 1} dimensions here; {x}: {x.type}.")
    shapes = [as_lengths(given) for given in packed_shapes]
    sizes = [product([as_length(n) for n in entries(lengths)]) for lengths in shapes]
    pieces = split(x, sizes, n_splits=len(sizes), axis=left)
    return [split_dims(piece, lengths, left) for piece, lengths in zip(pieces, shapes)]
