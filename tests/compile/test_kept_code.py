"""Machine code that is kept by graph: found again, never for another function."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.backends import identity, llvm
from phintys.compile import native
from phintys.compile.function import FunctionMaker
from phintys.compile.mode import Mode, get_mode
from phintys.config import config
from phintys.errors import ShapeError
from phintys.graph.equality import equal_computations
from phintys.graph.op import Op
from phintys.graph.packed import PackedGraph
from phintys.graph.variable import Apply
from phintys.lowering import from_graph
from phintys.lowering.text import render_program
from phintys.rewriting.database import optdb
from phintys.rewriting.rewriter import node_rewriter
from phintys.rewriting.trace import trace
from phintys.rewriting.walk import in2out

pytestmark = pytest.mark.usefixtures("each_loader")


@pytest.fixture(autouse=True)
def made(tmp_path, monkeypatch):
    """A cache of its own; a list that grows with each generated routine."""
    monkeypatch.setenv("PHINTYS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(optdb, "_own_version", optdb.version)  # whatever other tests registered
    native._recent.clear()
    generated = []
    generate = llvm.generate

    def counted(*args, **kwargs):
        generated.append(args)
        return generate(*args, **kwargs)

    monkeypatch.setattr(llvm, "generate", counted)
    yield generated
    native._recent.clear()


def example(name="x", mode=None):
    x = pt.dvector(name)
    y = x / x + pt.exp(x) * 0.0 + x
    return phintys.function([x], [y, phintys.grad((x**3).sum(), x)], mode=mode)


def live_nodes():
    gc.collect()
    return [obj for obj in gc.get_objects() if issubclass(type(obj), Apply)]  # no weak proxies


def new_nodes(before):
    """The nodes that there are now, but not in ``before``, which keeps its own alive."""
    known = set(map(id, before))
    return [node for node in live_nodes() if id(node) not in known]


@pytest.mark.usefixtures("frozen_heap")
@pytest.mark.parametrize("is_own", [False, True])
def test_functions_keep_no_nodes(is_own):
    """The rewritten graph is made again when it is asked for, and the Program, with messages."""

    def graph(k):
        x, y = pt.dvectors("x", "y")
        z = pt.log1p(pt.exp(x * (k + 2.5) + y)) + y
        return [x, y], [z, phintys.grad(z.sum(), x)], Twice()(z) if is_own else z * 3

    inputs, outputs, last = graph(0)
    kept = [phintys.function(inputs, [*outputs, last])]  # what it leaves in caches, others do too
    inputs, outputs, last = graph(1)
    before = live_nodes()
    f = phintys.function(inputs, [*outputs, last])
    if not is_own:  # a step that calls Python has its node, and what that depends on
        assert new_nodes(before) == []
    assert type(f.maker.spec.held) is PackedGraph
    with pytest.raises(ShapeError) as info:
        f(np.ones(2), np.ones(3))
    assert "z = pt.log1p" in "".join(getattr(info.value, "__notes__", [])) + str(info.value)
    fresh = FunctionMaker(inputs, [*outputs, last])
    assert equal_computations(
        f.maker.fgraph.outputs, fresh.fgraph.outputs, f.maker.fgraph.inputs, fresh.fgraph.inputs
    )
    assert render_program(f.program) == render_program(fresh.program)
    assert all(isinstance(node, Apply) for node in f.program.origins)
    assert new_nodes(before) and kept


def check(f):
    value = np.array([1.0, 2.0])
    results = f(value)
    np.testing.assert_allclose(results[0], value + 1)
    np.testing.assert_allclose(results[1], 3 * value**2)


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_the_second_function_generates_nothing(made, where):
    check(example())
    assert len(made) == 1
    if where == "disk":
        native._recent.clear()
    f = example()
    check(f)
    assert len(made) == 1
    assert f.maker.times["rewriting"] == 0
    # whoever looks gets the rewritten graph and the Program
    names = {str(node.op) for node in f.maker.fgraph.apply_nodes}
    assert "True_div" not in names and f.maker.times["rewriting"] > 0
    assert f.program.steps and "backend    llvm" in str(phintys.explain(f))
    check(f)


def test_memory_is_limited():
    x = pt.dscalar("x")
    for i in range(40):
        phintys.function([x], x + float(i))
    assert 10 <= native._recent.count <= 32


def test_large_constants_count():
    x = pt.dvector("x")
    for i in range(12):  # of 4 MB
        phintys.function([x], pt.constant(np.full(2**19, float(i))) * x)
    sizes = [code.size for code in native._recent.values()]
    assert min(sizes) > 2**22 and sum(sizes) <= 2**24
    assert native._recent.count <= 8


def test_it_looks_under_the_settings_of_its_making(made):
    with config.change_flags(optimizer_excluding="canonicalize:specialize:stabilize:fusion"):
        first, second = example(), example()
    assert len(made) == 1
    assert len(second.maker.fgraph.apply_nodes) == len(first.maker.fgraph.apply_nodes)
    third = example()
    assert len(made) == 2
    assert len(third.maker.fgraph.apply_nodes) < len(first.maker.fgraph.apply_nodes)


def test_looking_at_a_function_changes_no_setting_of_others(made, monkeypatch):
    """It is rewritten and lowered with the settings of its making, in this context alone."""
    seen = []
    lower = from_graph.lower_graph

    def lowered(*args):
        seen.append(config.floatX)
        with ThreadPoolExecutor(1) as other:
            seen.append(other.submit(lambda: (config.floatX, pt.vector().dtype)).result())
        return lower(*args)

    with config.change_flags(floatX="float32"):
        example()
        f = example()
    assert len(made) == 1
    monkeypatch.setattr(from_graph, "lower_graph", lowered)
    assert f.program.steps
    assert seen == ["float32", ("float64", "float64")] and config.floatX == "float64"


def test_what_makes_a_difference(made):
    x, y = pt.dvectors("x", "y")
    s = phintys.shared(np.zeros(2), "s")
    variants = [
        lambda: phintys.function([x, y], x + y),
        lambda: phintys.function([x, y], [x + y]),
        lambda: phintys.function([y, x], x - y),
        lambda: phintys.function([x, y], x - y),
        lambda: phintys.function([x, s.type("t")], x + s, on_unused_input="ignore"),
        lambda: phintys.function([x], x + s),
        lambda: phintys.function([x], x + s, updates={s: x + s}),
        lambda: phintys.function([x, y], x + y, mode=get_mode("FAST_RUN").excluding("fusion")),
    ]
    for number, variant in enumerate(variants, start=1):
        variant()
        assert len(made) == number
    for variant in variants:
        variant()
    assert len(made) == len(variants)


def test_shared_variables_are_their_own(made):
    def counter(start):
        s = phintys.shared(start, "s")
        return s, phintys.function([], s * 2.0, updates={s: s + 1.0})

    (s, f), (t, g) = counter(0.0), counter(10.0)
    assert len(made) == 1
    assert [f(), f(), g()] == [0, 2, 20]
    assert (s.get_value(), t.get_value()) == (2, 11)
    constant = np.array([1.0, 2.0])
    for value in (constant, constant + 1):
        x = pt.dvector("x")
        np.testing.assert_array_equal(phintys.function([x], x + value)(constant), constant + value)


@pytest.mark.parametrize("first", ["passed", "shared"])
def test_a_value_that_is_passed_is_not_one_that_is_shared(first):
    """The graphs are equal, the names too; one routine takes an argument, the other none."""
    x, value = pt.dvector("v"), np.array([0.0, 1.0])
    kept = phintys.shared(value, "v", shape=(None,))
    calls = {
        "passed": lambda: phintys.function([x], pt.exp(x) + 1)(value),
        "shared": lambda: phintys.function([], pt.exp(kept) + 1)(),
    }
    results = [calls.pop(first)(), *(call() for call in calls.values())]
    np.testing.assert_allclose(results, [np.exp(value) + 1] * 2)


def test_errors_of_code_that_was_found(made):
    def failing():
        a, b = pt.dvectors("a", "b")
        return phintys.function([a, b], pt.exp(a) + b)

    messages = []
    for f in (failing(), failing()):
        with pytest.raises(ValueError) as caught:
            f(np.ones(2), np.ones(3))
        messages.append(str(caught.value))
    assert len(made) == 1 and messages[0] == messages[1]
    with pytest.raises(TypeError, match="'b'"):
        failing()(np.ones(2), "no")


def test_pickles_are_small_and_find_the_code(made):
    f = example()
    check(pickle.loads(pickle.dumps(f)))
    found = example()
    again = pickle.loads(pickle.dumps(found))
    assert found.maker.times["rewriting"] == 0
    check(again)
    assert len(made) == 1  # the pickle of the first one holds the rewritten graph, and the key


def test_pickles_of_another_version_have_code_of_their_own(made, monkeypatch):
    """Its rewrites may have made another graph than those of this version make."""
    with monkeypatch.context() as there:
        there.setattr(identity, "own_version", lambda: "another")
        pickled = pickle.dumps(example())
    again = pickle.loads(pickled)
    check(again)
    assert again.maker.key != example().maker.key and len(made) == 2


@pytest.mark.parametrize("called", [False, True])
def test_graphs_changed_by_hand_have_code_of_their_own(made, called):
    """Whether or not the code of the graph before the change is kept."""
    x = pt.dvector("x")
    f = phintys.function([x], pt.exp(x) + 1)
    if called:
        f(np.zeros(1))
    fgraph = f.maker.fgraph
    fgraph.replace(fgraph.outputs[0], pt.cos(fgraph.inputs[0]), reason="by hand")
    for again in (f.maker.create(), pickle.loads(pickle.dumps(f)), f.copy()):
        np.testing.assert_array_equal(again(np.zeros(2)), np.ones(2))
    np.testing.assert_array_equal(phintys.function([x], pt.exp(x) + 1)(np.zeros(1)), [2.0])


def test_outputs_added_by_hand_have_code_of_their_own(made):
    x = pt.dvector("x")
    y = pt.exp(x)
    f = phintys.function([x], [y, y + 1])
    fgraph = f.maker.fgraph
    change = fgraph.last_change
    fgraph.remove_output(1)
    fgraph.add_output(pt.cos(fgraph.inputs[0]))
    assert fgraph.last_change is not change
    again = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(again(np.zeros(1)), [[1.0], [1.0]])


def test_rewrites_of_users_are_applied(made):
    check(example())

    @node_rewriter([pt.exp])
    def no_exp(fgraph, node):
        return [node.inputs[0] * 0.0]

    registered = Mode(None, get_mode("FAST_RUN").provided_optimizer.register((in2out(no_exp), 0.1)))
    check(example(mode=registered))
    assert registered.key is None and len(made) == 2
    x = pt.dvector("x")
    assert phintys.function([x], pt.exp(x), mode=registered)([1.0]) == [0.0]
    optdb.register("no_exp", in2out(no_exp), "fast_run", position=0.1)
    try:
        assert get_mode("FAST_RUN").key is None
        assert phintys.function([x], pt.exp(x))([1.0]) == [0.0]
    finally:
        optdb.remove("no_exp")


def test_who_watches_the_rewrites_sees_them(made):
    check(example())
    with trace() as log:
        check(example())
    assert len(log) > 0 and len(made) == 2
    with config.change_flags(check_rewrites=True):
        check(example())
    assert len(made) == 3


class Twice(Op):
    __props__ = ()
    factor = 2.0

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * self.factor


def test_ops_of_users_are_not_kept(made):
    x = pt.dvector("x")
    assert phintys.function([x], Twice()(x))([1.0]) == [2.0]
    assert len(made) == 1
    assert phintys.function([x], Twice()(x))([1.0]) == [2.0]
    assert len(made) == 2


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int32", "int64", "uint16", "float32", "float64"]
)
def test_dtypes_of_loaded_code_are_those_of_numpy(made, dtype):
    """Routines compare addresses of dtypes; a copy would send each call the slow way."""
    for _ in range(2):  # generated, and loaded
        x = pt.tensor("x", dtype=dtype, shape=(None,))
        f = phintys.function([x], [x[::-1], x.sum()])
        results = f(np.ones(3, dtype))
        assert all(r.dtype is np.dtype(r.dtype.char) for r in results)
        code = next(iter(native._recent.values()))
        dtypes = [value for _, value in code.words if isinstance(value, np.dtype)]
        assert dtypes
        assert all(value is np.dtype(value.char) for value in dtypes)
        native._recent.clear()
    assert len(made) == 1


MAKE = """
import pickle, sys, numpy as np, phintys, phintys.tensor as pt
e, a, w = pt.dvector("e"), pt.dscalar("a"), phintys.shared(np.ones((3, 3)), "w")
x = phintys.scan(lambda e, x, a: pt.tanh(a * x + e), e, pt.zeros(()), a, return_updates=False)
cost = (x * x).sum() + pt.dot(w, e).sum()
f = phintys.function([e, a], [cost, phintys.grad(cost, a)], updates=[(w, 0.9 * w)])
kept = pickle.dumps(f)
sys.stdout.buffer.write(pickle.dumps((kept, f(np.arange(3.0), 0.5))))
"""

LOAD = """
import pickle, sys, numpy as np, phintys, phintys.tensor
kept, expected = pickle.load(sys.stdin.buffer)
f = pickle.loads(kept)
print(f.get_shared()[0].get_value(borrow=True).dtype is np.dtype("float64"))
assert f(np.arange(3.0), 0.5) == expected
makers = ("lowering.from_graph", "tensor.rules", "backends.llvm.ir", "backends.llvm.vecmath")
print([m for m in sys.modules if m.removeprefix("phintys.").startswith(makers)])
"""


def test_kept_functions_load_without_what_makes_functions():
    """Neither rules nor what writes code is imported; values have the dtypes that calls expect."""
    pickled = subprocess.run([sys.executable, "-c", MAKE], capture_output=True, check=True).stdout
    done = subprocess.run([sys.executable, "-c", LOAD], input=pickled, capture_output=True)
    assert done.stdout.decode().split() == ["True", "[]"], done.stderr.decode()
