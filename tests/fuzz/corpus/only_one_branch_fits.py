"""Evaluated in full, the branch that is not taken would fail: its gradient has another length."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(None,))
x1 = pt.tensor("x1", dtype="float64", shape=())
v0 = pt.sum(x0, axis=(0,), keepdims=True, acc_dtype="float64")
v1 = phintys.ifelse(pt.any(v0 > 0), v0, x0)
v2 = phintys.scan(
    lambda row, last, fixed: ([pt.maximum(last, row) - 0.25 * fixed]),
    [v1],
    [x1],
    [x1],
    go_backwards=True,
    n_steps=3,
    return_list=True,
    return_updates=False,
)[0]
v4 = phintys.grad(pt.sum(v2), x0, disconnected_inputs="ignore", null_gradients="return")
inputs = [x0, x1]
outputs = [v4]
updates = {}
arguments = [
    np.full((3,), -0.335065, "float64"),
    np.array(2.156467, "float64"),
]
