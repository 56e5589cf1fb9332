"""The slice had no elements and was a read-only view of the argument."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(None, 1))
x1 = pt.tensor("x1", dtype="int32", shape=())
x2 = pt.tensor("x2", dtype="uint16", shape=())
v0 = x0[x0.shape[0] : 3 : x1, x2:1:-1]
inputs = [x0, x1, x2]
outputs = [v0]
updates = {}
arguments = [
    np.broadcast_to(np.array([[1.099195], [-5e-324]], "float64"), (2, 1)),
    np.array(-1, "int32"),
    np.array(0, "uint16"),
]
