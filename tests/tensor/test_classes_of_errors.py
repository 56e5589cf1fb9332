"""Wrong calls raise the class that PyTensor and NumPy raise."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt

m = pt.dmatrix("m")

AXES = {
    "sum": lambda: m.sum(axis=2),
    "max": lambda: m.max(axis=-3),
    "argmax": lambda: pt.argmax(m, axis=5),
    "join": lambda: pt.join(5, m, m),
    "stack": lambda: pt.stack([m, m], axis=7),
    "expand_dims": lambda: pt.expand_dims(m, 7),
    "sort": lambda: pt.sort(m, 3),
}


@pytest.mark.parametrize("name", AXES)
def test_axes(name):
    """They were ValueErrors, which NumPy's AxisError is too."""
    with pytest.raises(np.exceptions.AxisError, match=r"axis -?\d is out of bounds for array"):
        AXES[name]()


@pytest.mark.parametrize(
    ("dtype", "value", "kind"),
    [
        ("int8", 1000, OverflowError),
        ("uint8", -1, OverflowError),
        ("int64", 10**30, OverflowError),
        ("int8", np.int64(1000), TypeError),
        ("int8", 1.5, TypeError),
        ("float32", 10**30, TypeError),
        ("float64", "a", TypeError),
        ("float64", None, TypeError),
    ],
)
def test_values_of_arguments(dtype, value, kind):
    """Python integers that are too large were TypeErrors."""
    x = pt.scalar("x", dtype=dtype)
    with pytest.raises(kind) as raised:
        x.type.filter(value)
    assert raised.type is kind
    with pytest.raises(kind, match="Bad argument 0 'x'"):
        phintys.function([x], x, mode="FAST_COMPILE")(value)


def test_numbers_are_not_joined():
    with pytest.raises(TypeError, match="Join cannot handle scalar arguments"):
        pt.join(0, pt.dscalar(), pt.dscalar())
