"""Seed 21557.  llvm: ShapeError: Alloc: Log.out of shape (1, 1) does not fit into the shape (1, 17, 17); an axis broadcasts only if its length is known to be 1."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x1 = pt.tensor("x1", dtype="float64", shape=(None, 1))
x3 = pt.tensor("x3", dtype="int32", shape=())
x6 = pt.tensor("x6", dtype="int8", shape=())
v4 = pt.broadcast_to(
    x1,
    (
        1,
        x3,
    ),
)
v7 = pt.log(v4)
v9 = pt.alloc(v7, 1, x6, 17)
inputs = [x1, x3, x6]
outputs = [v9]
updates = {}
arguments = [
    np.array([[1.746972]], "float64"),
    np.array(17, "int32"),
    np.array(17, "int8"),
]
