"""JAX functions of sorting and searching."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from phintys.backends.jax.dispatch import jax_funcify
from phintys.tensor.search import SearchsortedOp, common_dtype
from phintys.tensor.sort import ArgSortOp, SortOp


@jax_funcify.register(SortOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda x: jnp.sort(x, axis=op.axis)


@jax_funcify.register(ArgSortOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda x: jnp.argsort(x, axis=op.axis).astype("int64")


@jax_funcify.register(SearchsortedOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = common_dtype(node)

    def compute(x: Any, v: Any) -> Any:
        found = jnp.searchsorted(jnp.asarray(x, dtype), jnp.asarray(v, dtype), op.side)
        return found.astype("int64")

    return compute
