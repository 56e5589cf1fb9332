"""JAX functions of matrix products, Blockwise, diagonals and repeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from phintys.backends.jax.dispatch import (
    Checks,
    call_back,
    collecting,
    concrete,
    convert_node,
    jax_funcify,
)
from phintys.backends.jax.native import astype
from phintys.graph.shapes import check_shapes
from phintys.graph.variable import Apply
from phintys.tensor.blas import BatchedDot, BlasOp, Ger
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.diagonal import ExtractDiag
from phintys.tensor.dot import Dot
from phintys.tensor.repeat import Repeat


@jax_funcify.register(Dot)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    if dtype == "bool":  # "or" of "and"
        return lambda x, y: jnp.dot(astype(x, "float32"), astype(y, "float32")) > 0
    return lambda x, y: jnp.dot(astype(x, dtype), astype(y, dtype))


# ------------------------------------------------------------------ products with addition

PRODUCTS: dict[type, Any] = {BatchedDot: jnp.matmul, Ger: jnp.outer}


@jax_funcify.register(BlasOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    product = PRODUCTS.get(type(op), jnp.dot)

    def compute(*args: Any) -> Any:
        check_shapes(node, args)
        v = op.named(args)
        out = product(v["x"], v["y"])
        if v["alpha"] is not None:
            out = v["alpha"] * out
        if v["z"] is None:
            return out
        return out + _scaled(v["beta"], v["z"])

    return compute


def _scaled(beta: Any, z: Any) -> Any:
    """``beta * z``; 0 if ``beta`` is 0, even if ``z`` is NaN or infinite."""
    return z if beta is None else jnp.where(beta == 0, jnp.zeros_like(z), beta * z)


# ------------------------------------------------------------------------------- batches


@jax_funcify.register(Blockwise)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    """`jax.vmap` of the core op over the flattened batch axes; unknown core ops are called back.

    Arguments that are the same for the whole batch are not mapped, so that lengths stay known.
    """
    if jax_funcify.dispatch(type(op.core_op)) is call_back:
        return call_back(op, node, **kwargs)
    core, n = op.core_node(node), op.batch_ndim(node)
    function = convert_node(op.core_op, core, **kwargs)

    def item(*values: Any) -> tuple[Any, Checks]:
        with collecting() as checks:
            found = function(*values)
        return found, Checks(checks)

    def compute(*args: Any) -> Any:
        batch = _batch_shape(node, args, n)
        count = int(np.prod(batch, dtype=int))
        axes = [0 if any(k != 1 for k in x.shape[:n]) else None for x in args]
        values = [
            x.reshape(x.shape[n:])
            if axis is None
            else jnp.broadcast_to(x, (*batch, *x.shape[n:])).reshape((count, *x.shape[n:]))
            for x, axis in zip(args, axes)
        ]
        mapped = 0 in axes
        found, checks = jax.vmap(item, in_axes=axes)(*values) if mapped else item(*values)
        checks.collect()
        return jax.tree.map(lambda x: x.reshape((*batch, *x.shape[int(mapped) :])), found)

    return compute


def _batch_shape(node: Apply, args: Sequence[Any], n: int) -> tuple[int, ...]:
    """The broadcast shape of the first ``n`` axes of the arguments."""
    check_shapes(node, args)
    return np.broadcast_shapes(*(x.shape[:n] for x in args))


# ------------------------------------------------------------------ diagonals, repetition


@jax_funcify.register(ExtractDiag)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda x: jnp.diagonal(x, op.offset, op.axis1, op.axis2)


@jax_funcify.register(Repeat)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any, repeats: Any) -> Any:
        if np.any(concrete(repeats, node) < 0) or len(repeats) != x.shape[op.axis]:
            raise ValueError(f"{op}: repeats {repeats} do not fit an array of shape {x.shape}.")
        total = int(np.sum(repeats, dtype=int))
        return jnp.repeat(x, repeats, axis=op.axis, total_repeat_length=total)

    return compute
