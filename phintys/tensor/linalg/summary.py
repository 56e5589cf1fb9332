"""Numbers that tell something about a matrix: determinants."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.op import Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, routine
from phintys.scalar.dtypes import is_complex, real_of
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.elemwise import conjugate, functions, match_dtype
from phintys.tensor.linalg.elimination import factored, lower_pivots
from phintys.tensor.linalg.matrix_op import MatrixOp, adjoint, inexact, square
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.ranges import eye
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.shape import length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["det", "slogdet"]


class Det(MatrixOp):
    """The determinant of a square matrix; NaN if the matrix is not finite."""

    # ----- class and static shape
    __props__ = ()
    gufunc_signature = "(m,m)->()"

    def make_node(self, x: TensorLike) -> Apply:
        x = self.matrix(x)
        return typed_node(self, [x], inexact(x.type.dtype))

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        square(s, x)
        return [()]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        pivots = _pivots(inputs[0].astype(node.outputs[0].type.dtype))
        with np.errstate(over="ignore", invalid="ignore"):
            output_storage[0][0] = np.prod(pivots)

    # ----- derivative: det(x) inv(x)^T, by which NaN comes from singular matrices
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (found,), (g,) = inputs, outputs, cotangents
        return [match_dtype(_inverse(adjoint(x)) * (g * conjugate(found)), x)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (x,), (found,), (t,) = inputs, outputs, tangents
        return [match_dtype(found * _trace_of_quotient(x, t), found)]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        return [_lower_product(b, lower_pivots(b, x, node.outputs[0].type.dtype))]


class SLogDet(MatrixOp):
    """The sign and the logarithm of the absolute value of the determinant of a square matrix.

    The sign of a complex determinant is a number with the absolute value 1.  If the determinant is
    zero, so is the sign, and the logarithm is -inf; both are NaN if the matrix is not finite.
    """

    # ----- class and static shape
    __props__ = ()
    gufunc_signature = "(m,m)->(),()"

    def make_node(self, x: TensorLike) -> Apply:
        x = self.matrix(x)
        dtype = inexact(x.type.dtype)
        return typed_node(self, [x], dtype, real_of(dtype))

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        square(s, x)
        return [(), ()]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        pivots = _pivots(inputs[0].astype(node.outputs[0].type.dtype))
        size = np.abs(pivots)
        with np.errstate(divide="ignore", invalid="ignore"):
            signs = np.where(size == 0, 0, pivots / size)
            output_storage[0][0] = np.prod(signs).astype(pivots.dtype)
            output_storage[1][0] = np.log(size).sum()

    # ----- derivative: with t = trace(inv(x) dx), that of the logarithm is the real part of t, that
    # of the sign is the sign times the imaginary part
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (sign, _), (g_sign, g) = inputs, outputs, cotangents
        if is_complex(sign.type.dtype):
            g = functions.complex(g, functions.imag(g_sign * conjugate(sign)))
        return [match_dtype(_inverse(adjoint(x)) * g, x)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (x,), (sign, _), (t,) = inputs, outputs, tangents
        found = _trace_of_quotient(x, t)
        if not is_complex(sign.type.dtype):
            return [sign * 0, found]
        turned = functions.complex(functions.imag(found) * 0, functions.imag(found))
        return [sign * turned, functions.real(found)]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        pivots = lower_pivots(b, x, node.outputs[0].type.dtype)
        signs = b.map(_sign, pivots)
        logarithms = b.map(lambda n, x: n.log(n.abs(x)), pivots)
        return [_lower_product(b, signs), b.reduce("add", logarithms, [logarithms.ndim - 1])]


def _inverse(x: TensorVariable) -> TensorVariable:
    """The inverse, or NaN."""
    return Solve(b_ndim=2)(x, eye(length(x, 0), dtype=x.type.dtype))


def _trace_of_quotient(x: TensorVariable, t: TensorVariable) -> TensorVariable:
    """``trace(inv(x) t)``."""
    return sum_over(_inverse(x) * t.T)


def _pivots(x: np.ndarray) -> np.ndarray:
    """Numbers whose product is the determinant."""
    factors, pivots = factored(x)
    found = factors.diagonal()
    return np.where(pivots != np.arange(len(x)), -found, found)


def _sign(n: Any, x: Any) -> Any:
    """The sign of a number; for a complex one, the number divided by its absolute value."""
    size, zero = n.abs(x), n.const(0, x)
    if is_complex(n.dtype(x)):
        unit = n.complex(n.div(n.real(x), size), n.div(n.imag(x), size))
    else:
        unit = n.div(x, size)
    return n.select(n.eq(x, zero), zero, unit)


def _lower_product(b: Builder[V], x: V) -> V:
    """The products along the last axis."""
    if not is_complex(str(x.dtype)):
        return b.reduce("mul", x, [x.ndim - 1])
    *batch, n = b.shape(x)
    dtype = str(x.dtype)
    (found,) = b.external(multiply, dtype, (n,), [x], writes=[(dtype, ())], batch=batch, work=4 * n)
    return found


@routine("complex64 complex128", (ArithmeticError, "A product cannot be computed"))
def multiply(n: int, x: Array, product: Array) -> int:
    """Write the product of complex numbers."""
    re = 1.0
    im = 0.0
    for i in range(n):
        a = x[2 * i]
        b = x[2 * i + 1]
        new = re * a - im * b
        im = re * b + im * a
        re = new
    product[0] = re
    product[1] = im
    return 0


# ----- user functions
def det(x: TensorLike) -> TensorVariable:
    """The determinants of square matrices, the last two axes of ``x``.

    NaN for a matrix that contains NaN or infinity.  The derivative is NaN where a matrix is
    singular.  ShapeError if the matrices are not square.

    >>> import phintys.tensor as pt
    >>> pt.linalg.det([[2.0, 1.0], [1.0, 3.0]]).eval()
    array(5.)
    """
    return Blockwise(Det())(x)


def slogdet(x: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """The signs of determinants, and the logarithms of their absolute values.

    The sign of a complex determinant is a number with the absolute value 1.  If a determinant is
    zero, so is the sign, and the logarithm is -inf; both are NaN if a matrix contains NaN or
    infinity.  ShapeError if the matrices are not square.

    >>> import phintys.tensor as pt
    >>> sign, logarithm = pt.linalg.slogdet([[1.0, 2.0], [3.0, 1.0]])
    >>> sign.eval(), logarithm.eval()
    (array(-1.), array(1.60943791))
    """
    sign, logarithm = Blockwise(SLogDet())(x)
    return sign, logarithm
