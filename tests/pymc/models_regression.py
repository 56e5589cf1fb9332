"""Linear, generalised and hierarchical regressions, and models with data that change."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.stats import norm

rng = np.random.default_rng(17)
X = rng.normal(size=(20, 3))
REAL = rng.normal(size=20)
COUNTS = rng.poisson(3.0, 20)
BINARY = (rng.random(20) < 0.5).astype(int)
LEVELS = COUNTS % 3


def linear() -> pm.Model:
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=3)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", X @ beta, sigma, observed=REAL)
    return model


def robust_dot() -> pm.Model:
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=3)
        nu = pm.Gamma("nu", 2.0, 0.1)
        mu = pm.math.dot(X, beta)
        pm.StudentT("y", nu=nu, mu=mu, sigma=pm.Exponential("s", 1.0), observed=REAL)
    return model


def logistic() -> pm.Model:
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=3)
        pm.Bernoulli("y", logit_p=X @ beta, observed=BINARY)
    return model


def negative_binomial() -> pm.Model:
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 0.3, shape=3)
        alpha = pm.Gamma("alpha", 2.0, 0.1)
        pm.NegativeBinomial("y", mu=pt.exp(X @ beta + 1.0), alpha=alpha, observed=COUNTS)
    return model


def ordered_logistic() -> pm.Model:
    with pm.Model() as model:
        cuts = pm.Normal(
            "cuts",
            [-1.0, 1.0],
            1.0,
            transform=pm.distributions.transforms.ordered,
            initval=[-1.0, 1.0],
        )
        eta = (X * pm.Normal("beta", shape=3)).sum(-1)
        pm.OrderedLogistic("y", eta=eta, cutpoints=cuts, observed=LEVELS, compute_p=False)
    return model


def ordered_probit() -> pm.Model:
    with pm.Model() as model:
        eta = pm.Normal("eta", 0.0, 1.0)
        pm.OrderedProbit("y", eta=eta, cutpoints=np.array([-0.5, 0.6]), observed=LEVELS)
    return model


def softmax_regression() -> pm.Model:
    with pm.Model() as model:
        beta = pm.ZeroSumNormal("beta", 1.0, shape=(3, 3))
        pm.Categorical("y", p=pm.math.softmax(pt.dot(X, beta), axis=-1), observed=LEVELS)
    return model


def horseshoe() -> pm.Model:
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", 0.5)
        local = pm.HalfCauchy("local", 1.0, shape=3)
        beta = pm.Deterministic("beta", pm.Normal("unit", shape=3) * local * tau)
        pm.Normal("y", (X * beta).sum(-1), 1.0, observed=REAL)
    return model


def quantile_regression() -> pm.Model:
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=3)
        b = pm.HalfNormal("b", 1.0)
        mu = (X * beta).sum(-1)
        pm.AsymmetricLaplace("y", mu=mu, b=b, q=0.7, observed=REAL)
    return model


def radon() -> pm.Model:
    """Varying levels and slopes of counties; the data are drawn with a seed."""
    draw = np.random.default_rng(85)
    county = draw.integers(0, 12, 80)
    floor = (draw.random(80) < 0.2).astype(float)
    uranium = draw.normal(size=12)
    y = 1.4 + 0.7 * uranium[county] - 0.7 * floor + draw.normal(0.0, 0.7, 80)
    with pm.Model(coords={"county": range(12), "effect": ["level", "slope"]}) as model:
        index = pm.Data("index", county)
        gamma = pm.Normal("gamma", 0.0, 5.0, shape=2)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        unit = pm.Normal("unit", dims=("effect", "county"))
        effect = pt.dot(chol, unit)
        slope = effect[1, index] * floor
        mu = gamma[0] + gamma[1] * pt.constant(uranium)[index] + effect[0, index] + slope
        pm.Normal("y", mu, pm.Exponential("sigma", 1.0), observed=y)
    return model


def spline() -> pm.Model:
    knots = np.linspace(0.1, 0.9, 6)
    x = np.linspace(0.0, 1.0, 20)
    basis = norm.pdf(x[:, None], knots, 0.1)
    with pm.Model() as model:
        weights = pm.Normal("weights", 0.0, 1.0, shape=6)
        mu = pm.Deterministic("mu", pt.tensordot(basis, weights, axes=1))
        pm.Normal("y", mu, pm.HalfNormal("sigma", 1.0), observed=REAL)
    return model


def item_response() -> pm.Model:
    answers = np.random.default_rng(3).integers(0, 2, (6, 4))
    with pm.Model() as model:
        ability = pm.Normal("ability", shape=(6, 1))
        difficulty = pm.Normal("difficulty", 0.0, pm.HalfNormal("spread", 2.0), shape=4)
        sharpness = pm.LogNormal("sharpness", 0.0, 0.5, shape=4)
        pm.Bernoulli("answers", logit_p=sharpness * (ability - difficulty), observed=answers)
    return model


def matrix_factorisation() -> pm.Model:
    users, items = np.arange(20) % 5, np.arange(20) % 4
    with pm.Model() as model:
        u = pm.Normal("u", 0.0, 1.0, shape=(5, 2), initval=np.linspace(0.1, 1.0, 10).reshape(5, 2))
        v = pm.Normal("v", 0.0, 1.0, shape=(4, 2), initval=np.linspace(-1.0, 1.0, 8).reshape(4, 2))
        rating = pm.math.dot(u, v.T)[users, items]
        pm.Normal("y", rating, 0.5, observed=REAL)
    return model


def missing_values() -> pm.Model:
    y = REAL.copy()
    y[[3, 7]] = np.nan
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1.0, observed=np.ma.masked_invalid(y))
    return model


def missing_covariate() -> pm.Model:
    x = X.copy()
    x[2, 1] = x[5, 0] = np.nan
    with pm.Model() as model:
        mean = pm.Normal("mean", shape=3)
        full = pm.Normal("full", mean, 1.0, observed=np.ma.masked_invalid(x))
        pm.Normal("y", full.sum(-1), 1.0, observed=REAL)
    return model


def new_data() -> pm.Model:
    with pm.Model(coords={"row": range(20)}) as model:
        x = pm.Data("x", X, dims=("row", "column"))
        y = pm.Data("y_data", REAL, dims="row")
        beta = pm.Normal("beta", 0.0, 1.0, shape=3)
        pm.Normal("y", pt.dot(x, beta), 1.0, observed=y, dims="row")
        pm.set_data({"x": X[:7] + 1.0, "y_data": REAL[:7]}, coords={"row": range(7)})
    return model


def minibatch() -> pm.Model:
    """Batches of all rows, so that the value does not depend on which are drawn."""
    x, y = pm.Minibatch(np.ones((20, 9)), np.full(20, 0.5), batch_size=4)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=9)
        pm.Normal("y", (x * beta).sum(-1), 1.0, observed=y, total_size=20)
    return model


def intervention() -> pm.Model:
    with pm.Model() as model:
        z = pm.Normal("z", 0.0, 1.0)
        x = pm.Normal("x", 2.0 * z, 1.0)
        pm.Normal("y", x - z, 0.5)
    return pm.observe(pm.do(model, {"x": 1.5}), {"y": 0.7})


def frozen() -> pm.Model:
    with pm.Model(coords={"row": range(20)}) as model:
        x = pm.Data("x", REAL, dims="row")
        slope = pm.Normal("slope", 0.0, 1.0, dims="row")
        pm.Normal("y", slope * x, 1.0, observed=X[:, 0], dims="row")
    return pm.model.transform.optimization.freeze_dims_and_data(model)


def marginal_effect() -> pm.Model:
    """A switch on a draw, and densities of functions of draws by hand."""
    with pm.Model() as model:
        a = pm.Normal("a")
        pm.Normal("y", pm.math.switch(a > 0.0, a, 2.0 * a), 1.0, observed=REAL)
        b = pm.Normal("b", a, 1.0)
        pm.Potential("near", -((a - b) ** 2))
        pm.Deterministic("difference", a - b)
    return model


MODELS = (
    linear,
    robust_dot,
    logistic,
    negative_binomial,
    ordered_logistic,
    ordered_probit,
    softmax_regression,
    horseshoe,
    quantile_regression,
    radon,
    spline,
    item_response,
    matrix_factorisation,
    missing_values,
    missing_covariate,
    new_data,
    minibatch,
    intervention,
    frozen,
    marginal_effect,
)
