"""QR, singular values, eigenvalues: values, failures, derivatives, batches, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from tiers import cheap, few

import phintys
import phintys.tensor as pt
from phintys.errors import NullTypeGradError, ShapeError
from phintys.lowering.program import External, Python
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.linalg import (
    QR,
    QZ,
    SVD,
    Eig,
    Eigh,
    Eigvalsh,
    Schur,
    eig,
    eigh,
    eigvalsh,
    ordqz,
    qr,
    qz,
    schur,
    svd,
)

#: Numba computes the column "decompositions" of the matrix: it compiles for seconds
BACKENDS = ("FAST_RUN", "C", "JAX")
DTYPES = ("float32", "float64", "complex64", "complex128")
CELLS = [(m, d) for m in BACKENDS for d in (DTYPES if m == "FAST_RUN" else DTYPES[1:3])]
SHAPES = [(4, 3), (3, 4), (3, 3), (1, 1), (0, 2), (2, 0), (70, 60)]
TOLERANCE = {"float32": 1e-3, "complex64": 1e-3}


def random(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


def listed(found):
    return list(found) if isinstance(found, list | tuple) else [found]


def compiled(mode, build, *inputs):
    return phintys.function(inputs, build(*inputs), mode=mode)


def alike(found, expected):
    for f, e in zip(found, expected, strict=True):
        tolerance = TOLERANCE.get(e.dtype.name, 1e-9)
        assert f.dtype == e.dtype
        assert f.shape == e.shape
        np.testing.assert_allclose(f, e, rtol=tolerance, atol=tolerance)


def spoiled(x):
    """A batch whose second matrix has a NaN, or an infinity, that every op reads."""
    found = x.copy()
    if found.size:
        found[1, 0, 0] = np.nan if len(x) % 2 else np.inf
    return found


# ----------------------------------------------------------------------------- values


def all_of_any_shape(x):
    """Every mode of the decompositions of any matrices; of other dtypes, one of each."""
    if x.type.dtype in ("float32", "complex128"):
        return [*qr(x, pivoting=True), *svd(x, False)]
    found = []
    for mode, pivoting in (("full", False), ("economic", True), ("r", False), ("raw", True)):
        found += listed(qr(x, mode, pivoting=pivoting))
    return [*found, *svd(x), *svd(x, full_matrices=False), svd(x, compute_uv=False)]


@pytest.mark.parametrize(("mode", "dtype"), cheap(CELLS))
def test_backends_agree(dtype, mode):
    """With `perform`, which the other tests compare with SciPy."""
    x = pt.tensor(dtype=dtype, shape=(None, None, None))
    f, reference = (compiled(m, all_of_any_shape, x) for m in (mode, "PY"))
    for m, n in SHAPES if mode != "JAX" else SHAPES[1:5:3]:
        value = random((3, m, n), dtype)
        alike(f(value), reference(value))
        alike(f(value[:0]), reference(value[:0]))
        expected = reference(spoiled(value))
        alike(f(spoiled(value)), expected)
        if value.size:
            assert all(np.isnan(y[1]).all() for y in expected if y.dtype.kind != "i" and y[1].size)
            alike([y[::2] for y in expected], [y[::2] for y in reference(value)])


def hermitian_values(x, b):
    found = []
    for lower in (True, False):
        for pair in (None, b):
            found += [*eigh(x, pair, lower), eigvalsh(x, pair, lower)]
    return [*found, *eig(x)]


@pytest.mark.parametrize(("mode", "dtype"), cheap(CELLS))
def test_backends_agree_on_eigenvalues(dtype, mode):
    """Only one triangle is read; matrices that are not positive definite give NaN."""
    x, b = (pt.tensor(dtype=dtype, shape=(None,) * k) for k in (3, 2))
    f, reference = (compiled(m, hermitian_values, x, b) for m in (mode, "PY"))
    for n in (0, 1, 3, 40) if mode != "JAX" else (3,):
        value, other = random((3, n, n), dtype), random((n, n), dtype, 1)
        other = (other @ other.conj().T + n * np.eye(n)).astype(dtype)
        found, expected = f(value, other), reference(value, other)
        kept = range(len(found) if mode != "JAX" else 12)  # `eig` has phases of its own
        alike([found[k] for k in kept], [expected[k] for k in kept])
        for lower, at in ((True, 0), (False, 6)):
            check_eigenvalues(value, np.eye(n), lower, expected[at : at + 3])
            check_eigenvalues(value, other, lower, expected[at + 3 : at + 6])
        if n > 1:
            found, expected = (g(spoiled(value), -other) for g in (f, reference))
            alike([found[k] for k in kept], [expected[k] for k in kept])
            assert np.isnan(f(value, -other)[3]).all()


def check_eigenvalues(x, b, lower, found):
    part = np.tril(x, -1) if lower else np.triu(x, 1)
    full = part + part.conj().swapaxes(1, 2) + np.eye(x.shape[1]) * x.real
    w = found[0]
    for k, item in enumerate(full):
        expected = scipy.linalg.eigh(item, b, eigvals_only=True) if item.size else w[k]
        np.testing.assert_allclose(w[k], expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found[-1], w, rtol=1e-3, atol=1e-3)
    if len(found) == 3 and found[1].ndim == 3:
        v = found[1]
        np.testing.assert_allclose(full @ v, b @ v * w[:, None], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors(shape):
    """As SciPy has them; their products are the matrix."""
    x = random(shape, "complex128")
    for mode in ("full", "economic"):
        q, r, order = (y.eval() for y in qr(x, mode, pivoting=True))
        np.testing.assert_allclose(q @ r, x[:, order], atol=1e-12)
        np.testing.assert_allclose(q.conj().T @ q, np.eye(q.shape[1]), atol=1e-12)
        if x.size:
            alike((q, r, order), scipy.linalg.qr(x, mode=mode, pivoting=True))
            alike([y.eval() for y in qr(x, mode)], scipy.linalg.qr(x, mode=mode))
    for full in (True, False):
        u, s, vt = (y.eval() for y in svd(x, full))
        k = len(s)
        np.testing.assert_allclose((u[:, :k] * s) @ vt[:k], x, atol=1e-12)
        np.testing.assert_allclose(vt @ vt.conj().T, np.eye(len(vt)), atol=1e-12)
        if x.size:
            alike([s], [np.linalg.svd(x, compute_uv=False)])
    if x.size:
        (h, tau), r = scipy.linalg.qr(x, mode="raw")
        alike([y.eval() for y in qr(x, "raw")], (h, tau, r))
        alike([qr(x, "r").eval()], scipy.linalg.qr(x, mode="r"))


def test_eigenvalues_of_any_matrix():
    for dtype in ("float64", "complex128"):
        x = random((2, 4, 4), dtype)
        w, v = (y.eval() for y in eig(x))
        np.testing.assert_allclose(x @ v, v * w[:, None], atol=1e-12)
        alike([np.sort(w)], [np.sort(np.linalg.eigvals(x).astype("complex128"))])
        x[0, 1, 2] = np.inf
        w, v = (y.eval() for y in eig(x))
        assert np.isnan(w[0].imag).all()
        assert np.isnan(v[0].real).all()
        assert not np.isnan(v[1]).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_schur_forms(dtype):
    """Products are the matrices; chosen eigenvalues come first."""
    x, y = (pt.tensor(dtype=dtype, shape=(None,) * 3) for _ in "ab")
    kinds = [(output, sort) for output in ("real", "complex") for sort in (None, "lhp", "ouc")]
    outputs = [[*schur(x, *k), *ordqz(x, y, k[1], k[0]), *qz(x, y, *k)] for k in kinds]
    f = compiled("PY", lambda *_: [z for given in outputs for z in given], x, y)
    for n in (0, 1, 4):
        a, b = random((2, n, n), dtype), random((2, n, n), dtype, 1)
        found = f(a, b)
        for k, (output, sort) in enumerate(kinds):
            t, z, aa, bb, alpha, beta, *others = found[k * 12 : k * 12 + 12]
            assert (t.dtype.kind == "c") is (output == "complex" or "complex" in dtype)
            triples = [(z, t, z, a), (others[0], aa, others[1], a), (others[0], bb, others[1], b)]
            triples += [(others[4], others[2], others[5], a), (others[4], others[3], others[5], b)]
            for left, middle, right, whole in triples:
                product = left @ middle @ right.conj().swapaxes(1, 2)
                np.testing.assert_allclose(product, whole, atol=1e-4)
            for w in (t.diagonal(0, 1, 2), alpha / beta) if sort and t.dtype.kind == "c" else ():
                chosen = w.real < 0 if sort == "lhp" else np.abs(w) > 1
                assert (np.diff(chosen.astype(int)) <= 0).all()
    a[1, 0, 0] = np.inf
    for found in f(a, b):
        assert np.isnan(found[1]).all()
        assert not np.isnan(found[0]).any()


def test_repeated_and_zero_values():
    """Singular, diagonal and repeated values are decomposed like others."""
    for x in (np.zeros((3, 3)), np.eye(3), np.diag([2.0, 2, 1]), np.ones((3, 3))):
        u, s, vt = (y.eval() for y in svd(x))
        np.testing.assert_allclose((u * s) @ vt, x, atol=1e-12)
        w, v = (y.eval() for y in eigh(x))
        np.testing.assert_allclose((v * w) @ v.T, x, atol=1e-12)
        q, r = (y.eval() for y in qr(x))
        np.testing.assert_allclose(q @ r, x, atol=1e-12)


def test_dtypes_and_layouts():
    for dtype, expected in {"int8": "float32", "int64": "float64", "float16": "float32"}.items():
        x = pt.matrix(dtype=dtype)
        outputs = [*qr(x), *svd(x), *eigh(x), eigvalsh(x)]
        assert {o.type.dtype for o in outputs} == {expected}
        assert eig(x)[0].type.dtype == {"float32": "complex64"}.get(expected, "complex128")
    assert [o.type.dtype for o in svd(pt.cmatrix())] == ["complex64", "float32", "complex64"]
    assert qr(pt.dmatrix(), pivoting=True)[2].type.dtype == "int32"
    assert eigh(pt.fmatrix(), pt.zmatrix())[0].type.dtype == "float64"
    x = pt.lmatrix()
    views = [x[::2, ::2], x.T[:4, 1:], x[::-1]]
    f = phintys.function([x], [y for v in views for y in (svd(v, False)[1], qr(v, "r"))])
    value = random((9, 6)).round(1) * 10
    value = value.astype(int)
    for k, v in enumerate((value[::2, ::2], value.T[:4, 1:], value[::-1])):
        alike(f(value)[2 * k : 2 * k + 1], [np.linalg.svd(v, compute_uv=False)])
        alike(f(value)[2 * k + 1 : 2 * k + 2], scipy.linalg.qr(v * 1.0, mode="r"))


def test_pairs_broadcast():
    x, b = random((2, 1, 3, 3)), np.eye(3) * np.arange(1.0, 5.0).reshape(4, 1, 1)
    p, q = pt.tensor(dtype="float64", shape=(None, 1, 3, 3)), pt.dtensor3()
    found = phintys.function([p, q], eigvalsh(p, q))(x, b)
    expected = np.linalg.eigvalsh(x) / np.arange(1.0, 5.0)[:, None]
    alike([found], [expected])


@pytest.mark.parametrize("mode", BACKENDS[:2])
def test_no_python_on_the_way(mode):
    x = pt.dtensor3()
    f = compiled(mode, lambda x: [*qr(x, pivoting=True), *svd(x), *eigh(x), eigvalsh(x)], x)
    kinds = [type(step) for step in f.program.steps]
    assert kinds.count(External) == 4
    assert Python not in kinds


def test_wrong_arguments():
    x = pt.dmatrix()
    for wrong in (
        lambda: qr(x, "other"),
        lambda: eigh(x, driver="ev"),
        lambda: eigh(x, UPLO="X"),
        lambda: svd(pt.dvector()),
        lambda: schur(x, "other"),
        lambda: qz(x, x, sort="other"),
    ):
        with pytest.raises(ValueError):
            wrong()
    for op in (eigh, eigvalsh, eig, schur):
        with pytest.raises(ShapeError, match="square"):
            listed(op(pt.ones((2, 3))))
        with pytest.raises(ShapeError, match="square"):
            phintys.function([x], op(x))(np.ones((2, 3)))
    with pytest.raises(ShapeError, match="differ"):
        eigh(pt.ones((2, 2)), pt.ones((3, 3)))
    with pytest.raises(TypeError, match="takes matrices"):
        QR()(pt.dtensor3())


# ------------------------------------------------------------------------- derivatives
# tests/gradient/test_every_op.py checks the ops at some shapes; here are the others


def derivative_at(build, value):
    """The derivative of a sum of the results, against differences."""
    x = pt.tensor(dtype=value.dtype.name, shape=(None,) * value.ndim)
    total = sum((pt.real(y) ** 2 * pt.arange(1.0, y.shape[-1] + 1)).sum() for y in listed(build(x)))
    f = phintys.function([x], [total, phintys.grad(total, x)])
    step, h = random(value.shape, value.dtype.name, 3), 1e-6
    expected = (f(value + h * step)[0] - f(value - h * step)[0]) / (2 * h)
    np.testing.assert_allclose(np.vdot(f(value)[1], step).real, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", few([(3, 5), (5, 3), (2, 3, 3)], (2, 3, 3)), ids=str)
def test_derivatives(shape):
    x = random(shape)
    derivative_at(lambda x: qr(x, "economic"), x)
    derivative_at(lambda x: [qr(x, "r"), qr(x, "full", pivoting=True)[1]], x)
    derivative_at(lambda x: qr(x, "r", pivoting=True)[0], random(shape, "complex128"))
    derivative_at(lambda x: svd(x, False), x)
    derivative_at(lambda x: svd(x)[1], x)
    if shape[-1] == shape[-2]:
        derivative_at(lambda x: [*svd(x), *qr(x, "full"), eigvalsh(x), *eigh(x, lower=False)], x)
        derivative_at(lambda x: [eig(x)[0]], x)


def test_results_without_derivative():
    """Vectors that complete a basis are arbitrary: an error, when the graph is built or run."""
    for name, build, shape in (
        ("qr", lambda x: qr(x)[0], (5, 3)),
        ("svd", lambda x: svd(x)[0], (5, 3)),
        ("svd", lambda x: svd(x)[2], (3, 5)),
    ):
        x, y = pt.tensor(dtype="float64", shape=shape), pt.dmatrix()
        with pytest.raises(NullTypeGradError, match="arbitrary"):
            phintys.grad(build(x).sum(), x)
        with pytest.raises(NullTypeGradError, match="arbitrary"):
            phintys.pushforward(build(x), x, x)
        told = r"QR\{.*more rows than columns.*'economic'" if name == "qr" else None
        with pytest.raises(ShapeError, match=told):
            phintys.function([y], phintys.grad(build(y).sum(), y))(random(shape))
        with pytest.raises(ShapeError, match=told):
            phintys.function([y], phintys.pushforward(build(y), y, y))(random(shape))
    with pytest.raises(NullTypeGradError, match="Reflectors"):
        phintys.grad(qr(y, "raw")[0].sum(), y)


def test_singular_points():
    """A square singular matrix has derivatives of its singular values and vectors."""
    x = pt.dmatrix()
    value = np.diag([2.0, 1.0, 0.0])
    total = svd(x, False)[0][0].sum()
    assert np.isfinite(phintys.function([x], phintys.grad(total, x))(value)).all()
    w = eigvalsh(x).sum()  # repeated
    np.testing.assert_allclose(phintys.function([x], phintys.grad(w, x))(np.eye(3)), np.eye(3))


# -------------------------------------------------------------------------------- ops


def test_ops_are_those_of_the_older_system():
    x = pt.dmatrix()
    op = qr(x, "reduced", pivoting=True)[0].owner.op
    assert isinstance(op, Blockwise)
    assert op.core_op == QR("economic", pivoting=True)
    assert op.signature == "(m,n)->(m,k),(k,n),(n)"
    assert svd(x)[0].owner.op.signature == "(m,n)->(m,m),(k),(n,n)"
    assert svd(x, compute_uv=False).owner.op.core_op == SVD(compute_uv=False)
    assert eigh(x)[0].owner.op.core_op == Eigh()
    assert eigh(x, x)[0].owner.op.core_op == Eigh(driver="evd")
    assert eigh(x, x, UPLO="U")[0].owner.op.signature == "(m,m),(m,m)->(m),(m,m)"
    assert eigvalsh(x).owner.op.core_op == Eigvalsh()
    assert eig(x)[0].owner.op.core_op == Eig()
    assert Eigh().inplace_on_inputs([0, 1]) == Eigh(overwrite_a=True, overwrite_b=True)
    assert SVD().inplace_on_inputs([0]).destroy_map == {0: [0]}
    assert schur(x)[0].owner.op.core_op == Schur()
    assert ordqz(x, x, "lhp")[0].owner.op.core_op == QZ(sort="lhp", return_eigenvalues=True)
    assert QR().inplace_on_inputs([0]) == QR(overwrite_a=True)


def test_functions_of_numpy():
    a = random((4, 3))
    x = pt.dmatrix()
    for call in (
        lambda x: np.linalg.qr(x, "complete"),
        lambda x: np.linalg.qr(x, "raw"),
        lambda x: [np.linalg.qr(x, "r")],
        lambda x: [np.linalg.svd(x, compute_uv=False)],
        lambda x: [np.linalg.eigvalsh(x[:3], "U")],
    ):
        expected = [np.abs(y) for y in call(a)]
        alike([np.abs(y) for y in phintys.function([x], list(call(x)))(a)], expected)
    with pytest.raises(ValueError, match="mode must be"):
        x.__array_namespace__().linalg.qr(x, mode="r")
