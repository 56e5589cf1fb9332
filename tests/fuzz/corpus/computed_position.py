"""Seed 1019.  interpreter: IllegalProgram: step 0 (Kernel): Dim(('item', 2)) is used before it is defined"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x1 = pt.tensor("x1", dtype="int8", shape=(None,))
x2 = pt.tensor("x2", dtype="uint8", shape=())
v2 = x1[(x2 - -1)]
inputs = [x1, x2]
outputs = [v2]
updates = {}
arguments = [
    np.full((17,), 1, "int8"),
    np.array(8, "uint8"),
]
