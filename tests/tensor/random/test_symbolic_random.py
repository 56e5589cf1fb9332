"""Ops of several draws: graphs with a generator inside, as PyMC makes them, alone and in loops."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.graph.replace import clone_replace, vectorize_graph
from phintys.inner.from_graph import OpFromGraph
from phintys.tensor.random.op import RNGConsumerOp
from phintys.tensor.random.type import random_generator_type
from phintys.tensor.random.utils import normalize_size_param, rv_size_is_none

modes = pytest.mark.parametrize("mode", ("FAST_COMPILE", "FAST_RUN", "C"))


class TwoStepsRV(RNGConsumerOp, OpFromGraph):
    """``x + y``, where x is normal around a mean, and y is normal around x."""

    default_output = 1
    extended_signature = "[rng],[size],(),()->[rng],()"
    _print_name = ("TwoSteps", "\\operatorname{TwoSteps}")

    def update(self, node):
        return {node.inputs[0]: node.outputs[0]}

    @classmethod
    def rv_op(cls, mean, sd, *, size=None, rng=None, inline=True):
        rng = pt.random.shared_rng() if rng is None else rng
        size = normalize_size_param(size)
        mean, sd = pt.as_tensor(mean), pt.as_tensor(sd)
        shape = None if rv_size_is_none(size) else size
        between, x = pt.random.normal(mean, sd, size=shape, rng=rng, return_next_rng=True)
        after, y = pt.random.normal(x, 1.0, rng=between, return_next_rng=True)
        inputs = [rng, size, mean, sd]
        op = cls(inputs, [after, x + y], inline=inline, strict=True, on_unused_input="ignore")
        return op.make_node(*inputs).outputs


def two_steps(rng, mean, sd, size=None):
    """What the op computes, by NumPy."""
    x = rng.normal(mean, sd, size)
    return x + rng.normal(x, 1.0)


@modes
@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("size", [None, (2, 3)])
def test_draws_and_updates(mode, inline, size):
    rng, mean = pt.random.shared_rng(seed=1), pt.dvector("mean")
    after, x = TwoStepsRV.rv_op(mean, 2.0, size=size, rng=rng, inline=inline)
    node = x.owner
    assert node.op.update(node) == {rng: after}
    f = phintys.function([mean], x, updates=node.op.update(node), mode=mode)
    expected = np.random.default_rng(1)
    for _ in range(2):
        np.testing.assert_allclose(f(np.arange(3.0)), two_steps(expected, np.arange(3.0), 2, size))
    assert random_generator_type.values_eq(rng.get_value(), expected)


@modes
def test_a_batch(mode):
    rng, mean, means = pt.random.shared_rng(seed=1), pt.dvector("mean"), pt.dmatrix("means")
    after, x = vectorize_graph(TwoStepsRV.rv_op(mean, 2.0, rng=rng), {mean: means})
    assert x.type.ndim == 2
    f = phintys.function([means], x, updates={rng: after}, mode=mode)
    expected = np.random.default_rng(1)
    for _ in range(2):
        np.testing.assert_allclose(f(np.eye(3)), two_steps(expected, np.eye(3), 2.0))


def test_copies():
    rng, sd = pt.random.rng("rng"), pt.dscalar("sd")
    after, x = TwoStepsRV.rv_op(0.0, sd, rng=rng, size=4)
    expected = two_steps(np.random.default_rng(2), 0.0, 6.0, 4)
    assert x.owner.op == TwoStepsRV.rv_op(0.0, sd, rng=rng, size=4)[1].owner.op
    for how in (copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g)), lambda g: g):
        generator, scale, _, draw = how((rng, sd, after, x))
        (twice,) = clone_replace([draw], {scale: scale * 2})
        for out, given in ((draw, 6.0), (twice, 3.0)):
            f = phintys.function([generator, scale], out)
            np.testing.assert_allclose(f(np.random.default_rng(2), given), expected)


@modes
def test_inside_of_another(mode):
    rng, mean, sd = pt.random.rng("rng"), pt.dvector("mean"), pt.dscalar("sd")
    after, x = TwoStepsRV.rv_op(mean, sd, rng=rng)
    whole = OpFromGraph([rng, mean, sd], [after, 2.0 * x], inline=False)
    shared = pt.random.shared_rng(seed=4)
    last, y = whole(shared, mean, sd)
    f = phintys.function([mean, sd], y, updates={shared: last}, mode=mode)
    expected = np.random.default_rng(4)
    for _ in range(2):
        found = f(np.zeros(3), 0.5)
        np.testing.assert_allclose(found, 2.0 * two_steps(expected, np.zeros(3), 0.5))


@modes
@pytest.mark.parametrize("way", ["updates", "state", "inner loop"])
def test_a_loop_of_draws(mode, way):
    """The generator is a state of the loop, given as one, or found by the updates of a step."""
    rng = pt.random.shared_rng(seed=5)

    def step(previous, state):
        after, x = TwoStepsRV.rv_op(previous, 0.5, rng=state)
        return [x, after]

    def by_updates(previous):
        after, x = TwoStepsRV.rv_op(previous, 0.5, rng=rng)
        return [x], {rng: after}

    def by_loop(previous, state):
        found = phintys.scan(step, outputs_info=[previous, state], n_steps=2, return_updates=False)
        return [found[0][-1], found[1]]

    if way == "updates":
        with pytest.warns(DeprecationWarning, match="return_updates"):
            xs, updates = phintys.scan(by_updates, outputs_info=[pt.zeros(())], n_steps=3)
    else:
        function = step if way == "state" else by_loop
        xs, after = phintys.scan(
            function, outputs_info=[pt.zeros(()), rng], n_steps=3, return_updates=False
        )
        updates = {rng: after}
    f = phintys.function([], xs, updates=updates, mode=mode)
    expected = np.random.default_rng(5)
    for _ in range(2):
        x, wanted = 0.0, []
        for _ in range(3):
            for _ in range(2 if way == "inner loop" else 1):
                x = two_steps(expected, x, 0.5)
            wanted.append(x)
        np.testing.assert_allclose(f(), wanted)
    assert random_generator_type.values_eq(rng.get_value(), expected)


def test_there_is_no_derivative():
    mean = pt.dvector("mean")
    _, x = TwoStepsRV.rv_op(mean, 1.0, rng=pt.random.rng())
    with pytest.raises(phintys.gradient.NullTypeGradError, match="normal_rv"):
        phintys.grad(x.sum(), mean)
