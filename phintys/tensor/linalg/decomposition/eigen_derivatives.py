"""Derivatives of eigenvalues ``w`` and eigenvectors ``v``, the columns of a matrix.

Complex vectors are determined up to their phases; the derivatives are those of functions that do
not depend on these.  For the formulas of one matrix see M. B. Giles, "An extended collection of
matrix derivative results", 2008.  Those of a pair follow in the same way from the differentials of
``a v = b v diag(w)`` and ``v^H b v = 1``.
"""

from __future__ import annotations

from phintys.tensor.diagonal import diag, diagonal
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import conjugate, functions
from phintys.tensor.linalg.decomposition.qr import QR
from phintys.tensor.linalg.matrix_op import adjoint, diagonal_part, gaps, triangle
from phintys.tensor.linalg.solvers.triangular import solve_triangular
from phintys.tensor.variable import TensorVariable

Tensor = TensorVariable


def hermitian(t: Tensor, lower: bool) -> Tensor:
    """The Hermitian matrix of which ``t`` has one triangle."""
    part = triangle(t, lower, 1)
    return part + adjoint(part) + diagonal_part(t)


def folded(g: Tensor, lower: bool) -> Tensor:
    """The cotangent of the triangle that is read, from that of the Hermitian matrix."""
    return triangle(g + adjoint(g), lower, 1) + diagonal_part(g)


def pulled_back(
    w: Tensor, v: Tensor, gw: Tensor, gv: Tensor | None, pair: bool
) -> tuple[Tensor, Tensor]:
    """The cotangents of the Hermitian matrices ``a`` and ``b`` (0 for one matrix)."""
    in_a, in_b = diag(gw), diag(-gw * w)
    if gv is not None:
        turn = matrix_product(adjoint(v), gv)
        apart = gaps(w) * turn
        in_a, in_b = in_a + apart, in_b - apart * w - 0.5 * diagonal_part(turn)
    ga = matrix_product(matrix_product(v, in_a), adjoint(v))
    return ga, matrix_product(matrix_product(v, in_b), adjoint(v)) if pair else ga.zeros_like()


def pushed_forward(w: Tensor, v: Tensor, ta: Tensor, tb: Tensor | None) -> tuple[Tensor, Tensor]:
    """The tangents of ``w`` and ``v`` from those of ``a`` and ``b`` (None for one matrix)."""
    p = matrix_product(matrix_product(adjoint(v), ta), v)
    if tb is None:
        return functions.real(diagonal(p)), matrix_product(v, gaps(w) * p)
    q = matrix_product(matrix_product(adjoint(v), tb), v)
    p = p - q * w
    turn = gaps(w) * p - 0.5 * diagonal_part(q)
    return functions.real(diagonal(p)), matrix_product(v, turn)


def pulled_back_general(w: Tensor, v: Tensor, gw: Tensor, gv: Tensor | None) -> Tensor:
    """The cotangent of a square matrix, whose eigenvectors have length 1."""
    middle = diag(gw)
    if gv is not None:
        turn = matrix_product(adjoint(v), gv)
        turn = turn - matrix_product(adjoint(v), v) * diagonal(turn)
        middle = middle + conjugate(gaps(w)) * turn
    return _solved(adjoint(v), matrix_product(middle, adjoint(v)))


def pushed_forward_general(w: Tensor, v: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """The tangents of ``w`` and ``v`` from that of a square matrix."""
    p = _solved(v, matrix_product(t, v))
    turned = matrix_product(v, gaps(w) * p)
    along = diagonal(matrix_product(adjoint(v), turned))
    return diagonal(p), turned - v * along


def _solved(a: Tensor, b: Tensor) -> Tensor:
    """The solution ``x`` of ``a x = b``."""
    q, r = QR("economic")(a)
    return solve_triangular(r, matrix_product(adjoint(q), b))
