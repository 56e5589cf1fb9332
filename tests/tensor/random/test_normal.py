"""Draws of `normal`: layouts of parameters, states, threads, compiled code, shapes, batches.

``test_distributions.py`` compares the numbers of each distribution with NumPy's.
"""

from __future__ import annotations

import copy
import gc
import pickle
import signal
import threading

import numpy as np
import pytest
from random_threads import drawn_in_threads
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.compile.io import In
from phintys.errors import ShapeError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.fingerprint import fingerprint
from phintys.graph.vectorize import vectorize_graph
from phintys.lowering.program import Draw, Python
from phintys.tensor.random.basic import NormalRV
from phintys.tensor.random.type import random_generator_type

pytestmark = [
    pytest.mark.filterwarnings("ignore:Setting default_update:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The no_default_updates:DeprecationWarning"),
]

MODES = ("FAST_COMPILE", "FAST_RUN", "C")

modes = pytest.mark.parametrize("mode", MODES)


class Users(np.random.PCG64):
    """A bit generator of a user."""


def generator(seed=3, kind="PCG64"):
    return np.random.Generator(getattr(np.random, kind)(seed))


def assert_same_state(a, b):
    assert random_generator_type.values_eq(a, b)


def drawing(*args, mode="FAST_RUN", seed=3, inputs=(), outputs=lambda x: x, **kwargs):
    """A function that draws from a shared generator, and that generator."""
    rng = phintys.shared(generator(seed), "rng")
    next_rng, x = rng.normal(*args, **kwargs)
    return phintys.function(list(inputs), outputs(x), updates={rng: next_rng}, mode=mode), rng


# ----- numbers and states

CASES = [
    ((), {}),
    ((1.0,), {"scale": 0.0, "size": (3, 4)}),
    ((np.arange(3), np.float32(0.1)), {"size": (3,)}),
    ((np.arange(12.0).reshape(3, 4).T, np.ones((1, 3))), {}),
    ((np.arange(8.0)[::-2],), {}),
    ((np.array([np.nan, np.inf, -np.inf]), np.array([1.0, 2.0, np.inf])), {}),
    ((np.zeros((0, 2)),), {}),
]


@modes
@pytest.mark.parametrize("case", range(len(CASES)))
def test_numbers_and_states_are_those_of_numpy(mode, case):
    args, kwargs = CASES[case]
    f, rng = drawing(*args, mode=mode, **kwargs)
    expected = generator()
    for _ in range(3):
        found, wanted = f(), np.asarray(expected.normal(*args, **kwargs))
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.tobytes() == wanted.tobytes()
        assert_same_state(rng.get_value(), expected)


@modes
def test_bit_generators_of_users(mode):
    rng = pt.random.rng()
    f = phintys.function([rng], list(rng.normal(size=9)), mode=mode)
    given, expected = np.random.Generator(Users(5)), generator(5)
    after, found = f(given)
    np.testing.assert_array_equal(found, expected.normal(size=9))
    assert type(after.bit_generator) is Users
    assert after.bit_generator.state["state"] == expected.bit_generator.state["state"]


@modes
def test_symbolic_parameters_and_sizes(mode):
    mean, sd, n = pt.dvector("mean"), pt.fscalar("sd"), pt.lscalar("n")
    f, _ = drawing(mean, sd, size=(n, mean.shape[0]), mode=mode, inputs=[mean, sd, n])
    expected = generator()
    for rows in (3, 0, 7):
        found = f(np.arange(4.0), np.float32(0.3), rows)
        wanted = expected.normal(np.arange(4.0), np.float32(0.3), (rows, 4))
        np.testing.assert_array_equal(found, wanted)
    size = pt.vector("size", dtype="int32", shape=(2,))
    f, _ = drawing(size=size, mode=mode, inputs=[size])
    np.testing.assert_array_equal(f(np.array([2, 3], "int32")), generator().normal(size=(2, 3)))


@modes
def test_a_chain_of_draws_and_what_is_computed_with_them(mode):
    rng = phintys.shared(generator())
    first, x = rng.normal(size=(4, 5))
    second, y = first.normal(x.sum(axis=0), 0.1)
    third, z = second.normal(0, pt.exp(y[:2]))
    f = phintys.function([], [x, y, z], updates={rng: third}, mode=mode)
    expected = generator()
    for _ in range(2):
        a, b, c = f()
        np.testing.assert_array_equal(a, expected.normal(size=(4, 5)))
        np.testing.assert_allclose(b, expected.normal(a.sum(axis=0), 0.1), rtol=1e-12)
        np.testing.assert_allclose(c, expected.normal(0, np.exp(b[:2])), rtol=1e-12)
    assert_same_state(rng.get_value(), expected)


