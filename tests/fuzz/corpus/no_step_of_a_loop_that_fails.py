"""Seed 330017148.  llvm at 512 bits: ShapeError: The matrix is not square (2, not 0) in Det: Switch.out has shape (2, 0)."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="int64", shape=(None,))
x1 = pt.tensor("x1", dtype="float64", shape=())
x2 = pt.tensor("x2", dtype="int64", shape=())
v1 = phintys.scan(
    lambda a, h, z: phintys.ifelse(
        pt.any(a * 0 > (x2 // 2)),
        h
        + pt.cast(
            pt.sum(
                pt.linalg.det(
                    pt.tril(pt.ones((pt.cast(pt.cast(x2 + 0, "int32"), "int64"), z.shape[0])))
                )
            ),
            "float64",
        ),
        pt.cast(h * 0.5 + a, "float64"),
    ),
    [x0],
    [x1],
    [x0],
    return_updates=False,
)
v2 = phintys.vectorize_graph(v1, {x0: pt.stack([x0, x0])})[1]
inputs = [x0, x1, x2]
outputs = [v2]
updates = {}
arguments = [
    np.zeros((0,), "int64"),
    np.array(1.930599, "float64"),
    np.array(2, "int64"),
]
