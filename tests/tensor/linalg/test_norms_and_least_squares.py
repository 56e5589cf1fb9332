"""Norms, ranks, conditions, pseudo-inverses, least squares, powers, Riccati equations."""

from __future__ import annotations

import numpy as np
import pytest
from derivative_checks import check as check_point
from derivative_checks import point_of
from tensor_checks import check, check_batched, check_derivatives, compiled, evaluate
from tiers import cheap, few

import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.lowering.program import Python
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.linalg import Lstsq, MatrixPinv

L = pt.linalg
INF = float("inf")
DTYPES = ("float32", "float64", "complex64", "complex128")
MODES = ("FAST_RUN", "FAST_COMPILE", "C", "JAX")
SHAPES = ((5, 3), (3, 5), (4, 4), (1, 1), (0, 3), (3, 0))


def random(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if "complex" in dtype else x, dtype)


def deficient(shape, dtype="float64"):
    """Matrices whose first and last columns are equal."""
    x = random(shape, dtype)
    x[..., -1] = x[..., 0]
    return x


def close(found, expected, dtype="float64"):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    rtol = 1e-3 if dtype in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def cells(*modes):
    """All dtypes with the native backend and the reference, two with the others."""
    return [(m, d) for m in modes for d in (DTYPES if m in MODES[:2] else DTYPES[1::2])]


# ------------------------------------------------------------------------------- norms

ORDERS = {
    1: (None, 0, 1, 2, 3, 0.5, -1, INF, -INF),
    2: (None, "fro", "nuc", 1, -1, 2, -2, INF, -INF),
}


@pytest.mark.parametrize(
    ("mode", "dtype"), cheap(cells("FAST_RUN", "FAST_COMPILE", "JAX"), ("JAX", "float64"))
)
def test_norms(mode, dtype):
    """Every order of vectors and of matrices, over each choice of axes."""
    x = pt.tensor(dtype=dtype, shape=(None, None, None))
    cases = [(o, a, k) for o in ORDERS[1] for a in (0, -1, (1,)) for k in (False, True)]
    cases += [(o, a, False) for o in ORDERS[2] for a in ((0, 1), (2, 0), (-1, -2))]
    cases += [(o, (2, 0), True) for o in ("nuc", 1)]
    cases = cases if mode != "JAX" else cases[::4]
    f = compiled(mode, [x], [L.norm(x, o, a, k) for o, a, k in cases])
    for shape in ((2, 3, 4), (1, 1, 1)) if mode != "JAX" else ((2, 3, 4),):
        value = random(shape, dtype)
        for (o, a, k), found in zip(cases, f(value), strict=True):
            close(found, np.linalg.norm(value, o, a, k), dtype)
            assert found.dtype == value.real.dtype


def test_norms_without_axes():
    vector, matrix, batch = random((3,)), random((3, 4)), random((2, 3, 4))
    for o in ORDERS[1]:
        check(lambda x, o=o: L.norm(x, o), lambda x, o=o: np.linalg.norm(x, o), [vector])
    for o in ORDERS[2]:
        close(evaluate(L.norm(pt.as_tensor(matrix), o)), np.linalg.norm(matrix, o))
        close(evaluate(L.norm(pt.as_tensor(batch), o)), np.linalg.norm(batch, o or "fro", (1, 2)))
    close(evaluate(L.norm(-3.0)), 3.0)
    close(evaluate(L.norm(pt.as_tensor(matrix), "inf")), np.linalg.norm(matrix, INF))
    close(evaluate(L.norm(pt.as_tensor(vector), "-inf")), np.linalg.norm(vector, -INF))
    close(evaluate(L.vector_norm(pt.as_tensor(batch))), np.linalg.norm(batch))
    power = pt.dscalar()
    close(
        evaluate(L.norm(pt.as_tensor(vector), power), [power], [2.5]), np.linalg.norm(vector, 2.5)
    )


