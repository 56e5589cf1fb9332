"""The whole pipeline in a second: what must work before anything else is looked at."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_logistic_regression_step(mode):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50).astype("float64")
    w = phintys.shared(np.zeros(3), "w")
    x, t = pt.dmatrix("x"), pt.dvector("t")
    eta = pt.dot(x, w)
    loss = -(t * eta - pt.log1p(pt.exp(eta))).mean()
    step = phintys.function([x, t], loss, updates={w: w - phintys.grad(loss, w)}, mode=mode)
    losses = [float(step(X, y)) for _ in range(20)]
    assert losses[0] == pytest.approx(np.log(2))
    assert losses[-1] < losses[0]
    by_hand = np.zeros(3)
    for _ in range(20):
        by_hand -= X.T @ (1 / (1 + np.exp(-X @ by_hand)) - y) / 50
    np.testing.assert_allclose(w.get_value(), by_hand, rtol=1e-10)
