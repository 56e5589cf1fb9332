"""The gradient of a branch of other lengths inside an op with a graph."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(None, None))
x2 = pt.tensor("x2", dtype="int64", shape=(None,))
v0 = pt.sum(x0, axis=0)
v1 = pt.reshape(x0, (-1,))
v4 = phintys.ifelse(pt.any(x2 > 1), [v1, v0], [v0, v1])[0]
v10 = phintys.OpFromGraph([x0, x2], [v4], inline=False)(x0, x2)
v11 = phintys.grad(
    pt.sum(v10 * v10.shape[0]), x0, disconnected_inputs="ignore", null_gradients="return"
)
inputs = [x0, x2]
outputs = [v11]
updates = {}
arguments = [
    np.full((5, 5), 1.0, ">f8"),
    np.array([1, 2, 3, 4, 5], "int64"),
]
