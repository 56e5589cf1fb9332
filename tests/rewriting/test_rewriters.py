"""Graph and node rewriters, walkers, equilibrium, merging, origins."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest
from integer_ops import (
    Function,
    add,
    const,
    divmod_,
    f,
    g,
    h,
    integer,
    mul,
    narrow,
    neg,
    overwrite,
    show,
    text,
)

from phintys.config import config
from phintys.errors import InconsistencyError, ReplacementDidNotRemoveError, RewriteError
from phintys.graph.destroy import DestroyHandler
from phintys.graph.features import Feature
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import inherit, locate
from phintys.graph.variable import Constant, Variable
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.equilibrium import ChangeTracker, EquilibriumGraphRewriter
from phintys.rewriting.merge import MergeFeature, MergeOptimizer, pre_constant_merge
from phintys.rewriting.origins import (
    CheckStackTraceRewriter,
    check_stack_trace,
    copy_stack_trace,
)
from phintys.rewriting.reachability import (
    ancestor_bitsets,
    greedy_independent_subset,
    update_ancestors_after_contraction,
)
from phintys.rewriting.rewriter import (
    FromFunctionNodeRewriter,
    GraphRewriter,
    RemovalNodeRewriter,
    SequentialGraphRewriter,
    SequentialNodeRewriter,
    SubstitutionNodeRewriter,
    graph_rewriter,
    inplace_graph_rewriter,
    node_rewriter,
)
from phintys.rewriting.rule import Rule, equation, rule
from phintys.rewriting.trace import trace
from phintys.rewriting.unify import LiteralString, OpPattern
from phintys.rewriting.walk import (
    NodeProcessingGraphRewriter,
    OpKeyGraphRewriter,
    WalkingGraphRewriter,
    dfs_rewriter,
    get_clients_at_depth,
    in2out,
    out2in,
    pre_greedy_node_rewriter,
)

x, y, z = integer("x"), integer("y"), integer("z")


def graph(*outputs: Variable, **kwargs: Any) -> FunctionGraph:
    return FunctionGraph([x, y, z], list(outputs), clone=False, **kwargs)


def after(rewriter: Any, *outputs: Variable) -> list[str]:
    fgraph = graph(*outputs)
    rewriter.rewrite(fgraph)
    fgraph.check_integrity()
    return [show(v) for v in fgraph.outputs]


@node_rewriter([neg])
def drop_double_neg(fgraph: Any, node: Any) -> Any:
    inner = node.inputs[0].owner
    return [inner.inputs[0]] if inner is not None and inner.op == neg else False


@node_rewriter([f])
def f_to_g(fgraph: Any, node: Any) -> Any:
    return [g(node.inputs[0])]


# ------------------------------------------------------------------------ R1, R2: bases


def test_rewrite_is_add_requirements_then_apply() -> None:
    calls: list[str] = []

    class Mine(GraphRewriter):
        def add_requirements(self, fgraph: Any) -> None:
            calls.append("requirements")

        def apply(self, fgraph: Any) -> str:
            calls.append("apply")
            return "result"

    assert Mine().rewrite(graph(x)) == Mine()(graph(x)) == "result"
    assert calls == ["requirements", "apply"] * 2
    assert Mine() != Mine()


def test_node_rewriter_tracks() -> None:
    assert drop_double_neg.tracks() == [neg]
    assert isinstance(drop_double_neg, FromFunctionNodeRewriter)
    assert drop_double_neg.transform(graph(f(x)), f(x).owner) is False
    with pytest.raises(ValueError, match="None"):
        node_rewriter([])
    with pytest.raises(TypeError, match="3"):
        node_rewriter([3])
    everything = ["add", "neg", "f"]
    cases: list[tuple[Any, list[str]]] = [
        (None, everything),
        ([Function], everything),
        ([OpPattern(Function, name=LiteralString("f"))], ["f"]),
        ([OpPattern(Function, name="any")], everything),
        ([(neg, (f,))], ["neg", "f"]),
    ]
    for tracks, expected in cases:
        seen: list[str] = []
        spy = node_rewriter(tracks)(lambda fgraph, node, seen=seen: seen.append(node.op.name))
        in2out(spy).rewrite(graph(f(neg(x)), add(x, y)))
        assert seen == expected


def test_requirements_are_attached() -> None:
    rewriter = node_rewriter([f], requirements=(MergeFeature,))(lambda fgraph, node: None)
    fgraph = graph(f(x))
    in2out(rewriter).rewrite(fgraph)
    assert any(isinstance(feature, MergeFeature) for feature in fgraph._features)
    inplace = node_rewriter([f], inplace=True)(lambda fgraph, node: None)
    in2out(inplace).rewrite(fgraph)
    assert any(isinstance(feature, DestroyHandler) for feature in fgraph._features)


def test_answers_of_node_rewriters() -> None:
    answers: dict[str, Any] = {
        "None": (lambda fgraph, node: None, "divmod(x, y).0"),
        "False": (lambda fgraph, node: False, "divmod(x, y).0"),
        "list": (lambda fgraph, node: [f(x), None], "f(x)"),
        "same": (lambda fgraph, node: [node.outputs[0], None], "divmod(x, y).0"),
        "dict": (lambda fgraph, node: {node.outputs[0]: g(y)}, "g(y)"),
        "dict with remove": (
            lambda fgraph, node: {node.outputs[0]: g(y), "remove": [node]},
            "g(y)",
        ),
    }
    for fn, expected in answers.values():
        q, _ = divmod_(x, y)
        assert after(in2out(node_rewriter([divmod_])(fn)), q) == [expected]
    bad = {
        "True": (lambda fgraph, node: True, TypeError, "gave wrong type of replacement: True"),
        "length": (
            lambda fgraph, node: [x],
            ValueError,
            "gave wrong number of replacements: 1 for 2 outputs",
        ),
        "used": (lambda fgraph, node: [None, None], ValueError, "output 0, which is in use"),
        "number": (lambda fgraph, node: [3, None], TypeError, "must be variables"),
    }
    for fn, kind, message in bad.values():
        q, _ = divmod_(x, y)
        rewriter = node_rewriter([divmod_])(fn)
        rewriter.name = "the bad one"
        fgraph = graph(q)
        with pytest.raises(RewriteError, match="the bad one at divmod") as caught:
            in2out(rewriter).rewrite(fgraph)
        assert message in str(caught.value) and caught.value.__cause__ is not None
        assert isinstance(caught.value, kind)
        fgraph.check_integrity()
        assert show(fgraph.outputs[0]) == "divmod(x, y).0"


#: functions that raise, or whose answer does, with the class of the exception
RAISING: list[tuple[Any, type[Exception]]] = [
    (lambda fgraph, node: 1 // 0, ZeroDivisionError),
    (lambda fgraph, node: [text("t"), None], TypeError),
    (lambda fgraph, node: {y: x, "remove": [node]}, ReplacementDidNotRemoveError),
]


@pytest.mark.parametrize("fn, kind", RAISING)
def test_exceptions_of_node_rewriters(fn: Any, kind: type[Exception], caplog: Any) -> None:
    """They are the program's own, and ``config.on_opt_error`` says what happens, as in PyTensor."""
    rewriter = node_rewriter([divmod_])(fn)
    rewriter.name = "the bad one"
    walker = in2out(rewriter)
    q, _ = divmod_(x, y)
    with pytest.raises(kind) as caught:
        walker.rewrite(graph(q))
    assert "raised by rewrite the bad one at divmod(x, y)" in "".join(caught.value.__notes__)
    for policy, count in (("ignore", 0), ("warn", 1)):
        with config.change_flags(on_opt_error=policy):
            assert after(walker, q) == ["divmod(x, y).0"]
        assert len(caplog.messages) == count
    assert caplog.messages[0].startswith("Rewrite failure due to: the bad one\nnode: divmod(x, y)")


