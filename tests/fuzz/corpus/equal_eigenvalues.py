"""The second derivative divides by the difference of equal eigenvalues: NaN."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(None, None))
v2 = pt.linalg.eigvalsh(
    pt.matmul(pt.tanh(x0), pt.matrix_transpose(pt.tanh(x0))) / 3 + 2 * pt.eye(3), lower=True
)
v3 = phintys.grad(
    pt.sum(
        phintys.grad(pt.sum(v2**2), x0, disconnected_inputs="ignore", null_gradients="return") ** 2
    ),
    x0,
    disconnected_inputs="ignore",
    null_gradients="return",
)
inputs = [x0]
outputs = [v3]
updates = {}
arguments = [
    np.array(
        [
            [5e-324, 1.057081, -2.068327],
            [5e-324, 1.057081, -2.068327],
            [5e-324, 1.057081, -2.068327],
        ],
        "float64",
    ),
]
