"""Algebraic Riccati equations.

Their derivatives are solutions of Lyapunov equations with the matrix of the closed loop (T.-C. Kao
and G. Hennequin, "Automatic differentiation of Sylvester, Lyapunov, and algebraic Riccati
equations", 2020).
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply, Variable
from phintys.tensor.aliases import TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import match_dtype
from phintys.tensor.linalg.equations import (
    Matrix,
    MatrixEquation,
    SolveBilinearDiscreteLyapunov,
    SolveSylvester,
)
from phintys.tensor.linalg.matrix_op import adjoint, square
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["solve_continuous_are", "solve_discrete_are"]


class RiccatiEquation(MatrixEquation):
    """Base class of Riccati equations in ``a``, ``b``, ``q`` and ``r``.

    Of ``q`` and ``r`` only the Hermitian parts count, ``(q + q^H) / 2``; the solution is Hermitian.
    """

    # ----- class and static shape
    gufunc_signature = "(m,m),(m,n),(m,m),(n,n)->(m,m)"

    def make_node(self, A: TensorLike, B: TensorLike, Q: TensorLike, R: TensorLike) -> Apply:
        return self.node_of(A, B, Q, R)

    def shape_rule(self, s: ShapeContext, a: Shape, b: Shape, q: Shape, r: Shape) -> list[Shape]:
        n = s.equal(square(s, a), b[0], "The matrices do not fit")
        n = s.equal(n, square(s, q), "The matrices do not fit")
        s.equal(b[1], square(s, r), "The matrices do not fit")
        return [(n, n)]

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (g,) = outputs, cotangents
        loop, gain, weight = self.closed_loop(inputs, x)
        s = self.accumulated(loop, _hermitian_part(g))
        ga = 2 * matrix_product(weight, s)
        found = (
            ga,
            -matrix_product(ga, adjoint(gain)),
            s,
            matrix_product(gain, matrix_product(s, adjoint(gain))),
        )
        return [match_dtype(v, like) for v, like in zip(found, inputs, strict=True)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (x,), (ta, tb, tq, tr) = outputs, tangents
        loop, gain, weight = self.closed_loop(inputs, x)
        moved = 2 * matrix_product(adjoint(weight), ta - matrix_product(tb, gain))
        moved += tq + matrix_product(adjoint(gain), matrix_product(tr, gain))
        return [self.accumulated(adjoint(loop), _hermitian_part(moved))]

    @abstractmethod
    def closed_loop(self, inputs: Tensors, x: TensorVariable) -> Tensors:
        """``a - b k``, the gain ``k``, and the derivative's weight ``w``.

        The tangent of ``x`` is `accumulated` from ``w^H (ta - tb k)``, its adjoint, ``tq`` and
        ``k^H tr k``.
        """

    @abstractmethod
    def accumulated(self, loop: TensorVariable, q: TensorVariable) -> TensorVariable:
        """The solution of the Lyapunov equation of ``loop`` and ``q``."""


class SolveDiscreteARE(RiccatiEquation):
    """The solution of ``x = a^H x a - a^H x b inv(r + b^H x b) b^H x a + q``."""

    in_python = "SciPy has the algorithm"

    # ----- perform
    def value(self, *matrices: Matrix) -> Matrix:
        from scipy.linalg import solve_discrete_are

        a, b, q, r = _with_hermitian_parts(matrices)
        return solve_discrete_are(a, b, q, r)

    # ----- derivative
    def closed_loop(self, inputs: Tensors, x: TensorVariable) -> Tensors:
        a, b, _, r = inputs
        seen = matrix_product(adjoint(b), x)
        gain = Solve(b_ndim=2)(
            _hermitian_part(r) + matrix_product(seen, b), matrix_product(seen, a)
        )
        loop = a - matrix_product(b, gain)
        return [loop, gain, matrix_product(x, loop)]

    def accumulated(self, loop: TensorVariable, q: TensorVariable) -> TensorVariable:
        return SolveBilinearDiscreteLyapunov()(loop, q)


class SolveContinuousARE(RiccatiEquation):
    """The solution of ``a^H x + x a - x b inv(r) b^H x + q = 0``."""

    in_python = "SciPy has the algorithm"

    # ----- perform
    def value(self, *matrices: Matrix) -> Matrix:
        from scipy.linalg import solve_continuous_are

        a, b, q, r = _with_hermitian_parts(matrices)
        return solve_continuous_are(a, b, q, r)

    # ----- derivative
    def closed_loop(self, inputs: Tensors, x: TensorVariable) -> Tensors:
        a, b, _, r = inputs
        gain = Solve(b_ndim=2)(_hermitian_part(r), matrix_product(adjoint(b), x))
        return [a - matrix_product(b, gain), gain, x]

    def accumulated(self, loop: TensorVariable, q: TensorVariable) -> TensorVariable:
        return SolveSylvester()(loop, adjoint(loop), -q)


def _hermitian_part(x: TensorVariable) -> TensorVariable:
    return (x + adjoint(x)) / 2


def _with_hermitian_parts(matrices: tuple[Matrix, ...]) -> list[Matrix]:
    """``a``, ``b``, and the Hermitian parts of ``q`` and ``r``."""
    a, b, *weights = matrices
    q, r = ((x + x.conj().T) / 2 for x in weights)
    if not b.size:  # which SciPy does not accept: a control without effect
        b, r = np.zeros((len(a), 1), b.dtype), np.ones((1, 1), r.dtype)
    return [a, b, q, r]


# ----- user functions
def solve_discrete_are(
    A: TensorLike, B: TensorLike, Q: TensorLike, R: TensorLike
) -> TensorVariable:
    """The solution ``X`` of ``X = A^H X A - A^H X B inv(R + B^H X B) B^H X A + Q``.

    Parameters
    ----------
    A, B, Q, R : tensors whose last two axes are matrices, of the shapes (m, m), (m, n), (m, m) and
        (n, n); only the Hermitian parts of ``Q`` and ``R`` count

    It is the one for which the eigenvalues of ``A - B inv(R + B^H X B) B^H X A`` are less than 1 in
    absolute value.  It is NaN if there is none, or a matrix contains NaN or infinity.  ShapeError
    if shapes do not fit.

    >>> import phintys.tensor as pt
    >>> pt.linalg.solve_discrete_are([[0.0]], [[1.0]], [[3.0]], [[1.0]]).eval()
    array([[3.]])
    """
    return Blockwise(SolveDiscreteARE())(A, B, Q, R)


def solve_continuous_are(
    A: TensorLike, B: TensorLike, Q: TensorLike, R: TensorLike
) -> TensorVariable:
    """The solution ``X`` of ``A^H X + X A - X B inv(R) B^H X + Q = 0``.

    Parameters
    ----------
    A, B, Q, R : tensors whose last two axes are matrices, of the shapes (m, m), (m, n), (m, m) and
        (n, n); only the Hermitian parts of ``Q`` and ``R`` count

    It is the one for which the eigenvalues of ``A - B inv(R) B^H X`` have negative real parts.  It
    is NaN if there is none, or a matrix contains NaN or infinity.  ShapeError if shapes do not fit.

    >>> import phintys.tensor as pt
    >>> pt.linalg.solve_continuous_are([[0.0]], [[1.0]], [[4.0]], [[1.0]]).eval()
    array([[2.]])
    """
    return Blockwise(SolveContinuousARE())(A, B, Q, R)
