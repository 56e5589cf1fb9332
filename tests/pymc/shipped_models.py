"""The model that PyMC's tests take from a module that is not shipped with them."""

from __future__ import annotations

import pymc as pm


def simple_normal(bounded_prior: bool = False) -> tuple[dict, pm.Model, None]:
    """The initial point, a model of one normal observation, and nothing that is known of it."""
    with pm.Model() as model:
        mu = pm.Uniform("mu_i", 9.0, 12.0) if bounded_prior else pm.Flat("mu_i")
        pm.Normal("X_obs", mu=mu, sigma=1.0, observed=10.0)
    return model.initial_point(), model, None
