"""Rules for eigenvalues, singular values and factors of matrices with known properties."""

from __future__ import annotations

from phintys.assumptions import DIAGONAL, SQUARE
from phintys.assumptions.keys import is_real
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.creation import zeros_like
from phintys.tensor.elemwise import cast, dimshuffle, functions
from phintys.tensor.inference.parts import rank
from phintys.tensor.linalg.decomposition.eigen import Eigh, Eigvalsh, eigvalsh
from phintys.tensor.linalg.decomposition.lu import LU, LUFactor
from phintys.tensor.linalg.decomposition.qr import QR
from phintys.tensor.linalg.decomposition.svd import SVD
from phintys.tensor.ranges import arange
from phintys.tensor.rules.matrices import (
    as_columns,
    as_rows,
    fitted,
    holds,
    main_diagonal,
    matrix_rule,
    square_diagonal,
)
from phintys.tensor.shape import length
from phintys.tensor.sort import argsort, sort
from phintys.tensor.variable import TensorVariable


def _all_fitted(node: Apply, found: list[Variable]) -> Replacement:
    """The results in the types of the outputs of a node; None if one does not fit."""
    fitting = [fitted(node, v, k) for k, v in enumerate(found)]
    return None if None in fitting else fitting


def _unit_columns(order: TensorVariable, dtype: str) -> TensorVariable:
    """The columns of the identity matrix in some order."""
    rows = arange(length(order, rank(order) - 1))
    batch = ["x"] * (rank(order) - 1)
    return cast(functions.eq(dimshuffle(rows, [*batch, 0, "x"]), as_columns(order)), dtype)


def _unit_matrix(x: Variable, dtype: str) -> TensorVariable:
    """The identity matrix, for each matrix of a batch."""
    n, positions = rank(x), arange(length(x, rank(x) - 1))
    unit = cast(functions.eq(dimshuffle(positions, [0, "x"]), positions), dtype)
    return unit if n == 2 else functions.second(x, dimshuffle(unit, ["x"] * (n - 2) + [0, 1]))


@matrix_rule(
    "eigh(diag(d)) -> sort(d), columns of the identity matrix",
    Eigh,
    Eigvalsh,
    law="normwise",
    tags=("eigh_of_diag", "eigvalsh_of_diag"),
    tested_on=(
        "linalg.eigh(diag(v))[0]",
        "(lambda w, v: matmul(v * w[..., None, :], v.mT))(*linalg.eigh(alloc_diag(M, 0, 1, 2)))",
        "linalg.eigvalsh(diag(v))",
    ),
)
def eigenvalues_of_diagonal(ctx: Context, node: Apply, op: Eigh | Eigvalsh) -> Replacement:
    (x, *others) = node.inputs
    if others or not is_real(x) or not holds(ctx, x, DIAGONAL):
        return None
    d = square_diagonal(ctx, x, node.outputs[0].type.dtype)
    if isinstance(op, Eigvalsh):
        return fitted(node, sort(d))
    return _all_fitted(node, [sort(d), _unit_columns(argsort(d), node.outputs[1].type.dtype)])


@matrix_rule(
    "eigh(x)[0] -> eigvalsh(x)",
    Eigh,
    law="normwise",
    tested_on=(
        "linalg.eigh(Q)[0]",
        "linalg.eigh(matmul(K, K.mT), lower=False)[0]",
        "linalg.eigh(Q, eye(3))[0]",
    ),
)
def eigenvalues_only(ctx: Context, node: Apply, op: Eigh) -> Replacement:
    """Applies if the eigenvectors are not used."""
    if ctx.uses(node.outputs[1]):
        return None
    found = fitted(node, eigvalsh(*node.inputs, lower=op.lower))
    return None if found is None else [found, None]


