"""Elimination: LU decompositions, systems, inverses, determinants."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from tensor_checks import (
    assert_like,
    check_batched,
    check_derivatives,
    compiled,
    evaluate,
)
from tiers import cheap

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.lowering.program import External, Python
from phintys.tensor import linalg
from phintys.tensor.blockwise import Blockwise

KINDS = ("gen", "sym", "her", "pos", "tridiagonal", "banded", "diagonal")
DTYPES = ("float32", "float64", "complex64", "complex128")
#: both sides of the sizes at which LAPACK takes over, on native backends
SIZES = (5, 0, 1, 2, 3, 16, 17, 40)
TOLERANCE = {"float32": 2e-3, "complex64": 2e-3}


def random(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


def regular(shape, dtype="float64", seed=0):
    """Well-conditioned matrices that need pivots."""
    x = random(shape, dtype, seed) + 3 * np.sqrt(shape[-1]) * np.eye(shape[-1])
    return np.roll(x, 1, -2).astype(dtype)


def definite(n, dtype="float64"):
    x = random((n, n), dtype)
    return (x @ x.conj().T / max(n, 1) + np.eye(n)).astype(dtype)


def close(found, expected, tolerance=None):
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    tolerance = tolerance or TOLERANCE.get(expected.dtype.name, 1e-9)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def as_read(kind, a, lower):
    """The matrix that `solve` takes ``a`` for."""
    width = {"tridiagonal": 1, "diagonal": 0}.get(kind)
    if width is not None:
        return np.triu(np.tril(a, width), -width)
    if kind in ("gen", "banded"):
        return a
    other = np.tril(a, -1) if lower else np.triu(a, 1)
    if kind == "sym":
        return other + other.T + np.diag(a.diagonal())
    return other + other.conj().T + np.diag(a.diagonal().real)


# ----------------------------------------------------------------------------- values


def everything(a, b, c):
    """All results of elimination that no matrix makes fail, of matrices and right sides."""
    factors = linalg.lu_factor(a)
    return [
        *linalg.lu(a), *linalg.lu(a, p_indices=True), *linalg.lu(a, permute_l=True), *factors,
        linalg.pivot_to_permutation(factors[1]), linalg.pivot_to_permutation(factors[1], True),
        linalg.lu_solve(factors, b), linalg.lu_solve(factors, c, trans=True),
        linalg.det(a), *linalg.slogdet(a), linalg.cho_solve((a, True), b),
        linalg.cho_solve((a, False), c), *linalg.tridiagonal_lu_factor(a),
        linalg.tridiagonal_lu_solve(linalg.tridiagonal_lu_factor(a), c, b_ndim=2, transposed=True),
        *(linalg.solve(a, b, assume_a=k, lower=True) for k in KINDS),
        *(linalg.solve(a, c, assume_a=k, transposed=True) for k in KINDS),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def functions():
    """Functions that compute everything, by mode and dtype."""
    made = {}

    def function(mode, dtype):
        if (mode, dtype) not in made:
            inputs = [pt.tensor(dtype=dtype, shape=(None,) * k) for k in (2, 1, 2)]
            made[mode, dtype] = compiled(mode, inputs, everything(*inputs))
        return made[mode, dtype]

    return function


CELLS = [("FAST_RUN", d) for d in DTYPES] + [
    ("C", "float32"),
    ("C", "complex128"),
    ("JAX", "float64"),
]


@pytest.mark.parametrize(("mode", "dtype"), cheap(CELLS))
def test_backends_agree(mode, dtype, functions):
    """With the reference, also for singular matrices, NaN and infinity."""
    f, reference = functions(mode, dtype), functions("FAST_COMPILE", dtype)
    for n in SIZES if mode != "JAX" else (3, 0):
        b, c = random(n, dtype, 1), random((n, 3), dtype, 2)
        x = definite(n, dtype)
        cases = [regular((n, n), dtype), x, np.ones_like(x), x * np.nan]
        if n > 2:
            cases += [np.where(np.eye(n, k=1), np.array(v, dtype), x) for v in (np.nan, np.inf)]
        for a in cases:
            for found, expected in zip(f(a, b, c), reference(a, b, c), strict=True):
                close(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values(dtype, functions):
    """The reference gives what SciPy gives."""
    f = functions("FAST_COMPILE", dtype)
    for n in (4, 1):
        a, b, c = regular((n, n), dtype), random(n, dtype, 1), random((n, 3), dtype, 2)
        found = f(a, b, c)
        for k, flags in enumerate(({}, {"p_indices": True}, {"permute_l": True})):
            for x, y in zip(found[3 * k :], scipy.linalg.lu(a, **flags)):
                close(x, y.real.astype(x.dtype) if x.dtype.kind in "if" else y)
        factors, pivots = scipy.linalg.lu_factor(a)
        close(found[8], factors)
        close(found[9], pivots)
        close(a[found[11]], (np.tril(factors, -1) + np.eye(n)).astype(dtype) @ np.triu(factors))
        close(found[11][found[10]], np.arange(n))
        close(found[12], np.linalg.solve(a, b))
        close(found[13], np.linalg.solve(a.T, c))
        close(found[14], np.linalg.det(a))
        close(found[15], np.linalg.slogdet(a)[0])
        close(found[16], np.linalg.slogdet(a)[1])
        a = definite(n, dtype)
        found = f(a, b, c)
        for k, (right, lower) in enumerate(((b, True), (c, False))):
            full = np.tril(a) @ np.tril(a).conj().T if lower else np.triu(a).conj().T @ np.triu(a)
            close(found[17 + k], np.linalg.solve(full, right))
        close(found[-15], np.linalg.solve(as_read("tridiagonal", a, False).T, c))
        for k, kind in enumerate(KINDS):
            close(found[k - 14], np.linalg.solve(as_read(kind, a, True), b))
            close(found[k - 7], np.linalg.solve(as_read(kind, a, False).T, c))


def test_lu_of_matrices_that_are_not_square():
    x = pt.dmatrix()
    outputs = [*linalg.lu(x), *linalg.lu(x, p_indices=True), *linalg.lu(x, permute_l=True)]
    for mode in ("FAST_COMPILE", "FAST_RUN", "C"):
        f = compiled(mode, [x], outputs)
        for shape in ((2, 5), (5, 2), (0, 3), (3, 0), (20, 30)):
            v = random(shape)
            found = f(v)
            for k, flags in enumerate(({}, {"p_indices": True}, {"permute_l": True})):
                for a, b in zip(found[3 * k :], scipy.linalg.lu(v, **flags)):
                    if v.size:
                        close(a, b.astype(a.dtype))
    assert [x.shape for x in f(np.ones((3, 0)))[:3]] == [(3, 3), (3, 0), (0, 0)]
    nothing = f(np.full((2, 3), np.nan))
    assert np.isnan(nothing[2]).sum() == 5
    close(nothing[0], np.eye(2))


BATCHES = [((2, 3, 4, 4), (2, 3, 4)), ((4, 4), (5, 4)), ((3, 4, 4), (4,)), ((3, 1, 4, 4), (5, 4))]


@pytest.mark.parametrize("mode", cheap(["FAST_COMPILE", "FAST_RUN", "C", "JAX"]))
def test_batches(mode):
    """Matrices and right sides of batches, whose axes broadcast; tests/backends/numba has NUMBA."""
    for shape, right in BATCHES if mode in ("FAST_COMPILE", "FAST_RUN") else BATCHES[3:]:
        a, b = (pt.tensor(dtype="float64", shape=[1 if n == 1 else None for n in s])
                for s in (shape, right))  # fmt: skip
        f = compiled(mode, [a, b], [
            linalg.solve(a, b, b_ndim=1), linalg.solve(a, b[..., None], b_ndim=2),
            linalg.lu_solve(linalg.lu_factor(a), b, b_ndim=1), linalg.inv(a), linalg.det(a),
            linalg.solve(a.mT, b, b_ndim=1, assume_a="gen"), *linalg.slogdet(a),
        ])  # fmt: skip
        x, v = regular(shape), random(right, seed=1)
        vector, matrix, again, inverse, det, turned, sign, logarithm = f(x, v)
        expected = np.linalg.solve(x, v[..., None])
        close(vector, expected[..., 0])
        close(matrix, expected)
        close(again, expected[..., 0])
        close(inverse, np.linalg.inv(x))
        close(det, np.linalg.det(x))
        close(turned, np.linalg.solve(np.swapaxes(x, -1, -2), v[..., None])[..., 0])
        close(sign * np.exp(logarithm), det)
        if mode != "JAX":
            assert f(x[:0], v)[3].shape == x[:0].shape if x.ndim == 3 else True


def test_tensors():
    a, b = random((6, 8, 3, 16)), random((2, 3, 6))
    x, y = pt.dtensor4(), pt.dtensor3()
    assert_like(evaluate(linalg.tensorinv(x), [x], [a]), np.linalg.tensorinv(a))
    a = random((2, 3, 6, 36)).reshape(2, 3, 6, 36)
    found = evaluate(linalg.tensorsolve(x, y), [x, y], [a, b])
    close(found, np.linalg.tensorsolve(a, b))
    a = np.moveaxis(a, 3, 1)
    close(evaluate(linalg.tensorsolve(x, y, (1,)), [x, y], [a, b]), found)
    with pytest.raises(ShapeError):
        evaluate(linalg.tensorinv(x, 1), [x], [a])
    with pytest.raises(ValueError, match="ind is"):
        linalg.tensorinv(x, 0)


def test_dtypes_of_results():
    for dtype, expected in {
        "bool": "float32", "int8": "float32", "int32": "float64", "float16": "float32",
        "float32": "float32", "complex64": "complex64",
    }.items():  # fmt: skip
        x, v = pt.matrix(dtype=dtype), pt.vector(dtype=dtype)
        for y in (
            linalg.inv(x), linalg.det(x), linalg.slogdet(x)[0], linalg.solve(x, v),
            linalg.lu_factor(x)[0], linalg.lu(x)[1], linalg.tridiagonal_lu_factor(x)[3],
        ):  # fmt: skip
            assert y.type.dtype == expected
        assert linalg.slogdet(x)[1].type.dtype == linalg.lu(x)[0].type.dtype
        assert "complex" not in linalg.slogdet(x)[1].type.dtype
    assert linalg.solve(pt.fmatrix(), pt.zvector()).type.dtype == "complex128"
    assert evaluate(linalg.det(np.array([[2, 1], [1, 3]]))) == 5


@pytest.mark.parametrize("mode", ["FAST_RUN", "C"])
def test_no_python_on_the_way(mode, functions):
    for dtype in ("float64", "complex64") if mode == "FAST_RUN" else ("float32",):
        x = pt.tensor3(dtype=dtype)
        f = phintys.function([x], [linalg.inv(x), linalg.solve(x, x)], mode=mode)
        for steps in (f.program.steps, functions(mode, dtype).program.steps):
            assert External in [type(s) for s in steps]
            assert Python not in [type(s) for s in steps]


# --------------------------------------------------------------------------- failures


@pytest.mark.parametrize("mode", cheap(["FAST_COMPILE", "FAST_RUN", "C", "NUMBA", "JAX"], "JAX"))
def test_singular_matrices(mode):
    x = pt.dtensor3()
    f = compiled(mode, [x], linalg.inv(x))
    for n in (3, 20)[: 1 if mode == "JAX" else 2]:
        v = regular((3, n, n))
        close(f(v), np.linalg.inv(v))
        v[1, n - 1] = v[1, 0] = 0
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            f(v)
        v[1] = np.nan
        found = f(v)
        close(found[::2], np.linalg.inv(v[::2]))
        assert np.isnan(found[1]).all()


def test_what_singular_matrices_give():
    a, b = np.ones((3, 3)), np.arange(3.0)
    factors, pivots = (x.eval() for x in linalg.lu_factor(a))
    close(factors, np.array([[1.0, 1, 1], [1, 0, 0], [1, 0, 0]]))
    for kind in ("gen", "sym", "her", "pos"):
        assert np.isnan(linalg.solve(a, b, assume_a=kind).eval()).all()
    assert np.isnan(linalg.solve(a * 0, b, assume_a="tridiagonal").eval()).all()
    assert np.isnan(linalg.lu_solve((factors, pivots), b).eval()).all()
    assert [x.eval().tolist() for x in (linalg.det(a), *linalg.slogdet(a))] == [0, 0, -np.inf]
    large = np.diag([1e200, 1e200, -1e200])
    close(linalg.slogdet(large)[1].eval(), np.array(600 * np.log(10)))


@pytest.mark.parametrize("mode", ["FAST_RUN", "C"])
def test_multiples_of_a_row_leave_no_remainder(mode):
    """Factors are quotients, and products are rounded before they are subtracted."""
    x = pt.dtensor3()
    f = compiled(mode, [x], [linalg.det(x), linalg.solve(x, x[:, 0], b_ndim=1)])
    given = np.array([[[3, 3], [1, 1]], [[49, 49], [49, 49]], [[0, 0], [1e-310, 1e-310]]] * 3)
    for values in (given, given[:1], given[1:2], given[2:3]):
        det, solution = f(values)
        assert not det.any() and np.isnan(solution).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_single_matrix_has_the_bits_that_it_has_in_a_batch(dtype):
    """One is computed in packs of rows, many in a lane each; right sides likewise."""
    xs = [pt.tensor(dtype=dtype, shape=(None,) * ndim) for ndim in (2, 3)]
    one, many = (
        phintys.function(
            [x], [linalg.inv(x), linalg.solve(x, x[..., :1]), linalg.lu(x)[2], *linalg.slogdet(x)]
        )
        for x in xs
    )
    for n in (1, 3, 5, 8, 9, 17, 24):
        a = np.random.default_rng(n).normal(size=(19, n, n)).astype(dtype)
        a[3, 0, 0] = np.nan if n > 1 else 1
        found = many(a)
        for k, item in enumerate(a):
            assert [y.tobytes() for y in one(item)[:3]] == [y[k].tobytes() for y in found[:3]]
        inverse, _, _, sign, logarithm = found
        good = np.arange(19) != 3
        expected = np.linalg.slogdet(a[good])
        np.testing.assert_allclose(logarithm[good], expected[1], rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(sign[good], expected[0])
        residual = np.abs(a[good] @ inverse[good] - np.eye(n)).max((1, 2))
        bound = np.finfo(dtype).eps * 4 * n * np.linalg.cond(a[good])
        assert (residual < bound).all()


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "JAX"])
def test_wrong_values_of_pivots(mode):
    """They are refused before memory is read at them."""
    p, a = pt.lvector(), np.eye(3)
    diagonals = np.zeros(2), np.ones(3), np.zeros(2), np.zeros(1)
    for out in (
        linalg.pivot_to_permutation(p), linalg.lu_solve((a, p), a[0]),
        linalg.tridiagonal_lu_solve((*diagonals, p), a[0], b_ndim=1),
    ):  # fmt: skip
        f = compiled(mode, [p], out)
        assert f([0, 1, 2]).shape == (3,)
        for wrong in ([0, 1, 3], [-1, 1, 2], [10**9, 0, 0]):
            with pytest.raises(ValueError, match=r"[Pp]ivot"):
                f(wrong)


def test_wrong_shapes_and_arguments():
    x = pt.dmatrix()
    rectangle = np.ones((2, 3))
    for f in (linalg.inv, linalg.det, linalg.slogdet, linalg.lu_factor):
        with pytest.raises(ShapeError, match="square"):
            f(rectangle)
        with pytest.raises(ValueError, match="at least 2 dimensions"):
            f(pt.dvector())
    with pytest.raises(ShapeError, match="do not fit"):
        evaluate(linalg.solve(x, np.ones(3), assume_a="diagonal"), [x], [np.eye(2)])
    with pytest.raises(ShapeError, match="do not fit"):
        linalg.lu_solve((np.eye(3), [0, 1]), np.ones(3))
    with pytest.raises(ShapeError, match="diagonals"):
        linalg.LUFactorTridiagonal()(pt.ones(3), pt.ones(3), pt.ones(2))
    with pytest.raises(ValueError, match="assume_a is one of"):
        linalg.solve(x, x, assume_a="round")
    with pytest.raises(ValueError, match="exclude"):
        linalg.lu(x, permute_l=True, p_indices=True)
    with pytest.raises(TypeError, match="vector of integers"):
        linalg.PivotToPermutations()(pt.dvector())
    with pytest.raises(TypeError, match="takes vectors"):
        linalg.LUFactorTridiagonal()(x, x, x)


# ------------------------------------------------------------------------- derivatives


def test_derivatives_over_batches():
    """Those of single matrices are tested with every op, in tests/gradient."""
    a, b = regular((2, 3, 3)), random((3, 2), seed=1)
    check_derivatives(lambda a, b: linalg.solve(a, b, b_ndim=2), [a, b])
    check_derivatives(lambda a: linalg.inv(a) * linalg.slogdet(a)[1][:, None, None], [a])
    check_derivatives(lambda a: linalg.lu(a)[2] + linalg.lu(a)[1], [a])
    check_batched(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), [a[0], b])


@pytest.mark.needs("jax")
def test_gradients_of_unknown_shapes_are_native_and_run_on_jax():
    a, b = pt.dmatrix("a"), pt.dvector("b")
    out = linalg.solve(a, b).sum() + linalg.slogdet(a)[1] + linalg.inv(a).sum()
    g = phintys.grad(out, a)
    f = phintys.function([a, b], g)
    assert not [step for step in f.program.steps if isinstance(step, Python)]
    given = regular((3, 3)), np.arange(3.0)
    close(phintys.function([a, b], g, mode="JAX")(*given), f(*given))


def test_the_gradient_of_the_logarithm_of_a_determinant():
    """It does not overflow, in batches either; singular matrices have none."""
    x = pt.dtensor3()
    f = phintys.function([x], phintys.grad(pt.log(linalg.det(x)).sum(), x))
    large = np.array([np.eye(200) * 1e9, np.eye(200) * 1e-9])
    np.testing.assert_allclose(f(large), np.linalg.inv(large), atol=1e-12)
    assert not np.isfinite(f(np.ones((1, 2, 2)))).any()
    with pytest.raises(TypeError, match="a bool"):
        linalg.SingularCofactors()(pt.dmatrix(), 1.0)


# ------------------------------------------------------------------------------- ops


def test_ops_are_those_of_the_older_systems():
    a, b = pt.dmatrix(), pt.dvector()
    for out, core in (
        (linalg.solve(a, b, assume_a="symmetric"), linalg.Solve(assume_a="sym", b_ndim=1)),
        (linalg.inv(a), linalg.MatrixInverse()), (linalg.det(a), linalg.Det()),
        (linalg.lu_factor(a)[0], linalg.LUFactor()), (linalg.lu(a)[0], linalg.LU()),
        (linalg.cho_solve((a, True), b), linalg.CholeskySolve(lower=True, b_ndim=1)),
    ):  # fmt: skip
        assert isinstance(out.owner.op, Blockwise)
        assert out.owner.op.core_op == core
    inplace = linalg.Solve(b_ndim=1).inplace_on_inputs([0, 1])
    assert inplace == linalg.Solve(b_ndim=1, overwrite_a=True, overwrite_b=True)
    assert linalg.LUSolve(b_ndim=1).inplace_on_inputs([2]).destroy_map == {0: [2]}
    assert linalg.CholeskySolve(b_ndim=1).inplace_on_inputs([1]).destroy_map == {0: [1]}
    assert linalg.LUFactor().inplace_on_inputs([0]).destroy_map == {0: [0]}
    found = linalg.LUFactorTridiagonal().inplace_on_inputs([1])
    assert found == linalg.LUFactorTridiagonal(overwrite_d=True)
    found = linalg.SolveLUFactorTridiagonal(1, True).inplace_on_inputs([5])
    assert found.destroy_map == {0: [5]}


def test_ops_of_tensors():
    a, b = np.random.default_rng(2).normal(size=(2, 3, 6)), np.arange(6.0).reshape((2, 3))
    x, y = pt.dtensor3("x"), pt.dmatrix("y")
    inverse, solution = linalg.TensorInv(ind=2)(x), linalg.TensorSolve()(x, y)
    assert (type(inverse.owner.op), type(solution.owner.op)) == (
        linalg.TensorInv,
        linalg.TensorSolve,
    )
    for mode in ("FAST_COMPILE", "FAST_RUN"):
        found = phintys.function([x, y], [inverse, solution], mode=mode)(a, b)
        np.testing.assert_allclose(found[0], np.linalg.tensorinv(a), rtol=1e-10)
        np.testing.assert_allclose(found[1], np.linalg.tensorsolve(a, b), rtol=1e-10)
    moved = linalg.TensorSolve(axes=(1,))(x.transpose((0, 2, 1)), y)
    expected = np.linalg.tensorsolve(a.transpose((0, 2, 1)), b, axes=(1,))
    np.testing.assert_allclose(moved.eval({x: a, y: b}), expected, rtol=1e-10)
    assert linalg.TensorInv(1) != linalg.TensorInv(2)
