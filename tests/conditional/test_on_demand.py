"""Ops of users whose thunks ask for one input after the other, on every backend."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import ifelse
from phintys.conditional.on_demand import OnDemand
from phintys.graph.op import Op

MODES = ["FAST_COMPILE", "FAST_RUN", "C", "JAX"]
c = pt.dscalar("c")
x = pt.dvector("x")
V = np.array([1.0, 2.0])
#: what ran, in order: labels of nodes, numbers of inputs that were asked for
log: list[object] = []


class Noted(Op):
    """The identity, which notes that it has run; or raises ``error``."""

    __props__ = ("label", "error")

    def __init__(self, label, error=None):
        self.label, self.error = label, error

    def make_node(self, v):
        return phintys.Apply(self, [v], [v.type()])

    def infer_shape(self, node, shapes):
        return shapes

    def perform(self, node, inputs, output_storage):
        log.append(self.label)
        if self.error is not None:
            raise self.error
        output_storage[0][0] = inputs[0].copy()


class Choose(Op):
    """One of two values, which is the only one of them that it asks for."""

    __props__ = ()
    asks_again = False

    def make_node(self, condition, *values):
        inputs = [pt.as_tensor(v) for v in (condition, *values)]
        return phintys.Apply(self, inputs, [inputs[1].type()])

    def infer_shape(self, node, shapes):
        return shapes[1:2]

    def make_thunk(self, node, storage_map, compute_map, no_recycling, impl=None):
        cells = [storage_map[v] for v in node.inputs]
        known = [compute_map[v] for v in node.inputs]
        (out,) = [storage_map[v] for v in node.outputs]

        def thunk():
            wanted = 0 if not known[0][0] else 1 if cells[0][0] else 2
            if self.asks_again or not known[wanted][0]:
                log.append(wanted)
                return [wanted]
            out[0] = cells[wanted][0].copy()
            return []

        thunk.lazy = True
        return thunk


def noted(v, label, error=None):
    return Noted(label, error)(v)


def calls(f, *args):
    """What runs in a call, in order, and the result."""
    log.clear()
    found = f(*args)
    return log[:], found


@pytest.mark.parametrize("mode", MODES)
def test_an_input_that_is_not_asked_for_is_not_computed(mode):
    y = Choose()(noted(c, "c") - 1, noted(pt.exp(x), "a"), noted(x * 2, "b", ValueError("b")))
    f = phintys.function([c, x], y + 1, mode=mode)
    ran, found = calls(f, 3.0, V)
    assert ran == [0, "c", 1, "a"]
    np.testing.assert_allclose(found, np.exp(V) + 1)
    with pytest.raises(ValueError, match=r"b(.|\n)*while computing Noted"):
        f(1.0, V)


@pytest.mark.parametrize("mode", MODES)
def test_what_several_use_is_computed_once(mode):
    """A node that an output needs too is computed always, and before it is asked for if it can."""
    shared = noted(x + 1, "shared")
    first = Choose()(c, shared, noted(x, "a"))
    second = Choose()(c, noted(first * shared, "b"), x)
    f = phintys.function([c, x], [noted(first, "first") * 2, second], mode=mode)
    ran, (one, two) = calls(f, 1.0, V)
    assert ran.count("shared") == ran.count("first") == ran.count("b") == 1 and "a" not in ran
    np.testing.assert_array_equal(one, 2 * (V + 1))
    np.testing.assert_array_equal(two, (V + 1) ** 2)
    ran, (one, two) = calls(f, 0.0, V)
    assert "a" in ran and "shared" not in ran and "b" not in ran
    np.testing.assert_array_equal(one, 2 * V)
    np.testing.assert_array_equal(two, V)


def test_nodes_between_lazy_ones():
    """An output between two lazy nodes is computed with them: a graph has no cycle."""
    first = Choose()(c, noted(x, "a"), noted(x, "b"))
    between = noted(pt.exp(first), "between")
    second = Choose()(c, noted(between, "d"), x)
    f = phintys.function([c, x], [between, second])
    assert [type(n.op) for n in f.maker.fgraph.toposort()] == [OnDemand]
    ran, (one, two) = calls(f, 1.0, V)
    assert sorted(map(str, ran)) == sorted(["1", "a", "between", "1", "d"])
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("mode", MODES)
def test_branches(mode):
    """A lazy node in a branch of `ifelse`, and a branch among what a lazy node asks for."""
    inside = ifelse(c, Choose()(c, noted(x, "a"), noted(x, "b")), noted(x, "d"))
    around = Choose()(c, ifelse(c, noted(x, "e"), noted(x, "g")), noted(x, "h"))
    f = phintys.function([c, x], [inside, around], mode=mode)
    assert set(calls(f, 1.0, V)[0]) == {1, "a", "e"}
    assert set(calls(f, 0.0, V)[0]) == {2, "d", "h"}


def test_in_a_loop():
    conditions = pt.dvector("conditions")
    steps = phintys.scan(
        lambda v, s: Choose()(v, noted(s * 2, "a"), noted(s, "b")),
        sequences=[conditions],
        outputs_info=[pt.constant(np.array(1.0))],
        return_updates=False,
    )
    f = phintys.function([conditions], steps, mode="FAST_COMPILE")
    ran, found = calls(f, [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(found, [2.0, 2.0, 4.0])
    assert [k for k in ran if isinstance(k, str)] == ["a", "b", "a"]


def test_results_belong_to_the_caller_and_functions_are_pickled():
    f = phintys.function([c, x], Choose()(c, x, x * 2))
    for g in (f, pickle.loads(pickle.dumps(f))):
        given = V.copy()
        found = g(1.0, given)
        found[:] = 0
        np.testing.assert_array_equal(given, V)
        np.testing.assert_array_equal(g(0.0, V), 2 * V)


def test_a_node_that_asks_for_what_it_has():
    class Stubborn(Choose):
        asks_again = True

    f = phintys.function([c, x], Stubborn()(c, x, x))
    with pytest.raises(RuntimeError, match="asks for inputs \\[1\\], which it has already"):
        f(1.0, V)
