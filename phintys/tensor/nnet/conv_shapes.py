"""Shapes of convolutions, of which lengths that are None are not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.tensor.nnet.corr import BorderLike, border_of, border_pad

__all__ = [
    "border_mode_to_pad",
    "check_conv_gradinputs_shape",
    "get_conv_gradinputs_shape",
    "get_conv_gradinputs_shape_1axis",
    "get_conv_gradweights_shape",
    "get_conv_gradweights_shape_1axis",
    "get_conv_output_shape",
    "get_conv_shape_1axis",
]

#: a length, an integer or an integer variable; None: not known
Known = Any
Shape = Sequence[Known]


def border_mode_to_pad(
    mode: BorderLike, convdim: int, kshp: Shape
) -> tuple[tuple[Known, Known], ...]:
    """How many zeros are before and after each axis of an image.

    Parameters
    ----------
    mode : a border mode of `conv2d`
    convdim : the number of axes
    kshp : the lengths of the filter, dilated if it is

    ValueError for another mode, or if ``kshp`` has not ``convdim`` lengths.

    >>> border_mode_to_pad("half", 2, (5, 2))
    ((2, 2), (1, 1))
    >>> border_mode_to_pad((3, (0, 1)), 2, (5, 2))
    ((3, 3), (0, 1))
    """
    if len(kshp) != convdim:
        raise ValueError(f"kshp has {convdim} lengths, not {len(kshp)}.")
    border = border_of(mode, convdim)
    return tuple([border_pad(border, axis, n) for axis, n in enumerate(kshp)])


def _modes(mode: BorderLike, ndim: int) -> list[BorderLike]:
    """The border mode of each axis."""
    border = border_of(mode, ndim)
    return [border] * ndim if isinstance(border, str) else [[pair] for pair in border]


def _pads(mode: Any, dilated: Known) -> Known:
    """How many zeros are added to one axis, whose mode may be a pair of numbers."""
    if isinstance(mode, Sequence) and not isinstance(mode, str) and len(mode) == 2:
        mode = [mode]
    ((before, after),) = border_mode_to_pad(mode, 1, (dilated,))
    return before + after


def get_conv_shape_1axis(
    image_shape: Known,
    kernel_shape: Known,
    border_mode: BorderLike,
    subsample: int,
    dilation: int = 1,
) -> Known:
    """The length of a convolution along one axis; None if a length is None.

    ``border_mode`` is one of `conv2d`, a number of zeros, or a pair of numbers.

    >>> get_conv_shape_1axis(10, 3, "valid", 2)
    4
    >>> get_conv_shape_1axis(10, 3, (0, 2), 1, dilation=2)
    8
    """
    if image_shape is None or kernel_shape is None:
        return None
    dilated = (kernel_shape - 1) * dilation + 1
    return (image_shape + _pads(border_mode, dilated) - dilated) // subsample + 1


def get_conv_gradweights_shape_1axis(
    image_shape: Known, top_shape: Known, border_mode: BorderLike, subsample: int, dilation: int
) -> Known:
    """The length of a filter along one axis, from those of the image and of the result.

    None if a length is None, and where filters of several lengths have that result: if
    ``subsample`` is not 1, and with the border mode ``"half"``.

    >>> get_conv_gradweights_shape_1axis(10, 12, "full", 1, 1)
    3
    """
    if image_shape is None or top_shape is None or subsample != 1 or border_mode == "half":
        return None
    if border_mode == "full":
        dilated = top_shape - image_shape + 1
    else:
        dilated = image_shape + _pads(border_mode, 1) - top_shape + 1
    return (dilated - 1) // dilation + 1


def get_conv_gradinputs_shape_1axis(
    kernel_shape: Known, top_shape: Known, border_mode: BorderLike, subsample: int, dilation: int
) -> Known:
    """The length of an image along one axis, from those of the filter and of the result.

    None if a length is None, and if ``subsample`` is not 1: images of several lengths have that
    result.

    >>> get_conv_gradinputs_shape_1axis(3, 8, "valid", 1, 1)
    10
    """
    if kernel_shape is None or top_shape is None or subsample != 1:
        return None
    dilated = (kernel_shape - 1) * dilation + 1
    return top_shape + dilated - 1 - _pads(border_mode, dilated)


def _each(
    function: Any, first: Shape, second: Shape, mode: BorderLike, subsample: Sequence[int],
    dilation: Sequence[int] | None,
) -> list[Known]:  # fmt: skip
    """A function of one axis, for the last axes of two shapes."""
    ndim = len(subsample)
    rates = (1,) * ndim if dilation is None else dilation
    rows = zip(first[-ndim:], second[-ndim:], _modes(mode, ndim), subsample, rates, strict=True)
    return [function(*row) for row in rows]


def get_conv_output_shape(
    image_shape: Shape,
    kernel_shape: Shape,
    border_mode: BorderLike,
    subsample: Sequence[int],
    filter_dilation: Sequence[int] | None = None,
) -> tuple[Known, ...]:
    """The shape of a convolution of images with filters, from their shapes; None: not known.

    >>> get_conv_output_shape((8, 3, 32, None), (16, 3, 5, 5), "half", (2, 2))
    (8, 16, 16, None)
    """
    given = image_shape, kernel_shape, border_mode, subsample, filter_dilation
    return (image_shape[0], kernel_shape[0], *_each(get_conv_shape_1axis, *given))


def get_conv_gradweights_shape(
    image_shape: Shape,
    top_shape: Shape,
    border_mode: BorderLike,
    subsample: Sequence[int],
    filter_dilation: Sequence[int] | None = None,
    num_groups: int = 1,
    unshared: bool = False,
) -> tuple[Known, ...]:
    """The shape of filters, from those of images and of results.

    ``unshared`` is as for `conv2d`.  Lengths are None as of `get_conv_gradweights_shape_1axis`.

    >>> get_conv_gradweights_shape((8, 4, 10, 10), (8, 6, 8, 7), "valid", (1, 1), num_groups=2)
    (6, 2, 3, 4)
    """
    given = image_shape, top_shape, border_mode, subsample, filter_dilation
    found = _each(get_conv_gradweights_shape_1axis, *given)
    places = top_shape[2:] if unshared else ()
    return (top_shape[1], *places, _if_known(image_shape[1], lambda n: n // num_groups), *found)


def get_conv_gradinputs_shape(
    kernel_shape: Shape,
    top_shape: Shape,
    border_mode: BorderLike,
    subsample: Sequence[int],
    filter_dilation: Sequence[int] | None = None,
    num_groups: int = 1,
) -> tuple[Known, ...]:
    """The shape of images, from those of filters and of results.

    Lengths are None as of `get_conv_gradinputs_shape_1axis`.

    >>> get_conv_gradinputs_shape((6, 2, 3, 4), (8, 6, 8, 7), "valid", (1, 1), num_groups=2)
    (8, 4, 10, 10)
    """
    given = kernel_shape, top_shape, border_mode, subsample, filter_dilation
    found = _each(get_conv_gradinputs_shape_1axis, *given)
    channels = kernel_shape[-len(subsample) - 1]
    return (top_shape[0], _if_known(channels, lambda n: n * num_groups), *found)


def _if_known(n: Known, function: Any) -> Known:
    return None if n is None else function(n)


def check_conv_gradinputs_shape(
    image_shape: Shape,
    kernel_shape: Shape,
    output_shape: Shape,
    border_mode: BorderLike,
    subsample: Sequence[int],
    filter_dilation: Sequence[int] | None = None,
) -> bool:
    """Whether the lengths that are known are those of images, filters and results of a convolution.

    >>> check_conv_gradinputs_shape((8, 3, 9, None), (4, 3, 2, 2), (8, 4, 4, 7), "valid", (2, 2))
    True
    >>> check_conv_gradinputs_shape((8, 3, 9, 9), (4, 3, 2, 2), (8, 4, 8, 4), "valid", (2, 2))
    False
    """
    found = get_conv_output_shape(
        image_shape, kernel_shape, border_mode, subsample, filter_dilation
    )
    pairs = zip(found, output_shape, strict=True)
    return all(a is None or b is None or a == b for a, b in pairs)
