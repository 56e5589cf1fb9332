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

# PyMC warns of what is intended here: imputed values, lengths that are frozen, draws without
# potentials
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

RECORDS = read()
#: models with other draws, and why
OTHER_DRAWS = {
    "ordered_logistic": "PyTensor bisects running sums that fall: of cut points not in order"
}
#: Draws are those of NumPy's generator: equal in all bits.  Not so those of models that compute
#: parameters by functions that are rounded in another way, such as exp and powers,
FUNCTIONS = """
    eight_schools challenger golf_putting dugongs hare_and_lynx ordered_probit horseshoe truncated
    monotone folded stochastic_volatility continuous_with_bounds hsgp_periodic
""".split()
#: or by sums, products of matrices and factors, whose terms are added in another order.
SUMS = """
    linear robust_dot quantile_regression spline matrix_factorisation new_data minibatch radon
    softmax_regression random_walks normal_with_lkj correlations normal_by_covariance
    kronecker_normal zero_sum gp_marginal gp_latent gp_sums gp_kronecker
""".split()
#: PyTensor computes functions of Python floats alone in float32, such as sqrt(2.0) in the
#: distribution function of the normal: see docs/differences.md.
SINGLE = ["hsgp", "ordered_probit", "golf_putting", "stochastic_volatility", "beetles", "maximum"]
TOLERANCES = {**dict.fromkeys([*FUNCTIONS, *SUMS], 1e-12), **dict.fromkeys(SINGLE, 1e-7)}


def cases(reasons: dict[str, str]) -> list:
    """The names of all models; those with a reason must fail."""
    failing = {k: pytest.mark.xfail(strict=True, reason=v) for k, v in reasons.items()}
    return [pytest.param(name, marks=failing.get(name, ())) for name in MODELS]


def assert_close(found: dict, wanted: dict, rtol: float, least: float = 0.0) -> None:
    """The same arrays, up to differences relative to the largest element, or to ``least``."""
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
        finite = value[np.isfinite(value)]
        scale = np.abs(finite).max(initial=least) if value.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(found[name], value, rtol, rtol * scale, err_msg=name)


def test_each_model_has_its_reference():
    assert list(RECORDS) == list(MODELS)
    assert len(MODELS) == sum(len(module.MODELS) for module in MODULES)


@pytest.mark.parametrize("name", MODELS)
def test_densities(name):
    model, record = MODELS[name](), RECORDS[name]
    at = [decoded(point) for point in record["points"]]
    single = name in SINGLE
    for found, wanted in zip(points(model), at):
        assert_close(found, wanted, 1e-7 if single else 1e-13, least=1.0)
    tolerance = 1e-6 if single else 1e-8
    assert_close(densities(name, at), decoded(record["densities"]), tolerance)


@pytest.mark.parametrize("name", cases(OTHER_DRAWS))
def test_draws(name):
    model, record = MODELS[name](), RECORDS[name]
    prior, tolerance = decoded(record["prior"]), TOLERANCES.get(name, 0.0)
    assert_close(prior_draws(model), prior, tolerance)
    assert_close(predictive_draws(model, prior), decoded(record["predictive"]), tolerance)
