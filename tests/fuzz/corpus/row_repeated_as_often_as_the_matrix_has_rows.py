"""The reshaped row was taken for the matrix, which has as many elements."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="int64", shape=(3, 3))
v0 = pt.join(0, x0[0], x0[0], x0[0])
v1 = pt.reshape(pt.alloc(pt.diagonal(x0), 3, 3), (9,))
inputs = [x0]
outputs = [v0, v1]
updates = {}
arguments = [np.arange(9).reshape(3, 3)]
