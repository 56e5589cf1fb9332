"""Sums of fractions whose terms cancel over the common denominator.

``p - p**2 / (p + r)``, the variance in a Kalman filter, cancels where ``r`` is small; so do the
derivatives of many logarithms of densities, such as ``y / x - (y + a) / (x + a)``.
"""

from __future__ import annotations

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.op import TABLE
from phintys.tensor.apart import monomial, sum_of_terms
from phintys.tensor.elemwise import function_of
from phintys.tensor.fractions import without_cancellation
from phintys.tensor.rules.match import is_float, like, some

#: Factors of a term that are looked at, at most, and terms of a sum.
MOST_FACTORS, MOST_TERMS = 12, 8
#: Functions whose results may cancel other terms.
FACTORS = ("add", "exp", "pow", "sigmoid", "switch")


@rule(
    "x - x**2 / (x + y) -> x * y / (x + y), and other fractions",
    ops=[TABLE["add"]],
    where=some("mul", "true_div", "reciprocal"),
    phase="stabilize",
    law="finite",
    tags=("shape_unsafe",),
    tested_on=(
        "1 - x / (x + y) | positive",
        "x - sqr(x) / (x + y) | positive",
        "y / x - (y + z) / (x + z) | positive",
        "1 / x - 1 / (x + y) | positive",
        "1 - 2 * x / (1 + x) | positive",
        "(y + 1) * x / (y + x) - x | positive",
        "(x - y) * z - (x + 1) * z",
        "(x - y) / y + sqr((x - y) / y) | positive",
        "x * (x - z * y) / (1 - sqr(z)) + y * (y - z * x) / (1 - sqr(z)) - sqr(x) - sqr(y)"
        " | unit interval",
        "y - y * exp(x)",
        "2 * z * sigmoid(x) - z",
        "z * x**y - z | positive",
    ),
)
def cancelling_fractions(ctx: Context, node: Apply) -> Replacement:
    """Applies if a factor of a term is one of `FACTORS`; see `phintys.tensor.fractions`."""
    if len(node.inputs) > MOST_TERMS or not is_float(node.outputs[0]):
        return None
    if not any(_has_factor(v) for v in node.inputs):
        return None
    found = without_cancellation(node.inputs)
    return None if found is None else like(node, found)


@rule(
    "(y / exp(x)) * exp(x) -> y",
    ops=[TABLE["mul"], TABLE["true_div"]],
    where=some("mul", "true_div", "exp", "sqr"),
    phase="stabilize",
    law="finite",
    tags=("shape_unsafe",),
    tested_on=("(y / exp(x)) * z * exp(x)", "(y * exp(x)) / sqr(z * exp(x))"),
)
def cancelling_exponentials(ctx: Context, node: Apply) -> Replacement:
    """Factors of nested products and quotients, whatever else these are used for."""
    (out,) = node.outputs
    if not is_float(out) or not _has_opposite_exponentials(out):
        return None
    found = monomial(out)
    return None if found is None else like(node, sum_of_terms([found]))


def _has_opposite_exponentials(v: Variable) -> bool:
    """Whether an exponential multiplies in one place and divides in another."""
    powers: dict[Variable, int] = {}
    stack = [(v, 1)]
    for _ in range(MOST_FACTORS):
        if not stack:
            return False
        w, sign = stack.pop()
        name, inputs = function_of(w)
        if name == "exp" and powers.setdefault(w, sign) != sign:
            return True
        if name in ("mul", "sqr"):
            stack += [(u, sign) for u in inputs]
        elif name == "true_div":
            stack += [(inputs[0], sign), (inputs[1], -sign)]
        elif name == "reciprocal":
            stack.append((inputs[0], -sign))
    return False


def _has_factor(v: Variable) -> bool:
    """Whether a sum, or another of `FACTORS`, is a factor of a product or quotient."""
    stack = [v]
    for _ in range(MOST_FACTORS):
        if not stack:
            return False
        w = stack.pop()
        name, inputs = function_of(w)
        if name in FACTORS and w is not v:
            return True
        if name in ("mul", "true_div", "reciprocal", "sqr"):
            stack += inputs
    return False
