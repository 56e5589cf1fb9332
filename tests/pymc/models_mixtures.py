"""Mixtures, censoring, truncation, excess zeros, order statistics, functions of draws."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

rng = np.random.default_rng(23)
REAL = rng.normal(size=20)
COUNTS = rng.poisson(2.0, 20) * (rng.random(20) < 0.7)
SOME_POSITIVE = np.abs(REAL[:4]) + 0.1
POSITIVE = np.where(COUNTS == 0, 0.0, rng.gamma(2.0, 1.0, 20))


def normal_mixture() -> pm.Model:
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(3))
        mu = pm.Normal("mu", [-1.0, 0.0, 1.0], 1.0, shape=3)
        sigma = pm.HalfNormal("sigma", 1.0, shape=3)
        pm.NormalMixture("y", w=w, mu=mu, sigma=sigma, observed=REAL)
    return model


def mixture_of_kinds() -> pm.Model:
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(2))
        mu = pm.Normal("mu")
        parts = [pm.Normal.dist(mu, 1.0), pm.Laplace.dist(1.0, 2.0)]
        pm.Mixture("y", w=w, comp_dists=parts, observed=REAL)
    return model


def poisson_mixture() -> pm.Model:
    with pm.Model() as model:
        rates = pm.Gamma("rates", 2.0, 1.0, shape=2)
        pm.Mixture("y", w=[0.3, 0.7], comp_dists=pm.Poisson.dist(rates), observed=COUNTS)
    return model


def mixture_by_index() -> pm.Model:
    """Densities of draws that another draw, or a condition on one, selects."""
    with pm.Model() as model:
        k = pm.Bernoulli("k", 0.3, initval=1)
        mu = pm.Normal("mu", [0.0, 3.0], 1.0)

        def by_index(k, mu, size):
            return pt.stack([pm.Normal.dist(mu[0], 1.0), pm.Laplace.dist(mu[1], 0.5)])[k]

        def by_switch(k, mu, size):
            return pt.switch(k > 0, pm.Normal.dist(mu[0], 1.0), pm.Laplace.dist(mu[1], 0.5))

        pm.CustomDist("y", k, mu, dist=by_index, observed=1.3)
        pm.CustomDist("z", k, mu, dist=by_switch, observed=-0.4)
    return model


def stick_breaking() -> pm.Model:
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 1.0, 1.0)
        w = pm.StickBreakingWeights("w", alpha=alpha, K=4)
        mu = pm.Normal("mu", 0.0, 2.0, shape=5)
        pm.NormalMixture("y", w=w, mu=mu, sigma=0.5, observed=REAL)
    return model


def censored() -> pm.Model:
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma", 1.0)
        observed = np.clip(REAL, -1.0, 1.0)
        pm.Censored("y", pm.Normal.dist(mu, sigma), lower=-1.0, upper=1.0, observed=observed)
    return model


def truncated() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Truncated("y", pm.Normal.dist(mu, 1.0), lower=-4.0, upper=4.0, observed=REAL)
        rate = pm.Exponential("rate", 1.0)
        pm.Truncated("n", pm.Poisson.dist(rate), lower=1, observed=COUNTS + 1)
        pm.Truncated("t", pm.StudentT.dist(3.0, mu=mu, sigma=1.0), lower=-5.0, observed=REAL)
    return model


def excess_zeros() -> pm.Model:
    with pm.Model() as model:
        psi = pm.Beta("psi", 1.0, 1.0)
        mu = pm.Gamma("mu", 2.0, 1.0)
        pm.ZeroInflatedPoisson("poisson", psi=psi, mu=mu, observed=COUNTS)
        pm.ZeroInflatedBinomial("binomial", psi=psi, n=10, p=0.3, observed=COUNTS)
        pm.ZeroInflatedNegativeBinomial("negative", psi=psi, mu=mu, alpha=2.0, observed=COUNTS)
    return model


def hurdle() -> pm.Model:
    with pm.Model() as model:
        psi = pm.Beta("psi", 1.0, 1.0)
        mu = pm.Gamma("mu", 2.0, 1.0)
        pm.HurdlePoisson("poisson", psi=psi, mu=mu, observed=COUNTS)
        pm.HurdleNegativeBinomial("negative", psi=psi, mu=mu, alpha=2.0, observed=COUNTS)
        pm.HurdleGamma("gamma", psi=psi, alpha=mu, beta=1.0, observed=POSITIVE)
        pm.HurdleLogNormal("lognormal", psi=psi, mu=mu, sigma=1.0, observed=POSITIVE)
    return model


def maximum() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu")

        def largest(mu, size):
            return pt.max(pm.Normal.dist(mu, 1.0, shape=(5,)))

        pm.CustomDist("y", mu, dist=largest, observed=1.2)
    return model


def minimum() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu")

        def smallest(mu, size):
            return pt.min(pm.Normal.dist(mu, 1.0, shape=(5,)))

        pm.CustomDist("y", mu, dist=smallest, observed=-0.2)
    return model


def product() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=2)

        def mixed(mu, size):
            return np.array([[2.0, 0.0], [1.0, 3.0]]) @ pm.Normal.dist(mu, 1.0, shape=2)

        pm.CustomDist("y", mu, dist=mixed, observed=[0.1, 0.2])
    return model


def monotone() -> pm.Model:
    """Densities of monotone functions of draws."""
    with pm.Model() as model:
        mu, s = pm.Normal("mu"), pm.HalfNormal("s", 1.0)

        def custom(name, function, observed):
            def dist(mu, s, size):
                return function(pm.Normal.dist(mu, s, size=size))

            pm.CustomDist(name, mu, s, dist=dist, observed=observed)

        custom("exp", pt.exp, SOME_POSITIVE)
        custom("affine", lambda x: 2.0 - 3.0 * x, REAL)
        custom("cube", lambda x: x**3, REAL)
        custom("reciprocal", lambda x: 1.0 / x, REAL)
        custom("tanh", pt.tanh, REAL[:4] / 3.0)
        custom("sigmoid", pt.sigmoid, SOME_POSITIVE / 4.0)
    return model


def folded() -> pm.Model:
    """Densities of functions of draws that are not monotone, or join them."""
    with pm.Model() as model:
        mu, s = pm.Normal("mu"), pm.HalfNormal("s", 1.0)

        def custom(name, function, observed, shape=None):
            def dist(mu, s, size):
                return function(pm.Normal.dist(mu, s, size=shape or size))

            pm.CustomDist(name, mu, s, dist=dist, observed=observed)

        custom("square", pt.square, SOME_POSITIVE)
        custom("absolute", pt.abs, SOME_POSITIVE)
        custom("cumsum", lambda x: pt.cumsum(x, axis=-1), REAL, (20,))
    return model


def rounded() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu")

        def whole(mu, size):
            return pt.round(pm.Normal.dist(mu, 1.0, size=size))

        def clipped(mu, size):
            return pt.clip(pm.Normal.dist(mu, 1.0, size=size), -1.0, 1.0)

        pm.CustomDist("whole", mu, dist=whole, observed=np.round(REAL))
        pm.CustomDist("clipped", mu, dist=clipped, observed=np.clip(REAL, -1.0, 1.0))
    return model


def joined() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu")

        def parts(mu, size):
            first, last = pm.Normal.dist(mu, 1.0, size=(2,)), pm.Gamma.dist(2.0, 1.0, size=(3,))
            return pt.concatenate([first, last])

        def stacked(mu, size):
            return pt.stack([pm.Normal.dist(mu, 1.0), pm.Laplace.dist(mu, 2.0)])

        pm.CustomDist("joined", mu, dist=parts, observed=[0.1, -0.3, 0.5, 1.5, 2.5])
        pm.CustomDist("stacked", mu, dist=stacked, observed=[0.7, -0.2])
    return model


def own_density() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=2)

        def logp(value, mu):
            return pm.math.sum(-((value - mu) ** 2), axis=-1)

        def random(mu, rng=None, size=None):
            return rng.normal(mu, 1.0, size=(*(size or ()), 2))

        pm.CustomDist(
            "y",
            mu,
            logp=logp,
            random=random,
            signature="(n)->(n)",
            observed=REAL.reshape(10, 2),
        )
    return model


MODELS = (
    normal_mixture,
    mixture_of_kinds,
    poisson_mixture,
    mixture_by_index,
    stick_breaking,
    censored,
    truncated,
    excess_zeros,
    hurdle,
    maximum,
    minimum,
    product,
    monotone,
    folded,
    rounded,
    joined,
    own_density,
)
