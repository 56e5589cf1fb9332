"""Tensors of more than 32 axes, as many as NumPy's functions of broadcasting take."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.scalar.broadcasting import broadcast_shapes, broadcast_to

ROW = np.arange(3.0)


def expressions(x):
    """Expressions, and their values for `ROW` with leading axes."""
    first = (0,) * (x.type.ndim - 1)
    return {
        "a product": ((x * 2)[first], ROW * 2),
        "a sum": (x.sum(), 3.0),
        "a gradient": (phintys.grad((x**2).sum(), x)[first], 2 * ROW),
        "a constant": ((x + np.ones(3))[first], ROW + 1),
        "zeros": (pt.zeros_like(x)[first], ROW * 0),
        "a broadcast": (pt.broadcast_to(pt.as_tensor(ROW), x.shape)[first], ROW),
        "special functions": (pt.gammaln(x + 1)[first], [0.0, 0.0, np.log(2)]),
        "two in one": (pt.concatenate([x, x], axis=0)[(1, *first[1:])], ROW),
        "complex numbers": (pt.complex(x, x)[first], ROW * (1 + 1j)),
    }


@pytest.mark.parametrize("ndim", [33, 64])
def test_many_axes(mode, ndim):
    """A product with a constant was a RuntimeError when it was compiled."""
    x = pt.tensor("x", shape=(None,) * ndim, dtype="float64")
    found, expected = zip(*expressions(x).values())
    values = phintys.function([x], list(found), mode=mode)(ROW.reshape((1,) * (ndim - 1) + (3,)))
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, wanted, atol=1e-12)


def test_broadcasting_is_numpys():
    x = ROW[None, ::-1]
    for shape in ((4, 3), (2, 4, 3)):
        many = (1,) * 40 + shape
        assert broadcast_shapes(x.shape, many) == many
        found = broadcast_to(x, many)
        np.testing.assert_array_equal(found.reshape(shape), np.broadcast_to(x, shape))
        assert not found.flags.writeable
    with pytest.raises(ValueError, match="mismatch"):
        broadcast_shapes((1,) * 40 + (3,), (2,))
