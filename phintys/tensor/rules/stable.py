"""Forms that keep precision: log1p, expm1, sigmoid, softplus and their relatives.

Each is an equation; both sides are compared on generated inputs by the tests, in higher precision, under
the rule's law.  Pattern variables stand for real floating tensors of any rank.
"""

from __future__ import annotations

from typing import Any

from phintys.graph.variable import Apply
from phintys.rewriting.rule import Rule, equation, rule, set_pattern_defaults
from phintys.scalar import dtypes
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import functions
from phintys.tensor.rules.match import applied, number
from phintys.tensor.type import TensorType

NAMES = {name: getattr(functions, name) for name in TABLE if not name.startswith("cast_")}


def _real(name: str) -> Any:
    """A pattern variable: a real tensor."""
    return TensorType("float64", ())(name)


set_pattern_defaults(variable=_real, namespace=NAMES)


def stable(text: str, tested_on: str = "reals", **options: Any) -> Rule:
    """A rule of the stabilize phase."""
    options = {"phase": "stabilize", "law": "rounding", "tested_on": tested_on, **options}
    return equation(text, namespace=NAMES, **options)


def is_float(x: Any) -> bool:
    return dtypes.is_float(x.type.dtype)


LOG_EXP = [
    stable("log(exp(x)) -> x", when=is_float, phase="canonicalize"),
    stable("log(1 + x) -> log1p(x)", "above -1", when=is_float),
    stable("exp(x) + -1 -> expm1(x)", when=is_float),
    stable("expm1(log1p(x)) -> x", "above -1", when=is_float, phase="canonicalize"),
    stable("log1p(expm1(x)) -> x", when=is_float, phase="canonicalize"),
    stable("log1p(exp(x)) -> softplus(x)", when=is_float),
    stable("log1p(-1 * exp(x)) -> log1mexp(x)", "negative", when=is_float),
    stable("log(1 + -1 * exp(x)) -> log1mexp(x)", "negative", when=is_float),
    stable("log(-1 * expm1(x)) -> log1mexp(x)", "negative", when=is_float),
    stable("log(sqrt(x)) -> 0.5 * log(x)", "positive", when=is_float),
]
SIGMOID = [
    stable("1 / (1 + exp(x)) -> sigmoid(-1 * x)", when=is_float),
    stable("1 / (1 + exp(-1 * x)) -> sigmoid(x)", when=is_float),
    stable("exp(x) / (1 + exp(x)) -> sigmoid(x)", when=is_float),
    stable("1 + -1 * sigmoid(x) -> sigmoid(-1 * x)", when=is_float),
    stable("log(sigmoid(x)) -> -1 * softplus(-1 * x)", when=is_float),
    stable("log1p(-1 * sigmoid(x)) -> -1 * softplus(x)", when=is_float),
    stable("sigmoid(log(x) + -1 * log1p(-1 * x)) -> x", "unit interval", when=is_float),
    stable("exp(-1 * softplus(-1 * x)) -> sigmoid(x)", when=is_float),
    stable("exp(-1 * softplus(x)) -> sigmoid(-1 * x)", when=is_float),
]
ERROR_FUNCTION = [
    stable("1 + -1 * erf(x) -> erfc(x)", when=is_float),
    stable("1 + -1 * erfc(x) -> erf(x)", when=is_float),
]
EQUATIONS: list[Rule] = [*LOG_EXP, *SIGMOID, *ERROR_FUNCTION]


@rule(
    "exp(log(x)) -> switch(x >= 0, x, nan)", ops=[TABLE["exp"]], law="rounding", tested_on="reals"
)
def exp_of_log(ctx: Any, node: Apply) -> Any:
    """The NaN of a negative argument is kept."""
    inner = applied(node.inputs[0], "log")
    if inner is None or not dtypes.is_float(node.outputs[0].type.dtype):
        return None
    (x,) = inner.inputs
    if x.type != node.outputs[0].type:
        return None
    return functions.switch(functions.ge(x, 0), x, float("nan")).astype(x.type.dtype)


@rule("pow(x, constant) -> products", ops=[TABLE["pow"]], phase="specialize", law="rounding")
def specialize_power(ctx: Any, node: Apply) -> Any:
    x, exponent = node.inputs
    out = node.outputs[0].type
    k = number(exponent)
    if k is None or x.type != out or not dtypes.is_float(out.dtype):
        return None
    direct = {2: functions.sqr, 0.5: functions.sqrt, -1: functions.reciprocal}
    if k in direct:
        return direct[k](x)
    if k == 1:
        return x
    if k == -2:
        return functions.reciprocal(functions.sqr(x))
    if k == -0.5:
        return functions.reciprocal(functions.sqrt(x))
    if float(k).is_integer() and 2 < abs(k) <= 16:
        product = _power_by_squaring(x, int(abs(k)))
        return product if k > 0 else functions.reciprocal(product)
    return None


def _power_by_squaring(x: Any, k: int) -> Any:
    result = None
    while k:
        if k & 1:
            result = x if result is None else functions.mul(result, x)
        k >>= 1
        if k:
            x = functions.sqr(x)
    return result


@rule("pow(x, 0) -> 1", ops=[TABLE["pow"]], law="exact")
def trivial_power(ctx: Any, node: Apply) -> Any:
    x, exponent = node.inputs
    k = number(exponent)
    if k == 1 and x.type == node.outputs[0].type:
        return x
    if k == 0:
        one = functions.second(x, functions.second(exponent, 1))
        return one.astype(node.outputs[0].type.dtype)
    return None
