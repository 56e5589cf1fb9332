"""Rules given by the text of a pattern and a function of what it binds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from integer_ops import Function, Lifted, add, f, g, h, integer, mul, neg, show, sub

from phintys.errors import RewriteError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Constant, Variable
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.rule import PatternRule, rule
from phintys.rewriting.unify import is_constant

x, y, z = integer("x"), integer("y"), integer("z")
NAMES = {"add": add, "mul": mul, "neg": neg, "sub": sub, "f": f, "g": g, "h": h}
NAMES |= {"__add__": add, "Function": Function, "Lifted": Lifted}


def made(pattern: str, build: Any, **options: Any) -> PatternRule:
    found: PatternRule = rule(pattern, pattern, namespace=NAMES, **options)(build)
    return found


def after(pattern: str, build: Any, *outputs: Variable, **options: Any) -> list[str]:
    fgraph = FunctionGraph([x, y, z], list(outputs), clone=False)
    RuleSet([made(pattern, build, **options)]).apply(fgraph)
    fgraph.check_integrity()
    return [show(v) for v in fgraph.outputs]


CASES: list[tuple[str, Any, Variable, str]] = [
    ("f(a)", lambda a: a, f(x), "x"),
    ("f(g(a))", lambda a: a, f(g(x)), "x"),
    ("f(g(a))", lambda a: a, f(h(x, y)), "f(h(x, y))"),
    ("f | g(a)", lambda a: a, g(x), "x"),
    ("h(f | g(a), b)", lambda a, b: sub(a, b), h(g(x), y), "sub(x, y)"),
    ("h(f | g(a), b)", lambda a, b: sub(a, b), h(x, g(y)), "h(x, g(y))"),
    ("h(a, a)", lambda a: a, h(x, x), "x"),
    ("h(a, a)", lambda a: a, h(x, y), "h(x, y)"),
    ("h(_, a)", lambda a: a, h(x, y), "y"),
    ("h(_, _)", lambda node: node.inputs[0], h(x, y), "x"),
    ("f(inner := h(a, _))", lambda inner, a: mul(inner, a), f(h(x, y)), "mul(h(x, y), x)"),
    ("add(*terms)", lambda terms: mul(*terms), add(x, y, z), "mul(x, y, z)"),
    ("add(f(a), *terms)", lambda a, terms: mul(a, *terms), add(x, f(y), z), "mul(y, x, z)"),
    ("h(add(a, *s), mul(b, *s))", lambda a, b, s: sub(a, b, *s),
     h(add(x, y, z), mul(x, y, z)), "sub(x, x, y, z)"),
    ("h(add(a, *s), mul(b, *s))", lambda a, b, s: sub(a, b, *s),
     h(add(x, y, z), mul(x, y)), "h(add(x, y, z), mul(x, y))"),
    ("h(add(a, *_), mul(b, *_))", lambda a, b: sub(a, b), h(add(x, y, z), mul(y, z)), "sub(x, y)"),
    ("add(2, a)", lambda a: a, add(x, 2), "x"),
    ("add(-2, a)", lambda a: a, add(x, 2), "add(x, 2)"),
    ("f(2 + a)", lambda a: a, f(add(x, 2)), "x"),
    ("Lifted(a, mark=m)", lambda a, m: add(a, m), Lifted(f, 3)(x), "add(x, 3)"),
    ("Lifted(a, mark=3)", lambda a: a, Lifted(f, 3)(x), "x"),
    ("Lifted(a, mark=3)", lambda a: a, Lifted(f, 2)(x), "Lifted{function=f, mark=2}(x)"),
    ("Lifted(Lifted(a, mark=m), mark=m)", lambda a: a, Lifted(f, 3)(Lifted(g, 3)(x)), "x"),
    ("Function(a, name='g')", lambda a: a, g(f(x)), "f(x)"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "build", "given", "expected"), CASES)
def test_patterns(pattern: str, build: Any, given: Variable, expected: str) -> None:
    assert after(pattern, build, given) == [expected]


def test_conditions() -> None:
    given: Mapping[str, Any] = {"a": lambda v: v is y}
    assert after("f(a)", lambda a: a, f(x), f(y), given=given) == ["f(x)", "y"]
    assert after("add(a, b)", lambda a, b: sub(a, b), add(x, y), given=given) == ["sub(y, x)"]
    inner = {"i": lambda v: v.owner.inputs[0] is y}
    assert after("f(i := g(_))", lambda i: i, f(g(x)), f(g(y)), given=inner) == ["f(g(x))", "g(y)"]
    once = g(x)
    assert after("f(g(a))", lambda a: a, f(once), once, single_use=True) == ["f(g(x))", "g(x)"]


def test_where_the_right_side_declines_the_next_match_is_tried() -> None:
    def build(a: Any, b: Any, rest: Any) -> Any:
        return sub(a, b, *rest) if a is b else None

    outputs = add(f(x), f(y), g(y)), add(f(x), g(y))
    assert after("add(f(a), g(b), *rest)", build, *outputs) == [
        "sub(y, y, f(x))",
        "add(f(x), g(y))",
    ]


def test_the_table_leaves_out_what_cannot_match() -> None:
    def producers(v: Any) -> list[Any]:
        return [
            Constant if isinstance(w, Constant) else w.owner and w.owner.op for w in v.owner.inputs
        ]

    nested = made("h(f | g(_), k)", lambda k: k, given={"k": is_constant})
    assert nested.tracks() == [h]
    cases = {h(g(x), 1): True, h(g(x), y): False, h(1, g(x)): False, h(neg(x), 1): False}
    assert {v: nested.may_apply(producers(v)) for v in cases} == cases
    unordered = made("add(f(_), 2, *_)", lambda: x)
    cases = {add(1, f(x)): True, add(y, 2, f(x)): True, add(f(x), y): False, add(1, y): False}
    assert {v: unordered.may_apply(producers(v)) for v in cases} == cases
    assert not made("f(a)", lambda a: a).may_apply([None, None])
    by_attribute = made("Lifted(_, function=k, mark=2)", lambda: x)
    assert by_attribute.tracks() == [Lifted]
    assert by_attribute.fits_op(Lifted(f, 2)) and not by_attribute.fits_op(Lifted(f, 3))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("f(x", "not an expression"),
        ("x", "does not apply an op"),
        ("unknown(x)", "does not apply an op"),
        ("f(x) + g(x)", "must be a call"),
        ("f(Function)", "no pattern"),
        ("f(y)", "does not bind x"),
    ],
)
def test_illegal_patterns(pattern: str, message: str) -> None:
    with pytest.raises((ValueError, RewriteError), match=message):
        after(pattern, lambda x: x, f(y))


def test_conditions_of_unknown_variables() -> None:
    with pytest.raises(ValueError, match="does not bind c"):
        made("f(a)", lambda a: a, given={"c": is_constant}).pattern  # noqa: B018
