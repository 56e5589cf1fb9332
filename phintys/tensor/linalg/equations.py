"""Linear equations whose unknown is a matrix: Sylvester's and Lyapunov's.

Their derivatives are solutions of equations of the same kind (T.-C. Kao and G. Hennequin,
"Automatic differentiation of Sylvester, Lyapunov, and algebraic Riccati equations", 2020).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np

from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes, result_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.axes import matrix_transpose
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import conjugate, functions, match_dtype
from phintys.tensor.linalg.matrix_op import (
    MatrixOp,
    adjoint,
    inexact,
    nan_like,
    quiet,
    square,
    triangle,
)
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_sylvester"]

Matrix = np.ndarray[Any, Any]


class MatrixEquation(MatrixOp):
    """Base class of equations of matrices; the solution is NaN if one contains NaN or infinity."""

    # ----- class and static shape
    __props__ = ()

    def node_of(self, *given: TensorLike) -> Apply:
        """The node of some matrices."""
        matrices = [self.matrix(x) for x in given]
        return typed_node(self, matrices, inexact(*[x.type.dtype for x in matrices]))

    # ----- perform
    @abstractmethod
    def value(self, *matrices: Matrix) -> Matrix:
        """The solution, not empty, for finite matrices; ValueError if there is none."""

    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        (shape,), dtype = result_shapes(node, inputs), node.outputs[0].type.dtype
        given = [x.astype(dtype, copy=False) for x in inputs]
        found = np.zeros(shape, dtype)
        if found.size:
            found = self._value(given, found)
        output_storage[0][0] = found.astype(dtype, copy=False)

    def _value(self, given: list[Matrix], out: Matrix) -> Matrix:
        """The solution, or NaN in the shape of ``out``."""
        if not all(np.isfinite(x).all() for x in given):
            return nan_like(out)
        try:
            with quiet():
                return self.value(*given)
        except ValueError:  # LinAlgError is one
            return nan_like(out)


# ----------------------------------------------------------------------------- Sylvester


class SolveSylvester(MatrixEquation):
    """The solution ``x`` of ``a x + x b = c``."""

    in_python = "SciPy has the algorithm"

    # ----- class and static shape
    gufunc_signature = "(m,m),(n,n),(m,n)->(m,n)"

    def make_node(self, A: TensorLike, B: TensorLike, C: TensorLike) -> Apply:
        return self.node_of(A, B, C)

    def shape_rule(self, s: ShapeContext, a: Shape, b: Shape, c: Shape) -> list[Shape]:
        message = "The matrices and the right side do not fit"
        return [(s.equal(square(s, a), c[0], message), s.equal(square(s, b), c[1], message))]

    # ----- perform
    def value(self, *matrices: Matrix) -> Matrix:
        from scipy.linalg import solve_sylvester

        return solve_sylvester(*matrices)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (a, b, c), (x,), (g,) = inputs, outputs, cotangents
        s = SolveSylvester()(adjoint(self.read(a, a)), adjoint(self.read(b, b)), g)
        ga, gb = -matrix_product(s, adjoint(x)), -matrix_product(adjoint(x), s)
        found = zip((self.read(ga, a), self.read(gb, b), s), (a, b, c))
        return [match_dtype(v, like) for v, like in found]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (a, b, _), (x,), (ta, tb, tc) = inputs, outputs, tangents
        ta, tb = self.read(ta, a), self.read(tb, b)
        return [self(a, b, tc - matrix_product(ta, x) - matrix_product(x, tb))]

    def read(self, t: TensorVariable, a: TensorVariable) -> TensorVariable:
        """``t``, of the shape of ``a``, where the op reads ``a``, and 0 elsewhere."""
        return t


class TRSYL(SolveSylvester):
    """The solution ``x`` of ``a x + x b = c``, where ``a`` and ``b`` are Schur forms.

    They are upper triangular; real ones may have blocks of two rows and columns on the diagonal, in
    the standard form of LAPACK.

    Parameters
    ----------
    overwrite_c
        whether ``c`` may be overwritten
    """

    # ----- class and static shape
    __props__ = ("overwrite_c",)

    def __init__(self, overwrite_c: bool = False) -> None:
        self.overwrite_c = bool(overwrite_c)
        self.destroy_map = {0: [2]} if overwrite_c else {}

    # ----- perform
    def value(self, *matrices: Matrix) -> Matrix:
        from scipy.linalg import get_lapack_funcs

        (trsyl,) = get_lapack_funcs(["trsyl"], matrices)
        found, scale, _ = trsyl(*matrices)
        return found / scale

    # ----- derivative
    def read(self, t: TensorVariable, a: TensorVariable) -> TensorVariable:
        upper = triangle(t, False)
        if dtypes.is_complex(a.type.dtype):
            return upper
        below = triangle(triangle(t, False, -1), True, 1)
        return upper + functions.switch(functions.neq(a, 0), below, 0)

    # ----- batching and lowering
    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return TRSYL(overwrite_c=2 in allowed_inplace_inputs)


def solve_sylvester(A: TensorLike, B: TensorLike, Q: TensorLike) -> TensorVariable:
    """The solution ``X`` of ``A X + X B = Q``.

    Parameters
    ----------
    A, B : tensors whose last two axes are square matrices
    Q : right sides, the last two axes

    The solution is unique if no eigenvalue of ``A`` is one of ``-B``; otherwise it is one of a
    perturbed equation, and may be large.  It is NaN if a matrix contains NaN or infinity.
    ShapeError if shapes do not fit.

    >>> import phintys.tensor as pt
    >>> pt.linalg.solve_sylvester([[1.0]], [[1.0, 0.0], [0.0, 2.0]], [[4.0, 6.0]]).eval()
    array([[2., 2.]])
    """
    return Blockwise(SolveSylvester())(A, B, Q)


def solve_continuous_lyapunov(A: TensorLike, Q: TensorLike) -> TensorVariable:
    """The solution ``X`` of ``A X + X A^H = Q``; see `solve_sylvester`.

    >>> import phintys.tensor as pt
    >>> pt.linalg.solve_continuous_lyapunov([[1.0, 0.0], [0.0, 2.0]], [[2, 3], [3, 4]]).eval()
    array([[1., 1.],
           [1., 1.]])
    """
    a = as_tensor_variable(A)
    return solve_sylvester(a, conjugate(matrix_transpose(a)), Q)


# ------------------------------------------------------------------- discrete Lyapunov


class SolveBilinearDiscreteLyapunov(MatrixEquation):
    """The solution ``x`` of ``x = a x a^H + q``."""

    in_python = "SciPy has the algorithm"

    # ----- class and static shape
    gufunc_signature = "(m,m),(m,m)->(m,m)"

    def make_node(self, A: TensorLike, Q: TensorLike) -> Apply:
        return self.node_of(A, Q)

    def shape_rule(self, s: ShapeContext, a: Shape, q: Shape) -> list[Shape]:
        n = s.equal(square(s, a), square(s, q), "The matrix and the right side do not fit")
        return [(n, n)]

    # ----- perform
    def value(self, *matrices: Matrix) -> Matrix:
        from scipy.linalg import solve_discrete_lyapunov

        return solve_discrete_lyapunov(*matrices, method="bilinear")

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (a, q), (x,), (g,) = inputs, outputs, cotangents
        s = self(adjoint(a), g)
        ga = matrix_product(s, matrix_product(a, adjoint(x))) + matrix_product(
            adjoint(s), matrix_product(a, x)
        )
        return [match_dtype(ga, a), match_dtype(s, q)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (a, _), (x,), (ta, tq) = inputs, outputs, tangents
        moved = matrix_product(ta, matrix_product(x, adjoint(a))) + matrix_product(
            a, matrix_product(x, adjoint(ta))
        )
        return [self(a, moved + tq)]


def solve_discrete_lyapunov(
    A: TensorLike, Q: TensorLike, method: Literal["direct", "bilinear"] = "bilinear"
) -> TensorVariable:
    """The solution ``X`` of ``X = A X A^H + Q``.

    Parameters
    ----------
    A, Q : tensors whose last two axes are square matrices
    method : accepted for compatibility: ``"bilinear"`` or ``"direct"``

    The solution is NaN if a matrix contains NaN or infinity, or if an eigenvalue of ``A`` is known
    to be -1.  ShapeError if shapes do not fit, ValueError if there is no such method.

    >>> import phintys.tensor as pt
    >>> pt.linalg.solve_discrete_lyapunov([[0.5]], [[3.0]]).eval()
    array([[4.]])
    """
    if method not in ("direct", "bilinear"):
        raise ValueError(f"method must be 'direct' or 'bilinear', not {method!r}.")
    return Blockwise(SolveBilinearDiscreteLyapunov())(A, Q)
