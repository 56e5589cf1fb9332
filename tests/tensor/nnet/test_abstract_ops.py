"""Aesara's classes of convolutions agree with the functions."""

from __future__ import annotations

import numpy as np
import pytest

import phintys.tensor as pt
from phintys import grad
from phintys.tensor import nnet

OPTIONS = dict(border_mode="half", subsample=(2, 1), filter_flip=False, num_groups=2)
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("symbolic", [False, True])
def test_two_axes(symbolic):
    image, filters = RNG.normal(size=(2, 4, 6, 5)), RNG.normal(size=(6, 2, 3, 3))
    x, w = pt.constant(image), pt.constant(filters)
    out = nnet.AbstractConv2d(**OPTIONS)(x, w)
    expected = nnet.conv2d(x, w, **OPTIONS)
    np.testing.assert_array_equal(out.eval(), expected.eval())
    g = RNG.normal(size=expected.eval().shape)
    known = dict(zip((x, w), grad((expected * g).sum(), [x, w])))
    shapes = [v.shape[2:] if symbolic else v.type.shape[2:] for v in (x, w)]
    inputs = nnet.AbstractConv2d_gradInputs(**OPTIONS)(w, g, shapes[0])
    weights = nnet.AbstractConv2d_gradWeights(**OPTIONS)(x, g, shapes[1])
    np.testing.assert_allclose(inputs.eval(), known[x].eval(), rtol=1e-12)
    np.testing.assert_allclose(weights.eval(), known[w].eval(), rtol=1e-12)


def test_three_axes():
    x, w = pt.constant(RNG.normal(size=(1, 1, 4, 4, 4))), pt.constant(np.ones((1, 1, 2, 2, 2)))
    out = nnet.AbstractConv3d()(x, w)
    np.testing.assert_array_equal(out.eval(), nnet.conv3d(x, w).eval())
    gx = nnet.AbstractConv3d_gradInputs()(w, pt.ones_like(out), (4, 4, 4))
    gw = nnet.AbstractConv3d_gradWeights()(x, pt.ones_like(out), (2, 2, 2))
    expected = grad(out.sum(), [x, w])
    for found, v in zip((gx, gw), expected):
        np.testing.assert_allclose(found.eval(), v.eval(), rtol=1e-12)
    with pytest.raises(ValueError, match="2 or 3 axes, not 1"):
        nnet.AbstractConv(1)
