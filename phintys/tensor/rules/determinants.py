"""Rules for determinants, their signs and their logarithms."""

from __future__ import annotations

from math import nan
from typing import Any

from phintys.assumptions import LOWER_TRIANGULAR, SQUARE, UPPER_TRIANGULAR
from phintys.assumptions.keys import is_real
from phintys.graph.variable import Apply, Variable
from phintys.graph.vectorize import vectorize_graph
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.op import TABLE
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.inference.parts import are_transposes, rank, transposed
from phintys.tensor.inference.products import factors
from phintys.tensor.linalg.constructors import BlockDiagonal
from phintys.tensor.linalg.matrix_op import inexact
from phintys.tensor.linalg.products import KroneckerProduct
from phintys.tensor.linalg.summary import Det, DetCotangent, SLogDet, det, slogdet
from phintys.tensor.reduce import prod
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.rules.inverses import inverted
from phintys.tensor.rules.match import argument, at, is_float
from phintys.tensor.rules.matrices import (
    core_op,
    fitted,
    holds,
    matrix_rule,
    square_diagonal,
    square_parts,
)
from phintys.tensor.rules.reuse import is_eliminated
from phintys.tensor.shape import length
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorVariable

#: the sign of a determinant and the logarithm of its absolute value
Logarithm = tuple[TensorVariable, TensorVariable]


def _triangle(ctx: Context, x: Variable) -> TensorVariable | None:
    """The diagonal of a triangular matrix, which is square; None if it is not known to be one."""
    known = holds(ctx, x, LOWER_TRIANGULAR) or holds(ctx, x, UPPER_TRIANGULAR)
    return square_diagonal(ctx, x, inexact(x.type.dtype)) if known else None


def _square_factors(ctx: Context, x: Any) -> tuple[Variable, Variable] | None:
    """The factors of a product of square matrices whose determinants are cheaper than its own."""
    found = factors(x)
    if found is None or x.type.is_discrete or not all(holds(ctx, y, SQUARE) for y in found):
        return None  # products of integers wrap
    cheap = are_transposes(*found) or any(_triangle(ctx, y) is not None for y in found)
    return (cast(found[0], x.type.dtype), cast(found[1], x.type.dtype)) if cheap else None


@matrix_rule(
    "det(A B) -> det(A) det(B), and others",
    Det,
    phase="stabilize",
    law="normwise",
    tags=(
        "det_of_triangular",
        "det_of_inv",
        "det_of_kronecker",
        "det_of_blockdiag",
        "det_of_factorized_matrix",
    ),
    tested_on=(
        "linalg.det(tril(Q))",
        "linalg.det(diag(v))",
        "linalg.det(triu(K[:, :3, :3]))",
        "linalg.det(Q.T)",
        "linalg.det(linalg.inv(Q))",
        "linalg.det(linalg.kron(N[:, :2], assume(Q, square=True)))",
        "linalg.det(linalg.block_diag(N[:, :2], assume(Q, square=True)))",
        "linalg.det(dot(N[:, :2].T, N[:, :2]))",
        "linalg.det(dot(tril(N[:, :2]), N[:, :2]))",
    ),
)
def determinant(ctx: Context, node: Apply, op: Det) -> Replacement:
    """Triangles, transposes, inverses, Kronecker products, blocks, and products with triangles.

    Not products and transposes whose inverse is computed, too.  In its product with the
    determinant, the matrix of cofactors, errors of the same pivots cancel; others would not.
    """
    (x,) = node.inputs
    found = _determinant(ctx, x)
    return None if found is None else fitted(node, found)


def _determinant(ctx: Context, x: Variable) -> TensorVariable | None:
    d = _triangle(ctx, x)
    if d is not None:
        return prod(d, axis=-1)
    if (y := inverted(x)) is not None:
        return functions.true_div(1, det(y))
    if (blocks := square_parts(ctx, x, BlockDiagonal)) is not None:
        return functions.mul(*map(det, blocks))
    if is_eliminated(ctx, x):
        return None
    if (y := transposed(x)) is not None:
        return det(y)
    if (pair := _square_factors(ctx, x)) is not None:
        return det(pair[0]) * det(pair[1])
    if is_real(x) and (pair := square_parts(ctx, x, KroneckerProduct)) is not None:
        sign, size = _logarithm_of_kronecker(*pair)
        return sign * functions.exp(size)  # powers of determinants overflow
    return None


