"""Numerically stable forms: log1p, expm1, sigmoid, softplus and similar functions.

Most are equations.  The tests compare both sides on generated inputs, in higher precision, under
the rule's law.
"""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, Rule, rule
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import functions
from phintys.tensor.leading import without_leading_parts
from phintys.tensor.logarithms import (
    LOGARITHMS,
    log_beside_one,
    stable_logarithm,
    stable_power,
)
from phintys.tensor.power_sums import is_written
from phintys.tensor.rules.language import stable
from phintys.tensor.rules.match import (
    applied,
    argument,
    at,
    is_float,
    like,
    negated,
    number,
    opposite,
    some,
)
from phintys.tensor.variable import TensorVariable

LOG_EXP = [
    stable("log1p(exp(x)) -> softplus(x)", "local_log1p_plusminus_exp"),
    stable("log1p(-1 * exp(x)) -> log1mexp(x)", "local_log1p_plusminus_exp", "negative"),
    stable("log(-1 * expm1(x)) -> log1mexp(x)", "logmexpm1_to_log1mexp", "negative"),
    stable("exp(x) + -1 -> expm1(x)", "local_expm1"),
    stable("1 + -1 * exp(x) -> -1 * expm1(x)", "local_expm1"),
    stable("cos(x) + -1 -> cosm1(x)"),
    stable("1 + -1 * cos(x) -> -1 * cosm1(x)"),
    stable("log(sqrt(x)) -> 0.5 * log(x)", "local_log_sqrt_sqr", "positive"),
    stable("log(sqr(x)) -> 2 * log(abs(x))", "local_log_sqrt_sqr"),
    stable("sqrt(sqr(x)) -> abs(x)", "local_sqrt_sqr"),
    stable("log(1 / x) -> -1 * log(x)", "local_log_div", "positive"),
    stable("log2(1 / x) -> -1 * log2(x)", "local_log_div", "positive"),
    stable("log10(1 / x) -> -1 * log10(x)", "local_log_div", "positive"),
    stable("arccosh(cosh(x)) -> abs(x)", "useless_Arccosh_of_Cosh"),
    stable("exp(softplus(x)) -> 1 + exp(x)", "local_exp_log"),
    stable("expm1(softplus(x)) -> exp(x)", "local_exp_log"),
    stable("exp(log1p(x)) -> switch(ge(x, -1), 1 + x, nan)", "local_exp_log_nan_switch"),
    stable("expm1(log(x)) -> switch(ge(x, 0), x + -1, nan)", "local_exp_log_nan_switch"),
    stable("exp(log1mexp(x)) -> switch(le(x, 0), -1 * expm1(x), nan)", "local_exp_log_nan_switch"),
    stable(
        "log(exp(x) + -1 * exp(y)) -> switch(eq(y, -inf), x, x + log1mexp(y + -1 * x))",
        "logdiffexp_to_log1mexpdiff",
        "decreasing",
    ),
]
SIGMOID = [
    stable("1 + -1 * sigmoid(x) -> sigmoid(-1 * x)", "local_1msigmoid", single_use=True),
    stable("log(sigmoid(x)) -> -1 * softplus(-1 * x)", "logsigm_to_softplus"),
    stable("log1p(-1 * sigmoid(x)) -> -1 * softplus(x)", "log1p_neg_sigmoid"),
    stable("log(1 + -1 * sigmoid(x)) -> -1 * softplus(x)", "log1msigm_to_softplus"),
    stable(
        "sigmoid(log(x) + -1 * log1p(-1 * x)) -> switch(and_(ge(x, 0), le(x, 1)), x, nan)",
        "local_sigmoid_logit",
        "unit interval",
    ),
    stable("exp(-1 * softplus(x)) -> sigmoid(-1 * x)"),
    stable("sigmoid(x) / (1 + -1 * sigmoid(x)) -> exp(x)", "local_odds_sigmoid"),
    stable("(1 + -1 * sigmoid(x)) / sigmoid(x) -> exp(-1 * x)", "local_inv_odds_sigmoid"),
    stable("sigmoid(-1 * x) / sigmoid(x) -> exp(-1 * x)", "local_inv_odds_sigmoid"),
    stable("sigmoid(x) / sigmoid(-1 * x) -> exp(x)", "local_odds_sigmoid"),
]
SPECIAL_FUNCTIONS = [
    stable("1 + -1 * erf(x) -> erfc(x)", "local_one_minus_erf"),
    stable("1 + erf(x) -> erfc(-1 * x)", "local_one_plus_erf"),
    stable("-1 + erf(x) -> -1 * erfc(x)", "local_erf_minus_one"),
    stable("1 + -1 * erfc(x) -> erf(x)", "local_one_minus_erfc"),
    stable("-1 + erfc(x) -> -1 * erf(x)", "local_one_minus_erfc"),
    stable("log(i0(x)) -> log_i0(x)", "local_log_iv", law="finite"),
    stable("i1(x) / i0(x) -> i1e(x) / i0e(x)"),
    stable("(y / i0(x)) * i1(x) -> y * (i1e(x) / i0e(x))"),
    stable("log(iv(v, x)) -> log(ive(v, x)) + abs(x)", "local_log_iv", "orders", law="finite"),
    stable("log(kv(v, x)) -> log(kve(v, x)) + -1 * x", "local_log_kv", "orders", law="finite"),
]
EQUATIONS: list[Rule] = [*LOG_EXP, *SIGMOID, *SPECIAL_FUNCTIONS]


