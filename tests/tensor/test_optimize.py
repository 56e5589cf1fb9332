"""Minima and roots of expressions: values, derivatives, arguments."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.optimize

import phintys
import phintys.tensor as pt
from phintys.errors import DisconnectedInputError
from phintys.gradient.verify import verify_grad
from phintys.tensor.optimize import (
    LRUCache1,
    MinimizeOp,
    ScipyVectorWrapperOp,
    minimize,
    minimize_scalar,
    pack_inputs_of_objective,
    root,
    root_scalar,
)

A = np.array([1.0, 2.0])
X, W, B = pt.dvector("x"), pt.dvector("w"), pt.dscalar("b")
#: its minimum is at w / (1 + b)
OBJECTIVE = ((X - W) ** 2).sum() + B * (X**2).sum()
GIVEN = {X: [0.1, 0.2], W: A, B: 0.5}


@pytest.mark.parametrize(
    ("method", "options", "tolerance"),
    [
        ("BFGS", {}, 1e-6),
        ("BFGS", {"jac": False}, 1e-5),
        ("Newton-CG", {"hess": True}, 1e-6),
        ("trust-exact", {"hess": True, "use_vectorized_jac": True}, 1e-6),
        ("Nelder-Mead", {"jac": False}, 1e-3),
        ("L-BFGS-B", {"optimizer_kwargs": {"tol": 1e-12, "options": {"maxiter": 99}}}, 1e-6),
    ],
)
def test_minima(method, options, tolerance):
    solution, success = minimize(OBJECTIVE, X, method, **options)
    np.testing.assert_allclose(solution.eval(GIVEN), A / 1.5, atol=tolerance)
    assert success.eval(GIVEN) and solution.type == X.type


def test_the_node_has_the_parameters_as_inputs():
    """Of what does not depend on the unknown, only the value."""
    solution, success = minimize(((X - W * 2) ** 2).sum() + B * X.sum(), X)
    node = solution.owner
    assert isinstance(node.op, MinimizeOp) and isinstance(node.op, ScipyVectorWrapperOp)
    assert node.inputs[0] is X and B in node.inputs and W not in node.inputs
    assert len(node.inputs) == 3 and success.owner is node and success.type.dtype == "bool"


def test_a_solver_that_stops_early_has_no_success():
    solution, success = minimize(OBJECTIVE, X, optimizer_kwargs={"options": {"maxiter": 0}})
    assert solution.eval(GIVEN).tolist() == [0.1, 0.2] and not success.eval(GIVEN)


def test_derivatives_of_a_minimum(mode):
    """Also second ones, and forward mode."""
    solution, _ = minimize(OBJECTIVE, X)
    gradients = phintys.grad(solution.sum(), [W, B])
    second = phintys.grad(gradients[1], B)
    tangent = phintys.pushforward(solution, W, pt.ones_like(W))
    f = phintys.function([X, W, B], [*gradients, second, tangent], mode=mode)
    expected = [np.full(2, 1 / 1.5), -3 / 1.5**2, 6 / 1.5**3, np.full(2, 1 / 1.5)]
    for found, value in zip(f(*GIVEN.values()), expected):
        np.testing.assert_allclose(found, value, rtol=1e-6)


def test_the_first_value_has_the_gradient_zero():
    solution, _ = minimize(OBJECTIVE, X)
    gradient = phintys.grad(solution.sum(), X)
    assert phintys.function([X], gradient)([0.0, 1.0]).tolist() == [0.0, 0.0]


def test_a_constant_of_the_objective_does_not_move_the_minimum():
    solution, _ = minimize(((X - W) ** 2).sum() + B, X)
    with pytest.raises(DisconnectedInputError):
        phintys.grad(solution.sum(), B)
    gradient = phintys.grad(solution.sum(), W)
    np.testing.assert_allclose(gradient.eval(GIVEN), np.ones(2), rtol=1e-6)


def test_gradients_against_differences():
    def solved(w, b):
        x = pt.zeros_like(w)
        return root(x**3 + pt.exp(b) * x - w, x, optimizer_kwargs={"tol": 1e-13})[0]

    verify_grad(solved, [A, np.array(0.3)], rng=np.random.default_rng(1))


def test_several_unknowns():
    y = pt.dmatrix("y")
    (first, second), success = minimize(((X - B) ** 2).sum() + ((y + B) ** 2).sum(), [X, y])
    given = {X: [0.0, 0.0], y: np.zeros((2, 1)), B: 3.0}
    np.testing.assert_allclose(first.eval(given), [3.0, 3.0], rtol=1e-5)
    np.testing.assert_allclose(second.eval(given), [[-3.0], [-3.0]], rtol=1e-5)
    assert success.eval(given)
    packed, shapes, objective = pack_inputs_of_objective(X.sum() + y.sum(), [X, y])
    assert packed.ndim == 1 and len(shapes) == 2 and objective.ndim == 0
    assert pack_inputs_of_objective(OBJECTIVE, X) == (X, None, OBJECTIVE)


@pytest.mark.parametrize("value", [np.array(0.0), np.zeros((2, 2))])
def test_the_unknown_may_have_any_rank(value):
    x = pt.tensor("x", dtype="float64", shape=(None,) * value.ndim)
    solution, _ = minimize(((x - B) ** 2).sum(), x)
    found = solution.eval({x: value, B: 3.0})
    np.testing.assert_allclose(found, np.full(value.shape, 3.0), rtol=1e-6)


def test_one_problem_for_each_item_of_a_batch():
    solution, success = minimize(OBJECTIVE, X)
    ws = pt.dmatrix("ws")
    found = phintys.vectorize_graph([solution, success], {W: ws})
    given = {X: [0.0, 0.0], ws: [[1.0, 2.0], [3.0, 4.0]], B: 1.0}
    np.testing.assert_allclose(found[0].eval(given), [[0.5, 1.0], [1.5, 2.0]], rtol=1e-6)
    assert found[1].eval(given).tolist() == [True, True]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "golden"},
        {"bracket": (0.0, 1.0)},
        {"method": "bounded", "bounds": (B - 1, B + 2)},
    ],
)
def test_minima_of_functions_of_a_number(options):
    z = pt.dscalar("z")
    solution, success = minimize_scalar(pt.cosh(z - B) + z * 0, z, **options)
    assert solution.eval({z: 0.0, B: 3.0}) == pytest.approx(3.0, abs=1e-4)
    assert success.eval({z: 0.0, B: 3.0})
    assert phintys.grad(solution, B).eval({z: 0.0, B: 3.0}) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "options",
    [{}, {"jac": False}, {"method": "lm"}, {"use_vectorized_jac": True}],
)
def test_roots(options):
    solution, success = root(pt.stack([X[0] ** 2 - B, X[1] - X[0]]), X, **options)
    given = {X: [1.0, 1.0], B: 4.0}
    np.testing.assert_allclose(solution.eval(given), [2.0, 2.0], rtol=1e-6)
    np.testing.assert_allclose(phintys.grad(solution[1], B).eval(given), 0.25, rtol=1e-6)
    assert success.eval(given)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "newton", "jac": True},
        {"method": "halley", "jac": True, "hess": True},
        {"method": "brentq", "bracket": (0.0, B)},
        {"optimizer_kwargs": {"x1": 3.0}},
    ],
)
def test_roots_of_functions_of_a_number(options):
    z = pt.dscalar("z")
    solution, success = root_scalar(z**2 - B, z, **options)
    assert solution.eval({z: 1.0, B: 4.0}) == pytest.approx(2.0)
    assert success.eval({z: 1.0, B: 4.0})
    assert phintys.grad(solution, B).eval({z: 1.0, B: 4.0}) == pytest.approx(0.25)


def test_errors():
    z = pt.dscalar("z")
    with pytest.raises(ValueError, match="must be a scalar"):
        minimize(X, X)
    with pytest.raises(ValueError, match="not an input"):
        minimize(B**2, z)
    with pytest.raises(ValueError, match="1 dimensions"):
        root(X.sum() - B, X)
    with pytest.raises(ValueError, match="Unknown solver"):
        minimize(OBJECTIVE, X, "no such method")[0].eval(GIVEN)
    with pytest.raises(ValueError, match="Bracket needed"):
        root_scalar(z**2 - B, z, "brentq")[0].eval({z: 1.0, B: 4.0})


Z = pt.dscalar("z")


@pytest.mark.parametrize(
    ("solve", "error", "message"),
    [
        (lambda: minimize_scalar((Z - X) ** 2, Z), ValueError, "The objective .* be a scalar"),
        (lambda: minimize_scalar((X**2).sum(), X), ValueError, "The unknown .* be a scalar"),
        (lambda: root_scalar(Z**2 - X, Z), ValueError, "The equation .* be a scalar"),
        (lambda: root_scalar(X**2 - 1, X), ValueError, "The unknown .* be a scalar"),
        (lambda: minimize(Z**2, 1.0), TypeError, "unknown is a tensor variable, not 1.0"),
        (lambda: minimize(Z**2, [Z, "z"]), TypeError, "unknown is a tensor variable, not 'z'"),
        (lambda: minimize(3.0, Z), ValueError, "z is not an input of the graph"),
        (lambda: minimize(lambda z: z**2, Z), TypeError, "is not an array of numbers"),
        (lambda: root(3.0, Z), ValueError, "z is not an input of the graph"),
        (lambda: root_scalar(Z**2 - 2, Z, optimizer_kwargs=3), TypeError, "a dict of options"),
    ],
)
def test_arguments_of_a_wrong_kind_are_named(solve, error, message):
    with pytest.raises(error, match=message):
        solve()


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
def test_unknowns_are_floats(dtype):
    """The solution would be rounded to an integer."""
    k, n = pt.tensor("k", dtype=dtype, shape=(None,)), pt.scalar("n", dtype=dtype)
    for solve in (
        lambda: minimize(((k - 2.5) ** 2).sum(), k),
        lambda: minimize(((k - X) ** 2).sum(), [X, k]),
        lambda: root(k - 2.5, k),
        lambda: minimize_scalar((n - 2.5) ** 2, n),
        lambda: root_scalar(n - 2.5, n),
    ):
        with pytest.raises(TypeError, match=f"The unknown [kn] has dtype {dtype}, .* floats"):
            solve()


def test_an_option_without_a_hash_is_named():
    options = {"options": {"disp": False, "axes": [0, {1, 2}]}}
    with pytest.raises(TypeError, match=r"optimizer_kwargs\['options'\]\['axes'\]\[1\] is a set"):
        minimize(OBJECTIVE, X, optimizer_kwargs=options)


def test_ops_are_equal_if_their_problems_are():
    one, same = (minimize(OBJECTIVE, X, optimizer_kwargs={"bounds": [(0, 1)]})[0] for _ in "ab")
    other = minimize(OBJECTIVE, X, optimizer_kwargs={"bounds": [(0, 2)]})[0]
    assert one.owner.op == same.owner.op and hash(one.owner.op) == hash(same.owner.op)
    assert one.owner.op != other.owner.op
    assert pickle.loads(pickle.dumps(one.owner.op)) == one.owner.op


def test_a_function_that_remembers_its_last_results(capsys):
    calls = []

    def fn(x):
        calls.append(x)
        return x.sum() ** 2, 2 * x.sum() * np.ones_like(x), 2 * np.ones((x.size, x.size))

    cache = LRUCache1(fn)
    found = scipy.optimize.minimize(
        cache.value, np.ones(2), jac=cache.grad, hess=cache.hess, method="Newton-CG"
    )
    assert abs(found.x.sum()) < 1e-6 and cache.cache_hits > 0
    assert len(calls) == cache.cache_misses
    value, gradient = cache.value_and_grad(np.ones(2))
    assert value == 4 and gradient.tolist() == [4.0, 4.0]
    cache.report()
    assert f"{cache.cache_misses} misses" in capsys.readouterr().out
    cache.clear_cache()
    assert cache.cache_hits == cache.cache_misses == 0
