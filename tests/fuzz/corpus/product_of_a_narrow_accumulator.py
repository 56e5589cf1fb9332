"""Seed 70007392.  numpy: value: result 0: np.int64(-470906536525299712) instead of np.int64(0) at (0, 0) (4 of 4)"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="int32", shape=(None, None))
v1 = pt.tensor("v1", dtype="int64", shape=())
v2 = pt.set_subtensor(x0[:], pt.cast(v1, "int32"))
v5 = pt.prod(v2, axis=0, keepdims=True, acc_dtype="int32", no_zeros_in_input=False)
inputs = [x0, v1]
outputs = [v5]
updates = {}
arguments = [
    np.full((4, 4), 1, "int32"),
    np.array(51840000, "int64"),
]
