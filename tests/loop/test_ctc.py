"""`ctc` against the sum over all sequences of symbols."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from phintys.tensor.nnet.ctc import (
    ConnectionistTemporalClassification,
    ctc,
    ctc_available,
    ctc_present,
)

import phintys
import phintys.tensor as pt
from phintys import grad, verify_grad
from phintys.errors import ShapeError

MODES = ["FAST_COMPILE", "FAST_RUN", "C", "NUMBA", "JAX"]
RNG = np.random.default_rng(0)
ACTIVATIONS = RNG.normal(size=(5, 4, 3))
LABELS = np.array([[1, 2, -1], [-1, 1, 1], [-1, -1, -1], [2, 1, 2]])
LENGTHS = np.array([5, 4, 3, 5])


def cost(activations, labels):
    """The cost of the labels of one sequence."""
    p = np.exp(activations)
    p /= p.sum(1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        if [k for k, _ in itertools.groupby(path) if k] == labels:
            total += np.prod([p[t, k] for t, k in enumerate(path)])
    return -np.log(total) if total else np.inf


def costs(activations, labels, lengths):
    rows = [[int(k) for k in row if k >= 0] for row in labels]
    return [cost(activations[:n, b], rows[b]) for b, n in enumerate(lengths)]


@pytest.mark.parametrize("mode", MODES)
def test_values(mode):
    a, n = pt.dtensor3("a"), pt.ivector("n")
    labels = pt.bmatrix("labels")
    found = ctc(a, labels, n)
    f = phintys.function([a, labels, n], [found, grad(found.sum(), a)], mode=mode)
    given = ACTIVATIONS, LABELS.astype("int8"), LENGTHS.astype("int32")
    value, derivative = (np.asarray(x) for x in f(*given))
    np.testing.assert_allclose(value, costs(ACTIVATIONS, LABELS, LENGTHS), rtol=1e-12)
    np.testing.assert_allclose(derivative.sum(axis=2), 0, atol=1e-12)  # of softmax
    assert not derivative[4, 1].any() and not derivative[3:, 2].any()  # after the end


def test_impossible_labels_and_empty_sequences():
    labels = np.array([[1, 1, 1], [1, 2, 2], [1, -1, 2], [-1, -1, -1]])
    lengths = np.array([3, 3, 0, 0])
    a = pt.dtensor3("a")
    found = ctc(a, labels, lengths)
    f = phintys.function([a], [found, grad(found.sum(), a)])
    value, derivative = f(ACTIVATIONS)
    assert value.tolist() == [np.inf, np.inf, np.inf, 0]
    assert not derivative.any()
    assert ctc(ACTIVATIONS, np.zeros((4, 0), int), LENGTHS).eval() == pytest.approx(
        costs(ACTIVATIONS, [[]] * 4, LENGTHS)
    )
    assert ctc(np.zeros((3, 0, 2)), np.zeros((0, 2), int), np.zeros(0, int)).eval().shape == (0,)


def test_derivatives_and_dtypes():
    verify_grad(lambda a: ctc(a, LABELS, LENGTHS), [ACTIVATIONS], rng=RNG)
    both = ConnectionistTemporalClassification()(ACTIVATIONS, LABELS, LENGTHS)
    a = pt.constant(ACTIVATIONS)
    expected = grad(ctc(a, LABELS, LENGTHS).sum(), a).eval()
    np.testing.assert_allclose(both.owner.outputs[1].eval(), expected, rtol=1e-12)
    single = ctc(ACTIVATIONS.astype("float32"), LABELS, LENGTHS)
    assert single.type.dtype == "float32"
    np.testing.assert_allclose(single.eval(), costs(ACTIVATIONS, LABELS, LENGTHS), rtol=1e-6)
    assert ctc_available() and ctc_present()


def test_errors():
    for lengths in ([6, 1, 1, 1], [-1, 1, 1, 1]):
        with pytest.raises(ValueError, match="from 0 to the number of time steps"):
            ctc(ACTIVATIONS, LABELS, lengths).eval()
    with pytest.raises(IndexError):
        ctc(ACTIVATIONS, LABELS + 2, LENGTHS).eval()
    with pytest.raises(ShapeError, match="Lengths along axis 0 do not agree"):
        ctc(ACTIVATIONS, LABELS[:3], LENGTHS)
    with pytest.raises(TypeError, match="time, batch, symbols"):
        ctc(ACTIVATIONS[0], LABELS, LENGTHS)
