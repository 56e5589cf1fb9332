"""Linear recurrences along an axis: the derivatives of `cumprod`, valid at zeros too."""

from __future__ import annotations

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply
from phintys.routines import Array, routine
from phintys.routines.language import PARTS
from phintys.routines.libraries import LAPACK
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.convert import as_tensor_variable, constant, pad_left
from phintys.tensor.elemwise import cast, conjugate, functions
from phintys.tensor.index import set_subtensor
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable


class Recurrence(Op):
    """``s[k] = a[k] s[k - 1] + b[k]`` along an axis, with ``s[0] = b[0]``, for floating numbers.

    Inputs: a and b, of one shape; ``a[0]`` does not matter.  The cotangent of b is such a
    recurrence too, from the end of the axis.

    Parameters
    ----------
    axis
        along which to compute, not negative
    """

    # ----- class and static shape
    __props__ = ("axis",)
    handles_missing = False

    def __init__(self, axis: int) -> None:
        self.axis = int(axis)

    def make_node(self, a: TensorLike, b: TensorLike) -> Apply:
        a, b = as_tensor_variable(a), as_tensor_variable(b)
        dtype = dtypes.upcast(a.type.dtype, b.type.dtype)
        if a.type.ndim != b.type.ndim or self.axis >= a.type.ndim or dtypes.is_discrete(dtype):
            raise TypeError(f"{self} needs floating numbers of one rank: {a.type}, {b.type}.")
        return typed_node(self, [cast(a, dtype), cast(b, dtype)], dtype)

    def shape_rule(self, s: ShapeContext, a: Shape, b: Shape) -> list[Shape]:
        for axis, (n, m) in enumerate(zip(a, b)):
            s.equal(n, m, f"Lengths along axis {axis} do not agree")
        return [a]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        a, b = (np.moveaxis(x, self.axis, 0) for x in inputs)
        out = np.empty_like(inputs[0])
        s = np.moveaxis(out, self.axis, 0)
        with np.errstate(all="ignore"):
            for k in range(len(s)):
                s[k] = a[k] * s[k - 1] + b[k] if k else b[k]
        output_storage[0][0] = out

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> Tensors:
        (a, _), (s,), (g,) = inputs, outputs, cotangents
        in_b = later_products(conjugate(a), g, self.axis)
        return [in_b * conjugate(previous(s, self.axis, 0)), in_b]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> Tensors:
        (a, _), (s,), (in_a, in_b) = inputs, outputs, tangents
        return [self(a, in_b + in_a * previous(s, self.axis, 0))]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        ndim = max(x.type.ndim for x in batched_inputs)
        a, b = (pad_left[0](x, ndim) for x in batched_inputs)
        axis = self.axis + ndim - node.outputs[0].type.ndim
        return Recurrence(axis).make_node(functions.second(b, a), functions.second(a, b))

    # ----- lowering
    lowers_complex = True

    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        dtype, ndim = node.outputs[0].type.dtype, inputs[0].ndim
        if dtype not in LAPACK.split():
            return NotImplemented
        b.result_shapes(node, *inputs)
        order = [*(k for k in range(ndim) if k != self.axis), self.axis]
        rows = [b.permute(x, order) for x in inputs]
        *batch, n = b.shape(rows[0])
        (found,) = b.external(
            running, dtype, (n,), reads=rows, writes=[(dtype, (n,))], batch=batch, work=4 * n
        )
        return b.permute(found, [order.index(k) for k in range(ndim)])

    def __str__(self) -> str:
        return f"Recurrence{{axis={self.axis}}}"


@routine(LAPACK, (ArithmeticError, "The recurrence was not computed."))
def running(n: int, a: Array, b: Array, s: Array) -> int:
    """Write ``s[k] = a[k] s[k - 1] + b[k]``."""
    if n > 0:
        for k in range(PARTS):
            s[k] = b[k]
    for i in range(1, n):
        k = i * PARTS
        if PARTS == 1:
            s[k] = a[k] * s[k - 1] + b[k]
        else:
            s[k] = a[k] * s[k - 2] - a[k + 1] * s[k - 1] + b[k]
            s[k + 1] = a[k] * s[k - 1] + a[k + 1] * s[k - 2] + b[k + 1]
    return 0


def previous(x: TensorVariable, axis: int, first: int) -> TensorVariable:
    """``x[k - 1]`` at position ``k`` along an axis, and the number ``first`` at position 0."""
    filled = functions.second(x, constant(first, dtype=x.type.dtype))
    before = [slice(None)] * axis
    return set_subtensor(filled[(*before, slice(1, None))], x[(*before, slice(None, -1))])


def reversed_along(x: TensorVariable, axis: int) -> TensorVariable:
    """``x`` in reversed order along an axis."""
    return x[(*[slice(None)] * axis, slice(None, None, -1))]


def later_products(a: TensorVariable, g: TensorVariable, axis: int) -> TensorVariable:
    """``sum over k >= j of g[k] a[j + 1] ... a[k]`` for each ``j``: the recurrence from the end."""
    backwards = reversed_along(a, axis), reversed_along(g, axis)
    found = Recurrence(axis)(previous(backwards[0], axis, 0), backwards[1])
    return reversed_along(found, axis)
