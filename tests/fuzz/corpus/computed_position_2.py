"""Seed 1026.  llvm: IllegalProgram: step 0 (Kernel): Dim(('item', 4)) is used before it is defined"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="int32", shape=(None, None))
x1 = pt.tensor("x1", dtype="int16", shape=())
x2 = pt.tensor("x2", dtype="int32", shape=())
v0 = x0[x1, x2]
inputs = [x0, x1, x2]
outputs = [v0]
updates = {}
arguments = [
    np.full((33, 33), 1, "int32"),
    np.array(-11, "int16"),
    np.array(-9, "int32"),
]
