"""Time series, loops, differential equations, simulators."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

rng = np.random.default_rng(31)
REAL = rng.normal(size=20)
RETURNS = 0.02 * rng.standard_t(5.0, 40)


def ar1() -> pm.Model:
    with pm.Model() as model:
        rho = pm.Normal("rho", 0.0, 0.5)
        sigma = pm.HalfNormal("sigma")
        start = pm.Normal.dist(0.0, 1.0)
        weights = pt.stack([0.1, rho])
        pm.AR("y", rho=weights, sigma=sigma, constant=True, init_dist=start, observed=REAL)
    return model


def ar2_latent() -> pm.Model:
    with pm.Model() as model:
        rho = pm.Normal("rho", 0.0, 0.2, shape=2)
        start = pm.Normal.dist(0.0, 1.0, shape=2)
        x = pm.AR("x", rho=rho, sigma=1.0, init_dist=start, steps=10)
        pm.Normal("y", x, 1.0, observed=REAL[:12])
    return model


def random_walks() -> pm.Model:
    with pm.Model() as model:
        sigma = pm.Exponential("sigma", 1.0)
        start = pm.Normal.dist(0.0, 1.0)
        walk = pm.GaussianRandomWalk("walk", mu=0.1, sigma=sigma, init_dist=start, steps=19)
        pm.Normal("y", walk, 1.0, observed=REAL)
        steps, first = pm.StudentT.dist(4.0, sigma=sigma), pm.StudentT.dist(3.0, sigma=1.0)
        pm.RandomWalk("heavy", innovation_dist=steps, init_dist=first, observed=REAL)
        start = pm.MvNormal.dist([0.0, 0.0], np.eye(2))
        cov = np.array([[1.0, 0.3], [0.3, 1.0]])
        pairs = REAL.reshape(10, 2)
        pm.MvGaussianRandomWalk("pairs", mu=[0.1, 0.0], cov=cov, init_dist=start, observed=pairs)
    return model


def garch() -> pm.Model:
    with pm.Model() as model:
        omega = pm.Uniform("omega", 0.0, 1.0)
        alpha = pm.Uniform("alpha", 0.0, 1.0)
        beta = pm.Uniform("beta", 0.0, 1.0 - alpha)
        pm.GARCH11("y", omega=omega, alpha_1=alpha, beta_1=beta, initial_vol=1.0, observed=REAL)
    return model


def stochastic_volatility() -> pm.Model:
    """Hoffman, Gelman (2014), The no-U-turn sampler; the returns are drawn with a seed."""
    with pm.Model() as model:
        step = pm.Exponential("step", 10.0)
        start = pm.Normal.dist(-3.0, 1.0)
        volatility = pm.GaussianRandomWalk("volatility", sigma=step, init_dist=start, shape=40)
        nu = pm.Exponential("nu", 0.1)
        pm.StudentT("returns", nu=nu, sigma=pt.exp(volatility), observed=RETURNS)
    return model


def euler_maruyama() -> pm.Model:
    with pm.Model() as model:
        theta = pm.HalfNormal("theta")

        def drift_and_noise(x, theta):
            return -theta * x, 0.5

        start = pm.Normal.dist(0.0, 1.0)
        pm.EulerMaruyama(
            "x",
            dt=0.1,
            sde_fn=drift_and_noise,
            sde_pars=[theta],
            init_dist=start,
            observed=REAL,
        )
    return model


def loop_of_draws() -> pm.Model:
    """The density of the results of a loop, whose steps draw around the previous draw."""

    def walk(mu, size):
        def step(x, mu):
            following = pm.Normal.dist(mu * x, 1.0)
            return following, pm.pytensorf.collect_default_updates([following])

        xs, _ = pytensor.scan(step, outputs_info=[pt.zeros(())], non_sequences=[mu], n_steps=20)
        return xs

    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.CustomDist("y", mu, dist=walk, observed=REAL)
    return model


def moving_average() -> pm.Model:
    """Errors of a moving average in a deterministic loop."""

    def error(y, previous, level, theta):
        return y - level - theta * previous

    with pm.Model() as model:
        level, theta = pm.Normal("level"), pm.Uniform("theta", -1.0, 1.0)
        errors = pytensor.scan(
            error,
            sequences=[pt.as_tensor(REAL)],
            outputs_info=[pt.zeros(())],
            non_sequences=[level, theta],
            return_updates=False,
        )
        pm.Potential("errors", pm.logp(pm.Normal.dist(0.0, 1.0), errors).sum())
    return model


def hidden_markov() -> pm.Model:
    """The forward algorithm in logarithms, with a transition matrix of draws."""

    def forward(likelihood, alpha, log_transition):
        return pt.logsumexp(alpha[:, None] + log_transition, axis=0) + likelihood

    with pm.Model() as model:
        transition = pm.Dirichlet("transition", np.full((2, 2), 2.0))
        mu = pm.Normal("mu", [-1.0, 1.0], 1.0, shape=2)
        likelihoods = pm.logp(pm.Normal.dist(mu, 1.0), REAL[:, None])
        alphas = pytensor.scan(
            forward,
            sequences=[likelihoods[1:]],
            outputs_info=[likelihoods[0] - np.log(2.0)],
            non_sequences=[pt.log(transition)],
            return_updates=False,
        )
        pm.Potential("likelihood", pt.logsumexp(alphas[-1]))
    return model


def cooling() -> pm.Model:
    """Newton's law of cooling, by the integrator of SciPy."""
    times = np.linspace(0.5, 5.0, 10)

    def law(y, t, p):
        return p[0] * (p[1] - y[0])

    cooling = pm.ode.DifferentialEquation(func=law, times=times, n_states=1, n_theta=2, t0=0.0)
    with pm.Model() as model:
        rate = pm.HalfNormal("rate", 1.0)
        surrounding = pm.Normal("surrounding", 20.0, 5.0)
        path = cooling(y0=[80.0], theta=[rate, surrounding])
        observed = 20.0 + 60.0 * np.exp(-0.6 * times)
        pm.Normal("y", path[:, 0], 1.0, observed=observed)
    return model


MODELS = (
    ar1,
    ar2_latent,
    random_walks,
    garch,
    stochastic_volatility,
    euler_maruyama,
    loop_of_draws,
    moving_average,
    hidden_markov,
    cooling,
)
