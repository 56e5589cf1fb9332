"""The exponential, the logarithm and the square root of matrices.

Both derivatives are Fréchet derivatives.  That of ``f`` at ``x`` in the direction ``e`` is the
upper right block of ``f([[x, e], [0, x]])`` (N. J. Higham, "Functions of Matrices", 2008,
theorem 3.6).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar.dtypes import upcast
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.elemwise import match_dtype, zeros_of
from phintys.tensor.join import concatenate
from phintys.tensor.linalg.exponential import exponential, exponentiate
from phintys.tensor.linalg.matrix_op import MatrixOp, adjoint, inexact, nan_like, quiet, square
from phintys.tensor.shape import length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["expm", "logm", "sqrtm"]


class MatrixFunction(MatrixOp):
    """Base class of functions ``f`` of square matrices with ``f(x^H) = f(x)^H``.

    The result of a matrix that contains NaN or infinity is NaN.
    """

    # ----- class and static shape
    __props__ = ()
    gufunc_signature = "(m,m)->(m,m)"

    def make_node(self, A: TensorLike) -> Apply:
        x = self.matrix(A)
        return typed_node(self, [x], inexact(x.type.dtype))

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        n = square(s, x)
        return [(n, n)]

    # ----- perform
    @abstractmethod
    def value(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The function of a finite matrix, with at least one row."""

    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        dtype = node.outputs[0].type.dtype
        check_shapes(node, inputs)
        x = inputs[0].astype(dtype, copy=False)
        found = x.copy()
        if x.size:
            with quiet():
                found = self.value(x) if np.isfinite(x).all() else nan_like(x)
        output_storage[0][0] = self._in_dtype(found, x)

    def _in_dtype(
        self, found: np.ndarray[Any, Any], x: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """A result in the dtype of ``x``: NaN if ``x`` is real and the result is not."""
        if np.iscomplexobj(found) and not np.iscomplexobj(x):
            size = float(np.abs(found).max(initial=0))
            if not np.abs(found.imag).max(initial=0) <= 100 * len(x) * np.finfo(x.dtype).eps * size:
                return nan_like(x)
            found = found.real
        return found.astype(x.dtype, copy=False)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (g,) = inputs, cotangents
        return [match_dtype(self.derivative(adjoint(x), g), x)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        return [self.derivative(inputs[0], tangents[0])]

    def derivative(self, x: TensorVariable, direction: TensorVariable) -> TensorVariable:
        """The Fréchet derivative at ``x``."""
        n = length(x, 0)
        upper = concatenate([x, direction], axis=1)
        lower = concatenate([zeros_of(direction), x], axis=1)
        return Blockwise(self)(concatenate([upper, lower], axis=0))[:n, n:]


class Expm(MatrixFunction):
    """The exponential of a matrix.

    Parameters
    ----------
    overwrite_a
        whether the input may be overwritten
    """

    # ----- class and static shape
    __props__ = ("overwrite_a",)

    def __init__(self, overwrite_a: bool = False) -> None:
        self.overwrite_a = bool(overwrite_a)
        self.destroy_map = {0: [0]} if overwrite_a else {}

    # ----- perform
    def value(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        wide = upcast(x.dtype.name, "float64")  # each squaring doubles the relative error
        return exponential(x.astype(wide, copy=False))

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        dtype, n = node.outputs[0].type.dtype, b.length(x, -1)
        wide = upcast(dtype, "float64")  # as above
        (found,) = b.external(
            exponentiate,
            wide,
            (n,),
            updates=[b.cast(x, wide)],
            batch=b.shape(x)[:-2],
            work=30 * n * n * n,
            scratch=[(wide, 5 * n * n + n), ("int32", n), ("int32", n)],
        )
        return [b.cast(found, dtype)]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return Expm(overwrite_a=bool(allowed_inplace_inputs))


class Logm(MatrixFunction):
    """The principal logarithm of a matrix."""

    in_python = "SciPy has the algorithm"

    # ----- perform
    def value(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        from scipy.linalg import logm

        return np.asarray(logm(x.astype(np.result_type(x, "float64"))))


class Sqrtm(MatrixFunction):
    """The principal square root of a matrix."""

    in_python = "SciPy has the algorithm"

    # ----- perform
    def value(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        from scipy.linalg import sqrtm

        return np.asarray(sqrtm(x))


# ----- user functions
def expm(A: TensorLike) -> TensorVariable:
    """The exponential of square matrices, the last two axes of ``A``: the sum of ``A^k / k!``.

    The dtype is float32 or float64, complex64 or complex128.  A matrix that contains NaN or
    infinity becomes NaN.  ShapeError if the matrices are not square.

    >>> import phintys.tensor as pt
    >>> pt.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).eval()
    array([[1., 1.],
           [0., 1.]])
    """
    return Blockwise(Expm())(A)


def logm(A: TensorLike) -> TensorVariable:
    """The principal logarithm of square matrices, the last two axes of ``A``.

    Its exponential is ``A``, and its eigenvalues have imaginary parts between -pi and pi.  The
    dtype is that of `expm`.  A real matrix with negative eigenvalues has no real principal
    logarithm: it becomes NaN, as a matrix does that contains NaN or infinity; cast it to a complex
    dtype.  ShapeError if the matrices are not square.

    >>> import phintys.tensor as pt
    >>> pt.linalg.logm([[1.0, 1.0], [0.0, 1.0]]).eval()
    array([[0., 1.],
           [0., 0.]])
    """
    return Blockwise(Logm())(A)


def sqrtm(A: TensorLike) -> TensorVariable:
    """The principal square root of square matrices, the last two axes of ``A``.

    Its square is ``A``, and its eigenvalues have real parts that are not negative.  The dtype is
    that of `expm`.  A real matrix with negative eigenvalues has no real principal square root: it
    becomes NaN, as a matrix does that contains NaN or infinity; cast it to a complex dtype.
    ShapeError if the matrices are not square.

    >>> import phintys.tensor as pt
    >>> pt.linalg.sqrtm([[5.0, 4.0], [4.0, 5.0]]).eval()
    array([[2., 1.],
           [1., 2.]])
    """
    return Blockwise(Sqrtm())(A)
