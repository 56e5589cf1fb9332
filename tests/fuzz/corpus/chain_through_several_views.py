"""Views of views, and a result that another result is a part of."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float32", shape=(None, None))
x1 = pt.tensor("x1", dtype="int8", shape=())
s2 = phintys.shared(np.array([2, 0], "uint8"), name="s2", shape=(None,))
v0 = pt.exp(x0)[::-1].T
v1 = v0[1:, s2]
v2 = pt.sum(v1, axis=-1)
v3 = pt.concatenate([v2, v2 * x1])
v4 = s2[::-1]
inputs = [x0, x1]
outputs = [v3, v2, v0]
updates = {s2: v4}
arguments = [np.arange(12, dtype="float32").reshape(4, 3).T[::-1] / 8, np.array(-3, "int8")]
