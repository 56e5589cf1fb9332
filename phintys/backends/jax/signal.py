"""JAX functions of convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from phintys.backends.jax.dispatch import call_back, jax_funcify, length, output_shapes
from phintys.backends.jax.native import astype
from phintys.graph.shapes import check_shapes
from phintys.graph.variable import Apply
from phintys.scalar import dtypes
from phintys.tensor.nnet.corr import (
    BaseCorrMM,
    CorrMM,
    CorrMM_gradInputs,
    CorrMM_gradWeights,
    border_pad,
)
from phintys.tensor.signal.conv import Convolve1d, Convolve2d


@jax_funcify.register(Convolve1d)
@jax_funcify.register(Convolve2d)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype, k = node.outputs[0].type.dtype, op.ndim
    if dtypes.is_discrete(dtype):
        return call_back(op, node=node)

    def item(x: Any, y: Any, pads: Any) -> Any:
        y = jnp.flip(y)[None, None]
        return jax.lax.conv_general_dilated(x[None, None], y, (1,) * k, pads)[0, 0]

    def compute(x: Any, y: Any, *region: Any) -> Any:
        check_shapes(node, [x, y, *region])
        starts, lengths = ([length(n, node) for n in given] for given in (region[:k], region[k:]))
        batch = jnp.broadcast_shapes(x.shape[:-k], y.shape[:-k])
        if 0 in (*x.shape, *y.shape, *lengths):
            return jnp.zeros((*batch, *lengths), dtype)
        sizes = zip(x.shape[-k:], y.shape[-k:], starts, lengths)
        pads = [(m - 1 - s, found - n + s) for n, m, s, found in sizes]
        x, y = (
            jnp.broadcast_to(astype(v, dtype), (*batch, *v.shape[-k:])).reshape(-1, *v.shape[-k:])
            for v in (x, y)
        )
        found = jax.vmap(lambda x, y: item(x, y, pads))(x, y)
        return found.reshape(*batch, *lengths)

    return compute


def _correlation(op: BaseCorrMM) -> Callable[[Any, Any], Any]:
    """The correlation of images with filters."""

    def compute(x: Any, w: Any) -> Any:
        dilated = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], op.filter_dilation)]
        return jax.lax.conv_general_dilated(
            x,
            w,
            op.subsample,
            [border_pad(op.border_mode, axis, n) for axis, n in enumerate(dilated)],
            rhs_dilation=op.filter_dilation,
            feature_group_count=op.num_groups,
        )

    return compute


def _computed(node: Apply, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two tensors and lengths, which are checked; zeros if there are no elements."""
    dtype = node.outputs[0].type.dtype

    def compute(x: Any, y: Any, *lengths: Any) -> Any:
        check_shapes(node, [x, y, *lengths])
        (shape,) = output_shapes(node, [x, y, *lengths])
        if 0 in (*x.shape, *y.shape, *shape):
            return jnp.zeros(shape, dtype)
        return function(astype(x, dtype), astype(y, dtype), jax.ShapeDtypeStruct(shape, dtype))

    return compute


@jax_funcify.register(CorrMM)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    correlation = _correlation(op)
    return _computed(node, lambda x, w, out: correlation(x, w))


@jax_funcify.register(CorrMM_gradWeights)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    correlation = _correlation(op)

    def transposed(x: Any, g: Any, out: Any) -> Any:
        return jax.linear_transpose(lambda w: correlation(x, w), out)(g)[0]

    return _computed(node, transposed)


@jax_funcify.register(CorrMM_gradInputs)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    correlation = _correlation(op)

    def transposed(w: Any, g: Any, out: Any) -> Any:
        return jax.linear_transpose(lambda x: correlation(x, w), out)(g)[0]

    return _computed(node, transposed)
