"""Databases, queries, `rewrite_graph`, and the law checker."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from integer_ops import (
    add,
    const,
    evaluate,
    f,
    g,
    h,
    integer,
    neg,
    show,
    sub,
)

import phintys
from phintys.errors import RewriteError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Constant, Variable
from phintys.rewriting import graph as graph_module
from phintys.rewriting.check import check_rule, rewritten, sides
from phintys.rewriting.database import (
    EquilibriumDB,
    RewriteDatabase,
    RewriteDatabaseQuery,
    SequenceDB,
)
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.graph import get_active_mode, rewrite_graph, rewrite_subgraph
from phintys.rewriting.older import LocalGroupDB, ProxyDB, TopoDB
from phintys.rewriting.rewriter import graph_rewriter, node_rewriter
from phintys.rewriting.rule import Equation, equation, rule

x, y = integer("x"), integer("y")
NAMES = {"add": add, "neg": neg, "sub": sub, "f": f, "g": g, "h": h}
INTS = {"x": integer, "y": integer}


def eq(text: str, **options: Any) -> Equation:
    return equation(text, namespace=NAMES, types=INTS, **options)


def after(rewriter: Any, *outputs: Variable) -> list[str]:
    fgraph = FunctionGraph([x, y], list(outputs), clone=False)
    rewriter.rewrite(fgraph)
    return [show(v) for v in fgraph.outputs]


def noted(log: list[str], name: str) -> Any:
    made = graph_rewriter(lambda fgraph: log.append(name))
    made.name = name
    return made


def named(db: Any, name: str) -> Any:
    db.name = name
    return db


# --------------------------------------------------------------------------- registration


def test_names_and_tags_share_a_name_space() -> None:
    db = named(EquilibriumDB(), "db")
    db.register("a", eq("f(x) -> x"), "tag")
    with pytest.raises(ValueError, match="The tag 'a' is already present"):
        db.register("a", eq("f(x) -> x"))
    with pytest.raises(ValueError, match="The tag 'tag' is already present"):
        db.register("tag", eq("f(x) -> x"))
    db.register("b", eq("g(x) -> x"))
    with pytest.raises(ValueError, match="name of a rewrite"):
        db.add_tags("b", "a")
    with pytest.raises(KeyError, match="Did you mean 'a'"):
        db["aa"]
    with pytest.raises(TypeError, match="neither"):
        db.register("c", lambda fgraph: None)
    with pytest.raises(TypeError, match="colour"):
        db.register("c", eq("f(x) -> x"), colour="red")
    assert db.tags("a") == ["db", "tag"] and db.names == ["a", "b"] and "tag" in db
    replacement = eq("f(x) -> g(x)")
    db.register("a", replacement, "tag", overwrite_existing=True)
    assert db["a"] is replacement
    db.remove_tags("a", "tag")
    with pytest.raises(KeyError, match="no tag"):
        db.remove_tags("a", "tag")
    assert "tag" not in db
    db.print_summary(stream := io.StringIO())
    assert "a: db" in stream.getvalue()


def test_use_db_name_as_tag() -> None:
    db = named(EquilibriumDB(), "db")
    db.register("on", eq("f(x) -> x"))
    db.register("off", eq("g(x) -> x"), use_db_name_as_tag=False)
    assert after(db.query("+db"), f(g(x))) == ["g(x)"]
    assert after(db.query("+db", "+off"), f(g(x))) == ["x"]
    assert after(db.default_query, f(g(x))) == ["g(x)"]


# --------------------------------------------------------------------------------- queries

TAGS = ["a", "b", "c"]


@settings(deadline=None)
@given(
    st.lists(st.sets(st.sampled_from(TAGS)), min_size=1, max_size=6),
    *[st.sets(st.sampled_from([*TAGS, "r0", "r1"])) for _ in range(3)],
)
def test_queries_select_by_tag_and_name(
    tags: list[set[str]], include: set[str], require: set[str], exclude: set[str]
) -> None:
    db = SequenceDB()
    for i, chosen in enumerate(tags):
        db.register(f"r{i}", noted([], f"r{i}"), *chosen)
    words = [{f"r{i}", *chosen} for i, chosen in enumerate(tags)]
    expected = [
        f"r{i}"
        for i, own in enumerate(words)
        if own & include and require <= own and not own & exclude
    ]
    query = RewriteDatabaseQuery(sorted(include), sorted(require), sorted(exclude))
    strings = [f"+{t}" for t in include] + [f"&{t}" for t in require] + [f"-{t}" for t in exclude]
    built = RewriteDatabaseQuery([]).including(*include).requiring(*require).excluding(*exclude)
    for q in ([query], strings, [built]):
        assert [r.name for r in db.query(*q)] == expected


def test_illegal_queries() -> None:
    db = SequenceDB()
    with pytest.raises(ValueError, match="start with"):
        db.query("a")
    with pytest.raises(TypeError, match="not both"):
        db.query(RewriteDatabaseQuery(["a"]), "+b")


def test_queries_pass_down_into_databases() -> None:
    inner = EquilibriumDB()
    outer = SequenceDB()
    outer.register("inner", inner, "fast", position=1)
    inner.register("one", eq("f(x) -> x"), "fast")
    inner.register("two", eq("g(x) -> x"), "slow")
    out = f(g(x))
    assert after(outer.query("+fast"), out) == ["g(x)"]
    assert after(outer.query("+inner"), f(g(x))) == ["x"]
    assert after(outer.query("+inner", "-two"), f(g(x))) == ["g(x)"]
    assert after(outer.query("+inner", "-inner"), f(g(x))) == ["f(g(x))"]
    assert after(outer.query("+inner", "&fast"), f(g(x))) == ["g(x)"]
    special = RewriteDatabaseQuery(["fast"], subquery={"inner": RewriteDatabaseQuery(["two"])})
    assert after(outer.query(special), f(g(x))) == ["f(x)"]


def test_a_single_rule_is_excluded_by_its_equation() -> None:
    db = named(EquilibriumDB(), "canonical")
    db.register_rules([eq("f(x) -> x", tags=("mine",)), eq("g(x) -> x")])
    query = RewriteDatabaseQuery(["canonical"])
    assert after(db.query(query), f(g(x))) == ["x"]
    assert after(db.query(query.excluding("f(x) -> x")), f(g(x))) == ["f(x)"]
    assert after(db.query("+mine"), f(g(x))) == ["g(x)"]


def test_answers_follow_later_registrations() -> None:
    db = named(EquilibriumDB(), "db")
    db.register("one", eq("f(x) -> x"))
    query = RewriteDatabaseQuery(["db"])
    assert after(db.query(query), f(g(x))) == ["g(x)"]
    db.register("two", eq("g(x) -> x"))
    assert after(db.query(query), f(g(x))) == ["x"]
    db.remove("one")
    assert after(db.query(query), f(g(x))) == ["f(x)"]


# ---------------------------------------------------------------------------- the databases


def test_sequence_order_is_position_then_name() -> None:
    log: list[str] = []
    db = SequenceDB()
    for name, position in [("z", 1), ("b", 2.5), ("a", 2.5), ("first", -3)]:
        db.register(name, noted(log, name), "t", position=position)
    db.register("last", noted(log, "last"), "t")
    assert db.position("last") == 3.5
    db.query("+t").rewrite(FunctionGraph([x], [x], clone=False))
    assert log == ["first", "z", "a", "b", "last"]
    assert [r.name for r in db.query("+t", position_cutoff=2.5)] == ["first", "z"]
    cut = RewriteDatabaseQuery(["t"], position_cutoff=2.5).register((noted(log, "extra"), 0.5))
    assert [r.name for r in db.query(cut)] == ["first", "extra", "z"]
    with pytest.raises(TypeError, match="position"):
        db.register("odd", noted(log, "odd"), position="first")


def test_equilibrium_final_and_cleanup() -> None:
    log: list[str] = []
    db = named(EquilibriumDB(), "db")
    db.register("main", node_rewriter([f])(lambda fgraph, node: [node.inputs[0]]))
    db.register("final", noted(log, "final"), final_rewriter=True)
    db.register("cleanup", noted(log, "cleanup"), cleanup=True)
    with pytest.raises(ValueError, match="choose"):
        db.register("both", noted(log, "both"), cleanup=True, final_rewriter=True)
    assert after(db.query("+db"), f(x)) == ["x"]
    assert log == ["cleanup", "final", "cleanup", "final", "cleanup"]


def test_local_group_and_topo() -> None:
    group = LocalGroupDB()
    to_g = node_rewriter([f])(lambda fgraph, node: [g(node.inputs[0])])
    to_h = node_rewriter([f])(lambda fgraph, node: [h(node.inputs[0], x)])
    group.register("to_h", to_h, "t")
    group.register("to_g", to_g, "t", position=-1)
    with pytest.raises(TypeError, match="whole graphs"):
        group.register("graph", noted([], "graph"))
    topo = TopoDB(group, order="out_to_in", ignore_newtrees=True)
    assert after(topo.query("+t"), f(f(x))) == ["g(g(x))"]
    assert after(topo.query("+t", "-to_g"), f(x)) == ["h(x, x)"]
    follow = LocalGroupDB(apply_all_rewrites=True)
    follow.register("to_g", to_g, "t")
    follow.register("back", node_rewriter([g])(lambda fgraph, node: [node.inputs[0]]), "t")
    assert after(TopoDB(follow, ignore_newtrees=True).query("+t"), f(x)) == ["x"]


def test_a_database_without_a_rewriter_answers_with_its_entries() -> None:
    """RewriteDatabase was abstract, and a tag did not find its only entry."""
    db, one, two = RewriteDatabase(), eq("f(x) -> x"), eq("g(x) -> x")
    db.register("one", one, "mine")
    assert db["mine"] is db["one"] is one
    db.register("two", two, "mine")
    assert list(db.query("+mine")) == [one, two] and list(db.query("+mine", "-one")) == [two]
    with pytest.raises(ValueError, match="More than one match for mine"):
        db["mine"]
    with pytest.raises(KeyError, match="Nothing registered for 'three'"):
        db["three"]


def test_positions_of_a_database() -> None:
    db = SequenceDB()
    for name, position in (("a", 3), ("b", "last"), ("c", 1.5)):
        db.register(name, graph_rewriter(lambda fgraph: None), position=position)
    assert db.__position__ == {"a": 3, "b": 4, "c": 1.5}
    with pytest.raises(TypeError, match="`position` must be numeric"):
        db.register("d", graph_rewriter(lambda fgraph: None), position="after")


def test_proxy_stands_at_several_positions() -> None:
    db = EquilibriumDB()
    outer = SequenceDB()
    outer.register("db", db, "fast", position=1)
    outer.register("again", ProxyDB(db), "fast", position=3)
    between = graph_rewriter(lambda fgraph: fgraph.replace(fgraph.outputs[0], f(y)))
    between.name = "between"
    outer.register("between", between, "fast", position=2)
    db.register("one", eq("f(x) -> x"), "fast")
    assert after(outer.query("+fast"), f(x)) == ["y"]
    assert [r.name for r in outer.query("+fast")] == ["db", "between", "again"]
    with pytest.raises(TypeError, match="RewriteDatabase"):
        ProxyDB(eq("f(x) -> x"))


# ------------------------------------------------------------------------- rewrite_graph


@pytest.fixture
def own_optdb(monkeypatch: pytest.MonkeyPatch) -> SequenceDB:
    db = SequenceDB()
    canonical = EquilibriumDB()
    db.register("canonicalize", canonical, "fast_run", position=1)
    canonical.register_rules([eq("neg(neg(x)) -> x"), eq("sub(x, y) -> add(x, neg(y))")])
    monkeypatch.setattr(graph_module, "optdb", db)
    return db


def test_rewrite_graph(own_optdb: SequenceDB) -> None:
    out = sub(x, neg(y))
    assert show(rewrite_graph(out, clone=True)) == "add(x, y)" and show(out) == "sub(x, neg(y))"
    several = rewrite_graph([out, neg(out)], clone=True)
    assert [show(v) for v in several] == ["add(x, y)", "neg(add(x, y))"]
    assert show(rewrite_graph(out, exclude=["neg(neg(x)) -> x"])) == "add(x, neg(neg(y)))"
    assert show(rewrite_graph(out, include=["nothing"])) == "sub(x, neg(y))"
    custom = graph_rewriter(lambda fgraph: fgraph.replace(fgraph.outputs[0], f(x)))
    assert show(rewrite_graph(out, custom_rewrite=custom)) == "f(x)"
    top = f(out)
    rewrite_graph(top)
    assert show(top) == "f(add(x, y))", "without a copy the nodes themselves change"


def test_rewrite_graph_on_a_function_graph(own_optdb: SequenceDB) -> None:
    fgraph = FunctionGraph([x, y], [f(sub(x, y))], clone=False)
    copy = rewrite_graph(fgraph, clone=True)
    assert copy is not fgraph and show(fgraph.outputs[0]) == "f(sub(x, y))"
    assert rewrite_graph(fgraph) is fgraph
    assert show(fgraph.outputs[0]) == "f(add(x, neg(y)))"
    assert get_active_mode(fgraph) is phintys.get_mode()


def test_rewrite_subgraph_stops_at_the_frontier(own_optdb: SequenceDB) -> None:
    above = neg(neg(x))
    (out,) = rewrite_subgraph([neg(neg(f(above)))], [above])
    assert show(out) == "f(neg(neg(x)))" and above.owner is not None


# ------------------------------------------------------------------------------------ laws


def test_laws_are_checked() -> None:
    draws = [(a, b) for a in range(-3, 4) for b in range(-3, 4)]

    def failures(made: Equation, some: Any = None) -> list[Any]:
        inputs, left = sides(made)
        values = some or [d[: len(inputs)] for d in draws]
        return check_rule(made, inputs, [left], values, lambda outs, given: evaluate(outs, given))

    assert failures(eq("sub(x, y) -> add(x, neg(y))")) == []
    wrong = failures(eq("h(x, y) -> sub(x, y)"))
    assert len(wrong) == 42 and "h(x, y) -> sub(x, y): for x=" in str(wrong[0])
    never = rule("f(x) -> x", ops=[f])(lambda ctx, node: None)
    with pytest.raises(AssertionError, match="does not apply"):
        rewritten(never, [f(x)])


@pytest.mark.parametrize(
    ("law", "left", "right", "value", "holds"),
    [
        ("exact", lambda v: v + 1e-14, lambda v: v, 1.0, False),
        ("rounding", lambda v: v + 1e-14, lambda v: v, 1.0, True),
        ("rounding", lambda v: v * 0, lambda v: 0.0, float("inf"), False),
        ("finite", lambda v: v * 0, lambda v: 0.0, float("inf"), True),
        ("finite", lambda v: v, lambda v: v + 1, 1.0, False),
        ("rounding", lambda v: float("nan"), lambda v: float("nan"), 1.0, True),
        ("rounding", lambda v: [][0], lambda v: 1.0, 1.0, False),
        ("drops_errors", lambda v: [][0], lambda v: 1.0, 1.0, True),
        ("drops_errors", lambda v: 1.0, lambda v: [][0], 1.0, False),
        ("rounding", lambda v: 1, lambda v: 1.0, 1.0, False),
    ],
)
def test_each_law(law: str, left: Any, right: Any, value: float, holds: bool) -> None:
    made = rule("f(x) -> g(x)", ops=[f], law=law)(lambda ctx, node: g(node.inputs[0]))

    def evaluator(outputs: Any, given: Any) -> list[Any]:
        side = left if outputs[0].owner.op == f else right
        return [side(v) for v in given.values()]

    assert (check_rule(made, [x], [f(x)], [(value,)], evaluator) == []) == holds


def test_rulesets_can_be_registered_as_passes() -> None:
    db = SequenceDB()
    db.register("merge", RuleSet([], name="merge"), "fast", position=0)
    fgraph = FunctionGraph([x], [f(x), f(x), const(1), const(1)], clone=False)
    db.query("+fast").rewrite(fgraph)
    assert fgraph.outputs[0] is fgraph.outputs[1]
    assert isinstance(fgraph.outputs[2], Constant) and fgraph.outputs[2] is fgraph.outputs[3]
    bad = rule("bad", ops=[f])(lambda ctx, node: 1)
    db.register("rules", RuleSet([bad]), "fast", position=1)
    with pytest.raises(RewriteError, match="bad"):
        db.query("+fast").rewrite(fgraph)
