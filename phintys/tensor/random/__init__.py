"""Random numbers: variables of generators, and distributions.

The state of a generator is explicit: a draw returns the generator after it.  On the backends numpy,
llvm and c the numbers are those of `numpy.random.Generator`, bit for bit.
"""

from __future__ import annotations

from phintys.tensor.random.basic import normal
from phintys.tensor.random.variable import rng, shared_rng

__all__ = ["normal", "rng", "shared_rng"]
