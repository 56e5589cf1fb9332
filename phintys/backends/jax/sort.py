"""JAX functions of sorting."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from phintys.backends.jax.dispatch import jax_funcify
from phintys.tensor.sort import ArgSortOp, SortOp


@jax_funcify.register(SortOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda x: jnp.sort(x, axis=op.axis)


@jax_funcify.register(ArgSortOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda x: jnp.argsort(x, axis=op.axis).astype("int64")
