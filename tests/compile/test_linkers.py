"""Linkers: names, thunks, those that work node by node, backends of users (rows M5 to M10)."""

from __future__ import annotations

import linecache
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from phintys.link.c.basic import CLinker
from phintys.link.utils import (
    clear_generated_src,
    compile_function_src,
    fgraph_to_python,
    map_storage,
    unique_name_generator,
    write_generated_src,
)

import phintys
import phintys.tensor as pt
from phintys import Mode, get_mode
from phintys.compile import AddDestroyHandler, AddFeatureOptimizer, PrintCurrentFunctionGraph
from phintys.compile.linker import LINKERS, LocalLinker, NodewiseLinker, get_linker
from phintys.compile.linkers import (
    DualLinker,
    JITLinker,
    OpWiseCLinker,
    PerformLinker,
    VMLinker,
    WrapLinker,
    WrapLinkerMany,
)
from phintys.compile.mode import OPT_FAST_COMPILE, OPTIMIZERS, register_linker, register_mode
from phintys.compile.nodes import CompiledNodes
from phintys.compile.thunks import Thunk
from phintys.errors import CompilerError
from phintys.graph.destroy import DestroyHandler
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op


class Doubled(Op):
    """An op without code."""

    __props__ = ()
    itypes, otypes = [pt.dvector], [pt.dvector]

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = 2 * inputs[0]


def called(linker, value=(0.0, 0.0), expression=None):
    """A function of a vector by a linker, called."""
    x = pt.dvector("x")
    result = pt.exp(x).sum() if expression is None else expression(x)
    return phintys.function([x], result, mode=Mode(linker, "fast_compile"))(np.array(value))


# ---------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["cvm_nogc", "vm_nogc", "c|py_nogc"])
def test_names_of_linkers_without_collection(name):
    assert get_linker(name).name == "llvm"
    assert LINKERS[name] is get_linker("cvm")


def test_names_of_modes_and_selections():
    assert get_mode("VM").linker.name == "llvm"
    assert OPT_FAST_COMPILE is OPTIMIZERS["fast_compile"]
    mode = Mode("py", "o2")
    assert mode.get_linker_optimizer("", "default") == (mode.linker, OPTIMIZERS["o2"])
    assert mode.get_linker_optimizer("c", "o1") == (get_linker("c"), OPTIMIZERS["o1"])


# --------------------------------------------------------------------------- thunks


@pytest.mark.parametrize("linker", [PerformLinker(), get_linker("llvm"), OpWiseCLinker()])
def test_a_linker_on_its_own(linker):
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.exp(x), Doubled()(x)])
    accepted = linker.accept(fgraph)
    assert (linker.fgraph, accepted.fgraph) == (None, fgraph)
    cell = [np.zeros(2)]
    thunk, inputs, outputs = accepted.make_thunk(input_storage=[cell])
    thunk()
    assert [c.value.tolist() for c in outputs] == [[1, 1], [0, 0]]
    inputs[0].value = [np.log(2)]
    assert inputs[0].storage is cell
    thunk()
    assert outputs[0].value == pytest.approx([2])
    with pytest.raises(TypeError, match="read-only"):
        outputs[0].value = 3


def test_thunks_of_nodes():
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.exp(x).sum()], clone=False)
    thunk, inputs, outputs, thunks, order = PerformLinker().accept(fgraph).make_all()
    assert order == fgraph.toposort()
    inputs[0].value = [0.0, 0.0]
    for step, node in zip(thunks, order, strict=True):
        assert isinstance(step, Thunk)
        assert step.node is node
        step()
    assert outputs[0].value == 2
    inputs[0].value = [0.0]
    thunk()
    assert thunks[0].outputs[0][0].tolist() == [1]
    ins, outs, cells = map_storage(fgraph, order, storage_map={x: [5]})
    assert (ins, outs, len(cells)) == ([[5]], [[None]], 3)


def test_order_of_execution():
    seen = []

    class Noting(NodewiseLinker):
        def compute(self, node, inputs):
            seen.append(str(node.op))
            return super().compute(node, inputs)

    def backwards(fgraph):
        first, second, *rest = fgraph.toposort()
        return [second, first, *rest]

    expected = called("py", [1.0], lambda x: pt.exp(x) * pt.sin(x))
    for linker in (Noting(), Noting(scheduler=backwards)):
        found = called(linker, [1.0], lambda x: pt.exp(x) * pt.sin(x))
        np.testing.assert_array_equal(found, expected)
    assert seen[:2] == seen[4:2:-1]
    assert seen[2] == seen[5] == "Mul"
    assert Noting().clone(allow_gc=False).allow_gc is False
    assert Noting() == Noting() != Noting(allow_gc=True)


