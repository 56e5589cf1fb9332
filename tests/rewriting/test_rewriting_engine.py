"""The engine: normal forms, merging, chains, uses, errors, growth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from integer_ops import (
    Function,
    add,
    const,
    divmod_,
    evaluate,
    f,
    g,
    h,
    integer,
    mul,
    narrow,
    neg,
    overwrite,
    show,
    sub,
    text,
)
from tiers import few

from phintys.errors import InconsistencyError, RewriteError
from phintys.graph.features import Feature
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import inherit, locate
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.engine import Normalizer, RuleSet
from phintys.rewriting.install import install
from phintys.rewriting.rule import Rule, equation, rule

NAMES = {"add": add, "mul": mul, "neg": neg, "sub": sub, "f": f, "g": g, "h": h}
INTS = {n: integer for n in "xyz"}
x, y, z = integer("x"), integer("y"), integer("z")


def eq(text_: str, **options: Any) -> Rule:
    return equation(text_, namespace=NAMES, types=INTS, **options)


def rewritten(rules: list[Rule], *outputs: Variable) -> list[str]:
    fgraph = FunctionGraph([x, y, z], list(outputs), clone=False)
    RuleSet(rules).apply(fgraph)
    fgraph.check_integrity()
    return [show(v) for v in fgraph.outputs]


@rule("a + (b + c) -> a + b + c", ops=[add, sub, neg], outermost=True)
def flatten(ctx: Any, node: Any) -> Any:
    if node.op != add:
        return None
    terms: list[Variable] = []
    stack = list(reversed(node.inputs))
    while stack:
        v = stack.pop()
        if v.owner is not None and v.owner.op == add and ctx.single_use(v):
            stack.extend(reversed(v.owner.inputs))
        else:
            terms.append(v)
    return add(*terms) if len(terms) > len(node.inputs) else None


@rule("fold constants")
def fold(ctx: Any, node: Any) -> Any:
    if all(isinstance(v, Constant) for v in node.inputs):
        values = evaluate(node.outputs, {})
        return [const(value) for value in values]
    return None


POOL = [
    eq("add(x, 0) -> x"),
    eq("mul(x, 1) -> x"),
    eq("neg(neg(x)) -> x"),
    eq("sub(x, y) -> add(x, neg(y))"),
    eq("mul(x, 0) -> 0 * 1", when=lambda x: False),
    eq("h(x, x) -> neg(x)"),
    eq("f(neg(x)) -> add(mul(-3, x), 1)"),
    eq("g(neg(x)) -> g(x)", single_use=True),
    flatten,
    fold,
]


# ------------------------------------------------------------------------------- examples


def test_inputs_are_normal_before_a_rule_sees_them() -> None:
    assert rewritten([eq("neg(neg(x)) -> x")], neg(neg(neg(neg(neg(x)))))) == ["neg(x)"]


def test_results_of_rules_are_normalized() -> None:
    rules = [eq("sub(x, y) -> add(x, neg(y))"), eq("neg(neg(x)) -> x"), eq("add(x, 0) -> x")]
    assert rewritten(rules, sub(0, neg(sub(x, 0)))) == ["add(x, neg(0))"]
    assert rewritten([*rules, fold], sub(0, neg(sub(x, 0)))) == ["x"]


def test_equal_nodes_become_one() -> None:
    fgraph = FunctionGraph(
        [x, y], [f(add(x, 3)), g(f(add(x, const(3)))), f(add(x, y))], clone=False
    )
    assert RuleSet().apply(fgraph)
    assert len(fgraph.apply_nodes) == 5
    assert fgraph.outputs[1].owner.inputs[0] is fgraph.outputs[0]
    assert not RuleSet().apply(fgraph)


def test_variables_that_are_not_replaced_keep_their_identity() -> None:
    middle = f(neg(neg(x)))
    out = g(middle)
    fgraph = FunctionGraph([x], [out], clone=False)
    assert RuleSet(POOL).apply(fgraph)
    assert fgraph.outputs == [out] and out.owner.inputs == [middle] and middle.owner.inputs == [x]


def test_types_narrow_downstream_and_are_kept() -> None:
    keep_type = Function("keep_type")
    keep_type.make_node = lambda v: Apply(keep_type, [v], [v.type()])
    out = keep_type(f(x))
    fgraph = FunctionGraph([x], [out], clone=False)

    @rule("f(x) -> narrow(x)", ops=[f])
    def to_narrow(ctx: Any, node: Any) -> Any:
        return narrow(node.inputs[0])

    RuleSet([to_narrow]).apply(fgraph)
    assert fgraph.outputs[0].type.small

    @rule("keep_type(x) -> g(x)", ops=[keep_type])
    def widen(ctx: Any, node: Any) -> Any:
        return g(node.inputs[0])

    RuleSet([widen]).apply(fgraph)
    assert show(fgraph.outputs[0]) == "Narrow(g(Narrow(x)))", "a wider replacement is narrowed"


def test_several_outputs() -> None:
    quotient, remainder = divmod_(x, neg(neg(y)))

    @rule("divmod(x, y) -> f(x), g(y)", ops=[divmod_])
    def split(ctx: Any, node: Any) -> Any:
        a, b = node.inputs
        return [f(a), g(b) if ctx.uses(node.outputs[1]) else None]

    assert rewritten([split, *POOL], add(quotient, remainder)) == ["add(f(x), g(y))"]
    assert rewritten([split], divmod_(x, y)[0]) == ["f(x)"]


def test_a_rule_is_applied_to_one_of_equal_nodes() -> None:
    calls: list[str] = []

    def to_g(ctx: Any, node: Any) -> Any:
        calls.append(show(node.outputs[0]))
        return g(neg(neg(node.inputs[0])))

    rules = [Rule("f -> g", to_g, ops=[f]), eq("neg(neg(x)) -> x")]
    assert rewritten(rules, f(x), mul(f(neg(neg(x))), f(x)), f(y)) == [
        "g(x)",
        "mul(g(x), g(x))",
        "g(y)",
    ]
    assert calls == ["f(y)", "f(x)"]


def test_an_equal_node_may_need_an_output_that_the_first_did_not() -> None:
    @rule("divmod(x, y) -> f(x), g(y)", ops=[divmod_])
    def split(ctx: Any, node: Any) -> Any:
        made = [f(node.inputs[0]), g(node.inputs[1])]
        return [new if ctx.uses(o) else None for o, new in zip(node.outputs, made)]

    quotient, remainder = divmod_(x, y)[0], divmod_(x, y)[1]
    assert rewritten([split], quotient, remainder, divmod_(x, y)[0]) == ["f(x)", "g(y)", "f(x)"]


def test_foreign_roots_are_refused() -> None:
    stranger = integer("stranger")

    @rule("f(x) -> stranger", ops=[f])
    def bad(ctx: Any, node: Any) -> Any:
        return g(stranger)

    fgraph = FunctionGraph([x], [f(x)], clone=False)
    with pytest.raises(RewriteError, match="stranger"):
        RuleSet([bad]).apply(fgraph)
    assert show(fgraph.outputs[0]) == "f(x)"


def test_replacements_inherit_the_users_line() -> None:
    code = compile("0", "model.py", "eval")
    with inherit((code, 0)):
        out = sub(x, y)
    fgraph = FunctionGraph([x, y], [out], clone=False)
    RuleSet(POOL).apply(fgraph)
    for node in fgraph.apply_nodes:
        where = locate(node.origin)
        assert where is not None and where.file == "model.py"


def test_in_place_nodes_and_what_they_destroy_are_left_alone() -> None:
    a, b = f(x), f(x)
    fgraph = FunctionGraph([x], [overwrite(a), overwrite(b), f(x)], clone=False)
    assert not RuleSet(POOL).apply(fgraph)
    assert len(fgraph.apply_nodes) == 5


# ------------------------------------------------------------------------------- failures

BAD_RESULTS = {
    "number": (lambda node: 3, "returned 3"),
    "true": (lambda node: True, "returned True"),
    "dict": (lambda node: {node.outputs[0]: x}, "returned {"),
    "too many": (lambda node: [x, x], "2 variables for 1 output"),
    "wrong type": (lambda node: text("t"), "Text"),
    "not a variable": (lambda node: [4], "not a variable"),
    "raises": (lambda node: 1 // 0, "ZeroDivisionError"),
    "needs itself": (lambda node: f(node.outputs[0]), "depends on what it replaces"),
}


@pytest.mark.parametrize("name", BAD_RESULTS)
def test_illegal_results_name_rule_and_node(name: str) -> None:
    result, message = BAD_RESULTS[name]
    bad = Rule("the bad one", lambda ctx, node: result(node), ops=[g])
    fgraph = FunctionGraph([x], [g(neg(neg(x)))], clone=False)
    before = fgraph.outputs[0]
    with pytest.raises(RewriteError) as caught:
        RuleSet([eq("neg(neg(x)) -> x"), bad]).apply(fgraph)
    assert "the bad one" in str(caught.value) and "g(" in str(caught.value)
    assert message in str(caught.value)
    assert fgraph.outputs[0] is before and show(before) == "g(neg(neg(x)))"
    fgraph.check_integrity()


def test_none_for_a_used_output_is_an_error() -> None:
    q, r = divmod_(x, y)
    bad = Rule("half", lambda ctx, node: [x, None], ops=[divmod_])
    with pytest.raises(RewriteError, match="output 1, which is in use"):
        rewritten([bad], add(q, r))


def test_ping_pong_names_the_rules() -> None:
    there, back = eq("f(x) -> g(x)"), eq("g(x) -> f(x)")
    with pytest.raises(RewriteError) as caught:
        rewritten([there, back], f(x))
    assert "f(x) -> g(x)" in str(caught.value) and "g(x) -> f(x)" in str(caught.value)


def test_divergence_names_the_rule() -> None:
    grow = eq("f(x) -> neg(f(add(x, 1)))")
    with pytest.raises(RewriteError, match=r"do not terminate.*neg"):
        rewritten([grow], f(x))


def test_deep_but_finite_expansions_are_allowed() -> None:
    power = Function("power")

    @rule("power(x, n) -> x * power(x, n - 1)", ops=[power])
    def expand(ctx: Any, node: Any) -> Any:
        base, n = node.inputs
        return mul(base, power(base, n.data - 1)) if n.data > 1 else base

    fgraph = FunctionGraph([x], [power(x, 900)], clone=False)
    RuleSet([expand]).apply(fgraph)
    assert len(fgraph.apply_nodes) == 899


def test_a_change_that_does_not_validate_is_undone() -> None:
    class Objector(Feature):
        def on_validate(self, fgraph: Any) -> None:
            if any(n.op == g for n in fgraph.apply_nodes):
                raise InconsistencyError("no g please")

    fgraph = FunctionGraph([x], [neg(f(neg(neg(x))))], features=[Objector()], clone=False)
    with pytest.raises(InconsistencyError):
        RuleSet([eq("f(x) -> g(x)"), eq("neg(neg(x)) -> x")]).apply(fgraph)
    assert show(fgraph.outputs[0]) == "neg(f(neg(neg(x))))"
    fgraph.check_integrity()


def test_features_hear_of_every_change() -> None:
    class Log(Feature):
        def __init__(self) -> None:
            self.events: list[str] = []

        def on_import(self, fgraph: Any, node: Any, reason: Any) -> None:
            self.events.append(f"+{node.op}")

        def on_prune(self, fgraph: Any, node: Any, reason: Any) -> None:
            self.events.append(f"-{node.op}")

        def on_change_input(
            self, fgraph: Any, node: Any, i: int, var: Any, new_var: Any, reason: Any = None
        ) -> None:
            self.events.append(f"{node.op}[{i}]")

    log = Log()
    fgraph = FunctionGraph([x], [f(neg(neg(x)))], features=[log], clone=False)
    log.events.clear()
    RuleSet([eq("neg(neg(x)) -> g(x)")]).apply(fgraph)
    assert log.events == ["+g", "-neg", "-neg", "f[0]"]


# ------------------------------------------------------------------------------ outermost


def test_flattening_starts_at_the_outermost_node() -> None:
    calls: list[int] = []

    def counted(ctx: Any, node: Any) -> Any:
        calls.append(len(node.inputs))
        return flatten.function(ctx, node)

    total = x
    for _ in range(300):
        total = add(total, y)
    spy = Rule("spy", counted, ops=[add], outermost=True)
    assert rewritten([spy], total)[0].count("y") == 300
    assert calls == [2, 301]


def test_an_idempotent_rule_is_not_tried_at_what_it_makes() -> None:
    calls: list[str] = []

    def swap(ctx: Any, node: Any) -> Any:
        calls.append(show(node.outputs[0]))
        a, b = node.inputs
        return sub(neg(b), a) if a.owner is None else None

    spy = Rule("x - y -> -y - x", swap, ops=[sub], idempotent=True)
    assert rewritten([spy], sub(x, y)) == ["sub(neg(y), x)"]
    assert calls == ["sub(x, y)"]
    calls.clear()
    # unless its inputs change on the way to their normal form
    assert rewritten([spy, eq("neg(y) -> f(y)")], sub(x, y)) == ["sub(f(y), x)"]
    assert calls == ["sub(x, y)", "sub(f(y), x)"]


def test_a_shared_sum_is_a_chain_of_its_own() -> None:
    shared = add(add(x, y), z)
    assert rewritten([flatten], mul(shared, add(shared, x))) == [
        "mul(add(x, y, z), add(add(x, y, z), x))"
    ]


@pytest.mark.parametrize(
    ("rules", "out", "expected"),
    [
        # the user of the inner sum vanishes, turns into something else, or declines
        (["neg(neg(x)) -> x"], neg(neg(add(add(x, y), z))), "add(x, y, z)"),
        (["sub(x, y) -> mul(x, y)"], sub(add(add(x, y), z), x), "mul(add(x, y, z), x)"),
        ([], sub(add(add(x, y), z), x), "sub(add(x, y, z), x)"),
        ([], f(sub(add(add(x, y), z), neg(add(x, add(y, z))))), None),
    ],
)
def test_put_off_rules_are_made_up_for(rules: list[str], out: Variable, expected: Any) -> None:
    expected = expected or "f(sub(add(x, y, z), neg(add(x, y, z))))"
    assert rewritten([*map(eq, rules), flatten], out) == [expected]


# ----------------------------------------------------------------------------- properties


@st.composite
def graphs(draw: Any, ops: Any = (add, sub, mul, neg, f, g, h), size: int = 14) -> list[Variable]:
    arity = {neg: 1, f: 1, g: 1}
    variables: list[Variable] = [x, y, z]
    for _ in range(draw(st.integers(1, size))):
        op = draw(st.sampled_from(ops))
        n = arity.get(op, 2)
        pick = st.one_of(st.sampled_from(variables[-8:]), st.sampled_from([0, 1, -3, 2]).map(const))
        variables.append(op(*[draw(pick) for _ in range(n)]))
    count = draw(st.integers(1, 3))
    return draw(st.permutations(variables[-4:]))[:count]


VALUES = [{x: 3, y: -2, z: 7}, {x: 0, y: 1, z: 0}]


@settings(max_examples=80, deadline=None)
@given(graphs(), st.sets(st.sampled_from(range(len(POOL)))))
def test_values_bookkeeping_and_rest(outputs: list[Variable], chosen: set[int]) -> None:
    before = [evaluate(outputs, v) for v in VALUES]
    rules = [POOL[k] for k in sorted(chosen)]
    fgraph = FunctionGraph([x, y, z], outputs, clone=True, copy_inputs=False)
    run = Normalizer(RuleSet(rules), fgraph)
    install(fgraph, *run.run(), "test")
    fgraph.check_integrity()
    assert [evaluate(fgraph.outputs, v) for v in VALUES] == before
    assert {v: run.uses(v) for v in fgraph.variables} == {
        v: len(fgraph.clients[v]) for v in fgraph.variables
    }, "the uses that rules were told of"
    keys = [(n.op, *n.inputs) for n in fgraph.apply_nodes]
    assert len(keys) == len(set(keys)), "equal nodes are one"
    local = [r for r in rules if not (r.outermost or getattr(r, "single_use", False))]
    for node in fgraph.apply_nodes:
        for r in local:
            assert not r.transform(fgraph, node), f"{r} still applies to {node}"


@settings(max_examples=40, deadline=None)
@given(graphs(), st.sets(st.sampled_from(range(len(POOL)))))
def test_history_can_take_a_run_back(outputs: list[Variable], chosen: set[int]) -> None:
    fgraph = FunctionGraph([x, y, z], outputs, clone=True, copy_inputs=False)
    before = [show(v) for v in fgraph.outputs]
    mark = fgraph.checkpoint()
    RuleSet([POOL[k] for k in sorted(chosen)]).apply(fgraph)
    fgraph.revert(mark)
    fgraph.check_integrity()
    assert [show(v) for v in fgraph.outputs] == before


# Random term rewriting systems that terminate and have one normal form, by construction: functions
# d0, d1, d2 are defined by cases on the constructor of their first argument, in terms of
# constructors, of earlier functions, and of themselves on parts of that argument.

CONSTRUCTORS = [Function("leaf"), Function("one"), Function("two")]
ARITY = {CONSTRUCTORS[0]: 0, CONSTRUCTORS[1]: 1, CONSTRUCTORS[2]: 2}
DEFINED = [Function(f"d{i}") for i in range(3)]
Term = tuple[Any, ...]


@st.composite
def bodies(draw: Any, level: int, parts: int, depth: int = 2) -> Any:
    """A right side: ("part", k), ("arg",), or (op, *terms)."""
    choices = ["arg"] + (["part"] if parts else []) + (["construct", "call"] if depth else [])
    kind = draw(st.sampled_from(choices))
    if kind == "arg":
        return ("arg",)
    if kind == "part":
        return ("part", draw(st.integers(0, parts - 1)))
    inner = bodies(level, parts, depth - 1)
    if kind == "construct":
        op = draw(st.sampled_from(CONSTRUCTORS))
        return (op, *[draw(inner) for _ in range(ARITY[op])])
    if parts and draw(st.booleans()):
        return (DEFINED[level], ("part", draw(st.integers(0, parts - 1))), ("arg",))
    if level == 0:
        return ("arg",)
    return (DEFINED[draw(st.integers(0, level - 1))], draw(inner), draw(inner))


@st.composite
def systems(draw: Any) -> dict[Any, Any]:
    return {
        (DEFINED[i], c): draw(bodies(i, ARITY[c]))
        for i in range(3)
        for c in CONSTRUCTORS
        if draw(st.booleans())
    }


def as_rule(key: Any, body: Any) -> Rule:
    op, constructor = key

    def build(term: Any, parts: Any, arg: Any) -> Any:
        if term[0] == "arg":
            return arg
        if term[0] == "part":
            return parts[term[1]]
        return term[0](*[build(t, parts, arg) for t in term[1:]])

    def function(ctx: Any, node: Any) -> Any:
        first, arg = node.inputs
        if first.owner is None or first.owner.op != constructor:
            return None
        return build(body, first.owner.inputs, arg)

    return Rule(f"{op}({constructor}(...), y)", function, ops=[op])


def naive(term: Term, system: dict[Any, Any], fuel: list[int]) -> Term:
    """Leftmost innermost rewriting of trees, straight from the definition."""
    fuel[0] -= 1
    if fuel[0] < 0:
        raise OverflowError
    if isinstance(term[0], str):
        return term
    parts = tuple(naive(t, system, fuel) for t in term[1:])
    body = system.get((term[0], parts[0][0])) if parts else None
    if body is None:
        return (term[0], *parts)

    def build(t: Any) -> Term:
        if t[0] == "arg":
            return parts[1]
        if t[0] == "part":
            return parts[0][1 + t[1]]
        return (t[0], *[build(s) for s in t[1:]])

    return naive(build(body), system, fuel)


def as_term(v: Variable) -> Term:
    return (v.name,) if v.owner is None else (v.owner.op, *map(as_term, v.owner.inputs))


@st.composite
def terms(draw: Any) -> Variable:
    variables: list[Variable] = [x, y]
    for _ in range(draw(st.integers(1, 9))):
        op = draw(st.sampled_from([*CONSTRUCTORS, *DEFINED]))
        arity = ARITY.get(op, 2)
        variables.append(op(*[draw(st.sampled_from(variables[-4:])) for _ in range(arity)]))
    return variables[-1]


@settings(max_examples=200, deadline=None)
@given(terms(), systems())
def test_normal_form_equals_naive_rewriting(out: Variable, system: dict[Any, Any]) -> None:
    try:
        expected = naive(as_term(out), system, [20_000])
    except (OverflowError, RecursionError):
        return  # trees, unlike graphs, can be exponentially large
    fgraph = FunctionGraph([x, y], [out], clone=False)
    RuleSet([as_rule(k, b) for k, b in system.items()]).apply(fgraph)
    fgraph.check_integrity()
    assert as_term(fgraph.outputs[0]) == expected


# --------------------------------------------------------------------------------- growth


def chain(n: int) -> FunctionGraph:
    v = x
    for _ in range(n):
        v = sub(f(neg(neg(v))), y)
    return FunctionGraph([x, y], [v], clone=False)


def test_linear_growth(lines_run: Callable[..., int]) -> None:
    def work(n: int) -> int:
        return lines_run(RuleSet([*POOL[:4]]).apply, chain(n))

    assert work(1_600) < 10 * work(200)


@pytest.mark.parametrize("n", few([2_500, 25_000], 2_500))
def test_deep_chains(n: int) -> None:
    fgraph = chain(n)
    assert len(fgraph.apply_nodes) == 4 * n
    RuleSet([*POOL[:4]]).apply(fgraph)
    assert len(fgraph.apply_nodes) == 2 * n + 1


def test_a_long_sum_is_flattened_at_once() -> None:
    v = x
    for _ in range(20_000):
        v = add(v, y)
    fgraph = FunctionGraph([x, y], [v], clone=False)
    RuleSet([flatten]).apply(fgraph)
    assert len(fgraph.apply_nodes) == 1 and len(fgraph.outputs[0].owner.inputs) == 20_001
