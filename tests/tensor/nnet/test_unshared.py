"""Filters that differ from place to place, and movies, against loops over places in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tensor_checks import assert_like, check_batched, check_derivatives, compiled, symbols
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.tensor import nnet
from phintys.tensor.nnet import conv3d2d
from phintys.tensor.nnet.abstract_conv import causal_conv1d

#: by border: border mode, subsample, dilation, groups, flip
CASES = {
    "valid": ("valid", (1, 1), (1, 1), 1, True),
    "full": ("full", (2, 1), (1, 2), 2, True),
    "half": ("half", (1, 3), (2, 1), 1, False),
    "four": (((0, 1), (3, 2)), (3, 2), (2, 2), 2, True),
}
X, KERNEL = (2, 4, 7, 6), (3, 2)


def random(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


def padded(x, case):
    mode, _, dilation, _, _ = case
    dilated = [(k - 1) * d + 1 for k, d in zip(KERNEL, dilation)]
    named = {"valid": [0, 0], "full": [n - 1 for n in dilated], "half": [n // 2 for n in dilated]}
    pads = named[mode] if isinstance(mode, str) else mode
    return np.pad(x, [(0, 0), (0, 0), *[(p, p) if isinstance(p, int) else p for p in pads]])


def shape_of_filters(case, filters=6):
    _, steps, dilation, groups, _ = case
    x = padded(np.zeros(X), case)
    counts = [
        (n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(x.shape[2:], KERNEL, dilation, steps)
    ]
    return (filters, *counts, X[1] // groups, *KERNEL)


def correlated(x, w, case):
    """The sum at each place, one by one."""
    _, steps, dilation, groups, flip = case
    x, w = padded(x, case), w[..., ::-1, ::-1] if flip else w
    each, channels = len(w) // groups, w.shape[3]
    out = np.zeros((len(x), *w.shape[:3]), np.result_type(x, w))
    for f, i, j in np.ndindex(*w.shape[:3]):
        first = f // each * channels
        rows = i * steps[0] + np.arange(KERNEL[0]) * dilation[0]
        columns = j * steps[1] + np.arange(KERNEL[1]) * dilation[1]
        window = x[:, first : first + channels, rows[:, None], columns]
        out[:, f, i, j] = (window * w[f, i, j]).sum((1, 2, 3))
    return out


def options(case):
    names = ("border_mode", "subsample", "filter_dilation", "num_groups", "filter_flip")
    return dict(zip(names, case), unshared=True)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "JAX"])
@pytest.mark.parametrize("border", few(CASES, "full", "half"))
def test_values(mode, border):
    case = CASES[border]
    for dtype in ("float64", "float32", "complex128") if mode != "JAX" else ("float64",):
        x, w = random(X, dtype), random(shape_of_filters(case), dtype, 1)
        inputs = symbols([x, w])
        found = compiled(mode, inputs, nnet.conv2d(*inputs, **options(case)))(x, w)
        assert found.dtype == dtype
        rtol = 1e-10 if dtype != "float32" else 1e-4
        np.testing.assert_allclose(found, correlated(x, w, case), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("mode", few(["FAST_RUN", "FAST_COMPILE"], "FAST_RUN"))
@pytest.mark.parametrize("border", ["full", "half"])
def test_derivatives(mode, border):
    case = CASES[border]
    x, w = random((1, *X[1:])), random(shape_of_filters(case, 2), seed=1)
    check_derivatives(lambda x, w: nnet.conv2d(x, w, **options(case)), [x, w], mode)


@pytest.mark.parametrize("border", CASES)
def test_cotangents(border):
    """They are the transposes of the convolution in each of its inputs; so are the classes."""
    case = CASES[border]
    x, w = random(X, "complex128"), random(shape_of_filters(case), "complex128", 1)
    out = correlated(x, w, case)
    g, props = random(out.shape, "complex128", 2), options(case)
    value = np.sum(out * g)
    images = nnet.conv2d_grad_wrt_inputs(g, w, (None, None, *X[2:]), **props)
    filters = nnet.conv2d_grad_wrt_weights(x, g, (*[None] * 4, *KERNEL), **props)
    transposed = dict(props, input_dilation=props["subsample"])
    del transposed["subsample"]
    assert_like(nnet.conv2d_transpose(g, w, X, **transposed).eval(), images.eval())
    for found, v in ((images.eval(), x), (filters.eval(), w)):
        assert found.shape == v.shape and found.dtype == v.dtype
        np.testing.assert_allclose(np.sum(found * v), value, rtol=1e-10)
    assert_like(nnet.AbstractConv2d(**props)(x, w).eval(), out)
    assert_like(nnet.AbstractConv2d_gradInputs(**props)(w, g, X[2:]).eval(), images.eval())
    assert_like(nnet.AbstractConv2d_gradWeights(**props)(x, g, KERNEL).eval(), filters.eval())


def test_the_same_filter_everywhere():
    """It is a convolution, also with symbolic lengths, and of sequences."""
    x, w = random((2, 3, 5, 6)), random((4, 3, 3, 2), seed=1)
    many = np.broadcast_to(w[:, None, None], (4, 3, 5, *w.shape[1:]))
    inputs = symbols([x, many])
    found = phintys.function(inputs, nnet.conv2d(*inputs, unshared=True))(x, many)
    assert_like(found, nnet.conv2d(x, w).eval())
    check_batched(lambda x, w: nnet.conv2d(x, w, unshared=True), [x, many])
    one, filter = random((2, 3, 5)), random((4, 3, 2), seed=1)
    many = np.broadcast_to(filter[:, None], (4, 5, 3, 2))
    assert_like(
        causal_conv1d(one, many, (4, 5, 3, 2), unshared=True).eval(),
        causal_conv1d(one, filter, (4, 3, 2)).eval(),
    )
    assert (
        nnet.conv2d(np.ones((0, 1, 3, 3)), np.ones((2, 2, 2, 1, 2, 2)), unshared=True).eval().size
        == 0
    )


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_errors(mode):
    x, w = pt.dtensor4("x"), pt.tensor("w", dtype="float64", shape=(None,) * 6)
    f = compiled(mode, [x, w], nnet.conv2d(x, w, unshared=True))
    for shape in ((1, 3, 2, 1, 2, 2), (1, 2, 2, 2, 2, 2), (1, 1, 1, 1, 4, 4)):
        with pytest.raises(ShapeError):
            f(np.ones((1, 1, 3, 3)), np.ones(shape))
    with pytest.raises(
        ShapeError, match=r"Axis 2 of unshared filters has another .* 2, 3, 1, 2, 2"
    ):
        f(np.ones((1, 1, 3, 3)), np.ones((1, 2, 3, 1, 2, 2)))
    with pytest.raises(TypeError, match="Unshared filters have 6 axes"):
        nnet.conv2d(x, x, unshared=True)
    with pytest.raises(TypeError, match="Unshared images have 4 axes"):
        nnet.conv2d(pt.dmatrix(), w, unshared=True)
    with pytest.raises(ValueError, match="filter_shape has 6 entries"):
        nnet.conv2d_grad_wrt_weights(x, x, (1, 1, 2, 2), unshared=True)
    with pytest.raises(ValueError, match="place to place have 2 axes"):
        nnet.AbstractConv3d(unshared=True)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "C", "JAX", "NUMBA"])
def test_filters_that_are_longer_than_images(mode):
    """The error names the shapes, as of shared filters; padding may make room."""
    x, w = pt.dtensor4("x"), pt.tensor("w", dtype="float64", shape=(None,) * 6)
    options = {"unshared": True, "filter_flip": False}
    f = compiled(mode, [x, w], nnet.conv2d(x, w, subsample=(3, 1), **options))
    shapes = r"w has shape \(1, {}, 1, 1, 5, 2\), x has shape \(1, 1, {}, 3\)"
    for places, n in itertools.product((0, 1), (0, 2, 4)):
        message = "Along axis 2, filters are longer than padded images in .*" + shapes
        with pytest.raises(ShapeError, match=message.format(places, n)):
            f(np.ones((1, 1, n, 3)), np.ones((1, places, 1, 1, 5, 2)))
    with pytest.raises(ShapeError, match="Along axis 2, filters are longer than padded images"):
        nnet.conv2d(np.ones((1, 1, 2, 3)), np.ones((1, 1, 2, 1, 5, 2)), **options)
    g = compiled(mode, [x, w], nnet.conv2d(x, w, border_mode=(1, 0), **options))
    assert_like(g(np.ones((1, 1, 3, 2)), np.ones((1, 1, 1, 1, 5, 2))), np.full((1,) * 4, 6.0))


# ---------------------------------------------------------------------- movies


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize("border", ["valid", "full", "half", ("valid", "full", "half")])
def test_movies(mode, border):
    """Sums of products of frames, channels and places, one by one."""
    x, w = random((2, 4, 2, 5, 6)), random((3, 2, 2, 3, 2), seed=1)
    modes = [border] * 3 if isinstance(border, str) else border
    lengths = (2, 3, 2)
    pads = [{"valid": 0, "full": k - 1, "half": k // 2}[m] for m, k in zip(modes, lengths)]
    wide = np.pad(x, [(0, 0), (pads[0],) * 2, (0, 0), (pads[1],) * 2, (pads[2],) * 2])
    counts = [n - k + 1 for n, k in zip((wide.shape[1], *wide.shape[3:]), lengths)]
    expected = np.zeros((2, counts[0], 3, *counts[1:]))
    for t, i, j in np.ndindex(*counts):
        window = wide[:, t : t + 2, :, i : i + 3, j : j + 2]
        backwards = w[:, ::-1, :, ::-1, ::-1]
        expected[:, t, :, i, j] = np.einsum("btcij,ftcij->bf", window, backwards)
    inputs = symbols([x, w])
    f = compiled(mode, inputs, conv3d2d.conv3d(*inputs, border_mode=border))
    assert_like(f(x, w), expected)
    shapes = (2, None, 2, 5, 6), (3, 2, 2, 3, 2)
    assert_like(conv3d2d.conv3d(x, w, *shapes, border).eval(), expected)
    if border == "half":
        build = lambda x, w: conv3d2d.conv3d(x, w, border_mode=border)  # noqa: E731
        check_derivatives(build, [x[:1, :2, :, :3, :3], w[:1]], mode)


def test_wrong_movies():
    x = np.ones((1, 2, 1, 3, 3))
    with pytest.raises(ValueError, match="or one for each of 3 axes, not 'same'"):
        conv3d2d.conv3d(x, x, border_mode="same")
    with pytest.raises(ValueError, match="or one for each of 3 axes"):
        conv3d2d.conv3d(x, x, border_mode=("valid", "full"))
    with pytest.raises(TypeError, match="Movies and their filters have 5 axes"):
        conv3d2d.conv3d(x[0], x)
    with pytest.raises(ShapeError, match="differ in channels"):
        conv3d2d.conv3d(x, np.ones((1, 1, 2, 1, 1))).eval()
