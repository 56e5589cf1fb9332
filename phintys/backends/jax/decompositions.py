"""JAX functions of the QR and singular value decompositions, eigenvalues and Schur forms.

JAX calls the functions of LAPACK that the ops state, so factors have the same signs.  Results for
matrices with NaN or infinity are NaN, as they are in `perform`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from phintys.backends.jax.dispatch import jax_funcify
from phintys.backends.jax.linalg import nan_unless
from phintys.backends.jax.native import astype
from phintys.graph.shapes import check_shapes
from phintys.tensor.linalg.decomposition.eigen import Eig, Eigh, Eigvalsh
from phintys.tensor.linalg.decomposition.eigen_small import FRACTION
from phintys.tensor.linalg.decomposition.qr import QR
from phintys.tensor.linalg.decomposition.svd import SVD
from phintys.tensor.linalg.matrix_op import inexact


def _packed(values: Sequence[Any]) -> Any:
    """The results of a function: one, or a tuple."""
    return values[0] if len(values) == 1 else tuple(values)


@jax_funcify.register(QR)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    wide = op.mode in ("full", "r")

    def compute(x: Any) -> Any:
        x = astype(x, dtype)
        (m, n), k = x.shape, min(x.shape)
        finite = jnp.all(jnp.isfinite(x))
        order = jnp.arange(n, dtype="int32")
        h, tau, r = jnp.zeros_like(x), jnp.zeros(k, dtype), jnp.zeros((m if wide else k, n), dtype)
        q = jnp.eye(m, m if op.mode == "full" else k, dtype=dtype)
        if k and op.pivoting:
            *_, found = jax.scipy.linalg.qr(x, mode="economic", pivoting=True)
            order = jnp.where(finite, found.astype("int32"), order)
            x = x[:, order]
        if k and op.mode == "raw":
            h, tau = jnp.linalg.qr(x, mode="raw")
            h = h.T
            r = jnp.triu(h[:k])
        elif k:
            q, r = jnp.linalg.qr(x, mode="complete" if wide else "reduced")
        found = {"q": q, "r": r, "h": h, "tau": tau}
        found = {name: nan_unless(finite, y) for name, y in found.items()}
        return _packed([{**found, "order": order}[name] for name in op.results])

    return compute


@jax_funcify.register(SVD)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = inexact(node.inputs[0].type.dtype)

    def compute(x: Any) -> Any:
        x = astype(x, dtype)
        (m, n), k = x.shape, min(x.shape)
        rows, columns = (n, m) if op.full_matrices else (k, k)
        u, s, vt = jnp.eye(m, columns), jnp.zeros(k, dtype).real, jnp.eye(rows, n)
        u, vt = u.astype(dtype), vt.astype(dtype)
        finite = jnp.all(jnp.isfinite(x))
        if k:
            given = jnp.where(finite, x, jnp.zeros_like(x))
            u, s, vt = jnp.linalg.svd(given, full_matrices=op.full_matrices)
        found = tuple(nan_unless(finite, y) for y in (u, s, vt))
        return found if op.compute_uv else found[1]

    return compute


@jax_funcify.register(Eigh)
@jax_funcify.register(Eigvalsh)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = inexact(*(x.type.dtype for x in node.inputs))

    def hermitian(x: Any) -> Any:
        x = jnp.tril(x) if op.lower else jnp.conj(jnp.triu(x)).T
        return jnp.tril(x, -1) + jnp.conj(jnp.tril(x, -1)).T + jnp.diag(jnp.diagonal(x).real)

    def compute(*matrices: Any) -> Any:
        check_shapes(node, matrices)
        given = [astype(x, dtype) for x in matrices]
        parts = [jnp.tril(x) if op.lower else jnp.triu(x) for x in given]
        finite = jnp.all(jnp.asarray([jnp.all(jnp.isfinite(x)) for x in parts]))
        a, *others = (hermitian(jnp.where(finite, x, jnp.zeros_like(x))) for x in given)
        if a.size == 0:
            w, v = jnp.zeros(0, dtype).real, a
        elif others:
            w, v = _eigenvalues_of_pair(
                a, jnp.where(finite, others[0], jnp.eye(len(a), dtype=dtype))
            )
        else:
            v, w = jax.lax.linalg.eigh(a, lower=op.lower, symmetrize_input=False)
        found = nan_unless(finite, w), nan_unless(finite, _signed(v))
        return found if op.vectors else found[0]

    return compute


def _signed(v: Any) -> Any:
    """Eigenvectors with the signs and phases that `signed` gives them."""
    if v.size == 0:
        return v
    sizes, columns = jnp.abs(v), jnp.arange(len(v))
    first = jnp.argmax(sizes > sizes.max(0) * FRACTION, axis=0)
    length = sizes[first, columns]
    return (v * (jnp.conj(v[first, columns]) / length) + 0).at[first, columns].set(length)


def _eigenvalues_of_pair(a: Any, b: Any) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of a pair; NaN if ``b`` is not positive definite."""
    factor = jax.lax.linalg.cholesky(b, symmetrize_input=False)
    positive = jnp.all(jnp.isfinite(factor))
    factor = jnp.where(positive, factor, jnp.eye(len(a), dtype=a.dtype))
    solve = jax.scipy.linalg.solve_triangular
    a = jnp.conj(solve(factor, jnp.conj(solve(factor, a, lower=True)).T, lower=True)).T
    v, w = jax.lax.linalg.eigh(a, symmetrize_input=False)
    v = solve(factor, v, lower=True, trans="C")
    return nan_unless(positive, w), nan_unless(positive, v)


@jax_funcify.register(Eig)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype, result = inexact(node.inputs[0].type.dtype), node.outputs[0].type.dtype

    def compute(x: Any) -> Any:
        check_shapes(node, [x])
        x = astype(x, dtype)
        if x.size == 0:
            return jnp.zeros(0, result), jnp.zeros((0, 0), result)
        finite = jnp.all(jnp.isfinite(x))
        w, v = jnp.linalg.eig(jnp.where(finite, x, jnp.zeros_like(x)))
        return nan_unless(finite, w.astype(result)), nan_unless(finite, v.astype(result))

    return compute