@pytest.mark.widths
def test_300_calls_and_three_widths():
    x = pt.dvector("x")
    f, rng = drawing(x, 2.0, size=(3, 37), inputs=[x], outputs=lambda y: [y, pt.exp(y).sum()])
    expected, mean = generator(), np.arange(37.0)
    first = None
    for _ in range(300):
        found, total = f(mean)
        np.testing.assert_array_equal(found, expected.normal(mean, 2.0, (3, 37)))
        first = total if first is None else first
    assert_same_state(rng.get_value(), expected)
    rng.set_value(generator())
    assert f(mean)[1] == first


# ----- states


@modes
def test_an_input_is_not_changed_and_shares_nothing_with_results(mode):
    rng = pt.random.rng("rng")
    next_rng, x = rng.normal(size=3)
    f = phintys.function([rng], [next_rng, rng, next_rng, x], mode=mode)
    given, expected = generator(), generator()
    first, same, second, found = f(given)
    assert_same_state(given, expected)
    assert_same_state(same, expected)
    np.testing.assert_array_equal(found, expected.normal(size=3))
    for after in (first, second):
        assert_same_state(after, expected)
    kept = [given, first, same, second]
    assert len({id(g.bit_generator) for g in kept}) == 4
    assert first.bit_generator.seed_seq.entropy == given.bit_generator.seed_seq.entropy


@modes
def test_a_chain_of_draws_changes_only_what_the_function_owns(mode):
    rng = pt.random.rng("rng")
    first, x = rng.normal(size=3)
    last, y = first.gamma(2.0, scale=x**2)
    given, expected = generator(), generator()
    for options in ({}, {"borrow": True}):
        f = phintys.function([In(rng, **options)], [x, y, last], mode=mode)
        *_, after = f(given)
        assert_same_state(given, generator())
    value = generator()
    f = phintys.function([In(rng, value=value, update=last)], [x, y], mode=mode)
    for _ in range(3):
        found, wanted = f(), expected.normal(size=3)
        np.testing.assert_array_equal(found[0], wanted)
        np.testing.assert_array_equal(found[1], expected.gamma(2.0, wanted**2))
    assert_same_state(value, generator())
    twice = generator()
    twice.normal(size=3), twice.gamma(2.0, size=3)
    assert_same_state(after, twice)


@modes
def test_a_result_is_not_the_value_of_the_shared_generator(mode):
    rng = phintys.shared(generator())
    next_rng, x = rng.normal()
    f = phintys.function([], [next_rng, x], updates={rng: next_rng}, mode=mode)
    after, _ = f()
    assert after.bit_generator is not rng.get_value(borrow=True).bit_generator
    after.normal(size=10)
    expected = generator()
    expected.normal()
    assert f()[1] == expected.normal()


@modes
def test_without_an_update_the_numbers_repeat(mode):
    rng = phintys.shared(generator())
    f = phintys.function([], rng.normal(size=2)[1], mode=mode)
    np.testing.assert_array_equal(f(), f())
    assert_same_state(rng.get_value(), generator())


@modes
def test_default_updates_givens_and_constants(mode):
    rng = phintys.shared(generator())
    rng.default_update, x = rng.normal(size=2)
    f, expected = phintys.function([], x, mode=mode), generator()
    for _ in range(2):
        np.testing.assert_array_equal(f(), expected.normal(size=2))
    kept = phintys.function([], x, mode=mode, no_default_updates=True)
    np.testing.assert_array_equal(kept(), kept())
    other = phintys.shared(generator(9))
    given = phintys.function([], x, mode=mode, givens={rng: other}, no_default_updates=True)
    np.testing.assert_array_equal(given(), generator(9).normal(size=2))
    constant = phintys.function([], pt.random.normal(size=2, rng=generator(4)), mode=mode)
    for _ in range(2):
        np.testing.assert_array_equal(constant(), generator(4).normal(size=2))


@modes
def test_a_failed_call_changes_no_state(mode):
    y = pt.dvector("y")
    f, rng = drawing(size=5, mode=mode, inputs=[y], outputs=lambda x: x + y)
    with pytest.raises(ShapeError):
        f(np.zeros(4))
    assert_same_state(rng.get_value(), generator())
    np.testing.assert_array_equal(f(np.zeros(5)), generator().normal(size=5))


