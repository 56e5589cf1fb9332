"""Seed 196.  interpreter: value: result 0: np.float64(1.0) instead of np.float64(16.0) at (0, 0) (25 of 25)"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x1 = pt.tensor("x1", dtype="float64", shape=(None, None))
x2 = pt.tensor("x2", dtype="int16", shape=())
v1 = pt.roll(x1, shift=(x2 // 2), axis=-2)
inputs = [x1, x2]
outputs = [v1]
updates = {}
arguments = [
    np.array(
        [
            [1.0, 2.0, 3.0, 4.0, 5.0],
            [6.0, 7.0, 8.0, 9.0, 10.0],
            [11.0, 12.0, 13.0, 14.0, 15.0],
            [16.0, 17.0, 18.0, 19.0, 20.0],
            [21.0, 22.0, 23.0, 24.0, 25.0],
        ],
        "float64",
    ),
    np.array(4, "int16"),
]
