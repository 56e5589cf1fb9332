"""Tensor variables and constants.  Their operators and methods are in `phintys.tensor.methods`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from phintys.graph.variable import Constant, Variable
from phintys.tensor.type import TensorType


@cache
def _protocols() -> Any:
    """The module of NumPy's protocols, which is imported when NumPy first calls one."""
    return import_module("phintys.tensor.numpy_protocols")


class TensorVariable(Variable):
    """A variable whose values are arrays (`TensorType`).

    It has NumPy's operators and methods; ``==`` and ``!=`` compare identity (use ``eq``), the truth
    value is undefined, and items cannot be assigned (use ``x[i].set(v)``).
    """

    __slots__ = ()
    __array_priority__ = 1000  # the result of an operation with an array is a variable

    # ----- NumPy's protocols
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """``np.exp(x)``, ``array + x``: see `phintys.tensor.numpy_protocols`."""
        return _protocols().apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """``np.stack([x, y])``: see `phintys.tensor.numpy_protocols`."""
        return _protocols().apply_function(function, args, kwargs)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The functions of the array API standard on variables, `phintys.tensor.standard`.

        ValueError for versions of the standard that it does not have.
        """
        standard = import_module("phintys.tensor.standard")
        standard.check_version(api_version)
        return standard

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """An object array that contains the variable; TypeError for a dtype of numbers."""
        if dtype is not None and np.dtype(dtype).kind != "O":
            raise TypeError(
                f"{self} is symbolic: it has no values yet and cannot become an array of {dtype}. "
                "Use astype to convert it in the graph, or eval to compute its value."
            )
        found = np.empty((), object)
        found[()] = self
        return found

    @property
    def dtype(self) -> str:
        """The dtype of the values."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.type.ndim

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each axis, whether its length is known to be 1."""
        return self.type.broadcastable


DenseTensorVariable = TensorVariable


class TensorConstant(Constant, TensorVariable):
    """A constant array."""

    __slots__ = ()

    def signature(self) -> TensorConstantSignature:
        found: TensorConstantSignature | None = self._signature
        if found is None:
            found = self._signature = TensorConstantSignature(self.type, self.data)
        return found

    def merge_signature(self) -> Any:
        """`signature`; for a single number a tuple, which compares faster."""
        data = self.data
        return (self.type, data.tobytes()) if data.size == 1 else self.signature()

    @property
    def unique_value(self) -> Any:
        """The common value of all elements as a 0-d array, or None if they differ.

        NaN counts as equal to itself; 0.0 and -0.0 differ.
        """
        data = self.data
        if data.size == 0:
            return None
        first = data.reshape(-1)[:1]
        if TensorType.values_eq(data, np.broadcast_to(first.reshape(()), data.shape)):
            if data.dtype.kind == "f" and np.any(np.signbit(data) != np.signbit(first)):
                return None
            return first[0].copy().reshape(())
        return None


DenseTensorConstant = TensorConstant


class TensorConstantSignature:
    """Hashable type and contents of a constant; NaN equals NaN, 0.0 differs from -0.0."""

    __slots__ = ("_hash", "data", "type")

    def __init__(self, type: TensorType, data: np.ndarray) -> None:
        self.type, self.data = type, data
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.type, self.data.shape, self.data.tobytes()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorConstantSignature) or self.type != other.type:
            return False
        if self.data is other.data:
            return True
        same_shape = self.data.shape == other.data.shape
        return same_shape and self.data.tobytes() == other.data.tobytes()


TensorType.variable_type = TensorVariable
TensorType.constant_type = TensorConstant
