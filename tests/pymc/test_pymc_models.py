"""Models have the densities, derivatives and draws that they have on PyTensor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pymc.records import (
    MODELS,
    MODULES,
    decoded,
    densities,
    points,
    predictive_draws,
    prior_draws,
    read,
)

RECORDS = read()
#: models without a density yet, and why
WITHOUT_DENSITY = {
    "minimum": "the minimum of draws",
    "product": "the product of a matrix and draws",
}
#: models that cannot be built yet, and why
NOT_BUILT = {"car": "pytensor.sparse"}


def cases(*reasons: dict[str, str]) -> list:
    """The names of all models; those with a reason must fail."""
    known = {name: reason for table in reasons for name, reason in table.items()}
    failing = {k: pytest.mark.xfail(strict=True, reason=v) for k, v in known.items()}
    return [pytest.param(name, marks=failing.get(name, ())) for name in MODELS]


def assert_close(found: dict, wanted: dict, rtol: float) -> None:
    """The same arrays, up to a difference relative to the largest element of each."""
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
        finite = value[np.isfinite(value)]
        scale = np.abs(finite).max(initial=0.0) if value.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(found[name], value, rtol, rtol * scale, err_msg=name)


def test_each_model_has_its_reference():
    assert list(RECORDS) == list(MODELS)
    assert len(MODELS) == sum(len(module.MODELS) for module in MODULES)


@pytest.mark.parametrize("name", cases(WITHOUT_DENSITY, NOT_BUILT))
def test_densities(name):
    model, record = MODELS[name](), RECORDS[name]
    at = [decoded(point) for point in record["points"]]
    for found, wanted in zip(points(model), at):
        assert_close(found, wanted, 1e-13)
    assert_close(densities(name, at), decoded(record["densities"]), 1e-8)


@pytest.mark.parametrize("name", cases(NOT_BUILT))
def test_draws(name):
    model, record = MODELS[name](), RECORDS[name]
    prior = decoded(record["prior"])
    assert_close(prior_draws(model), prior, 0.0)
    assert_close(predictive_draws(model, prior), decoded(record["predictive"]), 0.0)
