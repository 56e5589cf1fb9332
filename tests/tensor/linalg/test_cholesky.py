"""Cholesky decomposition and triangular systems: values, failures, derivatives, batches."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from tensor_checks import check, check_batched, check_derivatives, evaluate
from tiers import cheap, few

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.lowering.program import External, Python
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.linalg import Cholesky, SolveTriangular, cholesky, solve_triangular
from phintys.tensor.linalg.decomposition.cholesky_pullback import (
    CholeskyPullback,
    cholesky_pullback,
    formula,
)

BACKENDS = ("PY", "FAST_RUN", "C", "JAX", "NUMBA")
DTYPES = ("float32", "float64", "complex64", "complex128")
#: (mode, dtype): all dtypes with the native backend, two with the others, which compile slowly
CELLS = [(m, d) for m in BACKENDS for d in (DTYPES if m == "FAST_RUN" else DTYPES[::3])]
#: both sides of the sizes at which LAPACK takes over
SIZES = (0, 1, 2, 5, 24, 25, 60)
RTOL = {"float32": 2e-3, "complex64": 2e-3}


def random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


def positive(shape, dtype="float64", seed=0):
    """Positive definite matrices."""
    x = random(shape, dtype, seed)
    n = shape[-1]
    return (x @ np.swapaxes(x.conj(), -1, -2) + n * np.eye(n)).astype(dtype)


def triangular(shape, dtype="float64", lower=True, seed=0):
    """Well-conditioned matrices of which one triangle is used; the rest is NaN."""
    x = random(shape, dtype, seed) + (2 + shape[-1]) * np.eye(shape[-1], dtype=dtype)
    other = np.tri(shape[-1], dtype=bool)
    return np.where(other if lower else other.T, x, np.array(np.nan, dtype))


def close(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    rtol = RTOL.get(expected.dtype.name, 1e-10)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def compiled(mode, build, *types):
    """A function of arrays with these dtypes and ranks."""
    inputs = [pt.tensor(dtype=dtype, shape=(None,) * rank) for dtype, rank in types]
    return phintys.function(inputs, build(*inputs), mode=mode)


def run(mode, build, *values):
    return compiled(mode, build, *((v.dtype.name, v.ndim) for v in values))(*values)


def sizes(mode):
    """Sizes to test with; JAX compiles for each."""
    return SIZES if mode != "JAX" else (0, 3)


# ----------------------------------------------------------------------------- values


@pytest.mark.parametrize(("mode", "dtype"), cheap(CELLS, "PY"))
def test_cholesky(dtype, mode):
    f = compiled(mode, lambda x, y: [cholesky(x, True), cholesky(y, False)], (dtype, 2), (dtype, 2))
    for n in sizes(mode):
        x = positive((n, n), dtype)
        expected = np.linalg.cholesky(x) if n else x
        is_read = np.tri(n, dtype=bool)
        given = [np.where(read, x, np.array(np.nan, dtype)) for read in (is_read, is_read.T)]
        lower, upper = f(*given)
        close(lower, expected)
        close(upper, expected.conj().T)


def system(n, dtype, lower, unit, trans):
    """A triangle, of which only what is read are numbers, and the whole matrix of the system."""
    a = triangular((n, n), dtype, lower)
    if unit:
        a = a / np.array(4 * n + 4, a.real.dtype)
        a[np.diag_indices(n)] = np.nan
    full = np.nan_to_num(a, nan=0.0) + (np.eye(n, dtype=dtype) if unit else 0)
    return a, {"N": full, "T": full.T, "C": full.conj().T}[trans]


@pytest.mark.parametrize(("mode", "dtype"), cheap(CELLS, "PY"))
def test_solve_triangular(dtype, mode):
    """All kinds in one function."""
    kinds = [(lower, unit, t) for lower in (True, False) for unit in (True, False) for t in "NTC"]
    kinds = kinds if mode in ("PY", "FAST_RUN") else kinds[1::5]

    def build(b, *triangles):
        return [
            solve_triangular(a, right, lower=lower, unit_diagonal=unit, trans=trans)
            for a, (lower, unit, trans) in zip(triangles, kinds, strict=True)
            for right in (b, b[:, 0], b[:, :0])
        ]

    f = compiled(mode, build, (dtype, 2), *([(dtype, 2)] * len(kinds)))
    for n in sizes(mode):
        b, systems = random((n, 3), dtype, 1), [system(n, dtype, *kind) for kind in kinds]
        found = iter(f(b, *(a for a, _ in systems)))
        for _, full in systems:
            close(next(found), np.linalg.solve(full, b))
            close(next(found), np.linalg.solve(full, b[:, :1])[:, 0])
            close(next(found), b[:, :0])


@pytest.mark.parametrize(
    ("mode", "dtype"), cheap([c for c in CELLS if "complex" not in c[1]], "PY")
)
def test_pullback_of_cholesky(dtype, mode):
    """Blocks of rows give what the formula gives; only the lower triangles are read."""
    f = compiled(mode, cholesky_pullback, (dtype, 2), (dtype, 2))
    expected = compiled("PY", formula, (dtype, 2), (dtype, 2))
    for n in (0, 1, 2, 32, 33, 70) if mode != "JAX" else (0, 3):
        lower = np.tri(n, dtype=bool)
        factor = np.linalg.cholesky(positive((n, n), dtype)) if n else random((n, n), dtype)
        g = random((n, n), dtype, 1)
        unread = [np.where(lower, x, np.array(np.nan, dtype)) for x in (factor, g)]
        close(f(*unread), expected(factor, g))


def test_pullback_of_cholesky_over_batches():
    factor = np.linalg.cholesky(positive((3, 5, 5)))
    check_batched(Blockwise(CholeskyPullback()), [factor, random((3, 5, 5), "float64")])
    with pytest.raises(ShapeError, match="differ"):
        run("FAST_RUN", cholesky_pullback, np.eye(3), np.eye(4))


def test_derivatives_that_overflow_do_not_warn():
    huge = np.tril(np.full((3, 3), 1e200))
    found = run("FAST_COMPILE", cholesky_pullback, huge, -huge)
    assert not np.isfinite(np.diagonal(found)).any()


def test_dtypes_of_results():
    for dtype, expected in {
        "bool": "float32", "int8": "float32", "uint16": "float32", "int32": "float64",
        "uint64": "float64", "float16": "float32", "float32": "float32", "complex64": "complex64",
    }.items():  # fmt: skip
        x = pt.matrix(dtype=dtype)
        assert cholesky(x).type.dtype == expected
        assert solve_triangular(x, x).type.dtype == expected
    assert solve_triangular(pt.fmatrix(), pt.zvector()).type.dtype == "complex128"
    x = np.array([[4, 7], [2, 5]])
    check(cholesky, lambda x: np.array([[2.0, 0.0], [1.0, 2.0]]), [x])
    check(lambda x: cholesky(x.astype("int8")), lambda x: np.float32([[2, 0], [1, 2]]), [x])


@pytest.mark.parametrize("mode", cheap(BACKENDS[:4], "JAX"))
def test_layouts(mode):
    """Strides, transposes and negative steps give what contiguous arrays give."""
    x, b = positive((40, 40)), random((40, 6), "float64", 1)
    views = [lambda x: x[::2, ::2], lambda x: x.T[:7, :7], lambda x: x[::-1, ::-1][3:9, 3:9]]
    f = compiled(
        mode,
        lambda x, b: [
            y
            for v in views
            for y in (cholesky(v(x)), solve_triangular(v(x), b[::-2][: v(x).shape[0]], lower=True))
        ],
        ("float64", 2),
        ("float64", 2),
    )
    found = f(x, b)
    for k, view in enumerate(views):
        y, n = view(x), len(view(x))
        close(found[2 * k], np.linalg.cholesky(y))
        close(found[2 * k + 1], scipy.linalg.solve_triangular(y, b[::-2][:n], lower=True))


@pytest.mark.parametrize("mode", cheap(BACKENDS))
def test_batches(mode):
    x, b = positive((2, 3, 4, 4)), random((4, 2), "float64", 1)
    a, vectors = np.tril(x), random((3, 4), "float64", 1)

    def build(x, empty, a, one, b, vectors):
        return [
            cholesky(x),
            cholesky(empty),
            solve_triangular(a, b, lower=True, b_ndim=2),
            solve_triangular(a, vectors, lower=True, b_ndim=1),
            solve_triangular(one, vectors, lower=True, b_ndim=1),
        ]

    found = run(mode, build, x, x[:, :0], a, a[0, 0], b, vectors)
    close(found[0], np.linalg.cholesky(x))
    close(found[1], x[:, :0])
    close(found[2], np.linalg.solve(a, np.broadcast_to(b, (2, 3, 4, 2))))
    expected = np.linalg.solve(a, np.broadcast_to(vectors, (2, 3, 4))[..., None])[..., 0]
    close(found[3], expected)
    close(found[4], np.linalg.solve(a[0, 0], vectors.T).T)


@pytest.mark.parametrize("mode", ["FAST_RUN", "C"])
def test_no_python_on_the_way(mode):
    for dtype in DTYPES:
        x, b = (pt.tensor(dtype=dtype, shape=(None,) * k) for k in (3, 3))
        f = phintys.function([x, b], [cholesky(x), solve_triangular(x, b)], mode=mode)
        kinds = [type(step) for step in f.program.steps]
        assert kinds.count(External) == 2
        assert Python not in kinds


def test_a_transposed_matrix_is_not_copied():
    a, b = pt.dmatrix(), pt.dmatrix()
    f = phintys.function([a, b], solve_triangular(a, b, trans="T"))
    assert [type(s).__name__ for s in f.program.steps] == ["Check", "Check", "Copy", "External"]


@pytest.mark.parametrize("ndim", [2, 3, 4])
def test_single_matrices_and_batches_are_not_copied(ndim):
    x = pt.tensor("x", dtype="float64", shape=(None,) * ndim)
    f = phintys.function([x], cholesky(x))
    assert [type(s).__name__ for s in f.program.steps] == ["Check", "External"]
    g = phintys.function([x], pt.linalg.eigh(x))
    assert [type(s).__name__ for s in g.program.steps] == ["Check", "External"]


# --------------------------------------------------------------------------- failures


@pytest.mark.parametrize(("mode", "dtype"), cheap(CELLS, "PY"))
def test_matrices_that_are_not_positive_definite(dtype, mode):
    f = compiled(mode, cholesky, (dtype, 3))
    g = compiled(mode, lambda x: cholesky(x, on_error="raise"), (dtype, 3))
    for n in (1, 30):
        x = positive((3, n, n), dtype)
        x[1, n - 1, n - 1] = -1
        found = f(x)
        assert np.isnan(found[1].real).all()
        close(found[::2], np.linalg.cholesky(x[::2]))
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            g(x)
        close(g(x[::2]), found[::2])


def damaged(n, dtype, lower, rng):
    """A batch of positive definite matrices, and which are damaged: those with NaN or infinity in
    the triangle that is read.  The other triangle has such elements in all of them."""
    count = 19  # several packs of every width, and a rest
    x = positive((count, n, n), dtype, seed=n)
    is_complex = "complex" in dtype
    special = np.array([np.nan, np.inf, -np.inf])
    wrong = rng.random(count) < 0.5
    for k in np.flatnonzero(wrong):
        i, j = sorted(rng.integers(n, size=2), reverse=lower)
        imaginary = is_complex and i != j and rng.random() < 0.5
        parts = (x.imag if imaginary else x.real)[k]
        parts[i, j] = rng.choice(special)
    unread = ~np.tri(n, dtype=bool) if lower else ~np.tri(n, dtype=bool).T
    x[:, unread] = rng.choice(special, x[:, unread].shape)
    if is_complex:  # Hermitian matrices have none
        x.imag[:, np.arange(n), np.arange(n)] = rng.choice(special, (count, n))
    return x, wrong


def has_nan_or_value(found, wrong, expected):
    """Whether all parts of all elements of damaged items are NaN, and others as expected."""
    assert np.isnan(found[wrong].real).all()
    assert np.isnan(found[wrong].imag).all() or "complex" not in found.dtype.name
    close(found[~wrong], expected[~wrong])


def check_damaged(mode, dtype, lower):
    """One rule on all backends, and for all sizes: see the docstring of `cholesky`."""
    rng = np.random.default_rng(len(mode) + lower)
    options = {"lower": lower, "assume_a": "pos", "b_ndim": 2}
    f = compiled(
        mode,
        lambda x, b: [
            cholesky(x, lower),
            pt.linalg.solve(x, b, **options),
            pt.linalg.cho_solve((cholesky(x, lower), lower), b, b_ndim=2),
            pt.linalg.cho_solve((x, lower), b, b_ndim=2),
        ],
        *((dtype, 3), (dtype, 2)),
    )
    one = compiled(mode, lambda x: cholesky(x, lower), (dtype, 2))
    g = compiled(mode, lambda x: cholesky(x, lower, on_error="raise"), (dtype, 3))
    for n in SIZES[1:] if mode != "JAX" else (3,):
        x, wrong = damaged(n, dtype, lower, rng)
        b = random((n, 2), dtype, 1)
        full = positive(x.shape, dtype, seed=n)
        factors = np.linalg.cholesky(full)
        factor, solution, other, of_factor = f(x, b)
        has_nan_or_value(factor, wrong, factors if lower else factors.conj().mT)
        has_nan_or_value(solution, wrong, np.linalg.solve(full, b))
        has_nan_or_value(other, wrong, np.linalg.solve(full, b))
        has_nan_or_value(np.array([one(m) for m in x[:4]]), wrong[:4], factor[:4])
        if "complex" not in dtype:  # whose diagonal is not read as real there
            triangle = np.tril(full) if lower else np.triu(full)
            t = triangle @ triangle.mT if lower else triangle.mT @ triangle
            has_nan_or_value(of_factor, wrong, np.linalg.solve(t, b))
        close(g(x[~wrong]), factor[~wrong])
        for k in np.flatnonzero(wrong)[:3]:
            with pytest.raises(np.linalg.LinAlgError, match=r"^Matrix is not positive definite"):
                g(x[k : k + 1])


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(("mode", "dtype"), cheap(CELLS, "PY"))
def test_nan_and_infinity_in_the_triangle_that_is_read(mode, dtype, lower):
    check_damaged(mode, dtype, lower)


@pytest.mark.widths
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_nan_and_infinity_in_packs(dtype, lower):
    check_damaged("FAST_RUN", dtype, lower)


@pytest.mark.parametrize("mode", BACKENDS[:3])
def test_nan_and_infinity_where_no_decomposition_is_computed(mode):
    """Rules that replace it agree with it."""
    d, t = pt.dvector(), pt.tensor(dtype="float64", shape=(3, 3))
    low = pt.tril(t)
    outs = [cholesky(pt.diag(d)), cholesky(pt.dot(low, low.T))]
    f = phintys.function([d, t], outs, mode=mode)
    ops = [getattr(node.op, "core_op", node.op) for node in f.maker.fgraph.toposort()]
    assert mode == "PY" or not any(isinstance(op, Cholesky) for op in ops)
    for value in (np.nan, np.inf, -np.inf):
        for place in range(3):
            vector, matrix = np.ones(3), np.eye(3)
            vector[place] = matrix[2, place] = value
            of_diagonal, of_product = f(vector, matrix)
            assert np.isnan(of_diagonal).all()
            assert np.isnan(of_product).all()
    of_diagonal, of_product = f(np.full(3, 4.0), -2 * np.eye(3))
    close(of_diagonal, 2 * np.eye(3))
    close(of_product, 2 * np.eye(3))


@pytest.mark.parametrize(("mode", "dtype"), cheap(CELLS, "PY"))
def test_singular_systems(dtype, mode):
    f = compiled(mode, lambda a, b: solve_triangular(a, b, lower=True), (dtype, 3), (dtype, 2))
    for n in (1, 30):
        a, b = triangular((2, n, n), dtype), random((n, 4), dtype)
        a[1, n - 1, n - 1] = 0
        found = f(a, b)
        assert np.isnan(found[1].real).all()
        assert np.isnan(found[1].imag).all() == ("complex" in dtype)
        close(found[0], scipy.linalg.solve_triangular(np.nan_to_num(a[0]), b, lower=True))
    a[1, 0, 0] = 1j if "complex" in dtype else -1
    a[1, n - 1, n - 1] = 1
    assert not np.isnan(f(a, b)).any()


@pytest.mark.parametrize("mode", cheap(BACKENDS))
def test_wrong_shapes(mode):
    with pytest.raises(ShapeError, match="square"):
        run(mode, cholesky, np.ones((2, 3)))
    with pytest.raises(ShapeError, match="square"):
        run(mode, solve_triangular, np.ones((2, 3)), np.ones(2))
    with pytest.raises(ShapeError, match="do not fit"):
        run(mode, solve_triangular, np.eye(2), np.ones((3, 2)))


def test_wrong_arguments():
    x = pt.dmatrix()
    with pytest.raises(ShapeError, match="square"):
        cholesky(pt.ones((2, 3)))
    with pytest.raises(ShapeError, match="do not fit"):
        solve_triangular(pt.ones((2, 2)), pt.ones(3))
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        cholesky(pt.dvector())
    with pytest.raises(ValueError, match="on_error"):
        cholesky(x, on_error="ignore")
    with pytest.raises(ValueError, match="trans must be"):
        solve_triangular(x, x, trans="X")
    with pytest.raises(ValueError, match="b_ndim"):
        SolveTriangular(b_ndim=3)
    with pytest.raises(TypeError, match="takes b with 1 dimensions"):
        SolveTriangular(b_ndim=1)(x, x)
    with pytest.raises(TypeError, match="takes matrices"):
        Cholesky()(pt.dvector())


# ------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("lower", few([True, False], True))
def test_derivatives_of_cholesky(lower):
    build = lambda x: cholesky(x, lower)  # noqa: E731
    check_derivatives(build, [positive((3, 3))])
    check_derivatives(build, [positive((2, 4, 4))])
    check_derivatives(lambda x: phintys.grad((build(x) ** 3).sum(), x), [positive((3, 3))])
    check_derivatives(build, [positive((1, 1))])
    check_batched(build, [positive((3, 3))])


@pytest.mark.parametrize("trans", "NTC")
@pytest.mark.parametrize("unit", few([True, False], False))
@pytest.mark.parametrize("lower", few([True, False], True))
def test_derivatives_of_solve_triangular(lower, unit, trans):
    def build(a, b):
        return solve_triangular(a, b, lower=lower, unit_diagonal=unit, trans=trans)

    def gradients(a, b):
        return pt.join(0, *(g.ravel() for g in phintys.grad((build(a, b) ** 2).sum(), [a, b])))

    a, b = positive((3, 3)), random((3, 2), "float64", 1)
    for values in ([a, b], [a, b[:, 0]], [positive((2, 3, 3)), b]):
        check_derivatives(build, values)
    check_derivatives(gradients, [a, b])
    check_batched(build, [a, b])


def test_complex_derivatives():
    """The gradient is the direction in which a real function of complex matrices grows."""
    x, rng = positive((3, 3), "complex128"), np.random.default_rng(2)
    step = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    b = rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))

    def value(z):
        y = solve_triangular(cholesky(z), b, lower=True, trans="C")
        return (pt.real(y) * np.arange(6.0).reshape(3, 2) + pt.imag(y) ** 2).sum()

    z = pt.zmatrix()
    f = phintys.function([z], [value(z), phintys.grad(value(z), z)])
    h = 1e-6
    numeric = (f(x + h * step)[0] - f(x - h * step)[0]) / (2 * h)
    np.testing.assert_allclose(np.sum(f(x)[1].conj() * step).real, numeric, rtol=1e-7)


# ---------------------------------------------------------------------------- machines


@pytest.mark.widths
@pytest.mark.parametrize("n", [4, 30])
def test_same_bits_at_each_call(n):
    x = positive((7, n, n))
    a, b = pt.dtensor3(), pt.dtensor3()
    f = phintys.function([a, b], [cholesky(a), solve_triangular(a, b)])
    first = [r.tobytes() for r in f(x, x)]
    keep = []
    for k in range(300):
        given = np.empty(x.size + 8)[k % 8 :][: x.size].reshape(x.shape)  # other alignments
        given[...] = x
        keep.append(given)
        assert [r.tobytes() for r in f(given, x)] == first


def test_a_missing_function_of_lapack(monkeypatch):
    """Without LAPACK's function the op runs through ``perform``."""
    from phintys.routines import libraries

    def address(library, function):
        raise LookupError(function)

    monkeypatch.setattr(libraries, "address", address)
    x = pt.dmatrix()
    f = phintys.function([x], cholesky(x) * 3)
    assert Python in [type(s) for s in f.program.steps]
    close(f(positive((4, 4))), 3 * np.linalg.cholesky(positive((4, 4))))


