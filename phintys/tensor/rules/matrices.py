"""What rules for matrices share: properties of variables, batches, diagonals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phintys.assumptions import SQUARE, AssumptionKey
from phintys.assumptions.core import feature_of
from phintys.graph.op import Op
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, Rule, rule
from phintys.scalar import dtypes
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.diagonal import alloc_diag, diagonal
from phintys.tensor.dot import product_of_ranks
from phintys.tensor.elemwise import cast, dimshuffle, functions
from phintys.tensor.inference.parts import diagonal_values, rank, transposed
from phintys.tensor.linalg.products import KroneckerProduct
from phintys.tensor.reduce import all as every
from phintys.tensor.shape import length, specify_shape
from phintys.tensor.static import known_constant
from phintys.tensor.variable import TensorVariable

#: ``function(ctx, node, op)``, where ``op`` is the op of one matrix
MatrixRule = Callable[[Context, Apply, Any], Replacement]


def core_op(v: Variable) -> Op | None:
    """The op of one item by which a variable is computed; None for inputs and constants."""
    op = v.owner_op
    return op.core_op if isinstance(op, Blockwise) else op


def core_ranks(node: Apply) -> tuple[int, ...]:
    """The ranks of one item of each operand."""
    signature = getattr(node.op, "inputs_sig", None)
    return tuple(map(rank, node.inputs)) if signature is None else tuple(map(len, signature))


def matrix_rule(name: str, *classes: type[Op], **options: Any) -> Callable[[MatrixRule], Rule]:
    """Decorator: a rule for ops on single matrices, and on batches of them.

    It is tried at nodes whose op, or whose op of one item, is of one of the classes.
    """

    def decorate(function: MatrixRule) -> Rule:
        def at_node(ctx: Context, node: Apply) -> Replacement:
            op = core_op(node.outputs[0])
            return function(ctx, node, op) if isinstance(op, classes) else None

        made: Rule = rule(name, ops=[Blockwise, *classes], **options)(at_node)
        made.file = function.__code__.co_filename
        made.line = function.__code__.co_firstlineno
        return made

    return decorate


def holds(ctx: Context, x: Variable, *keys: AssumptionKey) -> bool:
    """Whether a variable is known to have all of some properties."""
    feature = feature_of(ctx.fgraph)
    return all(feature.check(x, key) for key in keys)


def fitted(node: Apply, new: Variable, output: int = 0) -> Variable | None:
    """``new`` in the dtype of an output; None if it has other axes of length 1."""
    out = node.outputs[output].type
    new = new if new.type.dtype == out.dtype else cast(new, out.dtype)
    fits = new.type.broadcastable == out.broadcastable and out.is_super(new.type)
    return new if fits else None


def transpose(x: Variable) -> TensorVariable:
    """The transpose of the last two axes; the matrix itself if ``x`` is its transpose."""
    found: Any = transposed(x)
    n = rank(x)
    return dimshuffle(x, [*range(n - 2), n - 1, n - 2]) if found is None else found


def main_diagonal(x: Variable, dtype: str | None = None) -> TensorVariable:
    """The diagonals of the last two axes; what was written there, if that is known.

    ``dtype``: to which they are converted, before anything is computed with them; by default that
    of ``x``, as what was written may have another one.
    """
    found: Any = diagonal_values(x)
    found = diagonal(x, 0, rank(x) - 2, rank(x) - 1) if found is None else found
    return cast(found, dtype or x.type.dtype)


def square_diagonal(ctx: Context, x: Variable, dtype: str | None = None) -> TensorVariable:
    """`main_diagonal` of matrices, with a check that they are square unless that is known."""
    d = main_diagonal(x, dtype)
    if holds(ctx, x, SQUARE):
        return d
    n, batch = rank(x), [None] * (rank(d) - 1)
    rows, columns = length(x, n - 2), length(x, n - 1)
    # the diagonal is as long as the shorter side
    return specify_shape(specify_shape(d, [*batch, rows]), [*batch, columns])


def asserted_square(ctx: Context, x: Variable) -> Variable:
    """``x``, with a check that it is square unless that is known: removed ops check it."""
    if holds(ctx, x, SQUARE):
        return x
    n = rank(x)
    return specify_shape(x, [*[None] * (n - 1), length(x, n - 2)])


def parts_of(v: Variable, cls: type[Op]) -> list[TensorVariable] | None:
    """The matrices of which an op of a class makes ``v``, in its dtype; None for other ops."""
    if v.owner is None or not isinstance(core_op(v), cls):
        return None
    return [cast(x, v.type.dtype) for x in v.owner.inputs]


def square_parts(ctx: Context, v: Variable, cls: type[Op]) -> list[TensorVariable] | None:
    """The same, if all of them are known to be square.

    Not of Kronecker products of integers: their elements wrap.
    """
    wraps = cls is KroneckerProduct and dtypes.is_discrete(getattr(v.type, "dtype", ""))
    parts = None if wraps else parts_of(v, cls)
    return parts if parts is not None and all(holds(ctx, x, SQUARE) for x in parts) else None


def diagonal_matrix(d: Variable) -> TensorVariable:
    """Matrices with the last axis of ``d`` on their diagonals, and 0 elsewhere."""
    n = rank(d)
    return alloc_diag(d, 0, n - 1, n)


def as_rows(d: Variable) -> TensorVariable:
    """A column per item, which scales the rows of a matrix."""
    return dimshuffle(d, [*range(rank(d)), "x"])


def as_columns(d: Variable) -> TensorVariable:
    """A row per item, which scales the columns of a matrix."""
    n = rank(d)
    return dimshuffle(d, [*range(n - 1), "x", n - 1])


def nan_unless(ok: TensorVariable, x: TensorVariable, axes: int) -> TensorVariable:
    """``x``, and NaN in items where ``ok`` is false somewhere; items have ``axes`` axes."""
    if known_constant(ok):
        return x
    batch = rank(ok) - 1
    whole = dimshuffle(every(ok, axis=-1), [*range(batch), *["x"] * axes])
    return functions.switch(whole, x, cast(float("nan"), x.type.dtype))


def broadcast_alike(x: Variable, axis: int, y: Variable, other: int) -> bool:
    """Whether one of two lengths, which are equal, is known to be 1 only if the other is."""
    return bool(x.type.broadcastable[axis] == y.type.broadcastable[other])


def product(x: Variable, y: Variable, rank_of_y: int) -> TensorVariable:
    """The product of matrices with matrices, or with vectors."""
    return product_of_ranks(x, y, (2, rank_of_y))
