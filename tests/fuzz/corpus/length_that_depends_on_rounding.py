"""Seed 100054810.  llvm at 256 bits: ShapeError: The value cannot fill axis 2 (3, not 2) in Alloc: x0 has shape (3, 3), TensorConstant{3} is 3, x1 is 3, Cast{int32}.out is 2."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="uint16", shape=(None, None))
x1 = pt.tensor("x1", dtype="int8", shape=())
x2 = pt.tensor("x2", dtype="uint64", shape=())
v0 = pt.linalg.solve_triangular(
    pt.matmul(pt.tanh(x0), pt.matrix_transpose(pt.tanh(x0))) / 3 + 2 * pt.eye(3),
    pt.tanh(x0),
    lower=False,
    trans="T",
    unit_diagonal=True,
)
v1 = pt.broadcast_to(
    x0,
    (
        3,
        x1,
        pt.cast(x2 + 1, "int32"),
    ),
)
inputs = [x0, x1, x2]
outputs = [v1, v0]
updates = {}
arguments = [
    np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], "uint16"),
    np.array(3, "int8"),
    np.array(2, "uint64"),
]
