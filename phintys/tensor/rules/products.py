"""Rules for products of vectors and matrices, and for BLAS calls that scale and add."""

from __future__ import annotations

from typing import Any, NamedTuple

from phintys.graph.origin import inherit
from phintys.graph.variable import Apply, Computed, Constant, Variable
from phintys.rewriting.equilibrium import EquilibriumWhere
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.op import TABLE
from phintys.tensor.blas import BLAS_DTYPES, Dot22, Dot22Scalar, Gemm, Gemv
from phintys.tensor.convert import constant
from phintys.tensor.creation import Alloc
from phintys.tensor.dot import Dot
from phintys.tensor.elemwise import DimShuffle, cast, dimshuffle, functions
from phintys.tensor.rules.fills import fill_number
from phintys.tensor.rules.match import applied, like, some
from phintys.tensor.shape import length
from phintys.tensor.variable import TensorVariable


class Scaled(NamedTuple):
    """``factor * x @ y``; ``factor`` is None for 1.  ``origin`` is that of the product."""

    factor: Variable | None
    x: Variable
    y: Variable
    origin: Any


def matrix_transpose(x: Variable) -> Variable:
    """The transpose of a matrix; the matrix itself if ``x`` is its transpose."""
    made = x.owner
    if made is not None and isinstance(made.op, DimShuffle) and made.op.is_matrix_transpose:
        return made.inputs[0]
    return dimshuffle(x, (1, 0))


@rule(
    "dot(0, x) -> 0",
    "Dot(x, y)",
    where=some(Constant, Alloc, "second"),
    law="finite",
    tags=("local_0_dot_x", "shape_unsafe"),
    tested_on=("dot(zeros_like(M), v)", "dot(M, zeros((3, 2)))"),
)
def product_with_zero(node: Apply, x: TensorVariable, y: TensorVariable) -> Replacement:
    if fill_number(x) != 0 and fill_number(y) != 0:
        return None
    zero = constant(0, dtype=node.outputs[0].type.dtype)
    lengths = [length(x, i) for i in range(x.type.ndim - 1)]
    lengths += [length(y, i) for i in range(1, y.type.ndim)]
    return Alloc()(zero, *lengths) if lengths else zero


@rule(
    "dot(A, B).T -> dot(B.T, A.T)",
    "DimShuffle(product := Dot(a, b), new_order=(1, 0))",
    single_use=True,
    law="rounding",
    tags=("local_lift_transpose_through_dot",),
    tested_on=("dot(M, M.T).T", "dot(M.T, N).T"),
)
def transpose_of_product(product: Computed, a: TensorVariable, b: TensorVariable) -> Replacement:
    return product.owner.op(matrix_transpose(b), matrix_transpose(a))


# ------------------------------------------------------------------------------------ BLAS


class WhereProductsAre(EquilibriumWhere):
    """The BLAS phase; it is skipped for graphs without `Dot`."""

    @staticmethod
    def concerns(node: Apply) -> bool:
        return isinstance(node.op, Dot)


def _scalar(v: Variable) -> Variable | None:
    """``v`` as a 0-d tensor if all its axes are broadcastable, else None."""
    return dimshuffle(v, ()) if all(v.type.broadcastable) else None


def _scaled(ctx: Context, v: Variable) -> Scaled | None:
    """``v`` as a scaled product with a matrix, if ``v`` has a single use, else None."""
    node = v.owner
    if node is None or not ctx.single_use(v) or v.type.dtype not in BLAS_DTYPES:
        return None
    if isinstance(node.op, Dot | Dot22 | Dot22Scalar):
        x, y, *factor = node.inputs
        if x.type.dtype == y.type.dtype and x.type.ndim + y.type.ndim > 2:
            return Scaled(factor[0] if factor else None, x, y, node.origin)
        return None
    return _scaled_by_factors(ctx, v)


