"""Multivariate distributions, fields on graphs, Gaussian processes."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

rng = np.random.default_rng(41)
X = rng.normal(size=(20, 3))
REAL = rng.normal(size=20)
RING = np.array([[0.0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
COV = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.5]])


def normal_with_lkj() -> pm.Model:
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov("chol", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        pm.MvNormal("y", pm.Normal("mu", shape=3), chol=chol, observed=X)
    return model


def correlations() -> pm.Model:
    with pm.Model() as model:
        corr = pm.LKJCorr("corr", n=3, eta=2.0)
        scale = pm.HalfNormal("scale", 1.0, shape=3)
        cov = scale[:, None] * corr * scale
        pm.MvNormal("y", np.zeros(3), cov=cov, observed=X)
    return model


def normal_by_covariance() -> pm.Model:
    with pm.Model() as model:
        mu = pm.MvNormal("mu", np.zeros(3), cov=COV)
        scale = pm.HalfNormal("scale", 1.0)
        pm.MvNormal("by_cov", mu, cov=scale * COV, observed=X)
        pm.MvNormal("by_tau", mu, tau=COV, observed=X)
        pm.MvStudentT("heavy", nu=4.0, mu=mu, scale=scale * COV, observed=X)
    return model


def wishart() -> pm.Model:
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        pm.Wishart("w", nu=5, V=scale * COV, observed=COV + np.eye(3))
    return model


def matrix_normal() -> pm.Model:
    with pm.Model() as model:
        log_scale = pm.Normal("log_scale")
        rows, columns = np.eye(5) + 0.1, np.eye(3) * pt.exp(log_scale)
        mu = np.zeros((5, 3))
        pm.MatrixNormal("y", mu=mu, rowcov=rows, colcov=columns, observed=X[:5])
        chol = np.linalg.cholesky(COV)
        latent = pm.MatrixNormal("latent", mu=mu, rowchol=np.eye(5), colchol=chol, shape=(5, 3))
        pm.Normal("z", latent, 1.0, observed=X[5:10])
    return model


def kronecker_normal() -> pm.Model:
    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma", 1.0)
        covs = [np.eye(2) + 0.3, COV]
        pm.KroneckerNormal("y", mu=np.zeros(6), covs=covs, sigma=sigma, observed=REAL[:6])
    return model


def compositions() -> pm.Model:
    counts = np.array([[1, 2, 2], [0, 5, 0], [3, 1, 1]])
    with pm.Model() as model:
        a = pm.Gamma("a", 2.0, 1.0, shape=3)
        pm.DirichletMultinomial("y", n=5, a=a, observed=counts)
        p = pm.Dirichlet("p", a)
        pm.Multinomial("z", n=5, p=p, observed=counts)
        pm.Dirichlet("x", a, observed=np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]]))
    return model


def car() -> pm.Model:
    with pm.Model() as model:
        alpha = pm.Uniform("alpha", 0.0, 0.9)
        tau = pm.Gamma("tau", 2.0, 2.0)
        x = pm.CAR("x", mu=np.zeros(4), W=RING, alpha=alpha, tau=tau)
        pm.Normal("y", x, 1.0, observed=REAL[:4])
    return model


def icar() -> pm.Model:
    with pm.Model() as model:
        x = pm.ICAR("x", W=RING, sigma=pm.HalfNormal("sigma", 1.0))
        pm.Normal("y", x, 1.0, observed=REAL[:4])
    return model


def zero_sum() -> pm.Model:
    with pm.Model() as model:
        z = pm.ZeroSumNormal("z", sigma=pm.HalfNormal("sigma"), shape=(3, 4), n_zerosum_axes=2)
        pm.Normal("y", z, 1.0, observed=REAL[:12].reshape(3, 4))
    return model


def gp_marginal() -> pm.Model:
    with pm.Model() as model:
        scale = pm.Gamma("scale", 2.0, 1.0, shape=3)
        eta = pm.HalfNormal("eta", 1.0)
        mean = pm.gp.mean.Linear(coeffs=pm.Normal("slope", shape=3))
        gp = pm.gp.Marginal(mean_func=mean, cov_func=eta**2 * pm.gp.cov.ExpQuad(3, ls=scale))
        gp.marginal_likelihood("y", X=X, y=REAL, sigma=0.5)
    return model


def gp_latent() -> pm.Model:
    with pm.Model() as model:
        scale = pm.Gamma("scale", 2.0, 1.0)
        cov = pm.gp.cov.Matern52(3, ls=scale) + pm.gp.cov.WhiteNoise(1e-3)
        f = pm.gp.Latent(cov_func=cov).prior("f", X=X)
        pm.Bernoulli("y", logit_p=f, observed=(REAL > 0).astype(int))
    return model


def gp_sums() -> pm.Model:
    x = np.linspace(0.0, 3.0, 20)[:, None]
    with pm.Model() as model:
        period, scale = pm.Gamma("period", 3.0, 2.0), pm.Gamma("scale", 2.0, 1.0)
        seasons = pm.gp.Marginal(cov_func=pm.gp.cov.Periodic(1, period=period, ls=1.0))
        trend = pm.gp.Marginal(cov_func=pm.gp.cov.RatQuad(1, ls=scale, alpha=1.0))
        (seasons + trend).marginal_likelihood("y", X=x, y=REAL, sigma=0.3)
    return model


def gp_sparse() -> pm.Model:
    with pm.Model() as model:
        scale = pm.Gamma("scale", 2.0, 1.0)
        gp = pm.gp.MarginalApprox(cov_func=pm.gp.cov.Matern32(3, ls=scale), approx="VFE")
        gp.marginal_likelihood("y", X=X, Xu=X[::4], y=REAL, sigma=0.5)
    return model


def gp_kronecker() -> pm.Model:
    axes = [np.linspace(0.0, 1.0, 4)[:, None], np.linspace(0.0, 2.0, 5)[:, None]]
    with pm.Model() as model:
        scale = pm.Gamma("scale", 2.0, 1.0, shape=2)
        covs = [pm.gp.cov.ExpQuad(1, ls=scale[0]), pm.gp.cov.Matern32(1, ls=scale[1])]
        gp = pm.gp.MarginalKron(cov_funcs=covs)
        gp.marginal_likelihood("y", Xs=axes, y=REAL, sigma=0.5)
    return model


def hsgp() -> pm.Model:
    with pm.Model() as model:
        scale, eta = pm.InverseGamma("scale", 5.0, 5.0), pm.HalfNormal("eta", 1.0)
        gp = pm.gp.HSGP(m=[6], c=1.5, cov_func=eta**2 * pm.gp.cov.ExpQuad(1, ls=scale))
        f = gp.prior("f", X=X[:, :1])
        pm.Poisson("y", pt.exp(f), observed=np.arange(20) % 4)
    return model


def hsgp_periodic() -> pm.Model:
    x = np.linspace(0.0, 4.0, 20)[:, None]
    with pm.Model() as model:
        cov = pm.gp.cov.Periodic(1, period=1.3, ls=pm.InverseGamma("scale", 3.0, 2.0))
        f = pm.gp.HSGPPeriodic(m=5, scale=pm.HalfNormal("eta", 1.0), cov_func=cov).prior("f", X=x)
        pm.Normal("y", f, 0.5, observed=REAL)
    return model


MODELS = (
    normal_with_lkj,
    correlations,
    normal_by_covariance,
    wishart,
    matrix_normal,
    kronecker_normal,
    compositions,
    car,
    icar,
    zero_sum,
    gp_marginal,
    gp_latent,
    gp_sums,
    gp_sparse,
    gp_kronecker,
    hsgp,
    hsgp_periodic,
)
