"""Constant parameters whose lengths do not agree: making the function failed, not its call."""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

v4 = pt.random.nbinom(
    n=np.array([1.0, 0.3, 1.0], "float64"),
    p=np.array([], "float64"),
    size=(2, 0, 3),
    rng=np.random.default_rng(48),
)
inputs = []
outputs = [v4]
updates = {}
arguments = []
fails = True
