"""Rules for several systems of linear equations with one matrix: it is factored once."""

from __future__ import annotations

from phintys.assumptions.keys import is_real
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement
from phintys.tensor.inference.parts import transposed
from phintys.tensor.linalg.decomposition.cholesky import cholesky
from phintys.tensor.linalg.decomposition.lu import lu_factor
from phintys.tensor.linalg.solvers.cholesky import cho_solve
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.linalg.solvers.lu import lu_solve
from phintys.tensor.rules.matrices import core_op, fitted, matrix_rule


@matrix_rule(
    "solve(A, b), solve(A, c) -> lu_solve(lu_factor(A), b), lu_solve(lu_factor(A), c)",
    Solve,
    phase="specialize",
    law="normwise",
    tags=("reuse_decomposition_multiple_solves",),
    tested_on=(
        "linalg.solve(Q, v) + linalg.solve(Q.T, w)",
        "linalg.solve(Q, M.T)[:, 0] + linalg.solve(Q, w)",
        "linalg.solve(K[:, :3, :3], v, b_ndim=1) + linalg.solve(K[:, :3, :3], w, b_ndim=1)",
        "linalg.solve(dot(Q, Q.T) + eye(3), v, assume_a='pos')"
        " + linalg.solve(dot(Q, Q.T) + eye(3), w, assume_a='pos')",
    ),
)
def factored_once(ctx: Context, node: Apply, op: Solve) -> Replacement:
    """Applies if another system has the same matrix, or its transpose."""
    a, b = node.inputs
    if op.assume_a == "pos":
        if len(_systems(ctx, a, op)) < 2:
            return None
        factor = cholesky(a, lower=op.lower)
        return fitted(node, cho_solve((factor, op.lower), b, b_ndim=op.b_ndim))
    if op.assume_a not in ("gen", "banded"):
        return None
    whole = transposed(a) if is_real(a) else None
    base = a if whole is None else whole
    if len(_systems(ctx, base, op)) + len(_systems_of_transpose(ctx, base, op)) < 2:
        return None
    return fitted(node, lu_solve(lu_factor(base), b, trans=base is not a, b_ndim=op.b_ndim))


def _systems(ctx: Context, a: Variable, op: Solve) -> list[Apply]:
    """The nodes that solve systems with the matrix ``a`` of the structure that ``op`` assumes."""
    users = [node for node, i in ctx.fgraph.clients.get(a, ()) if i == 0]
    return [node for node in users if _is_alike(node, op)]


def _is_alike(node: Apply, op: Solve) -> bool:
    other = core_op(node.outputs[0]) if node.outputs else None
    return isinstance(other, Solve) and (other.assume_a, other.lower) == (op.assume_a, op.lower)


def _systems_of_transpose(ctx: Context, a: Variable, op: Solve) -> list[Apply]:
    users = [node.outputs[0] for node, _ in ctx.fgraph.clients.get(a, ()) if node.outputs]
    turned = [v for v in users if transposed(v) is a]
    return [node for v in turned for node in _systems(ctx, v, op)]
