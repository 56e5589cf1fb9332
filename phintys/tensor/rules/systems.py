"""Rules for systems of linear equations whose matrix has known properties."""

from __future__ import annotations

from phintys.assumptions import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    ORTHOGONAL,
    POSITIVE_DEFINITE,
    SQUARE,
    TRIDIAGONAL,
    UPPER_TRIANGULAR,
)
from phintys.assumptions.keys import is_real
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.elemwise import conjugate, functions
from phintys.tensor.join import concatenate
from phintys.tensor.linalg.constructors import BlockDiagonal
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.linalg.solvers.triangular import SolveTriangular
from phintys.tensor.rules.blocks import rows_of_blocks
from phintys.tensor.rules.matrices import (
    as_rows,
    asserted_square,
    broadcast_alike,
    fitted,
    holds,
    matrix_rule,
    nan_unless,
    product,
    square_diagonal,
    square_parts,
    transpose,
)

#: structures of which `Solve` reads the whole matrix
GENERAL = ("gen", "banded")


@matrix_rule(
    "solve(diag(d), b) -> b / d",
    Solve,
    SolveTriangular,
    law="normwise",
    tags=("diagonal_solve_to_division", "scalar_solve_to_division", "shape_unsafe"),
    tested_on=(
        "linalg.solve(diag(v), w)",
        "linalg.solve(diag(v), Q)",
        "linalg.solve(alloc_diag(M, 0, 1, 2), K[:, :3])",
        "linalg.solve(eye(n), Q, assume_a='pos')",
        "linalg.solve_triangular(diag(v), w)",
        "linalg.solve_triangular(diag(v), Q, lower=True)",
        "linalg.solve_triangular(alloc_diag(M, 0, 1, 2), K[:, :3])",
        "linalg.solve_triangular(diag(v), K[:, :3])",
    ),
)
def solution_with_diagonal(ctx: Context, node: Apply, op: Solve | SolveTriangular) -> Replacement:
    """NaN as from the solver, if the diagonal contains a zero."""
    a, b = node.inputs
    if not holds(ctx, a, DIAGONAL) or not broadcast_alike(a, -1, b, -op.b_ndim):
        return None
    if isinstance(op, Solve) and op.assume_a == "pos":
        return None if not holds(ctx, a, POSITIVE_DEFINITE) else _divided(ctx, node, op.b_ndim)
    if isinstance(op, Solve) and op.assume_a == "her" and not is_real(a):
        return None  # it reads the real part of the diagonal
    if isinstance(op, SolveTriangular) and op.unit_diagonal:
        return fitted(node, b) if holds(ctx, a, SQUARE) else None
    return _divided(ctx, node, op.b_ndim)


def _divided(ctx: Context, node: Apply, b_ndim: int) -> Variable | None:
    """The right sides divided by the diagonal of the matrix."""
    a, b = node.inputs
    d = square_diagonal(ctx, a, node.outputs[0].type.dtype)
    found = functions.true_div(b, as_rows(d) if b_ndim == 2 else d)
    return fitted(node, nan_unless(functions.neq(d, 0), found, b_ndim))


@matrix_rule(
    "solve(A, b) -> solve(A, b, assume_a=...)",
    Solve,
    law="normwise",
    tags=("generic_solve_to_structured_form", "psd_solve_to_chol_solve"),
    tested_on=(
        "linalg.solve(tril(Q), v)",
        "linalg.solve(triu(K[:, :3, :3]), M.T)",
        "linalg.solve(assume(dot(Q, Q.T) + eye(3), positive_definite=True), v)",
        "linalg.solve(diag(v) + diag(w[1:], 1) + diag(v[1:], -1), M.T)",
    ),
)
def solution_with_structure(ctx: Context, node: Apply, op: Solve) -> Replacement:
    """Triangular, tridiagonal and positive definite matrices."""
    a, b = node.inputs
    if op.assume_a not in GENERAL:
        return None
    for key in (LOWER_TRIANGULAR, UPPER_TRIANGULAR):
        if holds(ctx, a, key):
            lower = key is LOWER_TRIANGULAR
            return fitted(node, Blockwise(SolveTriangular(lower=lower, b_ndim=op.b_ndim))(a, b))
    structures = {"tridiagonal": TRIDIAGONAL, "pos": POSITIVE_DEFINITE}
    for name, key in structures.items():
        if holds(ctx, a, key):
            return fitted(node, Blockwise(Solve(assume_a=name, lower=True, b_ndim=op.b_ndim))(a, b))
    return None


@matrix_rule(
    "solve(Q, b) -> Q.T @ b, Q orthogonal",
    Solve,
    law="normwise",
    tags=("orthogonal_solve_to_transpose_matmul",),
    tested_on=(
        "linalg.solve(assume(eye(n)[::-1], orthogonal=True), v)",
        "linalg.solve(assume(eye(n)[::-1], orthogonal=True), M.T)",
    ),
)
def solution_with_orthogonal(ctx: Context, node: Apply, op: Solve) -> Replacement:
    a, b = node.inputs
    if op.assume_a not in GENERAL or not holds(ctx, a, ORTHOGONAL):
        return None
    return fitted(node, product(conjugate(transpose(asserted_square(ctx, a))), b, op.b_ndim))


@matrix_rule(
    "solve(block_diag(A, B), b) -> join(solve(A, b[:n]), solve(B, b[n:]))",
    Solve,
    SolveTriangular,
    law="normwise",
    tags=("block_diag_solve_to_block_diag_solves", "shape_unsafe"),
    tested_on=(
        "linalg.solve(linalg.block_diag(N[:, :2], assume(Q, square=True)), join(0, k * 0.5, v))",
        "linalg.solve(linalg.block_diag(assume(Q, square=True), N[:, :2]), join(0, Q, N))",
    ),
)
def solution_with_blocks(ctx: Context, node: Apply, op: Solve | SolveTriangular) -> Replacement:
    """Applies to single matrices.  If a block is singular, its part of the solution is NaN."""
    a, b = node.inputs
    blocks = square_parts(ctx, a, BlockDiagonal) if a.type.ndim == 2 else None
    if blocks is None:
        return None
    parts = rows_of_blocks(b, blocks, 0)
    found = [op(x, part) for x, part in zip(blocks, parts, strict=True)]
    return fitted(node, concatenate(found, axis=0))
