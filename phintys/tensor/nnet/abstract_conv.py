"""Convolutions of batches of images with Aesara's conventions: `conv2d`, `conv3d`, and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.tensor.aliases import Length, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.index import getitem
from phintys.tensor.nnet import unshared as locally
from phintys.tensor.nnet.corr import BorderLike, CorrMM, CorrMM_gradInputs, CorrMM_gradWeights
from phintys.tensor.shape import specify_shape
from phintys.tensor.static import known_length
from phintys.tensor.variable import TensorVariable

__all__ = [
    "abstract_conv2d",
    "causal_conv1d",
    "conv2d",
    "conv2d_grad_wrt_inputs",
    "conv2d_grad_wrt_weights",
    "conv2d_transpose",
    "conv3d",
    "conv3d_grad_wrt_inputs",
    "conv3d_grad_wrt_weights",
    "separable_conv2d",
    "separable_conv3d",
]

#: lengths, of which some may be None: not known
Known = Sequence[Length | None] | None


def _known(x: TensorLike, shape: Known) -> TensorVariable:
    """``x`` with the lengths that are known."""
    x = as_tensor_variable(x)
    return x if shape is None else specify_shape(x, list(shape))


def _flipped(filters: TensorVariable, flip: bool, ndim: int) -> TensorVariable:
    """Filters with their lengths reversed, if ``flip``: a correlation becomes a convolution."""
    if not flip:
        return filters
    return getitem(filters, (..., *[slice(None, None, -1)] * ndim))


def _conv(
    input: TensorLike, filters: TensorLike, input_shape: Known, filter_shape: Known,
    filter_flip: bool, unshared: bool = False, **props: Any,
) -> TensorVariable:  # fmt: skip
    input = _known(input, input_shape)
    filters = _flipped(_known(filters, filter_shape), filter_flip, input.type.ndim - 2)
    return (
        locally.correlate(input, filters, **props) if unshared else CorrMM(**props)(input, filters)
    )


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    input_shape: Known = None,
    filter_shape: Known = None,
    border_mode: BorderLike = "valid",
    subsample: Sequence[int] = (1, 1),
    filter_flip: bool = True,
    image_shape: Known = None,
    filter_dilation: Sequence[int] = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> TensorVariable:
    """The convolutions of images with filters, a tensor (batch, filters, rows, columns).

    Parameters
    ----------
    input : images (batch, channels, rows, columns)
    filters : tensor (filters, channels / num_groups, rows, columns)
    input_shape, filter_shape : lengths that are known, None for others; a call with other lengths
        is a ShapeError
    border_mode : what surrounds images: ``"valid"``: nothing; ``"full"``: zeros at all positions
        where a filter meets the image; ``"half"``: as many zeros as half a filter, so that odd
        filters keep the lengths; a number of zeros, or for each axis a number or a pair of numbers
    subsample : the distances of the positions of results
    filter_flip : False: correlations, for which filters are not reversed
    image_shape : the same as ``input_shape``
    filter_dilation : the distances of elements of the image that a filter meets
    num_groups : into how many groups channels and filters are divided; those of different groups
        do not meet
    unshared : True: filters differ from place to place; they are a tensor (filters, rows of the
        result, columns of the result, channels / num_groups, rows, columns)

    The dtype is float32 or float64, complex64 or complex128.  ValueError if a parameter is none of
    the above, ShapeError if channels do not fit or a filter is longer than what it moves in.

    >>> import phintys.tensor as pt
    >>> image = pt.arange(9.0).reshape((1, 1, 3, 3))
    >>> pt.nnet.conv2d(image, [[[[1.0, 0.0], [0.0, -1.0]]]]).eval()
    array([[[[4., 4.],
             [4., 4.]]]])
    """
    return _conv(
        input, filters, image_shape if input_shape is None else input_shape, filter_shape,
        filter_flip, border_mode=border_mode, subsample=subsample,
        filter_dilation=filter_dilation, num_groups=num_groups,
        unshared=unshared,
    )  # fmt: skip


#: another name that Aesara has
abstract_conv2d = conv2d


def conv3d(
    input: TensorLike,
    filters: TensorLike,
    input_shape: Known = None,
    filter_shape: Known = None,
    border_mode: BorderLike = "valid",
    subsample: Sequence[int] = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1, 1),
    num_groups: int = 1,
) -> TensorVariable:
    """`conv2d` with one more axis: images are (batch, channels, depth, rows, columns)."""
    return _conv(
        input, filters, input_shape, filter_shape, filter_flip, border_mode=border_mode,
        subsample=subsample, filter_dilation=filter_dilation, num_groups=num_groups,
    )  # fmt: skip


# ---------------------------------------------------------------------- cotangents


def _grad_wrt_inputs(
    output_grad: TensorLike, filters: TensorLike, input_shape: Sequence[Length | None],
    filter_shape: Known, filter_flip: bool, unshared: bool = False, **props: Any,
) -> TensorVariable:  # fmt: skip
    ndim = len(props["subsample"])
    filters = _flipped(_known(filters, filter_shape), filter_flip, ndim)
    lengths = _lengths(input_shape, ndim, ndim + 2, "input_shape")
    if unshared:
        out = locally.cotangent_of_images(output_grad, filters, lengths, **props)
    else:
        out = CorrMM_gradInputs(**props)(filters, output_grad, *lengths)
    return _agreeing(out, input_shape)


def _grad_wrt_weights(
    input: TensorLike, output_grad: TensorLike, filter_shape: Sequence[Length | None],
    input_shape: Known, filter_flip: bool, unshared: bool = False, **props: Any,
) -> TensorVariable:  # fmt: skip
    ndim = len(props["subsample"])
    lengths = _lengths(filter_shape, ndim, 2 * ndim + 2 if unshared else ndim + 2, "filter_shape")
    input = _known(input, input_shape)
    if unshared:
        out = locally.cotangent_of_filters(input, output_grad, lengths, **props)
    else:
        out = CorrMM_gradWeights(**props)(input, output_grad, *lengths)
    return _flipped(_agreeing(out, filter_shape), filter_flip, ndim)


def _lengths(shape: Sequence[Length | None], ndim: int, rank: int, name: str) -> list[Length]:
    """The lengths at the end of a shape of ``rank`` lengths."""
    found = [n for n in list(shape)[-ndim:] if n is not None]
    if len(found) != ndim or len(shape) != rank:
        raise ValueError(f"{name} has {rank} entries, the last {ndim} of which are not None.")
    return found


def _agreeing(x: TensorVariable, shape: Sequence[Length | None]) -> TensorVariable:
    """``x`` with those lengths of a shape that are numbers."""
    return _known(x, [known_length(n) if n is not None else None for n in shape])


def conv2d_grad_wrt_inputs(
    output_grad: TensorLike,
    filters: TensorLike,
    input_shape: Sequence[Length | None],
    filter_shape: Known = None,
    border_mode: BorderLike = "valid",
    subsample: Sequence[int] = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> TensorVariable:
    """The cotangent of the images of `conv2d`, from ``output_grad``, that of its result.

    ``input_shape`` is the shape of the images, whose last two lengths must be given: the result of
    `conv2d` does not determine them.  Other parameters are those of `conv2d`.
    """
    return _grad_wrt_inputs(
        output_grad, filters, input_shape, filter_shape, filter_flip, border_mode=border_mode,
        subsample=subsample, filter_dilation=filter_dilation, num_groups=num_groups,
        unshared=unshared,
    )  # fmt: skip


def conv3d_grad_wrt_inputs(
    output_grad: TensorLike,
    filters: TensorLike,
    input_shape: Sequence[Length | None],
    filter_shape: Known = None,
    border_mode: BorderLike = "valid",
    subsample: Sequence[int] = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1, 1),
    num_groups: int = 1,
) -> TensorVariable:
    """The cotangent of the images of `conv3d`; see `conv2d_grad_wrt_inputs`."""
    return _grad_wrt_inputs(
        output_grad, filters, input_shape, filter_shape, filter_flip, border_mode=border_mode,
        subsample=subsample, filter_dilation=filter_dilation, num_groups=num_groups,
    )  # fmt: skip


def conv2d_grad_wrt_weights(
    input: TensorLike,
    output_grad: TensorLike,
    filter_shape: Sequence[Length | None],
    input_shape: Known = None,
    border_mode: BorderLike = "valid",
    subsample: Sequence[int] = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> TensorVariable:
    """The cotangent of the filters of `conv2d`, from ``output_grad``, that of its result.

    ``filter_shape`` is the shape of the filters, whose last two lengths must be given; it has six
    entries if they are ``unshared``.  Other
    parameters are those of `conv2d`.
    """
    return _grad_wrt_weights(
        input, output_grad, filter_shape, input_shape, filter_flip, border_mode=border_mode,
        subsample=subsample, filter_dilation=filter_dilation, num_groups=num_groups,
        unshared=unshared,
    )  # fmt: skip


def conv3d_grad_wrt_weights(
    input: TensorLike,
    output_grad: TensorLike,
    filter_shape: Sequence[Length | None],
    input_shape: Known = None,
    border_mode: BorderLike = "valid",
    subsample: Sequence[int] = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1, 1),
    num_groups: int = 1,
) -> TensorVariable:
    """The cotangent of the filters of `conv3d`; see `conv2d_grad_wrt_weights`."""
    return _grad_wrt_weights(
        input, output_grad, filter_shape, input_shape, filter_flip, border_mode=border_mode,
        subsample=subsample, filter_dilation=filter_dilation, num_groups=num_groups,
    )  # fmt: skip


def conv2d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Sequence[Length | None],
    filter_shape: Known = None,
    border_mode: BorderLike = "valid",
    input_dilation: Sequence[int] = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> TensorVariable:
    """The transpose of a convolution, which enlarges images: `conv2d_grad_wrt_inputs`.

    ``filters`` is a tensor (channels of the input, channels of the result / num_groups, rows,
    columns), ``input_dilation`` what ``subsample`` is there, ``output_shape`` the shape of the
    result, whose last two lengths must be given.
    """
    return conv2d_grad_wrt_inputs(
        input, filters, output_shape, filter_shape, border_mode, input_dilation, filter_flip,
        filter_dilation, num_groups, unshared,
    )  # fmt: skip


# -------------------------------------------------------------------- compositions


def separable_conv2d(
    input: TensorLike,
    depthwise_filters: TensorLike,
    pointwise_filters: TensorLike,
    num_channels: int,
    input_shape: Known = None,
    depthwise_filter_shape: Known = None,
    pointwise_filter_shape: Known = None,
    border_mode: BorderLike = "valid",
    subsample: Sequence[int] = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1),
) -> TensorVariable:
    """Convolutions of each channel alone, of which the second filters make combinations.

    Parameters
    ----------
    input : images (batch, num_channels, rows, columns)
    depthwise_filters : tensor (num_channels * n, 1, rows, columns)
    pointwise_filters : tensor (filters, num_channels * n, 1, 1)
    num_channels : the number of channels
    input_shape, depthwise_filter_shape, pointwise_filter_shape : lengths that are known
    border_mode, subsample, filter_flip, filter_dilation : as for `conv2d`, of the first filters
    """
    first = conv2d(
        input, depthwise_filters, input_shape, depthwise_filter_shape, border_mode, subsample,
        filter_flip, None, filter_dilation, num_channels,
    )  # fmt: skip
    return conv2d(first, pointwise_filters, None, pointwise_filter_shape, filter_flip=filter_flip)


def separable_conv3d(
    input: TensorLike,
    depthwise_filters: TensorLike,
    pointwise_filters: TensorLike,
    num_channels: int,
    input_shape: Known = None,
    depthwise_filter_shape: Known = None,
    pointwise_filter_shape: Known = None,
    border_mode: BorderLike = "valid",
    subsample: Sequence[int] = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1, 1),
) -> TensorVariable:
    """`separable_conv2d` with one more axis."""
    first = conv3d(
        input, depthwise_filters, input_shape, depthwise_filter_shape, border_mode, subsample,
        filter_flip, filter_dilation, num_channels,
    )  # fmt: skip
    return conv3d(first, pointwise_filters, None, pointwise_filter_shape, filter_flip=filter_flip)


def causal_conv1d(
    input: TensorLike,
    filters: TensorLike,
    filter_shape: Sequence[int],
    input_shape: Known = None,
    subsample: int = 1,
    filter_flip: bool = True,
    filter_dilation: int = 1,
    num_groups: int = 1,
    unshared: bool = False,
) -> TensorVariable:
    """Convolutions of sequences (batch, channels, length), results of which depend on none later.

    ``filters`` is a tensor (filters, channels / num_groups, length), whose length must be known in
    ``filter_shape``; other parameters are as for `conv2d`.

    >>> import phintys.tensor as pt
    >>> from phintys.tensor.nnet.abstract_conv import causal_conv1d
    >>> causal_conv1d([[[1.0, 2.0, 3.0]]], [[[1.0, 10.0]]], (1, 1, 2)).eval()
    array([[[ 1., 12., 23.]]])
    """
    before = (filter_shape[-1] - 1) * filter_dilation
    return _conv(
        input, filters, input_shape, filter_shape, filter_flip, border_mode=[(before, 0)],
        subsample=[subsample], filter_dilation=[filter_dilation], num_groups=num_groups,
        unshared=unshared,
    )  # fmt: skip
