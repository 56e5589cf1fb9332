"""Orders of nodes by comparators."""

from __future__ import annotations

import phintys.tensor as pt
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.sched import (
    key_to_cmp,
    make_dependence_cmp,
    posort,
    sort_apply_nodes,
    sort_schedule_fn,
)


def test_the_first_comparators_matter_most():
    tens, odd = key_to_cmp(lambda n: n // 10), key_to_cmp(lambda n: n % 2)
    given = [15, 3, 8, 12, 1, 10]
    assert posort(given, tens, odd) == [8, 3, 1, 12, 10, 15]
    assert posort(given, odd, tens) == [8, 12, 10, 3, 1, 15]
    assert posort(given) == given
    assert posort([], tens) == []


def test_preferences_that_contradict_earlier_ones_are_ignored():
    pairs = {("a", "b"), ("b", "c")}
    chain = lambda x, y: ((y, x) in pairs) - ((x, y) in pairs)  # noqa: E731
    backwards = key_to_cmp(lambda x: -ord(x))
    assert posort("cabd", chain, backwards) == ["d", "a", "b", "c"]
    assert posort("cabd", chain, key_to_cmp(ord)) == ["a", "b", "c", "d"]


def test_nodes_come_after_what_they_depend_on():
    x = pt.dvector("x")
    out = pt.exp(pt.sin(x)) + pt.cos(x)
    graph = FunctionGraph([x], [out], clone=False)
    names = lambda nodes: [str(node.op) for node in nodes]  # noqa: E731
    by_name = key_to_cmp(lambda node: str(node.op))
    assert names(sort_schedule_fn(by_name)(graph)) == ["Cos", "Sin", "Exp", "Add"]
    late = key_to_cmp(lambda node: node.op == out.owner.inputs[1].owner.op)
    assert names(sort_apply_nodes([x], [out], [late])) == ["Sin", "Exp", "Cos", "Add"]
    compare = make_dependence_cmp()
    sin, exp = (n for n in graph.toposort() if str(n.op) in ("Sin", "Exp"))
    assert (compare(sin, exp), compare(exp, sin), compare(sin, sin)) == (-1, 1, 0)
