"""Each backend obeys its protocol, and the linkers refer to backends by it alone."""

from __future__ import annotations

import copy
import shutil
import weakref

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.backends.c.compiler import COMPILERS
from phintys.compile.linker import GeneratorLinker, TranspilerLinker, get_linker
from phintys.compile.mode import Mode
from phintys.graph.op import Op
from phintys.graph.variable import Apply
from phintys.lowering.from_graph import lower_graph
from phintys.rewriting.database import optdb

needs_cc = pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler here")
GENERATORS = ["llvm", pytest.param("c", marks=needs_cc)]


def program(factor: float = 2.0):
    x, y = pt.dvectors("x", "y")
    return lower_graph(phintys.FunctionGraph([x, y], [pt.exp(x) * factor + y]))


class Methods:
    """The Python part of a function of two vectors."""

    loader = ""
    run: object
    strict: object

    def __call__(self, *args):
        return self.run([np.asarray(a) for a in args])

    def call_converted(self, args, kwargs):
        return self.strict(*map(np.asarray, args))

    def raise_failure(self, args, step):
        raise ValueError(f"step {step} failed for {len(args)} arguments")


def bound(backend, artifact):
    cls = backend.function_class(Methods)
    f = cls.__new__(cls)
    backend.bind(artifact, f, [], [])
    assert isinstance(f, Methods)
    return f


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_compiles_dumps_loads_and_binds(name):
    backend = get_linker(name).backend
    assert backend.surroundings() == backend.surroundings() != ""
    artifact = backend.compile(program(), to_store=True)
    assert artifact.size >= 0
    artifacts = [artifact]
    payload = backend.dump(artifact)
    if payload is not None:
        artifacts.append(backend.load(payload, 0))
        assert backend.dump(artifacts[1]) == payload
    assert backend.load(b"no code at all", 0) is None
    a = np.array([0.0, 1.0])
    for f in [bound(backend, made) for made in artifacts for _ in range(2)]:
        for args in ((a, a), ([0.0, 1.0], a)):
            (result,) = f(*args)
            np.testing.assert_allclose(result, np.exp(a) * 2 + a)
        with pytest.raises(ValueError, match=r"step \d+ failed for 2 arguments"):
            f(a, np.zeros(3))


def test_the_default_backend_dumps_its_code():
    backend = get_linker("auto").backend
    assert backend.dump(backend.compile(program(), to_store=True))


@pytest.mark.parametrize("name", GENERATORS)
def test_functions_do_not_keep_themselves_alive(name):
    backend = get_linker(name).backend
    f = bound(backend, backend.compile(program()))
    here = weakref.ref(f)
    del f
    assert here() is None


@pytest.mark.parametrize("mode", ["PY", "NUMBA", "JAX"])
def test_a_transpiler_compiles_a_graph(mode):
    x = pt.dvector("x")
    run = get_linker(mode.lower()).run(phintys.FunctionGraph([x], [x + x, x * 3]))
    found = run([np.ones(2)])
    np.testing.assert_array_equal(found, [np.full(2, 2.0), np.full(2, 3.0)])


@pytest.mark.parametrize("kind", [GeneratorLinker, TranspilerLinker])
def test_a_linker_without_a_backend(kind):
    with pytest.raises(TypeError, match="what its backend is"):
        _ = kind().backend


@needs_cc
def test_c_code_is_found_by_its_graph(monkeypatch):
    monkeypatch.setattr(optdb, "_own_version", optdb.version)  # whatever other tests registered

    def example():
        x, y = pt.dvectors("x", "y")
        return phintys.function([x, y], pt.exp(x) * 0.125 + y, mode="C")

    first, second = example(), example()
    assert second.run.compiled is first.run.compiled
    assert second.maker.times["rewriting"] == 0
    np.testing.assert_array_equal(second([0.0], [1.0]), [1.125])
    with pytest.raises(ValueError, match=r"\(2,\)|length|shape"):
        second(np.ones(2), np.ones(3))
    assert second.program.steps and "backend    c" in str(phintys.explain(second))


class Half(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] / 2


@pytest.mark.parametrize("name", ["py", *GENERATORS])
def test_copies_of_functions_with_ops_of_users(name):
    """Such code is not cached, so a Program is compiled twice."""
    s, x = phintys.shared(np.zeros(2), "s"), pt.dvector("x")
    f = phintys.function([x], [Half()(x), x[0]], updates={s: s + Half()(x)}, mode=Mode(name))
    for g in (f, copy.deepcopy(f), f.copy()):
        half, first = g(np.array([2.0, 4.0]))
        assert half.tolist() == [1.0, 2.0] and first == 2.0
    assert s.get_value().tolist() == [2.0, 4.0]
