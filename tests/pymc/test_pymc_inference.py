"""Variational inference, maxima, densities of draws, predictions: against known values."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from scipy.stats import norm

from tests.pymc.known_posterior import DEVIATION, MEAN, QUIET, Y, mean_of_normals


@pytest.mark.parametrize("method", ["advi", "fullrank_advi"])
def test_variational_inference(method):
    with mean_of_normals():
        rate = pm.adagrad_window(learning_rate=0.05)
        fitted = pm.fit(3000, method, obj_optimizer=rate, progressbar=False, random_seed=4)
        draws = fitted.sample(1000, random_seed=1).posterior["mu"]
    assert fitted.mean.eval()[0] == pytest.approx(MEAN, abs=0.1)
    assert draws.std() == pytest.approx(DEVIATION, abs=0.1)
    assert fitted.hist[-1] < fitted.hist[0]


def test_stein_variational_gradient_descent():
    with mean_of_normals():
        options = {"n_particles": 50, "jitter": 1.0}
        fitted = pm.fit(
            300,
            "svgd",
            inf_kwargs=options,
            obj_optimizer=pm.adagrad_window(learning_rate=0.1),
            progressbar=False,
            random_seed=4,
        )
        particles = fitted.sample(500, random_seed=1).posterior["mu"]
    assert particles.mean() == pytest.approx(MEAN, abs=0.15)
    assert particles.std() == pytest.approx(DEVIATION, abs=0.15)


def test_minibatches():
    """The density of a batch counts as that of all rows; ADVI finds the mean of all."""
    data = np.random.default_rng(2).normal(1.5, 1.0, 2000)
    with pm.Model() as model:
        batch = pm.Minibatch(data, batch_size=100)
        mu = pm.Normal("mu", 0.0, 10.0)
        pm.Normal("y", mu, 1.0, observed=batch, total_size=2000)
        rate = pm.adagrad_window(learning_rate=0.05)
        fitted = pm.fit(2000, obj_optimizer=rate, progressbar=False, random_seed=4)
    assert fitted.mean.eval()[0] == pytest.approx(data.mean(), abs=0.08)
    logps = [float(model.compile_logp()({"mu": 1.5})) for _ in range(2)]
    full = norm.logpdf(data, 1.5).sum() + norm.logpdf(1.5, 0.0, 10.0)
    np.testing.assert_allclose(logps, full, rtol=0.2)
    assert logps[0] != logps[1]


def test_maximum():
    with mean_of_normals() as model:
        found = pm.find_MAP(progressbar=False, jitter=False, return_inferencedata=True)
    assert found.posterior["mu"].item() == pytest.approx(MEAN, abs=1e-5)
    curvature = model.compile_d2logp(negate_output=False)(model.initial_point())
    np.testing.assert_allclose(curvature, [[-(DEVIATION**-2)]])


def test_densities_of_draws():
    with mean_of_normals():
        trace = pm.sample(10, tune=10, chains=1, **QUIET)
        likelihood = pm.stats.compute_log_likelihood(
            trace, progressbar=False, extend_inferencedata=False
        )
        prior = pm.stats.compute_log_prior(trace, progressbar=False, extend_inferencedata=False)
    draws = trace.posterior["mu"].to_numpy()
    np.testing.assert_allclose(likelihood["y"], norm.logpdf(Y, draws[..., None]), rtol=1e-12)
    np.testing.assert_allclose(prior["mu"], norm.logpdf(draws, 0.0, 2.0), rtol=1e-8)


def test_predictions_of_new_data():
    with pm.Model() as model:
        x = pm.Data("x", np.zeros(3))
        slope = pm.Normal("slope", 1.0, 1e-3)
        pm.Normal("y", slope * x, 1e-3, observed=np.zeros(3), shape=x.shape)
        trace = pm.sample(20, tune=20, chains=1, **QUIET)
        pm.set_data({"x": np.array([1.0, 2.0, 3.0, 4.0])})
        found = pm.sample_posterior_predictive(
            trace, predictions=True, progressbar=False, random_seed=1
        )
    assert found.predictions["y"].shape == (1, 20, 4)
    np.testing.assert_allclose(
        found.predictions["y"].mean(["chain", "draw"]), [1, 2, 3, 4], rtol=0.01
    )
    assert model["x"].get_value().size == 4
