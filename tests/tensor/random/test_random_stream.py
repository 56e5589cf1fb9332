"""Generators: `RandomStream`, `default_rng`, `spawn`, shared generators and how PyMC seeds them."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.tensor.random import basic
from phintys.tensor.random.making import DefaultGeneratorMakerOp, SpawnOp
from phintys.tensor.random.op import RNGConsumerOp, default_rng
from phintys.tensor.random.type import RandomType, random_generator_type
from phintys.tensor.random.utils import RandomStream

pytestmark = [
    pytest.mark.filterwarnings("ignore:Setting default_update:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The no_default_updates:DeprecationWarning"),
]

modes = pytest.mark.parametrize("mode", ("FAST_COMPILE", "FAST_RUN", "C"))


def stream(seed=None, **kwargs):
    with pytest.warns(FutureWarning, match=r"shared_rng"):
        return RandomStream(seed, **kwargs)


def children(seed, n):
    return [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(n)]


# ----- RandomStream


@modes
def test_each_draw_of_a_stream_has_a_generator_of_its_own(mode):
    s = stream(5)
    f = phintys.function([], [s.normal(0.0, 1.0, size=3), s.normal(size=2)], mode=mode)
    for seed in (None, 7, None):
        s.seed(seed)
        a, b = children(seed or 5, 2)
        for _ in range(2):
            x, y = f()
            np.testing.assert_array_equal(x, a.normal(size=3))
            np.testing.assert_array_equal(y, b.normal(size=2))
    np.testing.assert_array_equal(
        phintys.function([], s.normal(), mode=mode)(), children(5, 3)[2].normal()
    )


def test_updates_of_a_stream():
    s = stream(4)
    draws = [s.normal(size=2) for _ in range(3)]
    found = s.updates()
    assert s.default_instance_seed == 4
    assert found == s.state_updates
    assert found is not s.state_updates
    for (rng, after), x in zip(found, draws, strict=True):
        assert x.owner.inputs[0] is rng
        assert x.owner.outputs[0] is after is rng.default_update
    f = phintys.function([], draws[0], no_default_updates=True)
    np.testing.assert_array_equal(f(), f())
    g = phintys.function([], draws[0], updates=found, no_default_updates=True)
    assert not np.array_equal(g(), g())


def test_the_namespace_and_the_constructor_of_a_stream():
    s = stream(3, namespace=basic, rng_ctor=lambda seed: np.random.Generator(np.random.SFC64(seed)))
    (seed,) = np.random.SeedSequence(3).spawn(1)
    expected = np.random.Generator(np.random.SFC64(seed)).normal(size=4)
    np.testing.assert_array_equal(phintys.function([], s.normal(size=4))(), expected)
    np.testing.assert_array_equal(
        phintys.function([], s.gen(basic.NormalRV(), 0.0, 2.0))(),
        2.0 * np.random.Generator(np.random.SFC64(np.random.SeedSequence(3).spawn(2)[1])).normal(),
    )


def test_what_a_stream_refuses():
    s = stream(1)
    with pytest.raises(AttributeError, match="no distribution 'nothing'"):
        s.nothing()
    with pytest.raises(ValueError, match="leave out rng"):
        s.normal(rng=pt.random.shared_rng(seed=1))
    with pytest.raises(TypeError, match="SeedSequence expects"):
        stream("a")


def test_streams_are_copied_and_pickled():
    s = stream(1)
    s.normal()
    for other in (copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        (rng, after), (own, _) = other.state_updates[0], s.state_updates[0]
        assert rng is not own
        assert after.owner.inputs[0] is rng
        f = phintys.function([], other.normal())
        assert f() == children(1, 2)[1].normal()


# ----- default_rng


@modes
def test_default_rng_makes_the_generator_of_numpy(mode):
    i, v = pt.lscalar("i"), pt.vector("v", dtype="uint32")
    assert isinstance(default_rng, DefaultGeneratorMakerOp)
    for seed, given in ((3, ()), ([1, 2], ()), (2**40, ()), (i, (7,)), (v, ([1, 2**31],))):
        inputs = [x for x in (seed,) if given]
        next_rng, x = default_rng(seed).normal(size=3)
        f = phintys.function(inputs, [x, next_rng], mode=mode)
        for _ in range(2):
            expected = np.random.default_rng(*(given or (seed,)))
            found, after = f(*given)
            np.testing.assert_array_equal(found, expected.normal(size=3))
            assert random_generator_type.values_eq(after, expected)
    f = phintys.function([], default_rng(), mode=mode)
    assert not random_generator_type.values_eq(f(), f())
    with pytest.raises(ValueError, match="negative"):
        phintys.function([i], default_rng(i), mode=mode)(-1)


@pytest.mark.parametrize("seed", [1.5, np.zeros((2, 2), "int64"), pt.dscalar("d"), "seed"])
def test_seeds_that_are_wrong(seed):
    with pytest.raises(TypeError):
        default_rng(seed)


# ----- spawn


@modes
@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_spawned_generators_are_those_of_numpy(mode, kind):
    rng = pt.random.rng("rng")
    between, _ = rng.normal(size=3)
    after, (left, right) = between.spawn(2)
    again, (third,) = after.spawn(1)
    draws = [g.normal(size=4)[1] for g in (left, right, third, again)]
    f = phintys.function([rng], [again, *draws], mode=mode)
    given, expected = (np.random.Generator(getattr(np.random, kind)(8)) for _ in range(2))
    for _ in range(2):  # the argument is not changed: each call spawns the same
        state, *found = f(given)
        numpys = copy.deepcopy(expected)
        numpys.normal(size=3)
        for g, x in zip([*numpys.spawn(2), *numpys.spawn(1), numpys], found, strict=True):
            np.testing.assert_array_equal(x, g.normal(size=4))
    state.normal()  # what the function returns can itself spawn
    spawned, wanted = state.spawn(1)[0], numpys.spawn(1)[0]
    assert spawned.normal() == wanted.normal()


@modes
def test_updates_by_spawning(mode):
    rng = pt.random.shared_rng(seed=3)
    after, (child,) = rng.spawn(1)
    f = phintys.function([], child.normal()[1], updates={rng: after}, mode=mode)
    expected = np.random.default_rng(3)
    assert [f(), f()] == [g.normal() for g in expected.spawn(2)]


def test_the_op_of_spawning():
    rng = pt.random.rng()
    after, found = pt.random.spawn(rng, 2)
    node = after.owner
    assert node.op == SpawnOp(2) != SpawnOp(3)
    assert isinstance(node.op, RNGConsumerOp)
    assert node.op.update(node) == {rng: after}
    assert node.outputs == [after, *found]
    assert pt.random.spawn(np.random.default_rng(1), 0)[1] == []
    with pytest.raises(ValueError, match="negative"):
        rng.spawn(-1)
    rng.spawn(1)
    with pytest.warns(UserWarning, match="drawn from already"):
        rng.normal()


def test_a_generator_without_a_seed_sequence_does_not_spawn():
    class Fixed(np.random.bit_generator.ISeedSequence):
        def generate_state(self, n_words, dtype=np.uint32):
            return np.arange(n_words, dtype=dtype)

    rng = pt.random.rng()
    f = phintys.function([rng], rng.spawn(1)[1])
    with pytest.raises(TypeError, match="does not implement spawning"):
        f(np.random.Generator(np.random.PCG64(Fixed())))


# ----- values


@modes
def test_a_mutable_input_and_an_input_with_a_default(mode):
    rng = pt.random.rng("rng")
    after, x = rng.normal(size=2)
    f = phintys.function([phintys.In(rng, mutable=True)], [x, after], mode=mode)
    found, state = f(np.random.default_rng(1))
    expected = np.random.default_rng(1)
    np.testing.assert_array_equal(found, expected.normal(size=2))
    assert random_generator_type.values_eq(state, expected)
    for wrong in (np.random.RandomState(1), 3, np.random.PCG64(1)):
        with pytest.raises(TypeError, match=r"numpy\.random\.Generator"):
            f(wrong)


def test_containers_and_shared_generators_are_copied():
    rng = pt.random.shared_rng(seed=1, name="rng")
    cell = copy.deepcopy(rng.container)
    assert random_generator_type.values_eq(cell.value, rng.get_value())
    assert cell.value.bit_generator is not rng.get_value(borrow=True).bit_generator
    for other in (copy.deepcopy(rng), pickle.loads(pickle.dumps(rng))):
        assert other.name == "rng"
        assert random_generator_type.values_eq(other.get_value(), rng.get_value())
        other.get_value(borrow=True).normal()
        assert random_generator_type.values_eq(rng.get_value(), np.random.default_rng(1))


# ----- as PyMC does it


def updates_of_draws(outputs):
    """Each shared generator that the outputs use, with its state after the last draw."""
    graph = FunctionGraph(outputs=outputs, clone=False)
    found = {}
    for rng in graph.inputs:
        if not isinstance(rng.type, RandomType):
            continue
        last = rng
        while True:
            users = [n for n, _ in graph.clients.get(last, []) if isinstance(n, phintys.Apply)]
            consumers = [n for n in users if isinstance(n.op, RNGConsumerOp)]
            if not consumers:
                break
            (node,) = consumers
            last = node.op.update(node)[last]
        found[rng] = last
    return found


@modes
def test_a_model_is_compiled_and_then_seeded(mode):
    mean, first, second = pt.dvector("mean"), pt.random.shared_rng(), pt.random.shared_rng()
    next_rng, x = first.normal(mean, 1.0)
    _, y = next_rng.normal(x, 2.0)
    _, z = second.normal(x + y, 0.5)
    updates = updates_of_draws([x, y, z])
    assert list(updates) == [first, second]
    f = phintys.function([mean], [x, y, z], updates=updates, mode=mode)
    shared = [v for v in f.maker.fgraph.inputs if isinstance(v.type, RandomType)]
    assert len(shared) == len([v for v in f.get_shared() if isinstance(v.type, RandomType)]) == 2
    for seed in (1, 2, 1):
        seeds = np.random.SeedSequence(seed).spawn(2)
        for rng, s in zip(updates, seeds, strict=True):
            rng.set_value(np.random.Generator(np.random.PCG64(s)), borrow=True)
        a, b = (np.random.Generator(np.random.PCG64(s)) for s in seeds)
        for _ in range(2):
            found = f(np.arange(3.0))
            u = a.normal(np.arange(3.0), 1.0)
            v = a.normal(u, 2.0)
            for got, wanted in zip(found, (u, v, b.normal(u + v, 0.5)), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-15)


def test_an_op_is_what_the_names_at_the_paths_of_pytensor_are():
    assert issubclass(pt.random.op.AbstractRNGConstructor, Op)
    assert pt.random.default_rng is default_rng
    assert pt.random.RandomStream is RandomStream


def test_generators_are_imported_when_needed():
    script = "import sys, phintys.tensor; print('numpy.random' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.strip() == "False", found.stderr
