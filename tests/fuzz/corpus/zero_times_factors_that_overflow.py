"""Seed 330060843.  llvm at 256 bits: value: result 0: np.float64(nan) instead of np.float64(0.0) at (0,) (1 of 1)"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(1,))
x1 = pt.tensor("x1", dtype="float64", shape=(None, None))
v0 = pt.einsum("b,ac->ca", x0, x1)
v3 = phintys.grad(
    pt.sum(
        phintys.grad(pt.sum(v0**2), x0, disconnected_inputs="ignore", null_gradients="return") ** 2
    ),
    x0,
    disconnected_inputs="ignore",
    null_gradients="return",
)
inputs = [x0, x1]
outputs = [v3]
updates = {}
arguments = [
    np.array([0.0], "float64"),
    np.array([[1.7976931348623157e308, -800.0], [1.7976931348623157e308, -5e-324]], "float64"),
]
