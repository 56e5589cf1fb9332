"""Seed 1754.  llvm: ValueError: max() arg is an empty sequence"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x2 = pt.tensor("x2", dtype="int32", shape=())
x4 = pt.tensor("x4", dtype="int64", shape=())
v5 = pt.tensor("v5", dtype="float64", shape=(1, 1))
v2 = pt.tensor("v2", dtype="int32", shape=(None,))
v3 = v2[pt.zeros((x4,), dtype="uint64")]
v7 = pt.set_subtensor(v5[v3, v3], pt.cast(x2, "float64"))
inputs = [x2, x4, v5, v2]
outputs = [v7]
updates = {}
arguments = [
    np.array(-1, "int32"),
    np.array(17, "int64"),
    np.array([[4.498888751680798]], "float64"),
    np.array([-1], "int32"),
]
