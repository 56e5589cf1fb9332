"""Rules for products and transposes of matrices with known properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.assumptions import (
    DIAGONAL,
    ORTHOGONAL,
    SELECTION,
    SQUARE,
    SYMMETRIC,
    SpecifyAssumptions,
)
from phintys.assumptions.keys import is_real
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.equilibrium import EquilibriumGraphRewriter
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import Alloc
from phintys.tensor.diagonal import ExtractDiag
from phintys.tensor.dot import Dot
from phintys.tensor.elemwise import DimShuffle, cast
from phintys.tensor.index_ops import AdvancedSubtensor
from phintys.tensor.inference.parts import diagonal_values, rank, transposed
from phintys.tensor.ranges import arange, eye
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.rules.matrices import (
    as_columns,
    as_rows,
    broadcast_alike,
    core_ranks,
    fitted,
    holds,
    main_diagonal,
    matrix_rule,
)
from phintys.tensor.shape import length
from phintys.tensor.variable import TensorVariable

#: what is true of identity matrices only
IDENTITY = (DIAGONAL, SELECTION, SQUARE)


class WhereAssumptionsAre(EquilibriumGraphRewriter):
    """The phase that removes declared properties; it is skipped for graphs without them."""

    def apply(self, fgraph: FunctionGraph, start_from: Sequence[Variable] | None = None) -> None:
        if any(isinstance(node.op, SpecifyAssumptions) for node in fgraph.apply_nodes):
            super().apply(fgraph, start_from)


@rule(
    "assume(x, ...) -> x",
    ops=[SpecifyAssumptions],
    phase="assumptions",
    law="exact",
    tags=("local_drain_specify_assumptions", "drain_specify_assumptions"),
    tested_on=("assume(Q, symmetric=True)", "assume(v, unit_magnitude=False)"),
)
def declared(ctx: Context, node: Apply) -> Replacement:
    """After the phases whose rules ask for properties."""
    return node.inputs[0]


@rule(
    "symmetric.T -> symmetric",
    ops=[DimShuffle],
    law="normwise",
    tags=("useless_symmetric_transpose",),
    tested_on=("assume(Q + Q.T, symmetric=True).T", "eye(n).T", "diag(v).T"),
)
def transpose_of_symmetric(ctx: Context, node: Apply) -> Replacement:
    if not node.op.is_matrix_transpose or not holds(ctx, node.inputs[0], SYMMETRIC):
        return None
    return fitted(node, node.inputs[0])


@rule(
    "diagonal(diag(d)) -> d",
    ops=[ExtractDiag],
    law="exact",
    tags=("extract_diag_of_alloc_diag", "local_extract_diag_of_alloc_diag"),
    tested_on=(
        "diagonal(diag(v))",
        "diagonal(alloc_diag(M, 0, 1, 2), 0, 1, 2)",
        "diagonal(eye(n, dtype='int8'))",
    ),
)
def diagonal_of_diagonal_matrix(ctx: Context, node: Apply) -> Replacement:
    (x,), n = node.inputs, rank(node.inputs[0])
    op = node.op
    if op.offset != 0 or {op.axis1, op.axis2} != {n - 2, n - 1}:
        return None
    d = diagonal_values(x)
    return None if d is None else fitted(node, d)


@rule(
    "diagonal(x.T) -> diagonal(x)",
    ops=[ExtractDiag],
    law="exact",
    tags=("extract_diag_of_transpose",),
    tested_on=("diagonal(M.T, 1)", "diagonal(K.mT, -1, 1, 2)"),
)
def diagonal_of_transpose(ctx: Context, node: Apply) -> Replacement:
    op, n = node.op, rank(node.inputs[0])
    x = transposed(node.inputs[0])
    if x is None or {op.axis1, op.axis2} != {n - 2, n - 1}:
        return None
    return ExtractDiag(op.offset, op.axis2, op.axis1, op.view)(x)


# -------------------------------------------------------------------------------- products


@matrix_rule(
    "diag(d) @ x -> d * x",
    Dot,
    law="finite",
    tags=("dot_diag_to_elemwise", "shape_unsafe"),
    tested_on=(
        "dot(diag(v), Q)",
        "dot(Q, diag(v))",
        "dot(diag(v), w)",
        "dot(w, diag(v))",
        "dot(diag(v), diag(w))",
        "dot(eye(n), Q)",
        "matmul(alloc_diag(M, 0, 1, 2), K[:, :3])",
        "matmul(K[:, :3, :3], diag(v))",
    ),
)
def product_with_diagonal(ctx: Context, node: Apply, op: Dot) -> Replacement:
    """Applies to square diagonal matrices; ``x`` itself if one is the identity."""
    (x, y), ranks = node.inputs, core_ranks(node)
    for unit, other in ((x, y), (y, x)):
        is_identity = rank(unit) == rank(other) == 2 and holds(ctx, unit, *IDENTITY)
        if is_identity and (same := fitted(node, other)) is not None:
            return same
    if ranks[0] == 2 and holds(ctx, x, DIAGONAL, SQUARE) and broadcast_alike(x, -1, y, -ranks[1]):
        d = main_diagonal(x)
        return fitted(node, (as_rows(d) if ranks[1] == 2 else d) * y)
    if ranks[1] == 2 and holds(ctx, y, DIAGONAL, SQUARE) and broadcast_alike(y, -2, x, -1):
        d = main_diagonal(y)
        return fitted(node, x * (as_columns(d) if ranks[0] == 2 else d))
    return None


@matrix_rule(
    "Q.T @ Q -> eye, Q orthogonal",
    Dot,
    law="normwise",
    tags=("orthogonal_dot_transpose_to_eye", "shape_unsafe"),
    tested_on=(
        "dot(assume(eye(n)[::-1], orthogonal=True).T, assume(eye(n)[::-1], orthogonal=True))",
        "dot(assume(eye(3)[i % 3 * 0 + 1][:1].T, orthogonal=True).T,"
        " assume(eye(3)[i % 3 * 0 + 1][:1].T, orthogonal=True))",
    ),
)
def orthogonal_product(ctx: Context, node: Apply, op: Dot) -> Replacement:
    """Also ``Q @ Q.T``, for square matrices."""
    x, y = node.inputs
    if core_ranks(node) != (2, 2) or not is_real(x):
        return None
    if transposed(x) is y:
        if not holds(ctx, y, ORTHOGONAL):
            return None
    elif transposed(y) is not x or not holds(ctx, x, ORTHOGONAL, SQUARE):
        return None
    out = node.outputs[0]
    made = eye(length(x, rank(x) - 2), dtype=out.type.dtype)
    batch = [length(x, i) for i in range(rank(x) - 2)]
    if batch:
        made = Alloc()(made, *batch, length(made, 0), length(made, 1))
    return fitted(node, made)


@matrix_rule(
    "selection @ x -> x[rows]",
    Dot,
    law="finite",
    tags=("selection_dot_to_indexing", "shape_unsafe"),
    tested_on=(
        "dot(assume(eye(n)[k], selection=True), Q)",
        "dot(eye(n)[k], Q)",
        "dot(eye(n)[k], v)",
    ),
)
def product_with_selection(ctx: Context, node: Apply, op: Dot) -> Replacement:
    """Applies to single matrices."""
    x: Variable
    y: Any
    x, y = node.inputs
    if rank(x) != 2 or not is_real(x) or not holds(ctx, x, SELECTION):
        return None
    return fitted(node, y[_selected(ctx, x)])


def _selected(ctx: Context, x: Variable) -> TensorVariable:
    """The row of the identity matrix that each row of a selection is."""
    made = x.owner
    if made is not None and isinstance(made.op, AdvancedSubtensor):
        whole, rows = made.inputs[0], made.inputs[-1]
        if len(made.inputs) == 2 and holds(ctx, whole, *IDENTITY):
            return as_tensor_variable(rows)
    counted = cast(x, "int64") * arange(length(x, 1))
    return sum_over(counted, axis=1)
