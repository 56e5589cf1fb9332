"""Powers of matrices and Riccati equations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from tensor_checks import check_derivatives, compiled, evaluate

import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.tensor.linalg import SolveContinuousARE, SolveDiscreteARE

L = pt.linalg
DTYPES = ("float32", "float64", "complex64", "complex128")


def random(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if "complex" in dtype else x, dtype)


def close(found, expected, dtype="float64"):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    rtol = 1e-3 if dtype in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def test_matrix_power():
    whole = np.arange(9).reshape(3, 3) % 4
    x = random((2, 3, 3))
    powers = (-2, -1, 0, 1, 2, 3, 6, 13)
    a, b = pt.dtensor3(), pt.lmatrix()
    found = evaluate([L.matrix_power(a, n) for n in powers], [a], [x])
    exact = evaluate([L.matrix_power(b, n) for n in powers[2:]], [b], [whole])
    for n, y in zip(powers, found, strict=True):
        close(y, np.linalg.matrix_power(x, n))
    for n, y in zip(powers[2:], exact, strict=True):
        np.testing.assert_array_equal(y, np.linalg.matrix_power(whole, n), strict=True)
    for n in (3, -1):
        check_derivatives(lambda x, n=n: L.matrix_power(x, n), [x], "PY")
    with pytest.raises(TypeError, match="integer"):
        L.matrix_power(x, 0.5)
    with pytest.raises(ShapeError):
        evaluate(L.matrix_power(y := pt.dmatrix(), 1), [y], [np.ones((2, 3))])
    with pytest.raises(np.linalg.LinAlgError):
        evaluate(L.matrix_power(np.array([[1.0, 2.0], [2.0, 4.0]]), -1))


@pytest.mark.parametrize(
    ("mode", "dtype"), [(m, d) for m in ("FAST_RUN", "FAST_COMPILE") for d in DTYPES]
)
def test_riccati(mode, dtype):
    inputs = [pt.tensor(dtype=dtype, shape=(None,) * k) for k in (3, 2, 2, 2)]
    f = compiled(mode, inputs, [L.solve_discrete_are(*inputs), L.solve_continuous_are(*inputs)])
    a, b = random((2, 3, 3), dtype) / 2, random((3, 2), dtype, 1)
    q, r = np.eye(3, dtype=dtype) + 1, 2 * np.eye(2, dtype=dtype)
    found = f(a, b, q, r)
    for k in range(2):
        close(found[0][k], scipy.linalg.solve_discrete_are(a[k], b, q, r), dtype)
        close(found[1][k], scipy.linalg.solve_continuous_are(a[k], b, q, r), dtype)
    assert np.isnan(f(a, b * np.nan, q, r)).all()
    assert [x.shape for x in f(a[:, :0, :0], b[:0], q[:0, :0], r)] == [(2, 0, 0)] * 2


def test_riccati_without_a_solution():
    for op in (L.solve_discrete_are, L.solve_continuous_are):
        assert np.isnan(evaluate(op([[2.0]], [[0.0]], [[1.0]], [[1.0]]))).all()
    with pytest.raises(ShapeError, match="do not fit"):
        SolveDiscreteARE()(np.eye(2), np.ones((3, 2)), np.eye(2), np.eye(2))
    x = np.array([[2.0, 2.0], [0.0, 2.0]])  # only the Hermitian part counts
    given = np.eye(2), np.eye(2)
    for op in (SolveDiscreteARE(), SolveContinuousARE()):
        close(evaluate(op(*given, x, x)), evaluate(op(*given, (x + x.T) / 2, (x + x.T) / 2)))


def test_riccati_equations_without_controls():
    """They are Lyapunov's equations."""
    a, q, b, r = np.array([[-0.5]]), np.array([[0.75]]), np.zeros((1, 0)), np.zeros((0, 0))
    close(evaluate(L.solve_discrete_are(a, b, q, r)), [[1.0]])
    close(evaluate(L.solve_continuous_are(a, b, q, r)), [[0.75]])
    assert evaluate(L.solve_discrete_are(r, r, r, r)).shape == (0, 0)
