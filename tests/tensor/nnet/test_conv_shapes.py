"""Shapes of convolutions against those of NumPy's arrays, by trying all small lengths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.tensor import nnet
from phintys.tensor.nnet import abstract_conv

MODES = ("valid", "full", "half", 2, (1, 2))


def places(n, k, mode, step, dilation):
    """How many positions a filter has in a padded axis, counted one by one."""
    dilated = (k - 1) * dilation + 1
    named = {"valid": (0, 0), "full": (dilated - 1,) * 2, "half": (dilated // 2,) * 2}
    before, after = named[mode] if isinstance(mode, str) else np.broadcast_to(mode, 2)
    return len(range(0, n + before + after - dilated + 1, step))


@pytest.mark.parametrize("mode", MODES)
def test_one_axis(mode):
    for n, k, step, dilation in itertools.product(range(7, 10), range(1, 4), (1, 2), (1, 3)):
        top = places(n, k, mode, step, dilation)
        assert nnet.get_conv_shape_1axis(n, k, mode, step, dilation) == top
        image = nnet.get_conv_gradinputs_shape_1axis(k, top, mode, step, dilation)
        filter = nnet.get_conv_gradweights_shape_1axis(n, top, mode, step, dilation)
        assert image == (n if step == 1 else None)
        assert filter == (k if step == 1 and mode != "half" else None)
    for function in (nnet.get_conv_gradinputs_shape_1axis, nnet.get_conv_gradweights_shape_1axis):
        assert function(None, 3, mode, 1, 1) is None and function(3, None, mode, 1, 1) is None
    assert nnet.get_conv_shape_1axis(None, 3, mode, 1) is None


def test_shapes_are_those_of_results():
    image, filters, steps, dilation = (2, 4, 9, 8), (6, 2, 3, 2), (1, 1), (2, 1)
    for mode in ("valid", "full", 1, ((1, 0), 2)):
        props = {"border_mode": mode, "subsample": steps, "filter_dilation": dilation}
        out = nnet.conv2d(np.ones(image), np.ones(filters), num_groups=2, **props).eval().shape
        found = abstract_conv.get_conv_output_shape(image, filters, *props.values())
        assert found == out
        assert nnet.get_conv_gradweights_shape(image, out, *props.values(), 2) == filters
        assert nnet.get_conv_gradinputs_shape(filters, out, *props.values(), 2) == image
        unshared = (6, *out[2:], 2, 3, 2)
        assert nnet.get_conv_gradweights_shape(image, out, *props.values(), 2, True) == unshared
        assert nnet.get_conv_gradinputs_shape(unshared, out, *props.values(), 2) == image
        assert nnet.get_conv_output_shape(image, unshared, *props.values()) == out
        assert nnet.check_conv_gradinputs_shape(image, filters, out, *props.values())
        for axis in (0, 1, 2, 3):
            wrong = [n + (k == axis) for k, n in enumerate(out)]
            assert not nnet.check_conv_gradinputs_shape(image, filters, wrong, *props.values())
            wrong[axis] = None
            assert nnet.check_conv_gradinputs_shape(image, filters, wrong, *props.values())
    assert nnet.get_conv_gradweights_shape((2, None, 9, 8), (2, 6, 7, 8), 0, (1, 1))[:2] == (
        6,
        None,
    )


def test_lengths_that_are_variables():
    n, k = pt.lscalars("n", "k")
    outputs = [nnet.get_conv_shape_1axis(n, k, mode, 2, 3) for mode in MODES]
    outputs.append(nnet.border_mode_to_pad("half", 1, [k])[0][0])
    found = phintys.function([n, k], outputs)(11, 3)
    assert found == [*(places(11, 3, mode, 2, 3) for mode in MODES), 1]


def test_zeros_around_images():
    assert nnet.border_mode_to_pad("full", 3, (3, 1, 2)) == ((2, 2), (0, 0), (1, 1))
    assert nnet.border_mode_to_pad("valid", 1, (3,)) == ((0, 0),)
    assert nnet.border_mode_to_pad(1, 2, (3, 3)) == ((1, 1), (1, 1))
    with pytest.raises(ValueError, match="kshp has 2 lengths, not 1"):
        nnet.border_mode_to_pad("full", 2, (3,))
    with pytest.raises(ValueError, match="border_mode is 'valid'"):
        nnet.border_mode_to_pad("same", 1, (3,))
    with pytest.raises(ValueError, match="border_mode has for each of 1 axes"):
        nnet.get_conv_shape_1axis(5, 3, (1, 2, 3), 1)


@pytest.mark.parametrize("ratio", [1, 2, 5])
def test_filters_that_interpolate(ratio):
    """`bilinear_upsampling` is a convolution of the image with zeros between its elements."""
    expected = np.convolve(np.ones(ratio), np.ones(ratio))
    np.testing.assert_allclose(nnet.bilinear_kernel_1D(ratio, False).eval(), expected)
    n = pt.lscalar("n")
    image = np.random.default_rng(0).normal(size=(1, 1, 4, 3))
    spread = np.zeros((1, 1, 3 * ratio + 1, 2 * ratio + 1))
    spread[..., ::ratio, ::ratio] = image
    for kernel in (nnet.bilinear_kernel_2D(ratio), nnet.bilinear_kernel_2D(n)):
        filter = phintys.function([n], kernel, on_unused_input="ignore")(ratio)
        np.testing.assert_allclose(filter, np.outer(expected, expected) / ratio**2)
        inner = nnet.conv2d(spread, filter[None, None], border_mode="half").eval()
        start = (ratio - 1) // 2
        large = nnet.bilinear_upsampling(image, ratio).eval()
        part = large[..., start : start + spread.shape[2], start : start + spread.shape[3]]
        np.testing.assert_allclose(inner, part, atol=1e-12)
    np.testing.assert_array_equal(
        nnet.frac_bilinear_upsampling(image, (ratio, 2)).eval(),
        nnet.bilinear_upsampling(image, frac_ratio=(ratio, 2)).eval(),
    )


def test_ratios_that_are_not_positive():
    with pytest.raises(ValueError, match="A ratio is positive, not 0"):
        nnet.bilinear_kernel_1D(0)
    n = pt.lscalar("n")
    with pytest.raises(ValueError, match="A ratio is positive"):
        nnet.bilinear_kernel_1D(n).eval({n: -1})
