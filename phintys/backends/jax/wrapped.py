"""JAX functions of ops that are made of JAX functions."""

from __future__ import annotations

from typing import Any

from phintys.backends.jax.dispatch import jax_funcify, one_or_tuple
from phintys.tensor.from_jax import JAXOp


@jax_funcify.register(JAXOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda *args: one_or_tuple(op.function(*args))
