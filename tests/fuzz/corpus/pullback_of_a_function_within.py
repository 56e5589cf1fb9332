"""A pullback that is not the derivative, by design, of a function within another one."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(None,))
v0 = pt.tile(x0, (1,))
v1 = phintys.OpFromGraph(
    [x0], [v0], inline=False, pullback=lambda xs, ys, gs: [pt.sin(x) * pt.sum(gs[0]) for x in xs]
)(x0)
v2 = phintys.OpFromGraph([x0], [v1], inline=False)(x0)
inputs = [x0]
outputs = [v2, v0]
updates = {}
arguments = [
    np.array(
        [1.745735, -1.269215, -1.827465, 0.431076, -1.971808, -1.642544, 0.486331, 1.991987],
        "float64",
    ),
]
