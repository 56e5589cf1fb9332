"""Seed 70002558.  interpreter: type: result 2: dtype float64 instead of int32"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

s2 = phintys.shared(np.array(-1.048593, "float64"), name="s2", shape=())
s3 = phintys.shared(np.array(-5, "int32"), name="s3", shape=())
s4 = phintys.shared(np.array(0.321123, "float64"), name="s4", shape=())
v6 = pt.tensor("v6", dtype="int32", shape=())
v7 = pt.sqrt(v6)
inputs = [v6]
outputs = [v7]
updates = {s2: s4, s3: s3, s4: v7}
arguments = [
    np.array(5, "int32"),
]
