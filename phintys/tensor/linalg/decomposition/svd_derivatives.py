"""Derivatives of the singular value decomposition ``x = u diag(s) vt``, with ``k`` singular values.

Complex vectors are determined up to one phase for each pair of columns of ``u`` and ``v``; the
derivatives are those of functions that do not depend on it.  Formulas: J. Townsend,
"Differentiating the singular value decomposition", 2016; Z.-Q. Wan, S.-X. Zhang, "Automatic
differentiation for complex valued SVD", 2019.
"""

from __future__ import annotations

from phintys.scalar.dtypes import is_complex
from phintys.tensor.diagonal import diag, diagonal
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import functions
from phintys.tensor.linalg.matrix_op import adjoint, gaps
from phintys.tensor.variable import TensorVariable

Tensor = TensorVariable


def pulled_back(u: Tensor, s: Tensor, vt: Tensor, gu: Tensor, gs: Tensor, gvt: Tensor) -> Tensor:
    """The cotangent of ``x`` from those of its factors."""
    v, gv, e = adjoint(vt), adjoint(gvt), gaps(functions.sqr(s))
    left, right = matrix_product(adjoint(u), gu), matrix_product(vt, gv)
    middle = diag(gs) + _twice_hermitian(e * left) * s + _column(s) * _twice_hermitian(e * right)
    if is_complex(u.type.dtype):
        middle = middle + _phases(left - right, s)
    found = matrix_product(matrix_product(u, middle), vt)
    found = found + matrix_product((gu - matrix_product(u, left)) * _scale(u, s), vt)
    return found + matrix_product(u, adjoint((gv - matrix_product(v, right)) * _scale(v, s)))


def pulled_back_values(u: Tensor, vt: Tensor, gs: Tensor) -> Tensor:
    """The cotangent of ``x`` from that of its singular values."""
    return matrix_product(u * gs, vt)


def pushed_forward(u: Tensor, s: Tensor, vt: Tensor, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The tangents of the factors from that of ``x``."""
    v, e = adjoint(vt), gaps(functions.sqr(s))
    tv, tu = matrix_product(t, v), matrix_product(adjoint(t), u)
    p = matrix_product(adjoint(u), tv)
    turn_u, turn_v = e * _twice_hermitian(p * s), e * _twice_hermitian(_column(s) * p)
    if is_complex(u.type.dtype):
        phases = _phases(p, s)
        turn_u, turn_v = turn_u + phases, turn_v - phases
    du = matrix_product(u, turn_u) + (tv - matrix_product(u, p)) * _scale(u, s)
    dv = matrix_product(v, turn_v) + (tu - matrix_product(v, adjoint(p))) * _scale(v, s)
    return du, functions.real(diagonal(p)), adjoint(dv)


def _twice_hermitian(x: Tensor) -> Tensor:
    return x + adjoint(x)


def _column(s: Tensor) -> Tensor:
    """A factor of each row."""
    return s.dimshuffle(0, "x")


def _phases(p: Tensor, s: Tensor) -> Tensor:
    """The imaginary diagonal that turns the vectors of both sides against each other."""
    return diag(functions.imag(diagonal(p)) / (2.0 * s)) * 1j


def _scale(u: Tensor, s: Tensor) -> Tensor:
    """``1 / s``, which scales what is orthogonal to the vectors; 0 if these are a whole basis."""
    return functions.switch(functions.eq(u.shape[0], u.shape[1]), 0.0 * s, 1.0 / s)
