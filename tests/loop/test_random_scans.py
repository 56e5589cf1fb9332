"""Loops of random forms against a Python loop with NumPy: taps, directions, lengths, conditions."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.loop import until


@dataclass
class Case:
    """A loop: the arguments of `phintys.scan`, and the arrays of a Python loop.

    ``rows`` are what steps get of the sequences; ``history`` has the values of each output, and
    ``taps`` says which of them a step reads.
    """

    shape: tuple[int, ...]
    backwards: bool
    weights: np.ndarray
    threshold: float | None
    variables: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    sequences: list[Any] = field(default_factory=list)
    rows: list[np.ndarray] = field(default_factory=list)
    info: list[Any] = field(default_factory=list)
    history: list[list[Any]] = field(default_factory=list)
    taps: list[list[int]] = field(default_factory=list)

    def variable(self, value):
        v = pt.tensor(dtype=value.dtype, shape=(None,) * value.ndim)
        self.variables.append(v)
        self.values.append(value)
        return v

    def add_sequence(self, rng):
        taps = [int(t) for t in rng.permutation(np.arange(-3, 4))[: rng.integers(1, 4)]]
        x = rng.normal(size=(rng.integers(4, 10), *self.shape))
        reverse = bool(rng.random() < 0.2)
        self.sequences.append(dict(input=self.variable(x), taps=taps, go_backwards=reverse))
        low, high = min(0, *taps), max(0, *taps)
        for tap in taps:
            rows = x[tap - low : len(x) - (high - tap)]
            self.rows.append(rows[::-1] if reverse or self.backwards else rows)

    def add_output(self, rng):
        taps = [-int(t) for t in rng.permutation(np.arange(1, 5))[: rng.integers(0, 4)]]
        first = rng.normal(size=(max(map(abs, taps), default=0), *self.shape))
        self.taps.append(taps)
        self.history.append(list(first))
        if taps:
            initial = self.variable(first[0] if taps == [-1] else first)
            self.info.append(dict(initial=initial, taps=taps))
        else:
            self.info.append(None)

    def step(self, m, args):
        """The outputs and the condition, with ``m`` numpy or phintys.tensor."""
        outputs = []
        for weights in self.weights:
            total = m.zeros(self.shape)
            for weight, x in zip(weights, args):
                total = total + weight * m.sin(x)
            outputs.append(m.tanh(total))
        return outputs, None if self.threshold is None else outputs[0].sum() > self.threshold


def make(seed):
    """A case, and its number of steps: a number, a variable, or None if sequences say it."""
    rng = np.random.default_rng(seed)
    shape = () if rng.random() < 0.5 else (int(rng.integers(0, 4)),)
    weights = rng.normal(size=(rng.integers(1, 4), 32))
    threshold = float(rng.normal()) if rng.random() < 0.4 else None
    case = Case(shape, bool(rng.random() < 0.3), weights, threshold)
    for _ in range(rng.integers(0, 3)):
        case.add_sequence(rng)
    for _ in weights:
        case.add_output(rng)
    steps = min((len(rows) for rows in case.rows), default=6)
    if case.rows and rng.random() < 0.5:
        return case, steps, None
    steps = int(rng.integers(0, steps + 1))
    return case, steps, case.variable(np.array(steps)) if rng.random() < 0.5 else steps


def expected(case, steps):
    """The values of the outputs; ``case.history`` grows."""
    given = [len(h) for h in case.history]
    for t in range(steps):
        earlier = [h[tap] for h, taps in zip(case.history, case.taps) for tap in taps]
        outputs, condition = case.step(np, [*(rows[t] for rows in case.rows), *earlier])
        for h, x in zip(case.history, outputs):
            h.append(x)
        if condition:
            break
    return [np.array(h[k:]).reshape((len(h) - k, *case.shape)) for h, k in zip(case.history, given)]


@pytest.mark.parametrize("seed", range(12))
def test_a_random_loop(seed):
    case, steps, n_steps = make(seed)

    def step(*args):
        outputs, condition = case.step(pt, args)
        return outputs if condition is None else (outputs, until(condition))

    outputs = phintys.scan(
        step,
        sequences=case.sequences,
        outputs_info=case.info,
        n_steps=n_steps,
        go_backwards=case.backwards,
        return_list=True,
        return_updates=False,
    )
    values = expected(case, steps)
    for mode in ("FAST_COMPILE", "FAST_RUN"):
        f = phintys.function(case.variables, outputs, mode=mode)
        for found, value in zip(f(*case.values), values, strict=True):
            assert found.shape == value.shape
            np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("return_updates", [True, False])
def test_draws_without_a_generator_differ_from_step_to_step(mode, return_updates):
    """Each step drew the same number, from a generator that no step changed."""

    def step(x, total):
        return x + total + pt.random.normal(), pt.random.uniform(size=2)

    x = pt.dvector("x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = phintys.scan(step, x, [x[0], None], return_updates=return_updates)
    outputs, updates = found if return_updates else (found, {})
    f = phintys.function([x], outputs, updates=updates, mode=mode)
    totals, draws = map(np.asarray, f(np.zeros(5)))
    assert len(set(np.diff(totals))) == 4
    assert len(set(draws.ravel())) == 10
    assert np.array_equal(f(np.zeros(5))[0], totals) is not return_updates


def test_a_mapping_of_outputs_is_refused():
    """It was taken for updates: AttributeError."""
    with pytest.raises(ValueError, match="keys are shared variables, not 'k'"):
        phintys.scan(lambda a: {"k": a}, pt.dvector("x"), return_updates=False)
