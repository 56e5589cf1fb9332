"""Rules for inverses of matrices.

A matrix that is singular raises LinAlgError in its inverse; where an inverse is not computed, what
remains is NaN or the exact result (law `normwise`).
"""

from __future__ import annotations

from phintys.assumptions import DIAGONAL, ORTHOGONAL
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.tensor.dot import Dot
from phintys.tensor.elemwise import DimShuffle, cast, conjugate, functions
from phintys.tensor.inference.parts import transposed
from phintys.tensor.linalg.constructors import BlockDiagonal, block_diag
from phintys.tensor.linalg.inverse import MatrixInverse, inv
from phintys.tensor.linalg.products import KroneckerProduct, kron
from phintys.tensor.linalg.solvers.general import Solve, solve
from phintys.tensor.rules.matrices import (
    asserted_square,
    core_op,
    core_ranks,
    diagonal_matrix,
    fitted,
    holds,
    matrix_rule,
    nan_unless,
    product,
    square_diagonal,
    square_parts,
    transpose,
)


def inverted(v: Variable) -> Variable | None:
    """``x`` if ``v`` is the inverse of ``x``, or of its items for a batch; else None."""
    made = v.owner
    if made is not None and isinstance(made.op, DimShuffle) and made.op.is_left_expand_dims:
        inner = inverted(made.inputs[0])
        return None if inner is None else made.op(inner)
    return made.inputs[0] if made is not None and isinstance(core_op(v), MatrixInverse) else None


@matrix_rule(
    "inv(inv(x)) -> x",
    MatrixInverse,
    law="normwise",
    tags=("inv_of_inv",),
    tested_on=("linalg.inv(linalg.inv(Q))", "linalg.inv(linalg.inv(K[:, :3, :3]))"),
)
def inverse_of_inverse(ctx: Context, node: Apply, op: MatrixInverse) -> Replacement:
    x = inverted(node.inputs[0])
    return None if x is None else fitted(node, asserted_square(ctx, x))


@matrix_rule(
    "inv(diag(d)) -> diag(1 / d)",
    MatrixInverse,
    law="normwise",
    tags=("inv_of_diag_to_diag_reciprocal",),
    tested_on=(
        "linalg.inv(diag(v))",
        "linalg.inv(alloc_diag(M, 0, 1, 2))",
        "linalg.inv(2 * eye(n))",
    ),
)
def inverse_of_diagonal(ctx: Context, node: Apply, op: MatrixInverse) -> Replacement:
    """NaN if the diagonal contains a zero."""
    (x,) = node.inputs
    if not holds(ctx, x, DIAGONAL):
        return None
    d = square_diagonal(ctx, x, node.outputs[0].type.dtype)
    inverse = diagonal_matrix(functions.true_div(1, d))
    return fitted(node, nan_unless(functions.neq(d, 0), inverse, 2))


@matrix_rule(
    "inv(Q) -> Q.T, Q orthogonal",
    MatrixInverse,
    law="normwise",
    tags=("inv_of_orthogonal_to_transpose",),
    tested_on=("linalg.inv(assume(eye(n)[::-1], orthogonal=True))",),
)
def inverse_of_orthogonal(ctx: Context, node: Apply, op: MatrixInverse) -> Replacement:
    (x,) = node.inputs
    if not holds(ctx, x, ORTHOGONAL):
        return None  # what is declared orthogonal may have more rows than columns
    return fitted(node, conjugate(transpose(asserted_square(ctx, x))))


@matrix_rule(
    "inv(kron(A, B)) -> kron(inv(A), inv(B))",
    MatrixInverse,
    law="normwise",
    tags=("inv_of_kron",),
    tested_on=("linalg.inv(linalg.kron(N[:, :2], N[:, 1:]))",),
)
def inverse_of_kronecker(ctx: Context, node: Apply, op: MatrixInverse) -> Replacement:
    """Applies to matrices of known lengths: an empty one would hide that another is singular."""
    parts = square_parts(ctx, node.inputs[0], KroneckerProduct)
    if parts is None or not all(x.type.shape[-1] for x in parts):
        return None
    return fitted(node, kron(*[inv(x) for x in parts]))


@matrix_rule(
    "inv(block_diag(A, B)) -> block_diag(inv(A), inv(B))",
    MatrixInverse,
    law="normwise",
    tags=("inv_of_blockdiag",),
    tested_on=("linalg.inv(linalg.block_diag(N[:, :2], assume(Q, square=True)))",),
)
def inverse_of_blocks(ctx: Context, node: Apply, op: MatrixInverse) -> Replacement:
    parts = square_parts(ctx, node.inputs[0], BlockDiagonal)
    return None if parts is None else fitted(node, block_diag(*[inv(x) for x in parts]))


@rule(
    "inv(x.T).T -> inv(x)",
    ops=[DimShuffle],
    law="normwise",
    tags=("transpose_of_inv",),
    tested_on=("linalg.inv(Q.T).T", "linalg.inv(K[:, :3, :3].mT).mT"),
)
def transpose_of_inverse(ctx: Context, node: Apply) -> Replacement:
    inner = inverted(node.inputs[0]) if node.op.is_matrix_transpose else None
    x = None if inner is None else transposed(inner)
    return None if x is None else fitted(node, inv(x))


@matrix_rule(
    "inv(A) @ b -> solve(A, b)",
    Dot,
    phase="stabilize",
    law="normwise",
    tags=("inv_to_solve",),
    tested_on=(
        "dot(linalg.inv(Q), M.T)",
        "dot(linalg.inv(Q), v)",
        "dot(M, linalg.inv(Q))",
        "dot(v, linalg.inv(Q))",
        "matmul(K[:, :, :3], linalg.inv(Q))",
        "matmul(linalg.inv(K[:, :3, :3]), v)",
    ),
)
def product_with_inverse(ctx: Context, node: Apply, op: Dot) -> Replacement:
    """NaN if the matrix is singular.  Applies if the inverse has no other use."""
    (x, y), (left, right) = node.inputs, core_ranks(node)
    a = inverted(x) if left == 2 and ctx.single_use(x) else None
    if a is not None:
        return fitted(node, solve(a, y, b_ndim=right))
    a = inverted(y) if right == 2 and ctx.single_use(y) else None
    if a is None:
        return None
    found = solve(transpose(a), x if left == 1 else transpose(x), b_ndim=left)
    return fitted(node, found if left == 1 else transpose(found))


@matrix_rule(
    "solve(inv(A), b) -> A @ b",
    Solve,
    phase="stabilize",
    law="normwise",
    tags=("solve_of_inv_to_matmul",),
    tested_on=("linalg.solve(linalg.inv(Q), v)", "linalg.solve(linalg.inv(Q), M.T)"),
)
def solution_with_inverse(ctx: Context, node: Apply, op: Solve) -> Replacement:
    a, b = node.inputs
    x = inverted(a) if op.assume_a == "gen" else None
    if x is None:
        return None
    x, dtype = asserted_square(ctx, x), node.outputs[0].type.dtype  # integers would wrap
    return fitted(node, product(cast(x, dtype), cast(b, dtype), op.b_ndim))
