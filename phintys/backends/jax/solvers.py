"""JAX functions of elimination: LU decompositions, systems, inverses, determinants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from phintys.backends.jax.dispatch import jax_funcify, require
from phintys.backends.jax.linalg import nan_of
from phintys.backends.jax.native import astype
from phintys.graph.shapes import check_shapes
from phintys.tensor.linalg.cofactors import SingularCofactors
from phintys.tensor.linalg.decomposition.lu import LU, LUFactor, PivotToPermutations
from phintys.tensor.linalg.elimination import SINGULAR
from phintys.tensor.linalg.inverse import MatrixInverse
from phintys.tensor.linalg.solvers.cholesky import CholeskySolve
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.linalg.solvers.lu import LUSolve
from phintys.tensor.linalg.summary import Det, SLogDet


def _factors(x: Any) -> tuple[Any, Any]:
    """What `factored` returns."""
    rows = jnp.arange(min(x.shape), dtype="int32")
    if x.size == 0:
        return x, rows
    finite = jnp.all(jnp.isfinite(x))
    factors, pivots, _ = jax.lax.linalg.lu(jnp.where(finite, x, 0))
    return jnp.where(finite, factors, nan_of(x.dtype)), jnp.where(finite, pivots, rows)


def _singular(factors: Any) -> Any:
    return jnp.any(jnp.diagonal(factors) == 0)


def _substituted(factors: Any, pivots: Any, b: Any, trans: int = 0) -> Any:
    """What `substituted` returns."""
    if b.size == 0:
        return b
    found = jax.scipy.linalg.lu_solve((factors, pivots), b, trans=trans)
    return jnp.where(_singular(factors), nan_of(b.dtype), found)


def _order(pivots: Any, n: int, inverse: bool) -> Any:
    order = jax.lax.linalg.lu_pivots_to_permutation(pivots, n) if n else jnp.arange(0)
    order = jnp.argsort(order) if inverse else order
    return order.astype("int64")


def _require_pivots(pivots: Any, n: int) -> None:
    require((pivots >= 0) & (pivots < n), "A pivot is no row of the matrix.", ValueError)


@jax_funcify.register(LU)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[-1].type.dtype

    def compute(x: Any) -> Any:
        factors, pivots = _factors(astype(x, dtype))
        k, m = min(x.shape), x.shape[0]
        low = jnp.tril(factors[:, :k], -1) + jnp.eye(m, k, dtype=dtype)
        up, order = jnp.triu(factors[:k]), _order(pivots, m, inverse=True)
        if op.permute_l:
            return low[order], up
        if op.p_indices:
            return order.astype("int32"), low, up
        return jnp.eye(m, dtype=node.outputs[0].type.dtype)[order], low, up

    return compute


@jax_funcify.register(LUFactor)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any) -> Any:
        check_shapes(node, [x])
        return _factors(astype(x, node.outputs[0].type.dtype))

    return compute


@jax_funcify.register(PivotToPermutations)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(pivots: Any) -> Any:
        _require_pivots(pivots, len(pivots))
        return _order(jnp.asarray(pivots), len(pivots), inverse=not op.inverse)

    return compute


@jax_funcify.register(LUSolve)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(factors: Any, pivots: Any, b: Any) -> Any:
        check_shapes(node, [factors, pivots, b])
        _require_pivots(pivots, len(pivots))
        factors, b = (astype(x, node.outputs[0].type.dtype) for x in (factors, b))
        return _substituted(factors, jnp.asarray(pivots), b, int(op.transposed))

    return compute


@jax_funcify.register(CholeskySolve)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(factor: Any, b: Any) -> Any:
        check_shapes(node, [factor, b])
        factor, b = (astype(x, node.outputs[0].type.dtype) for x in (factor, b))
        return _substituted_twice(factor, b, op.lower)

    return compute


def _substituted_twice(factor: Any, b: Any, lower: bool) -> Any:
    if b.size == 0:
        return b
    found = jax.scipy.linalg.cho_solve((factor, lower), b)
    finite = jnp.all(jnp.isfinite(jnp.tril(factor) if lower else jnp.triu(factor)))
    return jnp.where(finite & ~_singular(factor), found, nan_of(b.dtype))


def _symmetric(a: Any, lower: bool) -> Any:
    read, other = (jnp.tril(a), jnp.tril(a, -1)) if lower else (jnp.triu(a), jnp.triu(a, 1))
    return read + other.T


def _hermitian(a: Any, lower: bool) -> Any:
    other = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    return other + jnp.conj(other.T) + jnp.diag(jnp.diagonal(a).real)


def _solve_positive(op: Any, a: Any, b: Any) -> Any:
    if b.size == 0:
        return b
    factor = jax.lax.linalg.cholesky(_hermitian(a, op.lower), symmetrize_input=False)
    return _substituted_twice(factor, b, True)


def _divide(op: Any, a: Any, b: Any) -> Any:
    d = jnp.diagonal(a)
    good = jnp.all((d != 0) & jnp.isfinite(d))
    return jnp.where(good, b / (d if op.b_ndim == 1 else d[:, None]), nan_of(b.dtype))


#: structure -> the matrix to eliminate in
_MATRICES: dict[str, Callable[[Any, bool], Any]] = {
    "sym": _symmetric,
    "her": _hermitian,
    "tridiagonal": lambda a, lower: jnp.triu(jnp.tril(a, 1), -1),
    "gen": lambda a, lower: a,
    "banded": lambda a, lower: a,
}


@jax_funcify.register(Solve)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(a: Any, b: Any) -> Any:
        check_shapes(node, [a, b])
        a, b = (astype(x, node.outputs[0].type.dtype) for x in (a, b))
        if op.assume_a in ("pos", "diagonal"):
            return (_solve_positive if op.assume_a == "pos" else _divide)(op, a, b)
        return _substituted(*_factors(_MATRICES[op.assume_a](a, op.lower)), b)

    return compute


@jax_funcify.register(MatrixInverse)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype

    def compute(x: Any) -> Any:
        check_shapes(node, [x])
        factors, pivots = _factors(astype(x, dtype))
        require(~_singular(factors), SINGULAR, np.linalg.LinAlgError)
        return _substituted(factors, pivots, jnp.eye(len(x), dtype=dtype))

    return compute


def _pivots(x: Any) -> Any:
    """Numbers whose product is the determinant."""
    factors, pivots = _factors(x)
    found = jnp.diagonal(factors)
    return jnp.where(pivots != jnp.arange(len(x)), -found, found)


@jax_funcify.register(Det)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any) -> Any:
        check_shapes(node, [x])
        return jnp.prod(_pivots(astype(x, node.outputs[0].type.dtype)))

    return compute


@jax_funcify.register(SLogDet)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any) -> Any:
        check_shapes(node, [x])
        pivots = _pivots(astype(x, node.outputs[0].type.dtype))
        size = jnp.abs(pivots)
        signs = jnp.where(size == 0, 0, pivots / jnp.where(size == 0, 1, size))
        return jnp.prod(signs).astype(pivots.dtype), jnp.log(size).sum()

    return compute


@jax_funcify.register(SingularCofactors)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any, wanted: Any) -> Any:
        check_shapes(node, [x, wanted])
        return jnp.where(wanted, _cofactors(astype(x, node.outputs[0].type.dtype)), 0)

    return compute


def _cofactors(x: Any) -> Any:
    """What `cofactors` returns."""
    if x.size == 0:
        return x
    n, (factors, pivots) = len(x), _factors(x)

    def add_column(k: Any, state: Any) -> Any:
        """One more column of the adjugate of the upper triangle."""
        found, product = state
        column = -found @ factors[:, k]
        pivot = factors[k, k]
        return (found * pivot).at[:, k].set(column.at[k].set(product)), product * pivot

    start = jnp.zeros_like(factors), jnp.ones((), factors.dtype)
    adjugate, _ = jax.lax.fori_loop(0, n, add_column, start)
    found = jax.scipy.linalg.solve_triangular(factors.T, adjugate.T, unit_diagonal=True)
    odd = jnp.sum(pivots != jnp.arange(n)) % 2
    return jnp.where(odd, -found, found)[_order(pivots, n, inverse=True)]
