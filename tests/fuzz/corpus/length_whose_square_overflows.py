"""Seed 340074531.  llvm at 512 bits: ShapeError: a length is negative"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="int64", shape=())
v0 = pt.tensor_from_scalar(
    phintys.scalar.op.TABLE["mul"](
        phintys.scalar.op.TABLE["sqr"](pt.scalar_from_tensor(x0)), pt.scalar_from_tensor(x0)
    )
)
v1 = pt.full((v0,), x0, dtype="int32")
inputs = [x0]
outputs = [v1]
updates = {}
arguments = [
    np.array(-9223372036854775808, "int64"),
]