def _scaled_by_factors(ctx: Context, v: Variable) -> Scaled | None:
    node = applied(v, "mul")
    if node is None:
        return None
    products = [w for w in node.inputs if w.owner is not None and isinstance(w.owner.op, Dot)]
    inner = _scaled(ctx, products[0]) if len(products) == 1 else None
    if inner is None or products[0].type.dtype != v.type.dtype:
        return None
    others = [_scalar(w) for w in node.inputs if w is not products[0]]
    factors = [f for f in others if f is not None]
    if len(factors) != len(others):
        return None
    factor = factors[0] if len(factors) == 1 else functions.mul(*factors)
    return Scaled(factor, inner.x, inner.y, inner.origin)


@rule(
    "alpha * dot(A, B) -> dot22scalar(A, B, alpha)",
    ops=[TABLE["mul"]],
    where=some(Dot),
    phase="BlasOpt",
    law="rounding",
    tags=("local_dot22_to_dot22scalar",),
    tested_on=("2 * dot(M, M.T)", "s * dot(M, M.T)"),
)
def scaled_product(ctx: Context, node: Apply) -> Replacement:
    found = _scaled_by_factors(ctx, node.outputs[0])
    if found is None or found.x.type.ndim != 2 or found.y.type.ndim != 2:
        return None
    with inherit(found.origin):
        return Dot22Scalar()(found.x, found.y, found.factor)


@rule(
    "beta * z + alpha * dot(A, B) -> gemm(z, alpha, A, B, beta)",
    ops=[TABLE["add"]],
    where=some(Dot, Dot22, Dot22Scalar, "mul"),
    phase="BlasOpt",
    law="rounding",
    tags=("gemm_optimizer", "local_gemm_to_gemv"),
    tested_on=(
        "dot(M, M.T) + dot(N, N.T)",
        "2 * dot(Q, Q) + 3 * Q",
        "1 + dot(M, v)",
        "dot(v, M.T) - w[:2]",
        "Q + v + dot(Q, Q)",
        "dot(Q, Q) + Q - s * dot(Q, Q.T)",
    ),
)
def add_product(ctx: Context, node: Apply) -> Replacement:
    """Merge a product and its addend into one BLAS call, if the addend has full shape or is 0-d.

    Rows and columns (biases) are still added elementwise, fused with the loop that follows.
    """
    out = node.outputs[0].type
    whole: list[Variable] = []
    rows: list[Variable] = []
    products: list[Scaled] = []
    for v in node.inputs:
        fits = v.type.broadcastable == out.broadcastable
        scaled = _scaled(ctx, v) if fits and v.type.dtype == out.dtype else None
        if scaled is not None:
            products.append(scaled)
        elif fits or all(v.type.broadcastable):
            whole.append(cast(v, out.dtype))
        else:
            rows.append(v)
    if not products or len(products) + len(whole) < 2:
        return None
    z, beta = _addend(ctx, whole, products)
    for p in products:
        with inherit(p.origin):
            z, beta = _call(z, beta, p), 1.0
    return like(node, functions.add(z, *rows) if rows else z)


def _addend(
    ctx: Context, whole: list[Variable], products: list[Scaled]
) -> tuple[Variable, Variable | float]:
    """The term that products are added to, and its factor; the first product if there is none."""
    if not whole:
        first = products.pop(0)
        with inherit(first.origin):
            z = Dot()(first.x, first.y)
        return z, 1.0 if first.factor is None else first.factor
    if len(whole) > 1:
        return functions.add(*whole), 1.0
    (z,) = whole
    node = applied(z, "mul")
    if node is None or len(node.inputs) != 2 or not ctx.single_use(z):
        return z, 1.0
    factor, inner = _scalar(node.inputs[0]), node.inputs[1]
    if factor is None or inner.type != z.type or factor.type.dtype != z.type.dtype:
        return z, 1.0
    return inner, factor


def _call(z: Variable, beta: Variable | float, p: Scaled) -> Variable:
    alpha = 1.0 if p.factor is None else p.factor
    if p.y.type.ndim == 1:
        return Gemv()(z, alpha, p.x, p.y, beta)
    if p.x.type.ndim == 1:
        return Gemv()(z, alpha, matrix_transpose(p.y), p.x, beta)
    return Gemm()(z, alpha, p.x, p.y, beta)
