"""Seed 340020135.  llvm at 256 bits: KeyError: 5"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

a1 = pt.tensor("a1", dtype="uint64", shape=())
x2 = pt.tensor("x2", dtype="float64", shape=(None, None))
x3 = pt.tensor("x3", dtype="uint64", shape=())
v2 = pt.set_subtensor(x2[:, -24:x3], pt.cast(a1, "bool"))
v3 = x2 + v2
inputs = [a1, x2, x3]
outputs = [v3]
updates = {}
arguments = [
    np.array(130, "uint64"),
    np.full((2, 65), 1.0, "float64"),
    np.array(3, "uint64"),
]
