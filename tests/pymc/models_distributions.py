"""Each distribution of PyMC that no other model has."""

from __future__ import annotations

import numpy as np
import pymc as pm


def continuous() -> pm.Model:
    with pm.Model() as model:
        pm.Weibull("weibull", 2.0, 1.0)
        pm.InverseGamma("inverse_gamma", 3.0, 1.0)
        pm.SkewNormal("skew_normal", alpha=2.0, mu=0.0, sigma=1.0)
        pm.ExGaussian("ex_gaussian", mu=0.0, sigma=1.0, nu=1.0)
        pm.Kumaraswamy("kumaraswamy", 2.0, 2.0)
        pm.Rice("rice", 1.0, 1.0)
        pm.Moyal("moyal", 0.0, 1.0)
        pm.Triangular("triangular", lower=0.0, c=0.5, upper=1.0)
        pm.Logistic("logistic", 0.0, 1.0)
        pm.Gumbel("gumbel", 0.0, 1.0)
    return model


def continuous_with_bounds() -> pm.Model:
    with pm.Model() as model:
        pm.HalfStudentT("half_student", 3.0, 1.0)
        pm.Pareto("pareto", 2.0, 1.0)
        pm.LogitNormal("logit_normal", 0.0, 1.0)
        pm.Wald("wald", 1.0, 1.0)
        pm.ChiSquared("chi_squared", 3.0)
        pm.Interpolated("interpolated", np.linspace(0.0, 1.0, 5), np.array([1.0, 2, 3, 2, 1]))
        pm.TruncatedNormal("truncated_normal", 0.0, 1.0, lower=-1.0, upper=2.0)
        pm.Beta("beta", mu=0.3, sigma=0.1)
        pm.SkewStudentT("skew_student", a=2.0, b=3.0)
    return model


def circular() -> pm.Model:
    with pm.Model() as model:
        mu = pm.VonMises("mu", 0.0, 1.0)
        kappa = pm.HalfNormal("kappa", 1.0)
        pm.VonMises("y", mu, kappa, observed=np.linspace(-2.0, 2.0, 9))
    return model


def discrete() -> pm.Model:
    with pm.Model() as model:
        p = pm.Beta("p", 1.0, 1.0)
        pm.Binomial("binomial", 5, p, observed=[2, 3])
        pm.Geometric("geometric", p, observed=3)
        pm.Categorical("categorical", p=[0.2, 0.3, 0.5], observed=1)
        pm.DiscreteWeibull("discrete_weibull", p, 1.0, observed=2)
        pm.HyperGeometric("hypergeometric", 10, 5, 3, observed=2)
        pm.Multinomial("multinomial", 5, [0.2, 0.8], observed=[1, 4])
        pm.DiscreteUniform("uniform", 0, 5, observed=2)
    return model


def discrete_latent() -> pm.Model:
    """Free variables without gradient beside one with a gradient."""
    with pm.Model() as model:
        p = pm.Beta("p", 2.0, 2.0)
        n = pm.Poisson("n", 6.0)
        kinds = pm.Categorical("kinds", p=np.array([0.2, 0.3, 0.5]), shape=4)
        pm.Binomial("y", n=n, p=p, observed=3)
        pm.Normal("z", kinds - 1.0, 1.0, observed=np.arange(4.0))
    return model


def flat() -> pm.Model:
    with pm.Model() as model:
        mu, sigma = pm.Flat("mu"), pm.HalfFlat("sigma")
        pm.Normal("y", mu, sigma, observed=np.arange(5.0))
    return model


def batches() -> pm.Model:
    """Parameters that broadcast, shapes from sizes, an index of a draw as a parameter."""
    with pm.Model(coords={"row": range(4), "column": range(3)}) as model:
        mu = pm.Normal("mu", np.arange(4.0)[:, None], [0.5, 1.0, 2.0], dims=("row", "column"))
        total = pm.Deterministic("total", mu.sum(axis=1), dims="row")
        alpha = pm.Dirichlet("alpha", np.ones((4, 3)), dims=("row", "column"))
        pm.Normal("y", total + alpha[:, 0] ** 2, mu[0, 1] ** 2 + 0.1, observed=np.ones(4))
    return model


MODELS = (
    continuous,
    continuous_with_bounds,
    circular,
    discrete,
    discrete_latent,
    flat,
    batches,
)
