"""Random numbers that are drawn for a block of rows and read by kernels, block after block."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from hand_built import Failed, native

import phintys
import phintys.tensor as pt
from phintys.backends.llvm import costs
from phintys.backends.llvm.routine.blocks import Blocks, in_blocks
from phintys.backends.llvm.routine.entry import emit_entry
from phintys.lowering.program import Check, Draw
from phintys.lowering.spec import step_reads, step_writes
from phintys.tensor.random.type import random_generator_type


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """However few the numbers are, there are several blocks, of a few rows each."""
    monkeypatch.setattr(costs, "ROW_BLOCK_SMALL", 0)
    monkeypatch.setattr(costs, "ROW_BLOCK_BYTES", 64)
    monkeypatch.setattr(costs, "ROW_BLOCK_THREADS", 1 << 20)
    monkeypatch.setattr(costs, "ROW_BLOCK_MULTIPLE", 1)


def total(rng, v):
    rng, x = rng.normal(size=v.shape)
    return [pt.exp(-x * x).sum(), rng]


def several_readers(rng, v):
    rng, x = rng.uniform(v, v + 2.0)
    return [x.max(initial=-np.inf), pt.exp(x) * v, (x * v).sum(), rng]


def also_a_result(rng, v):
    rng, x = rng.exponential(size=v.shape)
    return [x, pt.sqrt(x).sum(), rng]


def table(rng, v):
    rng, x = rng.gamma(2.0, scale=pt.exp(v)[:, None], size=(v.shape[0], 3))
    return [x.sum(axis=1), pt.log(x).sum(axis=0), x[:, 1], rng]


def one_after_the_other(rng, v):
    rng, x = rng.normal(v, 0.1)
    rng, y = rng.binomial(20, pt.sigmoid(x))
    rng, z = rng.integers(0, 9, size=v.shape)
    return [pt.tanh(x), y.sum(), (y * z).sum(), rng]


def products(rng, v):
    rng, x = rng.normal(size=(v.shape[0], 4))
    eta = pt.dot(x, pt.as_tensor([1.0, -2.0, 0.5, 3.0]))
    return [pt.dot(x.T, pt.tanh(eta) - v), rng]


def a_total_is_needed(rng, v):
    rng, x = rng.normal(size=v.shape)
    return [x - x.sum(), x[::-1] * 2, rng]


def also_read_later(rng, v):
    rng, x = rng.normal(size=v.shape)
    return [pt.exp(x).sum(), pt.cumsum(x), rng]


def two_generators(rng, v):
    after, x = rng.normal(size=v.shape)
    _, y = pt.random.uniform(size=v.shape, rng=np.random.default_rng(9), return_next_rng=True)
    return [(x * y).sum(), after]


MODELS = [
    total, several_readers, also_a_result, table, one_after_the_other, products, a_total_is_needed,
    two_generators, also_read_later,
]  # fmt: skip


def made(model):
    """A function of a vector that draws from a shared generator, which it updates."""
    rng, v = phintys.shared(np.random.default_rng(3)), pt.dvector("v")
    *outputs, after = model(rng, v)
    return {"inputs": [v], "outputs": outputs, "updates": {rng: after}}


def program_of(model):
    return phintys.function(**made(model)).program


def found(program):
    groups = [list(group) for _, group in groupby(program.steps, lambda s: isinstance(s, Check))]
    return [step for group in groups for step in in_blocks(group) if isinstance(step, Blocks)]


@pytest.mark.parametrize("model", MODELS)
def test_numbers_and_states(model):
    program = program_of(model)
    drawn = [s.drawn for blocks in found(program) for s in blocks.slices]
    assert any(drawn) == (model is not a_total_is_needed)
    cell = [np.random.default_rng(3)]
    blocked, reference = (
        native(program, [cell]),
        phintys.function(**made(model), mode="FAST_COMPILE"),
    )
    (shared,) = reference.get_shared()
    for n in (50, 0, 1, 7, 8, 50):
        before, v = cell[0], np.linspace(-1.0, 1.0, n)
        state = before.bit_generator.state
        for x, y in zip(blocked(v), reference(v), strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)
        assert random_generator_type.values_eq(cell[0], shared.get_value())
        assert before.bit_generator.state == state


def test_bits_of_what_is_computed_element_by_element():
    def doubled(rng, v):
        rng, x = rng.normal(v, 2.0)
        return [2.0 * x, rng]

    (x,) = native(program_of(doubled), [[np.random.default_rng(3)]])(np.arange(50.0))
    np.testing.assert_array_equal(x, 2 * np.random.default_rng(3).normal(np.arange(50.0), 2.0))


def test_no_two_draws_of_one_generator_are_in_the_same_blocks():
    for model in MODELS:
        for blocks in found(program_of(model)):
            states = [s.step.result for s in blocks.slices if isinstance(s.step, Draw)]
            assert len(states) == len(set(states))


@pytest.mark.parametrize(
    ("model", "count"),
    [(total, 1), (several_readers, 1), (also_a_result, 0), (products, 1), (also_read_later, 0)],
)
def test_what_only_blocks_read_stays_in_the_memory_of_one(model, count):
    program = program_of(model)
    uses = Counter(s for step in program.steps for s in {*step_reads(step), *step_writes(step)})
    (blocks,) = found(program)
    assert len(blocks.passing(uses)) == count


def test_an_error_in_a_block():
    def gathered(rng, v):
        rng, x = rng.normal(size=(50,))
        return [(x * v[pt.cast(v, "int64")]).sum(), rng]

    cell = [np.random.default_rng(3)]
    f = native(program_of(gathered), [cell])
    assert found(program_of(gathered))
    for bad in (0, 30, 49):
        places = np.zeros(50)
        places[bad] = 50.0
        with pytest.raises(Failed):
            f(places)
    assert random_generator_type.values_eq(cell[0], np.random.default_rng(3))


def test_draws_in_a_loop_are_not_split():
    """So a state is updated in place."""

    def walk(rng, v):
        def step(x, rng):
            rng, noise = rng.normal(size=x.shape)
            return [x + noise, rng]

        xs, after = phintys.scan(step, outputs_info=[v, rng], n_steps=4, return_updates=False)
        return [xs[-1], after]

    program = program_of(walk)
    f = native(program, [[np.random.default_rng(3)]])
    wanted = np.random.default_rng(3).normal(size=(4, 50)).cumsum(axis=0)[-1]
    np.testing.assert_allclose(f(np.zeros(50))[0], wanted, rtol=1e-12)
    assert "%block." not in emit_entry(program).ir.replace("%block.at", "")
