"""Elements of a symmetric matrix are equal but for rounding: a length is the place of the least."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(None, None, None))
v3 = pt.tensor("v3", dtype="int64", shape=(None, None))
v0 = pt.linalg.solve_discrete_lyapunov(
    (pt.matmul(pt.tanh(x0), pt.matrix_transpose(pt.tanh(x0))) / 2 + 2 * pt.eye(2)) / 99,
    pt.exp(pt.matmul(pt.tanh(x0), pt.matrix_transpose(pt.tanh(x0))) / 2 + 2 * pt.eye(2)),
    "bilinear",
)
v2 = pt.argmin(v0, axis=None)
v4 = pt.split(v0, [(v3.shape[1] + 0), (v2 // 2)], n_splits=2, axis=2)[1]
inputs = [x0, v3]
outputs = [v4]
updates = {}
arguments = [
    np.array(
        [
            [[0.6759, 1.178532], [2.160067, 1.63851]],
            [[0.452557, -0.907721], [-1.657218, -0.913651]],
        ],
        "float64",
    ),
    np.zeros((1, 0), "int64"),
]
