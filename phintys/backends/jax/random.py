"""Random numbers in JAX: its own streams, from keys.

Within a function a generator is a key: two uint32.  The key of a `numpy.random.Generator` is drawn
from a copy of it, and a key that the function returns becomes the generator with that seed.  So the
numbers are not those of the other backends, but the same state gives the same numbers, and states
can be passed from mode to mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from phintys.backends.jax.dispatch import jax_funcify, jax_typify, length, require
from phintys.backends.jax.samplers import jax_sample_fn
from phintys.bitgen import copied
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.inner import nested_ops
from phintys.graph.op import HasMultipleInnerGraph, Op
from phintys.graph.shapes import check_shapes
from phintys.graph.variable import Apply
from phintys.tensor.random.distribution import Distribution
from phintys.tensor.random.domains import ArrayInstructions
from phintys.tensor.random.making import DefaultGeneratorMakerOp, SpawnOp
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.random.type import RandomType
from phintys.tensor.random.utils import rv_size_is_none
from phintys.tensor.type_other import NoneConst

_INSTRUCTIONS = ArrayInstructions(jnp)


def has_samplers(fgraph: FunctionGraph) -> bool:
    """Whether all ops of a graph that use generators draw from distributions that JAX has.

    Graphs inside ops count, such as the step of a loop.
    """
    nodes = fgraph.toposort()
    inside = [g for op in nested_ops(n.op for n in nodes) for g in op.inner_graphs.values()]
    return all(
        _has_sampler(n)
        for n in [*nodes, *(n for g in inside for n in g.toposort())]
        if any(is_state(v.type) for v in [*n.inputs, *n.outputs])
    )


def _has_sampler(node: Apply) -> bool:
    op = node.op
    if isinstance(op, RandomVariable):
        return jax_sample_fn(op, node) is not None
    if isinstance(op, DefaultGeneratorMakerOp):  # without a seed, each call has another generator
        return node.inputs[0] is not NoneConst
    registered = jax_funcify.dispatch(type(op)) is not jax_funcify.dispatch(Op)
    return registered or isinstance(op, HasMultipleInnerGraph)


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
        values = _as_drawn_from(op, params, out.type.dtype)
        checked = given is None or 0 not in given or getattr(op, "checks_nothing_drawn", True)
        for condition in getattr(op, "conditions", ()) if checked else ():
            holds = condition.holds(_INSTRUCTIONS, *(values[k] for k in condition.positions))
            require(holds, f"{op}: {condition.wrong}", ValueError)
        batches = [np.shape(p)[: np.ndim(p) - core] for p, core in zip(params, op.ndims_params)]
        shape = jnp.broadcast_shapes(*batches) if given is None else given
        following, own = jax.random.split(jnp.asarray(key, "uint32"))
        return following, sample(own, shape, out.type.dtype, *values)

    return draw


def _as_drawn_from(op: Any, params: Sequence[Any], dtype: str) -> Sequence[Any]:
    """Parameters as floats, of the dtype of draws if these are, or integers, as the domains say."""
    if not isinstance(op, Distribution):
        return params
    real = dtype if np.dtype(dtype).kind == "f" else jnp.result_type(float)
    kinds = [np.dtype(domain.dtype).kind for domain, *_ in op.parameters.values()]
    return [
        jnp.asarray(p, real if kind == "f" else jnp.result_type(int))
        for p, kind in zip(params, kinds, strict=True)
    ]


@jax_funcify.register(SpawnOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda key: tuple(jax.random.split(jnp.asarray(key, "uint32"), op.n + 1))


@jax_funcify.register(DefaultGeneratorMakerOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def key_of_seed(seed: Any) -> Any:
        """The key of 0, into which the seed is folded, its lower and its upper half."""
        key = jax.random.PRNGKey(0)
        seed = jnp.atleast_1d(seed)
        require(seed >= 0, "A seed is negative", ValueError)
        for word in seed:
            for half in (word & 0xFFFFFFFF, word >> 16 >> 16):
                key = jax.random.fold_in(key, half.astype("uint32"))
        return key

    return key_of_seed


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

    @property
    def jit_fn(self) -> Any:
        """The jitted function, from and to values with keys."""
        call: Any = self.call
        return call.jit_fn

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        given = list(values)
        for i in self.inputs:
            given[i] = key_of(values[i])
        results = self.call(given)
        for k, place in self.outputs.items():
            seed = np.asarray(results[k]).tolist()
            results[k] = np.random.default_rng(seed) if place is None else copied(values[place])
        return results
