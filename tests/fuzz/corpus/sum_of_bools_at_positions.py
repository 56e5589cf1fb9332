"""Found by seed 39.  llvm: IllegalProgram: step 4 (Kernel), instruction 2 (add): does not take bool"""

# ruff: noqa

import numpy as np

import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="bool", shape=(1, None, None))
x1 = pt.tensor("x1", dtype="int8", shape=())
x2 = pt.tensor("x2", dtype="int32", shape=())
x3 = pt.tensor("x3", dtype="int64", shape=())
v0 = pt.inc_subtensor(
    x0[pt.cast(x1 + 0, "int32"), pt.cast(x0.shape[2] + 0, "int32") : x2 : 3, :x3:-1], 2
)
inputs = [x0, x1, x2, x3]
outputs = [v0]
updates = {}
arguments = [
    np.full((1, 2, 2), True, "bool"),
    np.array(-1, "int8"),
    np.array(4, "int32"),
    np.array(-3, "int64"),
]
