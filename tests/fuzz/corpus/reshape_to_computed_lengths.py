"""Seed 2105.  llvm: KeyError: 3"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float32", shape=(1, None, None))
x4 = pt.tensor("x4", dtype="int32", shape=())
v1 = pt.tensor("v1", dtype="float32", shape=(None, None))
v0 = x0 * 2
v5 = pt.reshape(
    v0,
    (
        -1,
        v1.shape[1],
        x4,
    ),
)
inputs = [x0, x4, v1]
outputs = [v5]
updates = {}
arguments = [
    np.full((1, 1, 3), 1.0, "float32"),
    np.array(1, "int32"),
    np.full((4, 3), 1.0, "float32"),
]