@modes
def test_set_value_and_get_value(mode):
    value = generator()
    rng = phintys.shared(value)
    assert rng.get_value() is not value
    next_rng, x = rng.normal()
    f = phintys.function([], x, updates={rng: next_rng}, mode=mode)
    f()
    assert_same_state(value, generator())
    rng.set_value(seed=8)
    assert f() == np.random.default_rng(8).normal()
    mine = generator(6)
    rng.set_value(mine, borrow=True)
    assert rng.get_value(borrow=True) is mine
    assert f() == generator(6).normal()
    for wrong in ({}, {"new_value": mine, "seed": 1}):
        with pytest.raises(ValueError, match="a generator or a seed"):
            rng.set_value(**wrong)
    with pytest.raises(TypeError, match="RandomState"):
        rng.set_value(np.random.RandomState(1))
    with pytest.raises(TypeError, match=r"needs a numpy\.random\.Generator"):
        phintys.shared(np.random.RandomState(1))


@modes
def test_functions_travel(mode):
    f, _ = drawing(size=3, mode=mode)
    f()
    expected = generator()
    expected.normal(size=3)
    copies = [pickle.loads(pickle.dumps(f)), copy.deepcopy(f)]
    for g in copies:
        np.testing.assert_array_equal(g(), copy.deepcopy(expected).normal(size=3))
    np.testing.assert_array_equal(f(), expected.normal(size=3))
    shared = f.copy()
    np.testing.assert_array_equal(shared(), expected.normal(size=3))
    other = phintys.shared(generator(8))
    (own,) = f.get_shared()
    swapped = f.copy(swap={own: other})
    np.testing.assert_array_equal(swapped(), generator(8).normal(size=3))
    np.testing.assert_array_equal(f(), expected.normal(size=3))


@modes
def test_threads_draw_disjoint_numbers(mode):
    n, calls = 20_000, 30
    f, rng = drawing(size=n, mode=mode)
    found = []

    def work():
        for _ in range(calls):
            found.append(f().tobytes())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expected = generator()
    assert sorted(found) == sorted(expected.normal(size=n).tobytes() for _ in found)
    assert_same_state(rng.get_value(), expected)


@modes
def test_threads_draw_disjoint_numbers_that_are_computed_with(mode):
    """The generator of a call is not freed before the call ends: its address tells calls apart."""
    f, rng = drawing(size=8000, mode=mode, outputs=pt.exp)
    for seed in range(12):
        rng.set_value(generator(seed))
        assert len(set(drawn_in_threads(f))) == 60


@modes
def test_a_call_is_repeated_if_the_generator_has_been_replaced(mode):
    """As if another thread had called the function in the middle of a call."""
    rng, calls = phintys.shared(generator()), []

    class Interfering(phintys.Op):
        __props__ = ()

        def make_node(self, x):
            return phintys.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0] + 0
            calls.append(0)
            if len(calls) == 1:
                rng.set_value(generator(7))

    next_rng, x = rng.normal(size=2)
    outputs = Interfering()(x)
    f = phintys.function([], [outputs], updates={rng: next_rng}, mode=mode)
    expected = generator(7)
    np.testing.assert_array_equal(f()[0], expected.normal(size=2))
    assert len(calls) == 2
    assert_same_state(rng.get_value(), expected)
    single = phintys.function([], outputs, updates={rng: next_rng}, mode=mode)
    calls.clear()
    np.testing.assert_array_equal(single(), generator(7).normal(size=2))


@modes
def test_an_op_that_replaces_the_generator_in_each_call_is_an_error(mode):
    rng = phintys.shared(generator())

    class Replacing(phintys.Op):
        __props__ = ()
        itypes = otypes = [pt.dvector]

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0] + 0
            rng.set_value(generator(7))

    next_rng, x = rng.normal(size=2)
    f = phintys.function([], [Replacing()(x)], updates={rng: next_rng}, mode=mode)
    with pytest.raises(RuntimeError, match="shared variable"):
        f()
    assert_same_state(rng.get_value(), generator(7))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("mode", few(["FAST_RUN", "C"], "FAST_RUN"))
@pytest.mark.parametrize(
    "size", few([10**8, (10**4, 10**4), (10**7, 10), (500, 500, 500)], (10**7, 10))
)
def test_a_long_draw_is_interrupted(mode, size):
    def stop(*_):
        raise TimeoutError("enough")

    f, rng = drawing(size=size, mode=mode, outputs=lambda x: x.shape[0])
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError, match="enough"):
            f()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert_same_state(rng.get_value(), generator())