def test_ops_are_those_of_the_older_systems():
    x, b = pt.dmatrix(), pt.dvector()
    op = cholesky(x, lower=False).owner.op
    assert isinstance(op, Blockwise)
    assert op.core_op == Cholesky(lower=False)
    assert op.signature == "(m,m)->(m,m)"
    assert solve_triangular(x, b).owner.op.core_op == SolveTriangular(lower=False, b_ndim=1)
    assert Cholesky().inplace_on_inputs([0]) == Cholesky(overwrite_a=True)
    overwriting = SolveTriangular(b_ndim=2).inplace_on_inputs([1])
    assert overwriting.destroy_map == {0: [1]}
    v = positive((3, 3))
    close(evaluate(Cholesky()(x), [x], [v]), np.linalg.cholesky(v))


@pytest.mark.needs("jax")
def test_gradients_of_unknown_shapes_are_native_and_run_on_jax():
    a, b = pt.dmatrix("a"), pt.dvector("b")
    out = pt.linalg.cholesky(a).sum() + pt.linalg.solve_triangular(a, b, lower=True).sum()
    g = phintys.grad(out, a)
    f = phintys.function([a, b], g)
    assert not [step for step in f.program.steps if isinstance(step, Python)]
    given = np.eye(3) * 2 + 0.1, np.arange(3.0)
    jax = phintys.function([a, b], g, mode="JAX")
    np.testing.assert_allclose(jax(*given), f(*given), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lower", [True, False])
def test_a_single_matrix_has_the_bits_that_it_has_in_a_batch(lower, dtype):
    """One is computed in numbers, several in vectors; at sizes of each remainder by 4."""
    x, xs = pt.matrix("x", dtype=dtype), pt.tensor3("xs", dtype=dtype)
    one = phintys.function([x], cholesky(x, lower=lower))
    many = phintys.function([xs], cholesky(xs, lower=lower))
    for n in range(1, 26):
        a = np.random.default_rng(n).normal(size=(17, n, n))
        a = (a @ a.mT + np.eye(n) / 10).astype(dtype)
        found = many(a)
        assert [one(v).tobytes() for v in a] == [v.tobytes() for v in found]
        factors = found if lower else found.mT
        assert np.array_equal(factors, np.tril(factors))
        error = np.abs(factors.astype("float64") @ factors.mT - a).max()
        assert error < 4 * np.finfo(dtype).eps * np.abs(a).max()
