"""Ops that contain graphs: their base class, and `OpFromGraph`."""

from phintys.inner.from_graph import OpFromGraph
from phintys.inner.op import InnerGraphOp
from phintys.inner.symbolic import FinalizedOpFromGraph, SymbolicOp

__all__ = ["FinalizedOpFromGraph", "InnerGraphOp", "OpFromGraph", "SymbolicOp"]
