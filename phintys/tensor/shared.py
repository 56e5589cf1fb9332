"""Shared variables whose values are arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from warnings import warn

import numpy as np

from phintys.graph.shared import SharedVariable, shared_constructor
from phintys.scalar import dtypes
from phintys.scalar.arrays import as_array
from phintys.tensor.aliases import StaticShape, TensorLike
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorVariable


class TensorSharedVariable(SharedVariable, TensorVariable):
    """A shared variable whose value is an array."""

    __slots__ = ()

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> np.ndarray:
        """The array: a copy, unless ``borrow``."""
        value = self.container.value
        return value if borrow else value.copy()

    def set_value(self, new_value: TensorLike, borrow: bool = False) -> None:
        """Set the array: equal rank, any lengths; the dtype is converted if that is lossless."""
        if not borrow and isinstance(new_value, np.ndarray):
            new_value = new_value.copy()
        super().set_value(new_value, borrow=True)

    def zero(self, borrow: bool = False) -> None:
        """Set all elements to 0, in place if ``borrow``."""
        if borrow:
            self.container.value[...] = 0
        else:
            self.container.value = 0 * self.container.value


ScalarSharedVariable = TensorSharedVariable


def tensor_shared(
    value: np.ndarray | complex | np.generic,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    shape: StaticShape | None = None,
    target: str = "cpu",
    broadcastable: Sequence[bool] | None = None,
) -> TensorSharedVariable:
    """A shared tensor; every length is unknown unless ``shape`` is given.

    ``broadcastable`` is the older form of ``shape``: whether a length is known to be 1.
    """
    value = as_array(value)
    if broadcastable is not None:
        warn("shared: broadcastable is called shape now.", DeprecationWarning, stacklevel=4)
        shape = tuple(1 if b else None for b in broadcastable)
    if shape is None:
        shape = (None,) * value.ndim
    type_ = TensorType(dtypes.canonical(value.dtype), shape=shape)
    value = value if borrow else value.copy()
    return TensorSharedVariable(type_, value, strict, allow_downcast, name=name)


shared_constructor.register(np.ndarray, tensor_shared)


@shared_constructor.register(np.number)
@shared_constructor.register(np.bool_)
@shared_constructor.register(float)
@shared_constructor.register(int)
@shared_constructor.register(complex)
def scalar_shared(
    value: complex | np.generic, name: str | None = None, **kwargs: Any
) -> TensorSharedVariable:
    """A shared 0-d tensor; Python ints become int64, floats float64."""
    return tensor_shared(np.asarray(value), name=name, **kwargs)
