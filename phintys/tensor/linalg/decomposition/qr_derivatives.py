"""Derivatives of the QR decomposition of a matrix ``x`` of ``m`` rows and ``n`` columns.

``q`` has ``k = min(m, n)`` orthonormal columns, ``r`` has ``k`` rows and a real diagonal.  The
first ``k`` columns of ``x`` determine ``q``; of the others, ``r`` has the coefficients.  Formulas:
S. F. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2010; D. A. O.
Roberts, L. R. Roberts, "QR and LQ decomposition matrix backpropagation algorithms", 2020.
"""

from __future__ import annotations

from phintys.scalar.dtypes import is_complex
from phintys.tensor.dot import matrix_product
from phintys.tensor.join import concatenate
from phintys.tensor.linalg.matrix_op import adjoint, diagonal_part, triangle
from phintys.tensor.linalg.solvers.triangular import solve_triangular
from phintys.tensor.variable import TensorVariable

Matrix = TensorVariable


def pulled_back(x: Matrix, q: Matrix, r: Matrix, gq: Matrix, gr: Matrix) -> Matrix:
    """The cotangent of ``x`` from those of ``q`` and ``r``."""
    (u, _), (gu, rest) = _split(x, q, r), _split(x, q, gr)
    if rest is not None:
        gq = gq + matrix_product(x[:, q.shape[1] :], adjoint(rest))
    s = matrix_product(u, adjoint(gu)) - matrix_product(adjoint(gq), q)
    below = triangle(s, True, 1)
    s = below + adjoint(below) + diagonal_part(s)
    found = adjoint(solve_triangular(u, adjoint(gq + matrix_product(q, s))))
    return found if rest is None else concatenate([found, matrix_product(q, rest)], axis=1)


def pushed_forward(x: Matrix, q: Matrix, r: Matrix, t: Matrix) -> tuple[Matrix, Matrix]:
    """The tangents of ``q`` and ``r`` from that of ``x``."""
    (u, _), (first, rest) = _split(x, q, r), _split(x, q, t)
    c = adjoint(solve_triangular(u, adjoint(first), trans="C"))
    p = matrix_product(adjoint(q), c)
    below = triangle(p, True, 1)
    turn = below - adjoint(below)
    if is_complex(p.type.dtype):
        turn = turn + triangle(triangle(p, True), False) - diagonal_part(p)
    tq = c - matrix_product(q, p - turn)
    tr = triangle(matrix_product(p - turn, u), False)
    if rest is not None:
        others = matrix_product(adjoint(tq), x[:, q.shape[1] :]) + matrix_product(adjoint(q), rest)
        tr = concatenate([tr, others], axis=1)
    return tq, tr


def _split(x: Matrix, q: Matrix, y: Matrix) -> tuple[Matrix, Matrix | None]:
    """The first ``k`` columns of ``y`` and the others; None if it is known that there are none."""
    m, n = x.type.shape
    if m is not None and n is not None and n <= m:
        return y, None
    k = q.shape[1]
    return y[:, :k], y[:, k:]
