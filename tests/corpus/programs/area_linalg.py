"""Products, decompositions, equations, batches."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytensor.tensor.linalg as ptl
from helpers import both, compiled
from pytensor.tensor.blockwise import Blockwise

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]])
B = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5]])
BATCH = np.stack([A, 2 * A + np.eye(3)])


def products():
    M, N, v = pt.dmatrix("M"), pt.dmatrix("N"), pt.dvector("v")
    values = {M: A, N: B, v: [1.0, 2.0, 3.0]}
    for y in (M @ N, pt.dot(M, N), M.dot(v), v @ M, pt.dot(v, v), pt.matmul(M, N), M @ v, N.T @ M):
        yield both(y, values)
    yield lambda: (M @ N.T).eval(values)
    yield lambda: pt.matmul(M, 2.0)
    yield both(pt.dot(M, 2.0), values)
    yield lambda: pt.dot(pt.dtensor3("t"), pt.dvector("w"))


def dtypes_of_products():
    for a, b in (("int8", "int8"), ("int64", "float32"), ("float32", "float64"), ("bool", "bool")):
        x, y = pt.matrix("x", dtype=a), pt.matrix("y", dtype=b)
        yield [lambda x=x, y=y: x @ y, lambda x=x, y=y: pt.dot(x, y)]


def static_shapes_of_products():
    x, y = pt.matrix("x", shape=(2, 3)), pt.matrix("y", shape=(3, None))
    yield [x @ y, pt.dot(x, y), x @ pt.dvector("v"), pt.outer(x[0], y[0]), pt.tensordot(x, y, 1)]
    yield lambda: x @ pt.matrix("z", shape=(4, 2))
    yield lambda: pt.dot(x, pt.matrix("z", shape=(4, 2)))


def batched_products():
    t, M = pt.dtensor3("t"), pt.dmatrix("M")
    values = {t: BATCH, M: A}
    yield both(t @ M, values)
    yield both(pt.matmul(M, t), values)
    yield both(pt.dot(t, M), values)
    yield both(pt.matvec(t, M[0]), values)
    yield both(pt.vecmat(M[0], t), values)
    yield both(pt.vecdot(t, M), values)


def tensordots():
    t, M = pt.dtensor3("t"), pt.dmatrix("M")
    values = {t: BATCH, M: A}
    yield both(pt.tensordot(t, M, axes=1), values)
    yield both(pt.tensordot(t, M, axes=[[1], [0]]), values)
    yield both(pt.tensordot(t, M, axes=[[1, 2], [0, 1]]), values)
    yield both(pt.tensordot(M, M, axes=0), values)
    yield lambda: pt.tensordot(t, M, axes=3)
    yield lambda: pt.tensordot(t, M, axes=[[1], [0, 1]])
    yield lambda: pt.tensordot(t, M, axes=[[5], [0]])


def einsums():
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    values = {x: A, y: B}
    yield both(pt.einsum("ij,jk->ik", x, y), values)
    yield both(pt.einsum("ii", x), values)
    yield both(pt.einsum("ij->ji", x), values)
    yield both(pt.einsum("ij,ij->i", x, x), values)
    yield both(pt.einsum("...j,jk", x, y), values)
    yield lambda: pt.einsum("ij,jk->il", x, y)
    yield lambda: pt.einsum("ijk", x)
    yield lambda: pt.einsum("ij,jk", x)


def inverses_and_determinants():
    M = pt.dmatrix("M")
    values = {M: A}
    for f in (ptl.inv, ptl.pinv, ptl.det, ptl.trace, ptl.matrix_inverse):
        yield both(f(M), values)
    yield [both(y, values) for y in ptl.slogdet(M)]
    yield lambda: ptl.inv(M).eval({M: np.zeros((2, 2))})
    yield lambda: ptl.det(pt.dvector("v"))
    yield lambda: ptl.inv(M).eval({M: B})
    yield lambda: ptl.trace(pt.dvector("v"))


def dtypes_of_linear_algebra():
    for dtype in ("int64", "float32", "complex128"):
        M = pt.matrix("M", dtype=dtype)
        yield [lambda M=M: ptl.inv(M), lambda M=M: ptl.det(M), lambda M=M: ptl.cholesky(M)]
        yield [lambda M=M: ptl.eigh(M)[0], lambda M=M: ptl.eig(M)[0], lambda M=M: ptl.svd(M)[1]]
        yield [lambda M=M: ptl.solve(M, M), lambda M=M: ptl.qr(M)[0], lambda M=M: ptl.expm(M)]


def cholesky_factors():
    M = pt.dmatrix("M")
    yield both(ptl.cholesky(M), {M: A})
    yield both(ptl.cholesky(M, lower=False), {M: A})
    yield both(ptl.cholesky(M), {M: -A})
    yield lambda: ptl.cholesky(M, on_error="raise").eval({M: -A})
    yield lambda: ptl.cholesky(pt.dvector("v"))
    yield lambda: ptl.cholesky(M, on_error="no such choice")
    yield lambda: ptl.cholesky(M).eval({M: B})


def solutions():
    M, N, v = pt.dmatrix("M"), pt.dmatrix("N"), pt.dvector("v")
    values = {M: A, N: B, v: [1.0, 2.0, 3.0]}
    yield both(ptl.solve(M, v), values)
    yield both(ptl.solve(M, N), values)
    yield both(ptl.solve(M, N, assume_a="pos"), values)
    yield both(ptl.solve_triangular(M, v, lower=True), values)
    yield both(ptl.solve_triangular(M, v, trans=1), values)
    yield both(ptl.cho_solve((ptl.cholesky(M), True), v), values)
    yield both(ptl.solve(M, v), {M: np.zeros((3, 3)), v: [1.0, 2.0, 3.0]})
    yield lambda: ptl.solve(M, v, assume_a="no such class")
    yield lambda: ptl.solve(M, v).eval({M: A, v: [1.0, 2.0]})
    yield lambda: ptl.solve(v, M)
    yield lambda: ptl.solve(M, N, b_ndim=3)


def eigenvalues():
    M = pt.dmatrix("M")
    w, V = ptl.eigh(M)
    yield both(w, {M: A})
    yield both(abs(V), {M: A})
    yield both(ptl.eigvalsh(M, None), {M: A})
    values, vectors = ptl.eig(M)
    yield [values, vectors]
    yield both(pt.sort(values.real), {M: A})
    yield lambda: ptl.eigh(pt.dvector("v"))


def decompositions():
    M = pt.dmatrix("M")
    u, s, _ = ptl.svd(M, full_matrices=False)
    yield both(s, {M: B})
    yield both(abs(u), {M: B})
    yield both(ptl.svd(M, compute_uv=False), {M: B})
    _, r = ptl.qr(M)
    yield both(abs(r), {M: B})
    yield both(abs(ptl.qr(M, mode="r")), {M: B})
    yield [both(y, {M: A}) for y in ptl.lu(M)]
    yield [both(y, {M: A}) for y in ptl.lu_factor(M)]
    yield lambda: ptl.qr(M, mode="no such mode")
    yield lambda: ptl.svd(pt.dvector("v"))


def functions_of_matrices():
    M = pt.dmatrix("M")
    values = {M: A / 4}
    yield both(ptl.expm(M), values)
    yield both(ptl.matrix_power(M, 3), values)
    yield both(ptl.matrix_power(M, 0), values)
    yield both(ptl.matrix_dot(M, M, M), values)
    yield both(ptl.kron(M, M), values)
    yield lambda: ptl.matrix_power(M, 2.5)
    yield both(ptl.matrix_power(M, -1), values)


def matrix_equations():
    M, N = pt.dmatrix("M"), pt.dmatrix("N")
    values = {M: A / 8, N: np.eye(3)}
    yield both(ptl.solve_discrete_lyapunov(M, N), values)
    yield both(ptl.solve_continuous_lyapunov(M, N), values)
    yield both(ptl.solve_sylvester(M, M, N), values)
    yield lambda: ptl.solve_discrete_lyapunov(M, N, method="no such method")


def blocks():
    M, N = pt.dmatrix("M"), pt.dmatrix("N")
    yield both(ptl.block_diag(M, N), {M: A, N: B})
    yield lambda: ptl.block_diag(M, pt.dvector("v"))
    yield ptl.block_diag(pt.matrix("x", shape=(2, 3)), pt.matrix("y", shape=(1, 1)))


def batches():
    t = pt.tensor("t", dtype="float64", shape=(None, 3, 3))
    yield both(ptl.det(t), {t: BATCH})
    yield both(ptl.inv(t), {t: BATCH})
    yield both(ptl.cholesky(t), {t: BATCH})
    yield both(ptl.solve(t, np.ones(3), b_ndim=1), {t: BATCH})
    yield both(ptl.eigh(t)[0], {t: BATCH})
    yield [isinstance(ptl.det(t).owner.op, Blockwise), str(ptl.cholesky(t).owner.op)]


def blockwise_ops():
    core = ptl.cholesky(pt.dmatrix("M")).owner.op
    t = pt.dtensor3("t")
    yield [type(core).__name__, core.signature if isinstance(core, Blockwise) else None]
    yield both(Blockwise(core.core_op if isinstance(core, Blockwise) else core)(t), {t: BATCH})
    yield lambda: Blockwise(core.core_op if isinstance(core, Blockwise) else core)(pt.dvector("v"))


def vectorized_functions():
    x, M = pt.dvector("x"), pt.dmatrix("M")
    centred = pt.vectorize(lambda v: v - v.mean(), signature="(n)->(n)")
    yield both(centred(M), {M: A})
    norm = pt.vectorize(lambda a, b: pt.dot(a, b), signature="(n),(n)->()")
    yield both(norm(M, x), {M: A, x: [1.0, 2.0, 3.0]})
    yield lambda: centred(pt.dscalar("s"))
    yield lambda: pt.vectorize(lambda v: v, signature="(n->")(x)


def vectorized_graphs():
    x = pt.dvector("x")
    M = pt.dmatrix("M")
    for y in (
        x.sum(),
        x[1:],
        x[::-1] * 2,
        pt.cumsum(x),
        pt.sort(x),
        x.reshape((3, 1)),
        x[0],
        x.max(),
    ):
        yield both(pytensor.graph.vectorize_graph(y, {x: M}), {M: A})
    yield lambda: pytensor.graph.vectorize_graph(x.sum(), {x: pt.dscalar("s")})


def rewrites_of_linear_algebra():
    M, v = pt.dmatrix("M"), pt.dvector("v")
    for y in (ptl.inv(M) @ v, ptl.inv(ptl.inv(M)), ptl.det(ptl.inv(M)), pt.log(ptl.det(M))):
        yield compiled(y, {M: A, v: np.array([1.0, 2.0, 3.0])})


def grads_of_linear_algebra():
    M, v = pt.dmatrix("M"), pt.dvector("v")
    values = {M: A, v: [1.0, 2.0, 3.0]}
    costs = (
        ptl.det(M),
        ptl.inv(M).sum(),
        ptl.cholesky(M).sum(),
        ptl.solve(M, v).sum(),
        pt.log(ptl.det(M)),
        ptl.eigh(M)[0].sum(),
        ptl.svd(M, compute_uv=False).sum(),
        ptl.slogdet(M)[1],
        ptl.expm(M).sum(),
        ptl.pinv(M).sum(),
        ptl.matrix_power(M, 2).sum(),
    )
    for cost in costs:
        yield both(pytensor.grad(cost, M), values)


def sorting():
    x = pt.dmatrix("x")
    yield both(pt.sort(x), {x: A})
    yield both(pt.sort(x, axis=0), {x: A})
    yield both(pt.sort(x, axis=None), {x: A})
    yield both(pt.argsort(x, kind="stable"), {x: A})
    yield lambda: pt.sort(x, axis=2)
    yield lambda: pt.sort(x, kind="no such kind")
    yield lambda: pt.argsort(pt.dscalar("s"))
    yield pt.argsort(x, axis=None)


def searching_and_counting():
    x, i = pt.dvector("x"), pt.lvector("i")
    yield both(pt.searchsorted(x, [0.5, 2.5]), {x: [0.0, 1.0, 2.0]})
    yield both(pt.searchsorted(x, 1.0, side="right"), {x: [0.0, 1.0, 2.0]})
    yield lambda: pt.searchsorted(x, 1.0, side="no such side")
    yield lambda: pt.searchsorted(pt.dmatrix("m"), 1.0)
    yield both(pt.unique(x), {x: [2.0, 1.0, 2.0]})
    yield [
        both(y, {x: [2.0, 1.0, 2.0]}) for y in pt.unique(x, return_inverse=True, return_counts=True)
    ]
    yield both(pt.bincount(i), {i: [0, 2, 2]})
    yield both(pt.bincount(i, minlength=5), {i: [0, 2, 2]})
    yield both(pt.bincount(i, weights=pt.as_tensor([1.0, 2.0, 3.0])), {i: [0, 2, 2]})
    yield lambda: pt.bincount([0, 2, 2], weights=[1.0, 2.0, 3.0])
    yield lambda: pt.bincount(x)
    yield lambda: pt.bincount(i).eval({i: [-1]})


def convolutions():
    from pytensor.tensor.signal import convolve1d, convolve2d

    x, k = pt.dvector("x"), pt.dvector("k")
    values = {x: [1.0, 2.0, 3.0, 4.0], k: [1.0, -1.0]}
    for mode in ("full", "valid", "same"):
        yield both(convolve1d(x, k, mode=mode), values)
    yield lambda: convolve1d(x, k, mode="no such mode")
    M, N = pt.dmatrix("M"), pt.dmatrix("N")
    yield both(convolve2d(M, N, mode="valid"), {M: A, N: [[1.0, 0.5]]})


def fourier_transforms():
    from pytensor.tensor.fft import irfft, rfft

    x = pt.dmatrix("x")
    values = {x: np.arange(8.0).reshape(2, 4) ** 2}
    yield both(rfft(x), values)
    yield both(rfft(x, norm="ortho"), values)
    yield both(irfft(rfft(x)), values)
    yield lambda: rfft(x, norm="no such norm")
    yield lambda: irfft(x)


def interpolation():
    x = pt.dvector("x")
    value = {x: [-1.0, 0.25, 1.5, 5.0]}
    yield both(pt.interp(x, [0.0, 1.0, 2.0], [0.0, 10.0, 20.0]), value)
    yield both(pt.interp(x, [0.0, 1.0, 2.0], [0.0, 10.0, 20.0], left=-5, right=7), value)
    f = pt.interpolate1d(
        pt.as_tensor([0.0, 1.0, 2.0]), pt.as_tensor([0.0, 10.0, 20.0]), method="nearest"
    )
    yield both(f(x), value)
    yield lambda: pt.interpolate1d(x, x, method="no such method")


def one_hot_vectors():
    from pytensor.tensor.extra_ops import to_one_hot

    i = pt.lvector("i")
    yield both(to_one_hot(i, 3), {i: [0, 2]})
    yield both(to_one_hot(i, 3, dtype="int8"), {i: [0, 2]})
    yield lambda: to_one_hot([0, 2], 3)
    yield lambda: to_one_hot(pt.lmatrix("m"), 3)
