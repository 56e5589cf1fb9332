"""Seed 1614.  llvm: ValueError: max() arg is an empty sequence"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x2 = pt.tensor("x2", dtype="uint32", shape=())
v0 = pt.tensor("v0", dtype="bool", shape=(1, 1, 1))
v1 = pt.set_subtensor(v0[pt.zeros((x2,), dtype="int8")], pt.cast(x2, "bool"))
inputs = [x2, v0]
outputs = [v1]
updates = {}
arguments = [
    np.array(3, "uint32"),
    np.array([[[True]]], "bool"),
]
