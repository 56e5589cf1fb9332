"""Products with Jacobians, Jacobians, Hessians, pieces of graphs."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import evaluate

import phintys.tensor as pt
from phintys import (
    Lop,
    Rop,
    grad,
    hessian,
    hessian_vector_product,
    jacobian,
    pullback,
    pushforward,
    subgraph_grad,
)
from phintys.errors import DisconnectedInputError
from phintys.gradient import undefined_grad

x, a, b = pt.dscalars("x", "a", "b")
v, u, m = pt.dvector("v"), pt.dvector("u"), pt.dmatrix("m")
RNG = np.random.default_rng(0)
V, M = RNG.normal(size=4), RNG.normal(size=(2, 3))


# ----------------------------------------------------------- pullback and pushforward


def test_form_of_results():
    y = v**2
    assert [type(pullback(y, w, v)) for w in ([v], (v,))] == [list, tuple]
    assert type(pullback(y, v, v)) is type(v)
    assert [type(pushforward(f, v, v)) for f in ([y], (y,))] == [list, tuple]
    assert type(pushforward(y, [v], [v])) is type(v)


def test_arguments_are_checked():
    y = v**2
    with pytest.raises(ValueError, match="1 outputs need as many cotangents, not 2"):
        pullback(y, v, [v, v])
    with pytest.raises(ValueError, match="1 variables need as many tangents, not 2"):
        pushforward(y, v, [v, v])
    for product, what in ((pullback, "cotangent"), (pushforward, "tangent")):
        with pytest.raises(ValueError, match=rf"The {what} of .* must have its rank; x is of type"):
            product(y, v, x)
        with pytest.raises(TypeError, match=rf"The {what} of .* float dtype"):
            product(y, v, pt.lvector())
        with pytest.raises(TypeError, match="variable or a list of variables, not 3"):
            product(3, v, v)
    with pytest.raises(DisconnectedInputError, match="does not depend on x"):
        pullback(y, x, v)
    with pytest.raises(DisconnectedInputError, match="does not depend on x"):
        pushforward(y, x, a)


def test_values_are_accepted():
    np.testing.assert_array_equal(pullback(v**2, v, np.ones(2)).eval({v: [1.0, 2.0]}), [2, 4])
    np.testing.assert_array_equal(pushforward(v**2, v, np.ones(2)).eval({v: [1.0, 2.0]}), [2, 4])


def test_outputs_may_depend_on_each_other():
    y = x**2
    z = 3 * y
    p = pullback([y, z], x, [a, b])
    assert evaluate(p, [x, a, b], [2.0, 1.0, 10.0]) == (1 + 30) * 4
    assert evaluate(pullback([y, y], x, [a, b]), [x, a, b], [2.0, 1.0, 10.0]) == 44.0
    assert evaluate(pullback([x, y], x, [a, b]), [x, a, b], [2.0, 1.0, 10.0]) == 41.0
    assert evaluate(pushforward([y, z], x, a), [x, a], [2.0, 1.0]) == [4.0, 12.0]


def test_tangents_of_intermediate_variables_replace():
    y = x**2
    for by_op in (True, False):
        p = pushforward(3 * y + x, [x, y], [a, b], use_op_pushforward=by_op)
        assert evaluate(p, [x, a, b], [2.0, 1.0, 10.0]) == 31.0
        assert evaluate(pushforward(x, x, a, use_op_pushforward=by_op), [a], [5.0]) == 5.0


def test_options_of_grad():
    y = v**2
    z = (y * v).sum()
    p = pullback(z, v, pt.constant(1.0), consider_constant=[y])
    np.testing.assert_array_equal(p.eval({v: [1.0, 2.0]}), [1.0, 4.0])
    assert pullback(z, x, 1.0, None, "ignore", "none") is None


def test_older_names_of_products():
    for older, newer in ((Lop, "pullback"), (Rop, "pushforward")):
        with pytest.warns(FutureWarning, match=f"{older.__name__} is deprecated, use {newer}"):
            product = older(v**2, v, v)
        np.testing.assert_array_equal(product.eval({v: [1.0, 2.0]}), [2.0, 8.0])
    with pytest.warns(FutureWarning):
        assert Lop(v.sum(), x, pt.constant(1.0), None, "ignore", "none") is None
    with pytest.warns(FutureWarning):
        assert Rop(v.sum(), x, a, "ignore", "none") is None


def test_forward_over_reverse():
    cost = (pt.exp(v) * v[::-1]).sum()
    both = [pushforward(grad(cost, v), v, u), pullback(grad(cost, v), v, u)]
    one, other = evaluate(both, [v, u], [V, V**2])
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_integer_inputs_and_outputs():
    n = pt.lvector("n")
    p = pushforward(n * x, n, v)
    np.testing.assert_array_equal(evaluate(p, [n, x, v], [[1, 2], 3.0, [1.0, 0.5]]), [3.0, 1.5])
    for by_op in (True, False):
        p = pushforward(v.astype("int64"), v, u, use_op_pushforward=by_op)
        assert p.type.dtype == "float64"
        np.testing.assert_array_equal(evaluate(p, [v, u], [V, V]), np.zeros(4))


# -------------------------------------------------------------- Jacobians and Hessians

JACOBIANS = {
    "vector by vector": (pt.exp(v[::-1]), v, V, np.eye(4)[::-1] * np.exp(V)),
    "scalar by vector": (v.sum() ** 2, v, V, np.full(4, 2 * V.sum())),
    "vector by scalar": (v * x**2, x, 3.0, 6 * V),
    "matrix by matrix": (m.T * 2, m, M, 2 * np.eye(6).reshape(2, 3, 2, 3).transpose(1, 0, 2, 3)),
    "matrix by vector": (pt.outer(v, v[:2]), v, V, None),
    "vector by matrix": (m.dot(v[:3]), m, M, np.einsum("ik,j->ikj", np.eye(2), V[:3])),
    "scalar by scalar": (x**2, x, 3.0, 6.0),
    "softmax": (pt.softmax(v, axis=0), v, V, None),
}


@pytest.mark.parametrize("name", JACOBIANS)
@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_jacobian(name, mode):
    y, wrt, at, expected = JACOBIANS[name]
    j = jacobian(y, wrt)
    assert j.type.ndim == y.type.ndim + wrt.type.ndim
    given = {v: V, m: M, x: 3.0, wrt: at}
    found = evaluate(j, given.keys(), given.values(), mode)
    if expected is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    columns = []
    for k in range(np.size(at)):
        unit = np.zeros(np.shape(at))
        unit.flat[k] = 1.0
        p = pushforward(y, wrt, pt.constant(unit))
        columns.append(evaluate(p, given.keys(), given.values(), "FAST_COMPILE"))
    shape = np.shape(columns[0]) + np.shape(at)
    np.testing.assert_allclose(found, np.stack(columns, -1).reshape(shape), rtol=1e-10, atol=1e-14)


def test_jacobian_by_several_and_of_nothing():
    ja, jb = jacobian(v * x, [v, x])
    np.testing.assert_array_equal(evaluate(ja, [v, x], [V, 2.0]), 2 * np.eye(4))
    np.testing.assert_array_equal(evaluate(jb, [v, x], [V, 2.0]), V)
    assert type(jacobian(v * x, (v, x))) is tuple
    assert evaluate(jacobian(v**2, v), [v], [np.zeros(0)]).shape == (0, 0)
    assert evaluate(jacobian(m**2, m), [m], [np.zeros((0, 3))]).shape == (0, 3, 0, 3)


def test_disconnected_jacobian_has_the_full_shape():
    with pytest.raises(DisconnectedInputError):
        jacobian(v**2, x)
    j = jacobian(v**2, x, disconnected_inputs="ignore")
    np.testing.assert_array_equal(evaluate(j, [v, x], [V, 1.0]), np.zeros(4))
    j = jacobian(m**2, v, disconnected_inputs="ignore")
    np.testing.assert_array_equal(evaluate(j, [m, v], [M, V]), np.zeros((2, 3, 4)))
    j = jacobian(v.astype("int64"), v)
    np.testing.assert_array_equal(evaluate(j, [v], [V]), np.zeros((4, 4)))


def test_jacobian_misuse():
    for bad in (3, pt.zvector("z")):
        with pytest.raises(TypeError, match="jacobian"):
            jacobian(bad, v)
    with pytest.raises(TypeError, match="complex variables; z is of"):
        z = pt.zvector("z")
        jacobian(pt.real(z), z)


def test_hessian():
    cost = (v**3).sum() * v[0]
    h = evaluate(hessian(cost, v), [v], [V])
    np.testing.assert_allclose(h, h.T, rtol=1e-12)
    p = evaluate(hessian_vector_product(cost, v, u), [v, u], [V, V**2])
    np.testing.assert_allclose(h @ V**2, p, rtol=1e-12)
    square = v**2
    of_a_constant = hessian((square * v).sum(), v, consider_constant=[square])
    np.testing.assert_array_equal(evaluate(of_a_constant, [v], [V]), np.zeros((4, 4)))
    linear = evaluate(hessian((v * 2).sum(), v), [v], [V])
    np.testing.assert_array_equal(linear, np.zeros((4, 4)))
    assert [type(hessian(cost, form([v]))) for form in (list, tuple)] == [list, tuple]
    with pytest.raises(ValueError, match="hessian needs vectors; m has type"):
        hessian(m.sum(), m)
    with pytest.raises(ValueError, match="scalar cost"):
        hessian(v, v)


def test_hessian_vector_product():
    cost = (v**2).sum() * x**3
    points = [pt.dvector("p"), pt.dscalar("q")]
    found = hessian_vector_product(cost, [v, x], points)
    hv, hx = evaluate(found, [v, x, *points], [V, 2.0, V, 1.0])
    np.testing.assert_allclose(hv, 2 * 8 * V + 2 * V * 12, rtol=1e-12)
    np.testing.assert_allclose(hx, (2 * V * 12) @ V + (V @ V) * 12, rtol=1e-12)
    # the vector is a constant, even where it depends on the variable
    same = hessian_vector_product((v**3).sum(), v, v)
    np.testing.assert_allclose(evaluate(same, [v], [V]), 6 * V * V, rtol=1e-12)
    linear = hessian_vector_product((v * 2).sum(), v, u)
    np.testing.assert_array_equal(evaluate(linear, [v, u], [V, V]), np.zeros(4))
    with pytest.raises(ValueError, match="as many cotangents"):
        hessian_vector_product(cost, [v], [v, v])
    with pytest.raises(DisconnectedInputError):
        hessian_vector_product(cost, u, u)
    quiet = hessian_vector_product(cost, u, u, disconnected_inputs="ignore")
    np.testing.assert_array_equal(evaluate(quiet, [u], [V]), np.zeros(4))


def test_undefined_but_not_asked_for():
    cost = undefined_grad(x) * (v**2).sum()
    j = evaluate(jacobian(cost * v, v), [x, v], [2.0, V])
    np.testing.assert_allclose(j, 2 * (np.eye(4) * (V @ V) + 2 * np.outer(V, V)), rtol=1e-12)


# ---------------------------------------------------------------------- subgraph_grad


def test_pieces_give_the_whole():
    w1, w2, w3 = pt.dscalars("w1", "w2", "w3")
    h1 = pt.tanh(w1 * x)
    h2 = pt.tanh(w2 * h1)
    cost = (w3 * h2 - 1) ** 2 + w2**2
    (g3,), (e2,) = subgraph_grad([w3], [h2], cost=(w3 * h2 - 1) ** 2)
    (g2,), (e1,) = subgraph_grad([w2], [h1], start={h2: e2}, cost=w2**2)
    (g1,), _ = subgraph_grad([w1], [x], start={h1: e1})
    given = [x, w1, w2, w3], [0.5, 0.3, -0.7, 1.1]
    found = evaluate([g1, g2, g3], *given)
    np.testing.assert_allclose(found, evaluate(grad(cost, [w1, w2, w3]), *given), rtol=1e-12)


def test_details_and_misuse():
    y = x**2
    cost = 3 * y
    wrt, end, start_grads, cost_grads = subgraph_grad([x], [y], start={cost: a}, details=True)
    assert cost_grads is None and len(start_grads) == 2
    assert evaluate([*wrt, *end], [x, a], [2.0, 1.0]) == [0.0, 3.0]
    for bad in ({"wrt": x, "end": [y]}, {"wrt": [x], "end": y}):
        with pytest.raises(TypeError, match="must be a list"):
            subgraph_grad(**bad, cost=cost)
    with pytest.raises(ValueError, match="start, cost or both"):
        subgraph_grad([x], [y])
