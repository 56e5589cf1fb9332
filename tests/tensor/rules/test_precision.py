"""What rules make of an expression is as precise as its elements' type allows.

The left side is evaluated with 700 digits, so that it neither cancels nor overflows; the right side
with float64, at ordinary and extreme arguments.
"""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
from expressions import build, evaluate, folded

from phintys.graph.traversal import io_toposort
from phintys.graph.variable import Constant
from phintys.rewriting import rewrite_graph
from phintys.rewriting.check import sides
from phintys.rewriting.rule import Rule
from phintys.tensor.rules import stable

DIGITS = 700
POINTS = (
    -700.0,
    -40.0,
    -3.0,
    -1.0,
    -0.3,
    -1e-5,
    -1e-17,
    0.0,
    1e-17,
    1e-5,
    0.3,
    1.0,
    3.0,
    40.0,
    700.0,
)
EPS = np.finfo("float64").eps

FUNCTIONS = {
    "add": lambda *xs: mpmath.fsum(xs),
    "mul": lambda *xs: mpmath.fprod(xs),
    "sub": lambda x, y: x - y,
    "neg": lambda x: -x,
    "true_div": lambda x, y: x / y,
    "reciprocal": lambda x: 1 / x,
    "exp": mpmath.exp,
    "log": mpmath.log,
    "log1p": lambda x: mpmath.log(1 + x),
    "expm1": lambda x: mpmath.exp(x) - 1,
    "sqrt": mpmath.sqrt,
    "sqr": lambda x: x * x,
    "abs": abs,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log(1 + mpmath.exp(x)),
    "log1mexp": lambda x: mpmath.log(1 - mpmath.exp(x)),
    "logaddexp": lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "cos": mpmath.cos,
}


def exact(out, given):
    """The value of a 0-d expression with many digits; None where it is not a real number."""
    values = {v: mpmath.mpf(x) for v, x in given.items()}
    for node in io_toposort(list(given), [out]):
        args = [
            mpmath.mpf(float(v.data)) if isinstance(v, Constant) else values[v] for v in node.inputs
        ]
        try:
            found = FUNCTIONS[node.op.scalar_op.name](*args)
        except (ZeroDivisionError, ValueError):
            return None
        if isinstance(found, mpmath.mpc) or not mpmath.isfinite(found):
            return None
        values[node.outputs[0]] = found
    return values[out]


def precise_examples():
    for rule in stable.EQUATIONS:
        if "iv(" in rule.name or "kv(" in rule.name:
            continue  # compared by the tests of laws
        yield pytest.param(lambda rule=rule: sides(rule)[::-1], id=rule.name)
    for rule in vars(stable).values():
        if not isinstance(rule, Rule):
            continue
        for text in rule.tested_on:
            text = text.partition("|")[0]
            yield pytest.param(lambda text=text: build(text, "scalars"), id=text)


@pytest.mark.parametrize("make", list(precise_examples()))
def test_precision(make):
    out, inputs = make()
    new = rewrite_graph(out, include=("canonicalize", "stabilize"))
    points = POINTS if len(inputs) == 1 else POINTS[1::3]
    worst = 0.0
    with mpmath.workdps(DIGITS):
        for values in itertools.product(points, repeat=len(inputs)):
            given = dict(zip(inputs, map(np.float64, values), strict=True))
            expected = exact(folded(out), given)
            if expected is None:
                continue
            (found,) = evaluate([new], {v: np.asarray(x) for v, x in given.items()})
            worst = max(worst, error(float(found), expected, values))
    assert worst < 1


def error(found, expected, values):
    """The distance in units of what rounding the arguments and the result explains."""
    with np.errstate(over="ignore"):
        nearest = float(expected)
    if nearest == found or abs(expected) < 1e-300:
        return 0.0 if abs(found) < 1e-290 or nearest == found else np.inf
    relative = abs((mpmath.mpf(found) - expected) / expected) if np.isfinite(found) else np.inf
    return float(relative) / (64 * EPS * (1 + max(map(abs, values)) * 4))
