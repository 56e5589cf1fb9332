"""Seed 2740.  llvm: ShapeError: step 2 of the compiled function failed (Kernel)"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x3 = pt.tensor("x3", dtype="uint64", shape=(None, None))
v1 = pt.tensor("v1", dtype="int64", shape=())
v4 = x3[pt.zeros((pt.cast(v1 + -1, "int32"),), dtype="int16")]
inputs = [x3, v1]
outputs = [v4]
updates = {}
arguments = [
    np.zeros((0, 0), "uint64"),
    np.array(1, "int64"),
]
