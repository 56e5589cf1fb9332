"""The result has no elements, so compiled code does not look at the positions."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x6 = pt.tensor("x6", dtype="uint8", shape=())
x7 = pt.tensor("x7", dtype="uint16", shape=(None,))
v2 = pt.tensor("v2", dtype="float32", shape=(None, None, None))
v3 = v2[..., x6::3, x7]
inputs = [x6, x7, v2]
outputs = [v3]
updates = {}
arguments = [
    np.array(4, "uint8"),
    np.full((3,), 1, "uint16"),
    np.full((4, 4, 1), 1.0, "float32"),
]
fails = True
