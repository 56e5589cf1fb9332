"""Every rule applies to its examples, and both sides agree under its law."""

from __future__ import annotations

import ast
import itertools
from functools import cache

import numpy as np
import pytest
from expressions import EMPTY, PATTERNS, VARIABLES, build, draw, evaluate, folded, where_it_applies

from phintys.rewriting.check import check_rule, rewritten, sides
from phintys.rewriting.rule import Equation
from phintys.rewriting.unify import rule_key
from phintys.tensor.rules import RULES
from phintys.tensor.type import TensorType

FUNCTIONS = [r for r in RULES if not isinstance(r, Equation)]
EQUATIONS = [r for r in RULES if isinstance(r, Equation)]
ANY_RANK = frozenset("xyz")
#: variables of one rank
FIXED = frozenset(VARIABLES) | {"c"}
RTOL = {"float64": 1e-10, "float32": 3e-4}


def examples(rules):
    return [
        pytest.param(r, text, id=f"{r.name} at {text}") for r in rules for text in r.tested_on or ()
    ]


@pytest.mark.parametrize("rule", EQUATIONS, ids=lambda r: r.name)
def test_the_pattern_read_from_the_text_is_the_traced_one(rule):
    """Left sides are not traced when a rule is first tried: reading them is faster."""
    pattern, names = rule.sides.traced()
    assert repr(rule.sides.read()) == repr((pattern, names))
    assert list(rule.tracks()) == [rule_key(pattern.op_match)]


def split_domain(text):
    expression, _, domain = text.partition("|")
    return expression.strip(), domain.strip() or "reals"


def draws(rule, inputs, domain, dtype="float64"):
    rng = np.random.default_rng(len(rule.name))
    drawn = [[draw(rng, v, domain) for v in inputs] for _ in range(4)]
    if rule.law != "finite":
        drawn.append([with_special(v, rule.law) for v in drawn[0]])
    return drawn


def with_special(value, law):
    """Values with a NaN, and for exact rules zeros and infinities, in some places."""
    value = value.copy()
    if value.dtype.kind != "f" or not value.size:
        return value
    special = [np.nan, np.inf, -np.inf, 0.0] if law == "exact" else [np.nan]
    value.reshape(-1)[: len(special)] = special[: value.size]
    return value


def check(rule, inputs, out, domain, dtype="float64"):
    failures = check_rule(
        rule, inputs, [out], draws(rule, inputs, domain), evaluate, RTOL[dtype], RTOL[dtype]
    )
    assert not failures, "\n".join(map(str, failures))
    (new,) = rewritten(rule, [out])
    assert out.type.is_super(new.type), f"{rule.name}: {out.type} became {new.type}"


@pytest.mark.parametrize("rule", FUNCTIONS, ids=str)
def test_has_examples(rule):
    assert rule.tested_on, f"{rule.name} has no examples"


@pytest.mark.parametrize("rule, text", examples(FUNCTIONS))
def test_example(rule, text):
    expression, domain = split_domain(text)
    out, inputs = build(expression)
    out = where_it_applies(rule, out)
    check(rule, inputs, out, domain)


@cache
def names_in(expression):
    return {n.id for n in ast.walk(ast.parse(expression, mode="eval")) if isinstance(n, ast.Name)}


def of_any_rank(rule):
    """The examples of a rule whose only variables are x, y and z."""
    texts = {text: names_in(split_domain(text)[0]) for text in rule.tested_on or ()}
    return [t for t, names in texts.items() if ANY_RANK & names and not names & FIXED]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rule", [*filter(of_any_rank, FUNCTIONS)], ids=str)
def test_example_of_every_rank(rule, dtype):
    """Examples with x, y and z: where the rule applies to other ranks, its law holds too."""
    for text, pattern in itertools.product(of_any_rank(rule), PATTERNS):
        expression, domain = split_domain(text)
        out, inputs = build(expression, pattern, dtype)
        try:
            out = where_it_applies(rule, out)
            rewritten(rule, [out])
        except AssertionError:
            always = pattern in ("scalars", "vectors")
            assert not always, f"{rule.name} does not apply to {text}, {pattern}"
            continue
        check(rule, inputs, out, domain, dtype)


@pytest.mark.parametrize("rule", EQUATIONS, ids=str)
def test_equation(rule):
    inputs, out = sides(rule)
    check(rule, inputs, out, rule.tested_on or "reals")


UNTYPED = [
    r
    for r in EQUATIONS
    if r.types is None and r.tested_on not in ("booleans", "integers", "complex")
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rule", UNTYPED, ids=str)
def test_equation_of_every_rank(rule, dtype):
    inputs, _ = sides(rule)
    for pattern, shapes in PATTERNS.items():
        others = [TensorType(dtype, shape)(v.name) for v, shape in zip(inputs, shapes)]
        moved = folded(rule.lhs(*others))
        try:
            rewritten(rule, [moved])
        except AssertionError:
            assert pattern not in ("scalars", "vectors"), f"{rule.name} does not apply to {pattern}"
            continue
        check(rule, others, moved, rule.tested_on or "reals", dtype)


@pytest.mark.parametrize("rule", FUNCTIONS, ids=str)
def test_example_with_empty_axes(rule):
    """Lengths are 0 where types leave them open; what repeats along them may be infinite."""
    for text in rule.tested_on:
        expression, domain = split_domain(text)
        out, inputs = build(expression)
        check_empty(rule, inputs, where_it_applies(rule, out), domain)


def check_empty(rule, inputs, out, domain):
    """Errors of both sides are not compared: lengths that are exchanged need not fit."""
    rng = np.random.default_rng(0)
    drawn = []
    for lengths in EMPTY:
        values = [draw(rng, v, domain, lengths) for v in inputs]
        if any(v.size == 0 for v in values):
            drawn += [values, *([filled(v, number) for v in values] for number in (np.inf, 0))]
    failures = check_rule(rule, inputs, [out], drawn, evaluate, 1e-10, 1e-10)
    failures = [f for f in failures if not isinstance(f.before, Exception)]
    assert not failures, "\n".join(map(str, failures))


def filled(value, number):
    """A number in place of all floats."""
    return np.full_like(value, number) if value.dtype.kind == "f" else value
