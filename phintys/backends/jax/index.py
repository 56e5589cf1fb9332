"""JAX functions of indexing, and of setting and incrementing parts of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from phintys.backends.jax.dispatch import (
    TRACE_TIME_OPS,
    is_concrete,
    jax_funcify,
    length,
    length_of_values,
    one_or_tuple,
    require,
)
from phintys.backends.jax.native import astype
from phintys.graph.shapes import check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.tensor.index_ops import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)
from phintys.tensor.multi_index import RavelMultiIndex, UnravelIndex
from phintys.tensor.permute import PermuteRowElements

TRACE_TIME_OPS.extend([Subtensor, AdvancedSubtensor])


def python_index(op: Any, node: Apply, x: Any, values: Sequence[Any]) -> tuple[Any, ...]:
    """The index for a JAX array: slices of ints, masks and integers, whose bounds are checked."""
    key = op.key(values)
    axis = 0
    found: list[Any] = []
    for entry in key:
        if isinstance(entry, slice):
            found.append(_slice(entry, x.shape[axis], node))
            axis += 1
        elif np.dtype(entry.dtype) == bool:
            found.append(_mask(entry, x, axis, node, values))
            axis += entry.ndim
        else:
            found.append(_integers(entry, x.shape[axis], axis))
            axis += 1
    return tuple(found)


def _check_broadcast(node: Apply, values: Sequence[Any], count: int) -> None:
    """Check that the last ``count`` values, indices, broadcast along lengths known to be 1."""
    if len({i.shape for i in values[len(values) - count :] if np.ndim(i)}) > 1:
        check_shapes(node, values)


def _slice(entry: slice, n: int, node: Apply) -> slice:
    parts = (entry.start, entry.stop, entry.step)
    start, stop, step = (None if p is None else length(p, node) for p in parts)
    if step is not None:  # clipped: a larger one selects the same element, but XLA may overflow
        step = max(-n - 1, min(step, n + 1))
    return slice(start, stop, step)


def _mask(mask: Any, x: Any, axis: int, node: Apply, values: Sequence[Any]) -> Any:
    if isinstance(mask, Tracer):
        raise length_of_values(node, _variable_of(mask, values, node))
    mask = np.asarray(mask)
    shape = x.shape[axis : axis + mask.ndim]
    require(shape == mask.shape, f"A mask of shape {mask.shape} does not fit lengths {shape}.")
    return mask


def _variable_of(mask: Any, values: Sequence[Any], node: Apply) -> Variable:
    """The input of an indexing node that a value is given for; indices are the last inputs."""
    (place, *_) = [k for k, value in enumerate(values) if value is mask]
    found: Variable = node.inputs[place - len(values)]
    return found


def _integers(i: Any, n: int, axis: int) -> Any:
    if np.dtype(i.dtype).itemsize < 4:  # the length may not fit in int8 or int16
        i = i.astype("int32")
    least = 0 if np.dtype(i.dtype).kind == "u" else -n
    require((i >= least) & (i < n), f"An index is out of range for axis {axis} of length {n}.")
    return int(i) if is_concrete(i) and np.ndim(i) == 0 else i


@jax_funcify.register(Subtensor)
@jax_funcify.register(AdvancedSubtensor)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any, *indices: Any) -> Any:
        _check_broadcast(node, [x, *indices], len(indices))
        return jnp.asarray(x)[python_index(op, node, x, indices)]

    return compute


@jax_funcify.register(IncSubtensor)
@jax_funcify.register(AdvancedIncSubtensor)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    once = getattr(op, "ignore_duplicates", False)

    def compute(x: Any, y: Any, *indices: Any) -> Any:
        x = jnp.asarray(x)
        _check_broadcast(node, [x, y, *indices], len(indices))
        key = python_index(op, node, x, indices)
        if y.shape != x[key].shape:
            check_shapes(node, [x, y, *indices])
        y = astype(y, x.dtype.name)
        if all(isinstance(i, slice) for i in key) and x[key].shape == x.shape:
            y = jnp.broadcast_to(y, x.shape)[key]  # XLA 0.10 may abort at a scatter to everything
            return y if op.set_instead_of_inc else x | y if x.dtype == bool else x + y
        if op.set_instead_of_inc:
            return x.at[key].set(y)
        if once:
            return x.at[key].set(x[key] + y)
        return x.at[key].max(y) if x.dtype == bool else x.at[key].add(y)

    return compute


@jax_funcify.register(PermuteRowElements)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any, y: Any) -> Any:
        shape: Any = jnp.broadcast_shapes(x.shape, y.shape)
        x, y = jnp.broadcast_to(x, shape), _integers(y, shape[-1], len(shape) - 1)
        y = jnp.broadcast_to(y, shape)
        if op.inverse:
            return jnp.put_along_axis(x, y, x, -1, inplace=False)
        return jnp.take_along_axis(x, y, -1)

    return compute


@jax_funcify.register(RavelMultiIndex)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(*inputs: Any) -> Any:
        *index, dims = inputs
        found, stride = jnp.zeros((), "int64"), 1
        for axis in op.innermost_first(len(index)):
            i, n = index[axis], dims[axis]
            if op.mode == "raise":
                require((i >= 0) & (i < n), "A position is out of range.", ValueError)
            i = {"wrap": i % n, "clip": jnp.clip(i, 0, n - 1)}.get(op.mode, i)
            found, stride = found + i * stride, stride * n
        return found

    return compute


@jax_funcify.register(UnravelIndex)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(i: Any, dims: Any) -> Any:
        require((i >= 0) & (i < dims.prod()), "A position is out of range.", ValueError)
        found: dict[int, Any] = {}
        for axis in op.innermost_first(len(node.outputs)):
            found[axis], i = i % dims[axis], i // dims[axis]
        return one_or_tuple([jnp.asarray(found[k]) for k in range(len(found))])

    return compute
