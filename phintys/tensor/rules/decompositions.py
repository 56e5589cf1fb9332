"""Rules for decompositions of matrices with known properties."""

from __future__ import annotations

from phintys.assumptions import DIAGONAL, LOWER_TRIANGULAR, SQUARE
from phintys.assumptions.keys import is_real
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement
from phintys.tensor.elemwise import functions
from phintys.tensor.inference.parts import are_transposes
from phintys.tensor.inference.products import factors
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.matrix_functions import Expm
from phintys.tensor.reduce import all as every
from phintys.tensor.rules.match import is_float
from phintys.tensor.rules.matrices import (
    as_columns,
    core_op,
    diagonal_matrix,
    fitted,
    holds,
    main_diagonal,
    matrix_rule,
    nan_unless,
    square_diagonal,
    transpose,
)
from phintys.tensor.variable import TensorVariable


@matrix_rule(
    "cholesky(diag(d)) -> diag(sqrt(d))",
    Cholesky,
    law="normwise",
    tags=("cholesky_of_diag",),
    tested_on=("linalg.cholesky(diag(v))", "linalg.cholesky(alloc_diag(exp(M), 0, 1, 2))"),
)
def cholesky_of_diagonal(ctx: Context, node: Apply, op: Cholesky) -> Replacement:
    """NaN as from the decomposition, if an element of the diagonal is not positive, or infinite."""
    (x,) = node.inputs
    if op.on_error != "nan" or not is_real(x) or not holds(ctx, x, DIAGONAL):
        return None
    d = square_diagonal(ctx, x, node.outputs[0].type.dtype)
    return fitted(
        node,
        nan_unless(
            functions.and_(d > 0, functions.isfinite(d)), diagonal_matrix(functions.sqrt(d)), 2
        ),
    )


@matrix_rule(
    "cholesky(L @ L.T) -> L",
    Cholesky,
    law="normwise",
    tags=("cholesky_ldotlt",),
    tested_on=(
        "linalg.cholesky(dot(tril(N[:, :2]), tril(N[:, :2]).T))",
        "linalg.cholesky(dot(tril(N[:, :2]), tril(N[:, :2]).T), lower=False)",
        "linalg.cholesky(dot(triu(N[:, :2]).T, triu(N[:, :2])))",
        "linalg.cholesky(matmul(alloc(tril(N[:, :2]), n, 2, 2),"
        " alloc(tril(N[:, :2]), n, 2, 2).mT))",
        "linalg.cholesky(dot(linalg.cholesky(dot(Q, Q.T) + eye(3)),"
        " linalg.cholesky(dot(Q, Q.T) + eye(3)).T))",
    ),
)
def cholesky_of_product(ctx: Context, node: Apply, op: Cholesky) -> Replacement:
    """The signs of the columns of ``L`` become positive; NaN if its diagonal has a zero, or ``L``
    contains NaN or infinity."""
    found = factors(node.inputs[0])
    if found is None or op.on_error != "nan" or not is_float(node.inputs[0]):
        return None  # products of integers wrap
    factor, other = found
    if not are_transposes(factor, other) or not holds(ctx, factor, LOWER_TRIANGULAR, SQUARE):
        return None
    lower = factor if _has_positive_diagonal(factor) else _with_positive_diagonal(factor)
    return fitted(node, lower if op.lower else transpose(lower))


def _has_positive_diagonal(factor: Variable) -> bool:
    """Whether a triangle is that of a decomposition, or its transpose."""
    return any(isinstance(core_op(v), Cholesky) for v in (factor, transpose(factor)))


def _with_positive_diagonal(factor: Variable) -> TensorVariable:
    signs = functions.sign(main_diagonal(factor))
    found = functions.and_(functions.neq(signs, 0), every(functions.isfinite(factor), axis=-1))
    return nan_unless(found, factor * as_columns(signs), 2)


@matrix_rule(
    "expm(diag(d)) -> diag(exp(d))",
    Expm,
    law="normwise",
    tags=("expm_of_diag",),
    tested_on=("linalg.expm(diag(v))", "linalg.expm(alloc_diag(M, 0, 1, 2))"),
)
def exponential_of_diagonal(ctx: Context, node: Apply, op: Expm) -> Replacement:
    (x,) = node.inputs
    if not holds(ctx, x, DIAGONAL):
        return None
    d = square_diagonal(ctx, x, node.outputs[0].type.dtype)
    return fitted(node, diagonal_matrix(functions.exp(d)))
