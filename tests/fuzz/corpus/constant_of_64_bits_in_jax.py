"""Seed 1008041.  jax: type: result 0: dtype float32 instead of float64"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

v3 = pt.zeros((), dtype="float64")
inputs = []
outputs = [v3]
updates = {}
arguments = []
backends = ["jax"]
