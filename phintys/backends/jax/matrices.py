"""JAX functions of functions, products and pseudo-inverses of matrices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from phintys.backends.jax.dispatch import jax_funcify
from phintys.backends.jax.linalg import nan_unless
from phintys.backends.jax.native import astype
from phintys.graph.shapes import check_shapes
from phintys.scalar.dtypes import upcast
from phintys.tensor.linalg.constructors import BlockDiagonal
from phintys.tensor.linalg.exponential import exponential
from phintys.tensor.linalg.matrix_functions import Expm
from phintys.tensor.linalg.products import KroneckerProduct
from phintys.tensor.linalg.pseudo_inverse import MatrixPinv


@jax_funcify.register(BlockDiagonal)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype

    def compute(*blocks: Any) -> Any:
        out = jnp.zeros(np.sum([x.shape for x in blocks], axis=0), dtype)
        row = column = 0
        for x in blocks:
            m, n = x.shape
            out = out.at[row : row + m, column : column + n].set(astype(x, dtype))
            row, column = row + m, column + n
        return out

    return compute


@jax_funcify.register(KroneckerProduct)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype

    def compute(a: Any, b: Any) -> Any:  # jnp.kron refuses bools
        (m, n), (p, q) = a.shape, b.shape
        product = astype(a, dtype)[:, None, :, None] * astype(b, dtype)[None, :, None, :]
        return product.reshape(m * p, n * q)

    return compute


@jax_funcify.register(Expm)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype

    def compute(x: Any) -> Any:
        check_shapes(node, [x])
        x = astype(x, dtype)
        if x.size == 0:
            return x
        finite = jnp.all(jnp.isfinite(x))
        wide = astype(jnp.where(finite, x, 0), upcast(dtype, "float64"))
        found = exponential(wide, jnp, jax.lax.while_loop)
        return nan_unless(finite, astype(found, dtype))

    return compute


@jax_funcify.register(MatrixPinv)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype

    def compute(x: Any, rtol: Any = None) -> Any:
        check_shapes(node, [x] if rtol is None else [x, rtol])
        x = astype(x, dtype)
        if x.size == 0:
            return x.T
        rtol = max(x.shape) * np.finfo(dtype).eps if rtol is None else rtol
        if op.hermitian:
            lower = jnp.tril(x, -1)
            x = lower + jnp.conj(lower.T) + jnp.diag(jnp.diagonal(x).real.astype(dtype))
        found = jnp.linalg.pinv(x, rtol=rtol, hermitian=op.hermitian)
        return nan_unless(jnp.all(jnp.isfinite(x)), found)

    return compute
