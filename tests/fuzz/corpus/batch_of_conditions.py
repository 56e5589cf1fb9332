"""A batch of conditions between values of other lengths: the shorter one was broadcast."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float16", shape=(1, None))
v4 = pt.tensor("v4", dtype="float16", shape=(1, 1))
v0 = pt.logsumexp(x0, axis=(0, 1))
v7 = phintys.ifelse(v0, v4, x0)
v8 = phintys.vectorize_graph(v7, {x0: pt.stack([x0, x0])})[1]
inputs = [x0, v4]
outputs = [v8]
updates = {}
arguments = [
    np.full((1, 17), 1.0, "float16"),
    np.array([[2.65234375]], "float16"),
]
fails = True
