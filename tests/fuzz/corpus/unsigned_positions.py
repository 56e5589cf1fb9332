"""Seed 35.  jax: IndexError: unsigned positions were out of range"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="int8", shape=(None,))
x1 = pt.tensor("x1", dtype="uint32", shape=(None, None))
x2 = pt.tensor("x2", dtype="uint64", shape=())
v0 = x0[x1]
v1 = x0[x2::-1]
inputs = [x0, x1, x2]
outputs = [v0, v1]
updates = {}
arguments = [np.array([1, 2], "int8"), np.full((2, 2), 1, "uint32"), np.array(1, "uint64")]
backends = ["jax", "numba"]