def test_a_failing_node_is_named():
    x, y = pt.dvectors("x", "y")
    linker = NodewiseLinker(scheduler=FunctionGraph.toposort)
    f = phintys.function([x, y], x + y, mode=Mode(linker, "fast_compile"))
    with pytest.raises(phintys.errors.ShapeError) as info:
        f([1.0], [1.0, 2.0])
    assert "while computing Add" in info.value.__notes__[0]


# -------------------------------------------------------------------- linkers by node


def test_c_code_for_each_node():
    linker = OpWiseCLinker()
    assert called(linker, [0.0, 0.0]) == 2
    assert called(linker, [1.0], lambda x: Doubled()(x) + 1).tolist() == [3]
    strict = OpWiseCLinker(fallback_on_perform=False)
    assert called(strict, [0.0]) == 1
    with pytest.raises(CompilerError, match="Doubled cannot be compiled by the linker 'c'"):
        called(strict, [1.0], Doubled())
    again = pickle.loads(pickle.dumps(linker))
    assert again == linker
    assert again.compiled == CompiledNodes(CLinker())


def test_two_computations_are_compared():
    assert called(DualLinker(), [1.0], lambda x: Doubled()(pt.exp(x)).sum()) == 2 * np.exp(1)
    pairs = []
    called(DualLinker(lambda x, y: pairs.append((x[0].shape, y[0].shape))), [1.0])
    assert pairs == [((1,), (1,)), ((), ())]

    class Wrong(Doubled):
        def lower(self, node, b, x):
            return b.map(lambda n, v: n.add(n.add(v, v), v), x)

    with pytest.raises(AssertionError, match="Mismatch"):
        called(DualLinker(), [1.0], Wrong())


def test_a_function_around_each_node():
    seen = []

    def both(fgraph, i, node, one, other):
        one()
        other()
        seen.append((i, str(node.op), one.outputs[0][0].tolist() == other.outputs[0][0].tolist()))

    class Prepared(WrapLinker):
        def pre(self, f, inputs, order, thunk_groups):
            seen.append((len(inputs), len(order), len(thunk_groups[0])))

    assert called(Prepared([PerformLinker(), OpWiseCLinker()], both)) == 2
    assert seen == [(1, 2, 2), (0, "Exp", True), (1, "Sum{axes=None}", True)]
    seen.clear()
    many = WrapLinkerMany(
        [PerformLinker()], [lambda *a: a[-1](), lambda g, i, node, thunk: seen.append(i)]
    )
    assert called(many) == 2
    assert seen == [0, 1]
    turned = NodewiseLinker(scheduler=lambda g: g.toposort()[::-1])
    with pytest.raises(ValueError, match="the same order"):
        called(WrapLinker([PerformLinker(), turned], both))


def test_threads_do_not_mix_their_values():
    def slow(fgraph, i, node, thunk):
        time.sleep(0.01)
        thunk()

    x = pt.dscalar("x")
    f = phintys.function([x], 2 * pt.exp(x), mode=Mode(WrapLinker([PerformLinker()], slow)))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(f, np.arange(8.0)))
    np.testing.assert_allclose(found, 2 * np.exp(np.arange(8.0)))


def test_callbacks_of_the_virtual_machine():
    seen = []

    def after(node, thunk, storage_map, compute_map):
        assert compute_map[node.outputs[0]] == [True]
        seen.append((str(node.op), storage_map[node.outputs[0]][0].tolist()))

    linker = VMLinker(
        allow_gc=False, callback=after, callback_input=lambda v, x: seen.append((str(v), x.shape))
    )
    assert called(linker) == 2
    assert seen == [("x", (2,)), ("Exp", [1, 1]), ("Sum{axes=None}", 2)]
    assert called(VMLinker(lazy=True, c_thunks=True)) == 2


# ------------------------------------------------------------------- backends of users


