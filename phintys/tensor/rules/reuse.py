"""Rules for what is computed from one factorisation of a matrix: it is made once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from phintys.assumptions.keys import is_real
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement
from phintys.scalar import dtypes
from phintys.tensor.elemwise import functions
from phintys.tensor.inference.parts import rank, transposed
from phintys.tensor.linalg.decomposition.cholesky import cholesky
from phintys.tensor.linalg.decomposition.lu import LUFactor, lu_factor
from phintys.tensor.linalg.inverse import MatrixInverse
from phintys.tensor.linalg.matrix_op import inexact
from phintys.tensor.linalg.small_elimination import SMALL
from phintys.tensor.linalg.solvers.cholesky import cho_solve
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.linalg.solvers.lu import lu_solve
from phintys.tensor.linalg.summary import Det, SLogDet
from phintys.tensor.ranges import arange, eye
from phintys.tensor.reduce import prod
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.rules.matrices import core_op, fitted, main_diagonal, matrix_rule
from phintys.tensor.shape import length


@matrix_rule(
    "solve(A, b), solve(A, c) -> lu_solve(lu_factor(A), b), lu_solve(lu_factor(A), c)",
    Solve,
    phase="specialize",
    law="normwise",
    tags=("reuse_decomposition_multiple_solves",),
    tested_on=(
        "linalg.solve(Q, v) + linalg.solve(Q.T, w)",
        "linalg.solve(Q, M.T)[:, 0] + linalg.solve(Q, w)",
        "linalg.solve(Q, v) * linalg.slogdet(Q)[1]",
        "linalg.solve(Q.T, v) * linalg.det(Q)",
        "linalg.solve(dot(Q, Q.T) + eye(3), v, assume_a='pos')"
        " + linalg.solve(dot(Q, Q.T) + eye(3), w, assume_a='pos')",
    ),
)
def factored_once(ctx: Context, node: Apply, op: Solve) -> Replacement:
    """Applies if something else needs the factors of the same matrix, or of its transpose.

    Not if ``b`` has more precision than the matrix: the solution would have that of the factors.
    """
    a, b = node.inputs
    if not _has_precision_of_factors(node):
        return None
    if op.assume_a == "pos":
        if not _are_several(_positive_systems(ctx, a, op)):
            return None
        factor = cholesky(a, lower=op.lower)
        return fitted(node, cho_solve((factor, op.lower), b, b_ndim=op.b_ndim))
    base = _base(ctx, a) if _needs_factors(node) else None
    if base is None:
        return None
    return fitted(node, lu_solve(lu_factor(base), b, trans=base is not a, b_ndim=op.b_ndim))


@matrix_rule(
    "slogdet(A), det(A), solve(A, b) -> sums and products of the diagonal of lu_factor(A)",
    SLogDet,
    Det,
    phase="specialize",
    law="normwise",
    tested_on=(
        "linalg.slogdet(Q)[1] * linalg.solve(Q, v)",
        "linalg.slogdet(Q)[0] * linalg.solve(Q.T, v)",
        "linalg.slogdet(Q)[1] + linalg.det(Q)",
        "linalg.det(Q) * linalg.inv(Q)",
    ),
)
def determinant_of_factors(ctx: Context, node: Apply, op: SLogDet | Det) -> Replacement:
    """Applies to real matrices."""
    (a,) = node.inputs
    base = _base(ctx, a) if _needs_factors(node) else None
    if base is None:
        return None
    factors, rows = lu_factor(base)
    diagonal = main_diagonal(factors)
    stays = functions.eq(rows, arange(length(rows, rank(rows) - 1)))
    if isinstance(op, Det):
        return fitted(node, prod(functions.switch(stays, diagonal, -diagonal), axis=-1))
    sign = functions.sign(diagonal)
    sign = prod(functions.switch(stays, sign, -sign), axis=-1)
    found = [fitted(node, sign), fitted(node, sum_over(functions.log(abs(diagonal)), axis=-1), 1)]
    return None if None in found else found


@matrix_rule(
    "inv(A), solve(A, b) -> lu_solve(lu_factor(A), eye(n))",
    MatrixInverse,
    phase="specialize",
    law="normwise",
    tested_on=(
        "linalg.inv(Q) * linalg.det(Q)",
        "linalg.inv(Q) * linalg.solve(Q, v)",
    ),
)
def inverse_from_factors(ctx: Context, node: Apply, op: MatrixInverse) -> Replacement:
    """NaN if the matrix is singular."""
    (a,) = node.inputs
    base = _base(ctx, a)
    if base is None:
        return None
    ones = eye(length(a, rank(a) - 1), dtype=node.outputs[0].type.dtype)
    return fitted(node, lu_solve(lu_factor(base), ones, trans=base is not a, b_ndim=2))


def _base(ctx: Context, a: Variable) -> Variable | None:
    """The matrix whose factors serve all: ``a``, or what it is the transpose of.

    None if they are needed only once, or it is faster to compute them again.
    """
    whole = transposed(a) if is_real(a) else None
    base = a if whole is None else whole
    if rank(a) > 2 and not (a.type.shape[-1] or 0) > SMALL:
        return None  # what is computed of a batch of small matrices is faster in one step
    return base if _are_several(_needing(ctx, base)) else None


def is_eliminated(ctx: Context, a: Variable) -> bool:
    """Whether a system with a matrix or its transpose is solved, or it is inverted."""
    nodes = (core_op(node.outputs[0]) for node in _needing(ctx, a))
    return any(not isinstance(op, (SLogDet, Det)) for op in nodes)


def _are_several(nodes: Iterator[Apply]) -> bool:
    """Whether there are two nodes or more.  No others are looked for: a matrix may have many."""
    return len(list(islice(nodes, 2))) == 2


def _needing(ctx: Context, base: Variable) -> Iterator[Apply]:
    """The nodes that factor a matrix or its transpose, or could get the factors."""
    for node in _nodes_of_first(ctx, base):
        if _needs_factors(node) or isinstance(core_op(node.outputs[0]), LUFactor):
            yield node
        elif transposed(node.outputs[0]) is base:
            yield from filter(_needs_factors, _nodes_of_first(ctx, node.outputs[0]))


def _nodes_of_first(ctx: Context, v: Variable) -> Iterator[Apply]:
    """The nodes whose first input is a variable."""
    return (node for node, i in ctx.fgraph.clients.get(v, ()) if i == 0 and node.outputs)


def _needs_factors(node: Apply) -> bool:
    """Whether a node factors its first input by elimination, and could get the factors instead."""
    op = core_op(node.outputs[0])
    if isinstance(op, Solve):
        return op.assume_a in ("gen", "banded") and _has_precision_of_factors(node)
    return isinstance(op, MatrixInverse) or (
        isinstance(op, (SLogDet, Det)) and is_real(node.inputs[0])
    )


def _has_precision_of_factors(node: Apply) -> bool:
    """Whether a solution has the precision of the factors of its matrix, which b may exceed."""
    own, factors = node.outputs[0].type.dtype, inexact(node.inputs[0].type.dtype)
    return dtypes.real_of(own) == dtypes.real_of(factors)


def _positive_systems(ctx: Context, a: Variable, op: Solve) -> Iterator[Apply]:
    """The nodes that solve systems with the positive definite matrix ``a``."""
    for node in _nodes_of_first(ctx, a):
        if _is_alike(core_op(node.outputs[0]), op) and _has_precision_of_factors(node):
            yield node


def _is_alike(other: object, op: Solve) -> bool:
    return isinstance(other, Solve) and (other.assume_a, other.lower) == (op.assume_a, op.lower)
