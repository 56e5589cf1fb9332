"""Products of vectors and matrices, and the BLAS ops that rewrites introduce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.errors import ShapeError
from phintys.graph.op import Op
from phintys.graph.type import DisconnectedType
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, dimshuffle, zeros_of
from phintys.tensor.type import TensorType

BLAS_DTYPES = frozenset(("float32", "float64"))


class Dot(Op):
    """Matrix product of two matrices, and the other products of vectors and matrices.

    Ranks (2, 2), (2, 1), (1, 2) and (1, 1); the inner lengths must agree.
    """

    # ----- class and static shape
    __props__ = ()

    def make_node(self, x: Any, y: Any) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        if x.ndim not in (1, 2) or y.ndim not in (1, 2):
            raise TypeError(
                f"Dot takes vectors and matrices; {x} has {x.ndim} and {y} {y.ndim} dimensions. "
                "Use dot, matmul or tensordot for other ranks."
            )
        inner = x.type.shape[-1], y.type.shape[0]
        if None not in inner and inner[0] != inner[1]:
            raise ShapeError(
                f"Inner lengths do not agree in dot: {x} has shape {x.type.shape}, {y} {y.type.shape}."
            )
        dtype = dtypes.upcast(x.type.dtype, y.type.dtype)
        return Apply(self, [x, y], [TensorType(dtype, x.type.shape[:-1] + y.type.shape[1:])()])

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        x, y = inputs
        if x.shape[-1] != y.shape[0]:
            raise ShapeError(
                f"Inner lengths do not agree in dot: {node.inputs[0]} has shape {x.shape}, "
                f"{node.inputs[1]} has shape {y.shape}."
            )
        output_storage[0][0] = np.asarray(np.dot(x, y), dtype=node.outputs[0].type.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        x, y = shapes
        return [(*x[:-1], *y[1:])]

    # ----- derivative
    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        (x, y), (g,) = inputs, cotangents
        if isinstance(g.type, DisconnectedType):
            return [g, g]
        if dtypes.is_discrete(outputs[0].type.dtype):
            return [zeros_of(x), zeros_of(y)]
        gx = g * y if y.ndim == 1 and x.ndim == 1 else self._left(x, y, g)
        gy = g * x if y.ndim == 1 and x.ndim == 1 else self._right(x, y, g)
        return [cast(gx, x.dtype) if dtypes.is_float(x.dtype) else gx,
                cast(gy, y.dtype) if dtypes.is_float(y.dtype) else gy]  # fmt: skip

    def _left(self, x: Any, y: Any, g: Any) -> Any:
        if y.ndim == 1:
            return dimshuffle(g, 0, "x") * dimshuffle(y, "x", 0)
        return self(g, dimshuffle(y, 1, 0))

    def _right(self, x: Any, y: Any, g: Any) -> Any:
        if x.ndim == 1:
            return dimshuffle(x, 0, "x") * dimshuffle(g, "x", 0)
        return self(dimshuffle(x, 1, 0), g)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        (x, y), (tx, ty) = inputs, tangents
        terms = []
        if not isinstance(tx.type, DisconnectedType):
            terms.append(self(tx, y))
        if not isinstance(ty.type, DisconnectedType):
            terms.append(self(x, ty))
        return [terms[0] + terms[1] if len(terms) == 2 else terms[0] if terms else tx]

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        x, y = inputs
        dtype = node.outputs[0].type.dtype
        if dtype not in BLAS_DTYPES:
            return NotImplemented
        x, y = b.cast(x, dtype), b.cast(y, dtype)
        if x.ndim == 1 and y.ndim == 1:
            return b.dot(x, y)
        if y.ndim == 1:
            return b.gemv(x, y)
        if x.ndim == 1:
            return b.gemv(b.permute(y, (1, 0)), x)
        return b.gemm(x, y)


_dot = Dot()


def dot(l: Any, r: Any) -> Any:  # noqa: E741
    """The product of two tensors, as ``numpy.dot``.

    Ranks up to 2: the vector and matrix products.  With a 0-d operand: multiplication.  Higher ranks: the
    sum over the last axis of ``l`` and the second last of ``r``.

    Mixed dtypes are upcast.  ShapeError if the inner lengths are known to differ.
    """
    l, r = as_tensor_variable(l), as_tensor_variable(r)  # noqa: E741
    if l.ndim == 0 or r.ndim == 0:
        return l * r
    if l.ndim > 2 or r.ndim > 2:
        return tensordots[0](l, r, [[l.ndim - 1], [max(0, r.ndim - 2)]])
    return _dot(l, r)


#: ``tensordots[0](a, b, axes)``, defined with the other general products.
tensordots: list[Any] = []
