"""Batch normalization (S. Ioffe, C. Szegedy, "Batch normalization", 2015)."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.ignored import ignores
from phintys.scalar import dtypes
from phintys.tensor.aliases import TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, dimshuffle, functions
from phintys.tensor.shape import product, shape_tuple, specify_broadcastable
from phintys.tensor.statistics import mean as mean_over
from phintys.tensor.statistics import var as var_over
from phintys.tensor.variable import TensorVariable

__all__ = ["batch_normalization", "batch_normalization_test", "batch_normalization_train"]

AxesOfBatch = str | int | Sequence[int]


def _axes(axes: AxesOfBatch, ndim: int) -> tuple[int, ...]:
    """The axes over which statistics are taken."""
    if axes == "per-activation":
        return (0,)
    if axes == "spatial":
        return (0, *range(2, ndim))
    if isinstance(axes, str):
        raise ValueError(f"axes are 'per-activation', 'spatial' or numbers, not {axes!r}.")
    found = tuple(sorted(map(int, axes))) if isinstance(axes, Sequence) else (int(axes),)
    if not found or found[0] < 0 or found[-1] >= ndim or len(set(found)) < len(found):
        raise ValueError(f"axes are different axes of {ndim}, not {axes!r}.")
    return found


def _spread(v: TensorLike, axes: tuple[int, ...], ndim: int) -> TensorVariable:
    """A parameter with length 1 along the axes of the batch, which it may lack."""
    v = as_tensor_variable(v)
    if v.type.ndim == ndim:
        return specify_broadcastable(v, *axes)
    if v.type.ndim != ndim - len(axes):
        raise ValueError(f"A parameter has {ndim} or {ndim - len(axes)} axes, not {v.type.ndim}.")
    others = iter(range(v.type.ndim))
    return dimshuffle(v, *["x" if i in axes else next(others) for i in range(ndim)])


@ignores("mode")
def batch_normalization(
    inputs: TensorLike,
    gamma: TensorLike,
    beta: TensorLike,
    mean: TensorLike,
    std: TensorLike,
    mode: str = "low_mem",
) -> TensorVariable:
    """``(inputs - mean) * gamma / std + beta``; the arguments broadcast.  ``mode`` is ignored."""
    x, gamma, beta, mean, std = (as_tensor_variable(v) for v in (inputs, gamma, beta, mean, std))
    return (x - mean) * (gamma / std) + beta


def batch_normalization_train(
    inputs: TensorLike,
    gamma: TensorLike,
    beta: TensorLike,
    axes: AxesOfBatch = "per-activation",
    epsilon: float | TensorVariable = 1e-4,
    running_average_factor: float | TensorVariable = 0.1,
    running_mean: TensorLike | None = None,
    running_var: TensorLike | None = None,
) -> tuple[TensorVariable, ...]:
    """``inputs`` with the mean and variance of the batch made ``beta`` and ``gamma ** 2``.

    Parameters
    ----------
    inputs : tensor
    gamma, beta : tensors with the axes of ``inputs``, of which those of the batch have length 1 or
        are left out
    axes : the axes of the batch: ``"per-activation"``: the first; ``"spatial"``: all but the
        second; or numbers
    epsilon : added to the variance
    running_average_factor : the weight of the new statistics in the running ones
    running_mean, running_var : running averages so far, like ``gamma``; both or none

    Results: the normalized tensor, the mean, and ``1 / sqrt(variance + epsilon)``, with the axes of
    ``gamma``; then the new running averages, if there are any, of the mean and of the unbiased
    variance.  ValueError for other axes or ranks.

    >>> import phintys.tensor as pt
    >>> out, mean, _ = pt.nnet.batch_normalization_train([[1.0], [3.0]], [2.0], [5.0])
    >>> out.eval().round(2).tolist(), mean.eval().tolist()
    ([[3.0], [7.0]], [2.0])
    """
    x = as_tensor_variable(inputs)
    found = _axes(axes, x.type.ndim)
    if (running_mean is None) != (running_var is None):
        raise ValueError("Give running_mean and running_var, or none of them.")
    dropped = found if as_tensor_variable(gamma).type.ndim < x.type.ndim else ()
    gamma, beta = (_spread(v, found, x.type.ndim) for v in (gamma, beta))
    mean, var = mean_over(x, found, keepdims=True), var_over(x, found, keepdims=True)
    inverse = 1.0 / functions.sqrt(var + _number(epsilon, var))
    out = (x - mean) * (gamma * inverse) + beta
    if running_mean is None or running_var is None:
        return out, *[_dropped(v, dropped) for v in (mean, inverse)]
    number = cast(product([shape_tuple(x)[axis] for axis in found]), var.type.dtype)
    old = [_spread(v, found, x.type.ndim) for v in (running_mean, running_var)]
    new = mean, var * (number / (number - 1.0))
    weight = _number(running_average_factor, var)
    averages = [u * (1.0 - weight) + v * weight for u, v in zip(old, new)]
    return out, *[_dropped(v, dropped) for v in (mean, inverse, *averages)]


def _number(value: float | TensorVariable, like: TensorVariable) -> float | TensorVariable:
    """A number that does not change the dtype of what it is added to."""
    is_float = dtypes.is_float(like.type.dtype)
    return cast(value, like.type.dtype) if isinstance(value, float) and is_float else value


def _dropped(v: TensorVariable, axes: tuple[int, ...]) -> TensorVariable:
    """``v`` without some axes, which have length 1."""
    return dimshuffle(v, *[i for i in range(v.type.ndim) if i not in axes])


def batch_normalization_test(
    inputs: TensorLike,
    gamma: TensorLike,
    beta: TensorLike,
    mean: TensorLike,
    var: TensorLike,
    axes: AxesOfBatch = "per-activation",
    epsilon: float | TensorVariable = 1e-4,
) -> TensorVariable:
    """``(inputs - mean) * gamma / sqrt(var + epsilon) + beta``, with statistics that are known.

    Parameters are those of `batch_normalization_train`.
    """
    x = as_tensor_variable(inputs)
    found = _axes(axes, x.type.ndim)
    gamma, beta, mean, var = (_spread(v, found, x.type.ndim) for v in (gamma, beta, mean, var))
    return (x - mean) * (gamma / functions.sqrt(var + _number(epsilon, var))) + beta
