"""Rewriters whose results they rewrite again: every walker and engine ends."""

from __future__ import annotations

from typing import Any

import pytest
from integer_ops import add, f, g, integer, neg, show

from phintys.errors import RewriteError
from phintys.graph.fgraph import FunctionGraph
from phintys.rewriting import walk
from phintys.rewriting.database import (
    EquilibriumDB,
    RewriteDatabaseQuery,
)
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.equilibrium import EquilibriumGraphRewriter
from phintys.rewriting.older import LocalGroupDB, TopoDB
from phintys.rewriting.rewriter import (
    SequentialNodeRewriter,
    SubstitutionNodeRewriter,
    graph_rewriter,
    node_rewriter,
)
from phintys.rewriting.rule import Rule
from phintys.rewriting.walk import (
    DispatchingFeature,
    OpKeyGraphRewriter,
    WalkingGraphRewriter,
    dfs_rewriter,
    in2out,
    out2in,
    pre_greedy_node_rewriter,
)

x = integer("x")


def graph() -> FunctionGraph:
    return FunctionGraph([x], [g(f(x))], clone=True)


@node_rewriter([f])
def same(fgraph: Any, node: Any) -> Any:
    return [f(node.inputs[0])]


@node_rewriter([f])
def grow(fgraph: Any, node: Any) -> Any:
    return [neg(f(node.inputs[0]))]


@node_rewriter([f])
def nest(fgraph: Any, node: Any) -> Any:
    return [f(neg(node.inputs[0]))]


@node_rewriter([f])
def branch(fgraph: Any, node: Any) -> Any:
    return [add(f(neg(node.inputs[0])), f(node.inputs[0]))]


@node_rewriter([f, neg])
def ping_pong(fgraph: Any, node: Any) -> Any:
    return [(neg if node.op == f else f)(node.inputs[0])]


FOR_EVER = [same, grow, nest, branch, ping_pong, SubstitutionNodeRewriter(f, f)]
WALKERS = {
    "in2out": in2out,
    "out2in": out2in,
    "dfs": dfs_rewriter,
    "by op": OpKeyGraphRewriter,
    "together": lambda r: in2out(SequentialNodeRewriter(r)),
    "all": lambda r: dfs_rewriter(SequentialNodeRewriter(r, apply_all_rewrites=True)),
    "database": lambda r: TopoDB(group(r)).query(RewriteDatabaseQuery(["it"])),
}


def group(rewriter: Any) -> LocalGroupDB:
    db = LocalGroupDB()
    db.register("the rewriter", rewriter, "it")
    return db


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: Any) -> None:
    monkeypatch.setattr(walk, "MAX_GENERATIONS", 50)
    monkeypatch.setattr(walk, "MAX_DESCENDANTS", 400)


@pytest.mark.parametrize("rewriter", FOR_EVER, ids=str)
@pytest.mark.parametrize("name", WALKERS)
def test_walkers_say_what_does_not_end(name: str, rewriter: Any) -> None:
    fgraph = graph()
    with pytest.raises(RewriteError, match="does not terminate"):
        WALKERS[name](rewriter).rewrite(fgraph)
    fgraph.check_integrity()
    assert not any(isinstance(feature, DispatchingFeature) for feature in fgraph._features)


@pytest.mark.parametrize("rewriter", FOR_EVER, ids=str)
@pytest.mark.parametrize("order", ["in_to_out", "out_to_in", "dfs"])
def test_new_nodes_can_be_left_alone(order: Any, rewriter: Any) -> None:
    fgraph = graph()
    WalkingGraphRewriter(rewriter, order, ignore_newtrees=True).rewrite(fgraph)
    fgraph.check_integrity()
    assert not any(isinstance(feature, DispatchingFeature) for feature in fgraph._features)


@pytest.mark.parametrize("walker", [in2out, out2in, dfs_rewriter])
def test_a_substitution_by_itself_ends(walker: Any) -> None:
    fgraph = graph()
    walker(SubstitutionNodeRewriter(f, f), ignore_newtrees="auto").rewrite(fgraph)
    assert show(fgraph.outputs[0]) == "g(f(x))"


def test_what_ends_late_is_not_stopped(monkeypatch: Any) -> None:
    monkeypatch.setattr(walk, "MAX_GENERATIONS", 1000)
    left = [700]

    @node_rewriter([f])
    def count_down(fgraph: Any, node: Any) -> Any:
        left[0] -= 1
        return [f(node.inputs[0])] if left[0] else [neg(node.inputs[0])]

    for walker in (in2out, out2in, dfs_rewriter):
        left[0] = 350
        fgraph = graph()
        walker(count_down).rewrite(fgraph)
        assert show(fgraph.outputs[0]) == "g(neg(x))"


def test_many_nodes_may_have_many_new_ones() -> None:
    out = x
    for _ in range(300):
        out = f(out)

    @node_rewriter([f])
    def expand(fgraph: Any, node: Any) -> Any:
        return [neg(neg(node.inputs[0]))]

    for walker in (in2out, out2in, dfs_rewriter):
        fgraph = FunctionGraph([x], [out], clone=True)
        walker(expand).rewrite(fgraph)
        assert len(fgraph.apply_nodes) == 600


@pytest.mark.parametrize("rewriter", FOR_EVER, ids=str)
def test_an_equilibrium_stops_with_a_warning(rewriter: Any) -> None:
    fgraph = graph()
    with pytest.warns(RuntimeWarning, match="was stopped"):
        EquilibriumGraphRewriter([rewriter], ignore_newtrees=False, max_use_ratio=1).rewrite(fgraph)
    fgraph.check_integrity()
    db = EquilibriumDB()
    db.register("it", rewriter, "all")
    with pytest.warns(RuntimeWarning, match="was stopped"):
        db.query(RewriteDatabaseQuery(["all"])).rewrite(graph())


def test_an_equilibrium_of_passes_stops() -> None:
    @graph_rewriter
    def again(fgraph: Any) -> None:
        old = fgraph.outputs[0]
        fgraph.replace(old, g(old.owner.inputs[0]))

    for where in ("final_rewriters", "rewriters"):
        arguments: dict[str, Any] = {"rewriters": []} | {where: [again]}
        with pytest.warns(RuntimeWarning, match="was stopped"):
            EquilibriumGraphRewriter(**arguments, max_use_ratio=1).rewrite(graph())


def test_rules_that_undo_a_rewriter() -> None:
    undo = Rule("undo", ops=[neg], function=lambda ctx, node: f(node.inputs[0]))
    with pytest.warns(RuntimeWarning, match="was stopped"):
        to_neg = SubstitutionNodeRewriter(f, neg)
        EquilibriumGraphRewriter([undo, to_neg], max_use_ratio=1).rewrite(graph())


@pytest.mark.parametrize("rewriter", FOR_EVER[:-1], ids=str)
def test_rules_that_do_not_end_are_named(rewriter: Any) -> None:
    ops = rewriter.tracks()
    rule = Rule("for ever", ops=ops, function=lambda ctx, node: rewriter.fn(None, node)[0])
    with pytest.raises(RewriteError, match="for ever"):
        RuleSet([rule], max_generations=50).rewrite(graph())


@pytest.mark.parametrize("rewriter", FOR_EVER, ids=str)
def test_expressions_outside_a_graph(rewriter: Any) -> None:
    fgraph = FunctionGraph([x], [neg(x)], clone=False)
    found = pre_greedy_node_rewriter(fgraph, [rewriter], g(f(x)))
    assert show(found).startswith("g(")
