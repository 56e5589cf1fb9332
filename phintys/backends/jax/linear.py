"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from phintys.backends.jax.dispatch import jax_funcify
from phintys.backends.jax.elemwise import astype
from phintys.tensor.dot import Dot


@jax_funcify.register(Dot)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    if dtype == "bool":  # "or" of "and"
        return lambda x, y: jnp.dot(astype(x, "float32"), astype(y, "float32")) > 0
    return lambda x, y: jnp.dot(astype(x, dtype), astype(y, dtype))
