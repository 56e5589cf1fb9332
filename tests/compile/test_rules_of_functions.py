"""Rules that programs rely on: arguments, graphs that work in place, copies of values."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import In, Out, config, function, shared
from phintys.compile.mode import Mode
from phintys.errors import MissingInputError
from phintys.graph.containers import AssocList, frozendict
from phintys.graph.op import Op
from phintys.graph.shared import shared_constructor
from phintys.graph.traversal import graph_inputs
from phintys.graph.variable import Apply

both = pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
x = pt.dvector("x")
V = np.arange(3.0)


class Zeroed(Op):
    """Destroys its argument."""

    destroy_map = {0: [0]}
    itypes = otypes = (pt.dvector,)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        inputs[0][:] = 0
        output_storage[0][0] = inputs[0]


@both
def test_graphs_that_work_in_place_must_be_accepted(mode: str):
    y = Zeroed()(x + 1)
    with pytest.raises(TypeError, match="accept_inplace"):
        function([x], y, mode=mode)
    given = V.copy()
    assert function([x], y, mode=mode, accept_inplace=True)(given).tolist() == [0, 0, 0]
    np.testing.assert_array_equal(given, V)


@both
def test_forms_of_arguments(mode: str):
    wrongs: list[Any] = [x, {x: 1}, None]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="must be a list or a tuple"):
            function(wrong, [], mode=mode)
    f = function((x,), (x + 1,), mode=mode, name="named")
    assert (f.name, f.copy().name, f.copy(name="other").name) == ("named", "named", "other")
    assert [len(f(V)), function([], None, mode=mode)(), function([], mode=mode)()] == [1, [], []]
    profile = function([x], x, mode=mode, profile="message").profile
    assert "message" in str(profile)
    assert function([x], x, mode=mode, profile=False).profile is None
    f.free()
    f.sync_shared()
    assert f(V)[0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "C", "NUMBA", "JAX"])
def test_what_functions_of_every_mode_do(mode: str):
    a, b = pt.dscalars("a", "b")
    s, t = shared(1.0, "s"), shared(5.0, "t")
    inputs = [a, In(b, value=3.0, update=b + 1)]
    f = function(inputs, {"sum": a + b, "s": Out(s)}, updates={s: t, t: s + a}, mode=mode)
    assert f(1.0) == {"sum": 4, "s": 1}
    assert (s.get_value(), t.get_value(), f["b"]) == (5, 2, 4)
    assert f(1.0, b=0.0, output_subset=["sum"]) == {"sum": 1}
    f["b"] = 10.0
    others = [f.copy(share_memory=True, profile=True), pickle.loads(pickle.dumps(f))]
    others += [copy.deepcopy(f), f.copy(delete_updates=True), f.copy(swap={s: t, t: s})]
    assert [float(g(0.0)["sum"]) for g in others] == [10] * 5
    g = function([x, a], x[5] + a, updates={s: s + a}, mode=mode)
    before = float(s.get_value())
    with pytest.raises(IndexError):
        g(V, 1.0)
    assert s.get_value() == before
    given = V.copy()
    outputs = [x, x[1:], x[::-1], pt.constant(V, "c")]
    for found in function([x], outputs, updates={shared(V): x}, mode=mode)(given):
        assert not np.shares_memory(found, given)


@pytest.mark.parametrize("mode", ["NUMBA", "JAX"])
def test_the_compiled_function_of_a_transpiler(mode: str):
    """Samplers call it with the values of all inputs of the graph, and get all its outputs."""
    s = shared(2.0, "s")
    f = function([x], x * s, updates={s: s + 1}, mode=mode)
    values = [V, *(v.get_value() for v in f.get_shared())]
    product, state = f.vm.jit_fn(*map(np.asarray, values))
    np.testing.assert_array_equal(product, V * 2)
    assert (state, s.get_value()) == (3, 2)


@both
def test_givens_are_independent_of_each_other_and_keep_types(mode: str):
    y, i = pt.dvector("y"), pt.ivector("i")
    for pairs in ([(y, x * 2), (y.sum(), y.prod())], [(y.sum(), y.prod()), (y, x * 2)]):
        total = next(v for v, _ in pairs if v.owner)
        with pytest.raises(MissingInputError, match="not in the expressions of other givens"):
            function([x], total * y, givens=pairs, mode=mode)
    with pytest.raises(TypeError, match="i cannot be given for y"):
        function([i], y + 1, givens={y: i}, mode=mode)
    found = function([i], y + 1, givens={y: i}, mode=mode, rebuild_strict=False)([1, 2])
    assert (found.dtype, found.tolist()) == (np.dtype("int32"), [2, 3])


@both
def test_any_object_is_an_argument(mode: str):
    g = phintys.generic("g")
    value = {"a": object()}
    found = function([g], g, mode=mode)(value)
    assert list(found) == ["a"]
    state = shared(value)
    assert state.type == g.type
    function([g], [], updates={state: g}, mode=mode)([1])
    assert state.get_value() == [1]


def test_floatX_concerns_defaults_and_numbers_only():
    arrays = {t: np.ones(2, t) for t in ("float16", "float32", "float64", "int64")}
    for name in ("float16", "float32", "float64"):
        with config.change_flags(floatX=name):
            assert pt.vector("v").dtype == name
            assert {t: pt.as_tensor(a).dtype for t, a in arrays.items()} == {t: t for t in arrays}
            assert {t: shared(a).dtype for t, a in arrays.items()} == {t: t for t in arrays}
            assert function([s := pt.scalar("s")], s)(0.1).dtype == name
    with config.change_flags(cast_policy="numpy2"):
        assert [pt.as_tensor(k).dtype for k in (1, 1.5)] == ["int64", "float64"]


def test_copies_of_variables_and_constants():
    c = pt.constant(V.copy(), "c")
    for again in (copy.copy(c), copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
        assert again.equals(c)
        assert again.name == "c"
    assert not np.shares_memory(copy.deepcopy(c).data, c.data)
    graph = pt.exp(x) + c
    for again in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert again is not graph
        assert again.owner.op == graph.owner.op
        (root,) = [v for v in graph_inputs([again]) if v.name == "x"]
        np.testing.assert_allclose(again.eval({root: V}), np.exp(V) + V)


def test_shared_memory_of_shared_variables_survives_pickling():
    memory = np.zeros(2)
    a, b = shared(memory, borrow=True), shared(memory, borrow=True)
    f = pickle.loads(pickle.dumps(function([], a + b)))
    first, second = (s.get_value(borrow=True) for s in f.get_shared())
    first[:] = 1
    assert second.tolist() == [1, 1]
    assert f().tolist() == [2, 2]


class Celsius:
    """A value of a user."""

    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


def test_shared_variables_of_other_classes_can_be_registered():
    assert shared(Celsius(20.0)).type == phintys.generic

    def kelvin(value: Celsius, name: str | None = None, **options: Any) -> Any:
        return shared(value.degrees + 273.15, name=name)

    try:
        shared_constructor.register(Celsius, kelvin)
        made = shared(Celsius(20.0), "t")
    finally:
        shared_constructor.register(Celsius, shared_constructor.dispatch(object))
    assert (made.type, made.name, made.get_value()) == (pt.dscalar, "t", 293.15)


def test_names_of_linkers_that_are_not_here():
    for name in ("pytorch", "mlx", "nothing"):
        with pytest.raises(ValueError, match=f"no linker '{name}'"):
            Mode(name)
        with pytest.raises(ValueError, match="no mode"):
            phintys.get_mode(name.upper())


def test_containers_of_any_keys():
    d = frozendict(a=1, b=[2])
    assert (d, d["a"], d.copy(c=3)) == ({"a": 1, "b": [2]}, 1, {"a": 1, "b": [2], "c": 3})
    assert len({frozendict(a=1), frozendict({"a": 1}), frozendict(a=2)}) == 2
    with pytest.raises(TypeError):
        hash(d)
    assert pickle.loads(pickle.dumps(d)) == d
    found = AssocList()
    found[[1]], found["k"], found[{"a": 2}] = "list", "text", "dict"
    found[[1]] = "again"
    assert [found[k] for k in ([1], "k", {"a": 2})] == ["again", "text", "dict"]
    assert found.get([3]) is None
    assert (len(found), [1] in found, [2] in found) == (3, True, False)
    del found[[1]]
    assert [1] not in found
    with pytest.raises(KeyError):
        found[[1]]
