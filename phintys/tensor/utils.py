"""Names of PyTensor's ``tensor.utils``: helpers of authors of ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from numpy.typing import ArrayLike

from phintys.graph.variable import Variable
from phintys.tensor.reduce import normalize_reduce_axis
from phintys.tensor.static import known_length

__all__ = ["TensorLike", "get_static_shape_from_size_variables", "normalize_reduce_axis"]

#: what `as_tensor_variable` converts
TensorLike: TypeAlias = Variable | Sequence[Variable] | ArrayLike


def get_static_shape_from_size_variables(size_vars: Sequence[Variable]) -> tuple[int | None, ...]:
    """The lengths that are known when the graph is built, None for others.

    >>> import phintys.tensor as pt
    >>> get_static_shape_from_size_variables([pt.constant(3), pt.lscalar("n")])
    (3, None)
    """
    return tuple(known_length(n) for n in size_vars)
