"""Seed 80000557.  llvm: ShapeError: Input dimension mismatch along axis 0: only the fill is known to have length 1."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(None,))
x1 = pt.tensor("x1", dtype="float64", shape=(None,))
v2 = pt.broadcast_to(x1, (1,))
v3 = x0 * v2
v4 = pt.exp(v2) + pt.broadcast_to(x1, (1,)) * x0
inputs = [x0, x1]
outputs = [v3, v4]
updates = {}
arguments = [
    np.array([1.0, 2.0, 3.0], "float64"),
    np.array([0.5], "float64"),
]
