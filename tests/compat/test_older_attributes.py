"""Attributes that programs for PyTensor read."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from phintys.graph.rewriting.basic import MergeFeature, MergeOptimizer, copy_stack_trace

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode
from phintys.graph.features import Feature, History, ReplaceValidate
from phintys.graph.fg import FunctionGraph
from phintys.tensor.blockwise import Blockwise

x, y = pt.dvectors("x", "y")


def test_makers_and_modes():
    s = phintys.shared(np.ones(2), name="s")
    f = phintys.function([x], x + s, updates={s: s + 1})
    maker = f.maker
    assert [i.variable.name for i in maker.expanded_inputs] == ["x", "s"]
    assert maker.required == [True, False]
    assert maker.unpack_single and not maker.return_none
    assert phintys.function([], None, updates={s: s + 1}).maker.return_none
    mode = Mode("py", "fast_compile")
    assert mode._optimizer is mode.provided_optimizer and mode.provided_linker == "py"
    assert mode.including("merge").provided_linker == "py"


def test_trace_of_a_variable():
    z = x + y
    ((line,),) = z.tag.trace
    assert line[0] == __file__ and line[2:] == ("test_trace_of_a_variable", "z = x + y")
    assert x.tag.trace[0][0][3] == 'x, y = pt.dvectors("x", "y")'
    assert not hasattr(z.owner.tag, "trace")
    copy_stack_trace(z, other := x * 2)
    assert other.tag.trace == z.tag.trace
    assert pickle.loads(pickle.dumps(z)).tag.trace == z.tag.trace
    with phintys.config.change_flags(traceback__limit=0):
        assert not hasattr((x + 1).tag, "trace")


def test_match_of_a_blockwise():
    match pt.linalg.inv(pt.dtensor3()).owner.op:
        case Blockwise(core):
            assert type(core).__name__ == "MatrixInverse"
        case _:
            pytest.fail("no Blockwise")


def test_history_of_a_graph():
    history = History()
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    fgraph.attach_feature(history)
    assert history.history == {}, "the graph has one already"
    (own,) = [f for f in fgraph._features if isinstance(f, ReplaceValidate)]
    fgraph.replace(fgraph.outputs[0], pt.log(x), reason="by hand")
    (entry,) = own.history[fgraph]
    assert entry[1] == 0 and entry[3] == "by hand"
    fgraph.remove_feature(own)
    assert own.history == {}


def test_times_of_callbacks():
    class Empty(Feature):
        def on_change_input(self, fgraph, node, i, var, new_var, reason=None):
            """Do nothing."""

    feature = Empty()
    fgraph = FunctionGraph([x], [pt.exp(x)], features=[feature], clone=False)
    assert fgraph.execute_callbacks_time == 0
    fgraph.replace_validate(fgraph.outputs[0], pt.log(x))
    assert feature in fgraph.execute_callbacks_times
    assert fgraph.execute_callbacks_time == sum(fgraph.execute_callbacks_times.values())
    assert fgraph.validate_time >= 0
    fgraph.remove_feature(feature)
    assert not pickle.loads(pickle.dumps(fgraph)).execute_callbacks_times


def test_why_nodes_were_added_and_removed():
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    (old,) = fgraph.toposort()
    fgraph.replace(fgraph.outputs[0], pt.log(x), reason="mine")
    (new,) = fgraph.toposort()
    assert old.tag.removed_by == ["mine"] and new.tag.imported_by == ["mine"]


def test_nodes_that_are_to_be_merged():
    feature = MergeFeature()
    fgraph = FunctionGraph([x], [pt.exp(x) + pt.exp(x)], features=[feature])
    assert set(feature.scheduled) == fgraph.apply_nodes
    MergeOptimizer().rewrite(fgraph)
    assert not feature.scheduled and len(fgraph.apply_nodes) == 2
