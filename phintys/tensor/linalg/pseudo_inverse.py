"""The pseudo-inverse of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.dims import Dim, dim_max
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar.dtypes import is_complex, real_of
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import cast, match_dtype
from phintys.tensor.linalg.decomposition.eigen import Eigh
from phintys.tensor.linalg.decomposition.eigen_derivatives import folded, hermitian
from phintys.tensor.linalg.decomposition.svd import SVD
from phintys.tensor.linalg.matrix_op import (
    MatrixOp,
    adjoint,
    columns_first,
    inexact,
    nan_like,
    quiet,
    square,
)
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["pinv"]

Matrix = np.ndarray[Any, Any]


class MatrixPinv(MatrixOp):
    """The pseudo-inverse of a matrix; NaN if it contains NaN or infinity.

    Singular values up to ``rtol``, an optional second input, times the greatest one count as 0; by
    default the precision of the dtype times the greater length.

    Parameters
    ----------
    hermitian
        whether the matrix is Hermitian; then only its lower triangle is read
    """

    # ----- class and static shape
    __props__ = ("hermitian",)
    in_python = "complex matrices: NumPy calls LAPACK"
    gufunc_signature = "(m,n)->(n,m)"

    def __init__(self, hermitian: bool = False) -> None:
        self.hermitian = bool(hermitian)

    def make_node(self, x: TensorLike, rtol: TensorLike | None = None) -> Apply:
        x = self.matrix(x)
        dtype = inexact(x.type.dtype)
        limits = [] if rtol is None else [as_tensor_variable(rtol)]
        if any(v.type.ndim or is_complex(v.type.dtype) for v in limits):
            raise TypeError(f"{self}: rtol is a real number, not of {limits[0].type}.")
        return typed_node(self, [x, *(cast(v, real_of(dtype)) for v in limits)], dtype)

    def shape_rule(self, s: ShapeContext, x: Shape, *rtol: Shape) -> list[Shape]:
        if self.hermitian:
            square(s, x)
        return [(x[1], x[0])]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        x = inputs[0].astype(node.outputs[0].type.dtype, copy=False)
        try:
            with quiet():
                read = np.tril(x) if self.hermitian else x
                finite = np.isfinite(read).all()
                found = self._value(x, *inputs[1:]) if finite else nan_like(x.T)
        except np.linalg.LinAlgError:
            found = nan_like(x.T)
        output_storage[0][0] = found

    def _value(self, x: Matrix, rtol: Matrix | None = None) -> Matrix:
        from scipy.linalg import eigh, svd

        if not x.size:
            return x.T.copy()
        if self.hermitian:
            values, left = eigh(x, driver="evd", check_finite=False)
            right = left
        else:
            right, values, left = svd(x, full_matrices=False)
            left = left.conj().T
        size = np.abs(values)
        rtol = max(x.shape) * np.finfo(x.dtype).eps if rtol is None else rtol
        kept = size > size.dtype.type(rtol) * size.max()
        inverse = np.divide(1, values, out=np.zeros_like(values), where=kept)
        return (left * inverse) @ right.conj().T

    # ----- derivative (G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and
    # nonlinear least squares problems whose variables separate", 1973)
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        x, p, g = inputs[0], outputs[0], cotangents[0]
        a, q = self._read(x), adjoint(p)
        found = -matrix_product(q, matrix_product(g, q))
        found += adjoint(
            matrix_product(p, matrix_product(q, g - matrix_product(matrix_product(g, a), p)))
        )
        found += adjoint(
            matrix_product(matrix_product(g - matrix_product(p, matrix_product(a, g)), q), p)
        )
        found = match_dtype(folded(found, True) if self.hermitian else found, x)
        return [found, *(v.zeros_like() for v in inputs[1:])]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        x, p, t = inputs[0], outputs[0], tangents[0]
        a, q, t = self._read(x), adjoint(p), self._read(t)
        found = -matrix_product(p, matrix_product(t, p))
        right, left = matrix_product(q, adjoint(t)), matrix_product(adjoint(t), q)
        found += matrix_product(p, right - matrix_product(matrix_product(right, a), p))
        return [found + matrix_product(left - matrix_product(p, matrix_product(a, left)), p)]

    def _read(self, x: TensorVariable) -> TensorVariable:
        """The matrix that the op reads."""
        return hermitian(x, True) if self.hermitian else x

    # ----- batching and lowering
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        return self.blockwise(len(batched_inputs)).make_node(*batched_inputs)

    def blockwise(self, count: int) -> Blockwise:
        """The op for batches that takes ``rtol`` too if ``count`` is 2."""
        return Blockwise(self, "(m,n),()->(n,m)" if count == 2 else None)

    def lower_batched(self, node: Apply, b: Builder[V], x: V, *rtol: V) -> object:
        dtype = node.outputs[0].type.dtype
        if is_complex(dtype):  # products of complex matrices are NumPy's
            return NotImplemented
        if self.hermitian:
            values, left = _lowered(Eigh(), node, b, x)
            right = left
        else:
            right, values, vt = _lowered(SVD(full_matrices=False), node, b, x)
            left = columns_first(b, vt)
        inverse = self._lower_inverse(b, values, dim_max(*b.shape(x)[-2:]), *rtol)
        left = b.map(lambda n, v, w: n.mul(v, w), left, b.expand(inverse, -2))
        return b.matmul(left, columns_first(b, right))

    def _lower_inverse(self, b: Builder[V], values: V, length: Dim, rtol: V | None = None) -> V:
        """The inverses of singular values, 0 for those that are negligible."""
        dtype = values.dtype
        size = b.map(lambda n, w: n.abs(w), values)
        greatest = b.expand(b.reduce("max", size, [values.ndim - 1]), -1)
        if rtol is None:
            eps = float(np.finfo(dtype).eps)
            count = b.cast(b.scalar(length), dtype)
            rtol = b.map(lambda n, k: n.mul(k, n.const(eps, k)), count)
        else:
            rtol = b.expand(b.cast(rtol, dtype), rtol.ndim)
        limit = b.map(lambda n, g, t: n.mul(g, t), greatest, rtol)
        return b.map(_inverse, values, size, limit)


def _inverse(n: Any, value: Any, size: Any, limit: Any) -> Any:
    return n.select(n.gt(size, limit), n.div(n.const(1, value), value), n.const(0, value))


def _lowered(op: Op, node: Apply, b: Builder[V], x: V) -> list[V]:
    """The results of an op of the same input."""
    assert op.lower_batched is not None
    return op.lower_batched(op.make_node(node.inputs[0]), b, x)


# ----- user function
def pinv(
    x: TensorLike, hermitian: bool = False, *, rtol: TensorLike | None = None
) -> TensorVariable:
    """The pseudo-inverses of matrices, the last two axes of ``x``.

    Parameters
    ----------
    x : tensor with at least two axes; the lengths of the last two may differ
    hermitian : whether the matrices are Hermitian; then only their lower triangle is read
    rtol : a number for each matrix: singular values up to it times the greatest one count as 0; by
        default the precision of the dtype times the greater length

    The dtype is float32 or float64, complex64 or complex128.  The pseudo-inverse of a matrix that
    contains NaN or infinity is NaN.  Derivatives are those among matrices of the same rank.

    >>> import phintys.tensor as pt
    >>> pt.linalg.pinv([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]).eval()
    array([[0.5, 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    given = [x] if rtol is None else [x, rtol]
    return MatrixPinv(hermitian).blockwise(len(given))(*given)