@rule(
    "log(1 + x + y) -> log1p(x + y)",
    "log(total := add(1, *rest))",
    given={"total": is_float},
    phase="stabilize",
    law="accurate",
    tags=("local_log1p",),
    tested_on=(
        "log(1 + sqr(x))",
        "log(1 + x) | above -1",
        "log(1 + sqr(x) + sqr(y))",
        "log(1 - x) | unit interval",
    ),
)
def log_of_one_plus(node: Apply, rest: Sequence[Variable]) -> Replacement:
    new = functions.log1p(functions.add(*rest) if len(rest) > 1 else rest[0])
    return like(node, new) if new.type.dtype == node.outputs[0].type.dtype else None


@rule(
    "log(switch(c, 1 + x, 1)) -> log1p(switch(c, x, 0))",
    "log(switch(condition, a, b))",
    phase="stabilize",
    law="accurate",
    tested_on=(
        "log(switch(lt(y, 0), 1 - x, 1)) | unit interval",
        "log(switch(lt(y, 0), 1.0, 1 + sqr(x)))",
        "log(switch(lt(y, 0), x / (x + z), 1.0)) | positive",
        "log(switch(lt(y, 0), -expm1(x), 1.0)) | negative",
    ),
)
def log_of_selected(
    node: Apply, condition: TensorVariable, a: TensorVariable, b: TensorVariable
) -> Replacement:
    """Also for ``x / (x + y)`` and ``-expm1(x)``: bases of powers where these are positive."""
    for holds, v, other in ((True, a, b), (False, b, a)):
        if (
            number(other) == 1
            and is_float(v)
            and (new := log_beside_one(condition, v, holds)) is not None
        ):
            return like(node, new)
    return None


@rule(
    "log(exp(x) + exp(y)) -> logaddexp(x, y)",
    "log(add(*terms))",
    phase="stabilize",
    law="accurate",
    tags=("local_log_add_exp", "symbolic_op_recognition", "fast_compile"),
    tested_on=("log(exp(x) + exp(y))", "log(exp(x) + exp(y) + exp(z))"),
)
def log_of_sum_of_exponentials(node: Apply, terms: Sequence[Variable]) -> Replacement:
    exponents = [x for v in terms if (x := _float_argument(v, "exp")) is not None]
    if len(exponents) != len(terms):
        return None
    new = exponents[0]
    for x in exponents[1:]:
        new = functions.logaddexp(new, x)
    return like(node, new)