@pytest.mark.parametrize("policy", ["ignore", "warn"])
def test_what_is_always_an_error(policy: str) -> None:
    """Assertions, what is no replacement, and failures of rules of this package."""

    @node_rewriter([f])
    def claims(fgraph: Any, node: Any) -> Any:
        raise AssertionError("no")

    failing = rule("f(x) -> ?", ops=[f])(lambda ctx, node: 1 // 0)
    with config.change_flags(on_opt_error=policy):
        with pytest.raises(AssertionError, match="no"):
            in2out(claims).rewrite(graph(f(x)))
        with pytest.raises(RewriteError, match="wrong number"):
            in2out(node_rewriter([f])(lambda fgraph, node: [x, x])).rewrite(graph(f(x)))
        with pytest.raises(RewriteError, match="ZeroDivisionError"):
            SequentialGraphRewriter(RuleSet([failing])).rewrite(graph(f(x)))


def test_dict_replaces_other_variables() -> None:
    @node_rewriter([g])
    def swap(fgraph: Any, node: Any) -> Any:
        return {node.inputs[0]: neg(x)} if node.inputs[0].owner.op == f else False

    inner = f(x)
    assert after(in2out(swap), g(inner), h(inner, y)) == ["g(neg(x))", "h(neg(x), y)"]


def test_less_specific_replacements_are_narrowed() -> None:
    rewriter = node_rewriter([type(narrow)])(lambda fgraph, node: [g(x)])
    fgraph = graph(narrow(f(x)))
    in2out(rewriter, ignore_newtrees=True).rewrite(fgraph)
    assert show(fgraph.outputs[0]) == "Narrow(g(x))" and fgraph.outputs[0].type.small


def test_what_does_not_validate_is_given_up_silently() -> None:
    class NoG(Feature):
        def on_validate(self, fgraph: Any) -> None:
            if any(n.op == g for n in fgraph.apply_nodes):
                raise InconsistencyError("no g")

    fgraph = graph(f(x), features=[NoG()])
    in2out(f_to_g).rewrite(fgraph)
    assert show(fgraph.outputs[0]) == "f(x)"


def test_failure_callback_decides() -> None:
    seen: list[Any] = []
    bad = node_rewriter([f])(lambda fgraph, node: 1 // 0)
    walker = in2out(bad, failure_callback=lambda *args: seen.append(args))
    assert after(walker, f(x)) == ["f(x)"]
    exc, nav, pairs, rewriter, node = seen[0]
    assert isinstance(exc, ZeroDivisionError) and nav is walker and rewriter is bad
    assert pairs == [(node.outputs[0], None)] and node.op == f
    ignoring = in2out(bad, failure_callback=NodeProcessingGraphRewriter.warn_ignore)
    assert after(ignoring, f(x)) == ["f(x)"]


# ------------------------------------------------------------------- R3, R4, R5, R6


def test_graph_rewriters_from_functions() -> None:
    @graph_rewriter
    def swap_outputs(fgraph: Any) -> None:
        """Doc."""
        fgraph.replace(fgraph.outputs[0], neg(x))

    assert swap_outputs.name == "swap_outputs" and swap_outputs.__doc__ == "Doc."
    assert after(swap_outputs, f(x)) == ["neg(x)"]
    fgraph = graph(f(x))
    inplace_graph_rewriter(lambda fgraph: None).rewrite(fgraph)
    assert any(isinstance(feature, DestroyHandler) for feature in fgraph._features)


def test_sequences() -> None:
    order: list[str] = []
    first = graph_rewriter(lambda fgraph: order.append("first"))
    second = graph_rewriter(lambda fgraph: order.append("second"))
    SequentialGraphRewriter(first, second).rewrite(graph(x))
    assert order == ["first", "second"]
    failing = SequentialGraphRewriter(graph_rewriter(lambda fgraph: 1 // 0))
    with pytest.raises(ZeroDivisionError):
        failing.rewrite(graph(x))
    with config.change_flags(on_opt_error="ignore"):
        failing.rewrite(graph(x))
    caught: list[Any] = []
    SequentialGraphRewriter(
        failing[0], second, failure_callback=lambda exc, self, r: caught.append(r)
    ).rewrite(graph(x))
    assert caught == [failing[0]] and order[-1] == "second"


def test_sequential_node_rewriter_stops_or_follows() -> None:
    g_to_h = node_rewriter([g])(lambda fgraph, node: [h(node.inputs[0], x)])
    one = SequentialNodeRewriter(f_to_g, g_to_h)
    assert show(one.transform(graph(f(x)), f(x).owner)[0]) == "g(x)"
    every = SequentialNodeRewriter(f_to_g, g_to_h, apply_all_rewrites=True)
    assert show(every.transform(graph(f(x)), f(x).owner)[0]) == "h(x, x)"
    assert one.tracks() == [f, g]
    everywhere = SequentialNodeRewriter(f_to_g, node_rewriter(None)(lambda fg, n: None))
    assert everywhere.tracks() is None


def test_substitution_is_not_applied_to_its_results() -> None:
    class Wrapped(Function):
        def make_node(self, *inputs: Any) -> Any:
            return super().make_node(f(inputs[0]))

    wrapped = Wrapped("wrapped")
    out = f(y)
    out.tag.note = "kept"
    fgraph = graph(out)
    substitute = SubstitutionNodeRewriter(f, wrapped)
    in2out(substitute, ignore_newtrees=True).rewrite(fgraph)
    assert show(fgraph.outputs[0]) == "wrapped(f(y))"
    assert fgraph.outputs[0].tag.note == "kept"


def test_removal() -> None:
    assert after(in2out(RemovalNodeRewriter(f)), g(f(f(x)))) == ["g(x)"]
    with pytest.raises(ValueError, match="one of each"):
        in2out(RemovalNodeRewriter(add)).rewrite(graph(add(x, y)))


# ------------------------------------------------------------------------ R10, R12: walking


@pytest.mark.parametrize(
    ("walker", "expected"),
    [
        (in2out, ["neg x", "f", "g"]),
        (out2in, ["g", "f", "neg x"]),
        (dfs_rewriter, ["neg x", "f", "g"]),
    ],
)
def test_orders(walker: Any, expected: list[str]) -> None:
    seen: list[str] = []

    @node_rewriter(None)
    def spy(fgraph: Any, node: Any) -> None:
        seen.append("neg x" if node.op == neg else node.op.name)

    walker(spy).rewrite(graph(g(f(neg(x)))))
    assert seen == expected


def test_new_nodes_are_visited_unless_ignored() -> None:
    @node_rewriter([f])
    def count_down(fgraph: Any, node: Any) -> Any:
        inner = node.inputs[0]
        if not isinstance(inner, Constant) or inner.data == 0:
            return False
        return [f(inner.data - 1)]

    for walker in (in2out, out2in, dfs_rewriter):
        assert after(walker(count_down), f(const(5))) == ["f(0)"]
        assert after(walker(count_down, ignore_newtrees=True), f(const(5))) == ["f(4)"]
    assert after(OpKeyGraphRewriter(count_down), neg(f(const(5)))) == ["neg(f(0))"]
    with pytest.raises(TypeError, match="tracks"):
        OpKeyGraphRewriter(node_rewriter(None)(lambda fgraph, node: None))


def test_nodes_that_left_are_skipped() -> None:
    visited: list[str] = []

    @node_rewriter([f, g])
    def cut(fgraph: Any, node: Any) -> Any:
        visited.append(node.op.name)
        return [x] if node.op == g else False

    assert after(out2in(cut), g(f(f(x)))) == ["x"]
    assert visited == ["g"]


def test_start_from() -> None:
    inner = f(x)
    fgraph = graph(g(inner), f(y))
    WalkingGraphRewriter(f_to_g, "in_to_out").apply(fgraph, start_from=[inner])
    assert [show(v) for v in fgraph.outputs] == ["g(g(x))", "f(y)"]


def test_untracked_nodes_cost_no_call() -> None:
    calls: list[Any] = []
    spy = node_rewriter([h])(lambda fgraph, node: calls.append(node))
    v = x
    for _ in range(1000):
        v = f(v)
    in2out(spy).rewrite(graph(h(v, y)))
    assert len(calls) == 1


# ------------------------------------------------------------------------ R11: equilibrium


def test_equilibrium_goes_on_until_nothing_changes() -> None:
    rewriters = [
        node_rewriter([f])(lambda fgraph, node: [g(node.inputs[0])]),
        node_rewriter([g])(lambda fgraph, node: [neg(neg(node.inputs[0]))]),
        drop_double_neg,
    ]
    for ignore in (True, False):
        assert after(EquilibriumGraphRewriter(rewriters, ignore_newtrees=ignore), f(f(x))) == ["x"]


def test_equilibrium_mixes_rules_with_foreign_rewriters() -> None:
    names = {"f": f, "g": g, "neg": neg}
    rule_ = equation("g(x) -> neg(neg(x))", namespace=names, types={"x": integer})
    neutral = graph_rewriter(lambda fgraph: None)
    mixed = EquilibriumGraphRewriter([drop_double_neg, rule_, f_to_g, neutral], max_use_ratio=10)
    assert after(mixed, f(f(g(f(x))))) == ["x"]


def test_max_use_ratio_stops_a_rewrite_with_a_warning() -> None:
    @node_rewriter([f])
    def forever(fgraph: Any, node: Any) -> Any:
        return [f(add(node.inputs[0], 1))]

    rewriter = EquilibriumGraphRewriter([forever], max_use_ratio=2, ignore_newtrees=True)
    with pytest.warns(RuntimeWarning, match="forever was stopped"):
        rewriter.rewrite(graph(f(x)))


def test_final_and_cleanup_rewriters() -> None:
    log: list[str] = []
    final = graph_rewriter(lambda fgraph: log.append("final"))
    cleanup = graph_rewriter(lambda fgraph: log.append("cleanup"))
    EquilibriumGraphRewriter(
        [f_to_g], final_rewriters=[final], cleanup_rewriters=[cleanup]
    ).rewrite(graph(f(f(x))))
    assert log == ["cleanup", "cleanup", "final", "cleanup", "final", "cleanup"]


def test_change_tracker() -> None:
    tracker = ChangeTracker()
    fgraph = graph(f(x), features=[tracker])
    tracker.reset()
    fgraph.replace(fgraph.outputs[0], g(x))
    assert tracker.changed and not tracker.clone().changed


# ------------------------------------------------------------------------- R13, R14: merging


def test_merge_optimizer() -> None:
    fgraph = graph(add(f(x), 3), add(f(x), const(3)), divmod_(x, y)[0], divmod_(x, y)[1])
    assert MergeOptimizer().rewrite(fgraph)
    fgraph.check_integrity()
    assert len(fgraph.apply_nodes) == 3 and fgraph.outputs[0] is fgraph.outputs[1]
    assert not MergeOptimizer().rewrite(fgraph)
    fgraph.replace(fgraph.outputs[2], add(f(x), 3))
    assert MergeOptimizer().rewrite(fgraph), "the graph changed since"


def test_destroyed_results_are_not_merged() -> None:
    fgraph = graph(overwrite(f(x)), g(f(x)))
    assert not MergeOptimizer().rewrite(fgraph)
    assert len(fgraph.apply_nodes) == 4


def test_expressions_outside_a_graph() -> None:
    fgraph = graph(add(x, const(7)))
    inside = next(v for v in fgraph.variables if isinstance(v, Constant))
    outside = mul(const(7), f(x))
    (merged,) = pre_constant_merge(fgraph, [outside])
    assert merged is outside and outside.owner.inputs[0] is inside
    both = FunctionGraph([x], [mul(add(x, const(7)), add(f(x), const(7)))], clone=False)
    before = [node.inputs[:] for node in both.toposort()]
    pre_constant_merge(both, [f(both.outputs[0])])
    assert [node.inputs for node in both.toposort()] == before  # those inside stay
    both.check_integrity()
    fold = node_rewriter([neg])(
        lambda fgraph, node: (
            [const(-node.inputs[0].data)] if isinstance(node.inputs[0], Constant) else False
        )
    )
    out = pre_greedy_node_rewriter(fgraph, [fold, f_to_g], f(neg(neg(const(2)))))
    assert show(out) == "g(2)"
    untouched = f(fgraph.outputs[0])
    assert show(pre_greedy_node_rewriter(fgraph, [fold], untouched)) == "f(add(x, 7))"


# --------------------------------------------------------------------------- R15: origins


def test_origins_are_inherited_and_copied() -> None:
    code = compile("0", "model.py", "eval")
    with inherit((code, 0)):
        out = f(x)
    fgraph = graph(out)
    in2out(f_to_g).rewrite(fgraph)
    where = locate(fgraph.outputs[0].owner.origin)
    assert where is not None and where.file == "model.py"
    new = g(x)
    assert (
        copy_stack_trace([integer.make_variable(), out], new) is new
        and locate(new.owner.origin) == where
    )
    assert check_stack_trace(fgraph) and check_stack_trace(fgraph, [g, Function])
    assert check_stack_trace(fgraph, lambda op: op == g)
    fgraph.outputs[0].owner.origin = None
    assert not check_stack_trace(fgraph, "all")
    with pytest.raises(ValueError, match="h"):
        check_stack_trace(fgraph, h)
    assert check_stack_trace(fgraph, h, bug_print="ignore")
    with pytest.warns(UserWarning, match="h"):
        check_stack_trace(fgraph, h, bug_print="warn")
    CheckStackTraceRewriter().rewrite(fgraph)
    orphan = g(y)
    orphan.owner.origin = None
    with pytest.raises(AssertionError, match=r"g\(y\)"):
        fgraph.replace(fgraph.outputs[0], orphan)


# ----------------------------------------------------------------------- R25 and the rest


def test_reachability() -> None:
    a = f(x)
    b, c = g(a), neg(y)
    fgraph = graph(add(b, c), c)
    nodes = {str(n.op): n for n in fgraph.toposort()}
    ancestors, flags = ancestor_bitsets(fgraph)

    def depends(p: str, q: str) -> bool:
        return bool(ancestors[nodes[p]] & flags[nodes[q]])

    assert depends("g", "f") and depends("add", "neg") and depends("f", "f")
    assert not depends("f", "g") and not depends("neg", "f")
    assert greedy_independent_subset(ancestors, flags, [nodes["f"], nodes["g"], nodes["neg"]]) == [
        nodes["f"],
        nodes["neg"],
    ]
    update_ancestors_after_contraction(ancestors, flags, [nodes["f"], nodes["neg"]])
    assert depends("g", "neg") and depends("f", "neg")


def test_clients_at_depth() -> None:
    a = f(x)
    fgraph = graph(add(g(a), neg(a)))
    assert [str(n.op) for n in get_clients_at_depth(fgraph, a.owner, 1)] == ["neg", "g"]
    assert [str(n.op) for n in get_clients_at_depth(fgraph, a.owner, 2)] == ["add"]


def test_summaries_name_every_part() -> None:
    stream = io.StringIO()
    rule_ = Rule("x -> x", lambda ctx, node: None)
    SequentialGraphRewriter(
        in2out(f_to_g), EquilibriumGraphRewriter([rule_]), RuleSet([rule_], name="mine")
    ).print_summary(stream)
    for name in ("f_to_g", "x -> x", "mine"):
        assert name in stream.getvalue()


def test_trace_records_both_engines() -> None:
    names = {"g": g, "neg": neg}
    rule_ = equation("g(x) -> neg(x)", namespace=names, types={"x": integer})
    with trace() as log, warnings.catch_warnings():
        in2out(f_to_g).rewrite(graph(f(x)))
        RuleSet([rule_]).rewrite(graph(g(mul(x, y))))
    RuleSet([rule_]).rewrite(graph(g(x)))
    assert [(r.rule, r.before, r.after) for r in log] == [
        ("f_to_g", "f(x)", "g(x)"),
        ("g(x) -> neg(x)", "g(mul(x, y))", "neg(mul(x, y))"),
    ]
    assert log.counts()["f_to_g"] == 1 and "f_to_g: f(x)" in str(log)
    assert log.records[0].origin is not None