def test_norms_of_integers_are_floats():
    x = np.array([[-128, 127], [3, 4]], "int8")
    for o in ORDERS[2]:
        found = evaluate(L.norm(pt.as_tensor(x), o))
        assert found.dtype == "float32"
        np.testing.assert_allclose(found, np.linalg.norm(x, o), rtol=2e-3)


def test_norms_of_empty_tensors():
    for shape in ((0, 3), (3, 0)):
        x = pt.as_tensor(np.zeros(shape))
        for o in ("fro", "nuc", 1, 2, INF):
            assert evaluate(L.matrix_norm(x, o)) == 0
        for o in (0, 1, 2, 3, INF):
            assert not evaluate(L.vector_norm(x, o, axis=1)).any()
    with pytest.raises(ValueError, match=r"zero-size|empty"):
        evaluate(L.matrix_norm(pt.zeros((0, 3)), -INF))


def test_orders_that_do_not_exist():
    vector, matrix = pt.dvector(), pt.dmatrix()
    for x, o in ((vector, "fro"), (vector, "nuc"), (matrix, 3), (matrix, 0), (matrix, "other")):
        with pytest.raises(ValueError, match="no norm of the order"):
            L.norm(x, o)
    with pytest.raises(ValueError, match="vectors and matrices"):
        L.norm(pt.dtensor3(), axis=(0, 1, 2))
    with pytest.raises(ValueError, match="two axes"):
        L.matrix_norm(vector)


def test_derivatives_of_norms():
    for o in (None, 1, 3, INF):
        check_derivatives(lambda x, o=o: L.norm(x, o, axis=1), [random((3, 4))], "PY")
    for o in ("nuc", 2, -2, 1, -INF):
        check_derivatives(lambda x, o=o: L.norm(x, o), [random((2, 3, 3))], "PY")


def test_rank_and_condition():
    full, poor = random((3, 4, 4)), deficient((3, 4, 4))
    poor[0] = 0
    for x in (full, poor, full[:, :2], full[0]):
        close(evaluate(L.matrix_rank(x)), np.linalg.matrix_rank(x))
        close(evaluate(L.matrix_rank(x, rtol=0.3)), np.linalg.matrix_rank(x, rtol=0.3))
        close(evaluate(L.matrix_rank(x, 0.5)), np.linalg.matrix_rank(x, 0.5))
    even = poor + np.swapaxes(poor, 1, 2)
    close(
        evaluate(L.matrix_rank(even, hermitian=True)), np.linalg.matrix_rank(even, hermitian=True)
    )
    assert evaluate(L.matrix_rank(np.ones(3))) == 1 - evaluate(L.matrix_rank(np.zeros(3)))
    with pytest.raises(ValueError, match="not both"):
        L.matrix_rank(full, 1.0, rtol=1.0)
    for p in (None, 2, -2, 1, -1, INF, -INF, "fro", "nuc"):
        close(evaluate(L.cond(full, p)), np.linalg.cond(full, p))
    close(evaluate(L.cond(full[:, :2])), np.linalg.cond(full[:, :2]))
    assert evaluate(L.cond(np.zeros((0, 3, 3)))).shape == (0,)
    x = pt.dtensor3("x")
    for p in (None, -2, 1, INF, "fro", "nuc"):
        with pytest.raises(np.linalg.LinAlgError, match=r"cond .* without elements: x of type"):
            L.cond(x, p).eval({x: np.zeros((2, 0, 0))})
        with pytest.raises(np.linalg.LinAlgError, match=r"cond .* without elements"):
            L.cond(np.zeros((0, 0)), p)
    with pytest.raises(ValueError, match=r"cond .* at least two axes; v has type"):
        L.cond(pt.dvector("v"))
    with pytest.raises(ValueError, match=r"trace .* at least two axes; v has type"):
        L.trace(pt.dvector("v"))
    for p in (1, 2):
        assert evaluate(L.cond(np.zeros((2, 2)), p)) == INF
        assert np.isnan(evaluate(L.cond(np.full((2, 2), np.nan), p)))


