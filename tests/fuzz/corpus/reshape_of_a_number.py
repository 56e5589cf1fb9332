"""Seed 1000167.  llvm at 128 bits: IllegalProgram: step 3 (Kernel), instruction 0 (load): slot 4 is read before it is filled"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float32", shape=(1, 1))
x1 = pt.tensor("x1", dtype="uint64", shape=())
v0 = pt.sub(x0, x0)
v1 = pt.reshape(v0, (x1,))
v3 = phintys.grad(pt.sum(v1**2), v0, disconnected_inputs="ignore", null_gradients="return")
inputs = [x0, x1]
outputs = [v3]
updates = {}
arguments = [
    np.array([[1.1090929508209229]], "float32"),
    np.array(1, "uint64"),
]
