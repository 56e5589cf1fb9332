"""Queries and replacements (areas T1 to T6)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from toy_graphs import Interval, cell, f, g, graphs, h, halve

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.replace import clone_replace, graph_replace
from phintys.graph.shared import SharedVariable
from phintys.graph.traversal import (
    ancestors,
    apply_ancestors,
    apply_depends_on,
    applys_between,
    explicit_graph_inputs,
    general_toposort,
    get_var_by_name,
    graph_inputs,
    io_toposort,
    orphans_between,
    toposort,
    toposort_with_orderings,
    truncated_graph_inputs,
    variable_depends_on,
    vars_between,
    walk,
    walk_toposort,
)
from phintys.graph.variable import Apply, Variable


class Stored(Variable):
    """What makes a variable a shared one for the traversals."""

    def get_value(self):
        return [1]


class Anything(Op):
    """Its input, of whatever type."""

    def make_node(self, x):
        return Apply(self, [x], [x.type()])


@pytest.fixture
def names():
    x, y, z, k, s = cell("x"), cell("y"), cell("z"), cell.make_constant(3, "k"), Stored(cell)
    s.name = "s"
    a = f(x, y, name="a")
    b = g(a, z, name="b")
    c = h(f(b, k, name="m"), s, name="c")
    return {v.name: v for v in (x, y, z, k, s, a, b, c)} | {"m": c.owner.inputs[0]}


def text(variables):
    return " ".join(v.name for v in variables)


def test_order_of_ancestors(names):
    assert text(ancestors([names["c"]])) == "c s m k b z a y x"
    assert text(ancestors([names["b"]], [names["a"]])) == "b z a"
    assert text(graph_inputs([names["c"]])) == "s k z y x"
    assert text(graph_inputs([names["c"]], [names["b"]])) == "s k"
    assert text(explicit_graph_inputs(names["c"])) == "z y x"
    assert text(explicit_graph_inputs([names["b"], names["c"]])) == "z y x"


def test_between(names):
    a, b, c, x = (names[n] for n in "abcx")
    assert text(vars_between([a], [b])) == "b z a"
    assert text(orphans_between([a], [c])) == "s k z"
    assert text(orphans_between([x], [c])) == "s k z y"
    assert [n.op for n in applys_between([a], [c])] == [h, f, g]
    assert list(apply_ancestors([b], [b])) == []
    assert list(apply_ancestors([b], [a])) == [b.owner]
    half, rest = halve(x)
    assert set(vars_between([x], [half])) == {x, half, rest}


def test_dependencies(names):
    a, b, x, z, s = (names[n] for n in "abxzs")
    assert variable_depends_on(b, x) and variable_depends_on(b, [s, z])
    assert not variable_depends_on(b, s) and variable_depends_on(b, b)
    assert apply_depends_on(b.owner, a.owner) and not apply_depends_on(a.owner, b.owner)
    assert apply_depends_on(b.owner, [b.owner])


def test_truncated_graph_inputs(names):
    a, b, c, x, y, z = (names[n] for n in "abcxyz")

    def cut(outputs, wanted=()):
        return text(truncated_graph_inputs(outputs, wanted))

    assert cut([c]) == "c"
    assert cut([c], [a]) == "s k z a"
    assert cut([c], [a, b]) == "s k b z a"
    assert cut([c, a], [a, b]) == "a s k b z"
    assert cut([c], [a, x]) == "s k z a y x"
    assert cut([c], [a, cell("absent")]) == "s k z a"
    assert cut([c], [z, y]) == "s k z y x"


def test_walk(names):
    def expand(v):
        return v.owner.inputs if v.owner else None

    assert text(walk([names["b"]], expand)) == "b a z x y"
    assert text(walk([names["b"]], expand, bfs=False)) == "b z a y x"
    pairs = list(walk([names["b"]], expand, return_children=True))
    assert pairs[0] == (names["b"], [names["a"], names["z"]]) and pairs[-1][1] is None


@pytest.mark.parametrize("bfs", [True, False])
def test_a_walk_yields_a_node_before_it_expands_it(names, bfs):
    """So that a program may change what follows, or stop the walk there."""
    expanded = []

    def expand(v):
        expanded.append(v)
        return v.owner.inputs if v.owner else None

    for k, v in enumerate(walk([names["b"]], expand, bfs=bfs)):
        assert len(expanded) == k and v not in expanded
    assert len(expanded) == 5


def test_topological_orders(names):
    a, c, x = names["a"], names["c"], names["x"]
    assert [n.op for n in toposort([c])] == [f, g, f, h]
    assert [n.op for n in io_toposort([a], [c])] == [g, f, h]
    late = f(x)
    order = list(toposort_with_orderings([c, late], orderings={a.owner: [late.owner]}))
    assert order.index(late.owner) < order.index(a.owner)
    with pytest.raises(ValueError, match="cycle"):
        list(toposort_with_orderings([c], orderings={a.owner: [c.owner]}))
    above = {"d": ["b", "c"], "b": ["a"], "c": ["a"]}
    assert general_toposort("d", above.get) == ["a", "c", "b", "d"]
    assert list(walk_toposort("dd", lambda n: [None, *above.get(n, ())])) == ["a", "c", "b", "d"]
    with pytest.raises(ValueError, match=r"cycle through [bc]"):
        general_toposort("e", {"e": "db", "d": "b", "b": "ac", "a": "", "c": "b"}.get)


@pytest.fixture
def diamond():
    """Two outputs of nodes of which one has two results: p + q = halve(x), and so on."""
    x, y = cell("x"), cell("y")
    p, q = halve(x)
    p.name, q.name = "p", "q"
    a, b = f(p, y, name="a"), f(q, x, name="b")
    c, d = g(y, y, name="c"), g(b, a, name="d")
    e = h(a, c, d, name="e")
    return {v.name: v for v in (x, y, p, q, a, b, c, d, e)}


ORDERS_OF_PYTENSOR = {
    "toposort": (lambda n: toposort([n["d"], n["e"], n["c"]]), "c p a b d e"),
    "toposort, blocked": (lambda n: toposort([n["e"], n["d"]], [n["a"]]), "p b d c e"),
    "io_toposort": (lambda n: io_toposort([n["p"]], [n["e"], n["c"]]), "c a p b d e"),
    "with orderings": (
        lambda n: toposort_with_orderings([n["e"]], orderings={n["c"].owner: [n["b"].owner]}),
        "p a b c d e",
    ),
    "of a FunctionGraph": (
        lambda n: FunctionGraph([n["x"], n["y"]], [n["d"], n["e"]], clone=False).toposort(),
        "p a b d c e",
    ),
    "general_toposort": (
        lambda n: general_toposort(
            [n["e"].owner], lambda node: [v.owner for v in node.inputs if v.owner]
        ),
        "p c a b d e",
    ),
    "truncated": (lambda n: truncated_graph_inputs([n["e"], n["b"]], [n["a"]]), "b a c"),
    "truncated, nested": (lambda n: truncated_graph_inputs([n["e"]], [n["d"], n["p"]]), "d y p b"),
    "truncated, none": (lambda n: truncated_graph_inputs([n["e"], n["b"], n["e"]]), "e b"),
}


@pytest.mark.parametrize("name", ORDERS_OF_PYTENSOR)
def test_orders_are_those_of_pytensor(diamond, name):
    """Programs number and name what they find in this order: PyMC the variables of a model."""
    make, expected = ORDERS_OF_PYTENSOR[name]
    found = [v.outputs[0] if isinstance(v, Apply) else v for v in make(diamond)]
    assert text(found) == expected


def test_variables_by_name(names):
    other = cell("z")
    assert set(get_var_by_name([f(names["c"], other)], "z")) == {other, names["z"]}
    assert get_var_by_name([names["c"]], "none") == ()
    automatic = names["a"].auto_name
    assert get_var_by_name([names["c"]], automatic) == (names["a"],)


# ---------------------------------------------------------------- replacement
def test_clone_replace(names):
    a, b, x, y, z = (names[n] for n in "abxyz")
    swapped = clone_replace(b, {x: y, y: x})
    assert swapped.owner.inputs[0].owner.inputs == [y, x]
    assert swapped.owner.inputs[1] is z
    copied = clone_replace(b)
    assert copied is not b and copied.owner.inputs[0] is not a
    itself = clone_replace([b, a], {a: h(a)})
    assert isinstance(itself, list)
    assert itself[0].owner.inputs[0].owner.op == h
    assert itself[0].owner.inputs[0].owner.inputs[0].owner.inputs == [x, y]
    new = h(y)
    inner = clone_replace(b, {x: new}).owner.inputs[0].owner.inputs[0]
    assert inner is not new and inner.owner.inputs == [y]
    assert clone_replace(x, {x: y}) is y
    assert clone_replace(b, {cell("absent"): y}) is not None
    assert clone_replace(b, {z: 3}).owner.inputs[1].data == [3]


def test_clone_replace_keeps_shared_variables(names):
    c, s, x, y = (names[n] for n in "csxy")
    assert clone_replace(c, {x: y}).owner.inputs[1] is s
    assert clone_replace(c, {x: y}, copy_inputs_over=False).owner.inputs[1] is not s
    with pytest.raises(TypeError):
        clone_replace(c, {x: y}, no_such_option=1)


def test_types_of_replacements(names):
    b, x = names["b"], names["x"]
    other = Interval(20_000, 20_001)("other")
    for replace in (clone_replace, graph_replace):
        with pytest.raises(TypeError, match="other"):
            replace(b, {x: other})
    node = Anything()(x).owner
    assert clone_replace(node.out, {x: other}, rebuild_strict=False).type == other.type
    narrow = Interval(1, 2)("narrow")
    narrowed = graph_replace(f(narrow), {narrow: x})
    assert narrowed.owner.inputs[0].type == Interval(1, 2)


def test_graph_replace(names):
    a, b, c, x, y, z = (names[n] for n in "abcxyz")
    result = graph_replace([b, z], {x: y})
    assert result[0].owner.inputs[0].owner.inputs == [y, y] and result[1] is z
    assert graph_replace(b, {z: y}).owner.inputs[0] is a
    with pytest.raises(ValueError, match="absent"):
        graph_replace(b, {cell("absent"): y})
    assert graph_replace(b, {cell("absent"): y}, strict=False) is b
    assert graph_replace([b], {b: y}) == [y]
    # of nested replacements the outer one counts, and the inner is not an error
    nested = graph_replace(c, {b: f(a), a: x, x: y})
    assert nested.owner.inputs[0].owner.inputs[0].owner.inputs == [a]
    half, rest = halve(x)
    replaced = graph_replace([half, rest], {half: y})
    assert replaced == [y, rest]


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_replacing_nothing(graph):
    _, outputs = graph
    assert graph_replace(outputs, {}) == outputs


def test_shared_variables_are_recognised_by_get_value():
    assert hasattr(SharedVariable, "get_value")