@rule(
    "log(factor * exp(exponent)) -> exponent + log(factor)",
    ops=[TABLE[str(name)] for name in LOGARITHMS],
    phase="stabilize",
    law="accurate",
    tags=("local_log_erfc", "local_logsoftmax_grad", "fast_compile"),
    tested_on=(
        "log(0.5 * exp(x))",
        "log(exp(x) / 3)",
        "log(exp(x) / exp(y))",
        "log(exp(x) * y)",
        "log1p(2 * exp(x))",
        "log1p(x * exp(y))",
        "log(exp(x) + 2)",
        "log(exp(x) * 0.5 + 2 * exp(y))",
        "log(x * exp(y) + z)",
        "log(sqr(x) * sqrt(exp(y)))",
        "log(x**3 * 2)",
        "log(neg(x * exp(y)))",
        "log(abs(x * exp(y)))",
        "log(reciprocal(exp(x)))",
        "log(cosh(x))",
        "log(sinh(x))",
        "log(1 - tanh(x))",
        "log(0.5 + 0.5 * erf(x))",
        "log(erfc(x))",
        "log(erfc(x) / 2)",
        "log1p(erf(x))",
        "log1p(-erf(x))",
        "log1p(tanh(x))",
        "log1p(-tanh(x))",
        "log(1 + tanh(x))",
        "log(sigmoid(x) * sigmoid(y))",
        "log(switch(lt(x, y), sigmoid(x), 1 - sigmoid(y)))",
        "log(switch(lt(x, y), exp(x), y))",
        "log2(exp(x) * 3)",
        "log10(exp(x) * y)",
        "log(sum(2 * exp(v)))",
        "log(sum(sqr(w) * exp(v)))",
        "log(sum(sqr(M) * exp(N), axis=1))",
        "log(mean(exp(M), axis=0))",
        "log((2 * exp(M)).T[:, 1])",
        "log(2 * special.softmax(M, axis=1)[:, 0])",
        "log(exp(f) * v)",
    ),
)
def logarithm_of_scaled(ctx: Context, node: Apply) -> Replacement:
    """Applies to products, powers, sums and selections; see `phintys.tensor.logarithms`."""
    return stable_logarithm(node)


@rule(
    "(factor * exp(exponent))**p -> exp(p * (exponent + log(factor)))",
    ops=[TABLE["pow"]],
    phase="stabilize",
    law="accurate",
    tested_on=("(x / exp(y))**z", "exp(x)**y", "(1 + exp(x))**y"),
)
def power_of_scaled(ctx: Context, node: Apply) -> Replacement:
    """Applies where the base has an exponent; see `phintys.tensor.logarithms`."""
    return stable_power(node)


@rule(
    "log_ndtr(x) + x**2 / 2 -> log(erfcx(-x / 2**0.5) / 2)",
    ops=[TABLE["add"]],
    where=some(
        "mul",
        "true_div",
        "sqr",
        "switch",
        *(name for name, row in TABLE.items() if row.leading is not None),
    ),
    phase="stabilize",
    law="accurate",
    tested_on=(
        "log_ndtr(x) + 0.5 * sqr(x)",
        "log_ndtr(x - y) - x * y + 0.5 * sqr(y)",
        "0.5 * sqr(x + y) - 2 * log_ndtr(x) - sqr(x)",
        "log_erfc(x + y) + sqr(x)",
        "log_i0(x * y) - 0.5 * sqr(x) - 0.5 * sqr(y)",
        "1 + sqr(x) - 2 * x * cos(y)",
        "sqr(x) + switch(lt(x, y), z - sqr(x), log_ndtr(z))",
        "x * (y - 1) + x",
        "z * x**y - z | positive",
        "sqr(x - y) - sqr(y)",
    ),
)
def sum_without_leading_parts(ctx: Context, node: Apply) -> Replacement:
    """Applies where terms cancel the leading part of a function; see `phintys.tensor.leading`."""
    return without_leading_parts(node)


@rule(
    "erfinv(x - 1) -> -erfcinv(x)",
    "erfinv(add(-1, x))",
    given={"x": is_float},
    phase="stabilize",
    law="accurate",
    tested_on=("erfinv(x - 1) | positive", "erfinv(2 * x - 1) | unit interval"),
)
def inverse_beside_the_end(node: Apply, x: TensorVariable) -> Replacement:
    """For ``x`` below 1/2; above, ``x - 1`` is exact."""
    if is_written(x):
        return None
    near = functions.lt(x, 0.5)
    far = functions.erfinv(functions.add(-1, functions.switch(near, 1, x)))
    tail = functions.neg(functions.erfcinv(functions.switch(near, x, 1)))
    return like(node, functions.switch(near, tail, far))


# ------------------------------------------------------------- factors of products and quotients


