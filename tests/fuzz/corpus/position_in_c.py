"""Found by seed 126.  c: value: result 0: np.int32(4) instead of np.int32(5) at (0,) (1 of 1)"""

# ruff: noqa

import numpy as np

import phintys
import phintys.tensor as pt

x3 = pt.tensor("x3", dtype="int8", shape=())
x4 = pt.tensor("x4", dtype="int32", shape=())
v3 = pt.tensor("v3", dtype="int32", shape=(1, None, None))
v5 = v3[None, x3, -2, x4]
inputs = [x3, x4, v3]
outputs = [v5]
updates = {}
arguments = [
    np.array(-1, "int8"),
    np.array(-2, "int32"),
    np.array([[[1, 2, 3], [4, 5, 6], [7, 8, 9]]], "int32"),
]
