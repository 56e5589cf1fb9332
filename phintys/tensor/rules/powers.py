"""Rules for powers, and the specialized forms: differences, negations, reciprocals, squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.rule import Context, Replacement, Rule, equation, rule
from phintys.rewriting.unify import is_constant
from phintys.scalar import dtypes
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.rules.algebra import collect_sum
from phintys.tensor.rules.language import NAMES
from phintys.tensor.rules.match import (
    argument,
    is_float,
    like,
    literal,
    negation_keeps,
    number,
    some,
)
from phintys.tensor.variable import TensorVariable


@rule(
    "pow(x, 0) -> 1, pow(x, 1) -> x, pow(x, 2) -> sqr(x)",
    "pow(x, exponent)",
    where=some(Constant),
    law="rounding",
    tags=("local_pow_canonicalize", "cleanup"),
    tested_on=("x**0", "x**1", "x**2", "i**2", "ones_like(x)**y"),
)
def trivial_power(node: Apply, x: TensorVariable, exponent: TensorVariable) -> Replacement:
    k = number(exponent)
    is_complex = dtypes.kind(node.outputs[0].type.dtype) == "c"  # 1 to the power of inf is NaN
    if k == 0 or (number(x) == 1 and not may_fail(exponent) and not is_complex):
        return like(node, functions.second(x, functions.second(exponent, 1)))
    if k == 1:
        return like(node, x)
    if k == 2:
        return like(node, functions.sqr(cast(x, node.outputs[0].type.dtype)))
    return None


def may_fail(exponent: Variable) -> bool:
    """Whether an integer to this power may be an error: the exponent may be a negative integer."""
    return dtypes.kind(exponent.type.dtype) == "i"


@rule(
    "pow(x, constant) -> products",
    "pow(x, exponent)",
    given={"exponent": is_constant},
    phase="specialize",
    law="rounding",
    tags=("local_pow_specialize", "local_pow_to_nested_squaring"),
    tested_on=("x**3", "x**-1", "x**-2", "x**7", "x**-3"),
)
def specialize_power(node: Apply, x: TensorVariable, exponent: TensorVariable) -> Replacement:
    k, dtype = number(exponent), node.outputs[0].type.dtype
    if k is None or not dtypes.is_float(dtype):
        return None
    if not float(k).is_integer() or not 0 < abs(k) <= 16:
        return None
    new = power_by_squaring(cast(x, dtype), int(abs(k)))
    return like(node, new if k > 0 else functions.reciprocal(new))


@rule(
    "pow(x, 0.5) -> sqrt(x), pow(x, -0.5) -> 1 / sqrt(x)",
    "pow(x, exponent)",
    given={"exponent": is_constant},
    phase="specialize",
    law="finite",
    tags=("local_pow_specialize",),
    tested_on=("x**0.5", "x**-0.5"),
)
def power_to_root(node: Apply, x: TensorVariable, exponent: TensorVariable) -> Replacement:
    """Roots and powers differ at -inf (the power is inf or 0) and in the sign of zero at -0."""
    k, dtype = number(exponent), node.outputs[0].type.dtype
    if k not in (0.5, -0.5) or not dtypes.is_float(dtype):
        return None
    root = functions.sqrt(cast(x, dtype))
    return like(node, root if k > 0 else functions.reciprocal(root))


def power_by_squaring(x: Variable, k: int) -> Variable:
    """``x ** k`` for k > 0, by repeated squaring."""
    result: Variable | None = None
    while k:
        if k & 1:
            result = x if result is None else functions.mul(result, x)
        k >>= 1
        if k:
            x = functions.sqr(x)
    assert result is not None
    return result


@rule(
    "-1 * x -> -x",
    "mul(-1, x, *rest)",
    phase="specialize",
    law="exact",
    tags=("local_mul_specialize",),
    tested_on=("x * -1", "x * -1 * y"),
)
def product_to_negation(node: Apply, x: TensorVariable, rest: Sequence[Variable]) -> Replacement:
    x = functions.mul(x, *rest) if rest else x
    out = node.outputs[0].type
    if x.type.dtype != out.dtype or dtypes.kind(out.dtype) == "c":
        return None
    return like(node, functions.neg(x))


@rule(
    "a + -b -> a - b",
    ops=[TABLE["add"]],
    where=some("neg"),
    phase="specialize",
    law="rounding",
    tags=("local_add_neg_to_sub",),
    tested_on=("x + -y", "x + -y + -z", "-x + -y", "i + neg(j)"),
)
def negations_to_difference(ctx: Context, node: Apply) -> Replacement:
    dtype = node.outputs[0].type.dtype
    below = [argument(v, "neg") for v in node.inputs]
    below = [x if x is not None and negation_keeps(x, dtype) else None for x in below]
    if not any(x is not None for x in below):
        return None
    above = [v for v, x in zip(node.inputs, below) if x is None]
    minus = total([x for x in below if x is not None])
    new = functions.sub(total(above), minus) if above else functions.neg(minus)
    return like(node, new) if new.type.dtype == dtype else None


def total(of: Sequence[Variable]) -> Variable:
    """The sum of one or more terms."""
    return of[0] if len(of) == 1 else functions.add(*of)


@rule(
    "exp(x) * exp(y) -> exp(x + y)",
    ops=[TABLE["mul"]],
    where=some("exp"),
    phase="specialize",
    law="finite",
    tags=("local_mul_exp_to_exp_add",),
    tested_on=("exp(x) * exp(y)", "exp(x) * y * exp(z)", "exp(x + y) * exp(-x)"),
)
def merge_exponentials(ctx: Context, node: Apply) -> Replacement:
    exponents = [_exponent(ctx, v) for v in node.inputs]
    found = [x for x in exponents if x is not None]
    if len(found) < 2:
        return None
    rest = [v for v, x in zip(node.inputs, exponents) if x is None]
    merged = functions.exp(_total(ctx, found))
    new = functions.mul(merged, *rest) if rest else merged
    return like(node, new) if new.type.dtype == node.outputs[0].type.dtype else None


@rule(
    "exp(x) / exp(y) -> exp(x - y)",
    "true_div(top, exp(y))",
    given={"y": is_float},
    single_use=True,
    phase="specialize",
    law="finite",
    tags=("local_div_exp_to_mul_exp",),
    tested_on=("exp(x) / exp(y)", "x / exp(y)", "exp(-x) / exp(y - x)"),
)
def divide_by_exponential(
    ctx: Context, node: Apply, top: TensorVariable, y: TensorVariable
) -> Replacement:
    """A division is slower than a negation."""
    x = _exponent(ctx, top)
    if x is not None:
        return like(node, functions.exp(_total(ctx, [x, functions.neg(y)])))
    new = functions.mul(top, functions.exp(functions.neg(y)))
    return like(node, new) if new.type.dtype == node.outputs[0].type.dtype else None


def _exponent(ctx: Context, v: Variable) -> Variable | None:
    x = argument(v, "exp")
    return x if x is not None and is_float(x) and ctx.single_use(v) else None


def _total(ctx: Context, exponents: Sequence[Variable]) -> Variable:
    """The sum of exponents, which meet after the sums of the graph have been collected.

    Those that cancel keep the error if their lengths do not fit: `second` does not compute its
    first argument.
    """
    total = functions.add(*exponents) if len(exponents) > 1 else exponents[0]
    kept = _without_opposites(exponents)
    if not kept:
        return functions.second(total, literal(0, total.type.dtype, total.type.ndim))
    rest = functions.add(*kept) if len(kept) > 1 else kept[0]
    found = collect_sum(ctx, rest.owner) if rest.owner is not None and len(kept) > 1 else None
    if isinstance(found, Variable):
        return functions.second(total, found)
    return rest if len(kept) == len(exponents) else functions.second(total, rest)


def _without_opposites(exponents: Sequence[Variable]) -> list[Variable]:
    kept: list[Variable] = []
    for v in exponents:
        opposite = next((u for u in kept if _are_opposite(u, v)), None)
        if opposite is None:
            kept.append(v)
        else:
            kept.remove(opposite)
    return kept


def _are_opposite(x: Variable, y: Variable) -> bool:
    return argument(x, "neg") is y or argument(y, "neg") is x


def _are_floats(x: Variable, y: Variable) -> bool:
    return is_float(x) and is_float(y)


def _adds_alike(x: Variable, y: Variable) -> bool:
    return negation_keeps(y, dtypes.upcast(x.type.dtype, y.type.dtype))


def _machine_forms() -> Iterator[Rule]:
    def form(text: str, name: str, law: str = "exact", **options: Any) -> Rule:
        told: dict[str, Any] = {"namespace": NAMES, "deferred": True, "when": is_float}
        told.update(phase="specialize", law=law, tags=(name,), **options)
        return equation(text, **told)

    yield form("1 / x -> reciprocal(x)", "local_div_to_reciprocal")
    yield form("x * x -> sqr(x)", "local_mul_to_sqr", when=None)
    yield form("-1 / x -> neg(reciprocal(x))", "local_neg_div_neg")
    yield form("neg(x) / neg(y) -> x / y", "local_neg_div_neg", when=_are_floats)
    yield form("neg(x) * neg(y) -> x * y", "local_mul_specialize", when=_are_floats)
    yield form("neg(neg(x)) -> x", "useless_Neg_of_Neg", when=None)
    yield form("neg(x - y) -> y - x", "local_add_neg_to_sub", "rounding")
    yield form("x - neg(y) -> x + y", "local_sub_neg_to_add", when=_adds_alike)
    yield form("abs(x) * sign(x) -> x", "local_abs_mul_unit", "rounding")
    yield form("x / abs(x) -> sign(x)", "local_sign_div", "finite")
    yield form("polygamma(0, x) -> psi(x)", "local_polygamma_to_digamma", "rounding")
    yield form("polygamma(1, x) -> tri_gamma(x)", "local_polygamma_to_tri_gamma", "rounding")


EQUATIONS: list[Rule] = list(_machine_forms())


@rule(
    "i // 1 -> i, i % 1 -> 0 for integers",
    "int_div | mod(x, 1)",
    law="exact",
    tags=("local_intdiv_by_one", "cleanup"),
    tested_on=("i // 1", "i % 1", "h // 1"),
)
def divide_integer_by_one(node: Apply, x: TensorVariable) -> Replacement:
    out = node.outputs[0].type
    if not dtypes.is_discrete(out.dtype) or out.dtype == "bool":
        return None
    divides = node.op.scalar_op is TABLE["int_div"]
    return like(node, x if divides else literal(0, out.dtype, out.ndim))