@matrix_rule(
    "det_cotangent(x, g) -> inv(x)^H * (g * conj(det(x))), or cofactors",
    DetCotangent,
    law="normwise",
    tested_on=("linalg.DetCotangent()(Q, linalg.det(2 * Q))",),
)
def cotangent_of_determinant(ctx: Context, node: Apply, op: DetCotangent) -> Replacement:
    items = [TensorType(x.type.dtype, (None,) * k)() for x, k in zip(node.inputs, (2, 0))]
    found = vectorize_graph(op.formula(*items), dict(zip(items, node.inputs)))
    return fitted(node, found)


@matrix_rule(
    "slogdet(A B) -> the product of signs, the sum of logarithms, and others",
    SLogDet,
    law="normwise",
    tags=("slogdet_of_structured",),
    tested_on=(
        "linalg.slogdet(tril(Q))[1]",
        "linalg.slogdet(diag(v))[0]",
        "linalg.slogdet(triu(K[:, :3, :3]))[1]",
        "linalg.slogdet(Q.T)[1]",
        "linalg.slogdet(linalg.inv(Q))[1]",
        "linalg.slogdet(linalg.kron(N[:, :2], assume(Q, square=True)))[1]",
        "linalg.slogdet(linalg.block_diag(N[:, :2], assume(Q, square=True)))[1]",
        "linalg.slogdet(dot(N[:, :2].T, N[:, :2]))[1]",
        "linalg.slogdet(dot(tril(N[:, :2]), N[:, :2]))[0]",
    ),
)
def logarithm_of_determinant(ctx: Context, node: Apply, op: SLogDet) -> Replacement:
    """As for the determinant itself, in real numbers."""
    (x,) = node.inputs
    found = _logarithm(ctx, x) if is_real(x) else None
    if found is None:
        return None
    fitting = [fitted(node, v, k) for k, v in enumerate(found)]
    return None if None in fitting else fitting


def _logarithm(ctx: Context, x: Variable) -> Logarithm | None:
    d = _triangle(ctx, x)
    if d is not None:
        return prod(functions.sign(d), axis=-1), sum_over(functions.log(abs(d)), axis=-1)
    if (y := transposed(x)) is not None:
        return slogdet(y)
    if (y := inverted(x)) is not None:
        sign, size = slogdet(y)
        return sign, -size
    if (pair := _square_factors(ctx, x)) is not None:
        return _multiplied(*map(slogdet, pair))
    if (pair := square_parts(ctx, x, KroneckerProduct)) is not None:
        return _logarithm_of_kronecker(*pair)
    if (blocks := square_parts(ctx, x, BlockDiagonal)) is not None:
        return _multiplied(*map(slogdet, blocks))
    return None


def _logarithm_of_kronecker(a: Variable, b: Variable) -> Logarithm:
    return _multiplied(_power(a, b), _power(b, a))


def _power(x: Variable, other: Variable) -> Logarithm:
    """That of the determinant of ``x``, to the power of the number of rows of ``other``."""
    sign, size = slogdet(x)
    n = cast(length(other, rank(other) - 1), size.type.dtype)
    return sign**n, functions.switch(functions.eq(n, 0), n, n * size)


def _multiplied(*found: Logarithm) -> Logarithm:
    """That of the product of some numbers."""
    signs, sizes = zip(*found, strict=True)
    return functions.mul(*signs), functions.add(*sizes)


@rule(
    "log(abs(det(x))) -> slogdet(x)[1]",
    ops=[TABLE["log"], TABLE["sign"]],
    where=at(0, Blockwise, Det, "abs"),
    law="normwise",
    tags=("slogdet_specialization",),
    tested_on=(
        "log(linalg.det(Q))",
        "log(abs(linalg.det(Q)))",
        "sign(linalg.det(K[:, :3, :3]))",
    ),
)
def logarithm_and_sign(ctx: Context, node: Apply) -> Replacement:
    """The determinant of a large matrix overflows, its logarithm does not."""
    (v,) = node.inputs
    inner = argument(v, "abs")
    found = v if inner is None else inner
    if not isinstance(core_op(found), Det) or found.owner is None or not is_float(found):
        return None
    sign, size = slogdet(found.owner.inputs[0])
    if node.op.scalar_op is TABLE["sign"]:
        return fitted(node, sign) if inner is None else None
    return fitted(node, size if inner is not None else functions.switch(sign >= 0, size, nan))