@pytest.mark.usefixtures("frozen_heap")
def test_calls_leave_no_references():
    def generators():
        gc.collect()
        return sum(type(o) is np.random.Generator for o in gc.get_objects())

    f, rng = drawing(size=3)
    f()
    first = generators()
    for _ in range(50):
        f()
    assert generators() < first + 10
    value = rng.get_value(borrow=True)
    before = len(gc.get_referrers(value))
    f()
    assert len(gc.get_referrers(value)) <= before


# ----- compiled code


def test_compiled_code_calls_the_function_of_numpy_and_copies_once():
    rng = phintys.shared(generator())
    first, x = rng.normal(size=(3, 4))
    second, y = first.normal(x, 2.0)
    program = phintys.function([], [x, y], updates={rng: second}).program
    draws = [s for s in program.steps if isinstance(s, Draw)]
    assert not any(isinstance(s, Python) for s in program.steps)
    assert [d.source is d.result for d in draws] == [False, True]
    both = phintys.function([], [x, y, first], updates={rng: second}).program
    draws = [s for s in both.steps if isinstance(s, Draw)]
    assert [d.source is d.result for d in draws] == [False, False]


def test_a_scale_that_is_a_positive_constant_is_not_checked():
    f, _ = drawing(0.0, 2.0, size=3)
    assert [type(s).__name__ for s in f.program.steps] == ["Kernel", "Draw"]


def test_draws_have_fingerprints():
    def digest(size):
        rng = pt.random.rng("rng")
        draw = rng.normal(0.0, 2.0, size=size)
        return fingerprint(FunctionGraph([rng], list(draw), clone=False))

    assert digest(4) is not None
    assert digest(4) == digest(4) != digest(5)


# ----- shapes, types, errors


def test_static_shapes():
    rng = pt.random.rng()
    draw = pt.random.normal
    m, row = pt.dmatrix(), pt.tensor(dtype="float64", shape=(1, 3))
    assert draw(rng=rng).type.shape == ()
    assert draw(m, row, rng=rng).type.shape == (None, 3)
    assert draw(0, 1, size=(2, 3), rng=rng).type.shape == (2, 3)
    assert draw(0, 1, size=[pt.lscalar(), 3], rng=rng).type.shape == (None, 3)
    assert draw(0, 1, size=4, rng=rng).owner.op.batch_ndim(draw(size=4, rng=rng).owner) == 1


def test_inferred_shapes():
    rng, n, m = pt.random.rng(), pt.lscalar(), pt.dmatrix()
    for x in (pt.random.normal(m, 1.0, rng=rng), pt.random.normal(size=(n, 2), rng=rng)):
        shape = phintys.function([rng, n, m], x.shape, on_unused_input="ignore")
        assert not any(isinstance(s, Draw) for s in shape.program.steps)
        np.testing.assert_array_equal(shape(generator(), 3, np.zeros((3, 2))), [3, 2])


def test_the_layout_of_nodes():
    rng = pt.random.rng()
    op = NormalRV()
    assert (op.ndim_supp, op.ndims_params, op.signature) == (0, (0, 0), "(),()->()")
    next_rng, x = rng.normal([1.0, 2.0], 3.0, size=(4, 2))
    node = x.owner
    assert node.inputs[0] is rng
    assert node.outputs == [next_rng, x]
    assert node.op.rng_param(node) is rng
    assert node.op.size_param(node) is node.inputs[1]
    assert node.inputs[1].type.dtype == "int64"
    assert list(node.op.dist_params(node)) == node.inputs[2:]
    assert [p.type.ndim for p in node.inputs[2:]] == [2, 2]
    assert node.op.update(node) == {rng: next_rng}
    assert node.default_output() is x
    assert node.op == pt.random.normal(rng=rng).owner.op


def test_arguments_that_are_wrong():
    rng = pt.random.rng()
    with pytest.raises(ValueError, match="the size includes"):
        rng.normal(np.zeros((2, 3)), size=3)
    with pytest.raises(ShapeError, match="Lengths along axis 0 do not agree"):
        pt.random.normal(np.zeros(2), np.ones(3), rng=rng)
    with pytest.raises(ValueError, match="not int64"):
        pt.random.normal(dtype="int64", rng=rng)
    with pytest.raises(TypeError, match="size of a draw"):
        pt.random.normal(size=2.5, rng=rng)
    with pytest.raises(ValueError, match="length of size is not known"):
        pt.random.normal(size=pt.lvector(), rng=rng)
    with pytest.raises(TypeError, match="random generator"):
        pt.random.normal(rng=3)
    with pytest.raises(ValueError, match="takes 2 parameters"):
        NormalRV().make_node(rng, None, 1.0)


