"""Rules for Kronecker products and block diagonal matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.assumptions import DIAGONAL, SQUARE
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.diagonal import ExtractDiag
from phintys.tensor.dot import Dot
from phintys.tensor.elemwise import dimshuffle, functions
from phintys.tensor.inference.parts import rank
from phintys.tensor.join import concatenate
from phintys.tensor.linalg.constructors import BlockDiagonal, block_diag
from phintys.tensor.linalg.products import KroneckerProduct
from phintys.tensor.reshape import join_dims
from phintys.tensor.rules.matrices import (
    core_op,
    core_ranks,
    diagonal_matrix,
    fitted,
    holds,
    main_diagonal,
    matrix_rule,
    parts_of,
)
from phintys.tensor.shape import length
from phintys.tensor.variable import TensorVariable


def diagonal_of_kronecker_product(a: Variable, b: Variable) -> TensorVariable:
    """The diagonal of the Kronecker product of two square matrices."""
    x, y = main_diagonal(a), main_diagonal(b)
    batch = rank(x) - 1
    rows = dimshuffle(x, [*range(batch + 1), "x"])
    columns = dimshuffle(y, [*range(batch), "x", batch])
    found: TensorVariable = join_dims(functions.mul(rows, columns), batch, 2)
    return found


def _main_diagonal_of(node: Apply, *classes: type) -> Apply | None:
    """The node of the matrix whose main diagonal is read, if its op is of one of the classes."""
    op, (x,) = node.op, node.inputs
    is_main = op.offset == 0 and {op.axis1, op.axis2} == {rank(x) - 2, rank(x) - 1}
    return x.owner if is_main and isinstance(core_op(x), classes) else None


@rule(
    "diagonal(kron(A, B)) -> outer product of the diagonals",
    ops=[ExtractDiag],
    law="finite",
    tags=("diag_of_kronecker",),
    tested_on=(
        "diagonal(linalg.kron(N[:, :2], assume(Q, square=True)))",
        "diagonal(linalg.kron(diag(v), diag(w)))",
    ),
)
def diagonal_of_kronecker(ctx: Context, node: Apply) -> Replacement:
    made = _main_diagonal_of(node, KroneckerProduct)
    if made is None or not all(holds(ctx, x, SQUARE) for x in made.inputs):
        return None
    return fitted(node, diagonal_of_kronecker_product(*made.inputs))


@rule(
    "diagonal(block_diag(A, B)) -> join(diagonal(A), diagonal(B))",
    ops=[ExtractDiag],
    law="exact",
    tags=("diag_of_blockdiag",),
    tested_on=("diagonal(linalg.block_diag(assume(Q, square=True), N[:, :2]))",),
)
def diagonal_of_blocks(ctx: Context, node: Apply) -> Replacement:
    """Applies to square blocks of the same batch axes."""
    made = _main_diagonal_of(node, BlockDiagonal)
    if made is None or not _have_one_batch(made):
        return None
    if not all(holds(ctx, x, SQUARE) for x in made.inputs):
        return None
    return fitted(node, concatenate([main_diagonal(x) for x in made.inputs], axis=-1))


def _have_one_batch(made: Apply) -> bool:
    """Whether no block is repeated along a batch axis."""
    return len({x.type.broadcastable[:-2] for x in made.inputs}) == 1


@matrix_rule(
    "kron(diag(a), diag(b)) -> diag(outer product of a and b)",
    KroneckerProduct,
    law="finite",
    tags=("kron_of_diagonal_to_diagonal",),
    tested_on=("linalg.kron(diag(v), diag(w))", "linalg.kron(alloc_diag(M, 0, 1, 2), diag(v))"),
)
def kronecker_of_diagonals(ctx: Context, node: Apply, op: KroneckerProduct) -> Replacement:
    if not all(holds(ctx, x, DIAGONAL, SQUARE) for x in node.inputs):
        return None
    return fitted(node, diagonal_matrix(diagonal_of_kronecker_product(*node.inputs)))


@matrix_rule(
    "block_diag(block_diag(A, B), C) -> block_diag(A, B, C)",
    BlockDiagonal,
    law="exact",
    tags=("fuse_blockdiagonal",),
    tested_on=("linalg.block_diag(linalg.block_diag(M, Q), N)", "linalg.block_diag(K)"),
)
def nested_blocks(ctx: Context, node: Apply, op: BlockDiagonal) -> Replacement:
    if len(node.inputs) == 1:
        return fitted(node, node.inputs[0])
    blocks: list[Any] = []
    for x in node.inputs:
        inner = isinstance(core_op(x), BlockDiagonal) and x.type.dtype == node.outputs[0].type.dtype
        blocks += x.owner.inputs if inner and x.owner is not None else [x]
    return fitted(node, block_diag(*blocks)) if len(blocks) > len(node.inputs) else None


@matrix_rule(
    "block_diag(A, B) @ x -> join(A @ x[:n], B @ x[n:])",
    Dot,
    phase="stabilize",
    law="finite",
    tags=("local_block_diag_dot_to_dot_block_diag", "shape_unsafe"),
    tested_on=(
        "dot(linalg.block_diag(M, N), linalg.block_diag(M.T, N.T))",
        "dot(linalg.block_diag(M, N), join(0, v, w))",
        "dot(join(0, v, w), linalg.block_diag(M.T, N.T))",
    ),
)
def product_with_blocks(ctx: Context, node: Apply, op: Dot) -> Replacement:
    """Applies to single matrices."""
    (x, y), ranks = node.inputs, core_ranks(node)
    if isinstance(node.op, Blockwise):
        return None
    if (blocks := parts_of(x, BlockDiagonal)) is not None:
        parts = rows_of_blocks(y, blocks, 1)
        found = [op(a, part) for a, part in zip(blocks, parts, strict=True)]
        return fitted(node, concatenate(found, axis=0))
    if (blocks := parts_of(y, BlockDiagonal)) is not None:
        last = ranks[0] - 1
        moved = x if last == 0 else dimshuffle(x, [1, 0])
        parts = rows_of_blocks(moved, blocks, 0)
        rows = [part if last == 0 else dimshuffle(part, [1, 0]) for part in parts]
        found = [op(part, b) for part, b in zip(rows, blocks, strict=True)]
        return fitted(node, concatenate(found, axis=last))
    return None


def rows_of_blocks(x: Any, blocks: Sequence[Variable], axis: int) -> list[Any]:
    """The rows of ``x`` that meet each block, whose rows or columns are along ``axis``."""
    found: list[Any] = []
    first: Any = 0
    for block in blocks[:-1]:
        after = first + length(block, axis)
        found.append(x[first:after])
        first = after
    return [*found, x[first:]]
