"""Ops that contain graphs: their base class, and `OpFromGraph`."""

from phintys.inner.from_graph import OpFromGraph
from phintys.inner.op import InnerGraphOp

__all__ = ["InnerGraphOp", "OpFromGraph"]
