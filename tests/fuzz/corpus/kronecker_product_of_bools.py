"""Bools were multiplied as numbers, which is no legal program."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="bool", shape=(1, None))
v0 = pt.linalg.kron(x0, x0)
inputs = [x0]
outputs = [v0]
updates = {}
arguments = [np.array([[True, False, True]])]
