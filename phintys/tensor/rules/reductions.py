"""Rules for reductions: sums, products, maxima and minima over axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import log2, prod
from typing import Any

import numpy as np

from phintys.graph.variable import Apply, Computed, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar import dtypes
from phintys.tensor.aliases import Place
from phintys.tensor.convert import constant
from phintys.tensor.creation import Alloc, ones_like
from phintys.tensor.cumulative import cumprod
from phintys.tensor.elemwise import cast, dimshuffle, functions
from phintys.tensor.join import concatenate
from phintys.tensor.reduce import CAReduce, Max, Min, Prod, Sum
from phintys.tensor.reshape import reshape
from phintys.tensor.rules.fills import count, fill_number, filled_value, has_plain_lengths
from phintys.tensor.rules.match import at, literal, number, scalar_op_name
from phintys.tensor.shape import length
from phintys.tensor.sort import SortOp
from phintys.tensor.variable import TensorVariable

Harmless = Callable[[float], bool]


def _rest(x: Variable, axes: tuple[int, ...]) -> list[int]:
    """The axes of ``x`` that are not in ``axes``."""
    return [i for i in range(x.type.ndim) if i not in axes]


def _never_empty(x: Variable, axes: Sequence[int]) -> bool:
    """Whether the axes are known not to have length 0."""
    return all(x.type.shape[a] for a in axes)


def _once(x: Variable, axes: tuple[int, ...], v: Variable, harmless: Harmless) -> Variable:
    """The factor to apply to ``sum(x)`` for a ``v`` constant along ``axes``; 1 if one is empty.

    The sum is 0 then, and an infinite factor would make it NaN.  ``harmless`` tells for a number
    whether a sum of 0 remains 0, so that no check is needed.
    """
    factor, known = dimshuffle(v, _rest(x, axes)), fill_number(v)
    if known is not None and harmless(known):
        return factor
    if dtypes.is_discrete(v.type.dtype) or _never_empty(x, axes):
        return factor
    empty = functions.eq(count(x, axes), 0)
    return functions.switch(empty, constant(1, dtype=v.type.dtype), factor)


def _accumulated(op: Sum | Prod, x: Variable, dtype: str) -> Variable:
    """``x`` with the dtypes of a reduction: that of the accumulator, then that of the result."""
    return cast(cast(x, op.acc_dtype or dtype), dtype)


def _moves_factors(node: Apply, x: Variable) -> bool:
    """Whether a sum may be multiplied in place of its terms, as far as dtypes are concerned."""
    dtype = node.outputs[0].type.dtype
    same = (node.op.acc_dtype or dtype) == dtype
    return x.type.dtype == dtype and (same or not dtypes.is_discrete(dtype))


def _is_not_zero(k: complex) -> bool:
    return k == k and k != 0


@rule(
    "reduce over axes of length 1 -> dimshuffle",
    "CAReduce(x)",
    law="rounding",
    tags=(
        "local_reduce_broadcastable",
        "local_useless_reduce",
        "local_cut_useless_reduce",
        "cleanup",
    ),
    tested_on=(
        "R.sum(axis=0)",
        "R.max(axis=0)",
        "s.sum()",
        "R.dimshuffle(0, 'x', 1).sum(axis=(0, 1))",
        "C.prod(axis=1)",
        "gt(R, 0).any(axis=0)",
        "h.dimshuffle('x', 0).sum(axis=0)",
    ),
)
def reduce_broadcastable(node: Apply, x: TensorVariable) -> Replacement:
    axes = node.op.axes(node)
    dtype = node.outputs[0].type.dtype
    if not all(x.type.broadcastable[a] for a in axes):
        return None
    if isinstance(node.op, Prod) and dtypes.is_complex(dtype):
        return None  # 1 times a complex infinity has NaN
    return _accumulated(node.op, dimshuffle(x, _rest(x, axes)), dtype)


@rule(
    "sum(sum(x, a), b) -> sum(x, a and b)",
    "CAReduce(inner := CAReduce(x))",
    single_use=True,
    law="rounding",
    tags=("local_reduce_chain",),
    tested_on=(
        "M.sum(axis=0).sum()",
        "M.max(axis=1).max()",
        "M.prod(axis=0).prod(axis=0)",
        "gt(M, 0).all(axis=0).all()",
        "Min((1,))(Min((0,))(K))",
    ),
)
def merge_reductions(node: Apply, inner: Computed, x: TensorVariable) -> Replacement:
    op = inner.owner.op
    if type(op) is not type(node.op) or op.clone(axis=None) != node.op.clone(axis=None):
        return None
    dtype, acc = node.outputs[0].type.dtype, op.acc_dtype or node.outputs[0].type.dtype
    if acc != dtype and dtypes.is_discrete(dtype) and not {acc, dtype} <= {*dtypes.INTEGER}:
        return None  # the sums along one axis are cut to integers, or to bool
    first = op.axes(inner.owner)
    rest = _rest(x, first)
    axes = sorted([*first, *(rest[a] for a in node.op.axes(node))])
    return op.clone(axis=tuple(axes))(x)


@rule(
    "sum over all axes -> axis=None",
    "CAReduce(x, axis=axis)",
    law="exact",
    tags=("local_sum_prod_all_to_none",),
    tested_on=("M.sum(axis=(0, 1))", "v.max(axis=0)"),
)
def name_no_axes(node: Apply, x: TensorVariable, axis: tuple[int, ...] | None) -> Replacement:
    return node.op.clone(axis=None)(x) if axis and len(axis) == x.type.ndim else None


@rule(
    "sum(M.T, axis) -> sum(M, other axis)",
    "CAReduce(x := DimShuffle(source, new_order=order, drop=[]))",
    law="rounding",
    tags=("local_reduce_chain", "vectors"),
    tested_on=(
        "M.T.sum()",
        "M.T.sum(axis=0)",
        "M.dimshuffle(1, 'x', 0).max(axis=2)",
        "v.dimshuffle('x', 0).sum(axis=1)",
    ),
)
def reduce_of_dimshuffle(
    node: Apply, x: TensorVariable, source: TensorVariable, order: tuple[Place, ...]
) -> Replacement:
    axes = node.op.axes(node)
    old = sorted(o for o in (order[a] for a in axes) if o != "x")
    if not old or (node.op.needs_elements and len(old) < len(axes)):
        return None
    reduced = node.op.clone(axis=tuple(old))(source)
    place = {axis: k for k, axis in enumerate(_rest(source, tuple(old)))}
    kept: list[Place] = [order[i] for i in _rest(x, axes)]
    return dimshuffle(reduced, ["x" if o == "x" else place[o] for o in kept])


@rule(
    "sum(fill(v)) -> length * v",
    "Sum | Prod | Max | Min(x := second | Alloc(*_))",
    law="drops_errors",
    tags=("local_careduce_of_alloc",),
    tested_on=(
        "alloc(s, v.shape[0], 3).sum()",
        "second(M, s).sum(axis=0)",
        "alloc(s, 3, v.shape[0]).max(axis=0)",
        "alloc(s, v.shape[0]).prod()",
        "alloc(v, 3, v.shape[0]).sum(axis=0)",
        "second(M, 1.0).sum()",
    ),
)
def reduce_of_fill(node: Apply, x: TensorVariable) -> Replacement:
    value = filled_value(x)
    assert value is not None
    axes = node.op.axes(node)
    if not axes or not all(value.type.broadcastable[a] for a in axes):
        return None
    if not has_plain_lengths(x):
        return None
    if isinstance(node.op, Max | Min) and not _never_empty(x, axes):
        return None
    dtype, rest = node.outputs[0].type.dtype, _rest(x, axes)
    if isinstance(node.op, Sum | Prod):
        if dtype == "bool" or node.op.acc_dtype == "bool":
            return None
        inner = _accumulated(node.op, _repeated(node.op, x, axes, value), dtype)
    else:
        inner = dimshuffle(value, rest)
    if inner.type.broadcastable == node.outputs[0].type.broadcastable:
        return inner
    return Alloc()(inner, *(length(x, i) for i in rest))


def _repeated(op: Sum | Prod, x: Variable, axes: tuple[int, ...], value: Variable) -> Variable:
    """The sum or product over axes of ``x``, all of whose elements are ``value``.

    It is computed in a dtype that holds the number of elements: the accumulator's, or 64 bits.
    """
    number, dtype = count(x, axes), op.acc_dtype or x.type.dtype
    if isinstance(op, Sum):
        factor = cast(_once(x, axes, value, np.isfinite), dtype)
        return functions.mul(cast(number, dtype), factor)
    if dtypes.is_discrete(dtype):
        dtype = "uint64" if dtypes.kind(dtype) == "u" else "int64"
    value = cast(dimshuffle(value, _rest(x, axes)), dtype)
    return functions.pow(value, cast(number, dtypes.real_of(dtype)))


@rule(
    "sum(vector(a, b)) -> a + b",
    "Sum | Prod | Max | Min(MakeVector(*items, dtype=given))",
    law="rounding",
    tags=("local_sum_make_vector",),
    tested_on=("stack([s, t]).sum()", "stack([s, t, 2 * s]).prod()", "stack([s, t, n]).max()"),
)
def sum_of_vector(node: Apply, items: Sequence[Variable], given: str) -> Replacement:
    if not items or not node.op.axes(node) or len(items) > MAX_TERMS:
        return None
    return _combined(node.op, [cast(x, given) for x in items], node.outputs[0].type.dtype)


#: More items are combined by a loop.
MAX_TERMS = 32


def _combined(op: CAReduce, items: Sequence[Variable], dtype: str) -> Variable:
    """The items combined by the scalar op of a reduction, in the dtype of its accumulator."""
    terms = [cast(x, op.acc_dtype or dtype) for x in items]
    if len(terms) > 1 and isinstance(op, Sum | Prod):
        terms = [functions.of(op.scalar_op.name)(*terms)]
    return cast(reduce(functions.of(op.scalar_op.name), terms), dtype)


@rule(
    "sum(join(x, y), axis) -> x + y",
    "Sum | Prod | Max | Min | All | Any_(joined := Join(*pieces, axis=along))",
    single_use=True,
    phase="specialize",
    law="rounding",
    tags=("local_reduce_join",),
    tested_on=(
        "stack([v, w]).sum(axis=0)",
        "stack([v, w, v]).max(axis=0)",
        "stack([v, w]).prod()",
        "Min((0, 2))(stack([M, N]))",
        "stack([gt(v, 0), gt(w, 0)]).all(axis=0)",
        "stack([h, h, h]).sum(axis=0)",
    ),
)
def reduce_of_join(node: Apply, pieces: Sequence[Variable], along: int) -> Replacement:
    """Applies to pieces of length 1 along the axis of the join."""
    op, axes, dtype = node.op, node.op.axes(node), node.outputs[0].type.dtype
    pattern = pieces[0].type.broadcastable
    if along not in axes or not 1 < len(pieces) <= MAX_TERMS or not pattern[along]:
        return None
    if any(x.type.broadcastable != pattern for x in pieces):
        return None
    given, kept = node.inputs[0].type.dtype, [a for a in range(len(pattern)) if a != along]
    rest = tuple(kept.index(a) for a in axes if a != along)
    terms = [cast(dimshuffle(x, kept), given) for x in pieces]
    if not rest:
        return _combined(op, terms, dtype)
    return cast(op.clone(axis=rest)(_combined(op, terms, op.acc_dtype or dtype)), dtype)


@rule(
    "sum(sort(x)) -> sum(x)",
    ops=[CAReduce],
    where=at(0, SortOp),
    law="rounding",
    tags=("local_sort_under_reduce",),
    tested_on=(
        "sort(v).sum()",
        "sort(M, axis=0).max(axis=0)",
        "sort(M, axis=1).sum()",
        "sort(h).prod()",
        "sort(b).any()",
    ),
)
def reduce_of_sorted(ctx: Context, node: Apply) -> Replacement:
    """The order along an axis does not matter to a reduction over it."""
    order = node.inputs[0].owner
    if order is None or type(order.op) is not SortOp:
        return None
    if order.op.axis not in node.op.axes(node):
        return None
    return node.op(order.inputs[0])


@rule(
    "sum(c * x) -> c * sum(x)",
    "Sum(x := mul(*factors))",
    single_use=True,
    phase="specialize",
    law="finite",
    tags=("local_sum_prod_of_mul_or_div", "local_sum_of_neg_to_neg_of_sum"),
    tested_on=("(2 * v).sum()", "(s * M * N).sum(axis=0)", "(v * M).sum(axis=0)"),
)
def pull_factors_out_of_sums(
    node: Apply, x: TensorVariable, factors: Sequence[Variable]
) -> Replacement:
    """Multiply the sum, not its terms, by factors that are constant along the summed axes."""
    axes = node.op.axes(node)
    fixed = [v for v in factors if all(v.type.broadcastable[a] for a in axes)]
    varying = [v for v in factors if v not in fixed]
    if not (fixed and axes and varying) or not _moves_factors(node, x):
        return None
    inside = varying[0] if len(varying) == 1 else functions.mul(*varying)
    if any(inside.type.broadcastable[a] for a in axes) or inside.type.dtype != x.type.dtype:
        return None
    return functions.mul(*(_once(inside, axes, v, np.isfinite) for v in fixed), node.op(inside))


@rule(
    "sum(x * y) -> sum(sum(x) * y), where y is constant along some of the axes",
    "Sum(x := mul | sqr(*given))",
    single_use=True,
    phase="specialize",
    law="finite",
    tags=("local_sumsqr2dot",),
    tested_on=(
        "(v.dimshuffle(0, 'x') * w).sum()",
        "sqr(v.dimshuffle(0, 'x') * w).sum()",
        "(v * M).sum()",
        "sqr(v.dimshuffle(0, 'x') * w).sum(axis=0)",
        "sqr(v.dimshuffle(0, 'x', 'x') * M).sum(axis=(0, 1))",
    ),
)
def sum_factors_first(node: Apply, x: TensorVariable, given: Sequence[Variable]) -> Replacement:
    """Sum each factor along the axes along which all others are constant, before it is multiplied.

    The sum of an outer product is a product of sums, and that of its squares one of sums of
    squares, so that the product of all pairs of elements is not computed.
    """
    factors = _factors(x, given)
    if len(factors) < 2 or not _moves_factors(node, x):
        return None
    if any(v.type.dtype != x.type.dtype for v in factors):
        return None
    axes = node.op.axes(node)
    varying = {a: [k for k, v in enumerate(factors) if not v.type.broadcastable[a]] for a in axes}
    own = [tuple([a for a in axes if varying[a] == [k]]) for k in range(len(factors))]
    gone = [a for along in own for a in along]
    is_product = factors == [*given]
    if not gone or (is_product and tuple(axes) in own):  # a factor out of a sum: another rule
        return None
    kept = _rest(x, tuple(gone))
    summed = [
        dimshuffle(node.op.clone(axis=along)(v), [_rest(v, along).index(a) for a in kept])
        for v, along in zip(factors, own)
    ]
    rest = tuple([kept.index(a) for a in axes if a not in gone])
    return node.op.clone(axis=rest)(functions.mul(*summed))


def _factors(x: TensorVariable, given: Sequence[Variable]) -> list[Variable]:
    """The factors of a product, or of the square of a product that has no other use."""
    if x.owner_op.scalar_op.name == "mul":
        return list(given)
    inside = given[0].owner
    if inside is None or scalar_op_name(inside) != "mul":
        return []
    return [functions.sqr(v) for v in inside.inputs]


@rule(
    "sum(x / c) -> sum(x) / c, sum(-x) -> -sum(x)",
    "Sum(x := neg | true_div(top, *divisors))",
    single_use=True,
    phase="specialize",
    law="finite",
    tags=("local_sum_prod_of_mul_or_div", "local_sum_of_neg_to_neg_of_sum"),
    tested_on=("(v / s).sum()", "neg(v).sum()", "(M / v).sum(axis=0)"),
)
def pull_divisors_out_of_sums(
    node: Apply, x: TensorVariable, top: TensorVariable, divisors: Sequence[Variable]
) -> Replacement:
    if not _moves_factors(node, x):
        return None
    if not divisors:
        return functions.neg(node.op(top))
    (below,) = divisors
    axes = node.op.axes(node)
    fits = top.type.dtype == x.type.dtype and not any(top.type.broadcastable[a] for a in axes)
    if not fits or not axes or not all(below.type.broadcastable[a] for a in axes):
        return None
    return functions.true_div(node.op(top), _once(top, axes, below, _is_not_zero))


@rule(
    "prod(c * x) -> c**n * prod(x)",
    "Prod(x := mul | neg(*factors))",
    single_use=True,
    phase="specialize",
    law="finite",
    tags=("local_sum_prod_of_mul_or_div",),
    tested_on=(
        "neg(v).prod()",
        "(2 * i).prod()",
        "(2 * N).prod(axis=0)",
        "(i * n).prod()",
    ),
)
def pull_factors_out_of_products(
    node: Apply, x: TensorVariable, factors: Sequence[Variable]
) -> Replacement:
    """Multiply the product, not its factors, where this does not overflow: see `_is_tame`."""
    axes, dtype = node.op.axes(node), x.type.dtype
    if x.type.ndim and x.owner_op.scalar_op.name == "neg":
        factors = [literal(-1, dtype, x.type.ndim), *factors]
    fixed = [v for v in factors if all(v.type.broadcastable[a] for a in axes)]
    varying = [v for v in factors if v not in fixed]
    if not (fixed and axes and varying) or not _moves_factors(node, x):
        return None
    inside = varying[0] if len(varying) == 1 else functions.mul(*varying)
    if any(inside.type.broadcastable[a] for a in axes) or inside.type.dtype != dtype:
        return None
    if not dtypes.is_discrete(dtype) and not all(_is_tame(number(v), x, axes) for v in fixed):
        return None
    powers = [cast(_repeated(node.op, x, axes, v), dtype) for v in fixed]
    return functions.mul(*powers, node.op(inside))


def _is_tame(k: Any, x: Variable, axes: Sequence[int]) -> bool:
    """Whether the power of a number with the count of elements of ``x`` along axes is near 1.

    Integers wrap in any order.  A product of floats may be finite where the product of the other
    factors alone underflows, or the power overflows.
    """
    if k is None or isinstance(k, complex):
        return False
    lengths = [x.type.shape[a] for a in axes]
    if abs(k) == 1:
        return True
    size = prod(n for n in lengths if n is not None)
    return None not in lengths and k != 0 and abs(log2(abs(k))) * size <= 8


@rule(
    "sign(prod(x)) -> prod(sign(x))",
    "sign(total := Prod(x))",
    single_use=True,
    phase="stabilize",
    law="finite",
    tags=("local_sign_prod",),
    tested_on=("sign(v.prod())", "sign(M.prod(axis=0))"),
)
def sign_of_product(node: Apply, total: Computed, x: TensorVariable) -> Replacement:
    """The product may overflow or underflow; that of signs does not."""
    if not dtypes.is_float(x.type.dtype) or x.type.dtype != node.outputs[0].type.dtype:
        return None
    return total.owner.op(functions.sign(x))


@rule(
    "log(prod(exp(x))) -> sum(x)",
    "log(Prod(exp(x), axis=axis))",
    phase="stabilize",
    law="rounding",
    tags=("local_log_prod_to_sum_log",),
    tested_on=("log(exp(v).prod())",),
)
def log_of_othersof_exp(
    node: Apply, x: TensorVariable, axis: tuple[int, ...] | None
) -> Replacement:
    dtype = node.outputs[0].type.dtype
    return Sum(axis, dtype)(x) if x.type.dtype == dtype else None


@rule(
    "products of the others -> products of those before and of those after",
    "ProdOthers(x, axis=axes)",
    phase="specialize",
    law="finite",
    tags=("local_products_of_others", "cxx_only"),  # JAX has a form of the op
    tested_on=(
        "ProdOthers((0,))(v)",
        "ProdOthers((0,))(v * gt(v, 0))",
        "ProdOthers((0, 1))(M)",
        "ProdOthers((1,))(M * gt(M, 0))",
    ),
)
def products_before_and_after(node: Apply, x: TensorVariable, axes: tuple[int, ...]) -> Replacement:
    """Two running products.

    A quotient of the product by ``x`` would be faster, but wrong where the product is 0, infinite
    or subnormal and the result is none of these.
    """
    dtype = x.type.dtype
    if dtypes.is_complex(dtype):
        return None
    kept = [axis for axis in range(x.type.ndim) if axis not in axes]
    order = [*kept, *axes]
    moved = cast(dimshuffle(x, order), "float64")
    lengths = [length(moved, axis) for axis in range(x.type.ndim)]
    flat = reshape(moved, [*lengths[: len(kept)], prod(lengths[len(kept) :])])
    found = _product_before(flat) * _product_before(flat[..., ::-1])[..., ::-1]
    found = reshape(found, lengths)
    return cast(dimshuffle(found, [order.index(axis) for axis in range(x.type.ndim)]), dtype)


def _product_before(x: TensorVariable) -> TensorVariable:
    """The running product along the last axis, without the element itself."""
    return cumprod(concatenate([ones_like(x[..., :1]), x[..., :-1]], axis=-1), axis=-1)
