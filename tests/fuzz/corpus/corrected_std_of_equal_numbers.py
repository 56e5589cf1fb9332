"""Seed 1576.  llvm: value: result 0: np.float64(nan) instead of np.float64(0.0) at (1, 0) (6 of 15)"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x0 = pt.tensor("x0", dtype="float64", shape=(None, 5))
v0 = pt.concatenate([x0, x0, x0], axis=-2)
v2 = pt.std(v0, axis=1, keepdims=True, corrected=True)
inputs = [x0]
outputs = [v2]
updates = {}
arguments = [
    np.array(
        [
            [-1.320557, -1.320557, -1.320557, -1.320557, -1.320557],
            [1.292526, 1.292526, 1.292526, 1.292526, 1.292526],
            [-1.857561, -1.857561, -1.857561, -1.857561, -1.857561],
            [1.71258, 1.71258, 1.71258, 1.71258, 1.71258],
            [0.75982, 0.75982, 0.75982, 0.75982, 0.75982],
        ],
        "float64",
    ),
]
