"""Random numbers in JAX: its own streams, from keys.

Within a function a generator is a key: two uint32.  The key of a `numpy.random.Generator` is drawn
from a copy of it, and a key that the function returns becomes the generator with that seed.  So the
numbers are not those of the other backends, but the same state gives the same numbers, and states
can be passed from mode to mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from phintys.backends.jax.dispatch import jax_funcify, jax_typify, length, require
from phintys.bitgen import copied
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.inner import nested_ops
from phintys.graph.op import HasMultipleInnerGraph
from phintys.graph.shapes import check_shapes
from phintys.tensor.random.basic import NormalRV
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.random.type import RandomType
from phintys.tensor.random.utils import rv_size_is_none

#: ``sample(key, shape, dtype, *parameters)``
Sample = Callable[..., Any]


@singledispatch
def jax_sample_fn(op: Any, node: Any = None) -> Sample | None:
    """A function ``sample(key, shape, dtype, *parameters)`` of JAX that draws; None: there is none.

    Register functions for further distributions with ``@jax_sample_fn.register(MyRV)``.
    """
    return None


@jax_sample_fn.register(NormalRV)
def _(op: Any, node: Any = None) -> Sample:
    return lambda key, shape, dtype, loc, scale: loc + scale * jax.random.normal(key, shape, dtype)


def has_samplers(fgraph: FunctionGraph) -> bool:
    """Whether all ops of a graph that use generators draw from distributions that JAX has.

    Graphs inside ops count, such as the step of a loop.
    """
    nodes = fgraph.toposort()
    inside = [g for op in nested_ops(n.op for n in nodes) for g in op.inner_graphs.values()]
    return all(
        jax_sample_fn(n.op, n) is not None or isinstance(n.op, HasMultipleInnerGraph)
        for n in [*nodes, *(n for g in inside for n in g.toposort())]
        if any(is_state(v.type) for v in [*n.inputs, *n.outputs])
    )


def is_state(type_: Any) -> bool:
    """Whether a type is one of generators."""
    return isinstance(type_, RandomType)


@jax_funcify.register(RandomVariable)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    sample, (_, out) = jax_sample_fn(op, node), node.outputs
    if sample is None:
        raise TypeError(f"There is no JAX function for {op}; see jax_sample_fn.")
    sized = not rv_size_is_none(op.size_param(node))

    def draw(key: Any, size: Any, *params: Any) -> tuple[Any, Any]:
        given = tuple([length(n, node) for n in size]) if sized else None
        check_shapes(node, [None, given and np.array(given), *params])
        for k in op.non_negative:
            bad = jnp.signbit(params[k]) & ~jnp.isnan(params[k])
            require(jnp.logical_not(bad), f"parameter {k} of {op} is negative", ValueError)
        shape = jnp.broadcast_shapes(*(map(jnp.shape, params))) if given is None else given
        following, own = jax.random.split(jnp.asarray(key, "uint32"))
        values = [jnp.asarray(p, out.type.dtype) for p in params]
        return following, sample(own, shape, out.type.dtype, *values)

    return draw


@jax_typify.register(np.random.Generator)
def key_of(data: np.random.Generator, dtype: Any = None, **kwargs: Any) -> Any:
    """The key of a generator, which is not changed."""
    return copied(data).integers(0, 2**32, 2, dtype="uint32")


class WithKeys:
    """A callable from and to values with generators, of one from and to values with keys."""

    def __init__(self, fgraph: FunctionGraph, call: Callable[[Sequence[Any]], list[Any]]) -> None:
        self.call = call
        self.inputs = [i for i, v in enumerate(fgraph.inputs) if is_state(v.type)]
        places = {v: i for i, v in enumerate(fgraph.inputs)}
        self.outputs = {k: places.get(v) for k, v in enumerate(fgraph.outputs) if is_state(v.type)}

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        given = list(values)
        for i in self.inputs:
            given[i] = key_of(values[i])
        results = self.call(given)
        for k, place in self.outputs.items():
            seed = np.asarray(results[k]).tolist()
            results[k] = np.random.default_rng(seed) if place is None else copied(values[place])
        return results
