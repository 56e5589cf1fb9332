"""Random numbers: variables of generators, and distributions.

The state of a generator is explicit: a draw returns the generator after it.  On the backends numpy,
llvm and c the numbers are those of `numpy.random.Generator`, bit for bit.
"""
# ruff: noqa: F401, F403
# pyright: reportUnusedImport=false

from __future__ import annotations

from phintys.tensor.random import basic, making, op, stream, utils
from phintys.tensor.random.continuous import *
from phintys.tensor.random.discrete import *
from phintys.tensor.random.making import default_rng, spawn
from phintys.tensor.random.multivariate import *
from phintys.tensor.random.stream import RandomStream
from phintys.tensor.random.variable import rng, shared_rng

# PyTensor has these names in modules that ours are built on
for _place, _source in ((op, making), (utils, stream)):
    for _name in _source.__all__:
        setattr(_place, _name, getattr(_source, _name))
