"""JAX functions of linear algebra."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from phintys.backends.jax.dispatch import jax_funcify, require
from phintys.backends.jax.native import astype
from phintys.graph.shapes import check_shapes
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.decomposition.cholesky_pullback import CholeskyPullback
from phintys.tensor.linalg.solvers.triangular import SolveTriangular


@jax_funcify.register(Cholesky)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype

    def compute(x: Any) -> Any:
        check_shapes(node, [x])
        x = astype(x, dtype)
        x = jnp.tril(x if op.lower else jnp.conj(x.T))
        x = x.at[jnp.diag_indices(x.shape[0])].set(jnp.diagonal(x).real.astype(dtype))
        factor = jax.lax.linalg.cholesky(x, symmetrize_input=False)
        found = jnp.all(jnp.isfinite(jnp.diagonal(factor)))
        if op.on_error == "raise":
            require(found, "Matrix is not positive definite", np.linalg.LinAlgError)
        factor = jnp.where(found, factor, nan_of(dtype))
        return factor if op.lower else jnp.conj(factor.T)

    return compute


@jax_funcify.register(CholeskyPullback)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype

    def compute(factor: Any, g: Any) -> Any:
        check_shapes(node, [factor, g])
        factor, g = (jnp.tril(astype(x, dtype)) for x in (factor, g))
        if g.size == 0:
            return g
        s = jnp.tril(factor.T @ g)
        s = s - 0.5 * jnp.diag(jnp.diagonal(s))
        for _ in range(2):  # s becomes inv(L)^T s inv(L)
            s = jax.scipy.linalg.solve_triangular(factor, s, lower=True, trans=1).T
        return jnp.tril(s + s.T) - jnp.diag(jnp.diagonal(s))

    return compute


@jax_funcify.register(SolveTriangular)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    flags = {"lower": op.lower, "unit_diagonal": op.unit_diagonal}

    def compute(a: Any, b: Any) -> Any:
        check_shapes(node, [a, b])
        a, b = astype(a, dtype), astype(b, dtype)
        if b.size == 0:
            return b
        found = jax.scipy.linalg.solve_triangular(a, b, **flags)
        singular = not op.unit_diagonal and jnp.any(jnp.diagonal(a) == 0)
        return jnp.where(singular, nan_of(dtype), found)

    return compute


def nan_of(dtype: Any) -> Any:
    """NaN of a dtype, in both parts of a complex one."""
    return jnp.asarray(complex(np.nan, np.nan) if "complex" in str(dtype) else np.nan, dtype)


def nan_unless(condition: Any, x: Any) -> Any:
    """``x``, or NaN in all its parts."""
    return jnp.where(condition, x, nan_of(x.dtype))
