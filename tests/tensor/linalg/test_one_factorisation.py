"""What is computed from one matrix shares its factors, where that is faster."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.decomposition.lu import LUFactor
from phintys.tensor.linalg.inverse import MatrixInverse
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.linalg.summary import Det, SLogDet
from phintys.tensor.rules import reuse
from phintys.tensor.rules.matrices import core_op


def factorisations(f):
    """How many nodes of a compiled function factor a matrix by elimination."""
    found = [core_op(node.outputs[0]) for node in f.maker.fgraph.toposort() if node.outputs]
    return sum(isinstance(op, (LUFactor, MatrixInverse, Solve, Det, SLogDet)) for op in found)


def value(*shape):
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize("shape", [(5, 5), (2, 30, 30)], ids=str)
def test_everything_is_computed_from_one_factorisation(shape):
    a = pt.tensor("a", dtype="float64", shape=shape)
    b = pt.tensor("b", dtype="float64", shape=(*shape[:-1], 2))
    sign, logarithm = pt.linalg.slogdet(a)
    solution = pt.linalg.solve(a, b)
    other = pt.linalg.solve(a.mT, b)
    cost = logarithm.sum() + (solution**2).sum() + other.sum()
    outputs = [sign, logarithm, pt.linalg.det(a), pt.linalg.inv(a), solution, other]
    f = phintys.function([a, b], [*outputs, *phintys.grad(cost, [a, b])])
    assert factorisations(f) == 1
    x, y = value(*shape), value(*shape[:-1], 2)
    found = f(x, y)
    inverse = np.linalg.inv(x)
    expected = [*np.linalg.slogdet(x), np.linalg.det(x), inverse, inverse @ y, inverse.mT @ y]
    for got, want in zip(found, expected):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    apart = phintys.function([a, b], phintys.grad(cost, [a, b]), mode="FAST_COMPILE")
    for got, want in zip(found[len(outputs) :], apart(x, y)):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "make",
    [
        lambda a: pt.linalg.slogdet(a),
        lambda a: [pt.linalg.slogdet(a)[1], phintys.grad(pt.linalg.slogdet(a)[1].sum(), a)],
        lambda a: [phintys.grad(pt.linalg.det(a).sum(), a)],
    ],
)
def test_a_logarithm_and_its_gradient(make):
    a = pt.dmatrix("a")
    f = phintys.function([a], make(a))
    assert factorisations(f) == 1
    for got, want in zip(
        f(value(4, 4)), phintys.function([a], make(a), mode="FAST_COMPILE")(value(4, 4))
    ):
        np.testing.assert_allclose(got, want, rtol=1e-9)


def test_singular_matrices_have_the_values_that_they_have_apart():
    a = pt.dmatrix("a")
    sign, logarithm = pt.linalg.slogdet(a)
    outputs = [sign, logarithm, pt.linalg.det(a), pt.linalg.solve(a, a)]
    f = phintys.function([a], outputs)
    assert factorisations(f) == 1
    ones = np.ones((3, 3))
    for x, expected in ((ones, (0, -np.inf, 0, ones * np.nan)), (ones * np.nan, [np.nan] * 4)):
        for got, want in zip(f(x), expected):
            np.testing.assert_array_equal(got, np.broadcast_to(want, got.shape))
    assert [v.shape for v in f(np.ones((0, 0)))] == [(), (), (), (0, 0)]


def test_positive_definite_systems_share_a_factorisation():
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    f = phintys.function([a, b], [pt.linalg.solve(a, k * b, assume_a="pos") for k in (1, 2, 3)])
    ops = [core_op(node.outputs[0]) for node in f.maker.fgraph.toposort()]
    assert sum(isinstance(op, Cholesky) for op in ops) == 1
    assert not any(isinstance(op, Solve) for op in ops)
    x, y = value(4, 4), value(4, 2)
    x = x @ x.T + np.eye(4)
    for k, found in enumerate(f(x, y), 1):
        np.testing.assert_allclose(found, np.linalg.solve(x, k * y), rtol=1e-9)


def test_a_right_side_is_not_factored():
    """The inverse raises an exception, which it does not if it is computed from factors."""
    a, b = pt.dmatrices("a", "b")
    f = phintys.function([a, b], [pt.linalg.solve(a, b), pt.linalg.inv(b)])
    assert not any(isinstance(node.op, LUFactor) for node in f.maker.fgraph.toposort())
    with pytest.raises(np.linalg.LinAlgError):
        f(np.eye(2), np.ones((2, 2)))


def test_the_users_of_a_matrix_are_not_searched_again_and_again(monkeypatch):
    calls = []
    needs_factors = reuse._needs_factors
    monkeypatch.setattr(reuse, "_needs_factors", lambda n: calls.append(n) or needs_factors(n))
    a, k = pt.dmatrix("a"), 60
    f = phintys.function([a], [pt.linalg.solve(a, a + float(i)) for i in range(k)])
    assert factorisations(f) == 1 and k < len(calls) < 20 * k


def test_batches_of_small_matrices_are_eliminated_again():
    a = pt.dtensor3("a")
    f = phintys.function([a], [pt.linalg.det(a), pt.linalg.solve(a, a)])
    assert factorisations(f) == 2


@pytest.mark.parametrize("n", [1, 3, 5, 7, 24, 25])
@pytest.mark.parametrize("m", [1, 4, 6, 9, 30])
def test_transposed_systems_with_factors(n, m):
    """Right sides are solved in lanes if there are some of them."""
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    solution = pt.linalg.lu_solve(pt.linalg.lu_factor(a), b, trans=True)
    x, y = value(n, n), value(n, m)
    found = phintys.function([a, b], solution)(x, y)
    np.testing.assert_allclose(x.T @ found, y, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("assume_a", ["gen", "pos"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_solutions_have_the_precision_of_the_right_sides(dtype, assume_a):
    """Factors of float32 serve solutions of float32 only."""
    a, b = pt.matrix("a", dtype=dtype), pt.dmatrix("b")
    systems = [pt.linalg.solve(a, c, assume_a=assume_a) for c in (b, 2 * b)]
    f = phintys.function([a, b], [*systems, pt.linalg.det(a)])
    x, y = np.array([[3, 1, 2], [1, 5, 0], [2, 0, 7]], dtype), value(3, 2)
    expected = np.linalg.solve(x.astype("float64"), y)
    for got, want in zip(f(x, y), (expected, 2 * expected)):
        assert got.dtype == "float64"
        np.testing.assert_allclose(got, want, rtol=1e-13)
