"""Default values, inputs that are updated, dicts of outputs, access to cells."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import In, Out, function
from phintys.compile.function import FunctionMaker
from phintys.compile.mode import Mode

pytestmark = pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])


@pytest.fixture
def xys():
    return pt.dscalars("x", "y", "s")


def test_default_values(mode, xys):
    x, y, _ = xys
    f = function([x, In(y, value=5.0)], x + y, mode=mode)
    assert f(1.0) == 6
    assert f(1.0, 2.0) == f(1.0, y=2.0) == 3
    assert f(1.0) == 6
    with pytest.raises(TypeError, match="missing argument 0, x"):
        f()
    with pytest.raises(TypeError, match="needs numbers"):
        In(y, value="abc")


def test_an_array_as_a_default_is_copied(mode):
    v = pt.dvector("v")
    given = np.zeros(2)
    one, two = (function([In(v, value=given)], v + 1, mode=mode) for _ in range(2))
    given[:] = 7
    np.testing.assert_array_equal(one(), [1, 1])
    one["v"] = [4.0, 5.0]
    np.testing.assert_array_equal(one(), [5, 6])
    np.testing.assert_array_equal(two(), [1, 1])


def test_inputs_as_tuples(mode, xys):
    x, _, _ = xys
    assert function([(x, 3.0)], x * 2, mode=mode)() == 6
    f = function([("n", (x, x + 1), 2.0)], x, mode=mode)
    assert [float(f()) for _ in range(3)] == [2, 3, 4]
    assert f(n=0.0) == 0
    assert f["n"] == 1
    for wrong in [(), ("n",), (x, 1.0, 2.0), ("n", 1.0)]:
        with pytest.raises(TypeError, match=r"An input is|Inputs of a function"):
            function([wrong], x, mode=mode)


def test_inputs_with_updates(mode, xys):
    x, _, s = xys
    f = function([x, In(s, value=0.0, update=s + x)], s, mode=mode)
    assert [float(v) for v in (f(1.0), f(2.0), f(1.0, s=10.0), f(0.0), f(0.0, 5.0), f(x=1))] == [
        *(0, 1, 10, 11, 5, 5)
    ]
    with pytest.raises(TypeError, match="s"):
        f(1.0, s="abc")
    assert f[s] == 6  # the failed call has stored nothing
    first = function([In(s, value=0.0, update=s + x), x], s, mode=mode)
    assert first(1.0, 2.0) == 1
    assert first(x=3.0) == 3
    with pytest.raises(TypeError, match="missing argument 1, x"):
        first(1.0)
    required = function([x, In(s, update=s + x)], s, mode=mode)
    with pytest.raises(TypeError, match=r"missing argument 1, s|s must be"):
        required(1.0)
    assert required(1.0, 2.0) == 2
    assert required(1.0) == 3


def test_implicit_inputs(mode, xys):
    x, _, s = xys
    f = function([In(s, value=1.0, update=s + x, implicit=True), x], s, mode=mode)
    assert f(1.0) == 1
    assert f(x=1.0) == 2
    with pytest.raises(TypeError, match="implicit"):
        f(1.0, s=2.0)
    with pytest.raises(TypeError, match="takes 1 arguments"):
        f(1.0, 2.0)


def test_the_state_of_a_function_is_its_own(mode, xys):
    x, y, s = xys
    inputs = [x, In(s, value=0.0, update=s + x), In(y, value=1.0)]
    f, other = (function(inputs, s + y, mode=mode) for _ in range(2))
    f(5.0)
    f[y] = 2.0
    copies = [f.copy(), copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))]
    f(5.0)
    assert [float(g(1.0)) for g in copies] == [7] * 4
    assert [float(g["s"]) for g in copies] == [6] * 4
    assert f[s] == 10
    assert other(1.0) == 1


def test_the_shared_variables_of_a_copy_are_those_that_it_reads(mode):
    w, v = (phintys.shared(np.zeros(2), name) for name in "wv")
    f = function([], w + 0, updates={w: w + 1}, mode=mode)
    swapped, own = f.copy(swap={w: v}), copy.deepcopy(f)
    for g, variable in ((f, w), (swapped, v), (own, own.get_shared()[0])):
        g()
        assert variable.get_value().tolist() == [1, 1]
        g.maker.fgraph.inputs[0].set_value([5.0, 5.0])
        assert g.get_shared() == [variable]
        assert g().tolist() == [5, 5]
    assert own.get_shared() != [w]
    assert copy.deepcopy(own)().tolist() == [6, 6]


def test_the_inputs_of_the_graph_are_the_variables_of_the_user(mode, xys):
    x, y, s = xys
    n, w, v = (phintys.shared(value, name) for value, name in ((0.0, "n"), (2.0, "w"), (5.0, "v")))
    f = function([x, y], x * w + y, updates={n: n + x}, mode=mode)
    for g, shared in ((f, [w, n]), (f.copy(), [w, n]), (f.copy(swap={w: v}), [v, n])):
        expected = [x, y, *shared]
        assert g.maker.fgraph.inputs == [i.variable for i in g.maker.inputs] == expected
        assert g.get_shared() == shared
        assert [c.storage for c in g.input_storage[2:]] == [s.container.storage for s in shared]
        assert [i.value for i in g.maker.inputs[2:]] == [s.container for s in shared]
        options = [(i.implicit, i.shared, i.mutable, i.borrow) for i in g.maker.inputs]
        assert options[:2] == [(False, False, False, None)] * 2
        assert options[2:] == [(True, True, False, True), (True, True, True, True)]
        assert g.maker.inputs[3].update.owner.inputs == [n, x]
    again = pickle.loads(pickle.dumps(f))
    assert again.maker.fgraph.inputs == [i.variable for i in again.maker.inputs]
    assert again.get_shared() == again.maker.fgraph.inputs[2:]
    kept = function([x, In(s, value=1.0, update=s + x)], s, mode=mode)
    assert [(i.implicit, i.shared) for i in kept.maker.inputs] == [(False, False), (False, True)]


def test_a_maker_of_the_inputs_of_another(mode, xys):
    x, _, _ = xys
    n = phintys.shared(0.0, "n")
    made = function([x], x, updates={n: n + x}, mode=mode).maker
    for graph in ({}, {"fgraph": made.fgraph}):
        f = FunctionMaker(made.inputs, made.outputs, mode, **graph).create()
        assert f(3.0) == [3.0]
    assert n.get_value() == 6


def test_an_input_whose_cell_is_a_shared_variable(mode, xys):
    x, _, s = xys
    total = phintys.shared(1.0, "total")
    f = function([x, In(s, value=total, update=s + x)], s + total, mode=mode)
    assert f(2.0) == 2
    assert total.get_value() == 3
    g = FunctionMaker([x, In(total, value=total.container, update=total + x)], x, mode).create()
    assert g(1.0) == 1
    assert total.get_value() == 4


def test_dicts_of_outputs(mode, xys):
    x, _, _ = xys
    state = phintys.shared(0.0)
    f = function([x], {"b": x, "a": Out(x + 1), 3: x * 2}, updates={state: state + 1}, mode=mode)
    found = f(1.0)
    assert list(found) == ["b", "a", 3]
    assert found == {"b": 1, "a": 2, 3: 2}
    assert f.output_keys == ["b", "a", 3]
    assert f(1.0, output_subset=["a"]) == {"a": 2}
    assert pickle.loads(pickle.dumps(f))(1.0) == f.copy()(1.0) == found
    assert state.get_value() == 3
    assert function([], {}, mode=mode)() == {}
    with pytest.raises(ValueError, match="no output 'c'"):
        f(1.0, output_subset=["c"])


def test_some_outputs(mode, xys):
    x, _, _ = xys
    state, calls = phintys.shared(0.0), []
    f = function([x], [x, x + 1, x * 3], updates={state: state + x}, mode=mode)
    assert f(1.0, output_subset=[2, 0]) == [3, 1]
    assert f(2.0, output_subset=[]) == []
    assert f(x=2.0, output_subset=None) == [2, 3, 6]
    assert state.get_value() == 5
    assert function([x], x + 1, mode=mode)(1.0, output_subset=[0]) == 2
    for wrong in (0, "a"):
        with pytest.raises(TypeError, match=f"output_subset must be a list .*, not {wrong!r}"):
            f(1.0, output_subset=wrong)

    class Counted(phintys.Op):
        itypes = otypes = (pt.dscalar,)

        def perform(self, node, inputs, output_storage):
            calls.append(inputs)
            output_storage[0][0] = inputs[0] * 2

    g = function([x], [x + 1, Counted()(x)], mode=mode)
    assert g(1.0, output_subset=[0]) == [2]
    assert not calls  # what is not asked for is not computed


def test_cells(mode, xys):
    x, y, s = xys
    w = phintys.shared(2.0, "w")
    f = function([x, In(y, value=1.0)], x * w + y, mode=mode)
    assert (f[w], f["w"], f.value["y"], f[x]) == (2, 2, 1, None)
    f["w"], f[x] = 5.0, 3.0
    assert w.get_value() == 5
    assert f() == 16
    assert list(f.container) == [w, x, y]
    assert "w" in f.value
    assert s not in f.value
    for wrong in ("wrong", s):
        with pytest.raises(TypeError, match="no input and no shared variable"):
            f[wrong]
    with pytest.raises(TypeError, match="Bad value for y"):
        f["y"] = "abc"


def test_the_virtual_machine(mode, xys):
    x, _, _ = xys
    w = phintys.shared(2.0, "w")
    f = function([x], [x * w], updates={w: w + 1}, mode=mode)
    f.input_storage[0].value = 3
    f.vm()
    assert f.output_storage[0].value == 6
    assert w.get_value() == 3
    cells = f.vm.storage_map
    assert cells[f.maker.fgraph.outputs[0]] is f.output_storage[0].storage
    assert cells[f.maker.fgraph.inputs[1]] is w.container.storage
    assert f.vm.compute_map[f.maker.fgraph.inputs[0]] == [True]
    assert set(f.vm.nodes) == f.maker.fgraph.apply_nodes
    if mode not in ("FAST_RUN", "NUMBA", "JAX"):
        assert not hasattr(f.vm, "jit_fn")
    f.free()
    assert f.output_storage[0].value is None


class _CountingMaker(FunctionMaker):
    made = 0

    def create(self, *args, **kwargs):
        type(self).made += 1
        return super().create(*args, **kwargs)


class _CountingMode(Mode):
    @property
    def function_maker(self):
        return _CountingMaker


def test_a_mode_chooses_the_maker(mode, xys):
    x, _, _ = xys
    before = _CountingMaker.made
    f = function([x], x + 1, mode=_CountingMode(phintys.get_mode(mode).linker))
    assert f(1.0) == pickle.loads(pickle.dumps(f))(1.0) == f.copy()(1.0) == 2
    assert _CountingMaker.made == before + 3


def test_makers(mode, xys):
    x, _, _ = xys
    graph = phintys.FunctionGraph([x], [x + 1], clone=False)
    f = FunctionMaker([x], [x + 1], mode, fgraph=graph, no_fgraph_prep=True).create([4.0])
    assert f.maker.fgraph is graph
    assert f() == [5]
    assert f(1.0) == [2]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_results_may_be_written(mode, n):
    """Those of read-only arguments too, and where NumPy's own result is read-only."""
    x = pt.dvector("x")
    y = phintys.ifelse(pt.sum(x) > 9, x + 1, x)
    values = np.frombuffer(np.ones(n + 1).tobytes(), "float64")[1:]
    views = [pt.diag(pt.exp(x)[:, None], k=1), pt.broadcast_to(pt.exp(x), (2, n))]
    outputs = [x, x[::-1], y, pt.imag(x), pt.real(x), *views]
    results = phintys.function([x], outputs, mode=mode)(values)
    assert not values.flags.writeable
    for found in results:
        found += 1
    np.testing.assert_array_equal(np.concatenate(results[:3]), np.full(3 * n, 2.0))
