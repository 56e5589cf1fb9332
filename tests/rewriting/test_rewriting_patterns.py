"""Patterns: tuples and strings, OpPattern, literals, commutativity, equations, and index keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from integer_ops import (
    Function,
    Lifted,
    add,
    const,
    divmod_,
    f,
    g,
    h,
    integer,
    mul,
    neg,
    show,
    sub,
    text,
)

from phintys.errors import RewriteError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Constant, Variable
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.pattern import PatternNodeRewriter
from phintys.rewriting.rule import equation, rule
from phintys.rewriting.unify import (
    Asterisk,
    ConstrainedVar,
    LiteralString,
    OpPattern,
    PatternVar,
    convert_strs_to_vars,
    equals_literal,
    match_pattern,
    reify_pattern,
)
from phintys.rewriting.walk import in2out

x, y, z = integer("x"), integer("y"), integer("z")
NAMES = {"add": add, "mul": mul, "neg": neg, "sub": sub, "f": f, "g": g, "h": h}


def after(rewriter: Any, *outputs: Variable) -> list[str]:
    fgraph = FunctionGraph([x, y, z], list(outputs), clone=False)
    in2out(rewriter).rewrite(fgraph)
    fgraph.check_integrity()
    return [show(v) for v in fgraph.outputs]


def pattern_cases() -> list[tuple[Any, Any, Variable, str]]:
    positive = {"pattern": "c", "constraint": lambda v: isinstance(v, Constant) and v.data > 0}
    named = OpPattern(Function, name="n")
    whole = {"pattern": (add, "x", "y"), "constraint": lambda v: v.owner.inputs[0] is x}
    return [
        ((f, (g, "x")), (g, "x"), f(g(x)), "g(x)"),
        ((f, (g, "x")), "x", f(g(x)), "x"),
        ((f, (g, "x")), "x", f(f(x)), "f(f(x))"),
        # the same string is the same variable
        ((h, "x", "x"), "x", h(x, x), "x"),
        ((h, "x", "x"), "x", h(x, y), "h(x, y)"),
        ((h, "x", "x"), "x", h(const(2), const(2)), "2"),
        # literals
        ((h, "x", 2), "x", h(x, 2), "x"),
        ((h, "x", 2.0), "x", h(x, 2), "x"),
        ((h, "x", 2), "x", h(x, 3), "h(x, 3)"),
        ((h, "x", const(2)), "x", h(x, 2), "x"),
        ((f, x), y, f(x), "y"),
        ((f, x), y, f(z), "f(z)"),
        ((f, "x"), 5, f(x), "5"),
        # commutativity, with backtracking
        ((add, (f, "x"), "y"), (h, "x", "y"), add(y, f(x)), "h(x, y)"),
        ((add, "x", (f, "x")), "x", add(f(x), x), "x"),
        ((add, "y", (neg, "y")), 0, add(neg(x), x), "0"),
        ((sub, (f, "x"), "y"), "x", sub(y, f(x)), "sub(y, f(x))"),
        # constraints
        ((h, "x", positive), (g, "c"), h(x, 3), "g(3)"),
        ((h, "x", positive), (g, "c"), h(x, -3), "h(x, -3)"),
        ((f, whole), "x", f(add(x, y)), "x"),
        ((f, whole), "x", f(add(y, x)), "f(add(y, x))"),
        (whole, "y", add(x, z), "z"),
        # parameters of ops
        ((named, (named, "x")), "x", f(f(x)), "x"),
        ((named, (named, "x")), "x", f(g(x)), "f(g(x))"),
        ((OpPattern(Function, name=LiteralString("f")), "x"), "x", f(x), "x"),
        ((OpPattern(Function, name=LiteralString("f")), "x"), "x", g(x), "g(x)"),
        ((OpPattern(Lifted, function="s"), "x"), (OpPattern(Lifted, function="s", mark=1), "x"),
         Lifted(f)(x), "Lifted{function=f, mark=1}(x)"),
        # the remaining inputs
        ((add, 0, Asterisk("xs")), (add, Asterisk("xs")), add(x, 0, y, z), "add(x, y, z)"),
        ((h, "x", Asterisk("xs")), (mul, "x", Asterisk("xs")), h(x, y), "mul(x, y)"),
        ((add, "x", "y"), "x", add(x, y, z), "add(x, y, z)"),
    ]  # fmt: skip


@pytest.mark.parametrize("case", pattern_cases(), ids=lambda c: str(c[3]))
def test_pattern_node_rewriter(case: Any) -> None:
    pattern, result, out, expected = case
    rewriter = PatternNodeRewriter(pattern, result)
    fgraph = FunctionGraph([x, y, z], [out], clone=False)
    in2out(rewriter, ignore_newtrees=True).rewrite(fgraph)
    fgraph.check_integrity()
    assert show(fgraph.outputs[0]) == expected


def test_inner_nodes_with_other_users() -> None:
    inner = g(x)
    strict = PatternNodeRewriter((f, (g, "x")), "x")
    loose = PatternNodeRewriter((f, (g, "x")), "x", allow_multiple_clients=True)
    assert after(strict, f(inner), neg(inner)) == ["f(g(x))", "neg(g(x))"]
    assert after(strict, f(g(x)), inner)[0] == "x", "another node, not another user"
    inner = g(x)
    assert after(loose, f(inner), neg(inner)) == ["x", "neg(g(x))"]


def test_only_single_outputs_match() -> None:
    assert after(PatternNodeRewriter((divmod_, "x", "y"), "x"), divmod_(x, y)[0]) == [
        "divmod(x, y).0"
    ]


def test_result_functions_and_their_refusal() -> None:
    def build(fgraph: Any, node: Any, subs: dict[str, Any]) -> Any:
        return g(subs["x"]) if subs["x"] is x else None

    rewriter = PatternNodeRewriter((f, "x"), build, name="mine", values_eq_approx=len)
    assert rewriter.name == "mine"
    fgraph = FunctionGraph([x, y], [f(x), f(y)], clone=False)
    in2out(rewriter).rewrite(fgraph)
    assert [show(v) for v in fgraph.outputs] == ["g(x)", "f(y)"]
    assert fgraph.outputs[0].tag.values_eq_approx is len


def test_tracks_and_get_nodes() -> None:
    with pytest.raises(ValueError, match="get_nodes"):
        PatternNodeRewriter((f, "x"), "x", tracks=[neg])
    rewriter = PatternNodeRewriter(
        (f, (neg, "x")),
        "x",
        tracks=[neg],
        get_nodes=lambda fgraph, node: [n for n, _ in fgraph.clients[node.outputs[0]]],
    )
    assert rewriter.tracks() == [neg]
    assert after(rewriter, f(neg(x)), f(x)) == ["x", "f(x)"]


def test_illegal_patterns() -> None:
    with pytest.raises(TypeError, match="apply an op"):
        PatternNodeRewriter("x", "x")
    with pytest.raises(ValueError, match="last"):
        PatternNodeRewriter((add, Asterisk("xs"), "x"), "x")
    with pytest.raises(TypeError, match="OpPattern"):
        OpPattern("Function")


def test_matching_helpers() -> None:
    names: dict[str, Any] = {}
    pattern = convert_strs_to_vars((f, (g, "a"), "b", "a"), names)
    assert set(names) == {"a", "b"} and isinstance(names["a"], PatternVar)
    a = names["a"]
    node = Function("f")(g(x), y, x).owner
    found = match_pattern(pattern, node)
    assert found == {a: x, names["b"]: y}
    assert match_pattern(pattern, node, {a: y}) is None
    assert show(reify_pattern(convert_strs_to_vars((h, "b", "a"), names), found)) == "h(y, x)"
    even = ConstrainedVar(lambda v: isinstance(v, Constant) and v.data % 2 == 0, "even")
    assert match_pattern(convert_strs_to_vars((f, even)), f(const(3)).owner) is None
    assert OpPattern(Function, {"name": LiteralString("f")}).match_op(f)
    assert not OpPattern(Function, name=LiteralString("f")).match_op(Lifted(f))
    assert OpPattern(Lifted, function=OpPattern(Function)).match_op(Lifted(f))
    assert OpPattern(f).match_op(Function("f")) and not OpPattern(f).match_op(g)


@given(
    st.sampled_from(["int8", "int64", "float32", "float64", "bool", "complex128"]),
    st.integers(0, 1),
    st.lists(st.integers(0, 3), max_size=3),
)
def test_literals_match_any_dtype_and_shape(dtype: str, value: int, shape: list[int]) -> None:
    data = np.full(shape, value, dtype)
    constant = Constant(integer, data)
    assert equals_literal(constant, value) == (data.size > 0)
    assert equals_literal(constant, float(value)) == (data.size > 0)
    assert not equals_literal(constant, 1 - value)
    if data.size > 1:
        data.flat[-1] = 1 - value
        assert not equals_literal(constant, value)
    assert not equals_literal(Constant(text, "1"), 1)


# ------------------------------------------------------------------------------ equations


def test_equations_are_traced_lazily_and_once() -> None:
    calls: list[int] = []

    def left(a: Any) -> Any:
        calls.append(1)
        return f(neg(a))

    made = rule("f(-a) -> a", lhs=left, rhs=lambda a: a, types={"a": integer})
    assert not calls
    rules = RuleSet([made])
    for _ in range(2):
        fgraph = FunctionGraph([x], [f(neg(x))], clone=False)
        rules.apply(fgraph)
        assert fgraph.outputs == [x]
    assert calls == [1]
    assert made.file == __file__ and made.line > 0 and made.tracks() == [f]


def test_equation_options() -> None:
    types = {"a": integer, "b": integer}

    def run(made: Any, *outputs: Variable) -> list[str]:
        fgraph = FunctionGraph([x, y], list(outputs), clone=False)
        RuleSet([made]).apply(fgraph)
        return [show(v) for v in fgraph.outputs]

    only_x = equation("h(a, b) -> b", namespace=NAMES, types=types, when=lambda a: a is x)
    assert run(only_x, h(x, y), h(y, x)) == ["y", "h(y, x)"]
    single = equation("f(g(a)) -> a", namespace=NAMES, types=types, single_use=True)
    inner = g(x)
    assert run(single, f(inner), inner) == ["f(g(x))", "g(x)"]
    assert run(single, f(g(x))) == ["x"]
    one = equation("add(1, a) -> f(a)", namespace=NAMES, types=types)
    assert run(one, add(x, 1), add(2, x)) == ["f(x)", "add(2, x)"]
    other_type = rule("f(a) -> t", lhs=lambda a: f(a), rhs=lambda a: text("t"), types=types)
    assert run(other_type, f(x)) == ["f(x)"], "a match that does not fit does not count"
    assert f_transformed(one) == "f(x)"


def f_transformed(made: Any) -> str:
    """A rule used as a plain node rewriter."""
    fgraph = FunctionGraph([x], [add(x, 1)], clone=False)
    in2out(made).rewrite(fgraph)
    return show(fgraph.outputs[0])


def test_illegal_rules() -> None:
    with pytest.raises(ValueError, match="->"):
        equation("f(x) = x")
    with pytest.raises(ValueError, match="not an expression"):
        equation("f(x -> x", namespace=NAMES)
    with pytest.raises(ValueError, match="y does not occur"):
        equation("f(x) -> y", namespace=NAMES)
    with pytest.raises(TypeError, match="both lhs and rhs"):
        rule("half", lhs=lambda a: f(a))
    with pytest.raises(TypeError, match="belong to lhs"):
        rule("half", when=lambda a: True)
    with pytest.raises(ValueError, match="not a law"):
        rule("lawless", law="always")(lambda ctx, node: None)
    with pytest.raises(ValueError, match="no op"):
        rule("nowhere", ops=[])(lambda ctx, node: None)
    root_only = equation("x -> x", namespace=NAMES, types={"x": integer})
    with pytest.raises(TypeError, match="must apply an op"):
        RuleSet([root_only]).apply(FunctionGraph([x], [f(x)], clone=False))


@pytest.mark.parametrize(
    ("text_", "message"),
    [("f(x -> x", "not an expression"), ("f(x) -> y", "y does not occur")],
)
def test_deferred_equations_are_checked_when_first_met(text_: str, message: str) -> None:
    made = equation(text_, namespace=NAMES, types={"x": integer}, ops=[f], deferred=True)
    rules = RuleSet([made])
    rules.apply(FunctionGraph([x], [g(x)], clone=False))
    with pytest.raises(RewriteError, match=message):
        rules.apply(FunctionGraph([x], [f(x)], clone=False))


@given(
    st.recursive(
        st.sampled_from(["x", "y", "1", "-2", "NINE"]),
        lambda e: st.one_of(
            e.map("f({})".format),
            e.map("neg({})".format),
            st.tuples(e, e).map(lambda p: f"add({p[0]}, {p[1]})"),
        ),
        max_leaves=6,
    ).filter(lambda text_: "(" in text_)
)
def test_patterns_read_from_text_are_those_traced(text_: str) -> None:
    names = {**NAMES, "NINE": 9.0}
    types = {"x": integer, "y": integer}
    made = equation(f"{text_} -> 1", namespace=names, types=types)
    found = made.sides.read()
    assert found is not None
    pattern, names_ = found
    assert set(names_) == {name for name in "xy" if name in text_}
    if "NINE" in text_:
        assert repr(pattern).count("9.0") == text_.count("NINE")
        return
    assert repr(pattern) == repr(made.sides.traced()[0])
    assert made.tracks() == [made.pattern.op_match]


def test_functions_that_are_no_ops_are_traced() -> None:
    names = {**NAMES, "twice": lambda a: add(a, a)}
    made = equation("f(twice(x)) -> x", namespace=names, types={"x": integer})
    assert made.sides.read() is None and made.tracks() == [f]
    fgraph = FunctionGraph([x], [f(add(g(x), g(x)))], clone=False)
    RuleSet([made]).apply(fgraph)
    assert show(fgraph.outputs[0]) == "g(x)"


def test_rules_find_ops_by_instance_class_pattern_and_key() -> None:
    for tracks in ([f], [Function], [OpPattern(Function, name=LiteralString("f"))], None):
        hits: list[str] = []
        spy = rule("spy", ops=tracks)(lambda ctx, node, hits=hits: hits.append(str(node.op)))
        fgraph = FunctionGraph([x], [f(x), Lifted(f)(x)], clone=False)
        RuleSet([spy]).apply(fgraph)
        assert hits == ["Lifted{function=f, mark=0}", "f"], "lifted ops expose what they lift"
    inner = equation("f(g(a)) -> a", namespace=NAMES, types={"a": integer})
    lifted = rule(
        "lifted", lhs=lambda a: Lifted(f)(Lifted(g)(a)), rhs=lambda a: a, types={"a": integer}
    )
    mixed = Lifted(f, 1)(Lifted(g, 2)(x))
    fgraph = FunctionGraph([x], [mixed], clone=False)
    RuleSet([inner]).apply(fgraph)
    assert fgraph.outputs == [mixed], "an equation about functions says nothing about lifted ones"
    RuleSet([lifted]).apply(fgraph)
    assert fgraph.outputs == [x], "but one about lifted ops ignores how they are lifted"


def test_a_raising_equation_is_an_error() -> None:
    bad = rule("f(a) -> ?", lhs=lambda a: f(a), rhs=lambda a: 1 // 0, types={"a": integer})
    with pytest.raises(RewriteError, match=r"f\(a\) -> \?.*ZeroDivisionError"):
        RuleSet([bad]).apply(FunctionGraph([x], [f(x)], clone=False))
