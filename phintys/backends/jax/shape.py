"""JAX functions of shapes, creation, join and split.  Lengths are NumPy integers at trace time."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from phintys.backends.jax.dispatch import (
    TRACE_TIME_OPS,
    concrete,
    is_concrete,
    jax_funcify,
    length,
    length_of_values,
    one_or_tuple,
    require,
)
from phintys.backends.jax.native import astype
from phintys.errors import ShapeError
from phintys.graph.shapes import LARGEST
from phintys.tensor.creation import Alloc, AllocEmpty
from phintys.tensor.fill_diagonal import FillDiagonal
from phintys.tensor.join import Join, Split
from phintys.tensor.lengths import Lengths
from phintys.tensor.nonzero import Nonzero, SomeTrue
from phintys.tensor.ranges import ARange, ARangeLength, Eye, count_of
from phintys.tensor.reshape import JoinDims, Reshape, SplitDims
from phintys.tensor.shape import (
    MakeVector,
    ScalarFromTensor,
    Shape,
    Shape_i,
    SpecifyShape,
    TensorFromScalar,
    Unbroadcast,
)

TRACE_TIME_OPS.extend([MakeVector, ScalarFromTensor, TensorFromScalar, SpecifyShape])
TRACE_TIME_OPS.extend([Join, Split, Reshape, JoinDims, SplitDims, Lengths, ARangeLength])

# ----------------------------------------------------------------------- shapes as values


@jax_funcify.register(Shape)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda x: np.array(x.shape, "int64")


@jax_funcify.register(Shape_i)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda x: np.array(x.shape[op.i], "int64")


@jax_funcify.register(MakeVector)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    if not node.inputs:
        return lambda: jnp.zeros(0, op.dtype)
    return lambda *items: jnp.stack([astype(x, op.dtype) for x in items])


@jax_funcify.register(TensorFromScalar)
@jax_funcify.register(ScalarFromTensor)
@jax_funcify.register(Unbroadcast)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda x: x


@jax_funcify.register(SpecifyShape)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any, *lengths: Any) -> Any:
        for n, m in zip(x.shape, lengths):
            if m is not None:
                require(m == n, f"{op}: shape {x.shape} is not {lengths}.", ShapeError)
        return x

    return compute


@jax_funcify.register(Reshape)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any, shape: Any) -> Any:
        lengths = [int(n) for n in concrete(shape, node)]
        if x.dtype.itemsize * math.prod(n for n in lengths if n) > LARGEST:
            # XLA would abort the process
            raise ShapeError(f"{op}: an array of shape {tuple(lengths)} is too large.")
        return jnp.reshape(x, lengths)

    return compute


@jax_funcify.register(JoinDims)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    first, last = op.axis_range.start, op.axis_range.stop

    def compute(x: Any) -> Any:
        joined = math.prod(x.shape[first:last])
        return jnp.reshape(x, (*x.shape[:first], joined, *x.shape[last:]))

    return compute


@jax_funcify.register(SplitDims)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any, shape: Any) -> Any:
        lengths = [length(n, node) for n in concrete(shape, node)]
        if min(lengths, default=0) < 0 or math.prod(lengths) != x.shape[op.axis]:
            raise ShapeError(f"{op}: axis {op.axis} of shape {x.shape} has no lengths {lengths}.")
        return jnp.reshape(x, (*x.shape[: op.axis], *lengths, *x.shape[op.axis + 1 :]))

    return compute


# -------------------------------------------------------------- tensors made from lengths


@jax_funcify.register(Lengths)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(*lengths: Any) -> Any:
        for n in lengths:
            require(n >= 0, "A length is negative.", ShapeError)
        return one_or_tuple(lengths)

    return compute


@jax_funcify.register(Alloc)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    static_shape = node.inputs[0].type.shape

    def compute(value: Any, *lengths: Any) -> Any:
        target = tuple(length(n, node) for n in lengths)
        offset = len(target) - value.ndim
        for known, n, m in zip(static_shape, value.shape, target[offset:]):
            if known != 1 and n != m:
                raise ShapeError(f"{op}: a value of shape {value.shape} does not fill {target}.")
        return jnp.broadcast_to(value, target)

    return compute


@jax_funcify.register(AllocEmpty)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda *lengths: jnp.zeros([length(n, node) for n in lengths], op.dtype)


@jax_funcify.register(ARange)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(start: Any, stop: Any, step: Any) -> Any:
        count = node.outputs[0].type.shape[0]
        if count is not None and not all(map(is_concrete, (start, stop, step))):
            return astype(start + jnp.arange(count) * step, op.dtype)
        first, last, by = (concrete(x, node).item() for x in (start, stop, step))
        count_of(first, last, by)
        return jnp.arange(first, last, by, op.dtype)

    return compute


@jax_funcify.register(Eye)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(n: Any, m: Any, k: Any) -> Any:
        rows, columns = jnp.arange(length(n, node)), jnp.arange(length(m, node))
        return (columns - rows[:, None] == k).astype(op.dtype)

    return compute


@jax_funcify.register(FillDiagonal)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(a: Any, value: Any, offset: Any = 0) -> Any:
        if a.ndim > 2 and len(set(a.shape)) > 1:
            raise ShapeError(f"{op}: the lengths in the shape {a.shape} differ.")
        first, *others = jnp.indices(a.shape, sparse=True)
        is_filled = others[0] - first == offset
        for i in others[1:]:
            is_filled &= i == first
        return jnp.where(is_filled, value, a)

    return compute


# ------------------------------------------------------------------------ join and split


@jax_funcify.register(Join)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    return lambda *parts: jnp.concatenate([astype(x, dtype) for x in parts], axis=op.axis)


@jax_funcify.register(Split)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any, lengths: Any) -> Any:
        if concrete(lengths, node).sum() != x.shape[op.axis] or (lengths < 0).any():
            pieces = f"{lengths.tolist()} do not fit axis {op.axis} of shape {x.shape}"
            raise ShapeError(f"{op}: the lengths {pieces}.")
        pieces = jnp.split(x, np.cumsum(lengths)[:-1].tolist(), axis=op.axis)
        return one_or_tuple(pieces)

    return compute


@jax_funcify.register(Nonzero)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any) -> Any:
        if isinstance(x, Tracer):
            raise length_of_values(node, node.inputs[0])
        return one_or_tuple(jnp.nonzero(x))

    return compute


@jax_funcify.register(SomeTrue)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(mask: Any) -> Any:
        require(mask.any(), "The mask selects no element.", ValueError)
        return mask

    return compute
