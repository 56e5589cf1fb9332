"""Properties of random graphs."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_graphs import cell, evaluate, f, graphs, h, halve, increase, same, variables_of

from phintys.errors import InconsistencyError
from phintys.graph.clone import clone, clone_get_equiv
from phintys.graph.destroy import DestroyHandler
from phintys.graph.equality import equal_computations
from phintys.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from phintys.graph.replace import clone_replace, graph_replace
from phintys.graph.traversal import (
    ancestors,
    graph_inputs,
    sorted_nodes,
    toposort,
    truncated_graph_inputs,
    variable_depends_on,
    vars_between,
    walk_toposort,
)
from phintys.graph.variable import Constant

quick = settings(max_examples=60, deadline=None)
VALUES = [3, 14, 159, 2653]


def run(inputs, outputs, **kwargs):
    return evaluate(inputs, outputs, VALUES[: len(inputs)], **kwargs)


@quick
@given(graphs())
def test_toposort_is_an_order_of_execution(graph):
    _, outputs = graph
    order = list(toposort(outputs))
    position = {node: i for i, node in enumerate(order)}
    assert len(position) == len(order)
    assert order == list(toposort(outputs))
    for node in order:
        assert all(position[v.owner] < position[node] for v in node.inputs if v.owner)
    assert {v.owner for v in ancestors(outputs)} - {None} == set(order)
    assert set(graph_inputs(outputs)) == {v for v in ancestors(outputs) if v.owner is None}
    assert set(variables_of(outputs)) == set(vars_between([], outputs))


def last_first(variables, known):
    """The nodes behind variables by the definition of their order: depth first, last one first."""
    order = {}

    def visit(v):
        if v.owner is not None and v not in known and v.owner not in order:
            for w in reversed(v.owner.inputs):
                visit(w)
            order[v.owner] = None

    for v in reversed(variables):
        visit(v)
    return list(order)


@quick
@given(graphs(), st.data())
def test_nodes_are_sorted_last_one_first(graph, data):
    _, outputs = graph
    known = set(data.draw(st.lists(st.sampled_from(variables_of(outputs)), max_size=3)))
    expected = last_first(outputs, known)
    assert sorted_nodes([v.owner for v in outputs if v not in known], known) == expected
    assert list(toposort(outputs, blockers=known)) == expected


@quick
@given(graphs())
def test_the_general_walk_yields_what_needs_nothing_first(graph):
    _, outputs = graph
    roots = [v.owner for v in outputs]

    def needed(node):
        return [v.owner for v in node.inputs]

    order = list(walk_toposort(roots, needed))
    assert set(order) == set(toposort(outputs))
    waits = [any(v.owner for v in node.inputs) for node in order]
    assert waits == sorted(waits)
    position = {node: i for i, node in enumerate(order)}
    last = [max((position[n] for n in needed(node) if n), default=-1) for node in order]
    assert last == sorted(last) and all(p < i for i, p in enumerate(last))


@quick
@given(graphs(), st.data())
def test_truncated_inputs_suffice(graph, data):
    _, outputs = graph
    some = st.sampled_from(list(ancestors(outputs)))
    wanted = data.draw(st.lists(some, min_size=1, max_size=3))
    found = truncated_graph_inputs(outputs, wanted)
    assert set(wanted) <= set(found) and len(set(found)) == len(found)
    assert all(v in found for v in graph_inputs(outputs, blockers=found))
    for k, v in enumerate(found):
        if v not in wanted:
            assert not variable_depends_on(v, [*wanted, *found[:k]])


@quick
@given(graphs())
def test_a_new_function_graph_knows_its_order(graph):
    fgraph = FunctionGraph(*graph)
    assert fgraph.toposort() == list(toposort(fgraph.outputs))


@quick
@given(graphs())
def test_clone_shares_only_constants(graph):
    inputs, outputs = graph
    new_inputs, new_outputs = clone(inputs, outputs)
    old = {v for v in variables_of(outputs) if not isinstance(v, Constant)} | set(inputs)
    new = {v for v in variables_of(new_outputs) if not isinstance(v, Constant)} | set(new_inputs)
    assert not old & new
    assert equal_computations(outputs, new_outputs, inputs, new_inputs)
    assert run(inputs, outputs) == run(new_inputs, new_outputs)
    memo = clone_get_equiv(inputs, outputs, copy_inputs=False)
    assert all(memo[v] is v for v in inputs)
    assert equal_computations(outputs, [memo[v] for v in outputs])


@st.composite
def graphs_with_replacements(draw):
    inputs, outputs = draw(graphs())
    candidates = variables_of(outputs)
    keys = draw(st.lists(st.sampled_from(candidates), unique=True, max_size=3))
    new = [f(draw(st.sampled_from(candidates))) for _ in keys]
    return inputs, outputs, dict(zip(keys, new, strict=True))


@quick
@given(graphs_with_replacements())
def test_replacements_are_simultaneous(example):
    inputs, outputs, replace = example
    expected = run(inputs, outputs, replaced=replace)
    before = run(inputs, outputs)
    for replaced in (
        clone_replace(outputs, replace),
        graph_replace(outputs, replace),
        clone_replace(outputs, list(replace.items())),
    ):
        assert run(inputs, replaced) == expected
    assert run(inputs, outputs) == before


@quick
@given(graphs_with_replacements())
def test_graph_replace_keeps_what_does_not_change(example):
    _, outputs, replace = example
    results = graph_replace(outputs, replace)
    for old, new in zip(outputs, results, strict=True):
        depends = any(v in replace for v in ancestors([old]))
        assert depends or new is old


@st.composite
def edits(draw, fgraph):
    """A variable of the graph and a replacement that does not depend on it."""
    var = draw(st.sampled_from(list(fgraph.variables)))
    free = [v for v in fgraph.variables if var not in set(ancestors([v]))]
    kind = draw(st.sampled_from(["existing", "new", "self"]))
    if kind == "self" or not free:
        return var, h(var)
    other = draw(st.sampled_from(free))
    return var, other if kind == "existing" else f(other, draw(st.sampled_from(free)))


@quick
@given(graphs(), st.data())
def test_replace_in_a_function_graph(graph, data):
    fgraph = FunctionGraph(*graph)
    for _ in range(data.draw(st.integers(1, 4))):
        var, new = data.draw(edits(fgraph))
        expected = run(fgraph.inputs, clone_replace(fgraph.outputs, {var: new}))
        fgraph.replace(var, new)
        fgraph.check_integrity()
        assert run(fgraph.inputs, fgraph.outputs) == expected
        order = fgraph.toposort()
        assert len(order) == len(fgraph.apply_nodes)
        assert set(order) == fgraph.apply_nodes


@quick
@given(graphs(), st.data())
def test_revert_restores_the_graph(graph, data):
    fgraph = FunctionGraph(*graph)
    copy_, memo = fgraph.clone_get_equiv()
    nodes = set(fgraph.apply_nodes)
    mark = fgraph.checkpoint()
    for _ in range(data.draw(st.integers(1, 4))):
        fgraph.replace(*data.draw(edits(fgraph)))
    fgraph.revert(mark)
    fgraph.check_integrity()
    assert fgraph.apply_nodes == nodes
    assert [memo[v] for v in fgraph.outputs] == copy_.outputs
    assert equal_computations(fgraph.outputs, copy_.outputs, fgraph.inputs, copy_.inputs)


@quick
@given(graphs(), st.data())
def test_removal_keeps_the_books(graph, data):
    fgraph = FunctionGraph(*graph)
    expected = run(fgraph.inputs, fgraph.outputs)
    before = list(fgraph.outputs)
    node = data.draw(st.sampled_from([None, *fgraph.apply_nodes]))
    if node is None:
        fgraph.remove_output(len(before) - 1)
        assert run(fgraph.inputs, fgraph.outputs) == expected[:-1]
    else:
        kept = [k for k, v in enumerate(before) if not depends_on(v, node)]
        fgraph.remove_node(node)
        assert fgraph.outputs == [before[k] for k in kept]
        assert run(fgraph.inputs, fgraph.outputs) == [expected[k] for k in kept]
    fgraph.check_integrity()
    for i in range(len(fgraph.outputs)):
        client, position = fgraph.get_output_client(i)
        assert (client.op.idx, client.inputs[position]) == (i, fgraph.outputs[i])


def depends_on(variable, node):
    return any(v.owner is node for v in ancestors([variable]))


@quick
@given(graphs(), st.sampled_from([pickle.dumps, copy.deepcopy]))
def test_copies_through_pickle_and_deepcopy(graph, how):
    inputs, outputs = graph

    def copied(x):
        return pickle.loads(how(x)) if how is pickle.dumps else how(x)

    everything = variables_of(outputs)
    new_inputs, new_outputs, copies = copied((inputs, outputs, everything))
    assert equal_computations(outputs, new_outputs, inputs, new_inputs)
    memo = dict(zip(everything, copies, strict=True))
    assert len(set(copies)) == len(everything)
    for old, new in memo.items():  # the copies belong together as the originals do
        assert (new.name, new.type, new.index) == (old.name, old.type, old.index)
        if old.owner is not None:
            assert new.owner.op == old.owner.op
            assert [memo[v] for v in old.owner.inputs] == new.owner.inputs
            assert new.owner.outputs[new.index] is new
    fgraph = FunctionGraph(inputs, outputs, update_mapping={0: 0})
    other = copied(fgraph)
    other.check_integrity()
    assert other.update_mapping == {0: 0}
    assert run(other.inputs, other.outputs) == run(inputs, outputs)
    other.replace_validate(other.outputs[0], cell.make_constant(5))
    assert other.outputs[0].data == [5]


@quick
@given(graphs())
def test_freezing_and_thawing_are_inverse(graph):
    inputs, outputs = graph
    fgraph = FunctionGraph(inputs, outputs)
    frozen = fgraph.freeze()
    assert frozen == fgraph.clone().freeze() == FrozenFunctionGraph.from_io(*clone(*graph))
    thawed = frozen.unfreeze()
    thawed.check_integrity()
    assert thawed.freeze() == frozen
    assert hash(thawed.freeze()) == hash(frozen)
    assert pickle.loads(pickle.dumps(frozen)) == frozen
    assert run(thawed.inputs, thawed.outputs) == run(inputs, outputs)
    assert equal_computations(frozen.bind(inputs), outputs)
    assert set(frozen.variables) == {
        v for n in frozen.toposort() for v in (*n.inputs, *n.outputs)
    } | {*frozen.inputs, *frozen.outputs}
    changed = FunctionGraph(inputs, [f(v) for v in outputs]).freeze()
    assert changed != frozen


@quick
@given(graphs(max_nodes=7, ops=(f, same, increase)))
def test_an_accepted_graph_with_inplace_operations_computes_the_same(graph):
    inputs, outputs = graph
    fgraph = FunctionGraph(inputs, outputs, features=[DestroyHandler()])
    if fgraph.consistent():
        order = fgraph.toposort()
        assert set(order) == fgraph.apply_nodes
        got = run(fgraph.inputs, fgraph.outputs, order=order, pure=False)
        assert got == run(inputs, outputs)
    else:
        with pytest.raises(InconsistencyError):
            fgraph.validate()


@quick
@given(graphs())
def test_equal_computations_tells_graphs_apart(graph):
    inputs, outputs = graph
    new_inputs, new_outputs = clone(inputs, outputs)
    assert equal_computations(outputs, new_outputs, inputs, new_inputs)
    for v in set(ancestors(outputs)):
        changed = graph_replace(outputs, {v: h(v)})
        assert not equal_computations(changed, new_outputs, inputs, new_inputs)


def test_two_outputs_of_a_node_differ():
    x = cell("x")
    half, rest = halve(x)
    assert not equal_computations([half], [rest])
    assert equal_computations([half], [halve(x)[0]])
