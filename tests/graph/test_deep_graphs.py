"""Graphs of 100,000 nodes: nothing recurses, and time grows with the size only."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading

import pytest
from tiers import few, full
from toy_graphs import cell, chain, f, g, variables_of

from phintys.graph.clone import clone
from phintys.graph.equality import equal_computations
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.replace import clone_replace, graph_replace
from phintys.graph.traversal import ancestors, toposort, truncated_graph_inputs

DEEP = 100_000
#: what recurses fails at each of them
DEPTHS = few([DEEP // 10, DEEP], DEEP // 10)


def in_a_thread_with_a_small_stack(task):
    """Run ``task`` where even shallow recursion of C code would fail; return its result."""
    result, errors = [], []

    def run():
        try:
            result.append(task())
        except BaseException as exc:
            errors.append(exc)

    size = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
    if errors:
        raise errors[0]
    return result[0]


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_deep_graph(depth):
    def task():
        x, out = chain(depth)
        assert sum(1 for _ in toposort([out])) == depth
        assert sum(1 for _ in ancestors([out])) == depth + 1
        assert truncated_graph_inputs([out], [x]) == [x]
        new_inputs, new_outputs = clone([x], [out])
        assert equal_computations([out], new_outputs, [x], new_inputs)
        y = cell("y")
        for replaced in (graph_replace(out, {x: y}), clone_replace(out, {x: y})):
            assert equal_computations([out], [replaced], [x], [y])
        fgraph = FunctionGraph([x], [out])
        fgraph.check_integrity()
        assert len(fgraph.toposort()) == depth
        fgraph.remove_output(0)
        assert not fgraph.apply_nodes
        return True

    assert in_a_thread_with_a_small_stack(task)
    gc.collect()


COPIES = [(how, DEEP // 10) for how in ("pickle", "deepcopy", "list", "graph", "frozen")]


@pytest.mark.parametrize(("how", "depth"), [*COPIES, pytest.param("pickle", DEEP, marks=full)])
def test_copies_of_a_deep_graph(how, depth):
    def copied(x):
        return copy.deepcopy(x) if how == "deepcopy" else pickle.loads(pickle.dumps(x))

    def task():
        x, out = chain(depth)
        if how == "graph":
            other = copied(FunctionGraph([x], [out], clone=False))
            inputs, outputs = other.inputs, other.outputs
        elif how == "frozen":
            other = copied(FunctionGraph([x], [out], clone=False).freeze()).unfreeze()
            inputs, outputs = other.inputs, other.outputs
        elif how == "list":
            variables = variables_of([out])
            other = copied(variables[::-1])
            inputs, outputs = [other[variables[::-1].index(x)]], [other[0]]
        else:
            (other_x, other_out) = copied((x, out))
            inputs, outputs = [other_x], [other_out]
        return equal_computations([out], outputs, [x], inputs)

    assert in_a_thread_with_a_small_stack(task)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x, out: clone([x], [out]),
        lambda x, out: FunctionGraph([x], [out], clone=False),
        lambda x, out: pickle.dumps(out),
        lambda x, out: pickle.dumps(variables_of([out])),
        lambda x, out: copy.deepcopy(variables_of([out])),
        lambda x, out: equal_computations([out], [clone_replace(out)]),
    ],
)
def test_work_is_linear(operation, lines_run):
    small, large = chain(200), chain(1_600)
    assert lines_run(operation, *large) < 10 * lines_run(operation, *small)


def test_many_uses_of_a_variable(lines_run):
    def replace_all_uses(n):
        x, y = cell("x"), cell("y")
        fgraph = FunctionGraph([x, y], [f(*[g(x, i % 7) for i in range(n)])], clone=False)
        fgraph.replace(x, y)
        fgraph.remove_output(0)
        assert not fgraph.apply_nodes

    assert lines_run(replace_all_uses, 800) < 10 * lines_run(replace_all_uses, 100)


def test_one_pickler_for_several_graphs():
    _, out = chain(3_000)
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream)
    pickler.dump(out)
    other = pickle.loads(pickle.dumps(out))  # another pickler, while the first still lives
    assert equal_computations([out], [other], *roots(out, other))
    pickler.dump([f(out), out])
    pickler.clear_memo()
    pickler.dump(out)
    stream.seek(0)
    reader = pickle.Unpickler(stream)
    first, (second, again) = reader.load(), reader.load()
    third = pickle.load(stream)  # written without memory of the others
    assert again is first and second.owner.inputs == [first] and third is not first
    assert equal_computations([first], [third], *roots(first, third))


def roots(*outputs):
    return [[v for v in ancestors([out]) if v.owner is None] for out in outputs]


def test_a_failed_pickle_leaves_no_trace():
    _, out = chain(3_000)
    bad = f(out)
    bad.tag.bad = lambda: None
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(bad)
    other = pickle.loads(pickle.dumps(out))
    assert equal_computations([out], [other], *roots(out, other))


def test_tags_may_refer_to_any_variable():
    x = cell("x")
    y = f(x)
    z = g(y)
    x.tag.later, y.owner.tag.later, y.tag.itself = z, z, y
    for other in (pickle.loads(pickle.dumps(z)), copy.deepcopy(z), copy.deepcopy([x, z])[1]):
        node = other.owner.inputs[0].owner
        assert node.tag.later is other and node.out.tag.itself is node.out
        assert node.inputs[0].tag.later is other
    assert pickle.loads(pickle.dumps(x)).tag.later.owner.inputs[0].tag.itself.owner is not None


def test_cloudpickle_takes_ops_of_the_main_module():
    cloudpickle = pytest.importorskip("cloudpickle")
    from toy_graphs import Mix

    class Local(Mix):
        pass

    x = cell("x")
    y = Local(4)(f(x))
    other = pickle.loads(cloudpickle.dumps(y))
    assert other.owner.op.key == 4 and other.owner.inputs[0].owner.op == f


def test_attributes_and_origins_are_pickled():
    x = cell("x")
    x.note, x._cached_function = 1, lambda: None
    y = f(x)
    other = pickle.loads(pickle.dumps(y))
    assert other.owner.inputs[0].note == 1
    assert not hasattr(other.owner.inputs[0], "_cached_function")
    assert other.owner.origin.line > 0 and other.owner.inputs[0].origin.file == __file__
