"""What PyMC prints, draws, pickles, checks and transforms of models."""

from __future__ import annotations

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.op import Op
from scipy.stats import norm

from tests.pymc.known_posterior import QUIET, Y, check, mean_of_normals
from tests.pymc.models_published import coal_mining_disasters, eight_schools, rugby


def test_text_of_a_model():
    assert eight_schools().str_repr().split("\n") == [
        "    mu ~ Normal(0, 5)",
        "   tau ~ HalfCauchy(5)",
        "  unit ~ Normal(0, 1)",
        "school = Deterministic(f(unit, mu, tau))",
        "effect ~ Normal(school, <constant>)",
    ]


def test_picture_of_a_model():
    source = pm.model_to_graphviz(rugby()).source
    for edge in ("spread -> attack", "spread -> defence", "advantage -> home_points"):
        assert edge in source
    assert "team (6)" in source


def test_a_model_in_a_pickle():
    model = coal_mining_disasters()
    again = cloudpickle.loads(cloudpickle.dumps(model))
    point = model.initial_point()
    assert list(again.initial_point()) == list(point)
    np.testing.assert_array_equal(again.compile_logp()(point), model.compile_logp()(point))
    np.testing.assert_array_equal(again.compile_dlogp()(point), model.compile_dlogp()(point))


@pytest.mark.filterwarnings("ignore:`return_inferencedata=False`:FutureWarning")
def test_a_trace_in_a_pickle():
    options = {"draws": 5, "tune": 5, "chains": 1, "return_inferencedata": False, **QUIET}
    with mean_of_normals():
        trace = pm.sample(**options)
    again = cloudpickle.loads(cloudpickle.dumps(trace))
    assert np.unique(again["mu"]).size > 1
    np.testing.assert_array_equal(again["mu"], trace["mu"])


def test_an_op_of_the_user():
    """A likelihood outside of graphs, with its gradient, and without: then slices are sampled."""

    class Likelihood(Op):
        itypes, otypes = [pt.dscalar], [pt.dscalar]

        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.array(-0.5 * ((Y - inputs[0]) ** 2).sum())

    class WithGradient(Likelihood):
        def grad(self, inputs, output_grads):
            return [output_grads[0] * Slope()(inputs[0])]

    class Slope(Likelihood):
        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.array((Y - inputs[0]).sum())

    for op in (WithGradient(), Likelihood()):
        with pm.Model():
            mu = pm.Normal("mu", 0.0, 2.0)
            pm.Potential("y", op(mu))
            trace = pm.sample(800, tune=300, chains=1, **QUIET)
        check(trace.posterior["mu"].to_numpy())


def test_debug_names_what_is_wrong(capsys):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Normal("y", mu, sigma=mu - 1.0, observed=[0.1, 0.2])
    model.debug(verbose=True)
    printed = capsys.readouterr().out
    assert "The parameters evaluate to:\n0: [0.]\n1: [-1.]\n" in printed
    assert printed.strip().endswith("sigma > 0")


def test_profile():
    model = eight_schools()
    stats = model.profile(model.logp(), n=20)
    assert stats.fct_callcount == 20
    assert stats.fct_call_time > 0.0


def test_interventions_and_observations():
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 1.0)
        y = pm.Normal("y", 2.0 * x, 1e-3)
        pm.Normal("z", y, 1.0)
    fixed = pm.do(model, {"x": 3.0})
    assert pm.draw(fixed["y"], random_seed=1) == pytest.approx(6.0, abs=0.01)
    assert [rv.name for rv in fixed.free_RVs] == ["y", "z"]
    observed = pm.observe(model, {"z": 0.5})
    assert [rv.name for rv in observed.observed_RVs] == ["z"]
    assert [rv.name for rv in observed.free_RVs] == ["x", "y"]
    total = observed.compile_logp()({"x": np.array(0.1), "y": np.array(0.2)})
    full = model.compile_logp()({"x": np.array(0.1), "y": np.array(0.2), "z": np.array(0.5)})
    np.testing.assert_allclose(total, full, rtol=1e-14)


def test_frozen_lengths():
    with pm.Model(coords={"row": range(4)}) as model:
        x = pm.Data("x", np.arange(4.0), dims="row")
        pm.Normal("y", x, 1.0, dims="row")
    frozen = pm.model.transform.optimization.freeze_dims_and_data(model)
    assert model["y"].type.shape == (None,)
    assert frozen["y"].type.shape == (4,)
    point = {"y": np.ones(4)}
    np.testing.assert_array_equal(frozen.compile_logp()(point), model.compile_logp()(point))


def test_a_copy_of_a_compiled_function_has_its_own_data():
    with pm.Model() as model:
        x = pm.Data("x", np.zeros(3))
        mu = pm.Normal("mu")
        pm.Normal("y", mu + x, 1.0, observed=np.zeros(3))
    logp = model.compile_logp()
    before = logp({"mu": 0.0})
    pm.set_data({"x": np.ones(3)}, model=model)
    np.testing.assert_allclose(logp({"mu": 0.0}), before - 1.5, rtol=1e-12)


def test_draws_repeat_with_their_seed():
    with pm.Model():
        mu = pm.Normal("mu")
        sigma = pm.HalfNormal("sigma")
        y = pm.Normal("y", mu, sigma, shape=3)
    first, second, other = (pm.draw([mu, sigma, y], draws=2, random_seed=s) for s in (1, 1, 2))
    for a, b, c in zip(first, second, other):
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)


def test_densities_of_a_draw():
    draw, value, p = pm.Normal.dist(0.5, 1.0), np.linspace(-1.0, 1.0, 3), np.array([0.1, 0.5])
    found = (f(draw, x).eval() for f, x in ((pm.logp, value), (pm.logcdf, value), (pm.icdf, p)))
    wanted = norm.logpdf(value, 0.5), norm.logcdf(value, 0.5), norm.ppf(p, 0.5)
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-7)
