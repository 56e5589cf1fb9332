"""What is compared of a model: its densities with their derivatives, and draws.

The numbers of all models on PyTensor are in ``reference.json.gz``, floats exactly.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pymc as pm
from arviz_base import from_dict

from tests.pymc import (
    models_distributions,
    models_matrices,
    models_mixtures,
    models_published,
    models_regression,
    models_series,
)

Arrays = dict[str, np.ndarray]

REFERENCE = Path(__file__).with_name("reference.json.gz")
MODULES = (
    models_published,
    models_regression,
    models_mixtures,
    models_series,
    models_matrices,
    models_distributions,
)
MODELS: dict[str, Callable[[], pm.Model]] = {f.__name__: f for m in MODULES for f in m.MODELS}
#: The points where densities are compared: the initial one, and two beside it
DISTANCES = (0.0, 0.1, -0.07)
#: Of models with so many values the second derivatives are compared
SMALL = 5
#: Models with ops of PyMC that have no second derivatives
FIRST_ONLY = ("circular", "cooling")
DRAWS = 3


def points(model: pm.Model) -> list[Arrays]:
    """The initial point, and points beside it: values that are no floats stay."""
    initial = {name: np.asarray(value) for name, value in model.initial_point(0).items()}
    return [{k: _moved(v, distance) for k, v in initial.items()} for distance in DISTANCES]


def _moved(value: np.ndarray, distance: float) -> np.ndarray:
    if value.dtype.kind != "f":
        return value
    return value + distance * np.cos(np.arange(value.size)).reshape(value.shape)


def densities(name: str, at: list[Arrays]) -> Arrays:
    """The log-density, its gradient, and of small models its second derivatives, at points."""
    model = MODELS[name]()
    functions = {"logp": model.compile_logp()}
    if model.continuous_value_vars:
        functions["dlogp"] = model.compile_dlogp()
    if name not in FIRST_ONLY and sum(value.size for value in at[0].values()) <= SMALL:
        functions["d2logp"] = model.compile_d2logp(negate_output=False)
    return {name: np.stack([f(point) for point in at]) for name, f in functions.items()}


def prior_draws(model: pm.Model) -> Arrays:
    """Draws of all variables, as ``prior.mu`` or ``prior_predictive.y``; none if PyMC refuses."""
    try:
        found = pm.sample_prior_predictive(DRAWS, model=model, random_seed=7)
    except NotImplementedError:
        return {}
    groups = ("prior", "prior_predictive")
    return {
        f"{group}.{name}": values.to_numpy()
        for group in groups
        if group in found.children
        for name, values in found[group].data_vars.items()
    }


def predictive_draws(model: pm.Model, prior: Mapping[str, np.ndarray]) -> Arrays:
    """Draws of the observed variables, given prior draws of the others."""
    free = [rv.name for rv in model.free_RVs]
    if not model.observed_RVs or any(f"prior.{name}" not in prior for name in free):
        return {}
    posterior = from_dict({"posterior": {name: prior[f"prior.{name}"] for name in free}})
    found = pm.sample_posterior_predictive(posterior, model, random_seed=8, progressbar=False)
    return {name: v.to_numpy() for name, v in found["posterior_predictive"].data_vars.items()}


def record(name: str) -> dict[str, object]:
    """All that is compared of a model, in the form of the file."""
    model = MODELS[name]()
    at, prior = points(model), prior_draws(model)
    return {
        "points": [_encoded(point) for point in at],
        "densities": _encoded(densities(name, at)),
        "prior": _encoded(prior),
        "predictive": _encoded(predictive_draws(model, prior)),
    }


def _encoded(arrays: Mapping[str, np.ndarray]) -> dict[str, list[object]]:
    return {k: [str(v.dtype), v.shape, v.ravel().tolist()] for k, v in sorted(arrays.items())}


def decoded(arrays: Mapping[str, list]) -> Arrays:
    """Arrays from their form in the file."""
    return {k: np.array(v, dtype).reshape(shape) for k, (dtype, shape, v) in arrays.items()}


def write(records: Mapping[str, object]) -> None:
    """Write the reference."""
    text = json.dumps(records, separators=(",", ":"))
    REFERENCE.write_bytes(gzip.compress(text.encode(), mtime=0))


def read() -> dict[str, dict]:
    """The reference: the record of each model, by its name."""
    return json.loads(gzip.decompress(REFERENCE.read_bytes()))
