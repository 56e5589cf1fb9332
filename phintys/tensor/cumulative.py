"""Cumulative sums and products, and differences of adjacent elements."""

from __future__ import annotations

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import axis_of, cast, conjugate, functions
from phintys.tensor.recurrence import Recurrence, later_products, previous, reversed_along
from phintys.tensor.reshape import flatten
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["cumprod", "cumsum", "diff"]


class CumOp(Op):
    """Cumulative sums or products along an axis; of bools and integers in 64 bits, as in NumPy.

    Parameters
    ----------
    axis
        along which to accumulate; None for all elements, flattened
    mode
        ``"add"`` or ``"mul"``
    """

    # ----- class and static shape
    __props__ = ("axis", "mode")
    in_python = "products of complex numbers: NumPy computes them"
    handles_missing = False

    def __init__(self, axis: int | None = None, mode: str = "add") -> None:
        if mode not in ("add", "mul"):
            raise ValueError(f"The mode of CumOp is 'add' or 'mul', not {mode!r}.")
        self.axis, self.mode = axis, mode

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        x = cast(x, dtypes.total_of(x.type.dtype))
        if self.axis is None:
            x = flatten(x)
        axis = axis_of(self.axis or 0, x.type.ndim)
        op = self if axis == self.axis else CumOp(axis, self.mode)
        return typed_node(op, [x], x.type.dtype)

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        return [x]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        (x,) = inputs
        ufunc = np.add if self.mode == "add" else np.multiply
        with np.errstate(all="ignore"):
            output_storage[0][0] = ufunc.accumulate(x, axis=self.axis or 0, dtype=x.dtype)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> Tensors:
        (x,), (g,), axis = inputs, cotangents, self.axis or 0
        if self.mode == "add":
            return [reversed_along(self(reversed_along(g, axis)), axis)]
        before = conjugate(previous(outputs[0], axis, 1))
        return [before * later_products(conjugate(x), g, axis)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> Tensors:
        (x,), (t,), axis = inputs, tangents, self.axis or 0
        if self.mode == "add":
            return [self(t)]
        return [Recurrence(axis)(x, t * previous(outputs[0], axis, 1))]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        batch = x.type.ndim - node.inputs[0].type.ndim
        return CumOp((self.axis or 0) + batch, self.mode).make_node(x)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (x,) = inputs
        return b.scan(self.mode, x, self.axis or 0)

    def __str__(self) -> str:
        return f"Cum{'sum' if self.mode == 'add' else 'prod'}{{axis={self.axis}}}"


def cumsum(x: TensorLike, axis: int | None = None) -> TensorVariable:
    """Cumulative sums along an axis; None flattens.

    Those of bools and signed integers are int64, those of unsigned ones uint64.

    >>> import phintys.tensor as pt
    >>> pt.cumsum([1.0, 2.0, 3.0]).eval(), pt.cumsum(np.array([True, False, True])).eval()
    (array([1., 3., 6.]), array([1, 1, 2]))
    """
    return CumOp(axis, "add")(x)


def cumprod(x: TensorLike, axis: int | None = None) -> TensorVariable:
    """Cumulative products along an axis, with the dtypes of `cumsum`; None flattens.

    >>> import phintys.tensor as pt
    >>> pt.cumprod([1.0, 2.0, 3.0]).eval()
    array([1., 2., 6.])
    """
    return CumOp(axis, "mul")(x)


def diff(x: TensorLike, n: int = 1, axis: int = -1) -> TensorVariable:
    """Differences of adjacent elements along an axis, taken ``n`` times.

    The difference of bools is ``!=``.

    >>> import phintys.tensor as pt
    >>> pt.diff([1.0, 4.0, 9.0]).eval()
    array([3., 5.])
    """
    x = as_tensor_variable(x)
    axis = axis_of(axis, x.type.ndim)
    if n < 0:
        raise ValueError(f"The order of differences is not negative, got {n}.")
    before = [slice(None)] * axis
    subtract = functions.neq if x.type.dtype == "bool" else functions.sub
    for _ in range(n):
        x = subtract(x[(*before, slice(1, None))], x[(*before, slice(None, -1))])
    return x
