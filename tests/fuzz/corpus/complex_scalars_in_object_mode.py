"""Seed 100000482.  numba: TypeError: conversion to complex128 failed"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="complex128", shape=())
x1 = pt.tensor("x1", dtype="complex64", shape=())
v0, v1 = (
    pt.tensor_from_scalar(
        phintys.scalar.op.TABLE["add"](pt.scalar_from_tensor(x), pt.scalar_from_tensor(x))
    )
    for x in (x0, x1)
)
inputs = [x0, x1]
outputs = [v0, v1]
updates = {}
arguments = [np.array(1.387213 + 0.657986j), np.array(2 - 1j, "complex64")]
backends = ["jax", "numba"]
