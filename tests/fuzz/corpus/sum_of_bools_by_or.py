"""Seed 90002125.  c: value: result 0: np.int64(6) instead of np.int64(1) at () (1 of 1)"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

v0 = pt.tensor("v0", dtype="bool", shape=(None, None))
v1 = pt.sum(v0, keepdims=False, acc_dtype="bool")
inputs = [v0]
outputs = [v1]
updates = {}
arguments = [
    np.full((3, 2), True, "bool"),
]
