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
from phintys.routines import Array, Positions, routine
from phintys.routines.language import PARTS, Real
from phintys.routines.libraries import LARGEST_INT, PLAIN, gemm, getrf, getrs
from phintys.scalar.dtypes import upcast
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.elemwise import match_dtype, zeros_of
from phintys.tensor.join import concatenate
from phintys.tensor.linalg.matrix_op import MatrixOp, adjoint, inexact, nan_like, quiet, square
from phintys.tensor.linalg.routine_parts import copy, fill_nan, is_finite
from phintys.tensor.shape import length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["expm", "logm", "sqrtm"]

#: the largest matrix for which loops multiply faster than BLAS
SMALL = 4


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
        from scipy.linalg import expm

        return expm(x)

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        dtype, n = node.outputs[0].type.dtype, b.length(x, -1)
        wide = upcast(dtype, "float64")  # each squaring doubles the relative error
        (found,) = b.external(
            exponentiate,
            wide,
            (n,),
            updates=[b.cast(x, wide)],
            batch=b.shape(x)[:-2],
            work=30 * n * n * n,
            scratch=[(wide, 5 * n * n), ("int32", n)],
        )
        return [b.cast(found, dtype)]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return Expm(overwrite_a=bool(allowed_inplace_inputs))


@routine("float64 complex128", (np.linalg.LinAlgError, "The matrix is too large for LAPACK"))
def exponentiate(n: int, a: Array, work: Array, pivots: Positions) -> int:
    """Replace a[n, n] by its exponential: scaling, a Padé approximation of degree 13, squaring.

    See A. H. Al-Mohy, N. J. Higham, "A new scaling and squaring algorithm for the matrix
    exponential", 2009.
    Columns may be taken for rows: the exponential of the transpose is the transpose.
    """
    if n > LARGEST_INT:
        return 1
    if is_finite(n * n, a) == 0:
        fill_nan(n * n, a)
        return 0
    if n == 0:
        return 0
    halvings = _reduce(n, a)
    size = n * n * PARTS
    a2 = work[0:]
    a4 = work[size:]
    a6 = work[2 * size :]
    u = work[3 * size :]
    v = work[4 * size :]
    _multiply(n, a, a, a2)
    _multiply(n, a2, a2, a4)
    _multiply(n, a4, a2, a6)
    halvings += _scale(n, a, work, u, v)
    _combine(n, 1.0, 16380.0, 40840800.0, 0.0, work, v)
    _multiply(n, a6, v, u)
    _combine(n, 33522128640.0, 10559470521600.0, 1187353796428800.0, 32382376266240000.0, work, v)
    for k in range(size):
        u[k] += v[k]
    _multiply(n, a, u, v)  # the odd part
    _combine(n, 182.0, 960960.0, 1323241920.0, 0.0, work, u)
    _multiply(n, a6, u, a)
    _combine(n, 670442572800.0, 129060195264000.0, 7771770303897600.0, 64764752532480000.0, work, u)
    for k in range(size):
        even = a[k] + u[k]
        a[k] = even + v[k]
        u[k] = even - v[k]
    getrf(n, n, u, n, pivots)
    getrs(PLAIN, n, n, u, n, pivots, a, n)
    for _ in range(halvings):
        _multiply(n, a, a, u)
        copy(n * n, u, a)
    return 0


def _reduce(n: int, a: Array) -> int:
    """Halve a matrix until its tenth power cannot overflow."""
    norm = _norm(n, a, 2.3283064365386963e-10)  # so that no sum of finite numbers overflows
    halvings = 0
    factor = 1.0
    while norm > 1.0:
        norm = norm * 0.5
        factor = factor * 0.5
        halvings += 1
    _multiply_by(n, factor, a)
    return halvings


