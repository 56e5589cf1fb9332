"""`TensorSymbolicOp`: ops on tensors whose graph a method builds."""

from __future__ import annotations

from typing import Any

from phintys.inner.symbolic import SymbolicOp
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.variable import TensorVariable

__all__ = ["TensorSymbolicOp"]


class TensorSymbolicOp(SymbolicOp):
    """A `SymbolicOp` whose arguments are converted to tensors.

    >>> import phintys.tensor as pt
    >>> class Squared(TensorSymbolicOp):
    ...     def build_inner_graph(self, x):
    ...         return [x * x]
    >>> Squared()([1.0, 3.0]).eval()
    array([1., 9.])
    """

    @staticmethod
    def filter_inputs(*inputs: Any) -> list[TensorVariable]:
        return [as_tensor_variable(x) for x in inputs]
