"""Shapes of draws: the argument ``size``, and parameters that are broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import ShapeLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, dimshuffle
from phintys.tensor.type_other import NoneConst, NoneTypeT
from phintys.tensor.variable import Tensors, TensorVariable

#: the argument ``size`` of a draw
Size = ShapeLike | None


def rv_size_is_none(size: Variable | None) -> bool:
    """Whether the input ``size`` of a draw is None, so that the parameters give the shape."""
    return size is None or isinstance(size.type, NoneTypeT)


def normalize_size_param(size: Size) -> Variable:
    """The argument ``size`` of a draw as an int64 vector of known length, or as `NoneConst`.

    TypeError if it is not an integer, a sequence of integers, an integer vector or None; ValueError
    if the length of a vector is not known.

    >>> normalize_size_param(3).data
    array([3])
    """
    if size is None or (isinstance(size, Variable) and isinstance(size.type, NoneTypeT)):
        return NoneConst
    given: Any = size  # `np.size` is not declared to take variables
    if (
        isinstance(size, Sequence | np.ndarray)
        and not isinstance(size, str)
        and np.size(given) == 0
    ):
        return as_tensor_variable(np.zeros(0, "int64"))
    size = as_tensor_variable([size] if isinstance(size, int | np.integer) else size)
    if size.type.dtype not in dtypes.INTEGER or size.type.ndim > 1:
        raise TypeError(f"The size of a draw is an integer, a vector of them or None, not {size}.")
    if size.type.ndim == 0:
        size = dimshuffle(size, ["x"])
    if size.type.shape[0] is None:
        raise ValueError(
            f"The length of size is not known: {size} has type {size.type}. Declare it, e.g. by "
            "pt.vector(dtype='int64', shape=(2,)), or give a list of integers."
        )
    return cast(size, "int64")


def explicit_expand_dims(
    params: Tensors, ndim_params: Sequence[int], size_length: int | None = None
) -> list[TensorVariable]:
    """The parameters with axes of length 1 inserted, so that all have equally many batch axes.

    ``ndim_params`` are the ranks of one item.  With a ``size_length`` there are so many batch axes;
    ValueError if that is too few for a parameter.
    """
    counts = [p.type.ndim - core for p, core in zip(params, ndim_params, strict=True)]
    most = max(counts, default=0)
    if size_length is not None:
        if most > size_length:
            raise ValueError(
                f"The size of a draw has {size_length} lengths, but a parameter has {most} batch "
                "dimensions: the size includes those of the parameters."
            )
        most = size_length
    return [
        p if n == most else dimshuffle(p, ["x"] * (most - n) + list(range(p.type.ndim)))
        for p, n in zip(params, counts)
    ]