@modes
@pytest.mark.parametrize("scale", [-1.0, [1.0, -1.0]])
@pytest.mark.parametrize("size", [None, (0, 2), (3, 2)])
def test_a_negative_scale(mode, scale, size):
    sd = pt.as_tensor(np.asarray(scale)).type("sd")
    f, rng = drawing(0.0, sd, size=size, mode=mode, inputs=[sd])
    with pytest.raises(ValueError, match="scale < 0"):
        f(np.asarray(scale))
    assert_same_state(rng.get_value(), generator())
    good = np.full(np.shape(scale), np.nan)
    assert np.isnan(f(good)).all()


@modes
def test_lengths_that_do_not_agree(mode):
    mean, n = pt.dvector("mean"), pt.lscalar("n")
    f, rng = drawing(mean, size=(n,), mode=mode, inputs=[mean, n])
    np.testing.assert_array_equal(f(np.zeros(3), 3), generator().normal(np.zeros(3)))
    state = rng.get_value()
    for length in (2, 1, 0, -1):
        with pytest.raises(ValueError, match=r"axis 0|negative"):
            f(np.zeros(3), length)
    assert_same_state(rng.get_value(), state)


def test_reuse_of_a_generator_warns():
    rng = pt.random.rng("state")
    rng.normal()
    with pytest.warns(UserWarning, match="state has been drawn from already"):
        rng.normal()


# ----- derivatives and batches


def test_there_is_no_derivative_through_a_draw():
    mean = pt.dvector("mean")
    x = pt.random.normal(mean, 1.0, rng=pt.random.rng())
    with pytest.raises(phintys.gradient.NullTypeGradError, match="not differentiable"):
        phintys.grad(x.sum(), mean)
    with pytest.raises(phintys.gradient.NullTypeGradError, match="not differentiable"):
        phintys.pushforward(x, mean, pt.ones_like(mean))
    other = pt.dvector("other")
    g = phintys.grad((x * other).sum(), other)
    f = phintys.function([x.owner.inputs[0], mean, other], g)
    found = f(generator(), np.zeros(3), np.ones(3))
    np.testing.assert_array_equal(found, generator().normal(np.zeros(3)))


@modes
def test_batched(mode):
    rng = pt.random.rng()
    mean, sd = pt.dvector("mean"), pt.dscalar("sd")
    means, sds = pt.dmatrix("means"), pt.dvector("sds")
    x = pt.random.normal(mean, sd, rng=rng)
    y = vectorize_graph(x, {mean: means, sd: sds})
    f = phintys.function([rng, means, sds], y, mode=mode)
    a, b = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0])
    np.testing.assert_array_equal(f(generator(), a, b), generator().normal(a, b[:, None]))
    x = pt.random.normal(mean, sd, size=(4, 3), rng=rng)
    y = vectorize_graph(x, {mean: means})
    f = phintys.function([rng, means, sd], y, mode=mode)
    wanted = generator().normal(a[:, None], 2.0, (2, 4, 3))
    np.testing.assert_array_equal(f(generator(), a, 2.0), wanted)


def test_merging_and_folding():
    rng = phintys.shared(generator())
    x, y = pt.random.normal(size=3, rng=rng), pt.random.normal(size=3, rng=rng)
    f = phintys.function([], [x, y])
    assert len(f.maker.fgraph.apply_nodes) == 1
    np.testing.assert_array_equal(*f())
    g = phintys.function([], pt.random.normal(size=3, rng=generator()))
    assert len(g.maker.fgraph.apply_nodes) == 1


def test_changed_classes_draw_by_their_own_methods():
    class Laplace(NormalRV):
        name = "laplace"

    class Seven(NormalRV):
        def perform(self, node, inputs, output_storage):
            output_storage[0][0], output_storage[1][0] = inputs[0], np.array(7.0)

    rng = pt.random.rng("rng")
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        x = Laplace()(0.0, 1.0, rng=rng, size=2)
        found = phintys.function([rng], x, mode=mode)(np.random.default_rng(1))
        np.testing.assert_array_equal(found, np.random.default_rng(1).laplace(size=2))
        x = Seven()(0.0, 1.0, rng=rng)
        assert phintys.function([rng], x, mode=mode)(np.random.default_rng(1)) == 7


def test_size_as_an_array():
    for size in (np.array(3), np.int64(3), np.array([3]), [np.array(3)]):
        assert pt.random.normal(size=size).type.shape == (3,)
