"""Functions whose ``maker.fgraph`` is changed by hand: they stay the same, new ones follow it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError

MODES = ["FAST_RUN", "FAST_COMPILE", "C", "NUMBA", "DebugMode"]

#: how functions of the changed graph are made
OTHERS = {
    "create": lambda f: f.maker.create(),
    "copy": lambda f: f.copy(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
}


def edited(mode):
    """A function of ``x + y`` and ``x * y``; then the sum was replaced by ``x[5]``."""
    x, y = pt.dvectors("x", "y")
    f = phintys.function([x, y], [x + y, x * y], mode=mode)
    fgraph = f.maker.fgraph
    fgraph.replace(fgraph.outputs[0], pt.exp(fgraph.inputs[0])[5:6], reason="by hand")
    return f


@pytest.mark.parametrize("mode", MODES)
def test_a_function_does_not_follow_changes_of_its_graph(mode):
    f = edited(mode)
    with pytest.raises(ShapeError, match=r"Mul: x has shape \(2,\), y has shape \(3,\)"):
        f(np.ones(2), np.ones(3))
    for k, expected in enumerate(([3.0, 3.0], [2.0, 2.0])):
        found = f(np.ones(2), np.full(2, 2.0), output_subset=[k])
        np.testing.assert_array_equal(found, [expected])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("made", OTHERS)
def test_new_functions_have_the_changed_graph(mode, made):
    g = OTHERS[made](edited(mode))
    found = g(np.zeros(6), np.ones(6))
    np.testing.assert_array_equal(found[0], [1.0])
    np.testing.assert_array_equal(found[1], np.zeros(6))


def test_what_is_shown_of_a_function_is_what_it_computes():
    f = edited("FAST_RUN")
    shown = [phintys.dprint(f, file="str"), str(phintys.explain(f)), str(f.program.steps)]
    assert "Exp" not in shown[0] and "Add" in shown[0]
    g = f.maker.create()
    assert "Exp" in phintys.dprint(g, file="str") and "exp" in str(phintys.explain(g))
    f.maker.create()
    assert shown == [phintys.dprint(f, file="str"), str(phintys.explain(f)), str(f.program.steps)]


def test_changes_one_after_the_other():
    f = edited("FAST_RUN")
    g = f.maker.create()
    fgraph = f.maker.fgraph
    fgraph.replace(fgraph.outputs[1], pt.sin(fgraph.inputs[0]))
    h = f.maker.create()
    x, y = np.zeros(6), np.ones(6)
    assert [float(k(x, y)[0].sum()) for k in (f, g, h)] == [6.0, 1.0, 1.0]
    again = f.maker.fgraph
    assert again is fgraph and g.maker is h.maker is f.maker
    for k in (f, g):
        with pytest.raises(ShapeError, match="Mul"):
            k(np.zeros(6), np.zeros(7))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("made", OTHERS)
def test_shared_variables_that_are_imported(mode, made):
    x, n = pt.dscalar("x"), phintys.shared(1.0, "n")
    f = phintys.function([x], x * n, updates={n: n + 1}, mode=mode)
    new = phintys.shared(10.0, "new")
    fgraph = f.maker.fgraph
    fgraph.replace(fgraph.outputs[0], fgraph.inputs[0] + new, import_missing=True)
    g = OTHERS[made](f)
    assert [s.name for s in g.get_shared()] == ["n", "new"] and f.get_shared() == [n]
    assert g(5.0) == 15.0
    g.get_shared()[1].set_value(20.0)
    assert g(5.0) == 25.0
    assert g.get_shared()[0].get_value() == 3.0
    assert f(5.0) == (15.0 if made in ("create", "copy") else 5.0)


def test_shared_variables_that_are_removed():
    x, a, b = pt.dscalar("x"), phintys.shared(1.0, "a"), phintys.shared(2.0, "b")
    f = phintys.function([x], [x * a * b], updates={b: b + 1})
    fgraph = f.maker.fgraph
    fgraph.replace(fgraph.outputs[0], fgraph.inputs[0] * b)
    fgraph.remove_input(fgraph.inputs.index(a))
    for g in (f.copy(), f.maker.create()):
        assert g.get_shared() == [b]
    assert g(1.0) == [2.0] and f(1.0) == [3.0] and g(1.0) == [4.0]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda g: g.remove_output(0), "it has 1 results before the updates, not 2"),
        (lambda g: g.remove_input(1), "The input y was removed from the graph"),
        (lambda g: g.inputs.reverse() or g.note_change(), "its inputs have another order"),
        (
            lambda g: g.replace(g.outputs[0], pt.dvector("z") + 1, import_missing=True),
            "z .*, which is not a shared variable, was added",
        ),
    ],
)
@pytest.mark.parametrize("made", OTHERS)
def test_graphs_of_which_no_function_can_be_made(change, message, made):
    f = edited("FAST_RUN")
    change(f.maker.fgraph)
    with pytest.raises(ValueError, match=message):
        OTHERS[made](f)
    np.testing.assert_array_equal(f(np.ones(1), np.ones(1)), [[2.0], [1.0]])


def test_a_graph_that_the_maker_was_given():
    x = pt.dvector("x")
    graph = phintys.FunctionGraph([x], [pt.log(1 + pt.exp(x))], clone=False)
    maker = phintys.compile.FunctionMaker([x], list(graph.outputs), "FAST_RUN", fgraph=graph)
    f = maker.create()
    assert maker.fgraph is graph and "Softplus" in str(graph.toposort())
    graph.replace(graph.outputs[0], pt.cos(x))
    g = maker.create()
    assert "Softplus" in phintys.dprint(f, file="str")
    np.testing.assert_array_equal([f(np.zeros(1)), g(np.zeros(1))], [[np.log([2.0])], [[1.0]]])
