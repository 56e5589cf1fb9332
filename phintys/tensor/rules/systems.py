"""Rules for systems of linear equations whose matrix has known properties."""

from __future__ import annotations

from phintys.assumptions import DIAGONAL
from phintys.graph.variable import Apply
from phintys.rewriting.rule import Context, Replacement
from phintys.tensor.elemwise import functions
from phintys.tensor.linalg.solvers.triangular import SolveTriangular
from phintys.tensor.rules.matrices import (
    as_rows,
    fitted,
    holds,
    main_diagonal,
    matrix_rule,
    nan_unless,
    same_length,
)


@matrix_rule(
    "solve(diag(d), b) -> b / d",
    SolveTriangular,
    law="normwise",
    tags=("diagonal_solve_to_division", "shape_unsafe"),
    tested_on=(
        "linalg.solve_triangular(diag(v), w)",
        "linalg.solve_triangular(diag(v), Q, lower=True)",
        "linalg.solve_triangular(alloc_diag(M, 0, 1, 2), K[:, :3])",
        "linalg.solve_triangular(diag(v), K[:, :3])",
    ),
)
def solution_with_diagonal(ctx: Context, node: Apply, op: SolveTriangular) -> Replacement:
    """NaN as from the solver, if the diagonal contains a zero."""
    a, b = node.inputs
    if not holds(ctx, a, DIAGONAL) or not same_length(a, -1, b, -op.b_ndim):
        return None
    if op.unit_diagonal:
        return fitted(node, b)
    d = main_diagonal(a)
    found = functions.true_div(b, as_rows(d) if op.b_ndim == 2 else d)
    return fitted(node, nan_unless(functions.neq(d, 0), found, op.b_ndim))
