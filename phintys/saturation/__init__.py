"""Equality saturation: all forms of an expression that the rules give, and the cheapest of them.

The phase is optional: a mode includes it (``mode.including("saturate")``, or the mode ``EGGLOG``).
It needs the package egglog, which is imported when the phase runs.
"""

from copy import copy

from phintys.rewriting.database import optdb
from phintys.saturation.rewriter import Saturation
from phintys.tensor.rules import canonicalize


def _register_phases() -> None:
    optdb.register("saturation", Saturation(), "saturate", position=1.55)
    optdb.register("saturation_canonical", copy(canonicalize), "saturate", position=1.56)
    optdb.mark_own()


optdb.fill_later(_register_phases)
