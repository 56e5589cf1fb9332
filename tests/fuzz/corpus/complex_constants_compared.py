"""Seed 40351.  llvm: RewriteError: a rule about lengths compared a complex constant with 0"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="complex128", shape=(None,))
v0 = pt.ge(0j, x0)
v1 = pt.le(np.array([1 + 0j]), x0)
inputs = [x0]
outputs = [v0, v1]
updates = {}
arguments = [np.array([1 + 1j, -1, 0])]
