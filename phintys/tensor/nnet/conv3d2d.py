"""Convolutions of movies, whose frames come before their channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from phintys.tensor.aliases import Length, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import dimshuffle
from phintys.tensor.nnet import abstract_conv
from phintys.tensor.nnet.conv_shapes import border_mode_to_pad
from phintys.tensor.pad import pad
from phintys.tensor.shape import shape_tuple, specify_shape
from phintys.tensor.static import as_length
from phintys.tensor.variable import TensorVariable

__all__ = ["conv3d"]

BorderMode = Literal["valid", "full", "half"]


def conv3d(
    signals: TensorLike,
    filters: TensorLike,
    signals_shape: Sequence[Length | None] | None = None,
    filters_shape: Sequence[Length | None] | None = None,
    border_mode: BorderMode | Sequence[BorderMode] = "valid",
) -> TensorVariable:
    """The convolutions of movies with filters, a tensor (batch, frames, filters, rows, columns).

    Parameters
    ----------
    signals : movies (batch, frames, channels, rows, columns)
    filters : tensor (filters, frames, channels, rows, columns)
    signals_shape, filters_shape : lengths that are known, None for others
    border_mode : ``"valid"``, ``"full"`` or ``"half"``, as for `conv2d`; or one for each of frames,
        rows and columns

    The dtype is that of `nnet.conv3d`, which has the same values in another order of axes.
    TypeError if a tensor has not five axes, ValueError for other modes, ShapeError if channels do
    not fit or a filter is longer than what it moves in.

    >>> import phintys.tensor as pt
    >>> from phintys.tensor.nnet import conv3d2d
    >>> movie = pt.arange(8.0).reshape((1, 4, 1, 1, 2))
    >>> conv3d2d.conv3d(movie, [[[[[1.0]]], [[[-1.0]]]]]).eval()[0, :, 0, 0]
    array([[2., 2.],
           [2., 2.],
           [2., 2.]])
    """
    modes = [border_mode] * 3 if isinstance(border_mode, str) else list(border_mode)
    if len(modes) != 3 or any(mode not in ("valid", "full", "half") for mode in modes):
        raise ValueError(
            "border_mode is 'valid', 'full' or 'half', or one for each of 3 axes, "
            f"not {border_mode!r}."
        )
    x, w = (
        dimshuffle(_movie(v, shape), 0, 2, 1, 3, 4)
        for v, shape in ((signals, signals_shape), (filters, filters_shape))
    )
    kernel = [as_length(n) for n in shape_tuple(w)[2:]]
    pads = [border_mode_to_pad(mode, 1, [n])[0] for mode, n in zip(modes, kernel)]
    found = abstract_conv.conv3d(pad(x, [(0, 0), (0, 0), *pads]), w)
    return dimshuffle(found, 0, 2, 1, 3, 4)


def _movie(x: TensorLike, shape: Sequence[Length | None] | None) -> TensorVariable:
    x = as_tensor_variable(x)
    if x.type.ndim != 5:
        raise TypeError(f"Movies and their filters have 5 axes; {x} has {x.type.ndim}.")
    return x if shape is None else specify_shape(x, list(shape))