def _scale(n: int, a: Array, powers: Array, x: Array, y: Array) -> int:
    """Halve a matrix, and its powers accordingly, until the approximation is exact for it.

    It is if two even powers in succession, of the fourth to the tenth, have norms of at most that
    power of 5.37: the roots of such norms may be much smaller than the norm of the matrix.  The
    power of absolute values in the first term that is left out must be small, too.
    """
    size = n * n * PARTS
    fourth = _norm(n, powers[size:], 1.0)
    sixth = _norm(n, powers[2 * size :], 1.0)
    eighth = 0.0
    tenth = 0.0
    if fourth > 832.7569 or sixth > 24031.306:
        _multiply(n, powers[size:], powers[size:], x)
        eighth = _norm(n, x, 1.0)
        _multiply(n, powers[size:], powers[2 * size :], x)
        tenth = _norm(n, x, 1.0)
    norm = _norm(n, a, 1.0)
    rest = 8.829961602018678e-36 * _norm_of_power(n, a, x, y) / (norm if norm > 0.0 else 1.0)
    halvings = 0
    factor = 1.0
    while (
        (sixth > 24031.306 or (fourth > 832.7569 and eighth > 693484.1))
        and (eighth > 693484.1 or tenth > 20012237.0)
    ) or rest > 1.1102230246251565e-16:
        tenth = tenth * 0.0009765625
        eighth = eighth * 0.00390625
        fourth = fourth * 0.0625
        sixth = sixth * 0.015625
        rest = rest * 1.4901161193847656e-08  # 2**-26
        factor = factor * 0.5
        halvings += 1
    square = factor * factor
    _multiply_by(n, factor, a)
    _multiply_by(n, square, powers)
    _multiply_by(n, square * square, powers[size:])
    _multiply_by(n, square * square * square, powers[2 * size :])
    return halvings


def _multiply_by(n: int, factor: Real, a: Array) -> None:
    for k in range(n * n * PARTS):
        a[k] = a[k] * factor


def _norm(n: int, a: Array, factor: Real) -> Real:
    """The norm of a matrix times a factor."""
    norm = 0.0
    for i in range(n):
        total = 0.0
        for k in range(i * n * PARTS, (i * n + n) * PARTS):
            total += abs(a[k] * factor)
        norm = total if total > norm else norm
    return norm


def _norm_of_power(n: int, a: Array, x: Array, y: Array) -> Real:
    """The norm of the 27th power of the absolute values of a matrix."""
    for i in range(n):
        x[i] = 1.0
    for _ in range(27):
        for i in range(n):
            total = 0.0
            for j in range(n):
                element = a[(i * n + j) * PARTS :]
                size = abs(element[0])
                size += 0.0 if PARTS == 1 else abs(element[PARTS - 1])
                total += size * x[j]
            y[i] = total
        for i in range(n):
            x[i] = y[i]
    norm = 0.0
    for i in range(n):
        norm = x[i] if x[i] > norm else norm
    return norm


def _multiply(n: int, x: Array, y: Array, out: Array) -> None:
    """Store the product of two matrices, stored column by column."""
    if n <= SMALL and PARTS == 1:
        for j in range(n):
            for i in range(n):
                total = 0.0
                for k in range(n):
                    total += x[k * n + i] * y[j * n + k]
                out[j * n + i] = total
        return
    gemm(PLAIN, PLAIN, n, n, n, 1.0, x, n, y, n, 0.0, out, n)


def _combine(
    n: int, sixth: Real, fourth: Real, second: Real, constant: Real, powers: Array, out: Array
) -> None:
    """Store a sum of multiples of powers of a matrix, of which the second is the first stored."""
    size = n * n * PARTS
    for k in range(size):
        high = sixth * powers[2 * size + k] + fourth * powers[size + k]
        out[k] = high + second * powers[k]
    for i in range(n):
        out[i * (n + 1) * PARTS] += constant


class Logm(MatrixFunction):
    """The principal logarithm of a matrix."""

    # ----- perform
    def value(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        from scipy.linalg import logm

        return np.asarray(logm(x.astype(np.result_type(x, "float64"))))


class Sqrtm(MatrixFunction):
    """The principal square root of a matrix."""

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