def test_trace():
    x = random((2, 3, 4))
    check(L.trace, lambda x: np.trace(x, axis1=1, axis2=2), [x])
    check(L.trace, np.trace, [x[0]])


# ------------------------------------------------- pseudo-inverses and least squares


@pytest.mark.parametrize(("mode", "dtype"), cheap(cells(*MODES)))
def test_pseudo_inverses_and_least_squares(mode, dtype):
    """Full and deficient rank, tall and wide, empty; vectors and matrices on the right."""
    x, y = (pt.tensor(dtype=dtype, shape=(None, None)) for _ in range(2))
    vector = L.lstsq(x, y[:, 0])[:1]
    outputs = L.lstsq(x, y)
    if mode == "JAX":  # whether there are sums of squares depends on the rank
        outputs[1] = outputs[3]
    f = compiled(mode, [x, y], [L.pinv(x), *outputs, *vector])
    for m, n in SHAPES if mode in MODES[:3] else SHAPES[:1]:
        for k, make in ((2, random), (1, deficient if n > 1 else random)):
            a, b = make((m, n), dtype), random((m, k), dtype, 1)
            inverse, *found, z = f(np.asfortranarray(a), b)
            close(inverse, np.linalg.pinv(a, rtol=5 * np.finfo(dtype).eps), dtype)
            assert inverse.dtype == found[0].dtype == dtype
            for k, expected in enumerate(np.linalg.lstsq(a, b)):
                close(found[k], expected if mode != "JAX" or k != 1 else found[1], dtype)
            close(z, np.linalg.lstsq(a, b[:, 0])[0], dtype)
    if mode in ("FAST_RUN", "C"):
        steps = [s for s in f.program.steps if isinstance(s, Python)]
        assert len(steps) == ("complex" in dtype)  # the products of the complex pseudo-inverse


@pytest.mark.needs("numba")
@pytest.mark.parametrize("dtype", few(["float64", "complex64"], left=["complex64"]))
def test_least_squares_of_numba_are_compiled(dtype, monkeypatch):
    """Nothing runs through Python: of single matrices, and of batches."""
    x, y = (pt.tensor(dtype=dtype, shape=(None,) * 3) for _ in range(2))
    outputs = [*L.lstsq(x, y), L.lstsq(x[0], y[0])[0]]
    expected = compiled("FAST_COMPILE", [x, y], outputs)
    given = [
        [make((2, m, n), dtype), random((2, m, k), dtype, 1)]
        for m, n in SHAPES
        for k, make in ((2, random), (1, deficient if n > 1 else random), (0, random))
    ]
    given.append([np.full((2, 3, 2), INF, dtype), random((2, 3, 1), dtype)])
    wanted = [expected(*pair) for pair in given]
    monkeypatch.delattr(Lstsq, "perform")
    f = compiled("NUMBA", [x, y], outputs)
    for pair, values in zip(given, wanted, strict=True):
        for found, value in zip(f(*pair), values, strict=True):
            close(found, value, dtype)
            assert found.dtype == value.dtype


def test_hermitian_pseudo_inverses():
    for dtype in DTYPES:
        x = random((3, 4, 4), dtype)
        x = x + np.swapaxes(x.conj(), 1, 2)
        x[0, 0] = x[0, :, 0] = 0
        lower = np.where(np.tri(4, dtype=bool), x, np.array(np.nan, dtype))
        for mode in MODES[:2]:
            a = pt.tensor(dtype=dtype, shape=(None, None, None))
            f = compiled(mode, [a], L.pinv(a, hermitian=True))
            close(f(lower), np.linalg.pinv(x, hermitian=True, rtol=1e-5), dtype)
    with pytest.raises(ShapeError, match="square"):
        L.pinv(np.ones((2, 3)), hermitian=True)


