"""Rules that give products with vectors their normal form.

`dot`, `matmul` and the functions beside it make products of matrices: a vector is a row or a column
there.  In the normal form it is an operand of `Dot`, or of an op of `PRODUCTS`.  These rules also
run in a phase of this name, before others move the new axes to the inputs of functions, which hides
the vectors.
"""

from __future__ import annotations

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.equilibrium import EquilibriumWhere
from phintys.rewriting.rule import Context, Replacement
from phintys.tensor.aliases import Place
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.dot import Dot, product_of_ranks
from phintys.tensor.elemwise import dimshuffle, functions
from phintys.tensor.inference.parts import rank, transposed
from phintys.tensor.rules.axes import has_new_axes
from phintys.tensor.rules.matrices import core_ranks, matrix_rule
from phintys.tensor.variable import TensorVariable


class WhereProductsOfVectorsAre(EquilibriumWhere):
    """The phase ``vectors``; it is skipped for graphs without products of matrices."""

    @staticmethod
    def concerns(node: Apply) -> bool:
        return type(node.op.core_op if isinstance(node.op, Blockwise) else node.op) is Dot


def without_new_axis(x: Variable, axis: int) -> TensorVariable | None:
    """``x`` without an axis that a `DimShuffle` has added, counted from the end; else None."""
    if not has_new_axes(x, [axis]):
        return None
    order = list(range(rank(x)))
    del order[axis]
    return dimshuffle(x, order)


@matrix_rule(
    "matmul(A, column(x)) -> column(matvec(A, x))",
    Dot,
    law="rounding",
    tags=("local_eager_useless_unbatched_blockwise", "vectors"),
    tested_on=(
        "dot(M, v)",
        "dot(w, M.T)",
        "dot(v, w)",
        "matvec(K, w[:2])",
        "matvec(M, N)",
        "vecdot(M, v)",
        "matmul(v.dimshuffle('x', 0), Q)",
    ),
)
def product_with_vector(ctx: Context, node: Apply, op: Dot) -> Replacement:
    """Also for rows on the left."""
    (x, y), ranks = node.inputs, core_ranks(node)
    u = without_new_axis(x, -2) if ranks[0] == 2 else None
    v = without_new_axis(y, -1) if ranks[1] == 2 else None
    if u is None and v is None:
        return None
    left, right = ranks[0] if u is None else 1, ranks[1] if v is None else 1
    found = product_of_ranks(x if u is None else u, y if v is None else v, (left, right))
    axes: list[Place] = list(range(rank(found)))
    if u is not None:
        axes.insert(rank(found) - (right == 2), "x")
    return dimshuffle(found, axes if v is None else [*axes, "x"])


@matrix_rule(
    "dot(A.T, x) -> dot(x, A)",
    Dot,
    law="rounding",
    tags=("vectors",),
    tested_on=("dot(M.T, w[:2])", "dot(v, M.T)", "matvec(K.mT, w)"),
)
def product_of_transposed(ctx: Context, node: Apply, op: Dot) -> Replacement:
    """Applies to products of a matrix and a vector."""
    (x, y), ranks = node.inputs, core_ranks(node)
    if ranks == (2, 1) and (a := transposed(x)) is not None:
        return product_of_ranks(y, a, (1, 2))
    if ranks == (1, 2) and (a := transposed(y)) is not None:
        return product_of_ranks(a, x, (2, 1))
    return None


@matrix_rule(
    "dot(column, row) -> column * row",
    Dot,
    law="rounding",
    tags=("local_dot_to_mul", "vectors"),
    tested_on=("dot(C, R)", "matmul(C.dimshuffle('x', 0, 1), R)", "dot(s.dimshuffle('x'), R)"),
)
def product_of_column_and_row(ctx: Context, node: Apply, op: Dot) -> Replacement:
    """Applies where the inner length is known to be 1.

    Of an operand that meets a vector, the inner axis must be a new one.
    """
    (x, y), (left, right) = node.inputs, core_ranks(node)
    if x.type.shape[-1] != 1 or y.type.shape[-right] != 1:
        return None
    column = x if right == 2 else without_new_axis(x, -1)
    row = y if left == 2 else without_new_axis(y, -right)
    return None if column is None or row is None else functions.mul(column, row)
