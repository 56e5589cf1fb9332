"""Packages around PyMC run on this package: other samplers, Bambi, trees, pymc-extras.

Each test needs one of them, and is skipped where that is not installed.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from tests.pymc.known_posterior import QUIET, Y

pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages warn of is their own
#: of each group's mean about `mu`, and of a group's number about its mean
BETWEEN, WITHIN = 1.0, 0.5
PRECISION = len(Y) / (BETWEEN**2 + WITHIN**2) + 0.25


def needed(package: str) -> ModuleType:
    """The package; the test is skipped if it is not installed."""
    reason = f"{package} is not installed: pip install {package.replace('_', '-')}"
    return pytest.importorskip(package, reason=reason)


def groups() -> pm.Model:
    """Numbers of groups whose means are drawn: the posterior of `mu` is known."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        means = pm.Normal("means", mu, BETWEEN, shape=len(Y))
        pm.Normal("y", means, WITHIN, observed=Y)
    return model


def check(posterior) -> None:
    """Draws of the hierarchical model have the moments of its posterior."""
    mu, means = posterior["mu"].to_numpy(), posterior["means"].to_numpy()
    assert mu.mean() == pytest.approx(Y.sum() / (BETWEEN**2 + WITHIN**2) / PRECISION, abs=0.15)
    assert mu.std() == pytest.approx(PRECISION**-0.5, abs=0.15)
    weight = BETWEEN**2 / (BETWEEN**2 + WITHIN**2)
    shrunk = weight * Y + (1 - weight) * mu.mean()
    np.testing.assert_allclose(means.mean(axis=(0, 1)), shrunk, atol=0.15)


@pytest.mark.parametrize("sampler", ["nutpie", "numpyro", "blackjax"])
def test_samplers_of_pymc(sampler):
    needed(sampler)
    with groups():
        trace = pm.sample(600, tune=400, chains=2, cores=1, nuts_sampler=sampler, **QUIET)
    check(trace.posterior)


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_nutpie(backend):
    nutpie = needed("nutpie")
    needed(backend)
    compiled = nutpie.compile_pymc_model(groups(), backend=backend)
    trace = nutpie.sample(compiled, draws=600, tune=400, chains=2, seed=3, progress_bar=False)
    check(trace.posterior)


def table(size: int = 80) -> pd.DataFrame:
    """A table with a number ``x``, a group ``g``, and what depends on them."""
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=size), rng.integers(0, 4, size)
    y = 1 + 2 * x + 0.5 * g + rng.normal(0, 0.5, size)
    return pd.DataFrame({"x": x, "g": list(map("abcd".__getitem__, g)), "y": y, "b": y > 1.75})


@pytest.mark.parametrize(
    ("formula", "family", "low", "high"),
    [("y ~ x + (1|g)", "gaussian", 1.7, 2.3), ("b ~ x + g", "bernoulli", 1.0, 12.0)],
)
def test_bambi(formula, family, low, high):
    bambi = needed("bambi")
    model = bambi.Model(formula, table(), family=family)
    trace = model.fit(draws=200, tune=200, chains=2, cores=1, progressbar=False, random_seed=1)
    assert low < trace.posterior["x"].mean() < high
    model.predict(trace, kind="response")
    (drawn,) = trace.posterior_predictive.data_vars.values()
    assert drawn.shape == (2, 200, 80)


def test_marginalized_mixture():
    """The probabilities of components that were summed out are those of the data."""
    extras = needed("pymc_extras")
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.normal(-2, 1, 60), rng.normal(3, 1, 40)])
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.ones(2))
        means = pm.Normal("means", [-1.0, 1.0], 3.0, shape=2)
        component = pm.Categorical("component", p=weights, shape=len(y))
        pm.Normal("y", means[component], 1.0, observed=y)
    with extras.marginalize(model, ["component"]) as marginal:
        trace = pm.sample(200, tune=200, chains=1, **QUIET)
    posterior = extras.recover_marginals(trace, model=marginal, random_seed=1).posterior
    np.testing.assert_allclose(posterior["weights"].mean(("chain", "draw")), [0.6, 0.4], atol=0.05)
    np.testing.assert_allclose(posterior["component"].mean(("chain", "draw")), y > 0.5, atol=0.5)


def test_laplace_approximation():
    """Of a normal posterior it is exact."""
    extras = needed("pymc_extras")
    with groups() as model:
        trace = extras.fit_laplace(model=model, random_seed=1, progressbar=False)
    check(trace.posterior)


@pytest.mark.parametrize("likelihood", ["normal", "bernoulli"])
def test_trees(likelihood):
    trees = needed("pymc_bart")
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = x[:, 0] ** 2
    observed = y if likelihood == "normal" else (y > 1).astype(float)
    with pm.Model():
        mu = trees.BART("mu", x, observed, m=20)
        if likelihood == "normal":
            pm.Normal("y", mu, 0.2, observed=observed)
        else:
            pm.Bernoulli("y", p=pm.math.sigmoid(mu), observed=observed)
        trace = pm.sample(100, tune=100, chains=1, **QUIET)
        drawn = pm.sample_posterior_predictive(trace, progressbar=False, random_seed=1)
    fitted = trace.posterior["mu"].mean(("chain", "draw")).to_numpy()
    assert np.corrcoef(fitted, observed)[0, 1] > 0.7
    assert drawn.posterior_predictive["y"].shape == (1, 100, 60)
