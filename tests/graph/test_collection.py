"""The pause of garbage collection ends, whatever happens, and leaves the user's choice alone."""

from __future__ import annotations

import gc

import pytest

import phintys
import phintys.tensor as pt
from phintys.graph.collection import collection_paused
from phintys.graph.fgraph import FunctionGraph
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.rule import rule


@pytest.fixture
def collecting():
    before = gc.isenabled()
    yield
    (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_setting_is_restored(collecting, enabled):
    (gc.enable if enabled else gc.disable)()
    with collection_paused(), collection_paused():
        assert not gc.isenabled()
    assert gc.isenabled() == enabled
    with pytest.raises(ZeroDivisionError), collection_paused():
        raise ZeroDivisionError
    assert gc.isenabled() == enabled


def test_rewriting_and_gradients_pause_it(collecting):
    gc.enable()
    seen = []
    spy = rule("spy")(lambda ctx, node: seen.append(gc.isenabled()))
    x = pt.dscalar("x")
    RuleSet([spy]).apply(FunctionGraph([x], [pt.exp(x)]))
    assert seen == [False] and gc.isenabled()
    with pytest.raises(phintys.errors.DisconnectedInputError):
        phintys.grad(pt.exp(x), pt.dscalar("y"))
    assert gc.isenabled()


def test_compiling_pauses_it(collecting):
    gc.enable()
    x = pt.dscalar("x")
    seen = []

    class Spy(phintys.Op):
        @property
        def destroy_map(self):
            seen.append(gc.isenabled())
            return {}

        def make_node(self, x):
            return phintys.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0]

    y = Spy()(x)
    seen.clear()
    phintys.function([x], y)
    assert seen and not any(seen) and gc.isenabled()
    with pytest.raises(phintys.errors.UnusedInputError):
        phintys.function([x], pt.dscalar("y"))
    assert gc.isenabled()
