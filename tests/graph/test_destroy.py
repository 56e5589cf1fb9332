"""In-place operations (areas F16, F17, G36)."""

from __future__ import annotations

import pickle

import pytest
from toy_graphs import Increase, Mix, cell, f, g, increase, same

from phintys.errors import InconsistencyError
from phintys.graph.destroy import (
    DestroyHandler,
    ProtocolError,
    Supervisor,
    inplace_candidates,
    view_root,
)
from phintys.graph.fgraph import FunctionGraph


def handled(inputs, outputs, *features):
    return FunctionGraph(inputs, outputs, clone=False, features=[DestroyHandler(), *features])


@pytest.fixture
def x():
    return cell("x")


def test_readers_come_first(x):
    changed = increase(x)
    read = f(x)
    fgraph = handled([x], [changed, read])
    assert fgraph.consistent()
    assert fgraph.toposort() == [read.owner, changed.owner]
    assert fgraph.destroyers(x) == [changed.owner] and fgraph.has_destroyers([x])
    assert not fgraph.has_destroyers([read])


def test_readers_of_views_come_first(x):
    view = same(same(x))
    changed, read = increase(x), f(view)
    fgraph = handled([x], [changed, read])
    assert fgraph.toposort()[-1] is changed.owner
    assert view_root(view) is x


def test_destroying_a_view_destroys_what_it_shows(x):
    changed, read = increase(same(x)), f(x)
    fgraph = handled([x], [changed, read])
    assert fgraph.toposort()[-1] is changed.owner and fgraph.destroyers(x) == [changed.owner]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: [increase(cell.make_constant(1))], "constant"),
        (lambda x: [increase(same(cell.make_constant(1)))], "constant"),
        (lambda x: [increase(x), increase(x)], "both overwrite x"),
        (lambda x: [increase(x), increase(same(x))], "both overwrite x"),
        (lambda x: [increase(x), x], "output 1"),
        (lambda x: [same(x), increase(x)], "output 0"),
        (lambda x: [f(x, increase(x))], "cycle"),
        (lambda x: [increase(x, x)], "input 1"),
        (lambda x: [increase(x, same(x))], "input 1"),
    ],
)
def test_illegal_graphs(x, make, message):
    fgraph = handled([x], make(x))
    with pytest.raises(InconsistencyError, match=message):
        fgraph.validate()


def test_two_operations_that_wait_for_each_other(x):
    y = cell("y")
    first, second = increase(x, y), increase(y, x)
    with pytest.raises(InconsistencyError, match="cycle"):
        handled([x, y], [first, second]).validate()
    handled([x, y], [increase(x, y), f(y)]).validate()


def test_a_chain_of_inplace_operations_is_legal(x):
    fgraph = handled([x], [increase(increase(f(x)))])
    assert fgraph.consistent() and fgraph.clone().consistent()


def test_tolerated_aliases(x):
    class Same(Increase):
        destroyhandler_tolerate_same = [(0, 1)]

    class Aliased(Increase):
        destroyhandler_tolerate_aliased = [(0, 1)]

    assert handled([x], [Same()(x, x)]).consistent()
    assert not handled([x], [Same()(x, same(x))]).consistent()
    assert handled([x], [Aliased()(x, same(x))]).consistent()


def test_an_illegal_replacement_is_rolled_back(x):
    a = f(x)
    out = g(a, x)
    fgraph = handled([x], [out])
    with pytest.raises(InconsistencyError):
        fgraph.replace_validate(a, increase(x))
    assert out.owner.inputs[0] is a and fgraph.consistent()
    fgraph.check_integrity()


def test_supervisor_protects(x):
    y = cell("y")
    fgraph = FunctionGraph([x, y], [g(f(x), f(y))], clone=False)
    fgraph.attach_feature(Supervisor([x]))
    a, b = fgraph.outputs[0].owner.inputs
    fgraph.replace_validate(a, f(y))  # nothing to protect from yet
    fgraph.attach_feature(DestroyHandler())
    with pytest.raises(InconsistencyError, match="protected variable x"):
        fgraph.replace_validate(b, increase(x))
    for copy in (fgraph.clone(), pickle.loads(pickle.dumps(fgraph))):
        with pytest.raises(InconsistencyError, match="protected"):
            copy.replace_validate(copy.outputs[0].owner.inputs[1], increase(copy.inputs[0]))
        copy.replace(copy.outputs[0].owner.inputs[0], f(copy.inputs[0]))
        copy.replace_validate(copy.outputs[0].owner.inputs[1], increase(copy.inputs[1]))


def test_inplace_candidates(x):
    y, z = cell("y"), cell("z")
    a, k = f(x), cell.make_constant(1)
    out = g(a, y, k, increase(z), same(x))
    fgraph = handled([x, y, z], [out], Supervisor([x]))
    inputs = [*out.owner.inputs, z]
    destroyed = out.owner.inputs[3]
    assert inplace_candidates(fgraph, inputs) == [a, y, destroyed]
    assert inplace_candidates(fgraph, inputs, [y]) == [a, destroyed, out.owner.inputs[4]]


def test_attaching_and_detaching(x):
    handler = DestroyHandler()
    fgraph = FunctionGraph([x], [increase(x)], clone=False, features=[handler])
    fgraph.attach_feature(DestroyHandler())
    assert fgraph.destroy_handler is handler
    with pytest.raises(ValueError, match="one graph"):
        FunctionGraph([x], [f(x)], features=[handler])
    fgraph.remove_feature(handler)
    assert not hasattr(fgraph, "destroyers") and not hasattr(fgraph, "destroy_handler")
    late = FunctionGraph([x], [increase(x), x], clone=False)
    late.attach_feature(DestroyHandler())
    assert not late.consistent()


def test_an_output_is_a_view_of_one_input(x):
    class Both(Mix):
        view_map = {0: [0, 1]}

    with pytest.raises(ProtocolError, match="one input"):
        handled([x], [Both(1)(x, x)])
