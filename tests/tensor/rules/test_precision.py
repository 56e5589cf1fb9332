"""What rules make of an expression is as precise as its elements' type allows.

The left side is evaluated with many digits, so that it neither cancels nor overflows; the right
side with float64, at ordinary and extreme arguments.
"""

from __future__ import annotations

import itertools
import re

import mpmath
import numpy as np
import pytest
from exact import exact
from expressions import build, evaluate, folded

from phintys.rewriting import rewrite_graph
from phintys.rewriting.check import sides
from phintys.rewriting.rule import Rule
from phintys.tensor.rules import stable

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


def precise_examples():
    for rule in stable.EQUATIONS:
        if any(name in rule.name for name in ("log(i0(", "iv(", "kv(")):
            continue  # compared by the tests of laws
        yield pytest.param(lambda rule=rule: sides(rule)[::-1], id=rule.name)
    for rule in vars(stable).values():
        if not isinstance(rule, Rule):
            continue
        for text in rule.tested_on:
            text = text.partition("|")[0]
            if "erfinv" in text:
                continue  # compared by the tests of laws: the exact value has too few digits
            if not set(re.findall(r"\b[a-z]\b|\b[A-Z]\b", text)) <= set("xyz"):
                continue  # of vectors and matrices
            yield pytest.param(lambda text=text: build(text, "scalars"), id=text)


@pytest.mark.parametrize("make", list(precise_examples()))
def test_precision(make):
    out, inputs = make()
    new = rewrite_graph(out, include=("canonicalize", "stabilize"), clone=True)
    points = POINTS if len(inputs) == 1 else POINTS[1::3]
    values = np.array(list(itertools.product(points, repeat=len(inputs))))
    expected = exact(folded(out), dict(zip(inputs, values.T, strict=True)))
    worst = 0.0
    for arguments, value in zip(values, expected, strict=True):
        if value is None or not mpmath.isfinite(value):
            continue
        given = dict(zip(inputs, map(np.asarray, arguments), strict=True))
        (found,) = evaluate([new], given)
        worst = max(worst, error(float(found), value, arguments))
    assert worst < 1


def error(found, expected, values):
    """The distance in units of what rounding the arguments and the result explains."""
    with np.errstate(over="ignore"):
        nearest = float(expected)
    if nearest == found or abs(expected) < 1e-300:
        return 0.0 if abs(found) < 1e-290 or nearest == found else np.inf
    relative = abs((mpmath.mpf(found) - expected) / expected) if np.isfinite(found) else np.inf
    return float(relative) / (64 * EPS * (1 + max(map(abs, values)) * 4))
