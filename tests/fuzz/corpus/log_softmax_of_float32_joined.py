"""Seed 100064206.  llvm at 256 bits: value: result 0: np.float64(-1.223858118057251) instead of np.float64(-1.2238579988479614) at (1,) (1 of 4)"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x1 = pt.tensor("x1", dtype="float32", shape=(None,))
a3 = pt.tensor("a3", dtype="int64", shape=(1,))
v1 = pt.log_softmax(x1, axis=0)
v5 = pt.join(0, a3, v1)
inputs = [x1, a3]
outputs = [v5]
updates = {}
arguments = [
    np.array([0.5216630101203918, 1.3008129596710205, -0.9894599914550781], "float32"),
    np.array([-1], "int64"),
]