def test_small_singular_values():
    x = np.diag([1.0, 1e-3, 0.0])
    close(evaluate(L.pinv(x)), np.diag([1, 1e3, 0]))
    close(evaluate(L.pinv(x, rtol=0.01)), np.diag([1, 0, 0]))
    both = pt.as_tensor(np.stack([x, x]))
    for mode in MODES[:4]:
        found = evaluate(L.pinv(both, rtol=np.array([0.01, 0])), mode=mode)
        close(np.diagonal(found, 0, 1, 2), [[1, 0, 0], [1, 1e3, 0]])
        single = pt.as_tensor(x.astype("float32"))  # beside a number in float64
        found = evaluate([L.pinv(single, rtol=0.01), L.lstsq(single, single, 0.01)[2]], mode=mode)
        close(found[0], np.diag([1, 0, 0]), "float32")
        assert found[1] == 1
    for rcond, expected in ((0.01, 1), (-1, 2), (None, 2)):
        found = evaluate(L.lstsq(x, np.ones(3), rcond))
        assert found[2] == expected
        close(found[0], [1, 1e3 * (expected == 2), 0])


@pytest.mark.parametrize("mode", MODES[:3])
def test_batches(mode):
    x, y = pt.dtensor3(), pt.dmatrix()
    f = compiled(mode, [x, y], [L.pinv(x), *L.lstsq(x, y)])
    a, b = random((3, 5, 2)), random((5, 2), seed=1)
    a[1, :, 1] = a[1, :, 0]
    inverse, z, squares, rank, s = f(a, b)
    close(inverse, np.linalg.pinv(a, rtol=1e-12))
    for k in range(3):
        expected = np.linalg.lstsq(a[k], b)
        close(z[k], expected[0])
        close(s[k], expected[3])
        close(squares[k], expected[1] if k != 1 else [np.nan, np.nan])
    assert rank.tolist() == [2, 1, 2]
    assert [v.shape for v in f(a[:0], b)] == [(0, 2, 5), (0, 2, 2), (0, 2), (0,), (0, 2)]


@pytest.mark.parametrize("mode", cheap(MODES))
def test_nan_and_infinity(mode):
    x = pt.dmatrix()
    z, _, rank, s = L.lstsq(x, pt.ones(3))
    f = compiled(mode, [x], [L.pinv(x), z, rank, s, L.norm(x, 2), L.norm(x, INF)])
    for wrong in (np.nan, np.inf):
        inverse, z, rank, s, greatest, sums = f(np.array([[1, wrong], [2, 3], [4, 5.0]]))
        assert np.isnan([*inverse.ravel(), *z, *s, greatest]).all()
        assert rank == 0
        np.testing.assert_equal(float(sums), wrong)


def test_derivatives_of_pseudo_inverses():
    for shape in ((4, 2), (2, 4), (2, 3, 3)):
        check_derivatives(L.pinv, [random(shape)], "PY")
    check_derivatives(
        lambda a, b: L.lstsq(a, b)[0] ** 2, [random((5, 2)), random((5, 3), seed=1)], "PY"
    )
    check_batched(L.pinv, [random((3, 2))])


def test_complex_derivatives_of_least_squares():
    """Of the solution, the sums of squares and the singular values."""
    for shape in ((5, 3), (3, 5)):
        values = [random(shape, "complex128"), random((shape[0], 2), "complex128", 1)]
        for k in (0, 1, 3) if shape[0] > shape[1] else (0, 3):
            assert check_point(point_of(lambda *x, k=k: Lstsq()(*x, 1e-9)[k], values)) == []


def test_lstsq_is_strict():
    with pytest.raises(ShapeError, match="do not fit"):
        L.lstsq(np.ones((3, 2)), np.ones(4))
    with pytest.raises(TypeError, match="rtol"):
        MatrixPinv()(np.ones((3, 2)), [1.0])
    with pytest.raises(TypeError, match="rcond"):
        Lstsq()(np.ones((3, 2)), np.ones((3, 1)), [1.0])
    assert L.pinv(pt.dmatrix()).owner.op == Blockwise(MatrixPinv(hermitian=False))