def factors(v: Variable) -> list[Variable]:
    """The factors of a product or square, squares counted twice; else the variable itself."""
    node = applied(v, "mul")
    found = [v] if node is None else node.inputs
    squared = [(w, argument(w, "sqr")) for w in found]
    return [x for w, base in squared for x in ((w,) if base is None else (base, base))]


def product(of: Sequence[Variable]) -> Variable:
    """The product of one or more factors."""
    return functions.mul(*of) if len(of) > 1 else of[0]


def _one_plus_exp(v: Variable) -> Variable | None:
    """``x`` if ``v`` is ``1 + exp(x)`` of floats, else None."""
    node = applied(v, "add")
    if node is None or len(node.inputs) != 2 or number(node.inputs[0]) != 1:
        return None
    return _float_argument(node.inputs[1], "exp")


def _float_argument(v: Variable, name: str) -> Variable | None:
    """``x`` if ``v`` is ``name(x)`` of floats, else None: negated integers may wrap."""
    x = argument(v, name)
    return x if x is not None and is_float(x) else None


@rule(
    "y * exp(x) / (1 + exp(x)) -> y * sigmoid(x)",
    ops=[TABLE["true_div"]],
    where=at(1, "add", "mul", "sqr"),
    phase="stabilize",
    law="accurate",
    tags=("local_exp_over_1_plus_exp", "local_reciprocal_1_plus_exp"),
    tested_on=(
        "exp(x) / (1 + exp(x))",
        "1 / (1 + exp(-x))",
        "y * exp(x) / (1 + exp(x))",
        "exp(x) / sqr(1 + exp(x))",
        "y / (z * (1 + exp(x)))",
    ),
)
def logistic_factors(ctx: Context, node: Apply) -> Replacement:
    top, below = (factors(v) for v in node.inputs)
    kept: list[Variable] = []
    for v in below:
        x = _one_plus_exp(v)
        if x is None:
            kept.append(v)
            continue
        own = next((w for w in top if argument(w, "exp") is x), None)
        if own is None:
            top.append(functions.sigmoid(functions.mul(-1, x)))
        else:
            top[top.index(own)] = functions.sigmoid(x)
    if len(kept) == len(below):
        return None
    new = product(top)
    return like(node, functions.true_div(new, product(kept)) if kept else new)


@rule(
    "sigmoid(x) * exp(-x) -> sigmoid(-x)",
    "mul(sigmoid(a), exp(b), *rest)",
    given={"a": is_float},
    phase="stabilize",
    law="accurate",
    tags=("local_sigm_times_exp",),
    tested_on=("sigmoid(x) * exp(-x)", "y * sigmoid(-x) * exp(x)"),
)
def sigmoid_times_exponential(
    node: Apply, a: TensorVariable, b: TensorVariable, rest: Sequence[Variable]
) -> Replacement:
    return like(node, product([functions.sigmoid(b), *rest])) if opposite(a, b) else None


@rule(
    "exp(-sqr(x)) / erfc(x) -> 1 / erfcx(x)",
    ops=[TABLE["true_div"]],
    where=at(1, "erfc", "mul", "sqr"),
    phase="stabilize",
    law="accurate",
    tags=("local_grad_log_erfc_neg",),
    tested_on=("exp(-sqr(x)) / erfc(x)", "y * exp(-sqr(x)) / erfc(x)"),
)
def scaled_error_function(ctx: Context, node: Apply) -> Replacement:
    """Stable form of the derivative of log(erfc(x)), in which both parts underflow.

    Below -9 erfc(x) is 2, which is used because erfcx overflows for smaller x.
    """
    top, below = (factors(v) for v in node.inputs)
    for k, v in enumerate(below):
        x = _float_argument(v, "erfc")
        own = None if x is None else next((w for w in top if _is_bell(w, x)), None)
        if x is not None and own is not None:
            scaled = functions.reciprocal(functions.erfcx(x))
            half = functions.mul(0.5, own)
            top[top.index(own)] = functions.switch(functions.lt(x, -9), half, scaled)
            rest = [*below[:k], *below[k + 1 :]]
            new = product(top)
            return like(node, functions.true_div(new, product(rest)) if rest else new)
    return None


def _is_bell(v: Variable, x: Variable) -> bool:
    """Whether ``v`` is ``exp(-x**2)``."""
    exponent = argument(v, "exp")
    square = None if exponent is None else negated(exponent)
    return square is not None and argument(square, "sqr") is x