@matrix_rule(
    "svd(diag(d)) -> sort(abs(d)), rows and columns of the identity matrix",
    SVD,
    law="normwise",
    tags=("svd_of_structured",),
    tested_on=(
        "linalg.svd(diag(v), compute_uv=False)",
        "(lambda u, s, vt: matmul(u * s[..., None, :], vt))(*linalg.svd(alloc_diag(M, 0, 1, 2)))",
    ),
)
def singular_values_of_diagonal(ctx: Context, node: Apply, op: SVD) -> Replacement:
    """The signs of the diagonal go to the left factor."""
    (x,) = node.inputs
    if not is_real(x) or not holds(ctx, x, DIAGONAL, SQUARE):
        return None
    d = main_diagonal(x, node.outputs[0].type.dtype)
    order = argsort(-abs(d), stable=True)
    size = -sort(-abs(d))
    if not op.compute_uv:
        return fitted(node, size)
    dtype = node.outputs[0].type.dtype
    right = _unit_columns(order, dtype)
    signs = cast(functions.switch(d < 0, -1, 1), dtype)
    turned = dimshuffle(right, [*range(rank(x) - 2), rank(x) - 1, rank(x) - 2])
    return _all_fitted(node, [right * as_rows(signs), size, turned])


@matrix_rule(
    "svd(x)[1] -> svd(x, compute_uv=False)",
    SVD,
    law="normwise",
    tags=("svd_uv_merge",),
    tested_on=("linalg.svd(M)[1]", "linalg.svd(K, full_matrices=False)[1]"),
)
def singular_values_only(ctx: Context, node: Apply, op: SVD) -> Replacement:
    """Applies if both factors are not used."""
    if not op.compute_uv or ctx.uses(node.outputs[0]) or ctx.uses(node.outputs[2]):
        return None
    found = Blockwise(SVD(op.full_matrices, compute_uv=False))(node.inputs[0])
    return [None, fitted(node, found, 1), None]


@matrix_rule(
    "qr(diag(d)) -> eye, diag(d)",
    QR,
    law="normwise",
    tags=("qr_of_diag",),
    tested_on=(
        "linalg.qr(diag(v))[0]",
        "linalg.qr(diag(v), mode='r')",
        "linalg.qr(alloc_diag(M, 0, 1, 2), mode='economic')[1]",
    ),
)
def orthogonal_factor_of_diagonal(ctx: Context, node: Apply, op: QR) -> Replacement:
    (x,) = node.inputs
    if op.pivoting or op.mode == "raw" or not is_real(x) or not holds(ctx, x, DIAGONAL, SQUARE):
        return None
    parts = {"q": _unit_matrix(x, node.outputs[0].type.dtype), "r": x}
    return _all_fitted(node, [parts[name] for name in op.results])


@matrix_rule(
    "lu(diag(d)) -> eye, eye, diag(d)",
    LU,
    law="normwise",
    tags=("lu_of_diag",),
    tested_on=(
        "linalg.lu(diag(v))[0]",
        "linalg.lu(diag(v), permute_l=True)[1]",
        "linalg.lu(alloc_diag(M, 0, 1, 2), p_indices=True)[1]",
    ),
)
def triangles_of_diagonal(ctx: Context, node: Apply, op: LU) -> Replacement:
    (x,) = node.inputs
    if not holds(ctx, x, DIAGONAL, SQUARE):
        return None
    unit, real = (_unit_matrix(x, v.type.dtype) for v in (node.outputs[-1], node.outputs[0]))
    order = [_positions(x)] if op.p_indices else [] if op.permute_l else [real]
    return _all_fitted(node, [*order, unit, x])


@matrix_rule(
    "lu_factor(diag(d)) -> diag(d), positions",
    LUFactor,
    law="normwise",
    tags=("lu_factor_of_diag",),
    tested_on=("linalg.lu_factor(diag(v))[0]", "linalg.lu_factor(alloc_diag(M, 0, 1, 2))[1]"),
)
def factors_of_diagonal(ctx: Context, node: Apply, op: LUFactor) -> Replacement:
    (x,) = node.inputs
    return _all_fitted(node, [x, _positions(x)]) if holds(ctx, x, DIAGONAL, SQUARE) else None


def _positions(x: Variable) -> TensorVariable:
    """0, 1, 2, ... for each matrix of a batch."""
    d = zeros_like(main_diagonal(x), "int32")
    return d + cast(arange(length(x, rank(x) - 1)), "int32")