class Eager(JITLinker):
    """A backend made of NumPy functions."""

    name = "eager"
    required_rewrites = ("minimum_compile", "inline_inner_graphs")
    compiled = 0

    def fgraph_convert(self, fgraph, order, input_storage, output_storage, storage_map, **kwargs):
        assert len(order) == len(fgraph.apply_nodes)
        assert [storage_map[v] for v in fgraph.inputs] == list(input_storage)
        functions = {"Exp": np.exp, "Sum{axes=None}": np.sum, "Add": np.add, "Mul": np.multiply}
        return fgraph_to_python(fgraph, lambda op, **kw: functions[str(op)])

    def jit_compile(self, fn):
        type(self).compiled += 1
        return fn

    def input_filter(self, inp):
        return np.asarray(inp)

    def output_filter(self, var, out):
        return var.type.filter(out)


def test_a_backend_of_a_user():
    register_linker("eager", Eager())
    register_mode("EAGER", Mode("eager", "fast_run"))
    x, s = pt.dvector("x"), phintys.shared(np.array(1.0), "s")
    f = phintys.function([x], [pt.exp(x).sum(), x * 2], updates={s: s + 1}, mode="eager")
    total, twice = f([0.0, 0.0])
    assert (total, twice.tolist(), s.get_value()) == (2, [0, 0], 2)
    assert Eager.compiled == 1
    assert f.copy()([0.0])[0] == 1
    thunk, inputs, outputs = Eager().accept(FunctionGraph([x], [pt.exp(x)])).make_thunk()
    inputs[0].value = [0.0]
    thunk()
    assert outputs[0].value.tolist() == [1]
    with pytest.raises(TypeError, match="does not define fgraph_convert"):
        called(JITLinker())
    with pytest.raises(ValueError, match="already"):
        register_linker("eager", Eager())


def test_a_local_linker_of_a_user():
    class Plain(LocalLinker):
        name = "py"

        def make_all(self, input_storage=None, output_storage=None, storage_map=None):
            linker = PerformLinker().accept(self.fgraph)
            return linker.make_all(input_storage, output_storage, storage_map)

    assert called(Plain()) == 2
    with pytest.raises(TypeError, match="does not define make_all"):
        called(LocalLinker())


# ------------------------------------------------------------- rewriters that only look


def test_rewriters_that_change_nothing(capsys):
    x = pt.dvector("x")
    graph = FunctionGraph([x], [pt.exp(x)])
    AddDestroyHandler().rewrite(graph)
    AddDestroyHandler().rewrite(graph)
    AddFeatureOptimizer(DestroyHandler()).rewrite(graph)
    assert not graph.has_destroyers(graph.inputs)
    PrintCurrentFunctionGraph("here").rewrite(graph)
    assert capsys.readouterr().out.startswith("PrintCurrentFunctionGraph: here\nExp [id A]")
    mode = Mode("py").register((PrintCurrentFunctionGraph("last"), 1000))
    phintys.function([x], pt.exp(x) * 1, mode=mode)
    assert "last\nExp [id A]" in capsys.readouterr().out


# ----------------------------------------------------------------------- graphs as source


def test_graphs_as_python_source():
    x, y = pt.dvector("x"), pt.dscalar("y")
    fgraph = FunctionGraph([x, y], [pt.exp(x).sum(), y + 1], clone=False)
    names = unique_name_generator(["x"])
    functions = {"Exp": np.exp, "Sum{axes=None}": np.sum, "Add": np.add}
    seen = []

    def convert(op, node, note):
        seen.append((str(op), note))
        return functions[str(op)]

    order = sorted(fgraph.toposort(), key=lambda node: str(node.op) != "Add")
    f = fgraph_to_python(
        fgraph, convert, order=order, unique_name=names, local_env={"z": 3}, note="noted"
    )
    assert f([0.0, 0.0], 1.0) == (2.0, 2.0)
    assert [op for op, _ in seen] == ["Add", "Exp", "Sum{axes=None}"]
    assert {note for _, note in seen} == {"noted"}
    assert f.__code__.co_varnames[:2] == ("x_1", "y")
    assert f.__globals__["z"] == 3
    single = FunctionGraph([x], [pt.exp(x)])
    g = fgraph_to_python(single, lambda op, **kw: np.exp, squeeze_output=True)
    assert g(0.0) == 1


def test_source_is_kept_for_tracebacks():
    local = {"b": 2}
    f = compile_function_src("def f(a):\n    return a / b + c\n", "f", {"c": 1}, local)
    assert f(4) == 3
    assert local["f"] is f
    with pytest.raises(TypeError) as info:
        f("a")
    assert "return a / b + c" in str(info.traceback[-1].statement)
    name = write_generated_src("x = 1\n")
    assert linecache.getline(name, 1) == "x = 1\n"
    clear_generated_src()
    assert linecache.getline(name, 1) == ""
