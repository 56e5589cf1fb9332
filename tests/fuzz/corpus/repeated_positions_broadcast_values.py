"""The reference added one value at each position: values are broadcast first."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(None,))
x1 = pt.tensor("x1", dtype="int64", shape=(None, None))
x2 = pt.tensor("x2", dtype="float64", shape=(None,))
v0 = pt.inc_subtensor(x0[x1], x2)
inputs = [x0, x1, x2]
outputs = [v0]
updates = {}
arguments = [np.zeros(2), np.zeros((2, 2), "int64"), np.array([1.0, 10.0])]
expected = [np.array([22.0, 0.0])]
