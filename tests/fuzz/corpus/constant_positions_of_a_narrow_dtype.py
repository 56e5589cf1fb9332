"""The rule that makes a slice of them raised OverflowError: int8 does not hold the length."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="int64", shape=(130,))
v0 = x0[np.array([62, -18], "int8")]
inputs = [x0]
outputs = [v0]
updates = {}
arguments = [np.arange(130)]
