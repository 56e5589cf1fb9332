"""An argument without elements was returned as the result, and is read-only."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x1 = pt.tensor("x1", dtype="bool", shape=(None,))
v3 = pt.tensor("v3", dtype="uint32", shape=(None, None))
v2 = pt.tensor("v2", dtype="bool", shape=(None,))
v4 = phintys.ifelse(pt.any(v3 > 1), v2, x1)
inputs = [x1, v3, v2]
outputs = [v4]
updates = {}
arguments = [
    (lambda a: np.frombuffer(b"0" + a.tobytes(), "u1")[1:].view(a.dtype).reshape(a.shape))(
        np.zeros((0,), "bool")
    ),
    np.zeros((0, 0), "uint32"),
    np.zeros((0,), "bool"),
]
