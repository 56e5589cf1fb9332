"""Aesara's classes of pooling against loops over windows, `signal.conv.conv2d` against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal
from tensor_checks import assert_like, check_derivatives, compiled

import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.tensor.signal.conv import conv2d
from phintys.tensor.signal.pool import (
    AveragePoolGrad,
    DownsampleFactorMaxGradGrad,
    MaxPoolGrad,
    MaxPoolRop,
    Pool,
    PoolGrad,
    pool_2d,
    pool_3d,
)

MODES = ("FAST_RUN", "FAST_COMPILE")
X = np.random.default_rng(0).permutation(60).reshape(2, 6, 5) / 7.0
WS, STRIDE = (3, 2), (2, 1)


def spans(shape):
    """The windows of the test, each with its place."""
    counts = [(n - k) // s + 1 for n, k, s in zip(shape[-2:], WS, STRIDE)]
    for i, j in np.ndindex(*counts):
        rows, columns = (slice(p * s, p * s + k) for p, s, k in zip((i, j), STRIDE, WS))
        yield (..., i, j), (..., rows, columns)


@pytest.mark.parametrize("mode", MODES)
def test_maxima(mode):
    expected, pulled, pushed = np.empty((2, 2, 4)), np.zeros(X.shape), np.empty((2, 2, 4))
    rng = np.random.default_rng(1)
    g, t = rng.normal(size=expected.shape), rng.normal(size=X.shape)
    for place, part in spans(X.shape):
        top = X[part].max((-2, -1), keepdims=True)
        expected[place] = top[..., 0, 0]
        pulled[part] += (X[part] == top) * g[place][..., None, None]
        pushed[place] = t[part][X[part] == top].reshape(2)
    x, gz, tangent = pt.dtensor3s("x", "gz", "tangent")
    out = Pool(ignore_border=True)(x, WS, STRIDE)
    outputs = [
        out,
        MaxPoolGrad(ignore_border=True)(x, out, gz, WS, STRIDE),
        MaxPoolRop(ignore_border=True)(x, tangent, WS, STRIDE),
        DownsampleFactorMaxGradGrad(True)(x, out, tangent, WS, STRIDE),
    ]
    found = compiled(mode, [x, gz, tangent], outputs)(X, g, t)
    for value, wanted in zip(found, [expected, pulled, pushed, pushed], strict=True):
        assert_like(value, wanted)
    assert issubclass(MaxPoolGrad, PoolGrad) and issubclass(AveragePoolGrad, PoolGrad)


@pytest.mark.parametrize("mode", MODES)
def test_averages(mode):
    """Each element of a window has an equal part of the cotangent."""
    x, gz = pt.dtensor3s("x", "gz")
    g = np.random.default_rng(1).normal(size=(2, 2, 4))
    pulled = np.zeros(X.shape)
    for place, part in spans(X.shape):
        pulled[part] += g[place][..., None, None]
    outputs = [
        AveragePoolGrad(True)(x, gz, WS, STRIDE),
        AveragePoolGrad(True, "sum")(x, gz, WS, STRIDE),
    ]
    found = compiled(mode, [x, gz], outputs)(X, g)
    assert_like(found[0], pulled / 6)
    assert_like(found[1], pulled)
    check_derivatives(lambda g: AveragePoolGrad(True)(pt.constant(X), g, WS, STRIDE), [g], mode)


def test_options_are_those_of_the_functions():
    found = Pool(True, "average_exc_pad")(X, (2, 2), None, (1, 1)).eval()
    assert_like(found, pool_2d(X, (2, 2), True, None, (1, 1), "average_exc_pad").eval())
    assert_like(Pool(ndim=3)(X, (2, 2, 2)).eval(), pool_3d(X, (2, 2, 2)).eval())
    with pytest.raises(ValueError, match="mode is one of"):
        Pool(mode="min")(X, (2, 2))


# ------------------------------------------------------------ convolutions of images


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("border", ["valid", "full"])
def test_convolutions(mode, border):
    rng = np.random.default_rng(0)
    for dtype in ("float64", "float32", "complex128"):
        images, filters = (rng.normal(size=s).astype(dtype) for s in ((3, 6, 5), (2, 3, 2)))
        expected = np.array(
            [[scipy.signal.convolve2d(a, b, border) for b in filters] for a in images]
        )
        x, w = (pt.tensor(dtype=dtype, shape=(None,) * 3) for _ in range(2))
        outputs = [
            conv2d(x, w, border_mode=border),
            conv2d(x, w, (3, 6, 5), (2, 3, 2), border, (2, 3)),
            conv2d(x[0], w, border_mode=border),
            conv2d(x, w[0], border_mode=border),
            conv2d(x[0], w[0], border_mode=border, subsample=(1, 2)),
        ]
        found = compiled(mode, [x, w], outputs)(images, filters)
        wanted = [expected, expected[..., ::2, ::3], expected[0], expected[:, 0]]
        for value, right in zip(found, [*wanted, expected[0, 0, :, ::2]], strict=True):
            assert_like(value, right, dtype)
    values = [images.real[:2, :4], filters.real]
    check_derivatives(lambda x, w: conv2d(x, w, None, None, border, (2, 1)), values, mode)


@pytest.mark.parametrize("mode", MODES)
def test_wrong_convolutions(mode):
    x, w = pt.dmatrices("x", "w")
    f = compiled(mode, [x, w], conv2d(x, w))
    assert f(np.ones((3, 3)), np.ones((3, 1))).shape == (1, 3)
    with pytest.raises(ValueError, match="Filters are longer than images"):
        f(np.ones((3, 3)), np.ones((1, 4)))
    with pytest.raises(ValueError, match="border_mode is 'valid' or 'full', not 'same'"):
        conv2d(x, w, border_mode="same")
    with pytest.raises(ValueError, match="have 2 or 3 axes"):
        conv2d(pt.dvector(), w)
    with pytest.raises(ShapeError):
        conv2d(np.ones((3, 3)), w, image_shape=(4, None))
