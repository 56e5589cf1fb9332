"""Seed 10005.  llvm: IllegalProgram: slot 2: dtype float16 is not native"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x2 = pt.tensor("x2", dtype="uint8", shape=())
v2 = pt.zeros(
    (
        x2,
        3,
    ),
    dtype="float16",
)
inputs = [x2]
outputs = [v2, v2]
updates = {}
arguments = [
    np.array(1, "uint8"),
]
