"""Shapes of draws: the argument ``size``, and parameters that are broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys import bitgen
from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import ShapeLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import broadcast_batches, broadcast_shape_iter
from phintys.tensor.elemwise import cast, dimshuffle
from phintys.tensor.shape import lengths_vector, shape_tuple
from phintys.tensor.static import as_length
from phintys.tensor.type_other import NoneConst, NoneTypeT
from phintys.tensor.variable import Tensors, TensorVariable

#: the argument ``size`` of a draw
Size = ShapeLike | None


def rv_size_is_none(size: Variable | None) -> bool:
    """Whether the input ``size`` of a draw is None, so that the parameters give the shape."""
    return size is None or isinstance(size.type, NoneTypeT)


def normalize_size_param(size: Size) -> Variable:
    """The argument ``size`` of a draw as an int64 vector of known length, or as `NoneConst`.

    TypeError if it is not an integer, a sequence of integers, an integer vector or None; ValueError
    if the length of a vector is not known.

    >>> normalize_size_param(3).data
    array([3])
    """
    if size is None or (isinstance(size, Variable) and isinstance(size.type, NoneTypeT)):
        return NoneConst
    given: Any = size  # `np.size` is not declared to take variables
    if (
        isinstance(size, Sequence | np.ndarray)
        and not isinstance(size, str)
        and np.size(given) == 0
    ):
        return as_tensor_variable(np.zeros(0, "int64"))
    if isinstance(size, int | np.integer | np.ndarray):
        size = np.atleast_1d(size).astype("int64")
    size = as_tensor_variable(size)
    if size.type.dtype not in dtypes.INTEGER or size.type.ndim > 1:
        raise TypeError(f"The size of a draw is an integer, a vector of them or None, not {size}.")
    if size.type.ndim == 0:
        size = dimshuffle(size, ["x"])
    if size.type.shape[0] is None:
        raise ValueError(
            f"The length of size is not known: {size} has type {size.type}. Declare it, e.g. by "
            "pt.vector(dtype='int64', shape=(2,)), or give a list of integers."
        )
    return cast(size, "int64")


def explicit_expand_dims(
    params: Tensors, ndim_params: Sequence[int], size_length: int | None = None
) -> list[TensorVariable]:
    """The parameters with axes of length 1 inserted, so that all have equally many batch axes.

    ``ndim_params`` are the ranks of one item.  With a ``size_length`` there are so many batch axes;
    ValueError if that is too few for a parameter.
    """
    counts = [p.type.ndim - core for p, core in zip(params, ndim_params, strict=True)]
    most = max(counts, default=0)
    if size_length is not None:
        if most > size_length:
            raise ValueError(
                f"The size of a draw has {size_length} lengths, but a parameter has {most} batch "
                "dimensions: the size includes those of the parameters."
            )
        most = size_length
    return [
        p if n == most else dimshuffle(p, ["x"] * (most - n) + list(range(p.type.ndim)))
        for p, n in zip(params, counts)
    ]


def compute_batch_shape(params: Tensors, ndims_params: Sequence[int]) -> TensorVariable:
    """The batch shape that parameters broadcast to, as an int64 vector.

    ``ndims_params`` are the ranks of one item.  ShapeError if lengths are known to differ.

    >>> import phintys.tensor as pt
    >>> compute_batch_shape([pt.zeros((2, 3)), pt.zeros((4, 1, 3))], [1, 1]).eval()
    array([4, 2])
    """
    batches = [shape_tuple(p)[: p.type.ndim - core] for p, core in zip(params, ndims_params)]
    return lengths_vector(broadcast_shape_iter(batches, arrays_are_shapes=True))


def params_broadcast_shapes(
    param_shapes: Sequence[Any], ndims_params: Sequence[int], use_pytensor: bool = True
) -> list[tuple[Any, ...]]:
    """The shapes of parameters whose batch axes are broadcast against each other.

    ``param_shapes`` are shapes, and ``ndims_params`` the ranks of one item.  Lengths are variables,
    or ints if not ``use_pytensor``; then ValueError if they do not broadcast.

    >>> params_broadcast_shapes([(2, 1, 3), (4, 3, 3)], [1, 2], use_pytensor=False)
    [(2, 4, 3), (2, 4, 3, 3)]
    """
    shapes = [tuple(s) for s in param_shapes]
    batches = [s[: len(s) - core] for s, core in zip(shapes, ndims_params, strict=True)]
    cores = [s[len(s) - core :] for s, core in zip(shapes, ndims_params)]
    if use_pytensor:
        batch: Any = broadcast_shape_iter(batches, arrays_are_shapes=True)
        cores = [tuple(as_length(n) for n in core) for core in cores]
    else:
        batch = np.broadcast_shapes(*batches)
    return [(*batch, *core) for core in cores]


def broadcast_params(params: Sequence[Any], ndims_params: Sequence[int]) -> list[Any]:
    """Parameters, arrays or variables, whose batch axes are broadcast against each other.

    ``ndims_params`` are the ranks of one item.  ValueError if lengths do not broadcast.

    >>> mean, cov = broadcast_params([np.zeros(3), np.ones((2, 3, 3))], [1, 2])
    >>> mean.shape, cov.shape
    ((2, 3), (2, 3, 3))
    """
    if any(isinstance(p, Variable) for p in params):
        return list(broadcast_batches([as_tensor_variable(p) for p in params], ndims_params))
    shapes = params_broadcast_shapes(
        [np.shape(p) for p in params], ndims_params, use_pytensor=False
    )
    return [np.broadcast_to(p, s) for p, s in zip(params, shapes)]


def supp_shape_from_ref_param_shape(
    *,
    ndim_supp: int,
    dist_params: Sequence[Variable],
    param_shapes: Sequence[Sequence[Any]] | None = None,
    ref_param_idx: int,
) -> tuple[Any, ...]:
    """The last ``ndim_supp`` lengths of a parameter, for `RandomVariable._supp_shape_from_params`.

    A signature such as ``"(n),(n,n)->(n)"`` says the same.

    Parameters
    ----------
    ndim_supp
        the rank of one draw
    dist_params, param_shapes
        the parameters, and their shapes if they are known
    ref_param_idx
        the position of the parameter

    ValueError if ``ndim_supp`` is not positive, or the parameter has too few axes.

    >>> import phintys.tensor as pt
    >>> supp_shape_from_ref_param_shape(
    ...     ndim_supp=1, dist_params=[pt.dmatrix()], param_shapes=[(2, 3)], ref_param_idx=0
    ... )
    (3,)
    """
    if ndim_supp <= 0:
        raise ValueError(f"ndim_supp must be positive: {ndim_supp}.")
    param = as_tensor_variable(dist_params[ref_param_idx])
    shape = shape_tuple(param) if param_shapes is None else tuple(param_shapes[ref_param_idx])
    if len(shape) < ndim_supp:
        raise ValueError(f"{param} has fewer than {ndim_supp} dimensions.")
    return shape[len(shape) - ndim_supp :]


def default_supp_shape_from_params(
    ndim_supp: int,
    dist_params: Sequence[Variable],
    rep_param_idx: int = 0,
    param_shapes: Sequence[Sequence[Any]] | None = None,
) -> tuple[Any, ...]:
    """`supp_shape_from_ref_param_shape`, under the name and with the parameters of Aesara."""
    return supp_shape_from_ref_param_shape(
        ndim_supp=ndim_supp,
        dist_params=dist_params,
        param_shapes=param_shapes,
        ref_param_idx=rep_param_idx,
    )


def custom_rng_deepcopy(rng: np.random.Generator) -> np.random.Generator:
    """A generator in the same state: `phintys.bitgen.copied`."""
    return bitgen.copied(rng)
