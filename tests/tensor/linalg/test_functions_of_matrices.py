"""Functions of matrices, constructors, products, equations: values, failures, batches."""

from __future__ import annotations

import math
from functools import cache

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
from tensor_checks import check, check_batched, compiled, evaluate
from tiers import cheap

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.linalg import TRSYL, BlockDiagonal, Expm, KroneckerProduct
from phintys.tensor.linalg.exponential import _find_order

L = pt.linalg
DTYPES = ("float32", "float64", "complex64", "complex128")
MODES = ("FAST_RUN", "FAST_COMPILE", "C", "JAX")


def random(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if "complex" in dtype else x, dtype)


def near_identity(shape, dtype="float64"):
    """Matrices whose eigenvalues are close to 1."""
    n = shape[-1]
    return (random(shape, dtype) / (4 * n + 4) + np.eye(n)).astype(dtype)


def close(found, expected):
    assert found.shape == expected.shape
    single = found.dtype.name in ("float32", "complex64")
    rtol = 2e-4 if single else 1e-9
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def by_items(function, *arrays):
    """A function of single matrices, applied to batches."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in arrays))
    full = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in arrays]
    found = [function(*(x[k] for x in full)) for k in np.ndindex(batch)]
    return np.reshape(found, (*batch, *np.shape(found[0])))


#: name -> (expression, reference for single matrices, core shapes)
FUNCTIONS = {
    "expm": (L.expm, scipy.linalg.expm, ["nn"]),
    "logm": (L.logm, lambda x: scipy.linalg.logm(x.astype("complex128")), ["nn"]),
    "sqrtm": (L.sqrtm, scipy.linalg.sqrtm, ["nn"]),
    "sylvester": (L.solve_sylvester, scipy.linalg.solve_sylvester, ["nn", "kk", "nk"]),
    "continuous": (
        L.solve_continuous_lyapunov, scipy.linalg.solve_continuous_lyapunov, ["nn", "nn"],
    ),
    "discrete": (
        lambda a, q: L.solve_discrete_lyapunov(a / 3, q, method="direct"),
        lambda a, q: scipy.linalg.solve_discrete_lyapunov(a / 3, q),
        ["nn", "nn"],
    ),
    "trsyl": (
        lambda a, b, c: Blockwise(TRSYL())(pt.triu(a), pt.triu(b), c),
        lambda a, b, c: scipy.linalg.solve_sylvester(np.triu(a), np.triu(b), c),
        ["nn", "kk", "nk"],
    ),
    "kron": (Blockwise(KroneckerProduct()), np.kron, ["nk", "kn"]),
    "block_diag": (L.block_diag, scipy.linalg.block_diag, ["nk", "kn", "kk"]),
}  # fmt: skip
CELLS = [(m, d) for m in MODES for d in (DTYPES if m in MODES[:2] else ("float64", "complex64"))]


def arguments(shapes, dtype, n, k, batch=()):
    sizes = {"n": n, "k": k}
    values = []
    for s in shapes:
        shape = (*batch, *(sizes[c] for c in s))
        values.append(near_identity(shape, dtype) if s[0] == s[1] else random(shape, dtype))
    return values


@pytest.mark.parametrize(("mode", "dtype"), cheap(CELLS))
def test_values(mode, dtype):
    """All functions in one compiled function: single, batched, broadcast, strided, empty."""
    inputs, outputs, cases = [], [], []
    for build, reference, shapes in FUNCTIONS.values():
        given = [pt.tensor(dtype=dtype, shape=(None, None, None)) for _ in shapes]
        inputs += given
        outputs += [build(*given), build(given[0][0], *given[1:])][: 1 if mode == "JAX" else 2]
        cases.append((reference, shapes))
    f = compiled(mode, inputs, outputs)
    for n, k, batch in ((3, 2, 2), (1, 1, 1), (4, 5, 3)) if mode not in MODES[3:] else ((3, 2, 2),):
        values = [arguments(shapes, dtype, n, k, (batch,)) for _, shapes in cases]
        strided = [[np.asfortranarray(x) for x in v] for v in values]
        found = f(*(x for v in strided for x in v))
        broadcast = [[v[0][0], *v[1:]] for v in values]
        order = [given for pair in zip(values, broadcast, strict=True) for given in pair]
        order = values if mode == "JAX" else order
        assert len(found) == len(order)
        for k, (y, given) in enumerate(zip(found, order, strict=True)):
            assert y.dtype == dtype
            close(y, by_items(cases[k * len(cases) // len(order)][0], *given))


@pytest.mark.parametrize("mode", MODES[:3])
def test_empty(mode):
    inputs = [pt.dtensor3() for _ in range(3)]
    outputs = [b(*inputs[: len(s)]) for b, _, s in FUNCTIONS.values()]
    f = compiled(mode, inputs, outputs)
    for shape in ((2, 0, 0), (0, 3, 3)):
        for name, found in zip(FUNCTIONS, f(*[np.zeros(shape)] * 3), strict=True):
            last = {"kron": shape[1] ** 2, "block_diag": 3 * shape[1]}.get(name, shape[1])
            assert found.shape == (shape[0], last, last)


@pytest.mark.parametrize("mode", cheap(MODES))
def test_nan_and_infinity(mode):
    names = ("expm", "logm", "sqrtm", "sylvester", "continuous", "discrete")
    x = pt.dtensor3()
    f = compiled(mode, [x], [FUNCTIONS[n][0](*[x] * len(FUNCTIONS[n][2])) for n in names])
    value = np.stack([near_identity((3, 3))] * 3)
    value[1, 2, 0], value[2, 0, 0] = np.nan, np.inf
    for found in f(value):
        assert np.isnan(found[1:]).all()
        assert np.isfinite(found[0]).all()


@pytest.mark.parametrize("mode", cheap(MODES))
def test_both_parts_of_complex_numbers_are_nan(mode):
    x = pt.zmatrix()
    f = compiled(mode, [x], [L.expm(x), L.pinv(x), L.pinv(x, hermitian=True)])
    for found in f(np.full((2, 2), np.nan + 0j)):
        assert np.isnan(found.real).all() and np.isnan(found.imag).all()


@pytest.mark.parametrize("mode", cheap(MODES))
def test_exponential_of_a_matrix_whose_norm_overflows(mode):
    x = pt.dmatrix()
    f = compiled(mode, [x], [pt.linalg.expm(x)])
    (found,) = f(np.array([[-1e308, 0.0], [-1e308, -1e308]]))
    assert np.isfinite(found).all() or np.isnan(found).any()
    (found,) = f(np.diag([-1e3, 0.0]))
    np.testing.assert_allclose(found, np.diag([0.0, 1.0]), atol=1e-12)


def test_exponentials_of_float32_matrices_are_rounded_once():
    """Squarings do not multiply their rounding errors: compared with float64."""
    x = pt.fmatrix()
    f = compiled("FAST_RUN", [x], [pt.linalg.expm(x)])
    for a in ([[80, 0], [0, -80]], [[0, 1e10], [0, 0]], [[0, -1e4], [1e4, 0]], [[0, 60], [60, 0]]):
        value = np.asarray(a, "float32")
        (found,) = f(value)
        assert found.dtype == "float32"
        np.testing.assert_allclose(found, scipy.linalg.expm(value.astype("float64")), rtol=1e-6)


def test_real_matrices_without_a_real_function():
    x = np.diag([1.0, -1.0])
    for function in (L.logm, L.sqrtm):
        assert np.isnan(evaluate(function(x))).all()
        close(
            evaluate(function(x + 0j)),
            np.diag({L.logm: [0, np.pi * 1j], L.sqrtm: [1, 1j]}[function]),
        )


def test_equations_without_a_solution():
    """Singular equations give NaN or large numbers, not an exception."""
    assert evaluate(L.solve_sylvester([[1.0]], [[-1.0]], [[1.0]])).shape == (1, 1)
    assert np.isnan(evaluate(L.solve_discrete_lyapunov([[-1.0]], [[1.0]]))).all()


def test_quasi_triangular_matrices():
    a = scipy.linalg.schur(random((5, 5)))[0]
    c = random((5, 5), seed=1)
    assert np.diagonal(a, -1).any()
    close(evaluate(TRSYL()(a, a, c)), scipy.linalg.solve_sylvester(a, a, c))


def test_kron_of_any_rank():
    shapes = [(), (3,), (2, 3), (2, 1, 2), (2, 2, 1, 2)]
    values = [random(s) for s in shapes]
    pairs = [(a, b) for a in values for b in values]
    found = evaluate([L.kron(pt.as_tensor(a), pt.as_tensor(b)) for a, b in pairs])
    for y, (a, b) in zip(found, pairs, strict=True):
        close(y, np.kron(a, b))
    assert isinstance(L.kron(pt.dmatrix(), pt.dtensor3()).owner.op.core_op, KroneckerProduct)


def test_dtypes_of_integers():
    x, y = pt.matrix(dtype="int64"), pt.matrix(dtype="int8")
    assert L.kron(x, y).type.dtype == L.block_diag(y, x).type.dtype == "int64"
    assert L.expm(y).type.dtype == L.solve_sylvester(y, y, y).type.dtype == "float32"
    assert L.sqrtm(x).type.dtype == "float64"
    check(L.kron, np.kron, [np.arange(6).reshape(2, 3), np.eye(2, dtype="int8")])
    check(L.block_diag, scipy.linalg.block_diag, [np.arange(6).reshape(2, 3), np.eye(2) + 0j])


def test_chains():
    a, b, c = random((2, 3)), random((3, 4)), random((4,))
    check(lambda *x: L.matrix_dot(*x), lambda *x: np.linalg.multi_dot(x), [a, b, c])
    check(lambda *x: L.multi_dot(x), lambda *x: np.linalg.multi_dot(x), [a, b])
    check(lambda x: L.matrix_dot(x), lambda x: x, [a])
    with pytest.raises(ValueError, match="at least one"):
        L.matrix_dot()


def test_wrong_arguments():
    wide, one = np.ones((2, 3)), np.eye(2)
    for name in ("expm", "logm", "sqrtm"):
        with pytest.raises(ShapeError, match="square"):
            getattr(L, name)(wide)
    for given in ((wide, one, one), (one, wide, one), (one, one, wide)):
        with pytest.raises(ShapeError, match=r"square|do not fit"):
            L.solve_sylvester(*given)
    with pytest.raises(ShapeError, match="do not fit"):
        evaluate(
            L.solve_discrete_lyapunov(*(m := [pt.dmatrix(), pt.dmatrix()])), m, [one, np.eye(3)]
        )
    with pytest.raises(ValueError, match="method"):
        L.solve_discrete_lyapunov(one, one, method="other")
    with pytest.raises(ValueError, match="at least one block"):
        L.block_diag()
    with pytest.raises(ValueError, match="takes 2 matrices"):
        BlockDiagonal(2)(one)
    with pytest.raises(TypeError, match="takes matrices"):
        Expm()(np.ones(3))


def test_batches_of_graphs():
    for name in ("expm", "sylvester", "kron", "block_diag", "discrete"):
        build, _, shapes = FUNCTIONS[name]
        check_batched(build, arguments(shapes, "float64", 3, 2))


def test_ops_are_those_of_pytensor():
    x = pt.dmatrix()
    assert L.expm(x).owner.op == Blockwise(Expm())
    assert L.expm(x).owner.op.signature == "(m,m)->(m,m)"
    assert L.block_diag(x, x).owner.op.signature == "(m0,n0),(m1,n1)->(m,n)"
    assert Expm().inplace_on_inputs([0]).destroy_map == {0: [0]}
    assert TRSYL().inplace_on_inputs([2]).destroy_map == {0: [2]}


@pytest.mark.parametrize(
    "x",
    [
        [[0, 1e6], [0, 0]],
        [[1, 1e6], [0, -1]],
        [[-1, 1e8], [0, -1.1]],
        np.triu(random((4, 4)) * 1e4, 1),
        np.triu(random((5, 5), "complex128") * 1e3, 1),
        [[0, 1e12], [0, 0]],
        random((5, 5)) * 10,
    ],
)
def test_exponentials_of_badly_scaled_matrices(x):
    """Powers that are much smaller than those of the norm need no squaring, which loses digits."""
    x = np.asarray(x)
    a = pt.tensor("a", dtype=x.dtype.name, shape=(None, None))
    expected = scipy.linalg.expm(x)
    scale = abs(expected).max()
    for mode in ("FAST_RUN", "C"):
        found = compiled(mode, [a], L.expm(a))(x)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * scale)


def test_the_exponential_of_a_shift_and_a_large_nilpotent_matrix():
    """Its tenth power is much smaller than its sixth: other scalings lose up to all digits."""
    rng = np.random.default_rng(4)
    nilpotent = np.triu(rng.normal(size=(6, 6)) * 1e4, 1)
    terms = [np.linalg.matrix_power(nilpotent, k) / math.factorial(k) for k in range(6)]
    expected = math.e * sum(terms)
    found = L.expm(nilpotent + np.eye(6)).eval()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * abs(expected).max())


def exact_exponential(x):
    """The exponential of a matrix, which other backends ask for too."""
    x = np.asarray(x)
    return _exact_exponential(x.tobytes(), x.dtype.name, len(x))


@cache
def _exact_exponential(data, dtype, n):
    """The exponential, computed with as many digits as the norm of the matrix takes."""
    x = np.frombuffer(data, dtype).reshape(n, n)
    halvings = int(np.log2(1 + np.abs(x).max())) + len(x) + 4
    with mp.workdps(40 + halvings):
        small = mp.matrix(x.tolist()) / mp.mpf(2) ** halvings
        found = term = mp.eye(len(x))
        for k in range(1, 60 + halvings):
            term = term * small / k
            found = found + term
        for _ in range(halvings):
            found = found * found
        return np.array(found.tolist(), "complex128" if np.iscomplexobj(x) else "float64")


def badly_scaled():
    """Triangles, of which each element is well defined, and other matrices."""
    rng = np.random.default_rng(7)
    yield from ([[0, 1e16], [0, 0]], [[0, 1e30], [0, 0]], [[1, 1e16], [0, 1.5]])
    yield from (
        [[0, 1e100, 0], [0, 0, 1e-90], [0, 0, 0]],
        [[0, 1e200], [0, -1]],
        [[-1e3, 1], [0, 2]],
    )
    for large in (1e150, 1e200):
        yield [[0, large, 0], [0, 0, 1 / large], [0, 0, 0]]
        yield [[0, large, 0], [0, -1, 100 / large], [0, 0, 0.5]]
    yield [[0, 1e300, 0], [0, 0, 1e-300], [0, 0, 0]]
    yield from ([[0, 1.7e308], [0, 0]], [[-1, 1.7e308, 1.7e308], [0, -2, 0], [0, 0, -3]])
    yield from ([[-7]], [[1e-300]], np.diag([-300.0, 0.5, 0.0, 200.0]))
    for n in (2, 3, 5, 8):
        sizes = 10.0 ** rng.integers(-20, 20, size=(n, n))
        yield np.triu(rng.normal(size=(n, n)) * sizes, 1)
        yield np.triu(rng.normal(size=(n, n)) * sizes, 1) + np.diag(rng.normal(size=n) * 3)
        yield np.triu(rng.normal(size=(n, n)) * 1e5, 1) + np.diag(1 + rng.normal(size=n) * 1e-10)


@pytest.mark.parametrize("mode", cheap(MODES))
def test_exponentials_of_triangles_of_any_scale(mode):
    x = pt.dmatrix()
    f = compiled(mode, [x], L.expm(x))
    for value in badly_scaled():
        expected = exact_exponential(value)
        np.testing.assert_allclose(f(np.asarray(value, "float64")), expected, rtol=1e-14)
        np.testing.assert_allclose(f(np.asarray(value, "float64").T), expected.T, rtol=1e-14)


@pytest.mark.parametrize("mode", cheap(MODES))
def test_exponentials_of_complex_triangles_of_any_scale(mode):
    x = pt.zmatrix()
    f = compiled(mode, [x], L.expm(x))
    turned = np.diag([1j, 5 + 3j, 2.0, -1 - 2j, 1j])
    values = [turned + np.triu(random((5, 5), "complex128") * 10.0**k, 1) for k in (-10, 0, 7, 15)]
    for value in (*values, np.diag([710.0, -800.0]) + 0j, np.array([[0, 1e30j], [0, 0]])):
        expected = exact_exponential(value)
        np.testing.assert_allclose(f(value), expected, rtol=1e-13)
        np.testing.assert_allclose(f(value.T), expected.T, rtol=1e-13)


@pytest.mark.parametrize("mode", cheap([*MODES, "NUMBA"]))
def test_exponentials_of_matrices_with_large_and_tiny_elements(mode):
    """Rows and columns of very different scales: squarings would lose what is small."""
    x = pt.dtensor3()
    f = compiled(mode, [x], L.expm(x))
    for k in (6, 16, 30, 45, 100, 298):
        ratio = 10.0**k
        value = np.array(
            [
                *([[0, ratio], [1 / ratio, 0]], [[0, 0.01 / ratio], [1e4 * ratio, 0]]),
                *([[0, ratio], [0, 0]], [[0, 0], [ratio, 1]]),
            ]
        )
        expected = [exact_exponential(v) for v in value]
        np.testing.assert_allclose(f(value), expected, rtol=1e-13)


@pytest.mark.parametrize("mode", cheap([*MODES, "NUMBA"]))
def test_exponentials_that_overflow(mode):
    """Zeros below the diagonal of a triangle, and next to a diagonal, remain zeros."""
    x, z = pt.dmatrix(), pt.zmatrix()
    f, g = compiled(mode, [x], L.expm(x)), compiled(mode, [z], L.expm(z))
    np.testing.assert_array_equal(
        f(np.diag([1e4, 0.0, 1.7e308, -1.7e308])), np.diag([np.inf, 1, np.inf, 0])
    )
    value = np.array([[1e4, 1, 2], [0, 1, 3], [0, 0, 2e4]])
    known = np.array([[math.inf, 0, 0], [0, math.e, 0], [0, 0, math.inf]])
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        found = f(value[order][:, order])
        is_known = (value == 0) | np.eye(3, dtype=bool)
        at = is_known[order][:, order]
        np.testing.assert_allclose(found[at], known[order][:, order][at])
        assert not np.isfinite(found[~at]).any()
    for sign in (1.0, -1.0):
        np.testing.assert_array_equal(f([[sign * 1.7e308]]), [[math.exp(math.inf * sign)]])
        large = np.array([[sign * (1.5e308 + 1.5e308j)]])
        assert np.isinf(g(large)) if sign > 0 else g(large) == 0


def test_the_order_of_a_triangle_is_found_in_quadratic_time(lines_run):
    def lines(make, n):
        x = make(np.ones((n, n)))
        buffers = np.zeros(n, "int64"), np.zeros(n, "int64")
        return lines_run(_find_order, n, np.ravel(x), *buffers)

    def pairs(x):
        return np.eye(len(x)) + np.eye(len(x), k=1) * (np.arange(len(x)) % 2)

    for make in (np.triu, np.tril, lambda x: pairs(x) + pairs(x).T):
        assert lines(make, 64) < 4.5 * lines(make, 32)


@pytest.mark.parametrize("mode", cheap(MODES))
def test_derivatives_of_exponentials_of_badly_scaled_triangles(mode):
    """The first two derivatives, of which each element is a polynomial of those of the matrix."""
    x, c = pt.dmatrix(), pt.dmatrix()
    first = phintys.grad((c * L.expm(x)).sum(), x)
    second = phintys.grad((c * first).sum(), x)
    f = compiled(mode, [x, c], [first, second])
    value = np.array([[0, 1e16, 0], [0, 0, 1e-9], [0, 0, 0]])
    given = np.array([[2.0, 3.0, 5.0], [7.0, 11.0, 13.0], [17.0, 19.0, 23.0]])
    y, o = value.T, np.zeros((3, 3))
    blocks = [[y, given, given.T, o], [o, y, o, given.T], [o, o, y, given], [o, o, o, y]]
    expected = exact_exponential(np.block(blocks))[:3]
    found = f(value, given)
    np.testing.assert_allclose(found[0], expected[:, 3:6], rtol=1e-13)
    np.testing.assert_allclose(found[1], expected[:, 9:], rtol=1e-13)
