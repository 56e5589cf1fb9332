"""Samplers of PyMC find posteriors that are known."""

from __future__ import annotations

import numcodecs.pickles
import numpy as np
import pymc as pm
import pytensor
import pytest
import zarr

from tests.pymc.known_posterior import MEAN, QUIET, Y, check, mean_of_normals


def coins() -> pm.Model:
    """One of two coins was thrown ten times and showed seven heads."""
    with pm.Model() as model:
        k = pm.Bernoulli("k", 0.5)
        pm.Binomial("y", 10, pm.math.switch(k, 0.7, 0.4), observed=7)
    return model


def likely_coin() -> float:
    first, second = (p**7 * (1 - p) ** 3 for p in (0.7, 0.4))
    return first / (first + second)


@pytest.mark.parametrize(
    "step", [pm.NUTS, pm.HamiltonianMC, pm.Slice, pm.Metropolis, pm.DEMetropolisZ]
)
def test_step_methods(step):
    with mean_of_normals():
        trace = pm.sample(800, tune=300, chains=1, step=step(), **QUIET)
    check(trace.posterior["mu"].to_numpy())


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_chains_in_processes(method):
    """The draws of a chain do not depend on where it runs."""
    options = {"draws": 20, "tune": 20, "chains": 2, **QUIET}
    with mean_of_normals():
        here = pm.sample(cores=1, **options).posterior["mu"]
        there = pm.sample(cores=2, mp_ctx=method, **options).posterior["mu"]
    assert there.shape == (2, 20) and np.unique(there).size > 20
    np.testing.assert_array_equal(here, there)


def test_discrete_variables():
    with coins():
        trace = pm.sample(1000, tune=100, chains=1, **QUIET)
    assert trace.posterior["k"].mean() == pytest.approx(likely_coin(), abs=0.08)


def test_compound_steps():
    with pm.Model():
        k = pm.Poisson("k", 3.0)
        x = pm.Normal("x", k, 1.0)
        pm.Normal("y", x, 0.5, observed=4.0)
        trace = pm.sample(800, tune=300, chains=1, step=[pm.Metropolis([k]), pm.NUTS([x])], **QUIET)
    posterior = trace.posterior
    assert posterior["k"].dtype.kind == "i"
    weights = np.array([0.0498, 0.1494, 0.2240, 0.2240, 0.1680, 0.1008, 0.0504, 0.0216, 0.0081])
    weights = weights * np.exp(-0.5 * (4.0 - np.arange(9)) ** 2 / 1.25)
    mean = (weights * np.arange(9)).sum() / weights.sum()
    assert posterior["k"].mean() == pytest.approx(mean, abs=0.3)


@pytest.mark.parametrize(
    "options", [{"backend": "c"}, {"compile_kwargs": {"mode": "FAST_COMPILE"}}]
)
def test_how_functions_are_compiled(options):
    with mean_of_normals():
        trace = pm.sample(200, tune=200, chains=1, **options, **QUIET)
    check(trace.posterior["mu"].to_numpy(), 0.25)


def test_sequential_monte_carlo():
    with mean_of_normals():
        trace = pm.sample_smc(500, chains=2, cores=1, progressbar=False, random_seed=5)
    check(trace.posterior["mu"].to_numpy())
    variance = np.eye(6) + 4.0
    evidence = -0.5 * (
        Y @ np.linalg.solve(variance, Y) + np.linalg.slogdet(2 * np.pi * variance)[1]
    )
    found = [values[-1] for values in trace.sample_stats["log_marginal_likelihood"].to_numpy()]
    np.testing.assert_allclose(np.mean(found, dtype=float), evidence, atol=0.4)


def test_simulator():
    """Approximate Bayesian computation: the mean of normal numbers from simulated ones."""

    def simulate(rng, mu, size=None):
        return rng.normal(mu, 1.0, size=6)

    with pm.Model():
        mu = pm.Normal("mu", 0.0, 2.0)
        pm.Simulator("y", simulate, params=(mu,), sum_stat="mean", epsilon=0.1, observed=Y)
        trace = pm.sample_smc(300, chains=1, cores=1, progressbar=False, random_seed=5)
    assert trace.posterior["mu"].mean() == pytest.approx(MEAN, abs=0.3)


@pytest.mark.filterwarnings("ignore:`return_inferencedata=False`:FutureWarning")
def test_zarr_trace(monkeypatch):
    # the trace has pickles of the states of samplers
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True)
    trace = pm.backends.ZarrTrace(store=zarr.storage.MemoryStore())
    options = {"draws": 30, "tune": 30, "chains": 2, "cores": 1, **QUIET}
    with mean_of_normals():
        # xarray reads stores of a later zarr than PyMC writes
        pm.sample(trace=trace, return_inferencedata=False, **options)
        again = pm.sample(**options)
    np.testing.assert_array_equal(trace.posterior["mu"][:], again.posterior["mu"])


def test_single_precision():
    with pytensor.config.change_flags(floatX="float32", warn_float64="ignore"):
        model = mean_of_normals()
        logp = model.compile_logp()(model.initial_point())
        with model:
            trace = pm.sample(400, tune=200, chains=1, **QUIET)
    wanted = -0.5 * (Y**2).sum() - 3.5 * np.log(2 * np.pi) - np.log(2.0)
    assert logp.dtype == "float32"
    assert logp == pytest.approx(wanted, rel=1e-6)
    check(trace.posterior["mu"].to_numpy())
