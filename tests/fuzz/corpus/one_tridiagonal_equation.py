"""Seed 330058886.  interpreter: IndexError: index -4 is out of bounds for axis 0 with size 0"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

v3 = pt.tensor("v3", dtype="int64", shape=(1, 1, 1))
v9 = pt.linalg.tridiagonal_lu_solve(
    pt.linalg.tridiagonal_lu_factor(
        pt.linalg.cholesky(
            pt.matmul(pt.tanh(v3), pt.matrix_transpose(pt.tanh(v3))) / 1 + 2 * pt.eye(1)
        )
    ),
    pt.exp(
        pt.linalg.cholesky(
            pt.matmul(pt.tanh(v3), pt.matrix_transpose(pt.tanh(v3))) / 1 + 2 * pt.eye(1)
        )
    ),
    b_ndim=2,
    transposed=False,
)
inputs = [v3]
outputs = [v9]
updates = {}
arguments = [
    np.array([[[5]]], "int64"),
]
