"""An index that is one element of a constant array (a shape): it was checked with the largest."""

# ruff: noqa

import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(3, 1))
x4 = pt.tensor("x4", dtype="uint64", shape=(None, None))
v1 = pt.tensor("v1", dtype="float64", shape=(None, 1))
v3 = v1[x0.shape[1], x4]
inputs = [x0, x4, v1]
outputs = [v3]
updates = {}
arguments = [
    np.full((3, 1), 1.0, "float64"),
    np.full((2, 2), 0, "uint64"),
    np.full((3, 1), 1.0, "float64"),
]
