"""Seed 120052643.  llvm at 256 bits: value: result 0: np.float64(-0.0) instead of np.float64(-1.4632480578791496) at (3, 0) (1 of 5)"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(None, 1))
v0 = pt.prod(x0, keepdims=False, no_zeros_in_input=False)
v1 = phintys.grad(pt.sum(v0), x0, disconnected_inputs="ignore", null_gradients="return")
inputs = [x0]
outputs = [v1]
updates = {}
arguments = [
    np.array([[1.484637], [-0.340725], [-2.113713], [-5e-324], [-1.368509]], "float64"),
]
