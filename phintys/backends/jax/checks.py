"""JAX functions of checks, and of ops that print."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from phintys.backends.jax.dispatch import jax_funcify, require
from phintys.graph.shapes import check_shapes
from phintys.tensor.debugging import Print
from phintys.tensor.nnet.unshared import FittingFilters
from phintys.tensor.raise_op import CheckAndRaise


@jax_funcify.register(CheckAndRaise)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def check(value: Any, *conditions: Any) -> Any:
        for condition in conditions:
            require(condition, op.msg, op.exc_type)
        return value

    return check


@jax_funcify.register(FittingFilters)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def fit(w: Any, x: Any) -> Any:
        check_shapes(node, [w, x])
        return w

    return fit


@jax_funcify.register(Print)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def show(x: Any) -> Any:
        jax.debug.callback(lambda x: op.global_fn(op, np.asarray(x)), jnp.asarray(x), ordered=True)
        return x

    return show
