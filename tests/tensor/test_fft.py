"""Transforms of real numbers whose parts are along a last axis."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import assert_like, check, check_derivatives

import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.tensor.fft import irfft, rfft

FACTORS = {None: "backward", "ortho": "ortho", "no_norm": "backward"}


def parts(z):
    return np.stack([z.real, z.imag], -1)


@pytest.mark.parametrize("norm", FACTORS)
def test_values(norm):
    for dtype in ("float64", "float32"):
        x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(dtype)
        for y in (x, x[..., :4], x[:, 0, 0]):
            axes = tuple(range(1, y.ndim))
            transformed = parts(np.fft.rfftn(y, axes=axes, norm=FACTORS[norm])).astype(dtype)
            check(lambda x: rfft(x, norm), lambda _, found=transformed: found, [y])
            count = y[0].size if norm == "no_norm" else 1
            back = irfft(transformed, norm, is_odd=y.shape[-1] % 2 == 1)
            found = back.eval()
            assert found.dtype == dtype
            np.testing.assert_allclose(found / count, y, rtol=1e-4, atol=1e-5)
    assert_like(rfft(np.int8([[1, 2]])).eval(), [[[3.0, 0.0], [-1.0, 0.0]]])


def test_derivatives():
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    check_derivatives(lambda x: rfft(x, "ortho"), [x])
    check_derivatives(irfft, [x[:, :, :2]])


def test_errors():
    for f in (rfft, irfft):
        with pytest.raises(ValueError, match="norm is"):
            f(pt.dtensor3(), "forward")
        with pytest.raises(TypeError, match="takes a batch"):
            f(pt.dvector())
        with pytest.raises(TypeError):
            f(pt.ztensor3())


def test_irfft_takes_pairs():
    with pytest.raises(ShapeError, match="3, not 2"):
        irfft(np.ones((1, 2, 3))).eval()
