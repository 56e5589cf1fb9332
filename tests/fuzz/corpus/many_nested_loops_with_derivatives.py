"""Seed 350061588.  process: crash -6: of the process"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x2 = pt.tensor("x2", dtype="float64", shape=())
v0 = pt.tensor("v0", dtype="float64", shape=(3, 3))
v2 = phintys.scan(
    lambda b: phintys.scan(
        lambda a, h: pt.switch(h > a, h / 2, a), [b], [x2], return_updates=False
    )[-1],
    [v0],
    return_updates=False,
)
v5 = phintys.loop.scan_checkpoints(
    lambda a, h: pt.tanh(h * 0.5 + a), [v2], [x2], save_every_N=1, return_updates=False
)
v6 = phintys.jacobian(v5, v0, disconnected_inputs="ignore")
v11 = phintys.grad(
    pt.sum(
        phintys.grad(pt.sum(v6**2), v2, disconnected_inputs="ignore", null_gradients="return") ** 2
    ),
    v2,
    disconnected_inputs="ignore",
    null_gradients="return",
)
v12 = phintys.grad(
    pt.sum(
        phintys.grad(pt.sum(v11**2), x2, disconnected_inputs="ignore", null_gradients="return") ** 2
    ),
    x2,
    disconnected_inputs="ignore",
    null_gradients="return",
)
inputs = [x2, v0]
outputs = [v12]
updates = {}
arguments = [
    np.array(-1.531756, "float64"),
    np.array(
        [
            [1.0421450451769319, -0.07868198983110732, -0.09747037479223307],
            [-0.07868198983110747, 1.0300970665889566, -0.13854939830595198],
            [-0.09747037479223315, -0.13854939830595187, 1.0768167099487347],
        ],
        "float64",
    ),
]
