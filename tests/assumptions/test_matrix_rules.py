"""Rules for matrices in whole functions: singular and infinite matrices, batches, dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.assumptions import assume
from phintys.graph.traversal import apply_ancestors
from phintys.rewriting import rewrite_graph
from phintys.tensor.rules import RULES
from phintys.tensor.rules.matrices import core_op

A, B = pt.dmatrices("A", "B")
K = pt.dtensor3("K")
d, b = pt.dvectors("d", "b")
linalg = pt.linalg
POSITIVE = assume(A, positive_definite=True)
ORTHOGONAL = assume(A, orthogonal=True)


def ops(*outputs):
    """The names of the ops on matrices in what FAST_RUN makes of expressions."""
    found = rewrite_graph(list(outputs), include=("fast_run",), clone=True)
    names = {type(core_op(v)).__name__ for n in apply_ancestors(found) for v in n.outputs}
    return names & {
        *("Cholesky", "CholeskySolve", "Det", "Dot", "Dot22", "Eye", "LUFactor", "LUSolve"),
        *("MatrixInverse", "SLogDet", "Solve", "SolveTriangular", "Gemv", "BlockDiagonal"),
        *("KroneckerProduct", "AdvancedIncSubtensor", "DimShuffle"),
        *("SVD", "Eig", "Eigh", "QR", "LU"),
    }


#: expressions, and the ops on matrices that are left
LEFT = {
    "solve of positive definite": (linalg.solve(POSITIVE, b), {"Solve"}),
    "solve of triangle": (linalg.solve(pt.tril(A), b), {"SolveTriangular", "DimShuffle"}),
    "solve of diagonal": (linalg.solve(pt.diag(d), b), {"DimShuffle"}),
    "solve of orthogonal": (linalg.solve(ORTHOGONAL, b), {"Gemv", "Dot", "DimShuffle"}),
    "quotient of factors": (
        linalg.solve(linalg.cholesky(A), b),
        {"Cholesky", "SolveTriangular"},
    ),
    "inverse of inverse": (linalg.inv(linalg.inv(A)), set()),
    "inverse times vector": (linalg.inv(A) @ b, {"Solve"}),
    "vector times inverse": (b @ linalg.inv(A), {"Solve", "DimShuffle"}),
    "inverse of orthogonal": (linalg.inv(ORTHOGONAL), {"DimShuffle"}),
    "determinant of factor": (linalg.det(linalg.cholesky(A)), {"Cholesky"}),
    "determinant of product": (
        linalg.det(linalg.cholesky(A) @ linalg.cholesky(A).T),
        {"Cholesky"},
    ),
    "logarithm of determinant": (pt.log(linalg.det(A)), {"SLogDet"}),
    "factor of product": (
        linalg.cholesky(linalg.cholesky(A) @ linalg.cholesky(A).T),
        {"Cholesky"},
    ),
    "two systems": (linalg.solve(A, b) + linalg.solve(A.T, d), {"LUFactor", "LUSolve"}),
    "singular values only": (linalg.svd(A)[1], {"SVD"}),
    "eigenvectors": (linalg.eigh(A)[1].T @ linalg.eigh(A)[1], {"Eye"}),
    "orthogonal factor": (linalg.solve(linalg.qr(A)[0], b), {"QR", "Gemv", "Dot", "DimShuffle"}),
    "eye @ x": (pt.eye(A.shape[0]) @ A, set()),
    "symmetric.T": (assume(A, symmetric=True).T, set()),
}


#: PyTensor's rewrites of linear algebra that are tags of rules here, whose laws are tested
NAMES = """
block_diag_solve_to_block_diag_solves cholesky_ldotlt cholesky_of_diag det_of_blockdiag
det_of_factorized_matrix det_of_inv det_of_kronecker det_of_triangular diag_of_blockdiag
diag_of_kronecker diagonal_solve_to_division dot_diag_to_elemwise eigh_of_diag
eigvalsh_of_diag expm_of_diag extract_diag_of_transpose fuse_blockdiagonal
generic_solve_to_structured_form inv_of_diag_to_diag_reciprocal inv_of_inv
inv_of_orthogonal_to_transpose inv_to_solve kron_of_diagonal_to_diagonal
local_block_diag_dot_to_dot_block_diag local_drain_specify_assumptions lu_factor_of_diag lu_of_diag
orthogonal_dot_transpose_to_eye orthogonal_solve_to_transpose_matmul psd_solve_to_chol_solve
qr_of_diag reuse_decomposition_multiple_solves scalar_solve_to_division selection_dot_to_indexing
slogdet_specialization solve_of_inv_to_matmul svd_of_structured svd_uv_merge transpose_of_inv
useless_symmetric_transpose
"""


def test_rules_have_the_names_of_rewrites():
    tags = {tag for rule in RULES for tag in rule.tags}
    assert set(NAMES.split()) <= tags


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left(name):
    expression, expected = LEFT[name]
    found = ops(expression)
    assert found <= expected, found


def test_singular_matrices_are_singular_still():
    """Where the solver returns NaN or an infinite determinant, so does what replaces it."""
    exprs = [
        linalg.solve(pt.diag(d), b),
        linalg.solve(pt.diag(d), pt.eye(3)),
        linalg.solve_triangular(pt.diag(d), b),
        linalg.cholesky(pt.diag(d)),
        linalg.solve(pt.tril(A) * pt.diag(d), b),
        linalg.slogdet(pt.diag(d))[1],
        linalg.slogdet(pt.diag(d))[0],
        linalg.det(pt.diag(d)),
        pt.log(linalg.det(pt.diag(d) + A * 0)),
        linalg.cholesky(pt.diag(d) @ pt.diag(d).T),
        linalg.inv(pt.diag(d) + A * 0) @ b,
    ]
    run, reference = (
        phintys.function([A, d, b], exprs[: len(exprs) - skip], mode=mode, on_unused_input="ignore")
        for mode, skip in (("FAST_RUN", 0), (plain_mode(), 1))
    )
    given = np.arange(9.0).reshape(3, 3) + np.eye(3), np.array([2.0, 0.0, 1.0]), np.ones(3)
    with np.errstate(all="ignore"):
        found, expected = run(*given), reference(*given)
    assert np.isnan(found[-1]).all()
    for x, y, e in zip(found, expected, exprs):
        np.testing.assert_allclose(x, y, err_msg=str(e))


def plain_mode():
    """The reference, without rewrites."""
    from phintys.compile.mode import Mode

    return Mode(linker="py", optimizer=None)


def test_batches_and_dtypes():
    """Batches of one operand repeat the other; dtypes are those of the ops that are replaced."""
    f = pt.fmatrix("f")
    i = pt.lvector("i")
    square, low = assume(f, square=True), pt.cast(i[:, None] * i, "int8")
    short = low + 100 * pt.eye(3, dtype="int8")
    exprs = [
        linalg.solve(pt.diag(d), K[:, :3]),
        linalg.solve(pt.alloc_diag(K[:, 0, :3], 0, 1, 2), A),
        linalg.solve(pt.tril(K[:, :3, :3]), b),
        linalg.inv(K[:, :3, :3]) @ A,
        A @ linalg.inv(K[:, :3, :3]),
        linalg.det(pt.triu(K[:, :3, :3])),
        linalg.kron(pt.diag(d), pt.diag(b)) @ linalg.kron(A, A),
        linalg.solve(pt.diag(i + 1), f),
        linalg.inv(pt.diag(i + 1)),
        linalg.cholesky(pt.diag(i + 1)),
        pt.diag(i) @ f,
        linalg.det(pt.diag(i + 1)),
        linalg.slogdet(pt.alloc_diag(K[:, 0, :3], 0, 1, 2))[1],
        pt.eye(3)[i] @ f,
        linalg.det(pt.zeros(A.shape)[pt.arange(A.shape[0]), pt.arange(A.shape[0])].set(d[0][None])),
        linalg.inv(linalg.block_diag(square, A)),
        linalg.solve(linalg.block_diag(square, A), pt.concatenate([f, f])),
        linalg.det(linalg.kron(square, A[:2, :2])),
        linalg.slogdet(linalg.block_diag(square, A[:2, :2]))[1],
        linalg.block_diag(square, pt.diag(i)) @ pt.concatenate([f, f]),
        linalg.block_diag(short, pt.diag(i)) @ pt.concatenate([short, short]),
        pt.concatenate([short, short]).T @ linalg.block_diag(short, pt.diag(i)),
        linalg.solve(linalg.inv(short), short),
        pt.set_subtensor(pt.zeros((3, 3), dtype="int64")[pt.arange(3), pt.arange(3)], short[0])
        @ short,
        linalg.cholesky(pt.tril(low) @ pt.tril(low).T),
    ]
    rng = np.random.default_rng(1)
    given = [
        *(rng.normal(size=(3, 3)), rng.normal(size=(2, 4, 3)), rng.normal(size=3)),
        *(rng.normal(size=3), rng.normal(size=(3, 3)).astype("float32"), np.array([0, 2, 1])),
    ]
    variables = [A, K, d, b, f, i]
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        found = phintys.function(variables, exprs, mode=mode)(*given)
        expected = phintys.function(variables, exprs, mode=plain_mode())(*given)
        for x, y, e in zip(found, expected, exprs):
            assert x.dtype == y.dtype and x.shape == y.shape, e
            eps = np.finfo(x.dtype).eps if x.dtype.kind == "f" else 0
            np.testing.assert_allclose(x, y, rtol=1e3 * eps, atol=1e2 * eps, err_msg=str(e))


def test_determinants_do_not_overflow():
    """Where the logarithm, or the determinant itself, is a number."""
    x = assume(A, square=True)
    exprs = [
        linalg.det(linalg.kron(x[:20, :20], x[:20, :20] / A[0, 0] ** 2)),
        pt.log(abs(linalg.det(pt.tril(A)))),
        pt.log(linalg.det(linalg.block_diag(x, x))),
    ]
    found = phintys.function([A], exprs)(np.eye(200) * 100)
    size = 200 * np.log(100)
    np.testing.assert_allclose(found, [1, size, 2 * size], rtol=1e-12)


def test_decompositions_of_diagonals():
    """Values in the order of the decompositions; factors whose product is the matrix."""
    x = pt.alloc_diag(A, 0, 1, 2)
    w, v = linalg.eigh(x)
    u, s, vt = linalg.svd(x)
    q, r = linalg.qr(x)
    p, low, up = linalg.lu(x)
    rows, low2, up2 = linalg.lu(x, p_indices=True)
    factors, pivots = linalg.lu_factor(x)
    products = [(v * w[:, None]) @ v.mT, (u * s[:, None]) @ vt, q @ r, p @ low @ up, low2 @ up2]
    exprs = [*products, w, s, linalg.eigvalsh(x), factors, rows, pivots, u @ u.mT, v.mT @ v]
    value = np.array([[3.0, -2.0, 0.0], [1.0, 1.0, -5.0]])
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        found = phintys.function([A], exprs, mode=mode)(value)
        expected = phintys.function([A], exprs, mode=plain_mode())(value)
        for x, y, e in zip(found, expected, exprs):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12, err_msg=str(e))


def test_complex_matrices():
    """Rules for real matrices leave complex ones alone."""
    z, c = pt.zmatrix("z"), pt.zvector("c")
    exprs = [
        linalg.solve(pt.diag(c), z),
        linalg.solve(pt.diag(c), z, assume_a="her"),
        linalg.inv(pt.diag(c)),
        linalg.cholesky(pt.diag(c)),
        linalg.solve(assume(z @ pt.conj(z.T) + pt.eye(3), positive_definite=True), c),
        assume(z @ pt.conj(z.T) + pt.eye(3), positive_definite=True).T,
        linalg.slogdet(pt.tril(z))[0],
        linalg.det(pt.tril(z)),
        linalg.inv(z) @ c,
        linalg.solve(z, c) + linalg.solve(pt.conj(z.T), c),
        linalg.solve(pt.diag(c), c, assume_a="her"),
        *linalg.lu(pt.diag(c)),
        linalg.det(linalg.kron(assume(z, square=True), pt.diag(c))),
    ]
    rng = np.random.default_rng(2)
    value = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    given = value, np.array([1 + 0j, 2 + 1j, 3])
    found = phintys.function([z, c], exprs)(*given)
    expected = phintys.function([z, c], exprs, mode=plain_mode())(*given)
    for x, y, e in zip(found, expected, exprs):
        np.testing.assert_allclose(x, y, rtol=1e-9, err_msg=str(e))


def test_lengths_of_one_do_not_broadcast():
    """A product with a matrix of one row and column is an error where lengths differ."""
    one = pt.tensor("one", shape=(1,), dtype="float64")
    for e in (pt.diag(one) @ A, linalg.solve(pt.diag(one), A), A @ pt.diag(d)):
        inputs = [
            v for v in (one, A, d) if v in {x for n in apply_ancestors([e]) for x in n.inputs}
        ]
        f = phintys.function(inputs, e)
        values = {one: np.ones(1), A: np.ones((3, 3)), d: np.ones(1)}
        with pytest.raises(ValueError):
            f(*[values[v] for v in inputs])


def test_inverses_of_matrices_that_are_not_square():
    """They are errors, also where no inverse is computed."""
    for e in (linalg.inv(linalg.inv(A)), linalg.solve(linalg.inv(A), b)):
        f = phintys.function([A, b], e, on_unused_input="ignore")
        with pytest.raises(ValueError, match=r"shape|length|square"):
            f(np.ones((2, 3)), np.ones(3))


def test_gradients_use_what_is_known():
    """The derivative of log(det(x)) of a definite matrix needs no determinant."""
    x = linalg.cholesky(A)
    gradient = phintys.grad(pt.log(linalg.det(x @ x.T)), A)
    assert "Det" not in ops(gradient)
    f = phintys.function([A], gradient)
    value = np.array([[2.0, 0.5], [0.5, 1.0]])
    found = f(value)
    np.testing.assert_allclose(
        found + found.T - np.diag(np.diag(found)),
        np.linalg.inv(value) * 2 - np.diag(np.diag(np.linalg.inv(value))),
        rtol=1e-9,
    )
