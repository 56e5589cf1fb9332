"""The step's sum of a loop that runs no step was read at a known position: the rule raised, not the program."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x2 = pt.tensor("x2", dtype="float64", shape=(0, 3))
x3 = pt.tensor("x3", dtype="float64", shape=(None,))
x4 = pt.tensor("x4", dtype="float64", shape=())
x5 = pt.tensor("x5", dtype="int8", shape=())
v3 = phintys.scan(
    lambda row, last, fixed: (
        [
            pt.cast(pt.where(row > last, row, 0.5 * last), "float64"),
            pt.cos(last) + fixed,
            pt.sum(row * last),
        ]
    ),
    [x2],
    [x3, None, None],
    [x4],
    n_steps=pt.cast(x5 + -2, "int32"),
    return_list=True,
    return_updates=False,
)[2][-1]
inputs = [x2, x3, x4, x5]
outputs = [v3]
updates = {}
arguments = [
    np.zeros((0, 3), "float64"),
    np.full((3,), 1.0, "float64"),
    np.array(2.2250738585072014e-308, "float64"),
    np.array(2, "int8"),
]
fails = True
